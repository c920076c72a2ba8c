#include "planner/launch/megatron_model.hpp"

#include <algorithm>

namespace shardwise {
namespace {

void put_experts(ConfigEntries& to, const MixtureOfExperts& moe) {
  put(to, "num-experts", moe.experts);
  put(to, "moe-router-topk", moe.top_k);
  put(to, "moe-ffn-hidden-size", moe.expert_ffn);
  if (moe.shared_expert_ffn > 0)
    put(to, "moe-shared-expert-intermediate-size", moe.shared_expert_ffn);
  if (moe.every > 1) put(to, "moe-layer-freq", moe.every);
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

}  // namespace

void refuse_megatron_model(Refusals& to, const Transformer& m) {
  refuse_if(to, m.position == PositionKind::alibi, "Megatron-LM has no ALiBi positions");
  refuse_if(to, m.norms.per_layer != 2, "Megatron-LM's GPT layer has two norms");
  refuse_if(to, m.embed_dim.has_value(), "Megatron-LM's embedding is as wide as its layers");
  refuse_if(to, m.norms.kind == NormKind::layer_no_weight, "Megatron-LM's norms have weights");
  refuse_if(to, m.delta.has_value() || m.attention_gate,
            "its arguments for Gated DeltaNet layers are not written");
  refuse_if(to, m.mamba.has_value() || m.convolution.has_value(),
            "its arguments for Mamba layers are not written, and it has no gated convolutions");
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
  put(to, "disable-bias-linear", !m.biases.mlp);
  put(to, "add-qkv-bias", m.biases.qkv && !m.biases.mlp);
  put(to, "qk-layernorm", m.qk_norm != QkNorm::none);
  put(to, "untie-embeddings-and-output-weights", !m.tied_embeddings);
  if (m.moe) put_experts(to, *m.moe);
}

}  // namespace shardwise
