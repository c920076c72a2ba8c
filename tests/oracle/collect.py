"""Runs the grid and writes catalog/runs/oracle_*.json: one process per configuration."""
import argparse
import datetime
import json
import multiprocessing
import os
import sys
import traceback
from importlib.metadata import version

import torch

import kernels

kernels.pretend()
import grid
import models
import timeline
from case import run_case

PACKAGES = ("torch", "transformers", "peft", "accelerate")
PATHS = {"trainer": "transformers 5 trainer", "fsdp2": "fsdp2", "loop": "fsdp2"}
OPTIMIZERS = {"adamw_fused": "adamw", "sgd_momentum": "sgd-momentum"}


def identifier(case):
    parts = ["oracle", case.model.split("/")[-1], f"l{case.layers}", f"s{case.sequence}",
             f"b{case.batch}", case.path, case.precision, case.method, case.optimizer,
             case.recompute, case.attention]
    if case.method != "full":
        parts += [f"r{case.rank}", case.targets.replace(",", "-")]
    if case.adapter_dropout > 0:
        parts.append(f"drop{case.adapter_dropout}")
    if case.accumulate > 1:
        parts.append(f"ga{case.accumulate}")
    if case.shards > 1:
        parts += [f"shards{case.shards}", f"reduce-{case.reduce}"]
    if case.delta != "kernels":
        parts.append(f"delta-{case.delta}")
    if case.method != "full" and case.frozen == "fp32":
        parts.append("frozen-fp32")
    if case.tensor > 1:
        parts.append(f"tp{case.tensor}" + ("sp" if case.sequence_parallel else ""))
    return "-".join(parts).lower().replace("_", "-").replace(".", "-")


def precision(case):
    """As catalog/reading/training.json reads it."""
    mixed = case.precision == "bf16-mixed"
    wide = case.method == "full" or case.frozen == "fp32"
    if mixed and case.path == "trainer" and wide:
        return "bf16-mixed (fp32 weights)"
    return "bf16" if mixed else case.precision


def training(case):
    out = {"method": case.method, "seq_len": case.sequence, "micro_batch": case.batch,
           "global_batch": case.batch * case.accumulate * case.shards,
           "precision": precision(case),
           "optimizer": OPTIMIZERS.get(case.optimizer, case.optimizer),
           "fused_optimizer": case.optimizer == "adamw_fused",
           "recompute": case.recompute, "flash_attention": case.attention == "sdpa",
           "framework": PATHS[case.path]}
    if case.delta != "kernels":
        out["framework_note"] = (f"transformers {version('transformers')} without "
                                 "flash-linear-attention and causal_conv1d")
    if case.shards > 1:
        out["reduce_dtype"] = case.reduce
    if case.method != "full":
        out |= {"lora_rank": case.rank, "lora_targets": case.targets}
    if case.adapter_dropout > 0:
        out["lora_dropout"] = case.adapter_dropout
    return out


def drops(config):
    """Whether the model's own configuration turns dropout of hidden states on."""
    keys = ("resid_pdrop", "dropout", "hidden_dropout", "resid_dropout", "residual_dropout")
    return any((getattr(config, k, 0) or 0) > 0 for k in keys)


def measured(at, peaks):
    name, (peak, breakdown) = max(peaks.items(), key=lambda p: p[1][0])
    return {"peak_mem_gib": round(peak / timeline.GIB, 6),
            "mem_kind": "torch-allocated, tensors only", "mem_unit_as_published": "GiB",
            "peak_at": name,
            "breakdown_gib": timeline.gib(breakdown),
            "after_forward_gib": timeline.gib(at["forward_end"]),
            "after_load_gib": timeline.gib(at["loaded"]),
            "after_step_gib": timeline.gib(at["idle"]),
            "phase_peaks_gib": {k: round(v[0] / timeline.GIB, 6) for k, v in peaks.items()}}


def record(case):
    if case.delta != "kernels":
        kernels.leave_out("fla", "causal_conv1d")
    at, peaks, config, (parameters, trainable) = run_case(case)
    model = models.dimensions(case.model, config) | {"parameters": parameters}
    ranks = case.shards * case.tensor
    versions = ", ".join(f"{p} {version(p)}" for p in PACKAGES)
    if config.model_type in models.HYBRIDS and case.delta == "kernels":
        versions += f"; {kernels.versions()}, whose kernels are not launched"
    return {"id": identifier(case),
            "source": {"file": "tests/oracle/collect.py",
                       "where": f"{versions}; run {datetime.date.today().isoformat()}"},
            "model": model,
            "hardware": {"gpu": "not stated: fake tensors, no device", "gpus": ranks,
                         "gpus_per_node": min(8, ranks)},
            "training": training(case) | {"trainable_params": trainable,
                                          "dropout": drops(config)},
            "plan": {"dp": case.shards, "tp": case.tensor, "sp": case.sequence_parallel, "pp": 1,
                     "cp": 1, "ep": 1, "zero": 3 if case.shards > 1 else 0},
            "measured": measured(at, peaks)}


def attempt(case):
    sys.stderr = open(os.devnull, "w")
    torch.cuda._is_in_bad_fork = lambda: False  # there is no device whose state a fork could break
    torch.cuda.init()  # which a checkpoint may not find undone
    try:
        return record(case), None
    except Exception as problem:
        return None, f"{identifier(case)}: {type(problem).__name__}: {str(problem)[:200]}\n" + \
            "".join(traceback.format_tb(problem.__traceback__)[-2:])


def load_modules():
    """Everything that the children need, once."""
    import accelerate
    import peft
    from transformers import AutoModelForCausalLM
    import sharding
    import tensor_parallel
    for model in grid.MODELS:
        config = models.configuration(model)
        if config.model_type not in models.HYBRIDS:  # whose kernels ask for the device at once
            AutoModelForCausalLM._model_mapping[type(config)]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("out")
    options.add_argument("--match", default="", help="only identifiers that hold this")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--keep", action="store_true", help="skip what the file already holds")
    asked = options.parse_args()
    done = {}
    if asked.keep and os.path.exists(asked.out):
        done = {r["id"]: r for r in json.load(open(asked.out))}
    wanted = [c for c in grid.cases() if asked.match in identifier(c)]
    left = [c for c in wanted if identifier(c) not in done]
    load_modules()
    print(f"{len(left)} of {len(wanted)} configurations", flush=True)
    with multiprocessing.get_context("fork").Pool(asked.jobs, maxtasksperchild=1) as pool:
        for n, (made, problem) in enumerate(pool.imap(attempt, left, chunksize=1)):
            if problem:
                print(problem, flush=True)
            else:
                done[made["id"]] = made
            if n % 10 == 9 or n + 1 == len(left):
                write(asked.out, [done[identifier(c)] for c in grid.cases() if identifier(c) in done])
                print(n + 1, "of", len(left), flush=True)


def write(path, records):
    text = "[\n" + ",\n".join(json.dumps(r) for r in records) + "\n]\n"
    with open(path + ".new", "w") as out:
        out.write(text)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
