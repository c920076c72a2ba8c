// Forecasts per second over plan spaces, on one core.
//
//   forecast_bench CATALOG [EVERY [time|memory]]     of each space, every so many-th plan; of each
//                                                    forecast that alone
//
// The plans are all legal ones of a product: tensor and pipeline parallelism (data parallelism
// takes the rest of the GPUs), microbatch, recomputation, ZeRO stage, 1F1B or interleaved stages,
// at one global batch. Each plan is forecast once, completely: memory of every stage, step time
// and breakdown. Processor time, so that what else the machine does counts less than on the wall.
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "planner/forecast/forecast.hpp"
#include "simulator/plan_rules.hpp"

using namespace shardwise;

namespace {

struct Space {
  const char* name;
  const char* model;
  const char* gpus;
  int sequence, batch;
};

Question question(const Facts& facts, const Space& space) {
  Question q;
  q.workload.model = **find_model(facts.catalog, space.model);
  q.workload.method = Method::pretrain;
  q.workload.sequence = space.sequence;
  q.workload.framework = **find_framework(facts.catalog, "megatron-lm");
  q.cluster = parse_gpus(facts.catalog, space.gpus)->front();
  return q;
}

std::vector<ParallelPlan> plans_of(const Question& q, int batch) {
  std::vector<ParallelPlan> plans;
  const int gpus = q.cluster.gpus();
  for (const int tp : {1, 2, 4, 8})
    for (const int pp : {1, 2, 4, 8, 16, 32})
      for (const int mbs : {1, 2, 4})
        for (const char* recompute : {"none", "selective", "full"})
          for (const int zero : {0, 1})
            for (const int chunks : {1, 2}) {
              ParallelPlan p;
              p.tensor = tp;
              p.sequence_parallel = tp > 1;
              p.pipeline = pp;
              p.data = gpus / (tp * pp);
              p.microbatch = mbs;
              p.microbatches = batch / (p.data * mbs);
              p.recompute = recompute;
              p.zero_stage = zero;
              p.chunks = chunks;
              p.schedule = chunks > 1 ? "interleaved" : "1f1b";
              const bool whole = p.global_batch() == batch && p.gpus() == gpus;
              if (whole && plan_problems(q.workload, p, q.cluster).empty()) plans.push_back(p);
            }
  return plans;
}

double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool measure(const Facts& facts, const Space& space, std::size_t every,
             const ForecastOptions& options) {
  Question q = question(facts, space);
  std::vector<ParallelPlan> plans;
  const std::vector<ParallelPlan> all = plans_of(q, space.batch);
  for (std::size_t i = 0; i < all.size(); i += every) plans.push_back(all[i]);
  const double begin = processor_s();
  for (const ParallelPlan& plan : plans) {
    q.plan = plan;
    if (!forecast(q, facts.profile, options)) return false;
  }
  std::printf(
      "{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"1/s\", \"note\": \"%s on %s, %zu plans, "
      "each forecast once and %s, one core\"}\n",
      space.name, static_cast<double>(plans.size()) / (processor_s() - begin), space.model,
      space.gpus, plans.size(),
      !options.memory ? "in time alone"
      : !options.time ? "in memory alone"
                      : "completely");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const auto facts = load_facts(argc > 1 ? argv[1] : "catalog", std::nullopt);
  if (!facts) {
    std::fprintf(stderr, "%s\n", facts.error().front().what.c_str());
    return 4;
  }
  const std::size_t every = argc > 2 ? std::stoul(argv[2]) : 1;
  const std::string_view alone = argc > 3 ? argv[3] : "";
  ForecastOptions options;
  options.time = alone != "memory";
  options.memory = alone != "time";
  const Space spaces[] = {
      {"forecasts_per_second_gpt3_512", "gpt3-175b", "512xA100-80GB", 2048, 1536},
      {"forecasts_per_second_405b_4096", "llama-3.1-405b", "4096xH100-SXM", 8192, 2048}};
  for (const Space& space : spaces)
    if (!measure(*facts, space, every, options)) return 70;
}
