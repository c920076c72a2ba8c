#!/usr/bin/env python3
"""PyTorch operators of the gated delta rule as transformers writes it out.

    python count_delta_operators.py MODELING_FILE

MODELING_FILE is models/qwen3_5/modeling_qwen3_5.py (or qwen3_next, olmo_hybrid) of transformers. Its
torch_chunk_gated_delta_rule runs forward and backward on the meta device, with several lengths and
head dims. One line of JSON per pass: fp32 numbers that operators other than products and solves
read and write, of a row and value head, as a linear function of what stands at each (n is the
number of chunks of a sequence), kernels and products of the whole and of each chunk, and the
greatest difference between that function and a count. The last line has what autograd keeps, in
numbers of a row and head, of heads of 128.

Needs torch and numpy; nothing in shardwise's tests runs it. Run with PyTorch 2.15 on the files of
transformers 5.10.4 (row by row) and 5.24.0 (solved).
"""
import ast
import json
import sys

import numpy
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from count_expert_operators import VIEWS, stored

CHUNK = 64
PRODUCTS = {"bmm"}
SOLVES = {"linalg_solve_triangular"}
FILLS = {"zeros", "zeros_like", "new_zeros", "zero_", "fill_", "ones", "ones_like"}
TERMS = ["1", "K", "V", "KV/C", "n", "nK", "nV", "1/n", "K/n", "V/n"]


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.kernels = self.products = self.bytes = 0

    def __torch_dispatch__(self, function, kinds, args=(), keywords=None):
        name = function._schema.name.split("::")[-1]
        result = function(*args, **(keywords or {}))
        if name in VIEWS or "empty" in name or name in ("select", "unsqueeze", "expand", "alias"):
            return result
        self.kernels += name not in PRODUCTS
        self.products += name in PRODUCTS
        if name in PRODUCTS | SOLVES:
            return result
        read = [] if name in FILLS else tree_leaves((args, keywords))
        if name == "copy_":
            read = args[1:2]
        self.bytes += sum(stored(t) for t in [*read, *tree_leaves(result)] if torch.is_tensor(t))
        return result


def rule_of(path):
    wanted = {"l2norm", "torch_chunk_gated_delta_rule"}
    tree = ast.parse(open(path).read())
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in wanted]
    for function in tree.body:
        function.decorator_list = []
    names = {"torch": torch, "F": F, "is_torchdynamo_exporting": lambda: False}
    exec(compile(tree, path, "exec"), names)
    return names["torch_chunk_gated_delta_rule"]


def counted(rule, batch, length, heads, key_dim, value_dim):
    def operand(*shape, dtype=torch.bfloat16):
        return torch.empty(batch, length, heads, *shape, dtype=dtype, device="meta",
                           requires_grad=True)

    inputs = [operand(key_dim), operand(key_dim), operand(value_dim)]
    rates = {"g": operand(dtype=torch.float32), "beta": operand()}
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    forward, backward = Counted(), Counted()
    with forward, torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        out = rule(*inputs, **rates, use_qk_l2norm_in_kernel=True)[0]
    with backward:
        out.backward(torch.empty_like(out))
    for tensor in [*inputs, *rates.values()]:
        kept.pop(tensor.untyped_storage()._cdata, None)
    rows = 4 * batch * length * heads
    return forward, backward, rows, sum(t.untyped_storage().nbytes() for t in kept.values()) / rows


def main():
    rule = rule_of(sys.argv[1])
    sides, passes = [], ([], [])
    for length in (512, 1024, 2048):
        for k, v in ((128, 128), (64, 128), (128, 64), (64, 64), (96, 128)):
            n = length // CHUNK
            sides.append([1, k, v, k * v / CHUNK, n, n * k, n * v, 1 / n, k / n, v / n])
            *both, rows, kept = counted(rule, 1, length, 16, k, v)
            for counts, to in zip(both, passes):
                to.append((counts.bytes / rows, counts.kernels, counts.products, n))
    for name, counts in zip(("forward", "backward"), passes):
        numbers = numpy.array([c[0] for c in counts])
        found = numpy.linalg.lstsq(numpy.array(sides), numbers, rcond=None)[0]
        line = {"pass": name, "numbers": {t: round(float(f), 1) for t, f in zip(TERMS, found)},
                "greatest_difference": round(float(abs(sides @ found - numbers).max()), 1)}
        for what, at in (("kernels", 1), ("products", 2)):
            each = (counts[-1][at] - counts[0][at]) // (counts[-1][3] - counts[0][3])
            line[what] = counts[0][at] - each * counts[0][3]
            line[what + "_of_a_chunk"] = each
        print(json.dumps(line))
    print(json.dumps({"kept": round(counted(rule, 1, 2048, 16, 128, 128)[3], 2)}))


if __name__ == "__main__":
    main()
