#include "planner/launch/megatron_model.hpp"

#include <algorithm>
#include <string>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Which layers have experts, as a list that is evaluated ("[0]*3+[1]*58", "[0,1]*24"); empty where
// all have. A number N would be short for every N-th from the first one on
// (megatron/core/models/gpt/gpt_layer_specs.py), which is not where models here have theirs.
std::string expert_layers(const Transformer& m) {
  std::string list, sum;
  if (m.moe->every > 1 && m.moe->dense_layers == 0 && m.layers % m.moe->every == 0) {
    for (int i = 0; i < m.moe->every; ++i)
      list += sentence(i > 0 ? "," : "", m.is_moe_layer(i) ? 1 : 0);
    return sentence('[', list, "]*", m.layers / m.moe->every);
  }
  for (int first = 0, end = 0; first < m.layers; first = end) {
    while (end < m.layers && m.is_moe_layer(end) == m.is_moe_layer(first)) ++end;
    if (end - first == m.layers && m.is_moe_layer(first)) return "";
    sum += sentence(first > 0 ? "+" : "", '[', m.is_moe_layer(first) ? 1 : 0, "]*", end - first);
  }
  return sum;
}

void put_experts(ConfigEntries& to, const Transformer& m) {
  const MixtureOfExperts& moe = *m.moe;
  put(to, "num-experts", moe.experts);
  put(to, "moe-router-topk", moe.top_k);
  put(to, "moe-ffn-hidden-size", moe.expert_ffn);
  if (moe.shared_expert_ffn > 0)
    put(to, "moe-shared-expert-intermediate-size", moe.shared_expert_ffn);
  put(to, "moe-shared-expert-gate", moe.shared_gate);
  if (const std::string layers = expert_layers(m); !layers.empty())
    put(to, "moe-layer-freq", layers);
  put(to, "moe-grouped-gemm", true);
  put(to, "moe-token-dispatcher-type", "alltoall");
}

void put_latent_attention(ConfigEntries& to, const LatentAttention& mla) {
  put(to, "multi-latent-attention", true);
  if (mla.q_lora_rank) put(to, "q-lora-rank", *mla.q_lora_rank);
  put(to, "kv-lora-rank", mla.kv_lora_rank);
  put(to, "qk-head-dim", mla.qk_nope_head_dim);
  put(to, "qk-pos-emb-head-dim", mla.qk_rope_head_dim);
  put(to, "v-head-dim", mla.v_head_dim);
}

// Of a model's linears there are biases in all (--add-bias-linear, the default), in none, or in
// queries, keys and values alone (--add-qkv-bias).
bool has_such_biases(const Biases& b, bool experts) {
  const bool inner = experts ? b.experts : b.mlp;
  return b.o == inner && (!b.o || b.qkv) && !b.lm_head;
}

// A token sees itself and as many before it (transformer_config.py, window_size); one layer of so
// many sees all of them, the last, or a list says which (megatron/core/transformer/utils.py).
void put_window(ConfigEntries& to, const Transformer& m, int sequence) {
  if (!cuts_sequences(m, sequence)) return;
  put(to, "window-size", sentence(*m.sliding_window - 1, ",0"));
  if (!m.windows.empty()) {
    std::string list;
    for (const char letter : m.windows)
      list += sentence(list.empty() ? "[" : ",", letter == 'w' ? 1 : 0);
    put(to, "window-attn-skip-freq", list + ']');
  }
  if (m.sliding_window_every > 1) put(to, "window-attn-skip-freq", m.sliding_window_every);
}

}  // namespace

bool cuts_sequences(const Transformer& m, int sequence) {
  return m.sliding_window && *m.sliding_window < sequence;
}

void refuse_megatron_model(Refusals& to, const Transformer& m) {
  refuse_if(to, m.position == PositionKind::alibi, "Megatron-LM has no ALiBi positions");
  refuse_if(to, m.norms.per_layer != 2, "Megatron-LM's GPT layer has two norms");
  refuse_if(to, m.embed_dim.has_value(), "Megatron-LM's embedding is as wide as its layers");
  refuse_if(to, m.norms.kind == NormKind::layer_no_weight, "Megatron-LM's norms have weights");
  refuse_if(to, m.delta.has_value() || m.attention_gate || m.head_gate,
            "its arguments for Gated DeltaNet layers are not written");
  refuse_if(to, m.indexer.has_value(),
            "its arguments for an indexer of sparse attention are not written");
  refuse_if(to, m.mamba.has_value() || m.convolution.has_value() || m.lightning.has_value(),
            "its arguments for Mamba layers are not written, and it has neither gated convolutions "
            "nor lightning attention");
  refuse_if(to, m.altup.has_value() || m.layer_embeddings.has_value(),
            "it has neither embeddings of each layer's own nor alternating updates");
  refuse_if(to, m.vision.has_value(), "pretrain_gpt.py has no vision tower");
  refuse_if(to, m.attention_extra_per_layer > 0,
            "no argument is written for what its layers learn beside linears and norms (sinks)");
  refuse_if(to, m.qk_norm == QkNorm::full || m.qk_norm == QkNorm::per_head,
            "Megatron-LM's norms of queries and keys are one for all heads, as wide as a head");
  refuse_if(to, !has_such_biases(m.biases, m.moe.has_value()),
            "Megatron-LM's linears all have biases, or none, or queries, keys and values alone");
}

void put_megatron_model(ConfigEntries& to, const Transformer& m, int sequence) {
  put(to, "num-layers", m.layers);
  put(to, "hidden-size", m.hidden);
  put(to, "ffn-hidden-size", m.ffn);
  put(to, "num-attention-heads", m.heads);
  if (!m.mla && m.kv_heads != m.heads) {
    put(to, "group-query-attention", true);
    put(to, "num-query-groups", m.kv_heads);
  }
  if (m.mla)
    put_latent_attention(to, *m.mla);
  else
    put(to, "kv-channels", m.head_dim);
  put(to, "seq-length", sequence);
  put(to, "max-position-embeddings", std::max(sequence, m.max_positions));
  put(to, "vocab-size", m.vocab);
  put(to, "position-embedding-type",
      m.position == PositionKind::rope      ? "rope"
      : m.position == PositionKind::learned ? "learned_absolute"
                                            : "none");
  put(to, "normalization", m.norms.kind == NormKind::rms ? "RMSNorm" : "LayerNorm");
  put(to, "swiglu", m.gated_mlp);
  put(to, "disable-bias-linear", !m.biases.o);
  put(to, "add-qkv-bias", m.biases.qkv && !m.biases.o);
  // Of latent attention: the norms of what its down projections make, which all models here have
  // (megatron/core/models/gpt/gpt_layer_specs.py @d98e8a64dd: without it the up projections have
  // none).
  put(to, "qk-layernorm", m.qk_norm != QkNorm::none || m.mla.has_value());
  put_window(to, m, sequence);
  put(to, "untie-embeddings-and-output-weights", !m.tied_embeddings);
  if (m.moe) put_experts(to, m);
}

}  // namespace shardwise
