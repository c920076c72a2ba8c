#!/usr/bin/env python3
"""PyTorch operators of a mixture whose experts Python calls one after the other.

    python count_looped_experts.py MODELING_FILE

MODELING_FILE is models/mixtral/modeling_mixtral.py of transformers 4.x. Its MixtralSparseMoeBlock runs
forward and backward on small tensors under the dispatch mode of count_expert_operators.py, with as
many experts and with twice as many: the difference is what an expert takes, the rest what the layer
takes. One line of JSON per pass: launches, how often the CPU reads a result back, and bytes per
element of the layer's input, and of the rows that experts get, beside the products' own.

Needs torch; nothing in shardwise's tests runs it.
"""
import ast
import json
import sys
from types import SimpleNamespace

import torch
from torch import nn

from count_expert_operators import VIEWS, stored
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

WIDTH, INNER, CHOSEN, HALF = 64, 8, 2, 2
PRODUCTS = {"mm", "addmm", "bmm"}
READS_BACK = {"nonzero", "_local_scalar_dense", "item"}


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.launches, self.reads, self.products, self.moved = 0, 0, 0, 0
        self.names = {}

    def __torch_dispatch__(self, function, kinds, args=(), keywords=None):
        name = function._schema.name.split("::")[-1]
        result = function(*args, **(keywords or {}))
        if name in READS_BACK:
            self.reads += 1
        if name in VIEWS or name.startswith("empty"):
            return result
        self.launches += 1
        self.names[name] = self.names.get(name, 0) + 1
        if name in PRODUCTS:
            self.products += 1
            return result
        for value in tree_flatten((args, keywords or {}, result))[0]:
            self.moved += stored(value) if isinstance(value, torch.Tensor) else 0
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
    for trains in (True, False):
        # All experts get rows of 4,096 tokens. Twice the experts: what each of them takes.
        tokens = 4096
        few, many = (counted(block, e, tokens, trains) for e in (8, 16))
        for i, part in enumerate(("forward", "backward")):
            a, b = few[i], many[i]
            each = (b.launches - a.launches) / 8
            print(json.dumps({
                "pass": part, "trains": trains, "of each expert": each,
                "products of each": (b.products - a.products) / 8,
                "reads of each": (b.reads - a.reads) / 8,
                "of the layer": a.launches - 8 * each, "reads of the layer": a.reads - b.reads + a.reads,
                "bytes of each per element": round((b.moved - a.moved) / 8 / (tokens * WIDTH), 2),
                "bytes of the layer per element": round((2 * a.moved - b.moved) / (tokens * WIDTH), 2),
                "operators": {n: (b.names[n] - a.names.get(n, 0)) / 8 for n in b.names
                              if b.names[n] != a.names.get(n, 0)}}))


main()
