// Frozen weights that FSDP and ZeRO-3 neither shard nor offload. No such plan is proposed or
// written; one that is asked for is forecast as if they did, and says so.
//
// Codes that GPTQ and its kin pack are buffers of their modules (AutoGPTQ @179776bd1d auto_gptq/
// nn_modules/qlinear/qlinear_cuda_old.py:42-58), and FSDP and ZeRO-3 shard and offload parameters
// alone (torch/distributed/fsdp/_runtime_utils.py, _lazy_init: buffers go to the device that
// computes);
// LLaMA-Factory stops there ("DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.",
// its issue 6898). fms-acceleration makes parameters of them and views these as codes before each
// call (@25171a048c plugins/accelerated-peft/src/fms_acceleration_peft/autogptq_utils.py,
// patch_forward_to_view_attributes_before_call).
//
// bitsandbytes' 8-bit weights are parameters of integers, which FSDP1 does not flatten
// (torch/distributed/fsdp/_flat_param.py, _validate_tensors_to_flatten; huggingface/peft issue
// 2833, bitsandbytes issue 1709, axolotl issue 2250). FSDP2 has no flat parameters: axolotl trains
// so.
#pragma once

#include <string_view>

#include "simulator/parallel_plan.hpp"
#include "simulator/workload.hpp"

namespace shardwise {

// Why they stay whole although the plan shards or offloads the weights; empty where they do not, or
// one rank has them all anyway.
inline std::string_view why_frozen_stay_whole(const Workload& w, const ParallelPlan& plan) {
  if (!w.freezes_quantized()) return {};
  const bool to_part = plan.shard_ranks() > 1 || plan.offload.parameters;
  if (w.adapter.base == Quantization::gptq && to_part && shards_weights(w.framework, plan))
    return "GPTQ's packed weights are buffers, which FSDP and ZeRO-3 leave whole on every GPU";
  // Gradients are joined where parameters are flattened, over one rank as well.
  if (w.adapter.base == Quantization::int8 && plan.zero_stage >= 2 &&
      w.framework.sharding.parameters.joins_gradients)
    return "bitsandbytes' 8-bit weights are integers, which FSDP1 cannot flatten: say zero=0";
  return {};
}

// The same of any plan with several ranks at this ZeRO stage.
inline std::string_view why_frozen_stay_whole(const Workload& w, int zero_stage) {
  ParallelPlan plan;
  plan.data = 2;
  plan.zero_stage = zero_stage;
  return why_frozen_stay_whole(w, plan);
}

}  // namespace shardwise
