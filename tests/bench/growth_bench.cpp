// How the cost of one simulated step grows with the number of GPUs, folded and unfolded.
//
//   growth_bench CATALOG GPUS folded|unfolded
//
// The step is that of Llama-3.1-405B under TP8 PP16 1F1B with 16 microbatches per data rank, at
// stage-chunk granularity; data parallelism takes the rest of the GPUs (16,384: DP128). One process
// plays one step and prints its wall time and the most memory that the process ever held, catalog
// and all, so that one figure never hides behind another.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "planner/forecast/forecast.hpp"

using namespace shardwise;

namespace {

Question question(const Facts& facts, int gpus) {
  Question q;
  q.workload.model = **find_model(facts.catalog, "llama-3.1-405b");
  q.workload.method = Method::pretrain;
  q.workload.sequence = 8192;
  q.workload.framework = **find_framework(facts.catalog, "megatron-lm");
  q.cluster = parse_gpus(facts.catalog, std::to_string(gpus) + "xH100-SXM")->front();
  q.plan = *parse_plan("dp=" + std::to_string(gpus / 128) +
                       ",tp=8,sp=true,pp=16,zero=1,mbs=1,ga=16,recompute=none");
  return q;
}

double peak_gb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}

void print(const std::string& name, double value, const char* unit, long long tasks) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"note\": "
      "\"Llama-3.1-405B, TP8 PP16, 1F1B, one whole forecast, %lld tasks\"}\n",
      name.c_str(), value, unit, tasks);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto facts = load_facts(argv[1], std::nullopt);
  if (!facts) {
    std::fprintf(stderr, "%s\n", facts.error().front().what.c_str());
    return 4;
  }
  const std::string gpus = argv[2], how = argv[3];
  const Question q = question(*facts, std::atoi(gpus.c_str()));
  const auto begin = std::chrono::steady_clock::now();
  const auto f = forecast(q, facts->profile, {.unfold = how == "unfolded"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!f) return 70;
  print("step_405b_" + gpus + '_' + how + "_s", took.count(), "s", f->tasks);
  print("step_405b_" + gpus + '_' + how + "_gb", peak_gb(), "GB", f->tasks);
}
