#!/usr/bin/env python3
"""CPU time of Transformer Engine's Python around the CUDA graph of a part of a layer.

    python measure_graphed_layers.py TRANSFORMER_ENGINE_CHECKOUT

make_graphed_callables wraps a module that has as many parameters, inputs and outputs as a captured
part; the graphs that it replays do nothing, so that what is left is Python, autograd and copies of
small tensors into the graphs' own. One line of JSON for each part: microseconds of one pass, the
median of all repetitions, and forward where nothing is copied. Backward holds a call of backward()
that a step makes once: the first line has it alone. The launch of the graph itself
(cudaGraphLaunch) and those of the copies are not in it, and 8-bit formats put the scales of every
module in a list as well.

Needs torch and a checkout of NVIDIA/TransformerEngine; nothing in shardwise's tests runs it.
"""
import argparse
import contextlib
import importlib.util
import json
import statistics
import sys
import time
import types
from unittest.mock import MagicMock

import torch


class Graph:
    def replay(self):
        pass


class Part(torch.nn.Module):
    """`parameters` weights; outputs that have a gradient, and others."""

    def __init__(self, parameters, with_gradient, without):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.ones(8) for _ in range(parameters))
        self.with_gradient, self.without = with_gradient, without

    def forward(self, hidden, mask=None):
        for weight in self.weights:
            hidden = hidden * weight
        outputs = [hidden + i for i in range(self.with_gradient)]
        return tuple(outputs + [hidden.detach() > i for i in range(self.without)])


def graph_module(checkout):
    """transformer_engine/pytorch/graph.py, with stand-ins for what it imports."""
    package = "transformer_engine.pytorch"
    classes = {"module.base": "TransformerEngineBaseModule", "ops.op": "BasicOperation",
               "ops": "Sequential", "ops.fuser": "OperationFuser"}
    for name in ("transformer_engine.common.recipe", package + ".constants", package + ".utils",
                 package + ".quantization", package + ".distributed",
                 *(package + "." + n for n in classes)):
        sys.modules[name] = MagicMock()
    for name in ("transformer_engine", "transformer_engine.common", package, package + ".module"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
    for name, kind in classes.items():
        setattr(sys.modules[package + "." + name], kind, type(kind, (), {}))
    path = checkout + "/transformer_engine/pytorch/graph.py"
    spec = importlib.util.spec_from_file_location(package + ".graph", path)
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    graph.graph_safe_rng_available = lambda: False
    graph.graph_pool_handle = lambda: None
    graph.save_fp8_tensors = graph.restore_fp8_tensors = lambda *_, **__: None
    graph._graph_context_wrapper = lambda *_, **__: contextlib.nullcontext()
    graph.FP8GlobalStateManager = types.SimpleNamespace(
        is_first_fp8_module=lambda: False, is_fp8_enabled=lambda: False)
    graph.autocast = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.CUDAGraph = Graph
    torch.cuda.synchronize = lambda: None
    torch.cuda.get_rng_state, torch.cuda.set_rng_state = lambda: None, lambda _: None
    torch.cuda.stream = lambda _: contextlib.nullcontext()
    torch.cuda.Stream = MagicMock
    stream = object()
    torch.cuda.current_stream = lambda: stream
    return graph


def bare_backward(repetitions=3000):
    """Of backward() itself, which a step calls once."""
    times = []
    for _ in range(repetitions + 100):
        y = torch.ones(8, 8, requires_grad=True).view(-1)
        gradient = torch.ones_like(y)
        start = time.perf_counter()
        torch.autograd.backward([y], [gradient])
        times.append(time.perf_counter() - start)
    return round(1e6 * statistics.median(times[100:]), 1)


def microseconds(graph, parameters, with_gradient, without, mask, copies, repetitions=3000):
    keywords = {"mask": torch.zeros(8, 8, dtype=torch.bool)} if mask else {}
    sample = torch.ones(8, 8, requires_grad=True)
    part = graph.make_graphed_callables(
        Part(parameters, with_gradient, without), (sample,), sample_kwargs=dict(keywords))
    forward, backward = [], []
    for _ in range(repetitions + 100):
        hidden = torch.ones(8, 8, requires_grad=True) if copies else sample
        mask = {k: v.clone() if copies else v for k, v in keywords.items()}
        start = time.perf_counter()
        outputs = part(hidden, **mask)
        forward.append(time.perf_counter() - start)
        outputs = [o for o in outputs if o.requires_grad]
        gradients = [torch.ones_like(o) for o in outputs]
        start = time.perf_counter()
        torch.autograd.backward(outputs, gradients)
        backward.append(time.perf_counter() - start)
        for p in [*part.parameters(), sample]:
            p.grad = None
    return [round(1e6 * statistics.median(times[100:]), 1) for times in (forward, backward)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout")
    graph = graph_module(parser.parse_args().checkout)
    torch.set_num_threads(1)
    print(json.dumps({"bare_backward_us": bare_backward()}))
    # Weights of norms and products, outputs that have a gradient, that have none, and a mask.
    parts = {"attn": (5, 1, 0, True), "mlp": (3, 1, 0, False), "mamba": (8, 1, 0, False),
             "moe_router, moe_preprocess": (2, 3, 2, False),
             "attn, moe_router, moe_preprocess": (7, 3, 2, True)}
    for scope, counts in parts.items():
        forward, backward = microseconds(graph, *counts, True)
        print(json.dumps({"scope": scope, "forward_us": forward, "backward_us": backward,
                          "forward_in_place_us": microseconds(graph, *counts, False)[0]}))


if __name__ == "__main__":
    main()
