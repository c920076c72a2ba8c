// Adapters, and weights of 4 or 8 bits that nothing trains.
#pragma once

#include <optional>
#include <string>

#include "catalog/adapter.hpp"
#include "catalog/dtype.hpp"
#include "catalog/lane_loop.hpp"

namespace shardwise {

// LoRA and its kin.
struct FrameworkAdapters {
  DType dtype = DType::fp32;
  std::optional<DType> dtype_quantized;  // the same beside quantised weights
  int rank = 8;
  std::string targets = "all-linear";
  double dropout = 0;
  // A linear and its adapter are one function of autograd that keeps their 16-bit input alone, and
  // an adapted MLP is one that keeps gate and up: backward makes the product of both again and
  // writes gradients over them (Unsloth). PEFT's own modules run where adapters have dropout, and
  // DoRA's.
  bool fused = false;
  // False: its adapters break the compiler's graph, and layers, which it checkpoints, are left to
  // eager operators whole.
  bool compiled = true;
  bool on_experts = false;    // adapters on the MLP are on every routed expert as well
  bool sums_experts = false;  // ... where all experts are one tensor, by their sum with it
  // Projections that read one tensor (q, k and v; gate and up) are one linear with one adapter.
  bool on_joined = false;
  bool on_head = false;  // "head" among the targets is an adapter beside it
  // A module that is trained whole is a copy beside the frozen one (PEFT modules_to_save).
  bool keeps_replaced_modules = false;
};

// A base whose weights are quantised.
struct FrameworkQuantized {
  Quantization kind = Quantization::nf4;  // of qlora
  bool upcasts_unquantized = false;       // prepare_model_for_kbit_training: rest goes to fp32
  bool recasts_tables = false;  // ... but where it computes in bf16 embedding and head go back
  bool head = false;            // the output projection is quantised as well
  // False: the experts of a layer are one tensor, which bitsandbytes passes over: they stay as
  // other weights do that it leaves alone.
  bool experts = true;
  bool widens_whole_experts = false;  // such experts become fp32, unless gradients are sharded
  bool dequantizes_experts_at_once = false;  // a layer's quantised experts are one tensor
  int dequantized_copies = 1;                // 16-bit copies of a quantised weight while it is used
  LaneLoop four_bit_unpacking = LaneLoop::four_bit_lookup;  // `none`: as fast as memory
  bool linear_keeps_input = false;    // bitsandbytes until 2024: its input stays alive
  bool linear_follows_input = false;  // bitsandbytes before 0.47: it computes in the
                                      // format of its first input, asked for or not
};

}  // namespace shardwise
