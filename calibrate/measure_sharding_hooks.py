#!/usr/bin/env python3
"""CPU time of DeepSpeed ZeRO's hooks: of stage 3 around one module in one pass and for one
reduction, of stages 1 and 2 for one gradient, and of its step for one tensor.

    python measure_sharding_hooks.py [--layers 24] [--passes 40] [--ranks 8] [--unchecked]

A decoder so narrow that its arithmetic is nothing goes through forward and backward with every
layer checkpointed (three passes through each module), once as it is, once under ZeRO-3 with one
bucket for all gradients, and once with a bucket as large as the smallest matrix (transformers'
"auto", the square of the width), so that each matrix is reduced alone. One line of JSON in
microseconds tells what the second takes more than the first, per module with parameters and pass,
and the third more than the second, per matrix, in microseconds and in operators of the model as it
is, which are counted: a ratio of two times of one machine, of which neither its speed nor what else
runs on it is a part. No weight is kept whole. Then the same without checkpoints as it is and at
stages 1 and 2 with one bucket, every backward pass followed by a step: what backward takes more,
and what the step takes, at stage 3 too, per trained tensor, in the same units. A rank steps its
share of the tensors (at stage 3 its share of each): one rank and eight tell apart what a step takes
for every tensor and for each that is stepped. Runs on the CPU, with
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
STAGES = {"whole": 0, "zero1": 1, "zero2": 2, "zero3-stepped": 3}


def small_llama(layers, ranks):
    """A 16-bit Llama on one core, as one of `ranks` of a process group yet to be made."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", LOCAL_RANK="0",
                      WORLD_SIZE=str(ranks), DS_ACCELERATOR="cpu")
    import torch
    import transformers

    torch.set_num_threads(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=layers, num_attention_heads=4,
        vocab_size=512, use_cache=False)).to(torch.bfloat16)


def seconds_per_layer(engine, layers, repetitions, ranks):
    """Least CPU seconds of one layer's passes, `engine` "plain" or one of BUCKETS; of the whole
    model's, per operator of it."""
    import torch
    model = small_llama(layers, ranks)
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
    from count_layer_operators import Count
    with Count() as count:
        backward(model(input_ids=tokens, labels=tokens).loss)
    return best / layers, best / count.operators()


def seconds_per_tensor(engine, layers, repetitions, ranks, checked):
    """Least CPU seconds, at one of STAGES: of a backward pass and of a step, per trained tensor; of
    forward and backward, per operator. `checked`: whether a bf16 run looks for infinity and NaN, of
    which releases before 0.17 know nothing."""
    import torch
    model = small_llama(layers, ranks)
    model.train()
    tensors = sum(1 for _ in model.parameters())
    backward, step = lambda loss: loss.backward(), model.zero_grad
    if STAGES[engine] > 0:
        import deepspeed
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
        model, *_ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(),
            config={"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
                    "bf16": {"enabled": True, "check_grad_overflow": checked},
                    "gradient_clipping": 1.0,
                    "zero_optimization": {"stage": STAGES[engine], "overlap_comm": False,
                                          "contiguous_gradients": True,
                                          "stage3_param_persistence_threshold": 0,
                                          "reduce_bucket_size": 500_000_000},
                    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}})
        backward, step = model.backward, model.step
    tokens = torch.randint(0, 512, (1, 4))
    least = [float("inf")] * 3
    for _ in range(repetitions):
        start = time.process_time()
        loss = model(input_ids=tokens, labels=tokens).loss
        begin = time.process_time()
        backward(loss)
        middle = time.process_time()
        step()
        end = time.process_time()
        least = [min(a, b) for a, b in zip(least, (middle - begin, end - middle, middle - start))]
    from count_layer_operators import Count
    with Count() as count:
        backward(model(input_ids=tokens, labels=tokens).loss)
    return least[0] / tensors, least[1] / tensors, least[2] / count.operators()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--passes", type=int, default=40, help="repetitions")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--unchecked", action="store_true",
                        help="bf16.check_grad_overflow off")
    parser.add_argument("--engine", choices=["plain", *BUCKETS, *STAGES],
                        help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine in STAGES:
        print("RESULT", *seconds_per_tensor(args.engine, args.layers, args.passes, args.ranks,
                                            not args.unchecked))
        return
    if args.engine:
        print("RESULT", *seconds_per_layer(args.engine, args.layers, args.passes, args.ranks))
        return
    seconds = {}
    for engine in ("plain", *BUCKETS, *STAGES):
        said = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--engine", engine],
                              capture_output=True, text=True)
        lines = [line for line in said.stdout.splitlines() if line.startswith("RESULT")]
        if not lines:
            sys.exit(f"{engine}: {said.stderr[-2000:]}")
        seconds[engine] = [float(word) for word in lines[-1].split()[1:]]
    import deepspeed
    import torch
    import transformers
    (whole, _, operator), (zero1, step1, _), (zero2, step2, _), (_, step3, _) = (
        seconds[e] for e in STAGES)
    plain, zero3, apart = (seconds[engine][0] for engine in ("plain", *BUCKETS))
    more, alone = (zero3 - plain) / (MODULES * PASSES), (apart - zero3) / MATRICES
    checkpointed = seconds["plain"][1]
    print(json.dumps({"plain_ms_per_layer": round(1e3 * plain, 3),
                      "zero3_ms_per_layer": round(1e3 * zero3, 3),
                      "us_per_operator": round(1e6 * operator, 1),
                      "us_per_gradient": [round(1e6 * (s - whole), 1) for s in (zero1, zero2)],
                      "operators_per_gradient": [round((s - whole) / operator, 2)
                                                 for s in (zero1, zero2)],
                      "operators_per_stepped_tensor": [round(s / operator, 2)
                                                       for s in (step1, step2, step3)],
                      "us_per_module_and_pass": round(1e6 * more, 1),
                      "operators_per_module_and_pass": round(more / checkpointed, 1),
                      "us_per_reduction": round(1e6 * alone, 1),
                      "operators_per_reduction": round(alone / checkpointed, 1),
                      "ranks": args.ranks, "checks_overflow": not args.unchecked,
                      "deepspeed": deepspeed.__version__,
                      "torch": torch.__version__, "transformers": transformers.__version__}))


if __name__ == "__main__":
    main()
