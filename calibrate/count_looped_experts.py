#!/usr/bin/env python3
"""PyTorch operators of a mixture whose experts Python calls one after the other.

    python count_looped_experts.py MODELING_FILE

MODELING_FILE is models/mixtral/modeling_mixtral.py of transformers 4.x. Its MixtralSparseMoeBlock runs
forward and backward on small tensors, with eight experts and with sixteen: the difference is what
experts take, the rest what the layer takes. One line of JSON per pass: the operators that launch
a kernel, by name, and how often the CPU reads a result back. Of the layer's own the router's
products, aminmax (a check on the CPU only) and the last gradient (ones_like) are not its choice.

Needs torch; nothing in shardwise's tests runs it.
"""
import ast
import json
import sys
from types import SimpleNamespace

import torch
from torch import nn

from count_expert_operators import VIEWS
from torch.utils._python_dispatch import TorchDispatchMode

WIDTH, INNER, CHOSEN = 64, 8, 2
READS_BACK = {"nonzero", "_local_scalar_dense", "item"}


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.reads = 0
        self.names = {}

    def __torch_dispatch__(self, function, kinds, args=(), keywords=None):
        name = function._schema.name.split("::")[-1]
        result = function(*args, **(keywords or {}))
        if name in READS_BACK:
            self.reads += 1
        if name in VIEWS or name.startswith("empty"):
            return result
        self.names[name] = self.names.get(name, 0) + 1
        return result


def block_of(path):
    wanted = {"MixtralBlockSparseTop2MLP", "MixtralSparseMoeBlock"}
    tree = ast.parse(open(path).read())
    tree.body = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name in wanted]
    names = {"nn": nn, "torch": torch, "F": nn.functional, "ACT2FN": {"silu": nn.SiLU()},
             "MixtralConfig": object}
    exec(compile(tree, path, "exec"), names)
    return names["MixtralSparseMoeBlock"]


def counted(block, experts, tokens, trains):
    torch.manual_seed(0)
    config = SimpleNamespace(hidden_size=WIDTH, intermediate_size=INNER, num_local_experts=experts,
                             num_experts_per_tok=CHOSEN, router_jitter_noise=0, hidden_act="silu")
    layer = block(config).to(torch.bfloat16)
    for p in layer.parameters():
        p.requires_grad_(trains)
    x = torch.randn(1, tokens, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    forward, backward = Counted(), Counted()
    with forward:
        out = layer(x)[0]
    with backward:
        out.backward(torch.ones_like(out))
    return forward, backward


def main():
    block = block_of(sys.argv[1])
    tokens = 4096
    for trains in (True, False):
        few, many = (counted(block, e, tokens, trains) for e in (8, 16))
        for part, a, b in zip(("forward", "backward"), few, many):
            each = {n: (b.names[n] - a.names.get(n, 0)) / 8 for n in b.names}
            rest = {n: 2 * a.names.get(n, 0) - b.names[n] for n in b.names}
            print(json.dumps({
                "pass": part, "trains": trains, "of each expert": sum(each.values()),
                "reads of each": (b.reads - a.reads) / 8,
                "of the layer": sum(rest.values()),
                "operators of each": {n: k for n, k in each.items() if k},
                "operators of the layer": {n: k for n, k in rest.items() if k}}))


if __name__ == "__main__":
    main()
