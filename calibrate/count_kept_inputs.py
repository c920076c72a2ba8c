#!/usr/bin/env python3
"""Tensors [tokens, h] that live while backward goes through checkpointed layers, with FSDP1 and not.

    python count_kept_inputs.py

A small Llama of transformers, with PEFT's adapters or with all weights trained, is wrapped by
PyTorch's FSDP as accelerate does it (PEFT's own wrap policy; a process group of two ranks that
sends nothing) and takes one step on CPU tensors. A dispatch mode follows every storage of at least
tokens x h 16-bit elements. One line of JSON per case: how many live, counted in tensors of that
size, when backward begins to re-run each layer, from the last to the first, and how often backward
gathers. Checkpoints lie inside of FSDP's units, as transformers has them since 4.52 (Llama), or
around them, as it had them before.

Needs torch, transformers (4.52 or later) and peft; nothing in shardwise's tests runs it.
"""
import json
import os
import warnings
import weakref
from functools import partial

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from peft.utils.other import fsdp_auto_wrap_policy
from torch.distributed.fsdp import FullyShardedDataParallel, _flat_param
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils._pytree import tree_iter
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

LAYERS, HIDDEN, TOKENS, WORDS = 8, 128, 8192, 1000
ONE = 2 * TOKENS * HIDDEN  # [B]


class Living(TorchDispatchMode):
    """Bytes of the storages that operators opened and that are still there, by storage."""

    def __init__(self):
        super().__init__()
        self.bytes = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_iter(out):
            if isinstance(t, torch.Tensor):
                self.follow(t.untyped_storage())
        return out

    def follow(self, storage):
        key = id(storage)
        if key in self.bytes and self.bytes[key][0]() is storage:
            return
        gone = weakref.ref(storage, lambda _: self.bytes.pop(key, None))
        self.bytes[key] = (gone, storage.size())

    def count(self):
        return sum(n for there, n in self.bytes.values() if there() is not None and n >= ONE) / ONE


def model(adapters, reentrant):
    config = LlamaConfig(num_hidden_layers=LAYERS, hidden_size=HIDDEN, intermediate_size=2 * HIDDEN,
                         num_attention_heads=4, num_key_value_heads=2, vocab_size=WORDS,
                         use_cache=False)
    made = LlamaForCausalLM(config).to(torch.bfloat16)
    if adapters:
        linears = ["q_proj", "k_proj", "v_proj", "o_proj"]
        made = get_peft_model(made, LoraConfig(r=8, target_modules=linears))
    made.gradient_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:
        made.enable_input_require_grads()
    return made.train()


def sharded(made, adapters):
    layer = partial(transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer})
    policy = fsdp_auto_wrap_policy(made) if adapters else layer
    return FullyShardedDataParallel(made, auto_wrap_policy=policy, device_id=torch.device("cpu"))


class Around(torch.nn.Module):
    """A checkpoint around what may be a unit of FSDP."""

    def __init__(self, unit, reentrant):
        super().__init__()
        self.unit, self.reentrant = unit, reentrant

    def forward(self, *args, **kwargs):
        run = partial(self.unit.__call__, **kwargs)
        return checkpoint(run, *args, use_reentrant=self.reentrant)


def checkpoint_around(made, reentrant):
    for layers in (m for m in made.modules() if isinstance(m, torch.nn.ModuleList)):
        for i, layer in enumerate(layers):
            layers[i] = Around(layer, reentrant)


def play(adapters, fsdp, reentrant, around):
    torch.manual_seed(0)
    made = model(adapters, reentrant)
    layers = [m for m in made.modules() if isinstance(m, LlamaDecoderLayer)]
    for layer in layers:
        layer.gradient_checkpointing = not around
    made = sharded(made, adapters) if fsdp else made
    if around:
        checkpoint_around(made, reentrant)
    living, counts = Living(), []
    for layer in layers:
        layer.self_attn.register_forward_pre_hook(lambda *_: counts.append(living.count()))
    words = torch.randint(0, WORDS, (1, TOKENS))
    with living:
        with torch.autocast("cpu", torch.bfloat16):
            loss = made(input_ids=words, labels=words).loss
        gathers.clear()
        loss.backward()
    print(json.dumps({"adapters": adapters, "fsdp": fsdp, "reentrant": reentrant,
                      "around": around, "torch": torch.__version__, "living": counts[LAYERS:],
                      "gathers": len(gathers)}), flush=True)


def count_gathers():
    gather = _flat_param.FlatParamHandle._all_gather_flat_param

    def counted(*args):
        gathers.append(args)
        return gather(*args)

    _flat_param.FlatParamHandle._all_gather_flat_param = counted


gathers = []
count_gathers()
warnings.simplefilter("ignore")
os.environ["FSDP_TRANSFORMER_CLS_TO_WRAP"] = "LlamaDecoderLayer"
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
for adapters in (True, False):
    for fsdp in (True, False):
        for reentrant in (True, False):
            for around in (True, False):
                play(adapters, fsdp, reentrant, around)
