// Gradient compression: what data-parallel ranks send instead of their gradients, one row each.
//
//   bf16        half of an fp32 gradient, all-reduced
//   fp8         a quarter, with a scale per bucket
//   1bit        signs: an all-to-all of 1 bit per element, each rank averages its part, and an
//               all-gather of 1 bit per element; what is lost is added to the next gradient
//   powersgd-R  of an n x m matrix M only P = M Q and Q = M' P, R (n + m) elements; what is no
//               matrix goes uncompressed; error feedback likewise
//
// `passes`: bytes that the kernels around the collectives read and write per gradient element, as
// multiples of the gradient's own width plus a part that does not depend on it.
//
// Sources: PyTorch torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py (steps 3.1 to 3.7
// of its description and the error feedback around them; PowerSGD: arXiv 1905.13727); DeepSpeed
// deepspeed/runtime/comm/nccl.py, compressed_allreduce (1-bit Adam: arXiv 2102.02888). The traffic
// is counted from the operators of those files. bf16 and fp8 are assumed: a pass to narrow and one
// to widen, and for fp8 one for the largest value.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace shardwise {

enum class CompressionKind { cast, signs, low_rank };

struct GradientCompression {
  std::string_view name;
  CompressionKind kind = CompressionKind::cast;
  double wire_bytes = 0;    // per element; of low rank: of an element of P or Q, where given
  double passes = 0;        // x the gradient's bytes per element
  double passes_fixed = 0;  // bytes per element
  int rank = 0;             // of low rank
};

inline constexpr std::array<GradientCompression, 4> gradient_compressions{{
    // Narrow: read, write 2. Divide: read and write 2. Widen: read 2, write.
    {"bf16", CompressionKind::cast, 2.0, 2, 8, 0},
    {"fp8", CompressionKind::cast, 1.0, 3, 2, 0},
    // On fp32: add the old error 12, norm 4, new error by eight operators 62, signs and packing 22,
    // averaging what came 33, unpacking the result 38.
    {"1bit", CompressionKind::signs, 1.0 / 8, 0, 171, 0},
    // Add the old error 3, copy 2, read M twice, write M, new error 3: eleven times its width.
    {"powersgd", CompressionKind::low_rank, 0, 11, 0, 1},
}};

// "bf16", "fp8", "1bit", "powersgd-4". Nothing for "none" and for what is no name.
constexpr std::optional<GradientCompression> gradient_compression(std::string_view text) {
  constexpr std::string_view low_rank = "powersgd-";
  for (GradientCompression row : gradient_compressions) {
    if (row.kind != CompressionKind::low_rank && row.name == text) return row;
    if (row.kind != CompressionKind::low_rank || !text.starts_with(low_rank)) continue;
    const std::string_view digits = text.substr(low_rank.size());
    row.rank = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || row.rank > 1000) return std::nullopt;
      row.rank = 10 * row.rank + (c - '0');
    }
    if (row.rank < 1 || row.rank > 1024) return std::nullopt;
    return row;
  }
  return std::nullopt;
}

}  // namespace shardwise
