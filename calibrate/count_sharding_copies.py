#!/usr/bin/env python3
"""Counts what PyTorch's fully sharded data parallelism copies around a unit, FSDP2 and FSDP1.

    python count_sharding_copies.py [--ranks 8]

A stack of blocks of nine matrices in 16 bits, gradients reduced in fp32, goes through forward and
backward as it is and with every block a unit. One line of JSON for each engine and pass tells by
operator the bytes of each parameter that it reads and writes more than the model as it is, those of
whole units only: operators on a rank's shard are left out. PyTorch's process group that sends
nothing stands for all ranks, so no GPU is needed. Run with torch 2.15.0 on a CPU:

FSDP2 copies what was gathered out into its parameters, 2 bytes read and 2 written for each, and
gradients into one buffer in the format in which they are reduced, 2 read and 4 written, both on the
stream that computes (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py,
foreach_all_gather_copy_out and foreach_reduce_scatter_copy_in). FSDP1's parameters are views of what
was gathered; what autograd makes of their gradients is joined by one operator, 2 bytes read and 2
written, and its post-backward stream widens it.
"""
import argparse
import json
import os

import torch

from count_layer_operators import Count, tensors
from measure_fsdp_hooks import block, sharded

WIDTH, PARAMETERS, LAYERS = 64, 9, 4


class CountWithOutputs(Count):
    """Also operators that write into what they are given and return nothing."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        outputs = tensors((kwargs or {}).get("out"))
        result = super().__torch_dispatch__(function, types, args, kwargs)
        if result is None and outputs:
            row = self.by_name.setdefault(str(function).split(".")[1], [0, 0])
            row[0] += 1
            row[1] += sum(t.numel() * t.element_size() for t in tensors(args) + outputs)
        return result


def passes(engine, ranks):
    """Bytes by operator of a forward and of a backward pass, once what is set up once is."""
    blocks = [block(torch, PARAMETERS) for _ in range(LAYERS)]
    model = sharded(torch, engine, blocks, ranks)
    x = torch.randn(4, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    for _ in range(2):
        for p in model.parameters():
            p.grad = None
        with CountWithOutputs() as there:
            loss = model(x).sum()
        with CountWithOutputs() as back:
            loss.backward()
    return there.by_name, back.by_name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    args = parser.parse_args()
    from torch.testing._internal.distributed.fake_pg import FakeStore
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513")
    torch.distributed.init_process_group("fake", rank=0, world_size=args.ranks, store=FakeStore())
    parameters = LAYERS * PARAMETERS * WIDTH * WIDTH
    plain = passes("plain", args.ranks)
    for engine in ("fsdp2", "fsdp1"):
        for name, counted, without in zip(("forward", "backward"), passes(engine, args.ranks), plain):
            more = {op: (n - without.get(op, (0, 0))[0],
                         (moved - without.get(op, (0, 0))[1]) / parameters)
                    for op, (n, moved) in counted.items()}
            print(json.dumps({"engine": engine, "pass": name, "bytes_per_parameter": {
                op: round(moved, 2) for op, (n, moved) in more.items() if moved > 1.0}}))


if __name__ == "__main__":
    main()
