// Forecasts with their records, of plans that between them use every kind of lane and link.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "planner/forecast/forecast.hpp"
#include "planner/forecast/step_record.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

struct RecordedPlan {
  const char* model;
  const char* gpus;
  Method method;
  const char* framework;
  const char* plan;
  bool unfold = false;
};

inline const std::vector<RecordedPlan>& recorded_plans() {
  static const std::vector<RecordedPlan> plans{
      {"llama-3.2-1b", "8xH100-SXM", Method::pretrain, "megatron-lm",
       "dp=2,tp=2,sp=true,pp=2,zero=1,mbs=1,ga=4,recompute=none", false},
      {"llama-3.2-1b", "8xH100-SXM", Method::pretrain, "megatron-lm",
       "dp=2,tp=2,sp=true,pp=2,zero=1,mbs=1,ga=4,recompute=none", true},
      {"llama-3.2-1b", "4xH100-SXM", Method::pretrain, "megatron-lm",
       "dp=1,pp=4,vpp=2,schedule=zb-v,mbs=1,ga=8,recompute=none", false},
      {"llama-3.2-1b", "16xA100-80GB", Method::full, "pytorch-fsdp2",
       "dp=16,zero=3,mbs=1,ga=2,recompute=full", false},
      {"gpt2", "4xRTX-4090", Method::full, "pytorch-ddp", "dp=4,mbs=2,ga=1,recompute=none", false},
      {"llama-2-7b", "2xRTX-3090", Method::qlora, "fsdp_qlora",
       "dp=2,zero=3,mbs=1,ga=1,recompute=full", false},
      {"llama-3.2-1b", "4xRTX-4090", Method::full, "deepspeed",
       "dp=4,zero=2,mbs=1,ga=2,recompute=full,offload=optimizer", false},
  };
  return plans;
}

inline Forecast recorded(const RecordedPlan& asked) {
  static const Facts facts = *load_facts(source_dir() + "/catalog", std::nullopt);
  Question q;
  q.workload.model = **find_model(facts.catalog, asked.model);
  q.workload.method = asked.method;
  q.workload.sequence = 1024;
  q.workload.framework = **find_framework(facts.catalog, asked.framework);
  q.plan = *parse_plan(asked.plan);
  q.cluster = parse_gpus(facts.catalog, asked.gpus)->front();
  auto f =
      forecast(q, facts.profile, {.unfold = asked.unfold, .critical_path = true, .record = true});
  if (!f) FAIL(f.error().front().what);
  return *std::move(f);
}

}  // namespace shardwise
