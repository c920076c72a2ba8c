// What experts cost beside their products: the way of the tokens, and the CPU.
#include <algorithm>
#include <cmath>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/graphs/visited_places.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

// 64 experts of which every token takes eight, 4,096 tokens of width 2,048.
Workload mixture() {
  Workload w = pretraining(llama(1, 2048, 16, 16, 5632, 32000), 4096);
  w.model.moe = MixtureOfExperts{64, 8, 1024, 0, false, 0, 1};
  return w;
}

struct Block {
  LayerTime time;
  Bytes sent;  // by one dispatch
};

Block expert_block(const Workload& w, int experts, const char* gpus) {
  const Cluster cluster = parse_gpus(known_facts().catalog, gpus)->front();
  ParallelPlan plan = plan_of(cluster.gpus());
  plan.expert = experts;
  const CostModel cost(w, plan, cluster, known_facts().profile);
  const KernelModel kernels(cluster.groups.front().gpu, known_facts().profile, {});
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  std::vector<CollectiveUse> uses;
  const LayerTime time =
      cost.layer_time(*partition.stages[0][0].layers[1].definition, kernels, &uses);
  Bytes sent;
  for (const CollectiveUse& u : uses)
    if (u.collective == Collective::all_to_all) sent = std::max(sent, u.size);
  return {time, sent};
}

}  // namespace

// All-to-all: 4,096 tokens x 8 experts x 2,048 x 2 B = 134,217,728 B. Once to each of the 8 ranks
// that one of 8 experts drawn evenly hits: 8 (1 - (7/8)^8) = 5.251 copies for 8. On two nodes, once
// to each node: 2 (1 - (1/2)^8) = 1.992 copies for 8.
TEST_CASE("a dispatcher that sends a token once to a place sends less", "[experts]") {
  Workload w = mixture();
  CHECK(expert_block(w, 8, "8xH100-SXM").sent == Bytes(134'217'728));
  w.framework.experts.dispatches_once = true;
  CHECK(static_cast<double>(expert_block(w, 8, "8xH100-SXM").sent.value) ==
        Approx(134'217'728 * (1 - std::pow(7.0 / 8, 8)) * 8 / 8).epsilon(1e-6));
  CHECK(static_cast<double>(expert_block(w, 16, "16xH100-SXM").sent.value) ==
        Approx(134'217'728 * (1 - std::pow(0.5, 8)) * 2 / 8).epsilon(1e-6));
}

// 64 experts in 8 groups, a token's 8 in 4 of them. On 8 ranks a group lies on each: only those of
// the 4 count, 4 (1 - (3/4)^8) = 3.600 copies for 8 rather than 5.251. On 32 ranks there are 16 for
// them: 16 (1 - (15/16)^8) = 6.453. On two nodes of four groups each, one is left out where all
// four lie on the other, 1 way of C(8,4) = 70; where it has j of them it is missed by (1 - j/4)^8:
// j = 1 and 3: 16 ways, j = 2: 36 ways, j = 4: 1 way. One node is visited by 1 - (1 + 16 (3/4)^8 +
// 36 (1/2)^8 + 16 (1/4)^8) / 70 = 0.96082.
TEST_CASE("a token visits where its groups of experts lie", "[experts]") {
  MixtureOfExperts moe{64, 8, 1024, 0, false, 0, 1};
  CHECK(visited_places(moe, 8) == Approx(8 * (1 - std::pow(7.0 / 8, 8))));
  moe.groups = 8;
  moe.chosen_groups = 4;
  CHECK(visited_places(moe, 8) == Approx(4 * (1 - std::pow(0.75, 8))));
  CHECK(visited_places(moe, 32) == Approx(16 * (1 - std::pow(15.0 / 16, 8))));
  const double missed =
      (1 + 16 * std::pow(0.75, 8) + 36 * std::pow(0.5, 8) + 16 * std::pow(0.25, 8)) / 70;
  CHECK(visited_places(moe, 2) == Approx(2 * (1 - missed)));
  CHECK(visited_places(moe, 1) == Approx(1));
  // Three nodes: two with three groups and one with two. All four of a token's lie outside two
  // given groups in C(6,4) = 15 of 70 ways, so that the node is visited by less than 55/70.
  CHECK(visited_places(moe, 3) < 2 + 55.0 / 70);
  CHECK(visited_places(moe, 3) > visited_places(moe, 2));
}

// Of eight draws the largest lies at the (8 - 3/8) / (8 + 1/4) = 0.92424th of all, which is 1.43420
// standard deviations of the logarithm up. Where each has two experts its variance is ln(1 + 0.84^2
// / 2) = 0.30218: exp(0.54970 x 1.43420 - 0.30218 / 2) = 1.89137; with one ln(1.7056) = 0.53392:
// exp(0.73070 x 1.43420 - 0.26696) = 2.18367. Of 32 of eight experts that differ by 1.358, as
// DeepSeek-R1's, 2.31. Two that differ by much have their median below the mean.
TEST_CASE("the fullest of some ranks", "[experts]") {
  CHECK(fullest_place(0.84, 2, 8) == Approx(1.89137).epsilon(1e-5));
  CHECK(fullest_place(0.84, 1, 8) == Approx(2.18367).epsilon(1e-5));
  CHECK(fullest_place(1.358, 8, 32) == Approx(2.31).epsilon(1e-3));
  CHECK(fullest_place(3, 1, 2) == 1);
  CHECK(fullest_place(0.84, 2, 1) == 1);
  CHECK(fullest_place(0, 2, 8) == 1);
}

// Beside the rows of 4,096 tokens for 8 experts each, their scores travel once in each pass, in 4
// bytes, and each of 8 ranks tells all how many rows it has for each of 64 experts, in 8 bytes:
// 4,096 B. DeepEP takes both along with the rows.
TEST_CASE("an all-to-all sends scores and counts of its own", "[experts]") {
  Workload w = mixture();
  w.framework.layers.kernels = KernelStyle::fused;
  const auto calls = [&](Collective kind, std::int64_t bytes) {
    ParallelPlan plan = plan_of(8);
    plan.expert = 8;
    const ModelPartition partition =
        partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
    int found = 0;
    for (const Operator& op : partition.stages[0][0].layers[1].definition->graph.operators)
      for (const auto* pass : {&op.forward, &op.backward})
        for (const Kernel& k : *pass)
          if (const auto* c = std::get_if<CommWork>(&k); c != nullptr && c->collective == kind)
            found += c->axis == CommAxis::expert && c->size == Bytes(bytes) ? 1 : 0;
    return found;
  };
  CHECK(calls(Collective::all_to_all, 134'217'728) == 4);
  CHECK(calls(Collective::all_to_all, 4096 * 8 * 4) == 2);
  CHECK(calls(Collective::all_gather, 8 * 8 * 64) == 1);
  w.framework.experts.dispatches_once = true;
  CHECK(calls(Collective::all_to_all, 4096 * 8 * 4) == 0);
  CHECK(calls(Collective::all_gather, 8 * 8 * 64) == 0);
}

// HybridEP: a row of 4,096 B takes along the 4 B scores of all 64 experts of its node, 256 B: of
// all 64 on one node, of 32 on each of two, so that 4,096 tokens x 8 experts are 32,768 x 4,352 =
// 142,606,336 B or 32,768 x 4,224 = 138,412,032 B, of which 5.251 and 1.992 copies of 8 are sent.
// It does so where scores are dispatched and their gradients come back, not where results are
// combined. Before, every rank gathers what all 8 have chosen, a byte for each of 4,096 x 64 x 8:
// 2,097,152 B, of which a kernel reads each byte twice, and writes 5 B for each of 8 experts and
// 4 B for each of 8 ranks: 4,194,304 + 1,310,720 + 131,072 B.
TEST_CASE("rows that are sent by map take along the scores of their node", "[experts]") {
  Workload w = mixture();
  w.framework.experts.dispatches_once = w.framework.experts.dispatches_by_map = true;
  CHECK(static_cast<double>(expert_block(w, 8, "8xH100-SXM").sent.value) ==
        Approx(142'606'336 * (1 - std::pow(7.0 / 8, 8))).epsilon(1e-6));
  CHECK(static_cast<double>(expert_block(w, 16, "16xH100-SXM").sent.value) ==
        Approx(138'412'032 * (1 - std::pow(0.5, 8)) * 2 / 8).epsilon(1e-6));
  ParallelPlan plan = plan_of(8);
  plan.expert = 8;
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  int scored = 0, plain = 0, gathered = 0, scanned = 0;
  for (const Operator& op : partition.stages[0][0].layers[1].definition->graph.operators)
    for (const auto* pass : {&op.forward, &op.backward})
      for (const Kernel& k : *pass) {
        if (const auto* m = std::get_if<MemoryWork>(&k))
          scanned += m->moved == Bytes(4'194'304 + 1'310'720 + 131'072) ? 1 : 0;
        const auto* c = std::get_if<CommWork>(&k);
        if (c == nullptr || c->axis != CommAxis::expert) continue;
        gathered += c->collective == Collective::all_gather && c->size == Bytes(2'097'152) ? 1 : 0;
        if (c->collective == Collective::all_to_all) ++(c->scored_rows == 32'768 ? scored : plain);
      }
  CHECK(scored == 2);
  CHECK(plain == 2);
  CHECK(gathered == 1);
  CHECK(scanned == 1);
}

TEST_CASE("tokens that travel behind another microbatch's kernels are not waited for",
          "[experts]") {
  Workload w = mixture();
  const std::size_t axis = static_cast<std::size_t>(CommAxis::expert);
  const LayerTime waiting = expert_block(w, 8, "8xH100-SXM").time;
  w.overlaps_experts = true;
  const LayerTime hidden = expert_block(w, 8, "8xH100-SXM").time;
  REQUIRE(waiting.forward.exposed[axis] > Seconds(0));
  CHECK(hidden.forward.exposed[axis] == Seconds(0));
  // What they take of the multiprocessors slows the kernels, by less than waiting costs.
  CHECK(hidden.forward.compute > waiting.forward.compute);
  CHECK(hidden.forward.device() < waiting.forward.device());
}

// A group of products is one call that launches each: 64 experts on one GPU, or 8 on each of 8:
// 56 launches more for up and for down, at 5 us each, with 5.3 us of Python and 19 of C++ around
// each. In 8 bits with scales of blocks Python takes 8, an operand of each expert is cast, 5 us
// more, and its scales are put in order for all experts at once. Both all-to-alls and the 12
// operators that count tokens for them are on 8 GPUs only, so the dispatcher takes them out here,
// and with them the two kernels that sum what experts made of a token.
TEST_CASE("the CPU launches every expert's products", "[experts]") {
  Workload w = mixture();
  w.framework.experts.dispatches_once = true;
  const HostCalibration& host = known_facts().profile.host;
  const auto fewer = [&] {
    const Seconds all = expert_block(w, 1, "8xH100-SXM").time.forward.host;
    const Seconds some = expert_block(w, 8, "8xH100-SXM").time.forward.host;
    const Seconds each = host.per_kernel[static_cast<std::size_t>(KernelStyle::fused)];
    return (all - some + 2.0 * host.per_collective - 2.0 * each).value;
  };
  const double launch = host.per_looped_launch.value, cpp = host.per_streamed_product.value;
  CHECK(fewer() == Approx(2 * 56 * (launch + cpp + host.per_grouped_product.value)));
  w.compute = DType::mxfp8;
  CHECK(fewer() == Approx(2 * 56 * (2 * launch + cpp + host.per_narrow_product.value)));
  w.step_is_graph = true;
  CHECK(expert_block(w, 8, "8xH100-SXM").time.forward.host == Seconds(0));
}

// PyTorch's grouped product is one kernel for all experts, which nobody waits for; where a card has
// none, it copies their rows' numbers to the CPU and launches a product of each, 5 us, one after
// the other: forward for up and down, backward for both, and so for their weights. On one GPU
// nothing else wants to know the numbers. It has no kernel for fp16.
TEST_CASE("PyTorch multiplies experts by one kernel, or in a loop", "[experts]") {
  Workload w = mixture();
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.experts.torch_grouped_products = true;
  const HostCalibration& host = known_facts().profile.host;
  const auto time = [&](int experts) {
    w.model.moe->experts = experts;
    return expert_block(w, 1, "1xA100-80GB").time;
  };
  const LayerTime all = time(64);
  CHECK((all.forward.host - time(24).forward.host).value == Approx(0).margin(1e-9));
  CHECK(all.forward.waited.empty());
  w.framework.experts.loops_grouped_products = true;
  const LayerTime looped = time(64);
  CHECK((looped.forward.host - time(24).forward.host).value ==
        Approx(2 * 40 * host.per_looped_launch.value));
  CHECK(looped.forward.waited.size() == 2);
  CHECK(looped.backward_input.waited.size() == 2);
  CHECK(looped.backward_weight.waited.size() == 2);
  CHECK(looped.forward.compute > all.forward.compute);
  w.framework.experts.loops_grouped_products = false;
  w.compute = DType::fp16;
  CHECK(time(64).forward.waited.size() == 2);
  // Nor for 8 bits: products are launched one after the other, once the router's numbers are read.
  w.compute = DType::fp8;
  CHECK(expert_block(w, 1, "1xH100-SXM").time.forward.waited.size() == 1);
}

// It launches as many rows as every expert has tokens, which the GPU counts: the CPU reads them
// back before it sends the tokens off, behind attention, router and the gather of all ranks'
// counts, which is a small part of what is sent. Where every expert takes
// equally many, dropped or padded, there is nothing to read.
TEST_CASE("the CPU waits for the counts of tokens once a forward pass", "[experts]") {
  Workload w = mixture();
  const std::size_t axis = static_cast<std::size_t>(CommAxis::expert);
  const LayerTime counted = expert_block(w, 8, "8xH100-SXM").time;
  REQUIRE(counted.forward.waited.size() == 1);
  CHECK(counted.forward.waited.front().compute < counted.forward.compute);
  CHECK(counted.forward.waited.front().host < counted.forward.host);
  CHECK(counted.forward.waited.front().exposed[axis] > Seconds(0));
  CHECK(counted.forward.waited.front().exposed[axis] < 0.1 * counted.forward.exposed[axis]);
  CHECK(counted.backward_input.waited.empty());
  w.pads_experts = true;
  CHECK(expert_block(w, 8, "8xH100-SXM").time.forward.waited.empty());
}

// Of 8 experts on a rank, forward 2 x 8 + 1 operators, backward 4 x 8 + 2, and 2 x 8 gradients
// added; with fp32 probabilities 2 x 8 + 2 and 6 x 8 + 3. Such experts are also those whose gate
// and up are bounded: 3 operators forward, 9 backward, and a copy to the GPU that the CPU waits
// for. A row's score that the activation weighs by has its gradient by one launch of its call.
TEST_CASE("Megatron weighs the bias of every expert by itself", "[experts]") {
  Workload w = mixture();
  w.model.biases.experts = true;
  for (const bool once : {false, true}) {
    w.framework.experts.dispatches_once = once;
    w.framework.experts.weighs_bias = false;
    const LayerTime plain = expert_block(w, 8, "8xH100-SXM").time;
    w.framework.experts.weighs_bias = true;
    const LayerTime weighed = expert_block(w, 8, "8xH100-SXM").time;
    const double each = known_facts().profile.host.per_kernel[0].value;
    const double score = known_facts().profile.host.per_looped_launch.value;
    CHECK((weighed.forward.host - plain.forward.host).value ==
          Approx((3 + (once ? 18 : 17)) * each));
    CHECK((weighed.backward_input.host - plain.backward_input.host).value ==
          Approx((9 + (once ? 51 : 34)) * each));
    CHECK(weighed.forward.waited.size() == plain.forward.waited.size() + 1);
    CHECK((weighed.backward_weight.host - plain.backward_weight.host).value == Approx(16 * each));
    CHECK(weighed.forward.compute > plain.forward.compute);
    w.framework.experts.weighs_in_activation = true;
    const LayerTime scored = expert_block(w, 8, "8xH100-SXM").time;
    w.framework.experts.weighs_in_activation = false;
    CHECK((scored.backward_input.host - weighed.backward_input.host).value == Approx(score));
  }
}

}  // namespace shardwise
