// Preference training: two sequences to a sample, and a second model that is compared with.
#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/memory/run_buffers.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

Workload tuned(const char* preference) {
  Workload w = pretraining(llama(2, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::full;
  w.framework.loss = LossKind::dense;
  w.prefer(preference_named(preference));  // nullptr: the next token
  return w;
}

LayerSchedule layer_block(const Workload& w, const ParallelPlan& plan) {
  const Cluster cluster = parse_gpus(known_facts().catalog, "4xA100-SXM-80GB")->front();
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  const CostModel model(w, plan, cluster, known_facts().profile);
  return model.costs(partition).stages.front().chunks.front()[1];  // after the embedding
}

ParallelPlan sharded(int microbatch) {
  ParallelPlan plan = plan_of(4);
  plan.zero_stage = 3;
  plan.microbatch = microbatch;
  return plan;
}

std::int64_t logits_of(const LayerGraph& head) {
  std::int64_t bytes = 0;
  for (const Tensor& t : head.tensors)
    if (t.category == MemoryCategory::logits) bytes = std::max(bytes, t.bytes);
  return bytes;
}

}  // namespace

// A pair is a microbatch of two sequences; DPO's reference takes a forward pass and a gather more,
// KTO's two models three passes more of one sequence each.
TEST_CASE("a pair takes what two sequences take, and the reference a pass more", "[preference]") {
  const LayerSchedule two = layer_block(tuned(""), sharded(2)),
                      one = layer_block(tuned(""), sharded(1));
  const LayerSchedule simpo = layer_block(tuned("simpo"), sharded(1));
  CHECK(simpo == two);
  const LayerSchedule dpo = layer_block(tuned("dpo"), sharded(1));
  CHECK(dpo.time.backward_weight == two.time.backward_weight);
  CHECK(dpo.time.forward.host.value == Approx(2 * two.time.forward.host.value));
  CHECK(dpo.gather_forward->value == Approx(2 * two.gather_forward->value));
  CHECK(dpo.gather_backward->value == Approx(two.gather_backward->value));
  const LayerSchedule kto = layer_block(tuned("kto"), sharded(1));
  CHECK(kto.time.backward_weight == one.time.backward_weight);
  CHECK(kto.time.forward.host.value == Approx(4 * one.time.forward.host.value));
}

// Where weights stay gathered after a pass, adapters' base is there for the reference as well; of a
// model that is trained whole the reference is another one.
TEST_CASE("the base under adapters is gathered once", "[preference]") {
  Workload w = tuned("dpo");
  w.framework.sharded.reshard_after_forward = false;
  const Seconds whole = *layer_block(w, sharded(1)).gather_forward;
  w.method = Method::lora;
  w.adapter.rank = 8;
  const Seconds once = *layer_block(w, sharded(1)).gather_forward;
  CHECK(whole.value > 1.9 * once.value);
}

// 2 sequences x 128 tokens x 1,000 words x 2 bytes; a score for each of 2 x 128 tokens.
TEST_CASE("logits of a pair, of the reference, and of a reward model", "[preference]") {
  const ParallelPlan plan = plan_of(1);
  const auto head = [&](const char* preference) {
    LayerDefinition d;
    d.role = LayerRole::head;
    d.graph = head_graph(tuned(preference), plan, false);
    return d;
  };
  CHECK(reference_logits(tuned("dpo"), head("dpo")) == 2 * 128 * 1000 * 2);
  CHECK(reference_logits(tuned("kto"), head("kto")) == 128 * 1000 * 2);
  CHECK(reference_logits(tuned("simpo"), head("simpo")) == 0);
  CHECK(reference_logits(tuned(""), head("")) == 0);
  CHECK(logits_of(head("reward").graph) <= 2 * 128 * 4);
  CHECK(head("reward").graph.parameters.linear + head("reward").graph.parameters.other ==
        512 + 512);  // its score, and the last norm
}

}  // namespace shardwise
