"""FSDP2: every block a unit, the rest of the model the root's, as its documentation shows.

The tensors that its parameter groups open are named by where they are opened: all-gather buffers
and unsharded parameters are `gathered_parameters`, reduce-scatter buffers `communication`.
"""
import os

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from torch.testing._internal.distributed.fake_pg import FakeStore

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def start(ranks):
    if not dist.is_initialized():
        os.environ["LOCAL_RANK"] = "0"
        dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def mesh(case):
    start(case.shards * case.tensor)
    meshes_of_real_tensors()
    sizes = {"dp": case.shards, "tp": case.tensor}
    used = {k: n for k, n in sizes.items() if n > 1}
    with unset_fake_temporarily():
        return init_device_mesh("cuda", tuple(used.values()), mesh_dim_names=tuple(used))


def meshes_of_real_tensors():
    """A mesh reads its own ranks, which a fake tensor cannot tell."""
    plain = DeviceMesh.__init__

    def make(*args, **kwargs):
        with unset_fake_temporarily():
            plain(*args, **kwargs)

    DeviceMesh.__init__ = make


def blocks(model):
    """The longest list of modules: the decoder's blocks."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len)


def scoped(track, name, category):
    plain = getattr(FSDPParamGroup, name)

    def call(group, *args, **kwargs):
        track.scope.append(category)
        try:
            return plain(group, *args, **kwargs)
        finally:
            track.scope.pop()
            if category == "communication":
                file_gradients(group, track)

    setattr(FSDPParamGroup, name, call)


def file_gradients(group, track):
    for p in group.fsdp_params:
        grad = p.sharded_param.grad
        if grad is not None:
            track.file(grad, "gradients")


def apply(case, run, track):
    for name in ("unshard", "wait_for_unshard"):
        scoped(track, name, "gathered_parameters")
    scoped(track, "post_backward", "communication")
    options = {"mesh": mesh(case)["dp"]}
    if case.precision == "bf16-mixed":
        options["mp_policy"] = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=DTYPES[case.reduce])
    for block in blocks(run.model):
        fully_shard(block, **options)
    fully_shard(run.model, **options)
