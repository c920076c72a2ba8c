#!/usr/bin/env python3
"""PyTorch operators that Megatron-LM runs on the CPU's account to route tokens to experts.

    python count_expert_operators.py MEGATRON_CHECKOUT

The functions of megatron/core/transformer/moe/moe_utils.py run on small tensors under a dispatch
mode that counts what would launch a kernel (views and empty tensors launch none): the choice of
experts, the balance loss, the counting that MoEAlltoAllTokenDispatcher.preprocess does before an
all-to-all, and permutation where it is not fused. One line of JSON per part.

Needs torch and a checkout of NVIDIA/Megatron-LM; nothing in shardwise's tests runs it.
"""
import importlib.util
import json
import sys
from unittest.mock import MagicMock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

VIEWS = {"view", "_unsafe_view", "reshape", "t", "transpose", "permute", "slice", "select",
         "expand", "detach", "alias", "unsqueeze", "squeeze", "as_strided", "_reshape_alias",
         "split", "unbind", "split_with_sizes", "lift_fresh", "is_same_size", "_local_scalar_dense", "chunk"}
TOKENS, WIDTH, EXPERTS, CHOSEN, RANKS = 64, 32, 128, 8, 8
LOCAL = EXPERTS // RANKS


class Counted(TorchDispatchMode):
    def __init__(self, part):
        super().__init__()
        self.part, self.launches, self.views = part, 0, 0

    def __torch_dispatch__(self, function, kinds, args=(), keywords=None):
        name = function._schema.name.split("::")[-1]
        if name in VIEWS or name.startswith("empty"):
            self.views += 1
        else:
            self.launches += 1
        return function(*args, **(keywords or {}))

    def __exit__(self, *error):
        print(json.dumps({"part": self.part, "launches": self.launches, "views": self.views}))
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


if __name__ == "__main__":
    main()
