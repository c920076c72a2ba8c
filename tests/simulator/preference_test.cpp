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
  w.framework.loss.kind = LossKind::dense;
  w.prefer(preference_named(preference));  // nullptr: the next token
  return w;
}

std::vector<LayerSchedule> layers_of(const Workload& w, const ParallelPlan& plan) {
  const Cluster cluster = parse_gpus(known_facts().catalog, "4xA100-SXM-80GB")->front();
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  const CostModel model(w, plan, cluster, known_facts().profile);
  return model.costs(partition).stages.front().chunks.front();
}

LayerSchedule layer_block(const Workload& w, const ParallelPlan& plan) {
  return layers_of(w, plan)[1];  // after the embedding
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

// Liger's slices go back at once: of 256 tokens, ratio ceil(65536 / 512) = 128, each slice takes 2.
// The pass with gradients makes its logits and both gradients of them (as many FLOPs each), moves
// 6 bytes of each logit and 2 of each value of the head; the reference's makes the logits and
// reads their 2 bytes.
TEST_CASE("a reference's pass makes no gradients of slices", "[preference]") {
  Workload w = tuned("simpo");
  w.model.vocab = 65536;
  w.framework.loss.kind = LossKind::fused_linear;
  const LayerGraph graph = head_graph(w, plan_of(4), false);
  const Operator& loss = graph.operators.back();
  const std::int64_t slices = 2 * 128 / 2;
  double flops = 0, moved = 0;
  for (const Kernel& k : loss.forward_alone)
    if (const auto* gemm = std::get_if<GemmWork>(&k))
      flops += 2.0 * static_cast<double>(gemm->m * gemm->n * gemm->k);
    else
      moved += static_cast<double>(std::get<MemoryWork>(k).moved.value);
  CHECK(loss.forward.size() == static_cast<std::size_t>(5 * slices));
  CHECK(loss.forward_alone.size() == static_cast<std::size_t>(2 * slices));
  CHECK(flops == 2.0 * 256 * 65536 * 512);
  CHECK(moved == 2.0 * 256 * 65536);

  const auto forward = [&](const char* preference) {
    w.prefer(preference_named(preference));
    return layers_of(w, plan_of(4)).back().time.forward.compute;
  };
  const Seconds simpo = forward("simpo"), dpo = forward("dpo");
  // A third of the products; the head's 2 bytes of each value are not moved.
  CHECK(dpo > simpo);
  CHECK((dpo - simpo).value < simpo.value / 3);
}

// TRL takes the next token's loss in slices; answers' log-probabilities want whole logits. Liger's
// kernel for pairs is one in slices as well.
TEST_CASE("answers are weighed by whole logits", "[preference]") {
  Workload w = tuned("");
  for (const LossKind loss : {LossKind::chunked, LossKind::fused_linear}) {
    w.framework.loss.kind = loss;
    w.prefer(nullptr);
    CHECK(w.framework.loss.kind == loss);
    w.prefer(preference_named("dpo"));
    CHECK(w.framework.loss.kind == (loss == LossKind::chunked ? LossKind::dense : loss));
  }
}

// Where weights stay gathered after a pass, adapters' base is there for the reference as well; of a
// model that is trained whole the reference is another one.
TEST_CASE("the base under adapters is gathered once", "[preference]") {
  Workload w = tuned("dpo");
  w.framework.sharding.parameters.reshard_after_forward = false;
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
