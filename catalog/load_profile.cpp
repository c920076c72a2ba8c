// Reads catalog/profiles/*.json. Every group of constants has its trust, spread, source and date.
#include <algorithm>
#include <filesystem>

#include "catalog/json_members.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/profile.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 3> style_names{"eager", "fused", "compiled"};
constexpr std::array<std::pair<std::string_view, FusedAttention>, fused_attention_count>
    attention_names{{{"memory_efficient", FusedAttention::memory_efficient},
                     {"flash1", FusedAttention::flash1},
                     {"flash2", FusedAttention::flash2},
                     {"flash3", FusedAttention::flash3},
                     {"cudnn", FusedAttention::cudnn},
                     {"cudnn_mxfp8", FusedAttention::cudnn_mxfp8}}};

double positive_fraction(JsonReader& r, std::string_view key) { return r.number(key, 0.001, 1); }

// The last members of every group; also closes it.
Evidence evidence(JsonReader& r) {
  Evidence e;
  e.trust = r.choice("trust", trust_names);
  e.spread = r.number("spread_fraction", 0, 5);
  e.provenance = r.provenance();
  r.finish();
  return e;
}

std::array<double, dtype_count> by_dtype(JsonReader r) {
  std::array<double, dtype_count> values{};
  for (const DTypeRow& row : dtype_rows)
    values[static_cast<std::size_t>(row.dtype)] = r.maybe_number(row.name, 0, 1).value_or(0);
  r.finish();
  return values;
}

std::array<double, 3> by_style(JsonReader r, double high) {
  std::array<double, 3> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = r.number(style_names[i], 0, high);
  r.finish();
  return values;
}

std::array<int, 3> kernels_by_style(JsonReader r) {
  std::array<int, 3> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = r.integer(style_names[i], 0, 1000);
  r.finish();
  return values;
}

std::vector<GemmTile> tiles(JsonReader& r) {
  std::vector<GemmTile> result;
  for (JsonReader& t : r.objects("tiles")) {
    result.push_back({t.integer("m", 8, 4096), t.integer("n", 8, 4096), t.integer("sms", 1, 16),
                      positive_fraction(t, "rate")});
    t.finish();
  }
  if (result.empty() || result.size() > 8) r.problem("tiles", "one to eight tiles");
  return result;
}

GemmCalibration gemm(JsonReader r) {
  GemmCalibration c;
  c.tiles = tiles(r);
  c.issue_fraction = by_dtype(r.object("issue_fraction"));
  c.sustained_fraction = by_dtype(r.object("sustained_fraction"));
  c.wave_rounding = fraction(r, "wave_rounding");
  c.ramp_bytes = r.number("ramp_bytes", 0, 1e5);
  c.memory_fraction = positive_fraction(r, "memory_fraction");
  c.split_k_starts = r.number("split_k_starts", 0, 100);
  c.torch_grouped_fraction = r.maybe_number("torch_grouped_fraction", 0, 1).value_or(0);
  c.start = microseconds(r, "start_us");
  c.best_fraction = positive_fraction(r, "best_fraction");
  c.reference_watts_per_sm = r.number("reference_watts_per_sm", 0.01, 1000);
  c.power_exponent = fraction(r, "power_exponent");
  c.power_limit_exponent = r.maybe_number("power_limit_exponent", 0, 3).value_or(c.power_exponent);
  for (const DTypeRow& row : dtype_rows) {
    const auto i = static_cast<std::size_t>(row.dtype);
    if ((c.issue_fraction[i] > 0) != (c.sustained_fraction[i] > 0))
      r.problem("sustained_fraction", "the same formats as issue_fraction");
  }
  c.evidence = evidence(r);
  return c;
}

AttentionRate attention_rate(JsonReader r) {
  AttentionRate a;
  a.fraction = positive_fraction(r, "fraction");
  a.fp32_fraction = r.maybe_number("fp32_fraction", 0, 1).value_or(0);
  a.ramp_tokens = r.number("ramp_tokens", 0, 1e5);
  a.causal_rate = positive_fraction(r, "causal_rate");
  a.lone_block_rate = positive_fraction(r, "lone_block_rate");
  a.mask_columns = r.maybe_number("mask_columns", 0, 256).value_or(0);
  a.split_blocks = r.maybe_integer("split_blocks", 1, 100'000).value_or(0);
  a.deterministic_rate = r.maybe_number("deterministic_rate", 0.01, 1).value_or(1);
  a.whole_windows = r.maybe_flag("whole_windows").value_or(false);
  r.finish();
  return a;
}

AttentionCalibration attention(JsonReader& r) {
  AttentionCalibration c;
  c.kernel = r.choice("kernel", attention_names);
  c.before = maybe_release(r, "before");
  c.tile_queries = r.integer("tile_queries", 16, 1024);
  for (JsonReader& row : r.objects("rows")) {
    c.rows.push_back({row.integer("head_dim", 16, 1024), attention_rate(row.object("forward")),
                      attention_rate(row.object("backward"))});
    row.finish();
  }
  const auto ascending = [](const AttentionRow& a, const AttentionRow& b) {
    return a.head_dim >= b.head_dim;
  };
  if (c.rows.empty() || c.rows.size() > 6 ||
      std::adjacent_find(c.rows.begin(), c.rows.end(), ascending) != c.rows.end())
    r.problem("rows", "one to six rows of ascending head_dim");
  c.evidence = evidence(r);
  return c;
}

CacheCalibration cache_of(JsonReader& r) {
  CacheCalibration c;
  c.each = BytesPerSecond(r.number("gb_per_s_per_sm", 0.1, 1000) * 1e9);
  c.full = r.number("full", 0, 4);
  c.empty = r.number("empty", 0, 4);
  if (c.empty <= c.full) r.problem("empty", "a number above full");
  r.finish();
  return c;
}

MemoryCalibration memory(JsonReader r) {
  MemoryCalibration c;
  c.fraction = {positive_fraction(r, "streaming_fraction"),
                positive_fraction(r, "reduction_fraction"),
                positive_fraction(r, "gather_fraction")};
  c.start = microseconds(r, "start_us");
  c.cycles_per_element = r.maybe_number("cycles_per_element", 0, 100).value_or(0);
  if (std::optional<JsonReader> cache = r.maybe_object("cache")) c.cache = cache_of(*cache);
  c.evidence = evidence(r);
  return c;
}

ContextCalibration context(JsonReader r) {
  ContextCalibration c;
  c.cuda_context = ceil_bytes(r.number("cuda_context_mib", 0, 1e5) * 1024.0 * 1024.0);
  c.eager_modules = ceil_bytes(r.number("eager_modules_mib", 0, 1e5) * 1024.0 * 1024.0);
  c.cublas_workspace = Bytes(r.integer64("cublas_workspace_bytes", 0, std::int64_t{1} << 36));
  c.cublas_workspaces = r.integer("cublas_workspaces", 0, 64);
  c.evidence = evidence(r);
  return c;
}

TrainingLoad training_load(JsonReader r) {
  TrainingLoad l;
  JsonReader matmul = r.object("matmul");
  for (const DTypeRow& row : dtype_rows)
    l.matmul[static_cast<std::size_t>(row.dtype)] =
        matmul.maybe_number(row.name, 0.1, 1).value_or(1.0);
  matmul.finish();
  if (r.has("fitted_on")) l.fitted_on = r.texts("fitted_on");
  l.evidence = evidence(r);
  return l;
}

bool same_kernel(const AttentionCalibration& a, const AttentionCalibration& b) {
  return a.kernel == b.kernel && a.before == b.before;
}

// A family that is `like` one above it has its rows, but for the groups and the attention kernels
// that it states.
FamilyCalibration family(JsonReader& r, const std::vector<FamilyCalibration>& above) {
  FamilyCalibration f;
  const std::string name = r.text("family");
  const std::optional<std::string> like = r.maybe_text("like");
  if (like) {
    const auto of = std::find_if(above.begin(), above.end(),
                                 [&](const FamilyCalibration& a) { return a.family == *like; });
    if (of == above.end())
      r.problem("like", "a family above this one");
    else
      f = *of;
  }
  f.family = name;
  const auto states = [&](std::string_view group) { return !like || r.has(group); };
  if (states("gemm")) f.gemm = gemm(r.object("gemm"));
  if (r.has("training_load")) f.training_load = training_load(r.object("training_load"));
  if (states("default_attention"))
    f.default_attention = r.choice("default_attention", attention_names);
  if (states("attention"))
    for (JsonReader& a : r.objects("attention")) {
      const AttentionCalibration own = attention(a);
      const auto known =
          std::find_if(f.attention.begin(), f.attention.end(),
                       [&](const AttentionCalibration& k) { return same_kernel(k, own); });
      if (like && known != f.attention.end())
        *known = own;
      else
        f.attention.push_back(own);
    }
  if (f.attention.empty()) r.problem("attention", "at least one kernel");
  if (states("memory")) f.memory = memory(r.object("memory"));
  if (states("context")) f.context = context(r.object("context"));
  r.finish();
  return f;
}

GemmLayout gemm_layout(JsonReader r) {
  GemmLayout g;
  g.accumulate_exponent = r.number("accumulate_exponent", 1, 100);
  g.alignment_bytes = r.integer("alignment_bytes", 1, 1024);
  g.misaligned_rate = positive_fraction(r, "misaligned_rate");
  g.slow_cores_misaligned_rate = positive_fraction(r, "slow_cores_misaligned_rate");
  g.slow_flop_per_cycle = r.integer("slow_flop_per_cycle", 1, 100000);
  g.misaligned_flop_per_cycle = r.integer("misaligned_flop_per_cycle", 1, 100000);
  JsonReader side = r.object("misaligned_by_side");
  g.misaligned_by_side = {side.number("result", 0.1, 10), side.number("operand", 0.1, 10),
                          side.number("weight_gradient", 0.1, 10)};
  side.finish();
  g.transposing_cycles = r.number("transposing_cycles", 0, 1000);
  g.overlap_exponent = r.number("overlap_exponent", 1, 100);
  g.emulated_rate = by_dtype(r.object("emulated_rate"));
  g.evidence = evidence(r);
  return g;
}

ScoreKernels score_kernels(JsonReader r) {
  ScoreKernels k{by_style(r.object("bytes_per_score"), 1000),
                 kernels_by_style(r.object("kernels"))};
  r.finish();
  return k;
}

ScoreTraffic score_traffic(JsonReader r) {
  ScoreTraffic t;
  t.forward_softmax = score_kernels(r.object("forward_softmax"));
  t.forward_elementwise = score_kernels(r.object("forward_elementwise"));
  t.backward_softmax = score_kernels(r.object("backward_softmax"));
  t.backward_elementwise = score_kernels(r.object("backward_elementwise"));
  r.finish();
  return t;
}

EagerAttentionTraffic eager_attention(JsonReader r) {
  EagerAttentionTraffic e;
  e.half = score_traffic(r.object("scores_of_16_bits"));
  e.fp32 = score_traffic(r.object("scores_of_32_bits"));
  e.evidence = evidence(r);
  return e;
}

LaneLoops lane_loops(JsonReader& r) {
  LaneLoops l;
  for (std::size_t i = 1; i < lane_loop_count; ++i) {
    JsonReader loop = r.object(lane_loop_names[i - 1]);
    l.loops[i] = {loop.number("cycles_per_step", 0, 1e6),
                  loop.maybe_number("cycles_per_program", 0, 1e9).value_or(0)};
    loop.finish();
  }
  return l;
}

HostCalibration host(JsonReader r) {
  HostCalibration h;
  const std::array<double, 3> us = by_style(r.object("per_kernel_us"), max_us);
  for (std::size_t i = 0; i < us.size(); ++i) h.per_kernel[i] = Seconds(us[i] * 1e-6);
  h.step_operators = r.number("step_operators", 0, 1e4);
  h.launch_queue = r.integer("launch_queue", 0, 1 << 20);
  h.rank_spread = r.number("rank_spread", 0, 1);
  h.fitted = fitted_fields(r);
  h.communicator_creation = Seconds(r.number("communicator_creation_s", 0, 60));
  h.per_looped_launch = Seconds(r.number("per_looped_launch_us", 0, max_us) * 1e-6);
  h.per_grouped_product = Seconds(r.number("per_grouped_product_us", 0, max_us) * 1e-6);
  h.per_narrow_product = Seconds(r.number("per_narrow_product_us", 0, max_us) * 1e-6);
  h.per_streamed_product = Seconds(r.number("per_streamed_product_us", 0, max_us) * 1e-6);
  h.per_graph_forward = Seconds(r.number("per_graph_forward_us", 0, max_us) * 1e-6);
  h.per_graph_backward = Seconds(r.number("per_graph_backward_us", 0, max_us) * 1e-6);
  h.per_collective = Seconds(r.number("per_collective_us", 0, max_us) * 1e-6);
  JsonReader checkpoint = r.object("checkpoint_operators");
  h.reentrant_checkpoint = checkpoint.number("reentrant", 0, 1e4);
  h.checkpoint = checkpoint.number("not_reentrant", 0, 1e4);
  h.per_checkpointed_tensor = checkpoint.number("not_reentrant_per_saved_tensor", 0, 100);
  checkpoint.finish();
  JsonReader dtensor = r.object("dtensor_operators");
  h.dtensor_forward = dtensor.number("forward", 0, 1e4);
  h.dtensor_backward = dtensor.number("backward", 0, 1e4);
  dtensor.finish();
  h.mxfp8_weight_cast = r.number("mxfp8_weight_cast_operators", 0, 1e4);
  h.evidence = evidence(r);
  return h;
}

MeasuredMatmul measured_matmul(JsonReader& r) {
  MeasuredMatmul m;
  m.gpu = r.text("gpu");
  m.rate = FlopsPerSecond(r.number("dense_16bit_tflops", 0.01, 1e6) * 1e12);
  m.sustained = r.flag("sustained");
  m.provenance = r.provenance();
  r.finish();
  return m;
}

HostMemoryFacts host_memory(JsonReader r) {
  HostMemoryFacts h;
  h.process_resident = Bytes(r.integer64("process_resident_bytes", 0, std::int64_t{1} << 40));
  h.checkpoint_shard = Bytes(r.integer64("checkpoint_shard_bytes", 0, std::int64_t{1} << 40));
  r.provenance();
  r.finish();
  return h;
}

ChipCalibration chips(JsonReader r) {
  ChipCalibration c;
  c.rate_spread = r.number("rate_spread", 0, 0.2);
  c.evidence = evidence(r);
  r.finish();
  return c;
}

Profile profile(JsonReader& r) {
  Profile p;
  p.name = r.text("name");
  p.provenance = r.provenance();
  p.host = host(r.object("host"));
  p.host_memory = host_memory(r.object("host_memory"));
  p.chips = chips(r.object("chips"));
  p.gemm_layout = gemm_layout(r.object("gemm_layout"));
  p.eager_attention = eager_attention(r.object("eager_attention"));
  JsonReader lanes = r.object("lane_loops");
  p.lane_loops = lane_loops(lanes);
  p.lane_evidence = evidence(lanes);
  for (JsonReader& m : r.objects("measured_matmuls")) p.matmuls.push_back(measured_matmul(m));
  for (JsonReader& f : r.objects("families")) p.families.push_back(family(f, p.families));
  if (p.families.empty()) r.problem("families", "a row for unknown families");
  return p;
}

}  // namespace

Result<Profile> load_profile(const std::string& path) {
  const std::filesystem::path file(path);
  const Result<JsonDocument> document = parse_json_file(file, path);
  if (!document) return document.error();
  Problems problems;
  JsonReader r(*document, problems);
  Profile p = profile(r);
  const std::string links = r.text("link_calibration");
  const auto spread = r.maybe_text("spread");
  r.finish();
  if (!problems.empty()) return problems;
  Result<LinkCalibration> calibration =
      load_link_calibration((file.parent_path() / links).string());
  if (!calibration) return calibration.error();
  p.links = *std::move(calibration);
  if (!spread) return p;
  Result<Spread> read = load_spread((file.parent_path() / *spread).string());
  if (!read) return read.error();
  p.spread = *std::move(read);
  return p;
}

}  // namespace shardwise
