// PartialModel: what a published run says of its model, often no more than a name, or a name and
// a few sizes. complete() makes a whole Transformer of it:
//
//   1. the name (or Hugging Face id) is a catalogued model's, and so is the hidden size where one
//      is given: that model, with the other sizes given put in place of its own;
//   2. it is not: hidden must be given, and layers or a size in the name that tells them; the rest
//      follows the style of a catalogued model of that family ("MPT-13b" is built like mpt-7b),
//      else GPT-3's where the MLP is not gated and Llama's where it is.
//
// Every member that nobody stated is named in `provenance.fields`, with the rule that filled it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog/result.hpp"
#include "catalog/transformer.hpp"

namespace shardwise {

struct PartialExperts {
  std::optional<int> experts;
  std::optional<int> top_k;
  std::optional<int> expert_ffn;
  std::optional<int> shared_experts;  // each as wide as a routed one
  std::optional<int> dense_layers;
};

struct PartialModel {
  std::string name;
  std::optional<std::string> hf_id;
  std::optional<int> layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  std::optional<bool> gated_mlp, tied_embeddings;
  std::optional<PositionKind> position;
  std::optional<NormKind> norm;
  std::optional<QkNorm> qk_norm;
  std::optional<int> norms_per_layer;  // 2: before each part; 4: behind it too
  std::optional<bool> biases;  // of all linears but router and head, and of norms that can have one
  std::optional<PartialExperts> moe;
  std::optional<LatentAttention> mla;  // head_dim is then the sum of both parts of a query's head
};

// Problems (of kind `file`, at `partial.name`) where layers or hidden are missing and the name is
// nobody's, and where the sizes contradict each other.
Result<Transformer> complete(const PartialModel& partial, const std::vector<Transformer>& catalog,
                             const std::map<std::string, std::string>& aliases = {});

}  // namespace shardwise
