"""How users run a model: HF Trainer's step, a plain loop, FSDP2, tensor parallel, LoRA."""
import sys
from contextlib import nullcontext
from unittest import mock
from types import MethodType

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor


class Run:
    def __init__(self, model):
        self.model = model
        self.autocast = False
        self.loss_context = nullcontext
        self.loss = trainer_loss


def trainer_loss(case, model, ids, autocast):
    """Trainer.compute_loss: labels inside the model, the outputs dropped when it returns."""
    with autocast:
        items = torch.ones((), device="cuda", dtype=torch.long)
        out = model(input_ids=ids, labels=ids, num_items_in_batch=items)
        return out["loss"] / 1


def loop_loss(case, model, ids, autocast):
    """A plain loop: fp32 cross-entropy over the flattened logits (as torchtitan's)."""
    with autocast:
        positions = {}
        if case.tensor > 1:  # of the whole sequence, also where the residual stream is cut
            positions["position_ids"] = torch.arange(ids.shape[1], device="cuda")[None]
        logits = model(input_ids=ids, **positions).logits
    loss = F.cross_entropy(logits.flatten(0, 1).float(), ids.flatten(0, 1))
    del logits
    return loss


def checkpoint(case, model):
    if case.recompute == "full":
        model.gradient_checkpointing_enable()
        model.train()


def adapters(case, model):
    from peft import LoraConfig, get_peft_model

    targets = case.targets if case.targets == "all-linear" else case.targets.split(",")
    # Adapters are made where they belong: Module.to() cannot swap a fake parameter. Their dtype
    # is fp32 in the end (autocast_adapter_dtype).
    stay = mock.patch.object(torch.nn.Module, "to", lambda module, *args, **kwargs: module)
    with torch.device("cuda"), stay:
        return get_peft_model(model, LoraConfig(
            r=case.rank, lora_alpha=16, lora_dropout=case.adapter_dropout, target_modules=targets,
            task_type="CAUSAL_LM", use_dora=case.method == "dora"))


def outputs_to_fp32(model):
    from accelerate.utils.operations import convert_outputs_to_fp32

    model.forward = MethodType(convert_outputs_to_fp32(model.forward.__func__), model)


def prepare(case, model, track):
    model.train()
    if case.method != "full":
        model.enable_input_require_grads() if case.recompute == "full" else None
        model = adapters(case, model)
        model.train()
    run = Run(model)
    run.autocast = case.precision == "bf16-mixed" and case.path in ("trainer", "loop")
    run.loss = trainer_loss if case.path == "trainer" else loop_loss
    checkpoint(case, model)
    if case.tensor > 1:
        import tensor_parallel
        tensor_parallel.apply(case, run)
    if case.path == "trainer" and run.autocast:
        outputs_to_fp32(model)
    if case.shards > 1:
        import sharding
        sharding.apply(case, run, track)
    return run


def name_states(model, track):
    for name, p in model.named_parameters():
        adapter = "lora_" in name
        track.file(p, "adapters" if adapter else "weights")
    for b in model.buffers():
        if b.device.type == "cuda":
            track.file(b, "weights")
    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(lambda p: track.file(p.grad, "gradients"))


def optimizer(case, parameters):
    parameters = groups(parameters)
    if case.optimizer == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=1e-3, scale_parameter=False, relative_step=False)
    # Which kernels step a parameter is asked of its type; a fake one stands for a plain one.
    for rule in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
        types = sys.modules[rule]._foreach_supported_types
        if FakeTensor not in types:
            types.append(FakeTensor)
    # The step count of a fake tensor has no value to read.
    sys.modules["torch.optim.adam"]._get_value = lambda x: 1.0
    rows = {
        "adamw_fused": lambda: torch.optim.AdamW(parameters, fused=True),
        "adamw": lambda: torch.optim.AdamW(parameters),
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.1),
        "sgd_momentum": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    }
    return rows[case.optimizer]()


def groups(parameters):
    """Plain and distributed tensors cannot be stepped by one kernel."""
    cut = [p for p in parameters if isinstance(p, DTensor)]
    plain = [p for p in parameters if not isinstance(p, DTensor)]
    return [{"params": g} for g in (cut, plain) if g]


def clip(case, model):
    if case.tensor > 1:
        return  # a few norms; mixed plain and distributed gradients need code of the user's own
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
