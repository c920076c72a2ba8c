"""Which configurations the data file holds. Layers are cut where a model is deep: what a block
keeps does not depend on how many there are, and records name the number that was run."""
from itertools import product

from case import Case

# Model: (layers that are run, attention implementations that transformers offers for training)
MODELS = {
    "meta-llama/Llama-3.1-8B": (6, ("sdpa", "eager")),
    "meta-llama/Llama-2-7b-hf": (6, ("sdpa",)),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": (10, ("sdpa",)),
    "mistralai/Mistral-7B-v0.3": (6, ("sdpa", "eager")),
    "Qwen/Qwen2.5-7B-Instruct": (6, ("sdpa",)),
    "Qwen/Qwen2-0.5B": (10, ("sdpa",)),
    "Qwen/Qwen3-0.6B": (10, ("sdpa",)),
    "Qwen/Qwen3-8B": (6, ("sdpa", "eager")),
    "Qwen/Qwen3-30B-A3B": (4, ("sdpa",)),
    "mistralai/Mixtral-8x7B-v0.1": (3, ("sdpa",)),
    "google/gemma-2-2b": (10, ("eager",)),
    "google/gemma-3-1b-it": (10, ("sdpa",)),
    "google/gemma-2b": (10, ("sdpa",)),
    "google/gemma-4-E2B-it": (35, ("sdpa",)),
    "google/gemma-4-E4B-it": (42, ("sdpa",)),
    "microsoft/Phi-3-mini-4k-instruct": (12, ("sdpa",)),
    "microsoft/phi-2": (10, ("sdpa",)),
    "gpt2": (12, ("sdpa", "eager")),
    "facebook/opt-1.3b": (10, ("sdpa",)),
    "bigscience/bloom-560m": (10, ("eager",)),
    "allenai/OLMo-2-1124-7B": (6, ("sdpa",)),
    "bigcode/starcoder2-7b": (6, ("sdpa",)),
    "stabilityai/stablelm-2-1_6b": (10, ("sdpa",)),
    "EleutherAI/pythia-1.4b": (10, ("sdpa", "eager")),
    "tiiuae/falcon-7b": (6, ("sdpa",)),
    "mosaicml/mpt-7b": (6, ("eager",)),
    "EleutherAI/gpt-j-6b": (6, ("eager",)),
    "LiquidAI/LFM2-350M": (16, ("sdpa", "eager")),
    "LiquidAI/LFM2-8B-A1B": (6, ("sdpa",)),
    "ibm-granite/granite-4.0-h-tiny": (10, ("sdpa",)),
    "tiiuae/Falcon-H1-7B-Base": (4, ("sdpa", "eager")),
    "Qwen/Qwen3.5-27B": (4, ("sdpa",)),
    "deepseek-ai/DeepSeek-V3.2": (3, ("sdpa",)),
    "zai-org/GLM-5": (3, ("sdpa",)),
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": (5, ("sdpa",)),
    "google/gemma-3n-E4B-it": (35, ("sdpa",)),
    "ai21labs/Jamba-v0.1": (8, ("sdpa",)),
}
# Experts, which PEFT leaves out; Mamba layers, which it refuses (peft/tuners/tuners_utils.py).
NO_ADAPTERS = ("Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "LiquidAI/LFM2-8B-A1B",
               "ibm-granite/granite-4.0-h-tiny", "tiiuae/Falcon-H1-7B-Base", "ai21labs/Jamba-v0.1")
# Under autocast its norms make B and C fp32, which the scan does not take (mamba_ssm 2.3.2
# csrc/selective_scan/selective_scan.cpp: B is of the input's type); fake tensors let it pass.
UNMIXED = ("ai21labs/Jamba-v0.1",)
WIDE = ("meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.3", "Qwen/Qwen3-8B",
        "Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-2-7b-hf")
SHARDED = WIDE + ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "Qwen/Qwen3-0.6B", "gpt2",
                  "EleutherAI/pythia-1.4b", "google/gemma-2b", "facebook/opt-1.3b",
                  "microsoft/Phi-3-mini-4k-instruct", "allenai/OLMo-2-1124-7B",
                  "LiquidAI/LFM2-350M")


def case(model, sequence, **changes):
    layers, attention = MODELS[model]
    return Case(model, sequence, **({"layers": layers, "attention": attention[0]} | changes))


def families():
    """Every family, by number format, recomputation and method."""
    for model in MODELS:
        long = 2048 if model not in ("gpt2",) else 1024
        mixed = () if model in UNMIXED else ("bf16-mixed",)
        for precision in mixed + ("bf16-true", "fp32"):
            yield case(model, long, precision=precision)
        if mixed:
            yield case(model, long, recompute="full")
        yield case(model, long, recompute="full", precision="bf16-true", batch=2)
        if model not in NO_ADAPTERS:
            yield case(model, long, method="lora")
            yield case(model, long, method="lora", recompute="full", batch=2)
        for attention in MODELS[model][1][1:]:
            yield case(model, 1024, attention=attention)


def shapes():
    """Microbatch and sequence length."""
    models = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-0.6B", "EleutherAI/pythia-1.4b",
              "google/gemma-2b")
    for model, (batch, sequence) in product(models, ((1, 512), (4, 512), (1, 8192), (4, 2048))):
        if model != "EleutherAI/pythia-1.4b" or sequence <= 2048:
            yield case(model, sequence, batch=batch)
            yield case(model, sequence, batch=batch, precision="bf16-true", recompute="full")


def sharded():
    """FSDP2, with and without recomputation; whole models for some."""
    for model, ranks in product(SHARDED, (8, 64)):
        long = 4096 if model not in ("gpt2", "facebook/opt-1.3b", "EleutherAI/pythia-1.4b") else 1024
        for recompute in ("none", "full"):
            yield case(model, long, path="fsdp2", shards=ranks, recompute=recompute)
        yield case(model, long, path="fsdp2", shards=ranks, reduce="bf16", optimizer="adamw")
    for model, layers in (("meta-llama/Llama-3.1-8B", 32), ("Qwen/Qwen3-8B", 36),
                          ("codellama/CodeLlama-34b-Instruct-hf", 48)):
        yield Case(model, 4096, path="fsdp2", shards=32, recompute="full", layers=layers)
    for accumulate in (2, 4):
        yield case("meta-llama/Llama-3.1-8B", 2048, path="fsdp2", shards=8, accumulate=accumulate)


def delta_by_operators():
    """The gated delta rule as PyTorch's operators, in the ways of `families`."""
    model = "Qwen/Qwen3.5-27B"
    for sequence, changes in ((2048, {"precision": "bf16-true"}), (2048, {"precision": "fp32"}),
                              (2048, {}),
                              (2048, {"precision": "bf16-true", "recompute": "full", "batch": 2}),
                              (2048, {"method": "lora", "recompute": "full", "batch": 2}),
                              (1000, {"precision": "bf16-true"})):
        yield case(model, sequence, delta="operators", **changes)


def tensor_parallel():
    for model, tensor, sequence in product(WIDE, (2, 4), (False, True)):
        both = dict(path="fsdp2", tensor=tensor, sequence_parallel=sequence)
        yield case(model, 4096, precision="bf16-true", **both)
        yield case(model, 4096, shards=4, **both)
        yield case(model, 4096, shards=4, recompute="full", **both)


def optimizers():
    models = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-0.6B", "gpt2", "microsoft/phi-2")
    for model, optimizer in product(models, ("adamw", "sgd", "sgd_momentum", "adafactor")):
        for precision in ("bf16-mixed", "bf16-true"):
            yield case(model, 512, optimizer=optimizer, precision=precision)


def adapters():
    models = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen2-0.5B", "mistralai/Mistral-7B-v0.3")
    for model, rank, targets in product(models, (8, 64), ("all-linear", "q_proj,v_proj")):
        yield case(model, 1024, method="lora", rank=rank, targets=targets)
        yield case(model, 1024, method="lora", rank=rank, targets=targets, precision="bf16-true")


def wide_bases():
    """Adapters on fp32 weights: what autocast makes of those has no place in its cache."""
    models = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-0.6B")
    for model, recompute in product(models, ("none", "full")):
        yield case(model, 1024, method="lora", frozen="fp32", recompute=recompute)


def magnitudes():
    """DoRA: where autocast is on and where A and B are fp32 products, made again, with dropout."""
    for model in ("meta-llama/Llama-3.1-8B", "Qwen/Qwen2-0.5B"):
        yield case(model, 2048, method="dora")
        yield case(model, 2048, method="dora", precision="bf16-true")
        yield case(model, 2048, method="dora", recompute="full", batch=2)
        yield case(model, 2048, method="dora", adapter_dropout=0.05)


def accumulation():
    for model, precision in product(("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-0.6B", "gpt2"),
                                    ("bf16-mixed", "bf16-true")):
        yield case(model, 1024, accumulate=4, precision=precision)


def cases():
    parts = (families, shapes, optimizers, adapters, wide_bases, magnitudes, accumulation, sharded,
             tensor_parallel, delta_by_operators)
    seen = {}
    for part in parts:
        for c in part():
            seen.setdefault(c, None)
    return list(seen)
