#!/usr/bin/env python3
"""CPU time of Transformer Engine's Python around the products of a group of experts.

    python -O measure_grouped_products.py TRANSFORMER_ENGINE_CHECKOUT [--experts 1,2,4,8,16,32]
        [--format mxfp8|fp8]

GroupedLinear in 16 bits goes forward and backward with its CUDA extension replaced by something
that does nothing, so that what is left is Python, autograd and PyTorch's own small operators. One
line of JSON per number of experts, microseconds of one call, the median of all repetitions. The
launches of the products are not in it. With --format operands are cast by a stand-in that makes the
Python object of each (fp8: current scaling), weights before; that wants v2.11 or the like, which
casts them by split_quantize. -O leaves out the checks that the stand-in would fail.

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


class Named(type):
    """Any member of an enumeration of the extension: some number."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return hash(name) % 97


class Extension(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        kind = {"__init__": lambda *_, **__: None}
        value = Named(name, (), kind) if name[0].isupper() else MagicMock()
        setattr(self, name, value)
        return value


class DTensor:
    pass


class StandIns:
    """Modules that a CPU lacks."""

    names = ("triton", "onnx", "nvdlfw_inspect", "onnxscript", "cudnn", "flash_attn", "nvidia",
             "transformer_engine.pytorch.triton", "transformer_engine.debug",
             "torch.distributed.fsdp._fully_shard", "torch.distributed.tensor")

    def find_spec(self, name, path=None, target=None):
        if name == "triton._torchtlx_default":
            return None
        if any(name == n or name.startswith(n + ".") for n in self.names):
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__version__ = [], spec, "3.0"
        module.DTensor = DTensor
        module.DebugQuantizer = type("DebugQuantizer", (), {})
        module.DebugQuantizedTensor = type("DebugQuantizedTensor", (), {})
        return module

    def exec_module(self, module):
        pass


def grouped_linear(checkout):
    for name in [n for n in sys.modules if n.split(".")[0] == "triton"]:
        del sys.modules[name]
    sys.meta_path.insert(0, StandIns())
    sys.modules["transformer_engine_torch"] = Extension("transformer_engine_torch")
    sys.modules["torch.ops"] = torch.ops
    for name in ("", ".common", ".pytorch"):
        module = MagicMock() if name == ".common" else types.ModuleType("transformer_engine" + name)
        module.__path__ = [checkout + "/transformer_engine" + name.replace(".", "/")]
        module.__spec__ = None
        sys.modules["transformer_engine" + name] = module
    recipes = "transformer_engine.common.recipe"
    spec = importlib.util.spec_from_file_location(
        recipes, checkout + "/transformer_engine/common/recipe/__init__.py")
    sys.modules[recipes] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[recipes])
    sys.modules["transformer_engine.common"].recipe = sys.modules[recipes]
    for name in ("float8_e8m0fnu", "float4_e2m1fn_x2"):
        if not hasattr(torch, name):
            setattr(torch, name, torch.uint8)
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = lambda *_: None
    torch.get_autocast_gpu_dtype = lambda: torch.bfloat16
    torch.Tensor.cuda = lambda tensor, *_: tensor
    torch.Tensor.is_cuda = property(lambda _: True)
    empty = torch.empty
    torch.empty = lambda *a, **k: empty(*a, **{**k, "device": "cpu"})
    import transformer_engine.pytorch.module.base as base
    import transformer_engine.pytorch.module.grouped_linear as grouped
    base.TransformerEngineBaseModule.is_debug_iter = lambda _: False
    grouped.general_grouped_gemm = lambda a, b, out, *_, **__: (out, [None] * len(a), None)
    return grouped.GroupedLinear


def narrow_context(name):
    """A maker of the contexts in which operands are cast to 8 bits, an object for each expert."""
    import transformer_engine.pytorch.quantization as quantization
    import transformer_engine_torch as extension
    from transformer_engine.common import recipe
    from transformer_engine.pytorch.tensor.storage import float8_tensor_storage as scaled
    from transformer_engine.pytorch.tensor.storage import mxfp8_tensor_storage as blocks

    def stored(part, quantizer):
        if name == "mxfp8":
            return blocks.MXFP8TensorStorage(part, part, part, part, quantizer.dtype, quantizer)
        return scaled.Float8TensorStorage(data=part, fp8_scale_inv=part, quantizer=quantizer,
                                          fp8_dtype=quantizer.dtype, data_transpose=part)

    def split_quantize(x, splits, quantizers):
        return [stored(part, q) for part, q in zip(torch.split(x, splits), quantizers)]

    extension.split_quantize = split_quantize
    extension.quantize = lambda x, quantizer, *_: stored(x, quantizer)
    quantization.check_mxfp8_support = quantization.check_fp8_support = lambda *_: (True, "")
    quantization.check_recipe_support = lambda *_: None
    chosen = recipe.MXFP8BlockScaling if name == "mxfp8" else recipe.Float8CurrentScaling
    return lambda: quantization.autocast(enabled=True, recipe=chosen())


def microseconds(module_type, experts, narrow, repetitions=200):
    module = module_type(experts, 256, 512, bias=False, params_dtype=torch.bfloat16, device="cpu",
                         fuse_wgrad_accumulation=True)
    for p in module.parameters():
        p.main_grad, p.grad_added_to_main_grad = torch.zeros_like(p, dtype=torch.float32), False
    x = torch.randn(32 * experts, 256, dtype=torch.bfloat16, requires_grad=True)
    forward, backward = [], []
    for _ in range(repetitions + 20):
        start = time.perf_counter()
        with narrow() if narrow else contextlib.nullcontext():
            y = module(x, [32] * experts, is_first_microbatch=False if narrow else None)
        y = y[0] if isinstance(y, tuple) else y
        forward.append(time.perf_counter() - start)
        gradient = torch.ones_like(y)
        start = time.perf_counter()
        y.backward(gradient)
        backward.append(time.perf_counter() - start)
        for p in module.parameters():
            p.grad = None
    return [round(1e6 * statistics.median(times[20:])) for times in (forward, backward)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout")
    parser.add_argument("--experts", default="1,2,4,8,16,32")
    parser.add_argument("--format", choices=["mxfp8", "fp8"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    module_type = grouped_linear(arguments.checkout)
    narrow = narrow_context(arguments.format) if arguments.format else None
    for experts in map(int, arguments.experts.split(",")):
        forward, backward = microseconds(module_type, experts, narrow)
        print(json.dumps({"experts": experts, "forward_us": forward, "backward_us": backward}))


if __name__ == "__main__":
    main()
