#!/usr/bin/env python3
"""Tensors [tokens, h] that live while backward goes through checkpointed layers, with FSDP and not.

    python count_kept_inputs.py

A small Llama of transformers, with PEFT's adapters or with all weights trained, is wrapped by
PyTorch's FSDP as accelerate does it (PEFT's own wrap policy; a process group of two ranks that
sends nothing) and takes one step on CPU tensors. A dispatch mode follows every storage of at least
tokens x h 16-bit elements. One line of JSON per case: how many live, counted in tensors of that
size, when backward begins to re-run each layer, from the last to the first.

Needs torch, transformers and peft; nothing in shardwise's tests runs it.
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
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
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


def play(adapters, fsdp, reentrant):
    torch.manual_seed(0)
    made = model(adapters, reentrant)
    made = sharded(made, adapters) if fsdp else made
    living, counts = Living(), []
    for layer in (m for m in made.modules() if isinstance(m, LlamaDecoderLayer)):
        layer.register_forward_pre_hook(lambda *_: counts.append(living.count()))
    words = torch.randint(0, WORDS, (1, TOKENS))
    with living:
        with torch.autocast("cpu", torch.bfloat16):
            loss = made(input_ids=words, labels=words).loss
        loss.backward()
    print(json.dumps({"adapters": adapters, "fsdp": fsdp, "reentrant": reentrant,
                      "torch": torch.__version__, "living": counts[LAYERS:]}), flush=True)


warnings.simplefilter("ignore")
os.environ["FSDP_TRANSFORMER_CLS_TO_WRAP"] = "LlamaDecoderLayer"
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
for adapters in (True, False):
    for fsdp in (True, False):
        for reentrant in (True, False):
            play(adapters, fsdp, reentrant)
