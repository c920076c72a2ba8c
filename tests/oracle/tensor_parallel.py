"""Megatron-style tensor parallelism of Llama-like models by torch's parallelize_module.

The plan is the one of PyTorch's tutorial and of torchtitan (models/llama3/infra/parallelize.py):
columns for q, k, v, gate and up, rows for o and down, the vocabulary of embedding and head cut
over the ranks, and with sequence parallelism norms and residuals cut along the sequence.
"""
import sys

from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel,
    parallelize_module)

import sharding


def block_plan(sequence):
    out = Shard(1) if sequence else Replicate()
    plan = {f"self_attn.{p}_proj": ColwiseParallel() for p in "qkv"}
    plan["self_attn.o_proj"] = RowwiseParallel(output_layouts=out)
    plan["mlp.gate_proj"] = plan["mlp.up_proj"] = ColwiseParallel()
    plan["mlp.down_proj"] = RowwiseParallel(output_layouts=out)
    if sequence:
        plan["input_layernorm"] = plan["post_attention_layernorm"] = SequenceParallel()
        plan["self_attn"] = PrepareModuleInput(
            input_kwarg_layouts={"hidden_states": Shard(1)},
            desired_input_kwarg_layouts={"hidden_states": Replicate()})
        plan["mlp"] = PrepareModuleInput(
            input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    return plan


def apply(case, run):
    mesh = sharding.mesh(case)["tp"]
    sequence = case.sequence_parallel
    plan = {
        "model.embed_tokens": RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1) if sequence else Replicate()),
        "lm_head": ColwiseParallel(
            input_layouts=Shard(1) if sequence else Replicate(), output_layouts=Shard(-1),
            use_local_output=False),
    }
    if sequence:
        plan["model.norm"] = SequenceParallel()
    parallelize_module(run.model, mesh, plan)
    for block in sharding.blocks(run.model):
        parallelize_module(block, mesh, block_plan(sequence))
    run.loss_context = loss_parallel
    # Without padding there is no mask; the model would build one for the sequence that it sees cut.
    module = sys.modules[type(run.model).__module__]
    module.create_causal_mask = lambda *args, **kwargs: None
