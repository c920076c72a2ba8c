#!/usr/bin/env python3
"""CPU time of PyTorch's fully sharded data parallelism around one unit, FSDP2 and FSDP1.

    python measure_fsdp_hooks.py [--layers 24] [--steps 60] [--ranks 8]

A stack of blocks so narrow that their arithmetic is nothing goes through forward and backward as it
is, with every block a unit of FSDP2 (fully_shard), and with every block a unit of FSDP1
(FullyShardedDataParallel). One line of JSON in microseconds tells what a unit takes more than
nothing at all, in a forward and in a backward pass, for blocks of nine parameters (those of a
decoder layer), of two (what FSDP2 does for every parameter is the difference) and of one (a factor
of an adapter that is a unit of its own). Runs on the CPU with PyTorch's process group that sends
nothing; the least of all repetitions counts. On a GPU both also switch streams and record events,
so the figures are lower bounds there.

Needs torch; nothing in shardwise's tests runs it.
"""
import argparse
import json
import os
import subprocess
import sys
import time

WIDTH = 64


def block(torch, parameters):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterList(
                torch.nn.Parameter(torch.randn(WIDTH, WIDTH)) for _ in range(parameters))

        def forward(self, x):
            for w in self.weights:
                x = x @ w
            return x

    return Block()


def sharded(torch, engine, blocks, ranks):
    """The blocks in a row in 16 bits: as they are ("plain"), or each a unit ("fsdp2", "fsdp1")."""
    if engine == "plain":
        return torch.nn.Sequential(*blocks).to(torch.bfloat16)
    if engine == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        mesh = init_device_mesh("cpu", (ranks,))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for b in blocks:
            fully_shard(b, mesh=mesh, mp_policy=policy)
        model = torch.nn.Sequential(*blocks)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        return model
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    policy = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    wrap = lambda m: FullyShardedDataParallel(m, mixed_precision=policy, use_orig_params=True,
                                              device_id=torch.device("cpu"))
    return wrap(torch.nn.Sequential(*[wrap(b) for b in blocks]))


def seconds_per_unit(engine, parameters, layers, steps, ranks):
    """Least CPU seconds of one unit's forward and backward, as a pair."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", RANK="0", LOCAL_RANK="0",
                      WORLD_SIZE=str(ranks))
    import torch

    torch.set_num_threads(1)
    blocks = [block(torch, parameters) for _ in range(layers)]
    if engine != "plain":
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    model = sharded(torch, engine, blocks, ranks)
    dtype = torch.bfloat16
    x = torch.randn(4, WIDTH, dtype=dtype, requires_grad=True)
    forward = backward = float("inf")
    for _ in range(steps):
        begin = time.process_time()
        loss = model(x).sum()
        middle = time.process_time()
        loss.backward()
        end = time.process_time()
        for p in model.parameters():
            p.grad = None
        forward, backward = min(forward, middle - begin), min(backward, end - middle)
    return forward / layers, backward / layers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--engine", choices=["plain", "fsdp2", "fsdp1"], help=argparse.SUPPRESS)
    parser.add_argument("--parameters", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        print("RESULT", *seconds_per_unit(args.engine, args.parameters, args.layers, args.steps,
                                          args.ranks))
        return
    answer = {"layers": args.layers, "ranks": args.ranks}
    for parameters in (9, 2, 1):
        times = {}
        for engine in ("plain", "fsdp2", "fsdp1"):
            out = subprocess.run(
                [sys.executable, __file__, "--engine", engine, "--parameters", str(parameters),
                 "--layers", str(args.layers), "--steps", str(args.steps), "--ranks",
                 str(args.ranks)], capture_output=True, text=True)
            lines = [l for l in out.stdout.splitlines() if l.startswith("RESULT")]
            if not lines:
                sys.exit(f"{engine}: {out.stderr.strip().splitlines()[-1:]}")
            times[engine] = [float(v) for v in lines[0].split()[1:]]
        for engine in ("fsdp2", "fsdp1"):
            answer[f"{engine}, {parameters} parameters"] = {
                name: round(1e6 * (times[engine][i] - times["plain"][i]), 1)
                for i, name in enumerate(("forward_us", "backward_us"))}
        answer[f"plain, {parameters} parameters"] = {
            name: round(1e6 * times["plain"][i], 1) for i, name in enumerate(("forward_us", "backward_us"))}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
