// Frozen weights of another format than torch.autocast makes products in.
#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/memory/played_alike.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/simulator/small_play.hpp"

namespace shardwise {
namespace {

Workload adapters_under_autocast(DType frozen) {
  Workload w = pretraining(llama(2, 512, 8, 8, 2048, 32000), 256);
  w.method = Method::lora;
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.formats.autocast = w.framework.formats.autocast_caches_weights = true;
  w.framework.formats.frozen_dtype = frozen;
  return w;
}

// Bytes that a block's linears move beside their products, forward or for what they hand back.
double copied_by_linears(DType frozen, bool forward) {
  double bytes = 0;
  for (const Operator& op : block_graph(adapters_under_autocast(frozen), plan_of(1), {}).operators)
    if (op.kind == OperatorKind::matmul)
      for (const Kernel& k : forward ? op.forward : op.backward)
        if (const auto* m = std::get_if<MemoryWork>(&k))
          bytes += static_cast<double>(m->moved.value);
  return bytes;
}

std::int64_t copies(DType frozen, const ParallelPlan& plan) {
  return first_stage(adapters_under_autocast(frozen), plan)
      .after_forward[static_cast<std::size_t>(MemoryCategory::gathered_parameters)];
}

// q, k, v and o of 512 x 512; gate, up and down of 512 x 2,048.
constexpr double block_weights = 4 * 512 * 512 + 3 * 512 * 2048;

}  // namespace

// A copy reads 2 bytes of an fp16 weight, 4 of an fp32 one, and writes 2; of a bf16 one there is
// none. Nothing goes back that is as wide as a weight: they have no gradient.
TEST_CASE("Autocast copies frozen weights of the other 16 bits", "[frozen_casts]") {
  const double none = copied_by_linears(DType::bf16, true);
  CHECK(copied_by_linears(DType::fp16, true) - none == Approx((2 + 2) * block_weights));
  CHECK(copied_by_linears(DType::fp32, true) - none == Approx((4 + 2) * block_weights));
  CHECK(copied_by_linears(DType::fp16, false) == Approx(copied_by_linears(DType::fp32, false)));
}

// The copies, 2 B a weight of two blocks and of the head (32,000 x 512), stay on the graph until
// backward, whatever was copied; under checkpoints those of the head alone do.
TEST_CASE("Copies of frozen fp16 weights stay where backward reads them", "[frozen_casts]") {
  ParallelPlan plan = plan_of(1);
  CHECK(copies(DType::bf16, plan) == 0);
  const double head = 32000.0 * 512;
  CHECK(static_cast<double>(copies(DType::fp16, plan)) ==
        Approx(2 * (2 * block_weights + head)).epsilon(0.03));  // adapters are the rest
  plan.recompute = "full";
  CHECK(static_cast<double>(copies(DType::fp16, plan)) == Approx(2 * head).epsilon(0.03));
}

// PyTorch promotes the sum of an fp16 stream and a bf16 product to fp32.
TEST_CASE("A stream of fp16 and bf16 is fp32", "[frozen_casts]") {
  const ParallelPlan plan = plan_of(1);
  CHECK_FALSE(widens_stream(adapters_under_autocast(DType::bf16), plan));
  CHECK(widens_stream(adapters_under_autocast(DType::fp16), plan));
  Workload turing = adapters_under_autocast(DType::fp16);  // which computes in fp16 itself
  turing.compute = DType::fp16;
  CHECK_FALSE(widens_stream(turing, plan));
  CHECK_FALSE(played_alike(adapters_under_autocast(DType::fp16), turing));
  Workload packed = adapters_under_autocast(DType::fp16);
  packed.method = Method::qlora;  // bitsandbytes unpacks into the format of the product
  packed.adapter.base = Quantization::nf4;
  CHECK_FALSE(casts_weights(packed, plan));
}

}  // namespace shardwise
