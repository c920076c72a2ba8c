// Forecasts per second and the step of Llama-3.1-405B on 16,384 GPUs, folded.
#include <chrono>
#include <cstdio>
#include <string>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "planner/forecast/forecast.hpp"

using namespace shardwise;

namespace {

double seconds_of(const Question& q, const Profile& profile, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i)
    if (!forecast(q, profile)) return 0;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return took.count() / times;
}

void print(const char* name, double value, const char* unit, const char* note) {
  std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"note\": \"%s\"}\n", name,
              value, unit, note);
}

}  // namespace

int main(int argc, char** argv) {
  const auto facts = load_facts(argc > 1 ? argv[1] : "catalog", std::nullopt);
  if (!facts) {
    std::fprintf(stderr, "%s\n", facts.error().front().what.c_str());
    return 4;
  }
  Question q;
  q.workload.model = **find_model(facts->catalog, "llama-3.1-405b");
  q.workload.method = Method::pretrain;
  q.workload.sequence = 8192;
  q.workload.framework = **find_framework(facts->catalog, "megatron-lm");
  q.cluster = parse_gpus(facts->catalog, "16384xH100-SXM")->front();
  q.plan = *parse_plan("dp=128,tp=8,sp=true,pp=16,zero=1,mbs=1,ga=16,recompute=none");
  const double each = seconds_of(q, facts->profile, 5);
  print("step_405b_16384_folded_s", each, "s", "TP8 PP16 DP128, 1F1B, one whole forecast");
  q.cluster = parse_gpus(facts->catalog, "512xA100-80GB")->front();
  q.workload.model = **find_model(facts->catalog, "gpt3-175b");
  q.workload.sequence = 2048;
  q.plan = *parse_plan("dp=8,tp=8,sp=true,pp=8,zero=1,mbs=1,ga=32,recompute=full");
  print("forecasts_per_second", 1.0 / seconds_of(q, facts->profile, 20), "1/s",
        "GPT-3-175B on 512xA100, complete forecasts on one core");
}
