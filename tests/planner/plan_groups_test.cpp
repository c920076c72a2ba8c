// What makes two runs answers to one question, member by member.
#include "planner/validation/plan_groups.hpp"

#include <functional>
#include <vector>

#include "tests/catch.hpp"
#include "tests/planner/made_runs.hpp"

namespace shardwise {
namespace {

using Change = std::function<void(RunRecord&)>;

void tell_all_parts(RunRecord& r) {
  r.model.mla = LatentAttention{1536, 512, 128, 64, 128};
  r.model.moe = RunModel::Experts{8, 2, 64, 0, 1};
}

// Two runs that differ by `change` in what they tell and by microbatch in their plan.
std::size_t questions(const Change& change) {
  MadeRuns made;
  made.add("a", 1, 1).shape.microbatch = 1;
  tell_all_parts(made.records.back());
  made.add("a", 2, 2).shape.microbatch = 2;
  tell_all_parts(made.records.back());
  change(made.records.back());
  return plan_groups(made.replayed, Grouping::by_all_told).size();
}

}  // namespace

TEST_CASE("runs that differ in their plan alone answer one question") {
  CHECK(questions([](RunRecord&) {}) == 1);
  CHECK(questions([](RunRecord& r) { r.plan.schedule = "gpipe"; }) == 1);
  CHECK(questions([](RunRecord& r) { r.training.recompute = "full"; }) == 1);
}

TEST_CASE("a member of the model that differs makes another question") {
  const std::vector<Change> changes{
      [](RunRecord& r) { r.model.name = "other"; },
      [](RunRecord& r) { r.model.hf_id = "other"; },
      [](RunRecord& r) { r.model.layers = 3; },
      [](RunRecord& r) { r.model.hidden = 3; },
      [](RunRecord& r) { r.model.heads = 3; },
      [](RunRecord& r) { r.model.kv_heads = 3; },
      [](RunRecord& r) { r.model.head_dim = 3; },
      [](RunRecord& r) { r.model.ffn = 3; },
      [](RunRecord& r) { r.model.vocab = 3; },
      [](RunRecord& r) { r.model.gated_mlp = true; },
      [](RunRecord& r) { r.model.tied_embeddings = true; },
      [](RunRecord& r) { r.model.value_embeddings = 3; },
      [](RunRecord& r) { r.model.narrow_tables = true; },
      [](RunRecord& r) { r.model.caps_logits = true; },
      [](RunRecord& r) { r.model.position = PositionKind::rope; },
      [](RunRecord& r) { r.model.norm = NormKind::layer; },
      [](RunRecord& r) { r.model.qk_norm = QkNorm::none; },
      [](RunRecord& r) { r.model.biases = false; },
      [](RunRecord& r) { r.model.mla.reset(); },
      [](RunRecord& r) { r.model.mla->q_lora_rank.reset(); },
      [](RunRecord& r) { r.model.mla->kv_lora_rank = 3; },
      [](RunRecord& r) { r.model.mla->qk_nope_head_dim = 3; },
      [](RunRecord& r) { r.model.mla->qk_rope_head_dim = 3; },
      [](RunRecord& r) { r.model.mla->v_head_dim = 3; },
      [](RunRecord& r) { r.model.moe.reset(); },
      [](RunRecord& r) { r.model.moe->experts = 3; },
      [](RunRecord& r) { r.model.moe->top_k = 3; },
      [](RunRecord& r) { r.model.moe->expert_ffn = 3; },
      [](RunRecord& r) { r.model.moe->shared_experts = 3; },
      [](RunRecord& r) { r.model.moe->dense_layers = 3; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    CHECK(questions(changes[i]) == 2);
  }
}

TEST_CASE("the machine and what is trained make another question") {
  const std::vector<Change> changes{
      [](RunRecord& r) { r.hardware.gpu = "other"; },
      [](RunRecord& r) { r.hardware.gpus = 3; },
      [](RunRecord& r) { r.hardware.gpus_per_node = 3; },
      [](RunRecord& r) { r.hardware.intra_node = "other"; },
      [](RunRecord& r) { r.hardware.inter_node = "other"; },
      [](RunRecord& r) { r.hardware.host_ram = Bytes(3); },
      [](RunRecord& r) { r.hardware.power_limit_w = 3; },
      [](RunRecord& r) { r.hardware.peer_access = true; },
      [](RunRecord& r) { r.training.method = "other"; },
      [](RunRecord& r) { r.training.sequence = 3; },
      [](RunRecord& r) { r.training.global_batch = 3; },
      [](RunRecord& r) { r.training.precision = "other"; },
      [](RunRecord& r) { r.training.grad_dtype = "other"; },
      [](RunRecord& r) { r.training.reduce_dtype = "other"; },
      [](RunRecord& r) { r.training.optimizer = "other"; },
      [](RunRecord& r) { r.training.fused_optimizer = true; },
      [](RunRecord& r) { r.training.dropout = true; },
      [](RunRecord& r) { r.training.framework = "other"; },
      [](RunRecord& r) { r.training.objective = "other"; },
      [](RunRecord& r) { r.training.lora_rank = 3; },
      [](RunRecord& r) { r.training.lora_dropout = 0.5; },
      [](RunRecord& r) { r.training.lora_targets = "other"; },
      [](RunRecord& r) { r.training.trainable_params = 3; },
      [](RunRecord& r) { r.training.quantize = "other"; },
      [](RunRecord& r) { r.training.double_quant = true; },
      [](RunRecord& r) { r.training.compute_dtype = "other"; },
      [](RunRecord& r) { r.training.flash_attention = true; },
      [](RunRecord& r) { r.training.compile = true; },
      [](RunRecord& r) { r.training.compile_loss = true; },
      [](RunRecord& r) { r.training.liger_kernel = true; },
      [](RunRecord& r) { r.training.packing = true; },
      [](RunRecord& r) { r.training.plugins = {"other"}; },
      [](RunRecord& r) { r.training.loss_slice_tokens = 3; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    CHECK(questions(changes[i]) == 2);
  }
}

}  // namespace shardwise
