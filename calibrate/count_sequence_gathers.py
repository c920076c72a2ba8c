#!/usr/bin/env python3
"""Counts what autograd keeps of a block whose DTensors are cut along the sequence.

The block is a norm and a SwiGLU with a residual connection, parallelised as torchtitan does it
(SequenceParallel, PrepareModuleInput, ColwiseParallel, RowwiseParallel), on one of two ranks whose
collectives do nothing. What is printed are tensors [tokens, hidden] of 16 bits, whole ones: where
backward gathered again, the input of gate and up would count half. Frameworks of catalog/frameworks
with `regathers_sequence` false rest on it.

Needs torch (run with 2.15.0 on a CPU); no GPU:
    python3 calibrate/count_sequence_gathers.py
"""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module)
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS, BATCH, SEQUENCE, HIDDEN, WIDTH = 2, 3, 64, 256, 704
WHOLE = BATCH * SEQUENCE * HIDDEN * 2


class SwiGlu(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(HIDDEN, WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDTH, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.RMSNorm(HIDDEN), SwiGlu()

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def kept(compiled, mesh):
    block = Block().bfloat16()
    parallelize_module(block, mesh, {
        "norm": SequenceParallel(),
        "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "mlp.gate": ColwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})
    weights = {p.to_local().untyped_storage()._cdata for p in block.parameters()}
    share = torch.randn(BATCH, SEQUENCE // RANKS, HIDDEN, dtype=torch.bfloat16)
    x = DTensor.from_local(share, mesh, [Shard(1)]).requires_grad_()
    run = torch.compile(block, backend="aot_eager_decomp_partition") if compiled else block
    found, alive = {}, []

    def pack(tensor):
        local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        storage = local.untyped_storage()
        if storage._cdata not in weights:
            found[storage._cdata] = (storage.nbytes(), tuple(local.shape))
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        run(x)
    return list(found.values())


dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
group = init_device_mesh("cpu", (RANKS,))
for compiled in (False, True):
    tensors = kept(compiled, group)
    print("compiled" if compiled else "eager",
          f"{sum(size for size, _ in tensors) / WHOLE:.3f} whole tensors:")
    for size, shape in tensors:
        print(f"  {size / WHOLE:.3f} {shape}")
