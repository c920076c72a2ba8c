#include "planner/launch/fsdp2_script.hpp"

namespace shardwise {
namespace {

constexpr std::string_view whole_script = R"python(#!/usr/bin/env python3
"""Trains a causal language model with FSDP2 as fsdp2.json says (written by shardwise launch)."""
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from transformers import AutoConfig, AutoModelForCausalLM


def blocks_of(model):
    """The longest list of modules: the transformer blocks."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len)


def shard(model, mesh_sizes, settings, recompute, device):
    names = ("replicate", "shard") if mesh_sizes["replicate"] > 1 else ("shard",)
    mesh = init_device_mesh(device, [mesh_sizes[n] for n in names], mesh_dim_names=names)
    policy = {
        "mesh": mesh,
        "reshard_after_forward": settings["reshard_after_forward"],
        "mp_policy": MixedPrecisionPolicy(
            param_dtype=getattr(torch, settings["param_dtype"]),
            reduce_dtype=getattr(torch, settings["reduce_dtype"]),
        ),
    }
    if settings["cpu_offload"]:
        policy["offload_policy"] = CPUOffloadPolicy()
    blocks = blocks_of(model)
    for i, block in enumerate(blocks):
        if recompute:
            blocks[i] = block = checkpoint_wrapper(block)
        fully_shard(block, **policy)
    return fully_shard(model, **policy)


def batches(vocabulary, rows, sequence, device):
    """Put your data here: tokens of shape [rows, sequence]."""
    while True:
        yield torch.randint(vocabulary, (rows, sequence), device=device)


def main():
    settings = json.loads(Path(__file__).with_name("fsdp2.json").read_text())
    training = settings["training"]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(training["model"])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model = shard(model, settings["mesh"], settings["fully_shard"],
                  training["recompute_blocks"], device)
    # Random weights, as large as the real ones: load yours into the shards here.
    model.to_empty(device="cpu" if settings["fully_shard"]["cpu_offload"] else device)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.02)
    for module in model.modules():
        if hasattr(module, "inv_freq"):  # rotary tables are buffers and were empty as well
            module.inv_freq = module.rope_init_fn(config, torch.device(device))[0] if hasattr(
                module, "rope_init_fn") else module.inv_freq.zero_()
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.get("learning_rate", 1e-4))
    data = batches(config.vocab_size, training["microbatch"], training["sequence"], device)
    for step in range(training["steps"]):
        begun = time.perf_counter()
        for _ in range(training["accumulation"]):
            tokens = next(data)
            logits = model(tokens, use_cache=False).logits[:, :-1].float()
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            (loss / training["accumulation"]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        if dist.get_rank() == 0:
            peak = torch.cuda.max_memory_reserved() / 2**30 if device == "cuda" else 0.0
            print(f"step {step}: loss {loss.item():.3f}, {time.perf_counter() - begun:.3f} s, "
                  f"{peak:.2f} GiB reserved at most", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
)python";

}  // namespace

std::string_view fsdp2_script() { return whole_script; }

}  // namespace shardwise
