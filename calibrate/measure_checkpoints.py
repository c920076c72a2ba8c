#!/usr/bin/env python3
"""CPU time of PyTorch's activation checkpoints beyond the operators that run again.

    python measure_checkpoints.py [--layers 12] [--passes 60]

Blocks so narrow that their arithmetic is nothing go through forward and backward as they are, each
in a reentrant checkpoint, and each in one that is not. One line of JSON for each kind of block
tells what a checkpoint takes more than the block and one more forward pass, in operators of the
first block as it is: a ratio of two times of one machine, of which its speed is no part. One that
is not reentrant calls Python when a tensor is saved, when it is saved again and when it is read, so
it stands beside the tensors that autograd saves. On a GPU the state of its random numbers is kept
too, so the figures are lower bounds there.

Needs torch, transformers and peft (run with 2.15.0, 5.24.0 and 0.21.2 on a CPU); nothing in
shardwise's tests runs it.
"""
import argparse
import json
import time

import torch
from torch.utils.checkpoint import checkpoint

import count_layer_operators as layers_of
from count_layer_operators import Count

WIDTH, TOKENS = 64, 4
KINDS = ("plain", "reentrant", "not reentrant")


def llama_blocks(layers, adapters=False):
    _, model = layers_of.llama(torch.bfloat16, adapters, layers=layers, hidden=WIDTH, ffn=2 * WIDTH,
                               heads=4, tokens=TOKENS)
    inner = (model.base_model.model if adapters else model).model
    positions = inner.rotary_emb(torch.zeros(1, dtype=torch.bfloat16), torch.arange(TOKENS)[None])

    def run(layer, x):
        y = layer(x, position_embeddings=positions)
        return y if isinstance(y, torch.Tensor) else y[0]

    return [lambda x, layer=layer: run(layer, x) for layer in inner.layers]


def gpt_blocks(layers):
    layers_of.HIDDEN, layers_of.HEADS, layers_of.BATCH, layers_of.TOKENS = WIDTH, 4, 1, TOKENS
    return [layers_of.Gpt().to(torch.bfloat16) for _ in range(layers)]


def linear_blocks(layers, depth):
    return [torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(depth)])
            .to(torch.bfloat16) for _ in range(layers)]


def forward(kind, blocks, x):
    for block in blocks:
        x = block(x) if kind == "plain" else checkpoint(block, x, use_reentrant=kind == "reentrant")
    return x


def measured(blocks, repetitions, autocast):
    x = torch.randn(1, TOKENS, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    context = lambda: torch.autocast("cpu", torch.bfloat16, enabled=autocast, cache_enabled=False)
    saved = [0]
    def pack(t):
        saved[0] += 1
        return t
    with context(), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), Count() as there:
        y = forward("plain", blocks, x * 1)
    with Count() as back:
        y.backward(torch.ones_like(y))
    least = {kind: [float("inf")] * 2 for kind in KINDS}
    for _ in range(repetitions):
        for kind in KINDS:
            begin = time.process_time()
            with context():
                y = forward(kind, blocks, x * 1)
            middle = time.process_time()
            y.backward(torch.ones_like(y))
            end = time.process_time()
            least[kind] = [min(a, b) for a, b in zip(least[kind], (middle - begin, end - begin))]
    there, back, saved = (n / len(blocks) for n in (there.operators(), back.operators(), saved[0]))
    once, both = (t / len(blocks) for t in least["plain"])
    operator = both / (there + back)
    more = {kind: least[kind][1] / len(blocks) - both - once for kind in KINDS[1:]}
    return there, saved, more, operator


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--passes", type=int, default=60, help="repetitions")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    operator = None
    for name, blocks, autocast in (
        ("Llama", llama_blocks(args.layers), False),
        ("Llama with adapters", llama_blocks(args.layers, True), False),
        ("Llama with adapters, autocast", llama_blocks(args.layers, True), True),
        ("GPT", gpt_blocks(args.layers), False),
        ("2 linears", linear_blocks(args.layers, 2), False),
        ("20 linears", linear_blocks(args.layers, 20), False),
    ):
        there, saved, more, own = measured(blocks, args.passes, autocast)
        operator = operator or own
        print(json.dumps({"block": name, "operators_forward": round(there, 1),
                          "saved_tensors": round(saved, 1), "us_per_operator": round(1e6 * own, 1),
                          "operators_more": {kind: round(s / operator, 1) for kind, s in more.items()},
                          "a_saved_tensor": round(more["not reentrant"] / operator / saved, 2),
                          "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
