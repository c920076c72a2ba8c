// What autograd and autocast run beside a layer's own operators: sums of gradients, copies of
// weights and of the residual stream; and the hooks of an engine that shards gradients.
#include <algorithm>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t stream = 128 * 512;  // tokens x hidden

Workload layer_of(KernelStyle style) {
  Workload w = pretraining(llama(1, 512, 8, 8, 1408, 1000), 128);
  w.framework.layers.kernels = style;
  w.framework.formats.pretrain_weights = WeightRecipe::pure_half;
  w.framework.gradients.life = GradientLife::per_step;
  return w;
}

Workload autocast_layer() {
  Workload w = layer_of(KernelStyle::eager);
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  w.framework.formats.autocast = true;
  return w;
}

struct BesideProducts {
  std::int64_t bytes = 0;
  int launches = 0;
  friend bool operator==(const BesideProducts&, const BesideProducts&) = default;
};

BesideProducts beside_products(const std::vector<Kernel>& kernels) {
  BesideProducts sum;
  for (const Kernel& k : kernels)
    if (const auto* m = std::get_if<MemoryWork>(&k)) {
      sum.bytes += m->moved.value;
      sum.launches += m->launches;
    }
  return sum;
}

const Operator& of(const LayerGraph& graph, std::string_view name) {
  return *std::find_if(graph.operators.begin(), graph.operators.end(),
                       [&](const Operator& op) { return op.name == name; });
}

// The first block of the first stage, as the plan schedules it.
LayerSchedule first_block(const Workload& w, const ParallelPlan& plan, const Cluster& cluster) {
  const ModelPartition partition =
      partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
  const CostModel cost(w, plan, cluster, known_facts().profile);
  const StageCosts stage = cost.costs(partition).stages.front();
  const std::vector<ChunkLayer>& layers = partition.stages.front().front().layers;
  const auto block = std::find_if(layers.begin(), layers.end(), [](const ChunkLayer& l) {
    return l.definition->role == LayerRole::block;
  });
  REQUIRE(block != layers.end());
  return stage.chunks.front()[static_cast<std::size_t>(block - layers.begin())];
}

}  // namespace

// In reverse v comes first, then k and q, which are added to it: two values of 2 bytes read and one
// written. The norm's gradient is added to the stream's.
TEST_CASE("gradients of one tensor are added up, one after the other", "[gradient_sums]") {
  const LayerGraph g = block_graph(layer_of(KernelStyle::eager), plan_of(1), {});
  CHECK(beside_products(of(g, "v").backward) == BesideProducts{0, 0});
  CHECK(beside_products(of(g, "k").backward) == BesideProducts{6 * stream, 1});
  CHECK(beside_products(of(g, "q").backward) == BesideProducts{6 * stream, 1});
  CHECK(beside_products(of(g, "up").backward) == BesideProducts{6 * stream, 1});
  const auto* last = std::get_if<MemoryWork>(&of(g, "mlp_norm").backward.back());
  REQUIRE(last != nullptr);
  CHECK(last->moved == Bytes(6 * stream));
}

// Of a weight: 2 + 4 bytes read and 4 written by one kernel; where the 16-bit gradient is first
// copied (2 read, 4 written), 4 + 4 read and 4 written by the second, 18; where it stays, 2 written
// to zero it, and 2 + 2 read and 2 written to add to it, 26 in four.
TEST_CASE("A 16-bit gradient goes into a wider one by as many kernels as its life asks",
          "[gradient_sums]") {
  Workload w = layer_of(KernelStyle::fused);
  w.framework.gradients.life = GradientLife::persistent;
  w.framework.gradients.dtype = DType::fp32;
  w.framework.gradients.fusion = false;
  w.framework.gradients.copy_while_accumulating = true;
  constexpr std::int64_t weights = 512 * 512;  // of the output projection
  const auto kept = [&](GradientCopyLife life) {
    w.framework.gradients.copy_life = life;
    return beside_products(of(block_graph(w, plan_of(1), {}), "o").backward_weight);
  };
  CHECK(kept(GradientCopyLife::layer) == BesideProducts{10 * weights, 1});
  CHECK(kept(GradientCopyLife::microbatch) == BesideProducts{10 * weights, 1});
  CHECK(kept(GradientCopyLife::next_backward) == BesideProducts{18 * weights, 2});
  CHECK(kept(GradientCopyLife::run) == BesideProducts{26 * weights, 4});
  w.framework.gradients.life = GradientLife::per_step;  // fp16: no wider buffer
  CHECK(kept(GradientCopyLife::run) == BesideProducts{0, 0});
}

// A compiler reads each of them once more where it makes the norm's gradient; fused modules have
// one projection, but not where kernels were put into transformers' classes.
TEST_CASE("who adds gradients up by kernels of their own", "[gradient_sums]") {
  CHECK(beside_products(
            of(block_graph(layer_of(KernelStyle::compiled), plan_of(1), {}), "q").backward) ==
        BesideProducts{2 * stream, 0});
  Workload fused = layer_of(KernelStyle::fused);
  CHECK(beside_products(of(block_graph(fused, plan_of(1), {}), "q").backward) ==
        BesideProducts{0, 0});
  fused.framework.layers.runs_transformers = true;
  CHECK(beside_products(of(block_graph(fused, plan_of(1), {}), "q").backward) ==
        BesideProducts{6 * stream, 1});
}

// Fused modules leave the residual stream's two sums to others: the branch's to a kernel that reads
// two values of 2 bytes and writes one, the gradient's to autograd's engine, which launches the
// same. Norms that add the stream read both values and write nothing more.
TEST_CASE("fused modules add to the residual stream by kernels of its own", "[gradient_sums]") {
  Workload w = layer_of(KernelStyle::fused);
  const LayerGraph g = block_graph(w, plan_of(1), {});
  CHECK(beside_products(of(g, "residual_add").forward) == BesideProducts{6 * stream, 1});
  CHECK(beside_products(of(g, "up").backward) == BesideProducts{0, 0});
  const auto* last = std::get_if<MemoryWork>(&of(g, "mlp_norm").backward.back());
  REQUIRE(last != nullptr);
  CHECK(last->moved == Bytes(6 * stream));
  CHECK(last->looped);
  w.framework.layers.norms_add_residual = true;
  const LayerGraph by_norm = block_graph(w, plan_of(1), {});
  CHECK(beside_products(of(by_norm, "residual_add").forward) == BesideProducts{4 * stream, 0});
  CHECK(of(by_norm, "mlp_norm").backward.size() + 1 == of(g, "mlp_norm").backward.size());
}

// Gradients of q, k and v, 2 bytes of each value, are read and written: with as many keys as
// queries 3 x 4 bytes, with a quarter of them (1 + 2 / 4) x 4. Then queries are copied, 4 bytes.
TEST_CASE("Megatron Core cuts one projection up and joins its gradients", "[gradient_sums]") {
  Workload w = layer_of(KernelStyle::fused);
  const auto cut = [&](std::vector<Kernel> Operator::*pass) {
    return beside_products(of(block_graph(w, plan_of(1), {}), "v").*pass);
  };
  CHECK(cut(&Operator::backward) == BesideProducts{0, 0});
  w.framework.layers.sequence_first = true;
  CHECK(cut(&Operator::forward) == BesideProducts{0, 0});
  CHECK(cut(&Operator::backward) == BesideProducts{12 * stream, 1});
  w.model.kv_heads = 2;
  CHECK(cut(&Operator::forward) == BesideProducts{4 * stream, 1});
  CHECK(cut(&Operator::backward) == BesideProducts{6 * stream, 1});
  w.model.position = PositionKind::learned;
  CHECK(cut(&Operator::backward) == BesideProducts{0, 0});
}

// A weight of 512 x 512 in fp32 is read, its 16-bit copy written: 6 bytes of each value, and the
// same of its gradient. The stream is fp32: 4 and 2 read, 4 written, and the branch's gradient
// copied to 16 bits.
TEST_CASE("autocast copies weights, their gradients and the stream's", "[gradient_sums]") {
  const LayerGraph g = block_graph(autocast_layer(), plan_of(1), {});
  CHECK(beside_products(of(g, "o").forward) == BesideProducts{6 * 512 * 512, 1});
  CHECK(beside_products(of(g, "o").backward_weight) == BesideProducts{6 * 512 * 512, 1});
  CHECK(beside_products(of(g, "residual_add").forward) == BesideProducts{10 * stream, 1});
  CHECK(beside_products(of(g, "residual_add").backward) == BesideProducts{6 * stream, 1});
  CHECK(
      beside_products(of(block_graph(layer_of(KernelStyle::eager), plan_of(1), {}), "o").forward) ==
      BesideProducts{0, 0});
}

// One projection is one launch, whatever is told apart of it.
TEST_CASE("what is one projection in the model's class is launched once", "[gradient_sums]") {
  Workload w = autocast_layer();
  w.framework.layers.runs_transformers = true;
  w.model.code.fused_qkv = true;
  const LayerGraph g = block_graph(w, plan_of(1), {});
  const auto joined = [&](std::string_view name) {
    return std::get<GemmWork>(of(g, name).forward.front()).joined;
  };
  CHECK_FALSE(joined("q"));
  CHECK(joined("k"));
  CHECK(joined("v"));
  CHECK(beside_products(of(g, "k").forward) == BesideProducts{6 * 512 * 512, 0});
  CHECK_FALSE(joined("gate"));
}

// A layer of Llama trains seven matrices and two norms. Stage 2 takes each gradient up in every
// microbatch, stage 1 in the last one of the step.
TEST_CASE("hooks of ZeRO-1 and 2 cost the CPU something for each gradient", "[gradient_sums]") {
  Workload w = layer_of(KernelStyle::eager);
  w.framework.host.us_per_gradient = 50;
  w.framework.host.us_per_gradient_stage_2 = 80;
  w.framework.gradients.reduces_every_microbatch = true;
  ParallelPlan plan = plan_of(2);
  plan.microbatches = 4;
  const Cluster cluster = parse_gpus(known_facts().catalog, "2xA100-SXM-80GB")->front();
  const auto hooks = [&](int stage) {
    plan.zero_stage = stage;
    const ModelPartition partition =
        partition_model(w, plan, *find_pipeline_schedule("1f1b"), *recompute_policy("none"));
    const CostModel cost(w, plan, cluster, known_facts().profile);
    const KernelModel kernels(cluster.groups.front().gpu, known_facts().profile);
    for (const LayerDefinition& d : partition.definitions)
      if (d.role == LayerRole::block) return cost.gradient_hooks(d, kernels).value;
    return 0.0;
  };
  CHECK(hooks(0) == 0);
  CHECK(hooks(1) == Approx(9 * 50e-6 / 4));
  CHECK(hooks(2) == Approx(9 * 80e-6));
  CHECK(hooks(3) == 0);
}

// 4 x 512 x 512 + 3 x 512 x 1408 + 2 x 512 = 3,212,288 weights, whose fp32 gradients are read and
// written twice, by two kernels for each of nine tensors, in one of two microbatches.
TEST_CASE("DDP's buckets cost a copy there and back", "[gradient_sums]") {
  Workload w = layer_of(KernelStyle::eager);
  w.framework.gradients.reduce_dtype = DType::fp32;
  ParallelPlan plan = plan_of(2);
  plan.microbatches = 2;
  const Cluster cluster = parse_gpus(known_facts().catalog, "2xA100-SXM-80GB")->front();
  const auto weights = [&](bool copies) {
    w.framework.gradients.bucket_copies = copies;
    return first_block(w, plan, cluster).time.backward_weight;
  };
  const KernelModel kernels(cluster.groups.front().gpu, known_facts().profile);
  const Seconds copies = kernels.memory_bound(Bytes(std::int64_t{4} * 4 * 3'212'288), 18);
  CHECK((weights(true).compute - weights(false).compute).value == Approx(copies.value / 2));
  CHECK((weights(true).host - weights(false).host).value ==
        Approx(9 * known_facts().profile.host.per_looped_launch.value));
}

// As above: 3,212,288 weights of a block in 16 bits, reduced in fp32. FSDP2 copies them out of what
// was gathered in each pass (2 + 2 bytes) and their gradients into what is reduced (2 + 4). FSDP1
// joins the gradients (2 + 2), and another stream widens (2 + 4) and divides them (4 + 4) before
// they are reduced. Megatron-FSDP whose products do not add copies gradients only (2 + 4).
TEST_CASE("units of FSDP are copied where they are computed and reduced", "[gradient_sums]") {
  Workload w = layer_of(KernelStyle::eager);
  w.framework.gradients.reduce_dtype = DType::fp32;
  w.framework.gradients.reduces_every_microbatch = true;
  ParallelPlan plan = plan_of(2);
  plan.zero_stage = 3;
  const Cluster cluster = parse_gpus(known_facts().catalog, "2xA100-SXM-80GB")->front();
  const auto block = [&](bool copies, bool joins) {
    w.framework.sharding.parameters.copy_out = copies;
    w.framework.sharding.parameters.joins_gradients = joins;
    return first_block(w, plan, cluster);
  };
  const KernelModel kernels(cluster.groups.front().gpu, known_facts().profile);
  const auto moved = [&](int each) {
    return kernels.memory_bound(Bytes(std::int64_t{each} * 3'212'288)).value;
  };
  const LayerSchedule plain = block(false, false), copied = block(true, false),
                      joined = block(false, true);
  const auto more = [&](const LayerSchedule& l, auto pass) {
    return ((l.time.*pass).compute - (plain.time.*pass).compute).value;
  };
  CHECK(more(copied, &LayerTime::forward) == Approx(moved(4)));
  CHECK(more(copied, &LayerTime::backward_weight) == Approx(moved(4) + moved(6)));
  CHECK(copied.reduce->value == Approx(plain.reduce->value));
  w.framework.sharding.parameters.copies_gradients = true;
  const LayerSchedule gradients = block(false, false);
  w.framework.sharding.parameters.copies_gradients = false;
  CHECK(more(gradients, &LayerTime::forward) == Approx(0));
  CHECK(more(gradients, &LayerTime::backward_weight) == Approx(moved(6)));
  CHECK(more(joined, &LayerTime::forward) == Approx(0).margin(1e-12));
  CHECK(more(joined, &LayerTime::backward_weight) == Approx(moved(4)));
  CHECK((*joined.reduce - *plain.reduce).value == Approx(moved(14)));
}

}  // namespace shardwise
