#!/usr/bin/env python3
"""CPU time of Megatron Core around each weight, in operators: its gradient's hook and its step.

    python -O measure_megatron_tensors.py MEGATRON_CHECKOUT TRANSFORMER_ENGINE_CHECKOUT

DistributedDataParallel and the distributed optimizer of megatron/core run on small tensors over a
process group that sends nothing, with Transformer Engine's FusedAdam, whose kernels are replaced by
something that does nothing, as are norm and scaling of all gradients at once. What a backward pass
takes longer with the hooks than without is the hook's; what a step takes longer with more tensors
that a rank steps is the step's; and a weight kept in MXFP8 is made again after it by copy_ (before
megatron/core's copy_tensors_to_quantized_params of 2026), whose Python is timed too. Beside them
forward and backward of a small Llama, whose operators are counted: one line of JSON tells
microseconds and operators, a ratio of two times of one machine.

Needs torch, transformers, peft, both checkouts; nothing in shardwise's tests runs it.
"""
import json
import logging
import sys
import time
import warnings

import torch

from measure_grouped_products import grouped_linear
from measure_optimizer_calls import least, seconds_per_operator

RANKS, HIDDEN = 8, 16


class Stream:
    def __init__(self, *_, **__):
        pass

    def wait_stream(self, _):
        pass


def on_cpu(function):
    def call(*args, **kwargs):
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)
    return call


def imitate_cuda():
    for name in ("tensor", "zeros", "empty", "full", "ones"):
        setattr(torch, name, on_cpu(getattr(torch, name)))
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.current_stream = lambda *_: Stream()
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    kind = torch.Tensor.type
    torch.Tensor.type = lambda tensor, *a, **k: (kind(tensor, *a, **k) if a else
                                                 kind(tensor).replace("torch.", "torch.cuda."))


def start(checkout):
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    sys.path.insert(0, checkout)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    from megatron.core import parallel_state
    parallel_state.initialize_model_parallel(create_gloo_process_groups=False)


def take_fused_adam(checkout):
    import megatron.core.optimizer as optimizer
    import megatron.core.optimizer.clip_grads as clip
    on_gpu, available = torch.Tensor.is_cuda, torch.cuda.is_available
    grouped_linear(checkout)
    torch.Tensor.is_cuda, torch.cuda.is_available = on_gpu, available
    import transformer_engine.pytorch.optimizers.fused_adam as fused
    fused.multi_tensor_applier = lambda *_, **__: None
    optimizer.Adam, optimizer.USING_PYTORCH_OPTIMIZER = fused.FusedAdam, False
    clip.multi_tensor_applier = lambda *_, **__: (torch.zeros(1), None)


class Weights(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.all = torch.nn.ParameterList(
            torch.nn.Parameter(torch.randn(8, HIDDEN, dtype=torch.bfloat16)) for _ in range(tensors))


class Summed(torch.autograd.Function):
    """Weight gradients that are in main_grad already, as Transformer Engine leaves them."""

    @staticmethod
    def forward(ctx, x, *weights):
        ctx.weights = weights
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        nothing = torch.zeros(8, HIDDEN, dtype=torch.bfloat16)
        for weight in ctx.weights:
            weight.grad_added_to_main_grad = True
        return (gradient, *(nothing.detach() for _ in ctx.weights))


def wrapped(tensors):
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.transformer import TransformerConfig
    shape = TransformerConfig(num_layers=1, hidden_size=8, num_attention_heads=1, bf16=True,
                              params_dtype=torch.bfloat16)
    config = DistributedDataParallelConfig(
        overlap_grad_reduce=True, overlap_param_gather=True, use_distributed_optimizer=True,
        grad_reduce_in_fp32=True, bucket_size=10**9)
    module = Weights(tensors)
    return module, DistributedDataParallel(shape, config, module)


def backward_seconds(module, repetitions):
    weights = list(module.all)

    def once():
        x = torch.ones(1, requires_grad=True)
        y = Summed.apply(x * 1, *weights)
        gradient = torch.ones_like(y)
        begin = time.process_time()
        y.backward(gradient)
        return time.process_time() - begin

    return least(once, repetitions)


def hook_seconds(tensors, repetitions):
    plain = backward_seconds(Weights(tensors), repetitions)
    module, ddp = wrapped(tensors)
    for group in ddp.bucket_groups:
        group.is_last_microbatch = False
    return (backward_seconds(module, repetitions) - plain) / tensors


def step_seconds(tensors, repetitions):
    """Of one step, and how many tensors this rank steps in it."""
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    _, ddp = wrapped(tensors)
    optimizer = get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16,
        use_distributed_optimizer=True, clip_grad=1.0, overlap_param_gather=True), [ddp])
    owned = sum(len(group["params"]) for one in optimizer.chained_optimizers
                for group in one.optimizer.param_groups)

    def once():
        begin = time.process_time()
        ddp.zero_grad_buffer()
        optimizer.zero_grad()
        optimizer.step()
        return time.process_time() - begin

    once()
    return least(once, repetitions), owned


def narrow_seconds(tensors, repetitions):
    """Of making one weight in MXFP8 again."""
    import transformer_engine.pytorch.tensor.mxfp8_tensor as mxfp8
    import transformer_engine_torch as extension
    extension.quantize = lambda source, quantizer, out=None, *_: out
    mxfp8.MXFP8Quantizer.update_quantized = (
        lambda self, source, out, noop_flag=None: extension.quantize(source, self, out, noop_flag))
    part = torch.zeros(32, 32, dtype=torch.uint8)
    quantizer = mxfp8.MXFP8Quantizer(extension.DType.kFloat8E4M3)
    weights = [torch.nn.Parameter(mxfp8.MXFP8Tensor(
        shape=(32, 32), dtype=torch.bfloat16, rowwise_data=part, rowwise_scale_inv=part,
        columnwise_data=part, columnwise_scale_inv=part, quantizer=quantizer,
        fp8_dtype=quantizer.dtype, with_gemm_swizzled_scales=False, requires_grad=False),
        requires_grad=False) for _ in range(tensors)]
    buffer = torch.zeros(32 * 32 * tensors, dtype=torch.bfloat16)

    def once():
        begin = time.process_time()
        for i, weight in enumerate(weights):
            piece = buffer.view(-1)[i * 1024:(i + 1) * 1024]
            weight.data.copy_(piece.view(weight.data.shape))
        return time.process_time() - begin

    return least(once, repetitions) / tensors


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    operator = seconds_per_operator(40)
    imitate_cuda()
    start(sys.argv[1])
    hook = hook_seconds(400, 40)
    take_fused_adam(sys.argv[2])
    few, many = step_seconds(400, 20), step_seconds(2400, 20)
    step = (many[0] - few[0]) / (many[1] - few[1])
    line = {"us_per_operator": round(1e6 * operator, 1)}
    for name, seconds in (("hook", hook), ("step", step), ("narrow", narrow_seconds(400, 20))):
        line[name + "_us"] = round(1e6 * seconds, 1)
        line[name + "_operators"] = round(seconds / operator, 2)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
