#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

// Compute capability 8.9, 9.0 and 12.0 multiply 8 bits with the inner dimension last alone, so that
// backward reads a transposed copy; 10.0 takes operands as they lie.
TEST_CASE("weights of 8-bit products lie twice where a card cannot read them by columns") {
  const std::vector<std::pair<std::string, bool>> cards{
      {"8xRTX-4090", true}, {"8xH100-SXM", true}, {"8xRTX-5090", true}, {"8xB200", false}};
  for (const auto& [name, twice] : cards) {
    CAPTURE(name);
    const ResolvedRequest r = resolved(request_for("8b", name, {Method::full}));
    Framework f;
    settle_on(r.clusters.front().groups.front().gpu, DType::fp8, f);
    CHECK(f.narrow.weights_twice == twice);
  }
}

// Transformer Engine has a kernel of 8-bit operands for compute capability 10.x.
TEST_CASE("attention stays in 16 bits where a card has no kernel of 8") {
  const std::vector<std::pair<std::string, bool>> cards{
      {"8xH100-SXM", false}, {"8xRTX-5090", false}, {"8xB200", true}, {"4xGB300", true}};
  for (const auto& [name, narrow] : cards) {
    CAPTURE(name);
    const ResolvedRequest r = resolved(request_for("8b", name, {Method::full}));
    Workload w;
    w.framework.narrow.attention = true;
    settle_attention(r.clusters.front().groups.front().gpu, w);
    CHECK(w.framework.narrow.attention == narrow);
  }
}

// thunder-benchmark calls cuDNN's kernel by itself, torchtitan calls PyTorch's of it on
// Blackwell: neither casts operands of attention. Transformer Engine does in Megatron's.
TEST_CASE("attention in 8 bits is to be had of Transformer Engine alone") {
  const std::vector<std::pair<std::string, bool>> rows{
      {"megatron-bridge", true}, {"thunder-benchmark", false}, {"torchtitan", false}};
  for (const auto& [framework, narrow] : rows) {
    CAPTURE(framework);
    Request asked = request_for("8b", "8xB200", {Method::pretrain});
    asked.framework = framework;
    asked.precision = DType::mxfp8;
    asked.fp8_attention = true;
    const ResolvedRequest r = resolved(asked);
    const ChosenWorkload chosen = choose_workload(r, Method::pretrain, r.clusters.front(), 1);
    CHECK(chosen.workload.framework.attention.kernel == AttentionKernel::cudnn);
    CHECK(chosen.workload.framework.narrow.attention == narrow);
    const bool told = std::any_of(chosen.notes.begin(), chosen.notes.end(), [](const auto& note) {
      return note.find("stays in 16 bits") != std::string::npos;
    });
    CHECK(told != narrow);
  }
}

// Of Transformer Engine's kernels FlashAttention-2 alone goes backward on Blackwell with dropout
// and sums in one order.
TEST_CASE("deterministic attention that drops out is FlashAttention-2's on Blackwell") {
  struct Row {
    const char* card;
    bool deterministic, dropout;
    AttentionKernel kernel;
  };
  for (const Row& row : {Row{"4xGB200", true, true, AttentionKernel::flash2},
                         Row{"4xGB200", true, false, AttentionKernel::cudnn},
                         Row{"4xGB200", false, true, AttentionKernel::cudnn},
                         Row{"8xH100-SXM", true, true, AttentionKernel::cudnn}}) {
    CAPTURE(row.card, row.deterministic, row.dropout);
    const ResolvedRequest r = resolved(request_for("8b", row.card, {Method::full}));
    Workload w;
    w.framework.attention.kernel = AttentionKernel::cudnn;
    w.framework.layers.deterministic = row.deterministic;
    w.attention_dropout = row.dropout;
    settle_attention(r.clusters.front().groups.front().gpu, w);
    CHECK(w.framework.attention.kernel == row.kernel);
  }
}

}  // namespace shardwise
