// Bounds against forecasts on many plans, and how tight they are.
//
//   plan_bench CATALOG [PLANS]     plans of GPT-3-like and Llama models on up to 64 GPUs,
//                                  and of one Llama in every framework; all of that, then
//                                  half as many with something offloaded to the host
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "planner/facts.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/pipeline_sketch.hpp"
#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"
#include "simulator/offload_choice.hpp"

using namespace shardwise;

namespace {

struct Tally {
  int plans = 0, above = 0;
  double time = 0, memory = 0;  // sums of bound / forecast
};

struct Bench {
  const Facts& facts;
  InFlightCounts counts;
  KnownSlots slots;

  // `n` plans drawn at random from the space of one request.
  Tally measure(const Request& asked, int n, unsigned seed) {
    const auto r = resolve(asked, facts, UnnamedMethods::one);
    if (!r) return {};
    const SearchSite site(*r, r->methods.front(), r->clusters.front());
    const auto outer = site.space.outer_points();
    std::mt19937 random(seed);
    Tally tally;
    // Some frameworks have no plan that keeps this or that on the host.
    for (int drawn = 0; tally.plans < n && drawn < 100 * n; ++drawn) {
      PlanPoint x = outer[random() % outer.size()];
      x[static_cast<std::size_t>(PlanAxis::recompute)] =
          static_cast<std::uint16_t>(random() % site.space.values(PlanAxis::recompute));
      std::vector<ParallelPlan> inner;
      site.space.each_pipeline(x, [&](PlanPoint, const ParallelPlan& p) { inner.push_back(p); });
      if (inner.empty()) continue;
      compare(site, x, inner[random() % inner.size()], tally);
    }
    return tally;
  }

  void compare(const SearchSite& site, const PlanPoint& x, const ParallelPlan& p, Tally& to) {
    const CollectiveModel collectives(site.cluster, facts.profile.links);
    const BoundSite at{site.space.workload(p), site.cluster, facts.profile, collectives};
    const ParallelPlan unstaged = site.space.layers_of(x);
    const LayerBounds layers(at.workload, unstaged, site.cluster, facts.profile, collectives);
    const auto f = forecast({at.workload, p, site.cluster}, facts.profile);
    if (!f) return;
    Bytes fullest;
    for (const StageForecast& s : f->stages) fullest = std::max(fullest, s.peak.device);
    const PipelineSketch sketch = sketch_of(p, layers.blocks(), {});
    const std::vector<LayerState> held = layer_states(at, layers, p);
    const StateBounds states(at, layers, p, held);
    const DataTraffic traffic = data_traffic(at, layers, p);
    const Seconds time = std::max(
        {mean_work_bound(layers, p, site.space.batch()), pipeline_bound(layers, p, traffic),
         costed_bound(at, layers, p, slots), together_bound(at, layers, p, slots),
         stream_bound(at, layers, p), sketched_time(sketch, layers, traffic)});
    const Bytes memory =
        std::max({memory_bound(at, layers, p, counts, held) + communicators_of(at, p),
                  stage_mean_bound(at, layers, p),
                  sketched_memory(sketch, layers, states, p, outside_tensors(at)),
                  mean_memory_bound(at, layers, unstaged, site.space.most_stages(x))});
    ++to.plans;
    if (time > f->step_time.expected || memory > fullest)
      std::fprintf(stderr, "%s in %s: %s: bounds %.9f s and %lld B, forecast %.9f s and %lld B\n",
                   at.workload.model.id.c_str(), at.workload.framework.id.c_str(),
                   whole_text(p).c_str(), time.value, static_cast<long long>(memory.value),
                   f->step_time.expected.value, static_cast<long long>(fullest.value));
    to.above += time > f->step_time.expected || memory > fullest;
    to.time += time / f->step_time.expected;
    to.memory += memory / fullest;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const auto facts = load_facts(argc > 1 ? argv[1] : "catalog", std::nullopt);
  if (!facts) return 4;
  const int plans = argc > 2 ? std::atoi(argv[2]) : 2000;
  constexpr const char* requests[][3] = {{"gpt2", "8xA100-80GB", "megatron-lm"},
                                         {"llama-3.2-1b", "16xH100-SXM", "torchtitan"},
                                         {"gpt3-6.7b", "64xA100-80GB", "megatron-lm"},
                                         {"deepseek-v2-lite", "8xH100-SXM", "megatron-lm"},
                                         {"llama-3.1-8b", "8xRTX-4090", "pytorch-fsdp2"}};
  // Each of them four times, then each framework of the catalog once.
  constexpr std::size_t named = 4 * std::size(requests);
  const std::size_t parts = named + facts->catalog.frameworks.size();
  std::vector<Tally> tallies(2 * parts);
  Bench bench{*facts, {}, {}};
  on_all_cores(tallies.size(), [&](std::size_t part) {
    const bool away = part >= parts;
    const std::size_t i = part % parts;
    const auto& [model, gpus, framework] = requests[i % std::size(requests)];
    Request r;
    r.model = i < named ? model : "llama-3.2-1b";
    r.gpus = i < named ? gpus : "8xA100-40GB";
    r.framework = i < named ? framework : facts->catalog.frameworks[i - named].id;
    r.methods = {i < named ? Method::pretrain : Method::full};
    r.sequence = 1024;
    r.batch = 128;
    if (away) {
      r.offload = offload_choices[1 + i % (offload_choices.size() - 1)].offload;
      r.host_ram = Bytes(std::int64_t{4} << 40);
    }
    const int each = plans / static_cast<int>(parts) / (away ? 2 : 1);
    tallies[part] = bench.measure(r, each, static_cast<unsigned>(part));
  });
  Tally sum;
  for (const Tally& t : tallies) {
    sum.plans += t.plans;
    sum.above += t.above;
    sum.time += t.time;
    sum.memory += t.memory;
  }
  const auto print = [&](const char* name, double value, const char* unit, const char* note) {
    std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"note\": \"%s\"}\n", name,
                value, unit, note);
  };
  print("bounds_checked", sum.plans, "plans", "random plans, bound and forecast compared");
  print("bounds_above_forecast", sum.above, "plans", "must be 0");
  print("time_bound_share", sum.time / sum.plans, "1", "mean of bound / forecast step time");
  print("memory_bound_share", sum.memory / sum.plans, "1", "mean of bound / forecast peak");
  return sum.above == 0 ? 0 : 1;
}
