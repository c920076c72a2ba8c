#include "catalog/vision_tower.hpp"

#include <algorithm>

namespace shardwise {
namespace {

using Count = std::int64_t;

Count linear_values(Count in, Count out) { return in * out + out; }

Count norm(const VisionTower& v, Count width) { return (v.rms_norms ? 1 : 2) * width; }

// Two linears behind a norm over `normed` channels.
Count merger(const VisionTower& v, Count normed) {
  const Count inner = Count{v.patches_per_token} * v.hidden;
  return norm(v, normed) + linear_values(inner, inner) + linear_values(inner, v.text_hidden);
}

}  // namespace

Count VisionTower::block_values() const {
  const Count into = gated_mlp ? 2 : 1;
  return linear_values(hidden, Count{3} * hidden) + linear_values(hidden, hidden) +
         into * linear_values(hidden, ffn) + linear_values(ffn, hidden) + 2 * norm(*this, hidden);
}

// The pooled tokens' norm is an RMS norm (modeling_gemma3.py, Gemma3MultiModalProjector).
Count VisionTower::projector_values() const {
  if (pools) return hidden + Count{hidden} * text_hidden;
  const Count inner = Count{patches_per_token} * hidden;
  return merger(*this, hidden) + deeper_mergers * merger(*this, inner);
}

Count VisionTower::parameters() const {
  const Count patches = Count{patch_values} * hidden + (patch_bias ? hidden : 0);
  return patches + Count{position_rows} * hidden + Count{layers} * block_values() +
         (final_norm ? norm(*this, hidden) : 0) + projector_values();
}

ImagesSeen usual_images(const VisionTower& tower, int sequence) {
  constexpr int usual_tokens = 1024;
  const int tokens = tower.image_tokens > 0 ? tower.image_tokens : usual_tokens;
  return {tower.text_first ? 0 : 1, std::max(1, std::min(tokens, sequence / 2))};
}

}  // namespace shardwise
