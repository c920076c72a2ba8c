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


def stub_compiled():
    for name, functions in COMPILED.items():
        module = types.ModuleType(name)
        for function in functions:
            setattr(module, function, launch_nothing)
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
