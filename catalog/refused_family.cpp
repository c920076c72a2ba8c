// Architectures that are refused by name, and why.
#include <algorithm>
#include <array>

#include "catalog/huggingface_family.hpp"

namespace shardwise {
namespace {

constexpr std::string_view recurrent = "it has state-space layers instead of attention";
constexpr std::string_view seq2seq = "it is an encoder-decoder; only decoders are supported";
constexpr std::string_view encoder = "it is an encoder; only decoders are supported";
constexpr std::string_view crossed = "every fifth of its layers is cross-attention to an image";
constexpr std::array<RefusedFamily, 27> refused{{
    {"minimax", "7 of 8 of its layers are lightning (linear) attention", "minimax_m2"},
    {"minimax_text_01", "7 of 8 of its layers are lightning (linear) attention", "minimax_m2"},
    {"nemotron-nas", "its layers differ from each other, and some have no attention", "llama"},
    {"mimo_v2_flash", "its local and global layers have different attention sizes", "mixtral"},
    {"deepseek_v4", "its attention to compressed keys is not modelled", "deepseek_v32"},
    {"gemma3n_text", "beside embeddings of their own its layers carry four streams (AltUp)",
     "gemma4_text"},
    {"jamba", "its state-space layers are Mamba-1's, which are not modelled", "bamba"},
    {"zamba2", "its attention blocks share weights, with adapters of their own", "bamba"},
    {"phi4flash", "it has Mamba-1 layers, and its later layers share what one of them gives",
     "phi3"},
    {"recurrent_gemma", "it mixes recurrent layers with attention", "gemma"},
    {"mllama", crossed, "llama"},
    {"mllama_text_model", crossed, "llama"},
    {"mamba", recurrent, "llama"},
    {"mamba2", recurrent, "llama"},
    {"falcon_mamba", recurrent, "falcon"},
    {"rwkv", "it is recurrent and has no attention", "llama"},
    {"rwkv5", "it is recurrent and has no attention", "llama"},
    {"rwkv6", "it is recurrent and has no attention", "llama"},
    {"t5", seq2seq, "gpt2"},
    {"mt5", seq2seq, "gpt2"},
    {"umt5", seq2seq, "gpt2"},
    {"bart", seq2seq, "gpt2"},
    {"blenderbot", seq2seq, "gpt2"},
    {"whisper", seq2seq, "gpt2"},
    {"bert", encoder, "gpt2"},
    {"roberta", encoder, "gpt2"},
    {"deberta-v2", encoder, "gpt2"},
}};

}  // namespace

const RefusedFamily* refused_family(std::string_view model_type) {
  const auto* found = std::find_if(refused.begin(), refused.end(), [&](const RefusedFamily& f) {
    return f.model_type == model_type;
  });
  return found == refused.end() ? nullptr : found;
}

}  // namespace shardwise
