// Frozen weights that FSDP and ZeRO-3 do not shard. No such plan is proposed or written; one that
// is asked for is forecast as if they were sharded.
//
// Codes that GPTQ and its kin pack are buffers of their modules (AutoGPTQ @179776bd1d auto_gptq/
// nn_modules/qlinear/qlinear_cuda_old.py:42-58), and FSDP and ZeRO-3 shard parameters alone;
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

#include "simulator/workload.hpp"

namespace shardwise {

// Why they are not sharded at this ZeRO stage; empty where they are, or need not be.
inline std::string_view why_frozen_stay_whole(const Workload& w, int zero_stage) {
  if (!w.freezes_quantized()) return {};
  if (w.adapter.base == Quantization::gptq && zero_stage == 3)
    return "GPTQ's packed weights are buffers, which FSDP and ZeRO-3 leave whole on every GPU";
  // Gradients are joined where parameters are flattened.
  if (w.adapter.base == Quantization::int8 && zero_stage >= 2 &&
      w.framework.sharded.joins_gradients)
    return "bitsandbytes' 8-bit weights are integers, which FSDP1 cannot flatten: say zero=0";
  return {};
}

}  // namespace shardwise
