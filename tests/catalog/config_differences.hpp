// A config.json as it is read, and where it differs from a model of the catalog.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catalog/huggingface.hpp"
#include "catalog/load.hpp"
#include "catalog/transformer.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

inline std::string all_of_them(const Problems& problems) {
  std::string out;
  for (const Problem& p : problems) out += p.where + ": " + p.what + '\n';
  return out;
}

inline const std::vector<Transformer>& catalogued_models() {
  static const std::vector<Transformer> models = [] {
    auto loaded = load_models(std::filesystem::path(source_dir()) / "catalog");
    REQUIRE(loaded);
    return *std::move(loaded);
  }();
  return models;
}

inline const Transformer& model_of_id(const std::string& id) {
  const auto found = std::find_if(catalogued_models().begin(), catalogued_models().end(),
                                  [&](const Transformer& m) { return m.id == id; });
  INFO(id);
  REQUIRE(found != catalogued_models().end());
  return *found;
}

// The members that bear on size or time, by name, so that a difference can be named.
inline std::vector<std::pair<std::string, int>> dimensions_of(const Transformer& m) {
  const MixtureOfExperts moe = m.moe.value_or(MixtureOfExperts{});
  const LatentAttention mla = m.mla.value_or(LatentAttention{});
  const DeltaNet delta = m.delta.value_or(DeltaNet{});
  const StateSpace mamba = m.mamba.value_or(StateSpace{});
  const auto layers_of = [&](char letter) {
    return static_cast<int>(std::count(m.mixers.begin(), m.mixers.end(), letter));
  };
  return {{"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"ffn", m.ffn},
          {"gated_mlp", m.gated_mlp},
          {"vocab", m.vocab},
          {"tied_embeddings", m.tied_embeddings},
          {"caps_logits", m.caps_logits},
          {"norms.kind", static_cast<int>(m.norms.kind)},
          {"norms.per_layer", m.norms.per_layer},
          {"norms.bias", m.norms.bias},
          {"norms.final", m.norms.final},
          {"norms.embedding", m.norms.embedding},
          {"biases.qkv", m.biases.qkv},
          {"biases.o", m.biases.o},
          {"biases.mlp", m.biases.mlp},
          {"biases.experts", m.biases.experts},
          {"biases.router", m.biases.router},
          {"biases.lm_head", m.biases.lm_head},
          {"qk_norm", static_cast<int>(m.qk_norm)},
          {"position", static_cast<int>(m.position)},
          {"position_rows", m.position_rows},
          {"sliding_window", m.sliding_window.value_or(0)},
          {"sliding_window_every", m.sliding_window_every},
          {"embed_dim", m.embed_dim.value_or(0)},
          {"attention_extra_per_layer", m.attention_extra_per_layer},
          {"moe.experts", moe.experts},
          {"moe.top_k", moe.top_k},
          {"moe.expert_ffn", moe.expert_ffn},
          {"moe.shared_expert_ffn", moe.shared_expert_ffn},
          {"moe.shared_gate", moe.shared_gate},
          {"moe.dense_layers", moe.dense_layers},
          {"moe.every", moe.every},
          {"mla.q_lora_rank", mla.q_lora_rank.value_or(0)},
          {"mla.kv_lora_rank", mla.kv_lora_rank},
          {"mla.qk_nope_head_dim", mla.qk_nope_head_dim},
          {"mla.qk_rope_head_dim", mla.qk_rope_head_dim},
          {"mla.v_head_dim", mla.v_head_dim},
          {"delta.key_heads", delta.key_heads},
          {"delta.value_heads", delta.value_heads},
          {"delta.key_dim", delta.key_dim},
          {"delta.value_dim", delta.value_dim},
          {"delta.convolution", delta.convolution},
          {"delta.chunk", delta.chunk},
          {"attention_gate", m.attention_gate},
          {"mamba.heads", mamba.heads},
          {"mamba.head_dim", mamba.head_dim},
          {"mamba.groups", mamba.groups},
          {"mamba.state", mamba.state},
          {"mamba.convolution", mamba.convolution},
          {"mamba.chunk", mamba.chunk},
          {"mamba.normed", mamba.normed},
          {"convolution.taps", m.convolution.value_or(GatedConvolution{0}).taps},
          {"layers D", layers_of('D')},
          {"layers S", layers_of('S')},
          {"layers B", layers_of('B')},
          {"layers C", layers_of('C')}};
}

inline std::string differences(const Transformer& found, const Transformer& expected) {
  const auto a = dimensions_of(found);
  const auto b = dimensions_of(expected);
  std::string out;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].second != b[i].second)
      out += a[i].first + " is " + std::to_string(a[i].second) + ", not " +
             std::to_string(b[i].second) + "; ";
  return out;
}

inline Transformer parsed(const std::string& text) {
  const auto model = parse_huggingface_config(text, "config.json");
  if (!model) UNSCOPED_INFO(all_of_them(model.error()));
  REQUIRE(model);
  return *model;
}

// What is wrong with it.
inline std::string refused(const std::string& text) {
  const auto model = parse_huggingface_config(text, "config.json");
  REQUIRE_FALSE(model);
  return all_of_them(model.error());
}

inline std::string llama_with(const std::string& members) {
  return R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
             "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000)" +
         members + "}";
}

}  // namespace shardwise
