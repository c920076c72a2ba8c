#!/usr/bin/env python3
"""Writes the *.json beside it: the keys that each framework's own configuration classes know.

Needs deepspeed, accelerate, trl, axolotl, torchtitan 0.2.x from PyPI and a Megatron-LM checkout on
PYTHONPATH; docs/launch-files.md says which. A type is boolean, integer, number, text, any, or the
list of values allowed. A path that ends in '*' takes whatever follows.
"""
import argparse
import collections.abc
import dataclasses
import datetime
import enum
import importlib.metadata
import inspect
import json
import sys
import types
import typing
from pathlib import Path

NAMES = {bool: "boolean", int: "integer", float: "number", str: "text"}


def kind(hint):
    """The type of a value as this file spells it."""
    if isinstance(hint, str):
        hint = {"bool": bool, "int": int, "float": float, "str": str}.get(hint, typing.Any)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind(a) for a in typing.get_args(hint) if a is not type(None)]
        if all(k == kinds[0] for k in kinds):
            return kinds[0]
        if set(map(str, kinds)) <= {"integer", "number"}:
            return "number"
        return "any"
    if origin is typing.Annotated:
        return kind(typing.get_args(hint)[0])
    if origin is typing.Literal:
        return [str(v).lower() if isinstance(v, bool) else str(v) for v in typing.get_args(hint)]
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return "any"
    return NAMES.get(hint, "any")


def put(keys, path, hint):
    """A list or mapping is a path with a '*'; anything may stand below it."""
    origin = typing.get_origin(hint)
    members = typing.get_args(hint) if origin in (typing.Union, types.UnionType) else [hint]
    held = [typing.get_args(m)[0] if typing.get_origin(m) is typing.Annotated else m
            for m in members if m is not type(None)]
    if any((typing.get_origin(m) or m) in (list, dict, tuple, collections.abc.Sequence)
           for m in held):
        keys[path + ".*"] = "any"
    if not all((typing.get_origin(m) or m) in (list, dict, tuple) for m in held):
        keys[path] = kind(hint)


def of_dataclass(keys, cls, prefix=""):
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            of_dataclass(keys, hint, prefix + field.name + ".")
        else:
            put(keys, prefix + field.name, hint)


def of_pydantic(keys, cls, prefix=""):
    for name, field in cls.model_fields.items():
        members = typing.get_args(field.annotation) or (field.annotation,)
        inner = [m for m in members if inspect.isclass(m) and hasattr(m, "model_fields")]
        if inner:
            of_pydantic(keys, inner[0], prefix + name + ".")
        else:
            for known in {name, field.alias or name}:
                put(keys, prefix + known, field.annotation)


def of_parser(keys, parser, rename=lambda name: name):
    for action in parser._actions:
        for flag in action.option_strings:
            if not flag.startswith("--"):
                continue
            name = rename(flag[2:])
            if name is None:
                continue
            if action.nargs == 0:
                keys[name] = "boolean"
            elif str(action.default).lower() in ("true", "false"):
                keys[name] = "boolean"  # a text for argparse, a flag in a file
            elif action.choices:
                keys[name] = [c.name if isinstance(c, enum.Enum) else str(c) for c in action.choices]
            else:
                keys[name] = NAMES.get(action.type, "text" if action.type is None else "any")
            if action.nargs in ("+", "*") or isinstance(action.nargs, int) and action.nargs > 1:
                keys[name + ".*"] = "any"


def deepspeed():
    from deepspeed.runtime import constants, precision_config
    from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    keys = {}
    of_pydantic(keys, DeepSpeedZeroConfig, "zero_optimization.")
    of_pydantic(keys, precision_config.DeepSpeedBF16Config, "bf16.")
    of_pydantic(keys, precision_config.DeepSpeedFP16Config, "fp16.")
    of_pydantic(keys, TPTrainingConfig, "tensor_parallel.")
    # Those are read one by one in runtime/config.py, by the names in runtime/constants.py.
    for constant, expected in (("TRAIN_BATCH_SIZE", "integer"),
                               ("TRAIN_MICRO_BATCH_SIZE_PER_GPU", "integer"),
                               ("GRADIENT_ACCUMULATION_STEPS", "integer"),
                               ("GRADIENT_CLIPPING", "number"),
                               ("ZERO_ALLOW_UNTESTED_OPTIMIZER", "boolean"),
                               ("ZERO_FORCE_DS_CPU_OPTIMIZER", "boolean"),
                               ("STEPS_PER_PRINT", "integer")):
        keys[getattr(constants, constant)] = expected
    assert constants.OPTIMIZER == "optimizer" and constants.TYPE == "type"
    keys["optimizer.type"] = "text"
    keys["optimizer.params.*"] = "any"
    keys["sequence_parallel_size"] = "integer"  # runtime/config.py and __init__.py, as a literal
    return keys, "deepspeed"


def accelerate():
    from accelerate.commands.config.config_args import ClusterConfig
    from accelerate.commands.launch import launch_command_parser

    keys = {}
    of_dataclass(keys, ClusterConfig)
    keys.pop("fsdp_config.*")
    keys.pop("parallelism_config.*")
    keys["distributed_type"] = ["NO", "MULTI_GPU", "FSDP", "DEEPSPEED"]
    parser = launch_command_parser()
    for start, where in (("fsdp_", "fsdp_config."), ("parallelism_config_", "parallelism_config.")):
        of_parser(keys, parser, lambda n, s=start, w=where: w + n if n.startswith(s) else None)
    return keys, "accelerate"


def trl(training="SFTConfig"):
    import trl as package

    keys = {}
    for cls in (package.ScriptArguments, getattr(package, training), package.ModelConfig):
        of_dataclass(keys, cls)
    return keys, "trl"


def axolotl():
    from axolotl.utils.schemas.config import AxolotlInputConfig

    from axolotl.integrations.liger.args import LigerArgs

    keys = {}
    of_pydantic(keys, AxolotlInputConfig)
    of_pydantic(keys, LigerArgs)  # of the plugin that brings those kernels
    return keys, "axolotl"


def torchtitan():
    from torchtitan.config import JobConfig

    keys = {}
    of_dataclass(keys, JobConfig)
    keys["parallelism.module_fqns_per_model_part.*"] = "any"
    return keys, "torchtitan"


def megatron():
    import typing_extensions

    typing.override = typing_extensions.override  # for Python before 3.12
    from megatron.training.arguments import add_megatron_arguments

    parser = argparse.ArgumentParser()
    add_megatron_arguments(parser)
    keys = {}
    of_parser(keys, parser)
    return keys, None


def fully_shard():
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy
    from torch.distributed.fsdp import fully_shard as function

    parameters = inspect.signature(function).parameters
    policy = {f.name for f in dataclasses.fields(MixedPrecisionPolicy)}
    assert "offload_policy" in parameters and dataclasses.fields(CPUOffloadPolicy)
    assert {"reshard_after_forward", "mesh", "mp_policy"} <= set(parameters)
    assert {"param_dtype", "reduce_dtype"} <= policy
    dtypes = ["bfloat16", "float32"]
    return {"fully_shard.reshard_after_forward": "boolean",
            "fully_shard.param_dtype": dtypes,
            "fully_shard.reduce_dtype": dtypes,
            "fully_shard.cpu_offload": "boolean",
            "mesh.replicate": "integer", "mesh.shard": "integer",
            "training.model": "text", "training.method": ["full", "pretrain"],
            "training.sequence": "integer",
            "training.microbatch": "integer", "training.accumulation": "integer",
            "training.recompute_blocks": "boolean", "training.learning_rate": "number",
            "training.steps": "integer"}, "torch"


FILES = {"deepspeed": deepspeed, "accelerate": accelerate, "trl": trl, "axolotl": axolotl,
         "trl_dpo": lambda: trl("DPOConfig"), "trl_kto": lambda: trl("KTOConfig"),
         "trl_reward": lambda: trl("RewardConfig"),
         "torchtitan": torchtitan, "megatron": megatron, "fully_shard": fully_shard}


def main():
    for name in sys.argv[1:] or FILES:
        keys, package = FILES[name]()
        source = (f"{package} {importlib.metadata.version(package)} (PyPI)" if package else
                  "Megatron-LM megatron/training/arguments.py@d98e8a64ddf34856e74b24714e3bedb2f5a39553")
        document = {"source": source, "date": datetime.date.today().isoformat(),
                    "keys": dict(sorted(keys.items()))}
        path = Path(__file__).with_name(name + ".json")
        path.write_text(json.dumps(document, indent=0) + "\n")
        print(path.name, len(keys), "keys", source)


if __name__ == "__main__":
    main()
