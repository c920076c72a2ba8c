"""Packages of GPU kernels without a GPU: their Python allocates, keeps and hands on as ever, and
their kernels are not launched. KERNELS names the folder with the unpacked sources (see `run`)."""
import importlib.util
import os
import sys
import types
from importlib.metadata import version
from pathlib import Path

# Functions of extensions that only a GPU could run.
COMPILED = {"causal_conv1d_cuda": ("causal_conv1d_fwd", "causal_conv1d_bwd", "causal_conv1d_update"),
            "selective_scan_cuda": ("fwd", "bwd")}


def launch_nothing(*args, **kwargs):
    return None


def tune_nothing(tuner, *args, **kwargs):
    """The first configuration: callers ask for the block size that was chosen."""
    tuner.best_config = tuner.configs[0]


def scan_forward(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    """csrc/selective_scan/selective_scan.cpp, selective_scan_fwd: out, x and, with z, out times it."""
    import torch
    batch, dim, length = u.shape
    states = torch.empty(batch, dim, -(-length // 2048), 2 * A.shape[1], device=u.device,
                         dtype=torch.float32)
    out = torch.empty_like(delta)
    return [out, states] if z is None else [out, states, torch.empty_like(z)]


def scan_backward(u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, softplus, again):
    """selective_scan_bwd: gradients of what varies with the token in fp32."""
    import torch
    wide = [torch.zeros_like(t, dtype=torch.float32) for t in (A, B, C, D)]
    grads = [torch.empty_like(u), torch.empty_like(delta), wide[0], wide[1].to(B.dtype),
             wide[2].to(C.dtype), wide[3], torch.zeros_like(delta_bias, dtype=torch.float32)]
    return grads if z is None else grads + [torch.empty_like(z)]


SCANS = {"fwd": scan_forward, "bwd": scan_backward}


def stub_compiled():
    for name, functions in COMPILED.items():
        module = types.ModuleType(name)
        for function in functions:
            setattr(module, function, SCANS.get(function, launch_nothing))
        sys.modules[name] = module


def open_package(name, folder):
    """The package without what its __init__ imports, which may need a compiler."""
    module = types.ModuleType(name)
    module.__path__ = [str(folder)]
    module.__spec__ = importlib.util.spec_from_loader(name, None, is_package=True)
    sys.modules[name] = module


def sources():
    folder = os.environ.get("KERNELS")
    return sorted(path for path in Path(folder).iterdir() if path.is_dir()) if folder else []


def versions():
    """As the sources' folders are called: "mamba_ssm 2.3.2"."""
    named = [path.name.replace("-", " ") for path in sources()]
    return ", ".join(named + [f"{p} {version(p)}" for p in ("flash-linear-attention",)])


def leave_out(*packages):
    """As if they were not installed, for model classes that are imported from now on."""
    for package in packages:
        sys.modules[package] = None
        for name in [n for n in sys.modules if n.startswith(package + ".")]:
            del sys.modules[name]
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: (
        None if name.split(".")[0] in packages else find(name, *rest))


def pretend():
    """Called before the model classes are imported: they look for the packages then."""
    if not sources():
        return
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.jit import JITFunction
    JITFunction.run = Heuristics.run = launch_nothing
    Autotuner.run = tune_nothing
    stub_compiled()
    for path in sources():
        name = path.name.split("-")[0]
        if name == "mamba_ssm":
            open_package(name, path / name)
        else:
            sys.path.insert(0, str(path))
