#!/usr/bin/env python3
"""PyTorch operators that Megatron-LM runs on the CPU's account to route tokens to experts.

    python count_expert_operators.py MEGATRON_CHECKOUT

The functions of megatron/core/transformer/moe/moe_utils.py run on small tensors under a dispatch
mode that counts what would launch a kernel (views and empty tensors launch none): the choice of
experts, the balance loss, the counting that MoEAlltoAllTokenDispatcher.preprocess does before an
all-to-all, permutation where it is not fused, and the weighted bias of the second
product (TEGroupedMLP._apply_bias of experts.py, with the bytes that it moves per element of its
input), and the clamps before a fused activation (weighted_bias_quick_geglu_impl of
fusions/fused_bias_geglu.py, per element of the result; a tensor made of a number for the GPU is a copy
that blocks). One line of JSON per part.

Needs torch and a checkout of NVIDIA/Megatron-LM; nothing in shardwise's tests runs it.
"""
import importlib.util
import json
import sys
from unittest.mock import MagicMock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

VIEWS = {"view", "_unsafe_view", "reshape", "t", "transpose", "permute", "slice", "select",
         "expand", "detach", "alias", "unsqueeze", "squeeze", "as_strided", "_reshape_alias",
         "split", "unbind", "split_with_sizes", "lift_fresh", "is_same_size", "_local_scalar_dense", "chunk"}
TOKENS, WIDTH, EXPERTS, CHOSEN, RANKS = 64, 32, 128, 8, 8
LOCAL = EXPERTS // RANKS


def stored(tensor):
    """Bytes in memory: an expanded dimension is there once."""
    count = 1
    for length, stride in zip(tensor.shape, tensor.stride()):
        count *= length if stride else 1
    return count * tensor.element_size()


class Counted(TorchDispatchMode):
    def __init__(self, part, elements=0):
        super().__init__()
        self.part, self.launches, self.views = part, 0, 0
        self.elements, self.moved = elements, 0

    def __torch_dispatch__(self, function, kinds, args=(), keywords=None):
        name = function._schema.name.split("::")[-1]
        result = function(*args, **(keywords or {}))
        if name in VIEWS or name.startswith("empty"):
            self.views += 1
            return result
        self.launches += 1
        for value in tree_flatten((args, keywords or {}, result))[0]:
            self.moved += stored(value) if isinstance(value, torch.Tensor) else 0
        return result

    def __exit__(self, *error):
        line = {"part": self.part, "launches": self.launches, "views": self.views}
        if self.elements:
            line["bytes_per_element"] = round(self.moved / self.elements, 1)
        print(json.dumps(line))
        return super().__exit__(*error)


class StandIns:
    """Every module of Megatron-LM but the one that is run."""

    def __init__(self, checkout):
        self.checkout = checkout

    def find_spec(self, name, path=None, target=None):
        if name == "megatron.core.transformer.moe.moe_utils":
            file = f"{self.checkout}/{name.replace('.', '/')}.py"
            return importlib.util.spec_from_file_location(name, file)
        if name.split(".")[0] in ("megatron", "transformer_engine"):
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


def routed(moe, logits):
    with Counted("choice of experts"):
        probabilities, chosen = moe.topk_routing_with_score_function(
            logits, CHOSEN, use_pre_softmax=False, num_groups=None, group_topk=None,
            scaling_factor=None, score_function="softmax", expert_bias=None, fused=False)
    with Counted("balance loss"):
        of_loss, scores = moe.compute_routing_scores_for_aux_loss(logits, CHOSEN, "softmax",
                                                                  fused=False)
        loss = moe.switch_load_balancing_loss_func(
            probs=scores, tokens_per_expert=of_loss.sum(dim=0), total_num_tokens=TOKENS,
            topk=CHOSEN, num_experts=EXPERTS, moe_aux_loss_coeff=1e-3, fused=False)
        return moe.MoEAuxLossAutoScaler.apply(probabilities, loss), chosen


def count_tokens(chosen):
    """As MoEAlltoAllTokenDispatcher.preprocess, a repetition for the gather from all ranks."""
    own = chosen.sum(dim=0).long()
    sent = own.reshape(RANKS, LOCAL).sum(axis=1)
    every = own.repeat(RANKS).reshape(RANKS, 1, EXPERTS).transpose(0, 1)
    local = every[:, :, 0:LOCAL].contiguous()
    received = local.sum(axis=2)
    for copied in (local.sum(dim=(0, 1)), sent, received[0], received.sum(axis=1), local):
        copied.clone()  # to the host


def weigh_bias(kind, experts):
    """The expression of TEGroupedMLP._apply_bias, with probabilities of one format or the other."""
    rows, name = TOKENS * experts, str(kind).split(".")[-1]
    output = torch.randn(rows, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    biases = [torch.randn(WIDTH, dtype=torch.bfloat16, requires_grad=True) for _ in range(experts)]
    weights = torch.rand(rows, 1, dtype=kind, requires_grad=True)
    sizes = [TOKENS] * experts
    with Counted(f"weighted bias of {experts} experts, {name}", output.numel()):
        pieces = zip(torch.split(output, sizes), biases, torch.split(weights, sizes))
        summed = torch.cat([t + b * p for t, b, p in pieces]).view(output.shape).to(output.dtype)
    gradient = torch.ones_like(summed)
    with Counted("backward of that", output.numel()):
        summed.backward(gradient)


def clamp_activation(limit=7.0):
    """The expression of weighted_bias_quick_geglu_impl before its own function."""
    both = torch.randn(TOKENS, 2 * WIDTH, dtype=torch.bfloat16, requires_grad=True)
    with Counted("clamps of an activation", TOKENS * WIDTH):
        gate, linear = both.chunk(2, -1)
        clamped = torch.cat((gate.clamp(min=None, max=limit),
                             linear.clamp(min=-limit, max=limit)), -1)
    gradient = torch.ones_like(clamped)
    with Counted("backward of that", TOKENS * WIDTH):
        clamped.backward(gradient)


def main():
    sys.meta_path.insert(0, StandIns(sys.argv[1]))
    import megatron.core.transformer.moe.moe_utils as moe
    moe.is_batch_invariant_mode_enabled = lambda *_: False
    logits = torch.randn(TOKENS, EXPERTS, requires_grad=True)
    probabilities, chosen = routed(moe, logits)
    with Counted("counting for an all-to-all"):
        count_tokens(chosen)
    gradient = torch.ones(TOKENS, EXPERTS)
    with Counted("backward of choice and loss"):
        probabilities.backward(gradient, retain_graph=True)
    tokens = torch.randn(TOKENS, WIDTH, requires_grad=True)
    sizes = torch.full((EXPERTS,), TOKENS * CHOSEN // EXPERTS)
    order = torch.arange(EXPERTS).reshape(-1, LOCAL).T.ravel()
    with Counted("permutation and back, not fused"):
        moved, weights, places = moe.permute(tokens, chosen, probs=probabilities.detach(),
                                             num_out_tokens=TOKENS * CHOSEN, fused=False)[:3]
        moved, _ = moe.sort_chunks_by_idxs(moved, sizes, order, probs=weights, fused=False)
        moved, _ = moe.sort_chunks_by_idxs(moved, sizes, order, fused=False)
        back = moe.unpermute(moved, places, restore_shape=tokens.shape, routing_map=chosen,
                             fused=False)
    gradient = torch.ones(TOKENS, WIDTH)
    with Counted("backward of that"):
        back.backward(gradient)
    for kind in (torch.float32, torch.bfloat16):
        for experts in (1, 16):
            weigh_bias(kind, experts)
    clamp_activation()


if __name__ == "__main__":
    main()
