#!/usr/bin/env python3
"""CPU time of PyTorch's tensor parallelism (DTensor) in a decoder layer, beside its operators.

    python measure_tensor_parallel.py [--layers 8] [--steps 40] [--ranks 8]

Llama blocks so narrow that their arithmetic is nothing go through forward and backward as they are;
with parallelize_module's plan for such a block: sequence-parallel norms, inputs of attention and MLP
gathered, columns and rows of the linears cut; and with these alone, the stream whole on every rank
("without_sequence"). One line of JSON tells, in operators of the plain block on the same core, what
a layer takes more, forward and backward. Runs on the CPU with PyTorch's process group that sends
nothing, so that the collectives' own calls are in it and waiting for them is not; the least of all
repetitions counts.

Needs torch; nothing in shardwise's tests runs it.
"""
import argparse
import json
import os
import subprocess
import sys
import time

WIDTH, HEADS, TOKENS = 128, 8, 16


def block(torch, heads):
    from torch import nn
    from torch.nn import functional as F

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False)
                                                  for _ in range(4))

        def forward(self, x, angles):
            batch, tokens, _ = x.shape
            q, k, v = (w(x).view(batch, tokens, heads, -1) for w in (self.wq, self.wk, self.wv))
            q, k = (torch.view_as_real(torch.view_as_complex(
                t.float().reshape(*t.shape[:-1], -1, 2)) * angles).flatten(3).type_as(t)
                for t in (q, k))
            out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2),
                                                 v.transpose(1, 2), is_causal=True)
            return self.wo(out.transpose(1, 2).contiguous().view(batch, tokens, -1))

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.w1, self.w2, self.w3 = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))

        def forward(self, x):
            return self.w2(F.silu(self.w1(x)) * self.w3(x))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.feed_forward = Attention(), FeedForward()
            self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

        def forward(self, x, angles):
            x = x + self.attention(self.attention_norm(x), angles)
            return x + self.feed_forward(self.ffn_norm(x))

    return Block()


def parallelize(torch, blocks, ranks, sequence):
    from torch.distributed._tensor import Replicate, Shard
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput,
                                                   RowwiseParallel, SequenceParallel,
                                                   parallelize_module)
    mesh = init_device_mesh("cpu", (ranks,))
    for b in blocks:
        plan = {
            "attention_norm": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=(Shard(1), None),
                                            desired_input_layouts=(Replicate(), None)),
            "attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(),
            "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
            "ffn_norm": SequenceParallel(),
            "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),),
                                               desired_input_layouts=(Replicate(),)),
            "feed_forward.w1": ColwiseParallel(), "feed_forward.w3": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
        }
        if not sequence:
            plan = {name: ColwiseParallel() if name[-2:] in ("wq", "wk", "wv", "w1", "w3")
                    else RowwiseParallel() for name in plan if "." in name}
        parallelize_module(b, mesh, plan)


def operators_of(torch, model, run):
    """Operators of one forward and one backward pass that are no views."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.n = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            name = str(function).split(".")[1]
            self.n += name not in ("view", "transpose", "t", "_unsafe_view", "detach", "expand",
                                   "view_as_real", "view_as_complex", "alias", "unsqueeze")
            return result

    with Count() as forward:
        out = run(model)
    with Count() as backward:
        out.sum().backward()
    return forward.n, backward.n


def measure(kind, layers, steps, ranks):
    parallel = kind != "plain"
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513", RANK="0", LOCAL_RANK="0",
                      WORLD_SIZE=str(ranks))
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    blocks = torch.nn.ModuleList(block(torch, HEADS // ranks if parallel else HEADS)
                                 for _ in range(layers))
    if parallel:
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
        parallelize(torch, blocks, ranks, kind == "parallel")
    x = torch.randn(1, TOKENS // (ranks if kind == "parallel" else 1), WIDTH, requires_grad=True)
    angles = torch.polar(torch.ones(TOKENS, 1, WIDTH // HEADS // 2),
                         torch.randn(TOKENS, 1, WIDTH // HEADS // 2))

    def run(model):
        h = x
        for b in model:
            h = b(h, angles)
        return h

    forward, backward = [], []
    for _ in range(steps):
        begin = time.perf_counter()
        out = run(blocks)
        middle = time.perf_counter()
        loss = out.to_local().sum() if hasattr(out, "to_local") else out.sum()
        turn = time.perf_counter()
        loss.backward()
        forward.append(middle - begin)
        backward.append(time.perf_counter() - turn)
        for p in blocks.parameters():
            p.grad = None
    counted = (0, 0) if parallel else operators_of(torch, blocks, run)
    print(json.dumps([min(forward) / layers, min(backward) / layers,
                      counted[0] / layers, counted[1] / layers, torch.__version__]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--only", choices=["plain", "parallel", "linears"])
    a = parser.parse_args()
    if a.only:
        return measure(a.only, a.layers, a.steps, a.ranks)

    def of(kind):
        return json.loads(subprocess.run(
            [sys.executable, __file__, "--only", kind, "--layers", str(a.layers), "--steps",
             str(a.steps), "--ranks", str(a.ranks)], check=True, stdout=subprocess.PIPE).stdout)

    plain, parallel, linears = of("plain"), of("parallel"), of("linears")
    operator = (plain[0] + plain[1]) / (plain[2] + plain[3])
    print(json.dumps({
        "torch": plain[4], "operators": plain[2:4],
        "plain_us": [round(1e6 * t, 1) for t in plain[:2]],
        "parallel_us": [round(1e6 * t, 1) for t in parallel[:2]],
        "operator_us": round(1e6 * operator, 2),
        "more_in_operators": [round((parallel[i] - plain[i]) / operator, 1) for i in range(2)],
        "without_sequence": [round((linears[i] - plain[i]) / operator, 1) for i in range(2)]}))


if __name__ == "__main__":
    main()
