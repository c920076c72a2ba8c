// Bounds against forecasts on many plans, and how tight they are.
//
//   plan_bench CATALOG [PLANS]     plans of GPT-3-like and Llama models on up to 64 GPUs,
//                                  and of one Llama in every framework; all of that, then
//                                  half as many with something offloaded to the host
//   plan_bench CATALOG PLANS SEED  so many of any model, card, framework, method and setting of
//                                  the catalog, of problems drawn with this seed
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "planner/facts.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_search.hpp"
#include "simulator/offload_choice.hpp"
#include "tests/planner/any_problem.hpp"
#include "tests/planner/bounded_plan.hpp"

using namespace shardwise;

namespace {

struct Tally {
  int plans = 0, above = 0;
  double time = 0, memory = 0;  // sums of bound / forecast

  Tally& operator+=(const Tally& o) {
    plans += o.plans;
    above += o.above;
    time += o.time;
    memory += o.memory;
    return *this;
  }
};

// What was asked, beside what the plan says.
std::string told(const Request& r) {
  std::string text = *r.model + " on " + *r.gpus + " in " + *r.framework + ", " +
                     std::string(name(r.methods.front())) + " seq=" + std::to_string(*r.sequence);
  const auto add = [&](const char* what, std::string_view value) {
    text.append(" ").append(what).append("=").append(value);
  };
  if (r.nodes) add("nodes", std::to_string(*r.nodes));
  if (r.network) add("network", *r.network);
  if (r.optimizer != nullptr) add("optimizer", r.optimizer->name);
  if (r.precision) add("precision", row(*r.precision).name);
  if (r.preference != nullptr) add("preference", r.preference->name);
  if (r.lora_rank) add("lora-rank", std::to_string(*r.lora_rank));
  if (r.lora_targets) add("lora-targets", *r.lora_targets);
  if (r.quantization) add("quantization", row(*r.quantization).name);
  if (r.expandable_segments) add("expandable-segments", "yes");
  if (r.fused_loss) add("fused-loss", "yes");
  if (r.fp8_attention) add("fp8-attention", "yes");
  return text;
}

void tell(const Request& r, const ParallelPlan& p, const BoundedPlan& b) {
  std::fprintf(stderr, "%s: %s: forecast %.9f s, %.9f s from kept layers, %lld B; bounds",
               told(r).c_str(), whole_text(p).c_str(), b.step.value, b.step_from_kept.value,
               static_cast<long long>(b.fullest.value));
  for (const Seconds t : b.times)
    std::fprintf(stderr, " %.9f s%s", t.value, t > b.step ? " (!)" : "");
  for (const Bytes size : b.sizes)
    std::fprintf(stderr, " %lld B%s", static_cast<long long>(size.value),
                 size > b.fullest ? " (!)" : "");
  std::fprintf(stderr, "\n");
}

// `n` plans drawn at random from the space of one request, if it is one.
Tally measure(const Request& asked, const Facts& facts, int n, std::mt19937& random) {
  Tally tally;
  const auto r = resolve(asked, facts, UnnamedMethods::one);
  if (!r) return tally;
  const SearchSite site(*r, r->methods.front(), r->clusters.front());
  BoundedPlans bounds(site, facts.profile);
  each_drawn(site.space, random, n, [&](const ParallelPlan& p, int most_stages) {
    const auto b = bounds.of(p, most_stages);
    if (!b) return;
    ++tally.plans;
    if (!b->is_bounded()) {
      ++tally.above;
      tell(asked, p, *b);
    }
    tally.time += b->time() / b->step;
    tally.memory += b->size() / b->fullest;
  });
  return tally;
}

Tally measure_any(const Facts& facts, int plans, unsigned seed) {
  constexpr int of_each = 8;
  std::mt19937 random(seed);
  Tally sum;
  while (sum.plans < plans) sum += measure(any_request(facts, random, 64), facts, of_each, random);
  return sum;
}

Tally measure_usual(const Facts& facts, int plans) {
  constexpr const char* requests[][3] = {{"gpt2", "8xA100-80GB", "megatron-lm"},
                                         {"llama-3.2-1b", "16xH100-SXM", "torchtitan"},
                                         {"gpt3-6.7b", "64xA100-80GB", "megatron-lm"},
                                         {"deepseek-v2-lite", "8xH100-SXM", "megatron-lm"},
                                         {"llama-3.1-8b", "8xRTX-4090", "pytorch-fsdp2"}};
  // Each of them four times, then each framework of the catalog once.
  constexpr std::size_t named = 4 * std::size(requests);
  const std::size_t parts = named + facts.catalog.frameworks.size();
  std::vector<Tally> tallies(2 * parts);
  on_all_cores(tallies.size(), [&](std::size_t part) {
    const bool away = part >= parts;
    const std::size_t i = part % parts;
    const auto& [model, gpus, framework] = requests[i % std::size(requests)];
    Request r;
    r.model = i < named ? model : "llama-3.2-1b";
    r.gpus = i < named ? gpus : "8xA100-40GB";
    r.framework = i < named ? framework : facts.catalog.frameworks[i - named].id;
    r.methods = {i < named ? Method::pretrain : Method::full};
    r.sequence = 1024;
    r.batch = 128;
    if (away) {
      r.offload = offload_choices[1 + i % (offload_choices.size() - 1)].offload;
      r.host_ram = Bytes(std::int64_t{4} << 40);
    }
    std::mt19937 random(static_cast<unsigned>(part));
    tallies[part] = measure(r, facts, plans / static_cast<int>(parts) / (away ? 2 : 1), random);
  });
  Tally sum;
  for (const Tally& t : tallies) sum += t;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const auto facts = load_facts(argc > 1 ? argv[1] : "catalog", std::nullopt);
  if (!facts) return 4;
  const int plans = argc > 2 ? std::atoi(argv[2]) : 2000;
  const Tally sum = argc > 3 ? measure_any(*facts, plans, static_cast<unsigned>(std::atoi(argv[3])))
                             : measure_usual(*facts, plans);
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
