"""One configuration: build the real modules without memory, run two steps, say what they held."""
import dataclasses
import gc
import warnings
from contextlib import nullcontext

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import methods
import models
import timeline
import tracker as tracking

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    sequence: int
    batch: int = 1
    layers: int | None = None
    path: str = "trainer"  # trainer | loop | fsdp2 | titan
    precision: str = "bf16-mixed"  # fp32 | bf16-mixed (fp32 weights) | bf16-true
    method: str = "full"  # full | lora | dora
    frozen: str = "bf16"  # what adapters freeze: bf16 | fp32
    rank: int = 16
    adapter_dropout: float = 0.0
    targets: str = "all-linear"
    optimizer: str = "adamw_fused"
    recompute: str = "none"  # none | full
    attention: str = "sdpa"  # sdpa | eager
    delta: str = "kernels"  # kernels | operators: without flash-linear-attention and causal_conv1d
    accumulate: int = 1
    shards: int = 1  # FSDP2 ranks
    tensor: int = 1
    sequence_parallel: bool = False
    reduce: str = "fp32"  # FSDP2: dtype of gradient reduction


def gaussian_topk(mlp, inputs):
    """Gemma3nTextMLP._gaussian_topk, whose one constant PyTorch would compute on the device."""
    multiplier = torch.full((), 1.645, dtype=inputs.dtype, device=inputs.device)
    mean = torch.mean(inputs, dim=-1, keepdim=True)
    deviation = torch.std(inputs, dim=-1, keepdim=True, unbiased=False)
    return torch.nn.functional.relu(inputs - (mean + deviation * multiplier))


def build(case, config):
    from transformers import AutoModelForCausalLM, masking_utils
    from transformers.initialization import no_init_weights

    # Whether positions restart is read from their values, which a fake tensor does not have; they
    # do not, so no mask is made (masking_utils.py, find_packed_sequence_indices).
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    dtype = torch.bfloat16 if case.precision == "bf16-true" or case.method != "full" else torch.float32
    if case.precision == "fp32" or (case.method != "full" and case.frozen == "fp32"):
        dtype = torch.float32
    config.use_cache = False
    if config.model_type == "gemma3n_text":
        from transformers.models.gemma3n.modeling_gemma3n import Gemma3nTextMLP
        Gemma3nTextMLP._gaussian_topk = gaussian_topk
    with torch.device("cuda"), no_init_weights():
        model = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=case.attention)
    model.tie_weights()
    return model


def train_step(case, run, model, optimizer, track):
    for microbatch in range(case.accumulate):
        track.enter("forward")
        ids = torch.zeros(case.batch, case.sequence, dtype=torch.long, device="cuda")
        track.file(ids, "inputs")
        autocast = torch.autocast("cuda", dtype=torch.bfloat16) if run.autocast else nullcontext()
        with run.loss_context():
            loss = run.loss(case, model, ids, autocast)
            track.enter("forward_end")
            track.enter("backward")
            loss.backward()
        del loss, ids
    gc.collect()  # DTensor leaves cycles; when Python finds them is no matter of the model's
    track.enter("step")
    methods.clip(case, model)
    optimizer.step()
    track.enter("step_end")
    for group in optimizer.param_groups:
        for p in group["params"]:
            for value in optimizer.state.get(p, {}).values():
                for v in value if isinstance(value, (list, tuple)) else [value]:
                    if isinstance(v, torch.Tensor) and tracking.local(v).device.type == "cuda":
                        track.file(v, "optimizer_states")
    optimizer.zero_grad(set_to_none=True)
    track.enter("idle")


def run_case(case):
    """(moments, peaks, config, parameters): bytes by category, from two training steps."""
    warnings.filterwarnings("ignore")
    config = models.configuration(case.model, case.layers)
    vocabulary = {config.vocab_size, config.vocab_size // case.tensor}
    tokens = case.batch * case.sequence
    with FakeTensorMode(allow_non_fake_inputs=True):
        track = tracking.Tracker(vocabulary, tokens * config.vocab_size // case.tensor // 2)
        model = build(case, config)
        run = methods.prepare(case, model, track)
        model = run.model
        methods.name_states(model, track)
        with track:
            optimizer = methods.optimizer(case, [p for p in model.parameters() if p.requires_grad])
            track.mark("loaded")
            train_step(case, run, model, optimizer, track)
            track.mark("second_step")
            train_step(case, run, model, optimizer, track)
        counts = (sum(p.numel() for p in model.parameters()),
                  sum(p.numel() for p in model.parameters() if p.requires_grad))
        at, peaks = timeline.moments(track)
    return at, peaks, config, counts
