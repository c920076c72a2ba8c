#!/usr/bin/env python3
"""Counts the operators that eager PyTorch runs for RMSNorm, rotary embedding, SwiGLU and for a
softmax and a cross-entropy that are written out.

What is counted is every operator that autograd dispatches and that is no view, and the bytes of the
operands that it reads and writes, per element of the input, where every second element of memory
counts as all of it, since a GPU moves sectors of 32 bytes; and the elements that CUDA would take
one by one, of element-wise operators whose operands are broadcast or strided, or 16-bit ones that
are widened (PyTorch aten/src/ATen/native/cuda/CUDALoops.cuh, gpu_kernel_impl; Copy.cu,
direct_copy_kernel_cuda). simulator/graphs/norms.cpp, rotary.cpp and plain_softmax.cpp hold the
results. Under a dispatch mode PyTorch scatters the gradient of a maximum and of a choice out of
place, a tensor read and one written that it does not move otherwise; a choice is counted as if it
read all that it chooses from.

Needs torch and transformers (run with 2.3.1 and 4.38.2, and with 2.4.1 and 4.44.2, on a CPU); no
GPU:
    python3 calibrate/count_norm_operators.py
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers.models.llama import modeling_llama as llama


def tensors(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def moved(tensor):
    """Bytes of the sectors that its elements lie in; an expanded operand is read once."""
    size = tensor.element_size()
    steps = [step for step, n in zip(tensor.stride(), tensor.shape) if n > 1 and step > 0]
    apart = min(steps, default=1)
    return min(tensor.numel() * size * min(apart, 32 // size), tensor.untyped_storage().nbytes())


def taken_singly(name, read, written):
    """Elements that a kernel takes one by one: an operand is not laid out as the result is."""
    if name in ("mean", "sum", "zeros_like", "ones_like") or not written:
        return 0
    out = written[0]
    if name in ("cat", "slice_backward"):  # copies of parts, each as large as what is read
        return sum(t.numel() for t in read)
    for t in (t for t in read if t.numel() > 1):
        widened = t.element_size() < out.element_size()
        if t.shape != out.shape or t.stride() != out.stride() or widened:
            return out.numel()
    return 0


class Count(TorchDispatchMode):
    """Launches and bytes; what shares its memory with an operand is a view, unless written to."""

    def __init__(self):
        super().__init__()
        self.launches, self.bytes = 0, 0
        self.reductions, self.reduced = 0, 0  # means and sums among them
        self.singly, self.singly_launches, self.singly_bytes = 0, 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        read, written = tensors((args, kwargs or {})), tensors(result)
        if str(function).split(".")[1] in ("new_empty_strided", "copy_"):
            return result  # the gradient of a leaf takes its layout
        memory = {t.untyped_storage().data_ptr() for t in read}
        in_place = str(function).split(".")[1].endswith("_")
        if not in_place and all(t.untyped_storage().data_ptr() in memory for t in written):
            return result
        size = sum(moved(t) for t in read + written)
        self.launches += 1
        self.bytes += size
        name = str(function).split(".")[1]
        one_by_one = taken_singly(name, read, written)
        self.singly += one_by_one
        self.singly_launches += one_by_one > 0
        self.singly_bytes += size if one_by_one else 0
        if name in ("mean", "sum"):
            self.reductions += 1
            self.reduced += size
        return result


def report(name, function, inputs, elements):
    with Count() as forward:
        result = function(*inputs)
    outputs = tensors(result)
    gradients = [torch.ones_like(t) for t in outputs]
    with Count() as backward:
        torch.autograd.backward(outputs, gradients)
    row = [f"{c.launches} operators, {c.bytes / elements:.1f} bytes ({c.reductions} of them"
           f" reductions, {c.reduced / elements:.1f}; {c.singly_launches} take"
           f" {c.singly / elements:.1f} elements one by one, {c.singly_bytes / elements:.1f})"
           for c in (forward, backward)]
    print(f"{name:34s} forward {row[0]}; backward {row[1]}")


def leaf(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def shifted(x):
    return x - torch.max(x, dim=-1, keepdim=True)[0]


def written_out_softmax(scores, mask):
    exponentials = torch.exp(shifted(torch.where(mask, scores / 8, float("-inf"))))
    return exponentials / torch.sum(exponentials, dim=-1, keepdim=True)


def written_out_loss(logits, targets):
    less = shifted(logits)
    logs = less - torch.log(torch.sum(torch.exp(less), dim=-1, keepdim=True))
    return torch.mean(torch.gather(-logs, -1, targets))


def report_written_out():
    queries, vocabulary = 128, 1000
    mask = torch.ones(queries, queries, dtype=torch.bool).tril()
    for dtype in (torch.float32, torch.bfloat16):
        scores = leaf(4, 8, queries, queries, dtype=dtype)
        report(f"softmax written out, {dtype}", lambda s: written_out_softmax(s, mask), [scores],
               scores.numel())
        logits = leaf(queries, vocabulary, dtype=dtype)
        targets = torch.randint(0, vocabulary, (queries, 1))
        report(f"loss written out, {dtype}", lambda x: written_out_loss(x, targets), [logits],
               logits.numel())


def halves_put_together(one, two, cos, sin):
    return cos * one - sin * two, sin * one + cos * two


def report_pairs():
    """Rotation of neighbours, as two public codes write it (RotaryCode). Of zeros and a half that is
    copied there PyTorch makes two kernels on a GPU, 10 bytes of an fp32 element, counted as one of
    6; a gradient's copy into the order that a projection wrote is counted with the projection."""
    tokens, heads, dim = 64, 256, 128
    angles = torch.rand(tokens, dim // 2)
    cos, sin = torch.cos(angles), torch.sin(angles)

    def pairs(x):
        halves = x.unflatten(-1, (-1, 2)).movedim(-1, 0).unbind(0)
        return torch.cat(halves_put_together(*halves, cos, sin), dim=-1).to(x.dtype)

    def chosen_pairs(x):
        wide = x.float().unflatten(-1, (-1, 2))
        one, two = (lambda: wide[..., 0]), (lambda: wide[..., 1])
        less = one() * cos[:, None] - two() * sin[:, None]
        more = one() * sin[:, None] + two() * cos[:, None]
        return torch.stack((less, more), dim=-1).flatten(-2).to(torch.bfloat16)

    for dtype in (torch.float32, torch.bfloat16):
        x = leaf(1, tokens, heads * dim, dtype=dtype)
        report(f"rotation in pairs, {dtype}",
               lambda t: pairs(t.view(1, tokens, heads, dim).transpose(1, 2)), [x], x.numel())
        x = leaf(1, tokens, heads, dim, dtype=dtype)
        report(f"in chosen pairs, {dtype}", chosen_pairs, [x], x.numel())


def main():
    report_written_out()
    report_pairs()
    tokens, width = 2048, 4096
    for name, dtype, trained in (
        ("RMSNorm, 16 bits", torch.bfloat16, True),
        ("RMSNorm, 16 bits, frozen weight", torch.bfloat16, False),
        ("RMSNorm, fp32", torch.float32, True),
    ):
        norm = llama.LlamaRMSNorm(width).to(dtype).requires_grad_(trained)
        report(name, norm, [leaf(1, tokens, width, dtype=dtype)], tokens * width)
    heads, dim = 32, 128
    # As a layer has them: by token in memory, seen by head.
    q, k = (leaf(1, tokens, heads, dim).transpose(1, 2) for _ in range(2))
    cos, sin = llama.LlamaRotaryEmbedding(dim)(k, torch.arange(tokens)[None])
    report("rotary embedding of q and k",
           lambda a, b: llama.apply_rotary_pos_emb(a, b, cos, sin), [q, k], q.numel() + k.numel())
    gate, up = leaf(tokens, 11008), leaf(tokens, 11008)
    report("silu(gate) * up", lambda a, b: torch.nn.functional.silu(a) * b, [gate, up], gate.numel())


if __name__ == "__main__":
    main()
