#!/usr/bin/env python3
"""Measures real training steps on one GPU and writes them as records of catalog/runs/SCHEMA.md.

    measure_training.py --output runs.json [--full] [--minutes 25] [--resume]
    measure_training.py --dry-run          the cases, and nothing is run
    measure_training.py --tiny             two tiny models on the CPU: every code path but the GPU's

Decoders of published dimensions with random weights (nothing is downloaded): full fine-tuning with
AdamW and LoRA, eager and compiled, with and without recomputation. Every case runs in a process of
its own, so that none inherits another's memory, and is saved at once. A case that runs out of
memory is recorded as such; what is larger in every way is left out after it.

The step is the one that transformers' Trainer makes by default: autocast to bf16 over fp32 weights
(or bf16 weights), loss from the model, gradients clipped to norm 1, fused AdamW, gradients set to
None. `step_time_s` is the median of 20 steps after warm-up, by CUDA events between steps, without a
wait of the host in between. Memory is told three times, a record for each kind: the peak of
allocated and of reserved memory (torch.cuda.max_memory_*), and what nvidia-smi shows at the end.

Needs torch and transformers; peft for LoRA.
"""
import argparse
import dataclasses
import datetime
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Published dimensions (catalog/models): layers, hidden, heads, key/value heads, feed-forward,
# vocabulary, tied embeddings.
MODELS = {
    "SmolLM2-135M": (30, 576, 9, 3, 1536, 49152, True),
    "TinyLlama-1.1B": (22, 2048, 32, 4, 5632, 32000, False),
    "Llama-3.2-1B": (16, 2048, 32, 8, 8192, 128256, True),
    "Llama-3.2-3B": (28, 3072, 24, 8, 8192, 128256, True),
    "Llama-2-7B": (32, 4096, 32, 32, 11008, 32000, False),
    "Llama-3.1-8B": (32, 4096, 32, 8, 14336, 128256, False),
    "tiny": (2, 64, 4, 2, 128, 256, True),  # of --tiny alone, no published model
}
METHODS = {"full-mixed": "bf16-mixed (fp32 weights)", "full-bf16": "bf16-true", "lora": "bf16"}
LORA_RANK = 16
STEPS = 20


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    method: str
    sequence: int
    batch: int
    recompute: str = "none"
    compile: bool = False

    @property
    def name(self):
        kind = "compiled" if self.compile else "eager"
        return (f"{self.model.lower()}-{self.method}-s{self.sequence}-b{self.batch}-"
                f"recompute-{self.recompute}-{kind}")

    def at_least_as_large(self, other):
        """Needs no less memory: only the tokens differ, and there are not fewer."""
        same = dataclasses.replace(self, sequence=other.sequence, batch=other.batch) == other
        return same and self.sequence >= other.sequence and self.batch >= other.batch


def quick_grid():
    shapes = ((2048, 1, "none", False), (2048, 4, "full", False), (2048, 4, "none", True),
              (8192, 1, "full", False), (512, 16, "none", False))
    for model in ("Llama-3.2-1B", "Llama-3.1-8B", "SmolLM2-135M", "Llama-3.2-3B"):
        for method, shape in itertools.product(METHODS, shapes):
            yield Case(model, method, *shape)


def full_grid():
    yield from quick_grid()
    tokens = ((512, 1), (512, 16), (1024, 8), (2048, 1), (2048, 4), (2048, 16), (4096, 2),
              (8192, 1), (8192, 4), (16384, 1))
    models = [name for name in MODELS if name != "tiny"]
    for model, method, recompute, compiled, (sequence, batch) in itertools.product(
            models, METHODS, ("none", "full"), (False, True), tokens):
        yield Case(model, method, sequence, batch, recompute, compiled)


def tiny_grid():
    for method in METHODS:
        yield Case("tiny", method, 32, 2, "none")
        yield Case("tiny", method, 32, 2, "full")


# One case, in a process of its own.


def build_model(case, device):
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    layers, hidden, heads, kv_heads, ffn, vocab, tied = MODELS[case.model]
    config = LlamaConfig(
        num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads,
        num_key_value_heads=kv_heads, intermediate_size=ffn, vocab_size=vocab,
        tie_word_embeddings=tied, max_position_embeddings=max(2048, case.sequence), use_cache=False)
    dtype = torch.float32 if case.method == "full-mixed" else torch.bfloat16
    with torch.device(device):
        try:
            model = AutoModelForCausalLM.from_config(
                config, dtype=dtype, attn_implementation="sdpa")
        except TypeError:  # transformers 4
            model = AutoModelForCausalLM.from_config(
                config, torch_dtype=dtype, attn_implementation="sdpa")
    if case.recompute == "full":
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False})
    if case.method == "lora":
        from peft import LoraConfig, get_peft_model
        if case.recompute == "full":
            model.enable_input_require_grads()
        model = get_peft_model(model, LoraConfig(
            r=LORA_RANK, lora_alpha=2 * LORA_RANK, lora_dropout=0.0, target_modules="all-linear",
            task_type="CAUSAL_LM"))
    return model.train()


class Stopwatch:
    """Marks between steps: CUDA events on a GPU, the host's clock on a CPU."""

    def __init__(self, device):
        self.on_gpu = device == "cuda"
        self.marks = []

    def mark(self):
        if not self.on_gpu:
            self.marks.append(time.perf_counter())
            return
        import torch
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self.marks.append(event)

    def seconds(self):
        pairs = zip(self.marks, self.marks[1:])
        if not self.on_gpu:
            return [b - a for a, b in pairs]
        import torch
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e-3 for a, b in pairs]


def train(case, device):
    """The median step and the counts of parameters."""
    import torch

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = build_model(case, device)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=1e-5, fused=device == "cuda")
    forward = torch.compile(model) if case.compile else model
    vocab = MODELS[case.model][5]
    ids = torch.randint(0, vocab, (case.batch, case.sequence), device=device)
    mixed = case.method != "full-bf16"

    def step():
        with torch.autocast(device, dtype=torch.bfloat16, enabled=mixed):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(8 if case.compile else 4):
        step()
    watch = Stopwatch(device)
    watch.mark()
    for _ in range(STEPS if device == "cuda" else 3):
        step()
        watch.mark()
    times = watch.seconds()
    return {"step_time_s": statistics.median(times),
            "step_time_spread": (max(times) - min(times)) / statistics.median(times),
            "trainable_params": sum(p.numel() for p in trainable),
            "total_params": sum(p.numel() for p in model.parameters())}


def memory_figures():
    """By kind, in GiB; of the device as nvidia-smi shows it, or CUDA where that is missing."""
    import torch

    figures = {"torch-allocated": torch.cuda.max_memory_allocated(),
               "torch-reserved": torch.cuda.max_memory_reserved()}
    # The same GPU by its bus: nvidia-smi counts all GPUs, PyTorch those it was shown.
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    if uuid is not None:
        query.append(f"--id=GPU-{uuid}")
    try:
        shown = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout
        figures["nvidia-smi"] = int(shown.split()[0]) * 2**20
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        free, total = torch.cuda.mem_get_info()
        figures["device, as cudaMemGetInfo tells it"] = total - free
    return {kind: size / 2**30 for kind, size in figures.items()}


def run_one(case, device):
    import torch

    try:
        told = train(case, device)
    except torch.OutOfMemoryError:
        return {"outcome": "oom"}
    told["outcome"] = "ran"
    if device == "cuda":
        told["memory_gib"] = memory_figures()
    return told


# The parent: cases, records, the file.


def versions():
    from importlib.metadata import PackageNotFoundError, version
    told = []
    for package in ("torch", "transformers", "peft"):
        try:
            told.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            pass
    return ", ".join(told)


def gpu_name():
    """In a process of its own: the parent must not hold memory of the GPU."""
    ask = "import torch; print(torch.cuda.get_device_name(0))"
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None


def base_record(case, gpu, told):
    layers, hidden, heads, kv_heads, ffn, vocab, tied = MODELS[case.model]
    training = {
        "method": "lora" if case.method == "lora" else "full", "seq_len": case.sequence,
        "micro_batch": case.batch, "global_batch": case.batch, "precision": METHODS[case.method],
        "optimizer": "adamw", "fused_optimizer": True, "recompute": case.recompute,
        "flash_attention": True, "compile": case.compile, "dropout": False,
        "framework": "transformers 5 trainer",
        "framework_note": "a plain loop with the Trainer's defaults; " + versions()}
    if case.method == "lora":
        training.update(lora_rank=LORA_RANK, lora_targets="all-linear")
    if "trainable_params" in told:
        training["trainable_params"] = told["trainable_params"]
    return {
        "source": {"file": "calibrate/measure_training.py",
                   "where": f"measured {datetime.date.today().isoformat()}, {versions()}"},
        "model": {"name": case.model, "layers": layers, "hidden": hidden, "heads": heads,
                  "kv_heads": kv_heads, "head_dim": hidden // heads, "ffn": ffn, "vocab": vocab,
                  "gated_mlp": True, "tied_embeddings": tied},
        "hardware": {"gpu": gpu, "gpus": 1, "gpus_per_node": 1},
        "training": training,
        "plan": {"dp": 1, "tp": 1, "sp": False, "pp": 1, "cp": 1, "ep": 1, "zero": 0,
                 "offload": "none"}}


def records_of(case, gpu, told):
    """The first record has the time; every kind of memory has a record of its own."""
    name = f"{gpu.lower().replace(' ', '-')}-{case.name}"
    base = base_record(case, gpu, told)
    kinds = list(told.get("memory_gib", {}).items()) or [(None, None)]
    for number, (kind, gib) in enumerate(kinds):
        measured = {"outcome": told["outcome"]}
        if number == 0 and "step_time_s" in told:
            measured.update(step_time_s=told["step_time_s"],
                            step_time_spread=told["step_time_spread"])
        if kind is not None:
            measured.update(peak_mem_gib=round(gib, 4), mem_kind=kind, mem_unit_as_published="GiB")
        suffix = "" if number == 0 else "-" + kind.split(",")[0]
        yield {"id": name + suffix, **base, "measured": measured}


def save(path, records):
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(records, indent=1) + "\n")
    part.replace(path)


def in_a_process(case, device):
    """What the case told; a crash is no record, but is said."""
    command = [sys.executable, __file__, "--one", json.dumps(dataclasses.asdict(case)),
               "--device", device]
    ran = subprocess.run(command, capture_output=True, text=True)
    lines = ran.stdout.strip().splitlines()
    if ran.returncode == 0 and lines:
        return json.loads(lines[-1])
    last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
    # What the CUDA libraries allocate for themselves fails in their own words.
    if "out of memory" in last.lower() or "ALLOC_FAILED" in last:
        return {"outcome": "oom"}
    return {"outcome": "failed", "why": last}


def measure(cases, path, gpu, device, deadline, records):
    known = {record["id"]: record["measured"]["outcome"] for record in records}
    too_large = []
    for number, case in enumerate(cases, 1):
        first = f"{gpu.lower().replace(' ', '-')}-{case.name}"
        where = f"{number} of {len(cases)}: {case.name}"
        if known.get(first) == "oom":
            too_large.append(case)
        if first in known or any(case.at_least_as_large(other) for other in too_large):
            continue
        if time.monotonic() > deadline:
            print(f"time is up before {where}; --resume goes on", file=sys.stderr)
            return
        told = in_a_process(case, device)
        if told["outcome"] == "failed":
            print(f"{where}: failed, not recorded: {told['why']}", file=sys.stderr)
            continue
        if told["outcome"] == "oom":
            too_large.append(case)
        records.extend(records_of(case, gpu, told))
        save(path, records)
        step = f", {told['step_time_s']:.4f} s a step" if "step_time_s" in told else ""
        print(f"{where}: {told['outcome']}{step}", file=sys.stderr)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("training_runs.json"))
    parser.add_argument("--full", action="store_true", help="the whole grid: many hours")
    parser.add_argument("--minutes", type=float, default=60, help="no case begins after so many")
    parser.add_argument("--resume", action="store_true", help="go on with the output file")
    parser.add_argument("--dry-run", action="store_true", help="list the cases")
    parser.add_argument("--tiny", action="store_true", help="tiny models on the CPU")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    asked = options()
    if asked.one:
        print(json.dumps(run_one(Case(**json.loads(asked.one)), asked.device)))
        return 0
    grid = tiny_grid() if asked.tiny else full_grid() if asked.full else quick_grid()
    cases = list(dict.fromkeys(grid))
    if asked.dry_run:
        for case in cases:
            print(case.name)
        return 0
    device = "cpu" if asked.tiny else "cuda"
    gpu = "CPU" if asked.tiny else gpu_name()
    if gpu is None:
        print("measure_training.py: error: PyTorch sees no GPU here (--tiny runs on the CPU)",
              file=sys.stderr)
        return 4
    if asked.output.exists() and not asked.resume:
        print(f"measure_training.py: error: {asked.output} exists: --resume goes on with it",
              file=sys.stderr)
        return 2
    records = json.loads(asked.output.read_text()) if asked.output.exists() else []
    measure(cases, asked.output, gpu, device, time.monotonic() + 60 * asked.minutes, records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
