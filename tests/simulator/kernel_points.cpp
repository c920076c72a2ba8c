#include "tests/simulator/kernel_points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "catalog/json_reader.hpp"
#include "catalog/load.hpp"
#include "simulator/costs/kernel_model.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (result) return *std::move(result);
  std::string all;
  for (const Problem& p : result.error()) all += p.where + ": " + p.what + "\n";
  throw std::runtime_error(all);
}

std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Values are times in microseconds or rates in TFLOP/s.
double measured_seconds(const std::string& unit, double value, double flops) {
  return unit == "us" ? value * 1e-6 : flops / (value * 1e12);
}

KernelSet gemm_set(JsonReader& r) {
  KernelSet set{r.text("set"), {}, {}};
  const KernelModel model(catalogued_gpu(r.text("gpu")), published_profile());
  GemmShape shape;
  shape.dtype = *dtype_named(r.text("dtype"));
  shape.accumulate = r.flag("accumulate");
  const std::string unit = r.text("unit");
  const std::vector<double> p = r.numbers("points");
  for (std::size_t i = 0; i + 3 < p.size(); i += 4) {
    shape.m = whole(p[i]), shape.n = whole(p[i + 1]), shape.k = whole(p[i + 2]);
    set.measured.push_back(measured_seconds(unit, p[i + 3], 2 * p[i] * p[i + 1] * p[i + 2]));
    set.predicted.push_back(model.gemm(shape).value);
  }
  r.provenance();
  r.finish();
  return set;
}

constexpr std::array<std::pair<std::string_view, FusedAttention>, 5> fused_kernels{
    {{"memory_efficient", FusedAttention::memory_efficient},
     {"flash2", FusedAttention::flash2},
     {"flash3", FusedAttention::flash3},
     {"cudnn", FusedAttention::cudnn},
     {"cudnn_mxfp8", FusedAttention::cudnn_mxfp8}}};

KernelSet attention_set(JsonReader& r) {
  KernelSet set{r.text("set"), {}, {}};
  AttentionWork work;
  AttentionChoice choice{std::nullopt, KernelStyle::fused};
  const std::string kernel = r.text("kernel"), direction = r.text("direction");
  if (kernel == "eager") work.kernel = AttentionKernel::eager;
  for (const auto& [name, fused] : fused_kernels)
    if (kernel == name) choice.fused = fused;
  const KernelModel model(catalogued_gpu(r.text("gpu")), published_profile(), choice);
  work.causal = r.flag("causal");
  work.masked = r.maybe_flag("masked").value_or(false);
  const std::string unit = r.text("unit");
  const std::vector<double> p = r.numbers("points");
  for (std::size_t i = 0; i + 5 < p.size(); i += 6) {
    work.batch = whole(p[i]), work.heads = static_cast<int>(p[i + 1]);
    work.kv_heads = static_cast<int>(p[i + 2]), work.head_dim = static_cast<int>(p[i + 3]);
    work.queries = work.keys = whole(p[i + 4]);
    Seconds time(0);
    double per_pair = 0;  // FLOPs by pair and head dimension
    for (const bool backward : {false, true}) {
      if (direction == (backward ? "forward" : "backward")) continue;
      work.backward = backward;
      time += model.attention(work);
      per_pair += backward ? 10 : 4;
    }
    const double pairs = visible_pairs(work.queries, work.keys, work.causal);
    const double flops = per_pair * p[i] * p[i + 1] * p[i + 3] * pairs;
    set.measured.push_back(measured_seconds(unit, p[i + 5], flops));
    set.predicted.push_back(time.value);
  }
  r.provenance();
  r.finish();
  return set;
}

KernelSet memory_set(JsonReader& r) {
  KernelSet set{r.text("set"), {}, {}};
  const KernelModel model(catalogued_gpu(r.text("gpu")), published_profile());
  r.ignore("access");
  const std::vector<double> p = r.numbers("points");
  for (std::size_t i = 0; i + 1 < p.size(); i += 2) {
    set.measured.push_back(p[i + 1] * 1e-6);
    set.predicted.push_back(model.memory_bound(Bytes(whole(p[i]))).value);
  }
  r.provenance();
  r.finish();
  return set;
}

KernelPoints read_points() {
  const std::string file = source_dir() + "/tests/simulator/kernel_points.json";
  const JsonDocument document = value_of(parse_json_file(file, "kernel_points.json"));
  Problems problems;
  JsonReader r(document, problems);
  KernelPoints points;
  for (JsonReader& s : r.objects("gemm")) points.gemm.push_back(gemm_set(s));
  for (JsonReader& s : r.objects("attention")) points.attention.push_back(attention_set(s));
  for (JsonReader& s : r.objects("memory")) points.memory.push_back(memory_set(s));
  r.finish();
  if (!problems.empty()) value_of(Result<int>(problems));
  return points;
}

}  // namespace

double KernelSet::error_quantile(double share) const {
  std::vector<double> errors;
  for (std::size_t i = 0; i < measured.size(); ++i)
    errors.push_back(std::fabs(std::log(predicted[i] / measured[i])));
  return quantile(errors, share);
}

double KernelSet::bias() const {
  std::vector<double> errors;
  for (std::size_t i = 0; i < measured.size(); ++i)
    errors.push_back(std::log(predicted[i] / measured[i]));
  return quantile(errors, 0.5);
}

const Profile& published_profile() {
  static const Profile profile =
      value_of(load_profile(source_dir() + "/catalog/profiles/published.json"));
  return profile;
}

const Gpu& catalogued_gpu(const std::string& id) {
  static const std::vector<Gpu> gpus = value_of(load_gpus(source_dir() + "/catalog"));
  for (const Gpu& g : gpus)
    if (g.id == id) return g;
  throw std::runtime_error("no GPU " + id + " in the catalog");
}

double lane_cycles(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k))
      sum += published_profile().lane_loops.cycles(m->lanes);
  return sum;
}

const KernelPoints& kernel_points() {
  static const KernelPoints points = read_points();
  return points;
}

}  // namespace shardwise
