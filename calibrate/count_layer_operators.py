#!/usr/bin/env python3
"""Counts the operators that eager PyTorch runs for a whole decoder layer, and their bytes.

A layer of Llama, as transformers writes it, and a block of a GPT with one projection for q, k and v,
each in 16 bits and with fp32 weights under autocast; Llama's also with low-rank adapters on all of
its linears (PEFT's, which are fp32 beside a base of 16 bits). One line for each pass tells operators
and megabytes, then by name; what autograd sums and what autocast copies are among them
(simulator/graphs/gradient_sums.cpp, graph_builder.cpp: cast_weights, attention_graph.cpp: rotate,
adapter_graph.cpp).

Needs torch, transformers and peft (run with 2.8.0, 4.56.2 and 0.21.2 on a CPU); no GPU:
    python3 calibrate/count_layer_operators.py
"""
import collections

import torch
from peft import LoraConfig, get_peft_model
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from transformers import LlamaConfig, LlamaForCausalLM

HIDDEN, HEADS, FFN, BATCH, TOKENS = 512, 8, 1408, 2, 256
NO_KERNEL = {"detach", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided",
             "_unsafe_view", "alias"}


def tensors(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


class Count(TorchDispatchMode):
    """Operators and bytes by name; what shares its memory with an operand is a view."""

    def __init__(self):
        super().__init__()
        self.by_name = collections.OrderedDict()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = str(function).split(".")[1]
        read, written = tensors((args, kwargs or {})), tensors(result)
        memory = {t.untyped_storage().data_ptr() for t in read}
        view = not name.endswith("_") and all(t.untyped_storage().data_ptr() in memory for t in written)
        if name in NO_KERNEL or view:
            return result
        row = self.by_name.setdefault(name, [0, 0])
        row[0] += 1
        # An expanded operand is read once from memory.
        row[1] += sum(min(t.numel() * t.element_size(), t.untyped_storage().nbytes()) for t in read)
        row[1] += sum(t.numel() * t.element_size() for t in written)
        return result

    def operators(self):
        return sum(n for n, _ in self.by_name.values())

    def __str__(self):
        names = ", ".join(f"{name} {n} ({b / 1e6:.1f})" for name, (n, b) in self.by_name.items())
        total = sum(b for _, b in self.by_name.values())
        return f"{self.operators()} operators, {total / 1e6:.1f} MB: {names}"


def llama(dtype, adapters=False, layers=1, hidden=HIDDEN, ffn=FFN, heads=HEADS, tokens=TOKENS):
    """A function of a stream [batch, tokens, hidden] and the model it runs."""
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=hidden, intermediate_size=ffn, num_attention_heads=heads,
        num_key_value_heads=heads, num_hidden_layers=layers, vocab_size=64, use_cache=False,
        attn_implementation="sdpa")).to(dtype)
    if adapters:
        model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
    inner = (model.base_model.model if adapters else model).model
    model.train()
    positions = inner.rotary_emb(torch.zeros(1, dtype=dtype), torch.arange(tokens)[None])

    def forward(x):
        for layer in inner.layers:
            y = layer(x, position_embeddings=positions)
            x = y if isinstance(y, torch.Tensor) else y[0]
        return x

    return forward, model


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear, norm = torch.nn.Linear, torch.nn.LayerNorm
        self.first_norm, self.second_norm = norm(HIDDEN), norm(HIDDEN)
        self.qkv, self.out = linear(HIDDEN, 3 * HIDDEN), linear(HIDDEN, HIDDEN)
        self.up, self.down = linear(HIDDEN, 4 * HIDDEN), linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        functional = torch.nn.functional
        heads = lambda t: t.view(BATCH, TOKENS, HEADS, HIDDEN // HEADS).transpose(1, 2)
        q, k, v = self.qkv(self.first_norm(x)).split(HIDDEN, dim=2)
        y = functional.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(BATCH, TOKENS, HIDDEN))
        return x + self.down(functional.gelu(self.up(self.second_norm(x))))


def passes(forward, x, autocast):
    """Counts of a forward and of a backward pass over a stream that is no leaf."""
    stream = x * 1
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast), Count() as there:
        y = forward(stream)
    gradient = torch.ones_like(y)
    with Count() as back:
        y.backward(gradient)
    return there, back


def main():
    half, full = torch.bfloat16, torch.float32
    gpt = lambda dtype: (lambda block: (block, block))(Gpt().to(dtype))
    for name, make, dtype, autocast in (
        ("Llama, 16 bits", llama, half, False),
        ("Llama, autocast", llama, full, True),
        ("Llama with adapters, autocast", lambda d: llama(d, True), half, True),
        ("Llama with adapters, 16 bits", lambda d: llama(d, True), half, False),
        ("GPT, 16 bits", gpt, half, False),
        ("GPT, autocast", gpt, full, True),
    ):
        forward, _ = make(dtype)
        x = torch.randn(BATCH, TOKENS, HIDDEN, dtype=dtype, requires_grad=True)
        for which, count in zip(("forward", "backward"), passes(forward, x, autocast)):
            print(f"{name}, {which}: {count}")


if __name__ == "__main__":
    main()
