#include "simulator/costs/cache_reuse.hpp"

#include "tests/catch.hpp"
#include "tests/simulator/bare_machine.hpp"

using namespace shardwise;

namespace {

constexpr std::int64_t MB = 1'000'000;

// All is found while 5 MB have passed, nothing after 15.
KernelModel small_cache() {
  Profile profile = bare_profile();
  profile.families[0].memory.cache = {BytesPerSecond(0.1e12), 0.5, 1.5};
  Gpu gpu = bare_gpu();
  gpu.sm_count = 40;
  gpu.l2 = Bytes(10 * MB);
  return {gpu, profile};
}

// x [1000, k] -> y [1000, 2000] -> z, in 16 bits: a product, then what moves y and z, and backward
// three times that. Both keep what they read.
LayerGraph product_then_pointwise(std::int64_t k) {
  LayerGraph g;
  for (const std::int64_t bytes : {2000 * k, 4 * MB, 4 * MB}) {
    Tensor t;
    t.bytes = t.gradient_bytes = bytes;
    g.tensors.push_back(t);
  }
  Operator product;
  product.kind = OperatorKind::matmul;
  product.inputs = product.saves = {0};
  product.outputs = {1};
  GemmWork work;
  work.m = 1000;
  work.n = 2000;
  work.k = k;
  product.forward = {work};
  Operator pointwise;
  pointwise.inputs = pointwise.saves = {1};
  pointwise.outputs = {2};
  pointwise.forward = {MemoryWork{Bytes(8 * MB), 1, MemoryAccess::streaming, false}};
  pointwise.backward = {MemoryWork{Bytes(12 * MB), 1, MemoryAccess::streaming, false}};
  g.operators = {product, pointwise};
  g.output = 2;
  return g;
}

}  // namespace

TEST_CASE("an operator finds in the cache what was made just before it") {
  const KernelModel kernels = small_cache();
  // k = 1000: the product moves 2 (1 + 2 + 2) = 10 MB, of which 5 come after the mean byte of y.
  const auto near = cold_bytes(product_then_pointwise(1000), kernels);
  CHECK(near[0].forward == Bytes(0));  // x: made by the layer before, at its end
  CHECK(near[1].forward == Bytes(0));
  // k = 3000: 2 (3 + 6 + 2) = 22 MB, of which 11: 0.4 of y is left.
  const auto far = cold_bytes(product_then_pointwise(3000), kernels);
  CHECK(far[1].forward == Bytes(24 * MB / 10));
}

TEST_CASE("backward reads what it saved from memory, and gradients where they still are") {
  const auto cold = cold_bytes(product_then_pointwise(1000), small_cache());
  // z's gradient comes from the layer behind, just made; y was saved.
  CHECK(cold[1].backward == Bytes(4 * MB));
  // y's gradient: 6 of the 12 MB that made it came after its mean byte, so 0.9 of its 4 MB are
  // there. x was saved: 2 MB.
  CHECK(cold[0].backward == Bytes(4 * MB / 10 + 2 * MB));
}

TEST_CASE("without a known cache all that is read comes from memory") {
  const KernelModel kernels(bare_gpu(), bare_profile());
  const auto cold = cold_bytes(product_then_pointwise(1000), kernels);
  CHECK(cold[0].forward == Bytes(2 * MB));
  CHECK(cold[1].forward == Bytes(4 * MB));
}
