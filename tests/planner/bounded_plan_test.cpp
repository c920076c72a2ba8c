#include "tests/planner/bounded_plan.hpp"

#include <random>
#include <string>

#include "simulator/network/collective_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/any_problem.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct KnownRow {
  const char *model, *gpus, *framework;
  Method method;
  std::optional<DType> precision;
  int sequence;
  const char* plan;
  const char* targets = nullptr;
};

std::optional<BoundedPlan> bounded(const KnownRow& row) {
  Request r = request_for(row.model, row.gpus, {row.method});
  r.framework = row.framework;
  r.precision = row.precision;
  r.sequence = row.sequence;
  const ParallelPlan plan = *parse_plan(row.plan);
  r.batch = plan.global_batch();
  r.offload = plan.offload;
  r.host_ram = Bytes(std::int64_t{4} << 40);
  if (row.targets != nullptr) {
    r.lora_targets = row.targets;
    r.lora_rank = 2;
  }
  const ResolvedRequest asked = resolved(r);
  const SearchSite site(asked, row.method, asked.clusters.front());
  return BoundedPlans(site, known_facts().profile).of(plan, plan.pipeline);
}

}  // namespace

// Each has been above. Quantised weights that lie whole on each data rank are shared out by stages
// alone; operators that a search lets run again do not go to the host, however long that way is;
// where stages leave one data rank, FSDP gathers adapters in 16 bits, or their inputs are not kept;
// a table of positions has a gradient, the indexer of sparse attention has none, and a head's
// beside adapters is as wide as theirs; the per-layer embeddings of Gemma keep the stream that the
// first block keeps as well.
TEST_CASE("bounds hold where data ranks, searched layers and the ends make a difference",
          "[search]") {
  const std::optional<DType> fp16 = DType::fp16, any;
  const KnownRow rows[] = {
      {"llama-3.1-8b", "4xRTX-4090", "megatron-lm-plain", Method::qlora, any, 128,
       "dp=1,pp=4,zero=3,mbs=1,ga=4,recompute=none"},
      {"gpt2", "1xRTX-4090", "peft-autocast-sliced-loss", Method::full, any, 512,
       "dp=1,mbs=4,ga=2,recompute=best-3,offload=activations,zero=0"},
      {"qwen3-0.6b", "8xRTX-4090", "prime-rl", Method::lora, any, 512,
       "dp=1,tp=4,sp=true,pp=2,mbs=1,ga=2,recompute=none,zero=0"},
      {"santacoder", "4xRTX-4090", "accelerate-fsdp-2024", Method::lora, fp16, 8192,
       "dp=1,pp=4,zero=3,split=true,mbs=8,ga=1,recompute=none,offload=params", "gate,up,down"},
      {"megatron-gpt-18b", "1xRTX-4090", "axolotl-2023", Method::full, fp16, 500,
       "dp=1,mbs=12,ga=1,recompute=selective,offload=params,zero=0"},
      {"gemma-4-e4b", "1xMI100", "megatron-lm-plain", Method::lora, fp16, 4096,
       "dp=1,mbs=2,ga=4,recompute=selective,zero=0"},
      {"deepseek-v3.2", "1xH200-SXM", "nemo-rl-dtensor", Method::pretrain, any, 16,
       "dp=1,zero=3,mbs=2,ga=2,recompute=one-in-2-layers,offload=activations"},
      {"exaone-3.5-7.8b", "8xRTX-4080", "galvatron", Method::qlora, any, 16,
       "dp=1,pp=8,zero=1,mbs=4,ga=1,recompute=none", "q,v,lm_head"}};
  for (const KnownRow& row : rows) {
    INFO(row.model << " in " << row.framework << ": " << row.plan);
    const auto b = bounded(row);
    REQUIRE(b);
    CHECK(b->time() <= b->step);
    CHECK(b->size() <= b->fullest);
  }
}

// The models are small, so that a forecast takes milliseconds.
TEST_CASE("bounds hold in any framework, for any model and setting", "[search]") {
  std::mt19937 random(2);
  int plans = 0, frameworks = 0;
  std::string last;
  while (plans < 150) {
    const Request r = any_request(known_facts(), random, 16);
    const auto asked = resolve(r, known_facts(), UnnamedMethods::one);
    if (!asked || asked->model.layers > 30 || asked->model.hidden > 2048) continue;
    const SearchSite site(*asked, asked->methods.front(), asked->clusters.front());
    BoundedPlans bounds(site, known_facts().profile);
    frameworks += *r.framework != last;
    last = *r.framework;
    each_drawn(site.space, random, 3, [&](const ParallelPlan& p, int most_stages) {
      INFO(*r.model << " on " << *r.gpus << " in " << *r.framework << ": " << whole_text(p));
      const auto b = bounds.of(p, most_stages);
      if (!b) return;
      ++plans;
      CHECK(b->time() <= b->step);
      CHECK(b->size() <= b->fullest);
      if (b->fits) CHECK(b->step_from_kept == b->step);
    });
  }
  CHECK(frameworks > 30);
}

}  // namespace shardwise
