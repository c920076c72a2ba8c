// Frozen weights that lie whole on every GPU whatever is sharded.
//
// Codes that GPTQ and its kin pack are buffers of their modules (AutoGPTQ @179776bd1d auto_gptq/
// nn_modules/qlinear/qlinear_cuda_old.py:42-58), and FSDP and ZeRO-3 shard parameters alone;
// LLaMA-Factory stops there ("DeepSpeed ZeRO-3 or FSDP is incompatible with PTQ-quantized models.",
// its issue 6898). No such plan is proposed. One that is asked for is forecast as with
// fms-acceleration, which makes parameters of them and views these as codes before each call
// (@25171a048c plugins/accelerated-peft/src/fms_acceleration_peft/autogptq_utils.py,
// patch_forward_to_view_attributes_before_call).
#pragma once

#include <string_view>

#include "simulator/workload.hpp"

namespace shardwise {

inline bool leaves_packed_whole(const Workload& w) {
  return w.freezes_quantized() && w.adapter.base == Quantization::gptq;
}

inline constexpr std::string_view told_packed_whole =
    "GPTQ's packed weights are buffers, which FSDP and ZeRO-3 leave whole on every GPU";

}  // namespace shardwise
