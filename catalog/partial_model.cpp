#include "catalog/partial_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "catalog/model_name.hpp"
#include "catalog/text_match.hpp"
#include "catalog/transformer_flaws.hpp"

namespace shardwise {
namespace {

// A family whose unlisted sizes are built like a catalogued one. `mark` is looked for anywhere in
// the name, in lower case; the first row that matches counts. `vocab` is what such runs use where
// they do not say, in place of the catalogued model's.
struct Style {
  std::string_view mark;
  std::string_view model;
  std::optional<int> vocab;
};

// Megatron-LM's GPT runs pad GPT-2's 50,257 tokens to 51,200 (arXiv 2104.04473, section 5).
constexpr int megatron_gpt_vocab = 51200;
constexpr std::string_view ungated_style = "gpt3-175b";
constexpr std::string_view gated_style = "llama-2-7b";

constexpr std::array<Style, 10> styles{{
    {"bloom", "bloom-176b", {}},
    {"mpt", "mpt-7b", {}},
    {"opt-", "opt-6.7b", {}},
    {"falcon", "falcon-40b", {}},
    {"pythia", "pythia-6.9b", {}},
    {"qwen3", "qwen3-8b", {}},
    {"qwen2", "qwen2.5-7b", {}},
    {"qwen", "qwen-7b", {}},
    {"gemma", "gemma-2-9b", {}},
    {"gpt", ungated_style, megatron_gpt_vocab},
}};

// A size that a name claims, "GPT-7.1B": 7.1e9 parameters, stated to the 1e8.
struct ClaimedSize {
  double parameters = 0;
  double step = 0;  // one unit of the last digit
};

std::optional<double> scale_of(char unit) {
  switch (unit) {
    case 'm':
    case 'M':
      return 1e6;
    case 'b':
    case 'B':
      return 1e9;
    case 't':
    case 'T':
      return 1e12;
    default:
      return std::nullopt;
  }
}

// The last number that B, M or T follows.
std::optional<ClaimedSize> claimed_size(std::string_view name) {
  std::optional<ClaimedSize> found;
  std::size_t i = name.find_first_of("0123456789");
  while (i != std::string_view::npos) {
    const std::size_t end = std::min(name.find_first_not_of("0123456789.", i), name.size());
    const std::string_view number = name.substr(i, end - i);
    const std::size_t point = number.find('.');
    const std::size_t decimals = point == std::string_view::npos ? 0 : number.size() - point - 1;
    double value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    if (const auto scale = scale_of(end < name.size() ? name[end] : '\0'))
      found = ClaimedSize{value * *scale, *scale / std::pow(10.0, static_cast<double>(decimals))};
    i = name.find_first_of("0123456789", end);
  }
  return found;
}

// Collects what is put in place of something nobody stated.
class Assumptions {
 public:
  explicit Assumptions(Provenance& provenance) : provenance_(&provenance) {}
  void add(std::string field, std::string rule) {
    provenance_->fields.push_back({std::move(field), "assumed: " + std::move(rule)});
  }

 private:
  Provenance* provenance_;
};

Style style_of(const PartialModel& partial) {
  const std::string name = lowered(partial.name);
  for (const Style& style : styles)
    if (name.find(style.mark) != std::string::npos) return style;
  if (partial.gated_mlp && !*partial.gated_mlp) return {"", ungated_style, megatron_gpt_vocab};
  return {"", gated_style, {}};
}

// The parts of `base` that do not scale with the model.
Transformer styled(const Transformer& base) {
  Transformer m;
  m.model_type = base.model_type;
  m.gated_mlp = base.gated_mlp;
  m.tied_embeddings = base.tied_embeddings;
  m.norms = base.norms;
  m.biases = base.biases;
  m.qk_norm = base.qk_norm;
  m.code = base.code;
  m.position = base.position;
  m.position_rows = base.position_rows;
  m.vocab = base.vocab;
  return m;
}

int head_width(int hidden) {
  for (const int width : {128, 64, 96, 80})
    if (hidden % width == 0) return width;
  return hidden;
}

// Llama's rule for a gated MLP of the cost of a plain one: 8/3 hidden, up to a multiple of 256.
int gated_width(int hidden) { return (hidden * 8 / 3 + 255) / 256 * 256; }

void fill_heads(const PartialModel& partial, Transformer& m, Assumptions& assumed) {
  if (partial.heads) {
    m.heads = *partial.heads;
  } else {
    m.heads = m.hidden / head_width(m.hidden);
    assumed.add("heads", "heads of " + std::to_string(head_width(m.hidden)));
  }
  m.kv_heads = partial.kv_heads.value_or(m.heads);
  if (!partial.kv_heads) assumed.add("kv_heads", "as many as heads");
}

void fill_ffn(const PartialModel& partial, Transformer& m, Assumptions& assumed) {
  if (partial.ffn) {
    m.ffn = *partial.ffn;
  } else if (partial.moe && partial.moe->expert_ffn) {
    m.ffn = *partial.moe->expert_ffn;
  } else {
    m.ffn = m.gated_mlp ? gated_width(m.hidden) : 4 * m.hidden;
    assumed.add("ffn", m.gated_mlp ? "8/3 x hidden, up to a multiple of 256" : "4 x hidden");
  }
}

// Head width: stated, kept from the base while hidden and heads are the base's, else the quotient.
void settle_head_dim(const PartialModel& partial, bool keeps_base, Transformer& m,
                     Problems& problems) {
  if (partial.mla) {
    m.head_dim = partial.mla->qk_nope_head_dim + partial.mla->qk_rope_head_dim;
    if (partial.head_dim.value_or(m.head_dim) != m.head_dim)
      problems.push_back({ProblemKind::file, partial.name,
                          "head_dim: expected " + std::to_string(m.head_dim) +
                              ", the sum of qk_nope_head_dim and qk_rope_head_dim, found " +
                              std::to_string(*partial.head_dim)});
  } else if (partial.head_dim) {
    m.head_dim = *partial.head_dim;
  } else if (!keeps_base && m.heads > 0) {
    if (m.hidden % m.heads != 0)
      problems.push_back({ProblemKind::file, partial.name,
                          std::to_string(m.heads) + " heads do not divide a hidden size of " +
                              std::to_string(m.hidden) + ", and no head size is given"});
    m.head_dim = std::max(1, m.hidden / m.heads);
  }
}

double distance(const Transformer& m, const ClaimedSize& claim) {
  return std::abs(static_cast<double>(parameter_count(m).total) - claim.parameters);
}

// Whether input and output embeddings are one. Where nobody says, it is the family's habit, unless
// that misses the size in the name by more than rounding and the other choice comes twice as near.
void settle_tying(const PartialModel& partial, Transformer& m, Assumptions& assumed) {
  if (partial.tied_embeddings) {
    m.tied_embeddings = *partial.tied_embeddings;
    return;
  }
  const auto claim = claimed_size(partial.name);
  if (!claim || !flaws(m).empty()) return assumed.add("tied_embeddings", "as its family");
  Transformer other = m;
  other.tied_embeddings = !m.tied_embeddings;
  const double off = distance(m, *claim);
  const bool swap = off > claim->step / 2 && 2 * distance(other, *claim) < off;
  if (swap) m.tied_embeddings = other.tied_embeddings;
  assumed.add("tied_embeddings", swap ? "as the size in the name needs it" : "as its family");
}

// As many layers as come nearest to the size in the name ("GPT-195B" of hidden size 14400: 77). The
// model comes with one.
std::optional<int> claimed_layers(const ClaimedSize& claim, Transformer m) {
  if (!flaws(m).empty()) return std::nullopt;
  const double one = static_cast<double>(parameter_count(m).total);
  m.layers = 2;
  const double layer = static_cast<double>(parameter_count(m).total) - one;
  const double layers = 1 + std::round((claim.parameters - one) / layer);
  if (!(layers >= 1) || layers > most_width) return std::nullopt;
  return static_cast<int>(layers);
}

void put_experts(const PartialModel& partial, Transformer& m) {
  if (!partial.moe) return;
  const PartialExperts& given = *partial.moe;
  MixtureOfExperts moe = m.moe.value_or(MixtureOfExperts{});
  if (given.experts.value_or(moe.experts) != moe.experts) moe.groups = moe.chosen_groups = 1;
  moe.experts = given.experts.value_or(moe.experts);
  moe.top_k = given.top_k.value_or(moe.top_k);
  moe.expert_ffn = given.expert_ffn.value_or(moe.expert_ffn);
  moe.dense_layers = given.dense_layers.value_or(moe.dense_layers);
  if (given.shared_experts) {
    const std::int64_t width = std::int64_t{*given.shared_experts} * moe.expert_ffn;
    moe.shared_expert_ffn = static_cast<int>(std::clamp<std::int64_t>(width, -1, most_width + 1));
  }
  m.moe = moe;
}

void put_parts(const PartialModel& partial, Transformer& m) {
  m.position = partial.position.value_or(m.position);
  m.qk_norm = partial.qk_norm.value_or(m.qk_norm);
  m.norms.kind = partial.norm.value_or(m.norms.kind);
  m.norms.per_layer = partial.norms_per_layer.value_or(m.norms.per_layer);
  if (partial.biases)
    m.biases.qkv = m.biases.o = m.biases.mlp = m.biases.experts = m.norms.bias = *partial.biases;
  m.norms.bias = m.norms.bias && m.norms.kind == NormKind::layer;
  if (!partial.mla) return;
  m.mla = partial.mla;
  m.kv_heads = m.heads;
}

// Fewer layers than are told one by one are the first ones.
void keep_first(int layers, std::string& letters) {
  if (layers > 0 && static_cast<std::size_t>(layers) < letters.size())
    letters.resize(static_cast<std::size_t>(layers));
}

// A catalogued model with other sizes put in place; the hidden size is the same.
Transformer overridden(const PartialModel& partial, const Transformer& base, Problems& problems) {
  Transformer m = base;
  m.layers = partial.layers.value_or(base.layers);
  keep_first(m.layers, m.mixers);
  keep_first(m.layers, m.windows);
  if (m.indexer) keep_first(m.layers, m.indexer->layers);
  m.heads = partial.heads.value_or(base.heads);
  m.kv_heads = base.kv_heads == base.heads ? m.heads : base.kv_heads;
  m.kv_heads = partial.kv_heads.value_or(m.kv_heads);
  m.ffn = partial.ffn.value_or(base.ffn);
  m.vocab = partial.vocab.value_or(base.vocab);
  m.gated_mlp = partial.gated_mlp.value_or(base.gated_mlp);
  m.tied_embeddings = partial.tied_embeddings.value_or(base.tied_embeddings);
  put_experts(partial, m);
  put_parts(partial, m);
  settle_head_dim(partial, m.heads == base.heads, m, problems);
  if (base.attention_extra_per_layer == base.heads) m.attention_extra_per_layer = m.heads;
  if (!flaws(m).empty() || parameter_count(m).total != parameter_count(base).total)
    m.published.reset();
  return m;
}

Result<Transformer> built(const PartialModel& partial, const std::vector<Transformer>& catalog,
                          Problems& problems) {
  const auto claim = claimed_size(partial.name);
  const auto missing = [&](const char* what) {
    return Problem{
        ProblemKind::file, partial.name,
        "not a catalogued model, and its size is not told: missing " + std::string(what)};
  };
  if (!partial.hidden) return missing(partial.layers ? "hidden" : "layers, hidden");
  if (!partial.layers && !claim) return missing("layers");
  const Style style = style_of(partial);
  const Transformer* base = model_with_id(style.model, catalog);
  Transformer m = base ? styled(*base) : Transformer{};
  Assumptions assumed(m.provenance);
  assumed.add("norms, biases, positions", "as " + std::string(style.model));
  m.id = partial.name;
  m.layers = partial.layers.value_or(1);
  m.hidden = *partial.hidden;
  m.gated_mlp = partial.gated_mlp.value_or(m.gated_mlp);
  m.vocab = partial.vocab.value_or(style.vocab.value_or(m.vocab));
  if (!partial.vocab) assumed.add("vocab", std::to_string(m.vocab));
  if (m.hidden < 1 || m.hidden > most_width)
    return Problem{ProblemKind::file, partial.name,
                   "hidden: expected from 1 to " + std::to_string(most_width) + ", found " +
                       std::to_string(m.hidden)};
  fill_heads(partial, m, assumed);
  fill_ffn(partial, m, assumed);
  put_experts(partial, m);
  put_parts(partial, m);
  settle_head_dim(partial, false, m, problems);
  if (!partial.layers) {
    const auto layers = claimed_layers(*claim, m);
    if (!layers) return missing("layers");
    m.layers = *layers;
    assumed.add("layers", "as many as the size in the name needs");
  }
  settle_tying(partial, m, assumed);
  return m;
}

}  // namespace

Result<Transformer> complete(const PartialModel& partial, const std::vector<Transformer>& catalog,
                             const std::map<std::string, std::string>& aliases) {
  const Transformer* base = model_meant(partial.name, catalog, aliases);
  if (!base && partial.hf_id) base = model_meant(*partial.hf_id, catalog, aliases);
  if (base && partial.hidden.value_or(base->hidden) != base->hidden) base = nullptr;
  Problems problems;
  Result<Transformer> model = base ? Result<Transformer>(overridden(partial, *base, problems))
                                   : built(partial, catalog, problems);
  if (!model) return model.error();
  if (problems.empty())
    for (const TransformerFlaw& flaw : flaws(*model))
      problems.push_back({ProblemKind::file, partial.name, flaw.field + ": " + flaw.what});
  if (!problems.empty()) return problems;
  return model;
}

}  // namespace shardwise
