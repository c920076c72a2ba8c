// The vision tower of a vision-language model: a transformer over the patches of an image, and what
// turns its result into tokens of the language model.
//
// Shape legend: h hidden, f ffn, P patches of one image, m patches per token, o hidden of the
// language model, n values of a norm per channel (1, with bias 2).
//   patches    v h [+ h], with v pixel values per patch; positions  r h
//   block      3 h^2 + 3 h + h^2 + h + g h f + (g - 1) f + h + 2 n h, g = 3 if gated, else 2
//   merger     n h + (m h) i + i + i o + o, i its inner width: m neighbours side by side, two
//              linears with a GELU between; each deeper merger (Qwen3-VL's DeepStack) the same with
//              its norm over m h; pooled instead (Gemma 3): the mean of m patches, h + h o
// Everything has biases but what is said to have none.
#pragma once

#include <cstdint>

namespace shardwise {

struct VisionTower {
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int ffn = 0;  // width of one linear
  bool gated_mlp = false;
  bool rms_norms = false;  // else layer norms with bias
  int patch_values = 0;    // pixel values that a patch is made of: channels, frames and pixels
  bool patch_bias = false;
  int position_rows = 0;  // learned positions; 0: rotated
  bool final_norm = false;
  int patches_per_token = 4;
  int deeper_mergers = 0;   // for layers between, whose results go to early layers of the decoder
  bool pools = false;       // tokens are means of patches, projected by one matrix
  int window_patches = 0;   // attention sees a window of so many; 0: the image
  int global_layers = 0;    // where it does, the layers that see the image
  int image_tokens = 0;     // that every image becomes; 0: as many as it is large
  bool text_first = false;  // of models that are mostly trained on text
  int text_hidden = 0;      // of the language model

  int head_dim() const { return hidden / heads; }
  std::int64_t block_values() const;
  std::int64_t projector_values() const;  // all mergers, or the one projection
  std::int64_t parameters() const;
};

// What a sequence shows the tower.
struct ImagesSeen {
  int images = 0;
  int tokens = 1;  // of the sequence that stand for one image
};

// Where nobody says: one image, none of a model that is mostly trained on text; of 1,024 tokens
// unless every image has as many, but of no more than half of the sequence (assumed).
ImagesSeen usual_images(const VisionTower& tower, int sequence);

}  // namespace shardwise
