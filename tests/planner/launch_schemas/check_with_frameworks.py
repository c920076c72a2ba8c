#!/usr/bin/env python3
"""Hands the files of `shardwise launch` to the frameworks' own parsers and says what they made of it.

  check_with_frameworks.py SHARDWISE     SHARDWISE: the program

Writes each target for a list of plans into a temporary folder. Needs what read_schemas.py needs, and
transformers; docs/launch-files.md has the last result. Exit code 1 where a parser refuses a file.
"""
import logging
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DP = ["dp=8,zero=0", "dp=8,zero=1", "dp=8,zero=2", "dp=8,zero=3", "dp=8,zero=3,offload=params+optimizer",
      "dp=8,zero=2,recompute=full,mbs=2", "dp=8,zero=3,recompute=full,mbs=4,ga=2",
      "dp=8,zero=2,offload=optimizer", "dp=8,zero=0,recompute=full", "dp=8,zero=3,ga=8,mbs=1",
      "dp=8,zero=3,shard=4", "dp=8,zero=2,shard=4", "dp=4,cp=2,cp-kind=ulysses,zero=2",
      "dp=4,cp=2,zero=3,recompute=full", "dp=8,zero=1,recompute=full,mbs=2,ga=2",
      "dp=8,zero=2,shard=2,recompute=full", "dp=8,zero=3,shard=2", "dp=8,zero=2,mbs=8",
      "dp=8,zero=0,mbs=4", "dp=8,zero=3,recompute=full,offload=params+optimizer"]
MODEL = ["dp=2,tp=4,sp=true,zero=3", "dp=2,tp=4,sp=true,zero=1,recompute=selective",
         "dp=2,pp=4,zero=1,ga=8", "dp=2,pp=4,zero=2,ga=8", "dp=4,pp=2,vpp=2,schedule=interleaved,zero=1,ga=8",
         "dp=4,pp=2,vpp=2,schedule=interleaved,zero=2,ga=8", "dp=2,pp=4,layers=7/9/9/7,zero=1,ga=8",
         "dp=2,pp=4,layers=7/9/9/7,zero=2,ga=8", "dp=4,cp=2,zero=2", "dp=4,cp=2,cp-kind=all-gather,zero=3",
         "dp=2,tp=2,sp=true,pp=2,zero=2,ga=4,recompute=full", "dp=4,tp=2,sp=true,zero=0,recompute=none"]


def read_deepspeed(folder):
    from transformers.integrations import HfDeepSpeedConfig
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig
    import deepspeed.comm as ranks
    from deepspeed.runtime.config import DeepSpeedConfig

    config = str(folder / "ds_config.json")
    HfDeepSpeedConfig(config)
    trainer = HfTrainerDeepSpeedConfig(config)
    arguments = read_trl(folder)
    trainer.trainer_config_process(arguments)  # refuses what contradicts sft.yaml
    trainer.fill_only("optimizer.params.weight_decay", arguments.weight_decay)
    ranks.get_rank, ranks.get_world_size = lambda *_: 0, lambda *_: 8  # as on the machine asked for
    made = DeepSpeedConfig(trainer.config)
    assert made.train_batch_size == trainer.config["train_batch_size"]
    return f"stage {made.zero_optimization_stage}, batch {made.train_batch_size}"


SCRIPTS = {"sft.yaml": "SFTConfig", "dpo.yaml": "DPOConfig", "kto.yaml": "KTOConfig",
           "reward.yaml": "RewardConfig"}


def read_trl(folder):
    import trl
    from trl import ModelConfig, ScriptArguments, TrlParser

    os.environ.pop("ACCELERATE_USE_DEEPSPEED", None)
    script = next(name for name in SCRIPTS if (folder / name).exists())
    text = (folder / script).read_text()
    # Its constructor would start DeepSpeed and ask for a GPU: both are beside the point here.
    plain = folder / "on-cpu.yaml"
    plain.write_text(re.sub(r"^(deepspeed: .*|bf16: true)$", "", text, flags=re.M) + "use_cpu: true\n")
    parser = TrlParser((ScriptArguments, getattr(trl, SCRIPTS[script]), ModelConfig))
    _, training, model = parser.parse_args_and_config(["--config", str(plain)])
    training.bf16 = "bf16: true" in text
    assert model.model_name_or_path
    return training


def read_accelerate(folder):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    made = load_config_from_file(str(folder / "accelerate.yaml"))
    arguments = launch_command_parser().parse_args(
        ["--config_file", str(folder / "accelerate.yaml"), "script.py"])
    arguments, _, _ = _validate_launch_command(arguments)
    read_trl(folder)
    return f"{made.distributed_type.value}, {made.num_processes} processes"


def read_torchtitan(folder):
    from torchtitan.config import ConfigManager

    made = ConfigManager().parse_args(["--job.config_file", str(folder / "torchtitan.toml")])
    p = made.parallelism
    return f"{made.model.name} {made.model.flavor}, tp {p.tensor_parallel_degree}, pp {p.pipeline_parallel_degree}"


def read_megatron(folder):
    import argparse
    import typing

    import typing_extensions

    typing.override = typing_extensions.override
    from megatron.training.arguments import add_megatron_arguments

    words = [w for line in (folder / "megatron.args").read_text().splitlines()
             if not line.startswith("#") for w in line.split()]
    parser = add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    made = parser.parse_args(words)
    return f"tp {made.tensor_model_parallel_size}, pp {made.pipeline_model_parallel_size}"


def read_axolotl(folder):
    import types

    import yaml

    # It builds on CUDA machines only; the schema asks no more than that it can be imported.
    sys.modules.setdefault("ring_flash_attn", types.ModuleType("ring_flash_attn"))
    from axolotl.integrations.liger.args import LigerArgs
    from axolotl.utils.schemas.config import AxolotlInputConfig

    class Config(AxolotlInputConfig, LigerArgs):
        """As axolotl itself puts the arguments of plugins beside its own (utils/config)."""

    made = Config(**yaml.safe_load((folder / "axolotl.yaml").read_text()))
    return f"micro batch {made.micro_batch_size}, sequence {made.sequence_len}"


def read_torchrun(folder):
    import ast

    ast.parse((folder / "fsdp2_train.py").read_text())
    return "Python parses; run it to see it train"


READERS = {"torchrun": read_torchrun, "accelerate": read_accelerate, "deepspeed": read_deepspeed,
           "torchtitan": read_torchtitan, "megatron": read_megatron, "axolotl": read_axolotl}


def questions():
    """Flags: every method on every plan, then what is learned from."""
    for method in ("full", "qlora", "pretrain"):
        for plan in DP + MODEL:
            yield ["--method", method, "--plan", plan]
    for method in ("full", "qlora"):
        for plan in ("dp=8,zero=0", "dp=8,zero=2", "dp=8,zero=3,recompute=full,mbs=2"):
            for preference in ("dpo", "kto", "orpo", "simpo", "reward"):
                yield ["--method", method, "--plan", plan, "--preference", preference]
            yield ["--method", method, "--plan", plan, "--fused-loss"]


def main():
    logging.disable(logging.WARNING)
    program, bad = sys.argv[1], 0
    for target, read in READERS.items():
        good, refused, said = 0, 0, set()
        for flags in questions():
            with tempfile.TemporaryDirectory() as temporary:
                asked = [program, "launch", "llama-3.1-8b", "--gpus", "8xH100-SXM", *flags,
                         "--target", target, "--out", temporary, "--learning-rate", "1e-4"]
                if subprocess.run(asked, capture_output=True).returncode:
                    refused += 1
                    continue
                try:
                    said.add(read(Path(temporary)))
                    good += 1
                except (Exception, SystemExit) as e:
                    bad += 1
                    print(f"{target}: {flags}: {type(e).__name__}: {str(e)[:600]}")
        print(f"{target}: {good} plans read by its own parser, {refused} refused by shardwise; e.g. {sorted(said)[:2]}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
