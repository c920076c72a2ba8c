#!/usr/bin/env python3
"""CPU time of DeepSpeed ZeRO-3's hooks around one module in one pass, and of one reduction.

    python measure_sharding_hooks.py [--layers 24] [--passes 40] [--ranks 8]

A decoder so narrow that its arithmetic is nothing goes through forward and backward with every
layer checkpointed (three passes through each module), once as it is, once under ZeRO-3 with one
bucket for all gradients, and once with a bucket as large as the smallest matrix (transformers'
"auto", the square of the width), so that each matrix is reduced alone. One line of JSON in
microseconds tells what the second takes more than the first, per module with parameters and pass,
and the third more than the second, per matrix. No weight is kept whole. Runs on the CPU, with
DeepSpeed's CPU accelerator and PyTorch's process group that sends nothing; the least of all
repetitions counts. On a GPU the hooks also switch streams and record events, so the figures are
lower bounds there.

Needs torch, transformers and deepspeed; nothing in shardwise's tests runs it.
"""
import argparse
import json
import os
import subprocess
import sys
import time

MODULES = 9  # with parameters in a decoder layer: q, k, v, o, gate, up, down and two norms
MATRICES = 7
PASSES = 3   # forward, recomputation, backward
WIDTH = 64
BUCKETS = {"zero3": 500_000_000, "reduced-alone": WIDTH * WIDTH}  # elements


def seconds_per_layer(engine, layers, repetitions, ranks):
    """Least CPU seconds of one layer's passes, `engine` "plain" or one of BUCKETS."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", LOCAL_RANK="0",
                      WORLD_SIZE=str(ranks), DS_ACCELERATOR="cpu")
    import torch
    import transformers

    torch.set_num_threads(1)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=layers, num_attention_heads=4,
        vocab_size=512, use_cache=False)).to(torch.bfloat16)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.enable_input_require_grads()
    model.train()
    backward = lambda loss: loss.backward()
    if engine in BUCKETS:
        import deepspeed
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
        model, *_ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(),
            config={"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 10000,
                    "bf16": {"enabled": True}, "gradient_clipping": 1.0,
                    "zero_optimization": {"stage": 3, "overlap_comm": True,
                                          "contiguous_gradients": True,
                                          "stage3_param_persistence_threshold": 0,
                                          "reduce_bucket_size": BUCKETS[engine]},
                    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}})
        backward = model.backward
    tokens = torch.randint(0, 512, (1, 4))
    best = float("inf")
    for _ in range(repetitions):
        begin = time.process_time()
        backward(model(input_ids=tokens, labels=tokens).loss)
        if engine in BUCKETS:
            model.step()
        best = min(best, time.process_time() - begin)
    return best / layers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--passes", type=int, default=40, help="repetitions")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--engine", choices=["plain", *BUCKETS], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        print("RESULT", seconds_per_layer(args.engine, args.layers, args.passes, args.ranks))
        return
    seconds = {}
    for engine in ("plain", *BUCKETS):
        said = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--engine", engine],
                              capture_output=True, text=True)
        lines = [line for line in said.stdout.splitlines() if line.startswith("RESULT")]
        if not lines:
            sys.exit(f"{engine}: {said.stderr[-2000:]}")
        seconds[engine] = float(lines[-1].split()[1])
    import deepspeed
    import torch
    import transformers
    more = seconds["zero3"] - seconds["plain"]
    alone = seconds["reduced-alone"] - seconds["zero3"]
    print(json.dumps({"plain_ms_per_layer": round(1e3 * seconds["plain"], 3),
                      "zero3_ms_per_layer": round(1e3 * seconds["zero3"], 3),
                      "us_per_module_and_pass": round(1e6 * more / (MODULES * PASSES), 1),
                      "us_per_reduction": round(1e6 * alone / MATRICES, 1),
                      "ranks": args.ranks, "deepspeed": deepspeed.__version__,
                      "torch": torch.__version__, "transformers": transformers.__version__}))


if __name__ == "__main__":
    main()
