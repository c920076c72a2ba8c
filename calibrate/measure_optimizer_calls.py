#!/usr/bin/env python3
"""CPU time of PyTorch's clip_grad_norm_, AdamW.step and zero_grad for one tensor, in operators.

    python measure_optimizer_calls.py [--tensors 300] [--repetitions 60] [--dtensors]

Times clipping by the norm, a step of AdamW (foreach, which it takes on a GPU) and zeroing of the
gradients over many small tensors, without what runs inside the foreach operators themselves, and
beside it forward and backward of two small layers of Llama, whose operators are counted. One line of
JSON tells microseconds per tensor, microseconds per operator, and what a tensor takes in operators:
a ratio of two times of one machine, of which neither its speed nor what else runs on it is a part.
The least of all repetitions counts. What foreach operators do for each tensor in C++ is left out.
With --dtensors the weights are also made DTensors over this process alone, as FSDP2 shards them, and
the line tells what that adds: PyTorch dispatches every operator on them in Python, so both are timed
with what runs inside.

Needs torch, transformers and peft; nothing in shardwise's tests runs it.
"""
import argparse
import json
import time

import torch

from count_layer_operators import llama, passes


def least(function, repetitions):
    best = float("inf")
    for _ in range(repetitions):
        best = min(best, function())
    return best


def seconds_per_operator(repetitions):
    """CPU seconds of one operator of a small Llama, forward and backward."""
    tokens, hidden = 4, 64
    forward, model = llama(torch.bfloat16, layers=2, hidden=hidden, ffn=128, heads=4, tokens=tokens)
    x = torch.randn(1, tokens, hidden, dtype=torch.bfloat16, requires_grad=True)
    operators = sum(count.operators() for count in passes(forward, x, False))

    def once():
        model.zero_grad()
        begin = time.process_time()
        y = forward(x * 1)
        y.backward(torch.ones_like(y))
        return time.process_time() - begin

    return least(once, repetitions) / operators


def seconds_per_tensor(tensors, repetitions):
    inside = [0.0]

    def timed(function):
        def call(*args, **kwargs):
            begin = time.process_time()
            result = function(*args, **kwargs)
            inside[0] += time.process_time() - begin
            return result
        return call

    for name in dir(torch):
        if name.startswith("_foreach_"):
            setattr(torch, name, timed(getattr(torch, name)))
    weights = [torch.nn.Parameter(torch.randn(4, 4)) for _ in range(tensors)]
    adamw = torch.optim.AdamW(weights, lr=1e-3, foreach=True)

    def once():
        for w in weights:
            w.grad = torch.ones_like(w)
        inside[0] = 0.0
        begin = time.process_time()
        torch.nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
        adamw.step()
        adamw.zero_grad()
        return time.process_time() - begin - inside[0]

    return least(once, repetitions) / tensors


def seconds_as(make, tensors, repetitions):
    """CPU seconds for a tensor that `make` gives, with what foreach operators do for each."""
    weights = [torch.nn.Parameter(make()) for _ in range(tensors)]
    adamw = torch.optim.AdamW(weights, lr=1e-3, foreach=True)

    def once():
        for w in weights:
            w.grad = torch.ones_like(w)
        begin = time.process_time()
        torch.nn.utils.clip_grad_norm_(weights, 1.0, foreach=True)
        adamw.step()
        adamw.zero_grad()
        return time.process_time() - begin

    once()
    return least(once, repetitions) / tensors


def seconds_more_as_dtensors(tensors, repetitions):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    mesh = init_device_mesh("cpu", (1,))
    plain = seconds_as(lambda: torch.randn(4, 4), tensors, repetitions)
    sharded = seconds_as(lambda: distribute_tensor(torch.randn(4, 4), mesh, [Shard(0)]), tensors,
                         repetitions)
    dist.destroy_process_group()
    return sharded - plain


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", type=int, default=300)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--dtensors", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    operator = seconds_per_operator(args.repetitions)
    if args.dtensors:
        more = seconds_more_as_dtensors(args.tensors, args.repetitions)
        print(json.dumps({"more_us_per_dtensor": round(1e6 * more, 1),
                          "more_operators_per_dtensor": round(more / operator, 2)}))
    tensor = seconds_per_tensor(args.tensors, args.repetitions)
    print(json.dumps({"us_per_tensor": round(1e6 * tensor, 1), "us_per_operator": round(1e6 * operator, 1),
                      "operators_per_tensor": round(tensor / operator, 2), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
