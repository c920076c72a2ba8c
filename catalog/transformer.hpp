// A decoder-only transformer: its dimensions and its exact parameter count.
//
// Shape legend: h hidden, L layers, a heads, k kv heads, d head dim, f ffn, V vocabulary.
//   attention  h(a d) + 2 h(k d) + (a d) h  [+ biases, + q/k norms, + h(a d) for an output gate]
//   MLP        g h f with g = 3 if gated, else 2  [+ biases]
//              where some layers attend globally with heads of their own, k and d are those there;
//              values that are keys have no projection; layers that share another one's keys and
//              values have neither projection, nor keys' norm
//   MoE        E (3 h f_e) + h E router + 3 h f_shared  [+ biases, + shared gate, + h + E of a
//              scaled router]; experts on a latent width l: E (3 l f_e) + 2 h l
//   Mamba-2    h (2 D + 2 G n + H) + D h + (k + 1)(D + 2 G n) + 3 H [+ D], with D = H d inner
//              values in H heads, G groups of n states, a convolution of k taps (arXiv 2405.21060)
//   Mamba-1    h 2 D + D (r + 2 n) + r D + D h + (k + 1) D + D n + 2 D [+ r + 2 n], with D inner
//              values, time steps through a rank r (arXiv 2312.00752), and norms of those, of B and
//              of C (Jamba)
//   lightning attention  5 h A + A, with A the width of all heads: queries, keys, values, a gate,
//              one projection back, and a norm (arXiv 2501.08313)
//   short convolution  3 h^2 + h^2 + k h, with k taps
//   DeltaNet   h (2 K + 2 V + 2 H) + V h + k (2 K + V) + 2 H + v, with K and V the widths of all
//              keys and values, H value heads of v, a convolution of k taps (gated delta rule,
//              arXiv 2412.06464)
//              through a rank r: h (2 K + V + H + 2 r) + r (K + V) + V h + k (2 K + V) + H + K + v
//              (Kimi Delta Attention, arXiv 2510.26692)
//   MLA        h q + q + q a (n + r) + h (c + r) + c + c a (n + v) + a v h, with q and c the query
//              and kv ranks, n, r, v the head dims without RoPE, with RoPE and of values
//              (DeepSeek-V2, arXiv 2405.04434, section 2.1; without a query rank: h a (n + r))
//   indexer    q I d_i + h d_i + 2 d_i + h I, with I heads of d_i values (arXiv 2512.02556)
//   norms      per_layer h [x 2 with bias] per layer, once more at the end [and at the embedding]
//   head       V h unless tied
//   embeddings of each layer  V_e (L e) + h (L e) + e, and in a layer 2 h e + h, with V_e rows of e
//              values for each layer (Gemma 4 E2B and E4B: transformers modeling_gemma4.py)
//   alternating updates of s streams  2 (s - 1) h^2, and in a layer s^3 + s^2 + s h + 2 h, and
//              2 h r + h of the linear through rank r beside attention (Gemma 3n)
//   vision tower  as vision_tower.hpp has it
// Not counted: buffers (routing corrections, rotary tables) and multi-token-prediction modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/provenance.hpp"
#include "catalog/stored_weights.hpp"
#include "catalog/vision_tower.hpp"

namespace shardwise {

enum class NormKind { rms, layer, layer_no_weight };
enum class PositionKind { rope, learned, alibi, none };
enum class QkNorm { none, head_dim, full, per_head };

struct Norms {
  NormKind kind = NormKind::rms;
  int per_layer = 2;
  bool bias = false;
  bool final = true;           // one more before the head
  bool embedding = false;      // one more after the embedding (BLOOM)
  bool feed_residual = false;  // a branch is added to what it reads, both times a number (MiniMax)
};

// What the element-wise function of an MLP that is not gated keeps for backward.
enum class MlpFunction {
  keeps_input,     // one kernel, which reads its input again: GELU, SiLU
  keeps_result,    // ReLU
  written_out,     // tanh's formula of GELU, operator by operator ("gelu_new")
  computes_again,  // the same, of which only the input is kept: BLOOM's
};

// How the class of the model in transformers is written, where that bears on what is kept for
// backward: a fact of its model_type, in force where a framework runs these classes.
struct ModelCode {
  MlpFunction mlp = MlpFunction::keeps_input;
  bool fused_qkv = false;        // one projection, of whose result the values are a view
  bool fused_gate_up = false;    // and one of the MLP's
  bool wide_norms = false;       // RMSNorm multiplies by its weight in fp32, not in 16 bits
  bool caps_scores = false;      // eager attention: scores become c tanh(scores / c)
  bool clamps_scores = false;    // eager attention: torch.max with the least number, after the mask
  bool scripts_softmax = false;  // eager attention: its softmax is TorchScript's, which keeps what
                                 // it reads as well (GPTBigCode)
  bool flash_rotary = false;     // rotates fp32 copies, by flash-attn's kernel where that is used
  bool half_softmax = false;  // eager attention: softmax in the format of the scores, not in fp32
  bool layer_norm_operators = false;  // LayerNorm is a class of its own, not PyTorch's kernel
  bool scaled_inputs = false;    // each mixer reads a multiple of what was normed, and so does SiLU
  bool scales_branches = false;  // before they join the stream, by a number (Granite, MiniCPM)
  bool feeds_all_experts = false;  // each token goes through every expert, times its score or zero
  bool gate_apart = false;         // the gate of attention's output is a projection of its own
  // A plugin whose kernels go into a built model leaves the norms of queries and keys as they are
  // (FrameworkLayers::patches_built_model).
  bool keeps_head_norms = false;
  // The class's name names no loss, of which a warning tells, where a graph ends: what is compiled
  // does not return the logits beside the loss that it makes of them.
  bool loss_ends_graph = false;
  bool stated = false;       // of a model of one's own: how it is written, whatever runs it
  bool heads_apart = false;  // a module for each head, with three linears of its own, in a loop
  friend bool operator==(const ModelCode&, const ModelCode&) = default;
};

struct Biases {
  bool qkv = false, o = false, mlp = false, experts = false, router = false, lm_head = false;
};

struct MixtureOfExperts {
  int experts = 0;
  int top_k = 0;
  int expert_ffn = 0;
  int shared_expert_ffn = 0;  // width of all shared experts together; 0: none
  bool shared_gate = false;
  int dense_layers = 0;         // the first layers, with `ffn` as width
  int every = 1;                // 2: every second layer is MoE, the others dense
  std::optional<int> latent{};  // width that tokens have at the routed experts; absent: hidden
  bool scaled_router = false;   // reads h through a norm and weights, scales each expert (Gemma 4)
  // The routed experts read a norm of their own, and their sum and the shared experts' output pass
  // one each before they are added (Gemma 4).
  bool normed_branches = false;
  // Experts lie in `groups` of the same size, and those of a token in `chosen_groups` of them
  // (node-limited routing, DeepSeek-V3, arXiv 2412.19437, section 2.1.2). 1 and 1: anywhere.
  int groups = 1;
  int chosen_groups = 1;
};

// The layers that see the whole sequence where the others see a window, if their heads are others
// (Gemma 4).
struct GlobalAttention {
  int kv_heads = 0;
  int head_dim = 0;
  bool values_are_keys = false;  // one projection, before keys are normed and rotated
};

// The last layers attend to keys and values that the last layer of their kind before them has made
// (windowed, or seeing everything: Gemma 4).
struct SharedKeys {
  int layers = 0;
  bool double_wide_mlp = false;  // the MLPs of these layers have twice the width
};

// One table whose rows hold a piece for every layer, to which a projection of the token's embedding
// is added; each layer lets its piece through a gate and adds it to its output (Gemma 4).
struct LayerEmbeddings {
  int vocab = 0;
  int width = 0;  // of one layer's piece
};

// A residual stream of several tensors, of which blocks read and correct one, beside a linear
// through a low rank that joins it (AltUp and LAuReL; Gemma 3n).
struct AlternatingUpdates {
  int streams = 4;
  int residual_rank = 64;
  int cut_gates = 0;  // MLPs of so many layers at the front pass the largest of their gates only
};

// Tables [vocabulary, key-value width], each of one layer, whose rows are added to its values
// through a gate for every head (nanochat).
struct ValueEmbeddings {
  int tables = 0;
};

// Multi-head latent attention.
struct LatentAttention {
  std::optional<int> q_lora_rank;  // absent: one plain q projection (V2-Lite)
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;
  int v_head_dim = 0;
};

// Which tokens attention may see, chosen for each query by scores of small heads of their own
// (DeepSeek's sparse attention: arXiv 2512.02556).
struct TokenIndexer {
  int heads = 0;
  int head_dim = 0;
  int top_k = 0;
  std::string layers;  // o has one of its own, s takes the choice of the one before; empty: all own
};

// Mamba-2 mixers (arXiv 2405.21060), as Nemotron-H and Granite 4 have them, or Mamba-1's (arXiv
// 2312.00752; Jamba): every inner value is a head, and has a decay for each value of its state.
struct StateSpace {
  int heads = 0;
  int head_dim = 0;
  int groups = 0;       // that share B and C
  int state = 0;        // values per head and channel
  int convolution = 4;  // taps, with a bias
  int chunk = 128;      // tokens that the scan takes at once
  bool normed = true;   // the gated result passes a norm with weights; Mamba-1: time steps, B and C
  std::optional<int> step_rank{};  // Mamba-1: rank that the time steps of all values come through

  int inner() const { return heads * head_dim; }
  int convolved() const { return inner() + 2 * groups * state; }   // x, B and C
  int projected() const { return inner() + convolved() + heads; }  // z, those, and the time steps
};

// Gated DeltaNet mixers (arXiv 2412.06464), as Qwen3-Next has them, or Kimi Delta Attention (arXiv
// 2510.26692): a decay for each value of a key instead of one for each head.
struct DeltaNet {
  int key_heads = 0;    // of queries and of keys; each serves value_heads / key_heads value heads
  int value_heads = 0;  // of values, gates and states
  int key_dim = 0;
  int value_dim = 0;
  int convolution = 4;  // taps, no bias
  int chunk = 64;       // tokens that the delta rule takes at once
  // Decays of every key value and the output's gate come through this rank each (Kimi).
  std::optional<int> gate_rank{};

  int keys() const { return key_heads * key_dim; }
  int values() const { return value_heads * value_dim; }
  int convolved() const { return 2 * keys() + values(); }  // queries, keys and values
  // Those, the output's gate, and a decay and a rate for each value head.
  int projected() const { return convolved() + values() + 2 * value_heads; }
};

// Lightning attention (arXiv 2501.08313, section 2.2; MiniMax-Text-01): linear attention with a
// fixed decay for each head, block by block; a norm over all heads and a gate before the projection
// back.
struct LightningAttention {
  int heads = 0;  // of queries, of keys and of values
  int head_dim = 0;
  int block = 256;  // tokens that attend to each other as a square

  int width() const { return heads * head_dim; }
};

// Short convolutions between two gates (LFM2): one projection to the two gates and a value, as wide
// as the hidden state each.
struct GatedConvolution {
  int taps = 3;  // no bias
};

// What one layer of a hybrid model is; every other model's layer is attention and then an MLP (or
// experts).
enum class LayerMixer {
  // Blocks: this, and then an MLP or experts.
  attention_and_mlp,
  delta_and_mlp,
  mamba_and_mlp,
  attention_with_mamba_and_mlp,  // both read the same norm, and their sum is added (Falcon-H1)
  lightning_and_mlp,
  convolution_and_mlp,
  // One mixer alone behind one norm.
  attention,
  mlp,
  experts,
  mamba,
};

// The products that its makers' recipe for NVFP4 leaves in 16 bits.
struct WideProducts {
  int last_layers = 0;
  bool attention = false;  // its projections, in and out
  bool latents = false;    // to and from the latent of experts
};

// Values that a published count has beyond the parameters counted here, and why: a tied head that
// is stored twice, rotary buffers, a vision tower that is not described.
struct PublishedExcess {
  std::int64_t values = 0;
  std::string reason;
};

// Where `exact`: parameter_count().total + excess == total, to the last digit (tests/catalog).
struct PublishedCount {
  std::int64_t total = 0;
  bool exact = false;  // false: a rounded figure of a card or paper
  std::string source;
  std::optional<PublishedExcess> excess;
};

struct Transformer {
  std::string id;                    // "llama-3.1-8b"
  std::vector<std::string> aliases;  // "8b" lives in models/aliases.json, not here
  std::string hf_id;
  std::string model_type;  // as in config.json: "llama", "qwen2_moe"
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int ffn = 0;  // width of one linear
  bool gated_mlp = true;
  int vocab = 0;
  bool tied_embeddings = false;
  Norms norms;
  Biases biases;
  QkNorm qk_norm = QkNorm::none;
  PositionKind position = PositionKind::rope;
  int position_rows = 0;     // learned positions only
  int max_positions = 0;     // 0 where no source gave it
  int causal_mask_rows = 0;  // of the square mask of bytes that its own code keeps in every layer
  std::optional<int> sliding_window;
  int sliding_window_every = 1;  // n: n-1 of n layers are local (Gemma 3: 6); 1: all of them
  std::string windows;           // w local, f not, for each layer, where no such rule says it
  bool window_restarts = false;  // the window is a chunk: no token sees one before it (Llama 4)
  std::optional<int> embed_dim;  // OPT-350m: embedding width other than hidden
  std::optional<GlobalAttention> global_attention;
  std::optional<SharedKeys> shared_keys;
  std::optional<LayerEmbeddings> layer_embeddings;
  std::optional<AlternatingUpdates> altup;
  std::optional<ValueEmbeddings> value_embeddings;
  bool narrow_tables = false;  // its code casts embedding tables to the format of activations, so
                               // that their gradients and states have it too (nanochat)
  bool caps_logits = false;    // the head's logits become c tanh(logits / c) (Gemma 2)
  ModelCode code;
  bool value_norm = false;            // values pass a norm without weights (Gemma 4)
  int attention_extra_per_layer = 0;  // gpt-oss sinks
  std::optional<MixtureOfExperts> moe;
  std::optional<LatentAttention> mla;
  std::optional<TokenIndexer> indexer;
  std::optional<StateSpace> mamba;
  std::optional<DeltaNet> delta;
  std::optional<LightningAttention> lightning;
  std::optional<GatedConvolution> convolution;
  std::optional<VisionTower> vision;
  std::optional<StoredWeights> stored;  // of a checkpoint that is quantised
  bool head_gate = false;       // a sigmoid of one projected value scales the output of each head
  bool attention_gate = false;  // a sigmoid of as many projected values scales attention's output
  // Hybrid models: a letter per layer. Either one mixer behind one norm, M Mamba-2, * attention,
  // - MLP, E experts (Nemotron-H's hybrid_override_pattern), or a whole block, an MLP or experts
  // after A attention, D Gated DeltaNet, S Mamba, B attention beside Mamba-2, L lightning
  // attention, C convolution.
  std::string mixers;
  std::string prediction_mixers;  // the same of its multi-token-prediction layer
  WideProducts beside_nvfp4;
  std::optional<PublishedCount> published;
  std::string notes;  // what a reader of the answer should know; may be empty
  Provenance provenance;

  bool is_moe_layer(int layer) const;    // REQUIRES 0 <= layer < layers
  bool sees_window(int layer) const;     // else the whole sequence
  bool shares_keys(int layer) const;     // with the last layer of its kind that makes its own
  bool lends_keys(int layer) const;      // is that layer
  bool indexes_tokens(int layer) const;  // with an indexer of its own
  int mlp_width(int layer) const;
  std::int64_t stream_width() const;  // values of a token between layers
  int moe_layers() const;
  LayerMixer mixer(int layer) const;  // REQUIRES 0 <= layer < layers
  bool single_mixers() const;         // a layer is one mixer, not a block
};

// Every parameter of the model, by part. `total` is their sum; `active` counts top_k experts
// instead of all.
struct ParameterCount {
  std::int64_t embedding = 0;  // token table [V, h] (or [V, e] and e h for each projection)
  std::int64_t positions = 0;
  std::int64_t layer_embeddings = 0;            // table, projection and norm
  std::int64_t value_embeddings = 0;            // all tables; their gates are not counted
  std::int64_t attention_per_layer = 0;         // of a layer that sees a window, where some do
  std::int64_t indexer_per_layer = 0;           // of a layer that has one, beside its attention
  std::int64_t global_attention_per_layer = 0;  // of the others; the same unless heads differ
  std::int64_t dense_mlp_per_layer = 0;         // of a dense layer
  std::int64_t experts_per_layer = 0;           // of a MoE layer: routed experts only
  std::int64_t moe_rest_per_layer = 0;          // of a MoE layer: router, shared experts, gates
  std::int64_t norms_per_layer = 0;
  std::int64_t streams = 0;                // projections to and from alternating updates
  std::int64_t streams_per_layer = 0;      // of their predictions and corrections
  std::int64_t layer_input_per_layer = 0;  // gate, projection and norm of a layer's embeddings
  std::int64_t mamba_per_layer = 0;        // of a Mamba layer
  std::int64_t delta_per_layer = 0;        // of a Gated DeltaNet layer, without its MLP
  std::int64_t lightning_per_layer = 0;    // of lightning attention, likewise
  std::int64_t convolution_per_layer = 0;  // of a gated convolution, likewise
  std::int64_t final_norm = 0;             // embedding norm included
  std::int64_t lm_head = 0;                // 0 when tied (its bias apart)
  std::int64_t vision = 0;                 // the tower and its projection
  std::int64_t total = 0;
  std::int64_t active = 0;

  // All parameters of layer kind dense or MoE.
  std::int64_t dense_layer() const {
    return attention_per_layer + dense_mlp_per_layer + norms_per_layer;
  }
  std::int64_t moe_layer() const {
    return attention_per_layer + experts_per_layer + moe_rest_per_layer + norms_per_layer;
  }
};

ParameterCount parameter_count(const Transformer& model);

LayerMixer mixer_named(char letter);  // as `mixers` spells it
bool is_block(LayerMixer mixer);      // else one mixer alone

}  // namespace shardwise
