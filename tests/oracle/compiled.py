#!/usr/bin/env python3
"""What torch.compile keeps of one decoder block from forward to backward, in bytes per token.

    python compiled.py [--hidden 512] [--kv-heads 2] [--ffn 1792]

A Llama block in bf16, keys and values repeated for all heads as torchtitan does, goes through
AOTAutograd with Inductor's decompositions and its partitioner
(min_cut_rematerialization_partition); what the compiled forward returns beside its result, and
the block's own input, is what backward keeps. Printed as one line of JSON, with the bytes per
token that shardwise counts: 2 (8h + 3f) and 4 for each head; the rotary angles and the norms'
statistics are beside them. Runs on the CPU; sizes of one
proportion give one answer, since the partitioner compares sizes only.
"""
import argparse
import json

import torch
from torch import nn
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch.nn import functional

BATCH, SEQUENCE, HEAD = 2, 256, 64


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (wide * scale).type_as(x) * self.weight


def rotated(x, angles):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles[None, :, None, :]).flatten(3).type_as(x)


def repeated(x, times):
    b, s, heads, d = x.shape
    return x[:, :, :, None, :].expand(b, s, heads, times, d).reshape(b, s, heads * times, d)


class Block(nn.Module):
    def __init__(self, hidden, kv_heads, ffn):
        super().__init__()
        self.heads, self.kv_heads = hidden // HEAD, kv_heads
        self.norms = nn.ModuleList(Norm(hidden) for _ in range(2))
        shapes = dict(q=(hidden, hidden), k=(hidden, kv_heads * HEAD), v=(hidden, kv_heads * HEAD),
                      o=(hidden, hidden), gate=(hidden, ffn), up=(hidden, ffn), down=(ffn, hidden))
        self.linears = nn.ModuleDict({n: nn.Linear(*s, bias=False) for n, s in shapes.items()})

    def attend(self, x, angles):
        q, k, v = (self.linears[n](x).view(BATCH, SEQUENCE, -1, HEAD) for n in "qkv")
        q, k = rotated(q, angles), rotated(k, angles)
        k, v = (repeated(t, self.heads // self.kv_heads) for t in (k, v))
        out = functional.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        return self.linears["o"](out.transpose(1, 2).contiguous().view(BATCH, SEQUENCE, -1))

    def forward(self, x, angles):
        h = x + self.attend(self.norms[0](x), angles)
        y = self.norms[1](h)
        activated = functional.silu(self.linears["gate"](y)) * self.linears["up"](y)
        return h + self.linears["down"](activated)


def kept(graph):
    """Bytes per token of what the forward graph makes for backward; views of weights aside."""
    outputs = next(n for n in graph.graph.nodes if n.op == "output").args[0]
    made, total = set(), 0
    for node in outputs[1:]:
        value = node.meta.get("val") if hasattr(node, "meta") else None
        if not isinstance(value, torch.Tensor) or node.op == "placeholder":
            continue
        source = node
        while source.target in (torch.ops.aten.permute.default, torch.ops.aten.view.default,
                                torch.ops.aten.t.default, torch.ops.aten.alias.default,
                                torch.ops.aten.detach.default):
            source = source.args[0]
        # A weight's transpose is no copy; attention's result comes out twice, once as o's input.
        if source.op == "placeholder" or source in made:
            continue
        made.add(source)
        total += value.numel() * value.element_size()
    return total // (BATCH * SEQUENCE)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--ffn", type=int, default=1792)
    args = parser.parse_args()
    hidden, ffn, answer = args.hidden, args.ffn, {}

    def forward(graph, _):
        answer["made"] = kept(graph)
        return lambda *inputs: graph.forward(*inputs)

    def backend(module, inputs):
        from functorch.compile import make_boxed_func
        return aot_module_simplified(
            module, inputs, fw_compiler=lambda g, i: make_boxed_func(forward(g, i)),
            bw_compiler=lambda g, _: make_boxed_func(g.forward),
            decompositions=select_decomp_table(), partition_fn=min_cut_rematerialization_partition)

    block = Block(hidden, args.kv_heads, ffn).bfloat16()
    x = torch.randn(BATCH, SEQUENCE, hidden, dtype=torch.bfloat16, requires_grad=True)
    angles = torch.polar(torch.ones(SEQUENCE, HEAD // 2), torch.randn(SEQUENCE, HEAD // 2))
    torch.compile(block, backend=backend)(x, angles).sum().backward()
    counted = 2 * (8 * hidden + 3 * ffn) + 4 * (hidden // HEAD)
    print(json.dumps({"torch": torch.__version__, "hidden": hidden, "ffn": ffn,
                      "kept_bytes_per_token": answer["made"] + 2 * hidden,
                      "counted_bytes_per_token": counted}))


if __name__ == "__main__":
    main()
