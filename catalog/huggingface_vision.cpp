#include "catalog/huggingface_vision.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "catalog/transformer_flaws.hpp"

namespace shardwise {
namespace {

constexpr int most_pixels = 100'000;

// What the class of a family builds, and its defaults for what a file leaves out (transformers
// 5.23.0, models/*/configuration_*.py and modeling_*.py of the same name).
struct TowerFamily {
  std::string_view wrapper;
  std::string_view hidden_key;
  VisionTower tower;  // with the class's defaults
  int patch = 14, merge = 2, window = 0;
  bool deepens = false;
};

VisionTower defaults(int layers, int hidden, int ffn) {
  VisionTower v;
  v.layers = layers;
  v.hidden = hidden;
  v.heads = 16;
  v.ffn = ffn;
  return v;
}

VisionTower gated(VisionTower v) {
  v.gated_mlp = v.rms_norms = true;
  return v;
}

VisionTower positioned(VisionTower v) {
  v.patch_bias = true;
  v.position_rows = 2304;
  return v;
}

const std::array<TowerFamily, 4>& families() {
  static const VisionTower qwen3 = positioned(defaults(27, 1152, 4304));
  static const std::array<TowerFamily, 4> rows{{
      {"qwen2_vl", "embed_dim", defaults(32, 1280, 5120)},
      {"qwen2_5_vl", "hidden_size", gated(defaults(32, 1280, 3420)), 14, 2, 112},
      {"qwen3_vl", "hidden_size", qwen3, 16, 2, 0, true},
      {"qwen3_vl_moe", "hidden_size", qwen3, 16, 2, 0, true},
  }};
  return rows;
}

// SigLIP before a mean over neighbours (configuration_siglip.py, modeling_gemma3.py).
// 896 x 896 pixels and 256 tokens per image are what the configurations of all sizes have.
std::optional<VisionTower> read_siglip(JsonReader& config, JsonReader r, int text_hidden) {
  VisionTower v;
  v.layers = r.maybe_integer("num_hidden_layers", 1, most_layers).value_or(27);
  v.hidden = r.maybe_integer("hidden_size", 1, most_width).value_or(1152);
  v.heads = r.maybe_integer("num_attention_heads", 1, most_heads).value_or(16);
  v.ffn = r.maybe_integer("intermediate_size", 1, most_width).value_or(4304);
  const int patch = r.maybe_integer("patch_size", 1, 500).value_or(14);
  const int side = r.maybe_integer("image_size", patch, most_pixels).value_or(896) / patch;
  v.image_tokens = config.maybe_integer("mm_tokens_per_image", 1, most_pixels).value_or(256);
  v.position_rows = side * side;
  if (v.position_rows % v.image_tokens != 0) {
    config.problem("mm_tokens_per_image",
                   "a divisor of the patches of an image, " + std::to_string(v.position_rows));
    return {};
  }
  v.patches_per_token = v.position_rows / v.image_tokens;
  v.patch_values = 3 * patch * patch;
  v.patch_bias = v.final_norm = v.pools = v.text_first = true;
  v.text_hidden = text_hidden;
  return v;
}

}  // namespace

std::optional<VisionTower> read_vision_config(JsonReader& config, std::string_view wrapper,
                                              int text_hidden) {
  const bool told = config.kind("vision_config") == JsonKind::object;
  if (told && wrapper == "gemma3")
    return read_siglip(config, config.object("vision_config"), text_hidden);
  const auto family = std::find_if(families().begin(), families().end(),
                                   [&](const TowerFamily& f) { return f.wrapper == wrapper; });
  if (family == families().end() || !told) return {};
  JsonReader r = config.object("vision_config");
  VisionTower v = family->tower;
  v.layers = r.maybe_integer("depth", 1, most_layers).value_or(v.layers);
  v.hidden = r.maybe_integer(family->hidden_key, 1, most_width).value_or(v.hidden);
  v.heads = r.maybe_integer("num_heads", 1, most_heads).value_or(v.heads);
  const double ratio =
      r.maybe_number("mlp_ratio", 0.01, 1000).value_or(static_cast<double>(v.ffn) / v.hidden);
  const bool by_ratio = family->hidden_key == "embed_dim";
  v.ffn = by_ratio ? static_cast<int>(std::lround(ratio * v.hidden))
                   : r.maybe_integer("intermediate_size", 1, most_width).value_or(v.ffn);
  const int patch = r.maybe_integer("patch_size", 1, most_pixels).value_or(family->patch);
  const int frames = r.maybe_integer("temporal_patch_size", 1, 1024).value_or(2);
  const int channels = r.maybe_integer("in_channels", 1, 1024).value_or(3);
  const int merge = r.maybe_integer("spatial_merge_size", 1, 32).value_or(family->merge);
  const std::int64_t values = std::int64_t{channels} * frames * patch * patch;
  if (values > most_width) {
    r.problem("patch_size", "a patch of at most a million values");
    return {};
  }
  v.patch_values = static_cast<int>(values);
  v.patches_per_token = merge * merge;
  if (v.position_rows > 0)
    v.position_rows =
        r.maybe_integer("num_position_embeddings", 1, most_positions).value_or(v.position_rows);
  if (family->deepens)
    v.deeper_mergers = r.has("deepstack_visual_indexes")
                           ? static_cast<int>(r.numbers("deepstack_visual_indexes").size())
                           : 3;
  if (family->window > 0) {
    const int side =
        r.maybe_integer("window_size", 1, most_pixels).value_or(family->window) / patch;
    v.window_patches = std::max(side, 1) * std::max(side, 1);
    v.global_layers = r.has("fullatt_block_indexes")
                          ? static_cast<int>(r.numbers("fullatt_block_indexes").size())
                          : 4;
  }
  v.text_hidden = text_hidden;
  return v;
}

}  // namespace shardwise
