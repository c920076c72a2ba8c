// Which kernels a layer runs, as the framework's habits have it.
#include <optional>
#include <string_view>
#include <variant>

#include "simulator/graphs/layer_graph.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

// o is 512 x 512. Unpacked to 16 bits it is 2 B per weight beside 16-bit copies of what it reads
// and gives (2 x 128 x 1024 B); a bitsandbytes that follows its fp32 input unpacks it to 4 B,
// copies nothing and multiplies fp32.
TEST_CASE("4-bit linears in the format of their input", "[kernel_choice]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.method = Method::qlora;
  w.adapter.base = Quantization::nf4;
  w.framework.quantized.upcasts_unquantized = true;
  w.framework.formats.autocast = false;
  const auto o = [&] {
    const LayerGraph block = block_graph(w, plan_of(1), {});
    for (const Operator& op : block.operators)
      if (op.name == std::string_view("o")) return op;
    return Operator{};
  };
  const auto product = [](const Operator& op) {
    for (const Kernel& k : op.forward)
      if (const auto* gemm = std::get_if<GemmWork>(&k)) return gemm->dtype;
    return DType::fp8;
  };
  CHECK(product(o()) == DType::bf16);
  CHECK(o().forward_temporary.value == 2 * 512 * 512 + 2 * 128 * (512 + 512));
  w.framework.quantized.linear_follows_input = true;
  CHECK(product(o()) == DType::fp32);
  CHECK(o().forward_temporary.value == 4 * 512 * 512);
  w.framework.formats.autocast =
      true;  // casts both before the product, whatever bitsandbytes asks for
  CHECK(product(o()) == DType::bf16);
}

TEST_CASE("a mask of padding: another kernel, and the whole square", "[kernel_choice]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  BlockKind local;
  local.local_attention = true;
  const auto kernel = [&] {
    const LayerGraph block = block_graph(w, plan_of(1), local);
    for (const Operator& op : block.operators)
      for (const Kernel& k : op.forward)
        if (const auto* attention = std::get_if<AttentionWork>(&k)) return *attention;
    return AttentionWork{};
  };
  w.framework.attention.kernel = AttentionKernel::flash;
  w.model.sliding_window = 32;
  CHECK(kernel().causal);
  CHECK(kernel().keys == 32);
  w.framework.attention.masks_padding = true;
  CHECK(kernel().kernel == AttentionKernel::memory_efficient);
  CHECK(kernel().keys == 128);
  CHECK_FALSE(kernel().causal);
  w.framework.attention.kernel = AttentionKernel::eager;  // adds the mask to its scores
  CHECK(kernel().kernel == AttentionKernel::eager);
}

// Queries and keys of 128 + 64, values of 128: cuDNN computes 192 and 128 per pair, 2 x 160;
// FlashAttention pads values to 192.
TEST_CASE("cuDNN takes queries and values of two widths", "[kernel_choice]") {
  Workload w = pretraining(llama(1, 1024, 8, 8, 1408, 1000), 128);
  w.model.mla = LatentAttention{std::nullopt, 256, 128, 64, 128};
  const auto width = [&](AttentionKernel kernel) {
    w.framework.attention.kernel = kernel;
    for (const Operator& op : block_graph(w, plan_of(1), {}).operators)
      for (const Kernel& k : op.forward)
        if (const auto* a = std::get_if<AttentionWork>(&k)) return a->head_dim;
    return 0;
  };
  CHECK(width(AttentionKernel::cudnn) == 160);
  CHECK(width(AttentionKernel::flash) == 192);
}
