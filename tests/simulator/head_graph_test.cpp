#include <algorithm>
#include <map>

// Final projection and loss: what of the logits is kept until backward, and what moves.
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/graphs/layer_script.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/matmul_flops.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// 128 tokens and a vocabulary of 1,000.
Workload with_dense_loss() {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  w.framework.loss.kind = LossKind::dense;
  return w;
}

Workload with_loss_in_two_slices() {
  Workload w = with_dense_loss();
  w.method = Method::lora;
  w.framework.loss.kind = LossKind::chunked;
  w.framework.loss.chunks = 2;
  return w;
}

}  // namespace

// A table of 1,000 x 512 on each of two tensor ranks where it is cut has 500 rows, where it is not
// all of them, and 128 x 1,000 logits of 2 bytes; nobody exchanges anything.
TEST_CASE("tensor parallelism may leave tables whole", "[layer_graph]") {
  Workload w = with_dense_loss();
  const auto table_and_logits = [&] {
    const LayerGraph head = head_graph(w, plan_of(1, 2), false);
    std::int64_t logits = 0;
    for (const Operator& op : head.operators)
      if (op.name == "lm_head")
        logits = head.tensors[static_cast<std::size_t>(op.outputs.front())].bytes;
    return std::pair{head.parameters.base(), logits};
  };
  const auto exchanges = [](const LayerGraph& graph) {
    std::int64_t count = 0;
    for (const Operator& op : graph.operators)
      for (const auto* pass : {&op.forward, &op.backward})
        count += std::count_if(pass->begin(), pass->end(),
                               [](const Kernel& k) { return std::holds_alternative<CommWork>(k); });
    return count;
  };
  CHECK(table_and_logits() ==
        std::pair{std::int64_t{512 * 500 + 512}, std::int64_t{128 * 500 * 2}});
  CHECK(embedding_graph(w, plan_of(1, 2)).parameters.base() == 512 * 500);
  CHECK(exchanges(embedding_graph(w, plan_of(1, 2))) > 0);
  w.framework.parallel.whole_tables = true;
  CHECK(table_and_logits() ==
        std::pair{std::int64_t{512 * 1000 + 512}, std::int64_t{128 * 1000 * 2}});
  CHECK(embedding_graph(w, plan_of(1, 2)).parameters.base() == 512 * 1000);
  CHECK(exchanges(embedding_graph(w, plan_of(1, 2))) == 0);
  CHECK(exchanges(head_graph(w, plan_of(1, 2), false)) == 0);
}

// logsumexp of 128 x 1000 fp32 logits: forward amax 4, difference 8, exp in place 8 and sum 4 bytes
// each; backward difference, exp and product of 8 each. Autograd adds the softmax's gradient, 12,
// behind that of log-softmax.
TEST_CASE("a z-loss reads all logits again and keeps them", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.layers.kernels = KernelStyle::eager;
  const LayerGraph plain = head_graph(w, plan_of(1), false);
  w.framework.loss.z_loss = true;
  const LayerGraph more = head_graph(w, plan_of(1), false);
  CHECK(kept_bytes(more) - kept_bytes(plain) == 128 * 1000 * 4);
  for (const Operator& op : more.operators) {
    if (op.name == "log_softmax")
      CHECK(std::get<MemoryWork>(op.backward.back()).moved.value == 128 * 1000 * 12);
    if (op.name != "log_z") continue;
    CHECK(std::get<MemoryWork>(op.forward.front()).moved.value == 128 * 1000 * 24);
    CHECK(std::get<MemoryWork>(op.backward.front()).moved.value == 128 * 1000 * 24);
    CHECK(op.backward_temporary.value == 128 * 1000 * 8);
  }
  CHECK(more.operators.size() == plain.operators.size() + 1);
}

// 1,000 fp32 logits fit into 48 KiB of shared memory and are read once; 20,000 are read for their
// maximum, for the sum and for the result. Backward reads the gradient twice, the result once and
// writes: 16 bytes.
TEST_CASE("a softmax over many words reads its rows three times", "[layer_graph]") {
  for (const int words : {1000, 20000}) {
    Workload w = with_dense_loss();
    w.model.vocab = words;
    for (const Operator& op : head_graph(w, plan_of(1), false).operators) {
      if (op.name != "log_softmax") continue;
      const std::int64_t logits = 128 * std::int64_t{words};
      CHECK(std::get<MemoryWork>(op.forward.front()).moved.value ==
            logits * 4 * (words == 1000 ? 2 : 4));
      CHECK(std::get<MemoryWork>(op.backward.back()).moved.value == logits * 16);
    }
  }
}

// 128 x 1000 logits of 2 bytes through a division, a tangent and a product: the tangent's result is
// kept. Each reads and writes 4 bytes; backward reads and writes a gradient, the tangent its result
// as well.
TEST_CASE("a soft cap keeps one more copy of the logits", "[layer_graph]") {
  Workload w = with_dense_loss();
  const LayerGraph plain = head_graph(w, plan_of(1), false);
  w.model.caps_logits = true;
  const LayerGraph capped = head_graph(w, plan_of(1), false);
  CHECK(kept_bytes(capped) - kept_bytes(plain) == 128 * 1000 * 2);
  CHECK(capped.operators.size() == plain.operators.size() + 3);
  for (const Operator& op : capped.operators) {
    if (op.name != "logits_over_cap" && op.name != "logits_tanh" && op.name != "capped_logits")
      continue;
    CHECK(std::get<MemoryWork>(op.forward.front()).moved.value == 128 * 1000 * 4);
    CHECK(std::get<MemoryWork>(op.backward.front()).moved.value ==
          128 * 1000 * (op.name == "logits_tanh" ? 6 : 4));
  }
}

// Log-probabilities of 2 bytes each, and the 16-bit logits that the loop has a name for.
TEST_CASE("a loop that keeps 16-bit logits", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.upcasts = false;
  const std::int64_t plain = kept_bytes(head_graph(w, plan_of(1), false));
  w.framework.loss.output_holds_logits = true;
  CHECK(kept_bytes(head_graph(w, plan_of(1), false)) - plain == 128 * 1000 * 2);
}

// Under autocast, of 16-bit logits: log-probabilities of 2 bytes and the 4 of them that the
// negative log-likelihood reads, where logits that are widened first leave 4 alone.
TEST_CASE("cross-entropy under autocast takes its log-softmax in 16 bits", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.formats.autocast = true;
  const std::int64_t widened_first = kept_bytes(head_graph(w, plan_of(1), false));
  w.framework.loss.under_autocast = true;
  CHECK(kept_bytes(head_graph(w, plan_of(1), false)) - widened_first == 128 * 1000 * (6 - 4));
}

// Slices of whole logits let their log-probabilities go one after the other, so that no gradient
// as long as these, 4 bytes each, stands beside them.
TEST_CASE("a loss of slices of whole logits has no whole gradient twice", "[layer_graph]") {
  Workload w = with_dense_loss();
  const auto gradient = [&] {
    for (const Tensor& t : head_graph(w, plan_of(1), false).tensors)
      if (t.name == "log_softmax") return t.gradient_bytes;
    return std::int64_t{-1};
  };
  CHECK(gradient() == 128 * 1000 * 4);
  w.framework.loss.takes_slices = true;
  CHECK(gradient() == 0);
}

// A loss that widens 16-bit logits itself holds them beside its fp32 copy and what it makes out of
// place: 2 + 4 + 4 bytes each. Returned in fp32 they are that copy: 2 + 4 while it is made, then
// 4 + 4. Until backward the softmax is kept, 4, in both. What the first writes over it and then
// narrows, 4 + 2, the second has as well.
TEST_CASE("16-bit logits are gone where the model returns fp32 ones", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  const auto bytes_per_logit = [&] {
    const LayerGraph graph = head_graph(w, plan_of(1), false);
    ScriptOptions options;
    options.runs_again.assign(graph.operators.size(), false);
    const LayerScript s = layer_script(graph, options);
    std::map<int, std::int64_t> open;
    std::int64_t now = 0, peak = 0;
    for (const MemoryEvent& e : s.forward) {
      if (e.kind == EventKind::allocate) {
        if (e.category == MemoryCategory::logits) open[e.slot] = e.bytes;
        now += e.category == MemoryCategory::logits ? e.bytes : 0;
      } else if (open.count(e.slot) > 0) {
        now -= open[e.slot];
        open.erase(e.slot);
      }
      peak = std::max(peak, now);
    }
    return peak / (128 * 1000);
  };
  w.framework.loss.fp32_temporaries = 1;
  CHECK(bytes_per_logit() == 10);
  w.framework.loss.fp32_temporaries = 2;
  CHECK(bytes_per_logit() == 14);
  w.framework.loss.slice_tokens = 32;  // of a quarter of the tokens: 2 + 4 + 8 / 4
  CHECK(bytes_per_logit() == 8);
  w.framework.loss.slice_tokens.reset();
  w.framework.loss.fp32_temporaries = 1;
  const std::int64_t saved = kept_bytes(head_graph(w, plan_of(1), false));
  w.framework.loss.fp32_temporaries = 0;
  w.framework.loss.returns_fp32_logits = true;
  CHECK(bytes_per_logit() == 8);
  CHECK(kept_bytes(head_graph(w, plan_of(1), false)) == saved);
}

// The gradients of four slices are written into zeros of the logits' format: 128 x 1,000 of 2
// bytes, of 4 where the model returns them in fp32, or computes in it. One slice has none.
TEST_CASE("gradients of slices are written into zeros as wide as the logits", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  const auto zeros = [&] {
    for (const Operator& op : head_graph(w, plan_of(1), false).operators)
      if (op.name == "vocab_parallel_cross_entropy") return op.backward_temporary.value;
    return std::int64_t{-1};
  };
  CHECK(zeros() == 0);
  w.framework.loss.slice_tokens = 32;
  CHECK(zeros() == 2 * 128 * 1000);
  w.framework.loss.returns_fp32_logits = true;
  CHECK(zeros() == 4 * 128 * 1000);
  w.framework.loss.returns_fp32_logits = false;
  w.framework.formats.pretrain_weights = WeightRecipe::fp32;
  w.compute = DType::fp32;
  CHECK(zeros() == 4 * 128 * 1000);
}

// Compiled, a slice's gradient is another tensor, 4 bytes, with its 16-bit result beside it, 2: of
// 32 rows, or of all 128 where there is one slice. What a rank of context parallelism has of a
// sequence is two pieces, which a loss may join first: 4 bytes of its 64 rows.
TEST_CASE("a compiled loss makes gradients slice by slice", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 128);
  const auto loss = [&](const ParallelPlan& plan) {
    for (const Operator& op : head_graph(w, plan, false).operators)
      if (op.name == "vocab_parallel_cross_entropy") return op;
    return Operator{};
  };
  w.framework.loss.compiled_alone = true;
  CHECK(loss(plan_of(1)).backward_temporary.value == 6 * 128 * 1000);
  w.framework.loss.slice_tokens = 32;
  CHECK(loss(plan_of(1)).backward_temporary.value == 6 * 32 * 1000 + 2 * 128 * 1000);
  ParallelPlan parted = plan_of(1);
  parted.context = 2;
  CHECK(loss(parted).forward_temporary.value == 0);
  w.framework.loss.joins_context_logits = true;
  CHECK(loss(plan_of(1)).forward_temporary.value == 0);
  CHECK(loss(parted).forward_temporary.value == 4 * 64 * 1000);
}

// 128 x 1,000 logits of 2 bytes in four slices: backward writes zeros as long as all of them four
// times, copies each slice (one read, one written), and adds three of four (two read, one written):
// 4 + 2 + 9 values of a logit, by 4 + 4 + 3 kernels.
TEST_CASE("gradients of slices are added up as long as the logits", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::vocab_parallel;
  const auto backward = [&] {
    std::pair<std::int64_t, int> sum;
    for (const Operator& op : head_graph(w, plan_of(1), false).operators)
      for (const Kernel& k : op.backward)
        if (const auto* m = std::get_if<MemoryWork>(&k))
          sum = {sum.first + m->moved.value, sum.second + m->launches};
    return sum;
  };
  const auto whole = backward();
  w.framework.loss.slice_tokens = 32;
  const auto sliced = backward();
  CHECK(sliced.first - whole.first == 15 * 2 * 128 * 1000);
  CHECK(sliced.second - whole.second == 11);
}

// Liger: ratio ceil(1000 / 512) = 2, so 128 tokens are two slices of 64. Its kernel reads 16-bit
// logits twice and writes their gradient over them: 64 x 1000 x 6 bytes. A slice's product adds to
// the head's gradient, 2 bytes read. From 0.6.2 to 0.8.2 it was made alone, widened (6 bytes) and
// added (2 + 4 read, 2 written): 14 per element.
TEST_CASE("a fused head moves each slice's logits three times", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::fused_linear;
  const auto moved = [&] {
    std::vector<std::int64_t> bytes;
    const LayerGraph graph = head_graph(w, plan_of(1), false);
    for (const Kernel& work : graph.operators.back().forward)
      if (const auto* m = std::get_if<MemoryWork>(&work)) bytes.push_back(m->moved.value);
    return bytes;
  };
  const std::int64_t logits = 64 * 1000 * 6, added = 1000 * 512 * 2, apart = 1000 * 512 * 14;
  CHECK(moved() == std::vector<std::int64_t>{logits, added, logits, added});
  w.framework.loss.adds_head_slices_apart = true;
  CHECK(moved() == std::vector<std::int64_t>{logits, apart, logits, apart});
  w.method = Method::lora;  // a frozen head has no gradient
  CHECK(moved() == std::vector<std::int64_t>{logits, logits});
}

// PyTorch's operators over two slices of 64 x 1000 logits, as over all of them: to fp32 2 + 4,
// log-softmax of rows that shared memory holds 4 + 4; backward zeros for the gradient of the choice
// 4, log-softmax's 4 x 4, and back to 16 bits 4 + 2. A checkpointed slice goes forward twice. What
// is compiled reads twice, and reads and writes, 2 each.
TEST_CASE("a loss in slices moves what it does of whole logits", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::chunked;
  w.framework.loss.chunks = 2;
  const auto of_each = [&] {
    std::vector<std::int64_t> bytes;
    const LayerGraph graph = head_graph(w, plan_of(1), false);
    for (const Kernel& work : graph.operators.back().forward)
      if (const auto* m = std::get_if<MemoryWork>(&work))
        bytes.push_back(m->moved.value / (64 * 1000));
    return bytes;
  };
  CHECK(of_each() == std::vector<std::int64_t>{6, 8, 26, 6, 8, 26});
  w.framework.loss.recomputes_slices = true;
  CHECK(of_each() == std::vector<std::int64_t>{6, 8, 6, 8, 26, 6, 8, 6, 8, 26});
  w.framework.loss.slice_moved_bytes = 126;  // by a loss of its own
  CHECK(of_each() == std::vector<std::int64_t>{126, 126});
  w.framework.loss.recomputes_slices = false;
  w.framework.loss.slice_logit_bytes = 2;  // in place
  CHECK(of_each() == std::vector<std::int64_t>{6, 6});
  w.framework.loss.slice_logit_bytes.reset();
  w.framework.loss.compiled = true;
  w.framework.layers.kernels = KernelStyle::compiled;
  CHECK(of_each() == std::vector<std::int64_t>{4, 4, 4, 4});
}

// The logits of two slices, while the second's replace the first's, 4 bytes of 64 x 1000, and the
// head's gradient, 2 of 1000 x 512, from the first slice on: tensors beside that of the hidden
// states and the loss. A slice's own, 2 bytes and 4 widened, stands beside one slice's logits. A
// frozen head has neither.
TEST_CASE("a fused head holds its gradient while it runs", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::fused_linear;
  const auto held = [&] {
    const LayerGraph graph = head_graph(w, plan_of(1), false);
    const Operator& op = graph.operators.back();
    std::vector<std::int64_t> bytes{op.forward_temporary.value};
    for (std::size_t i = 0; i + 2 < op.outputs.size(); ++i)
      bytes.push_back(graph.tensors[static_cast<std::size_t>(op.outputs[i])].bytes);
    return bytes;
  };
  const std::int64_t logits = 64 * 1000, head = 1000 * 512;
  CHECK(held() == std::vector<std::int64_t>{4 * logits, 2 * head});
  w.framework.loss.slice_tokens = 32;  // of a chunked loss, which is another
  CHECK(held() == std::vector<std::int64_t>{4 * logits, 2 * head});
  w.framework.loss.fused_slice_tokens = 32;  // half as many at a time
  CHECK(held() == std::vector<std::int64_t>{2 * logits, 2 * head});
  w.framework.loss.fused_slice_tokens.reset();
  w.framework.loss.adds_head_slices_apart = true;
  CHECK(held() == std::vector<std::int64_t>{2 * logits, 4 * head, 2 * head, 2 * head});
  w.method = Method::lora;
  CHECK(held() == std::vector<std::int64_t>{4 * logits});
}

// TRL: h.float() @ w.float().t() of each slice, under autocast and a checkpoint. Its fp32 copy of
// the head and the 16-bit one that autocast makes of it are there with the product's 16-bit logits,
// 6 B of 1000 x 512 and 2 of 64 x 1000; the second copy stays beside the 16 B of each logit. Both
// are made twice, with 12 B read and written of each element.
TEST_CASE("a slice's product of a copy of the head", "[layer_graph]") {
  Workload w = with_loss_in_two_slices();
  w.framework.formats.autocast = true;
  w.framework.loss.slice_logit_bytes = 16;
  const auto last = [&] { return head_graph(w, plan_of(1), false).operators.back(); };
  CHECK(last().forward_temporary.value == 64 * 1000 * 16);
  const std::size_t kernels = last().forward.size();
  w.framework.loss.copies_head = true;
  CHECK(last().forward_temporary.value == 1000 * 512 * 6 + 64 * 1000 * 2);
  w.framework.loss.slice_logit_bytes = 64;
  CHECK(last().forward_temporary.value == 1000 * 512 * 2 + 64 * 1000 * 64);
  w.framework.formats.autocast = false;  // the fp32 copy itself is kept
  CHECK(last().forward_temporary.value == 1000 * 512 * 4 + 64 * 1000 * 64);
  CHECK(last().forward.size() == kernels);  // a copy per slice, and no cast of its logits
  w.framework.loss.recomputes_slices = true;
  CHECK(last().forward.size() == kernels + 2 * 3);  // copy, product and softmax once more
  w.framework.formats.autocast = true;
  std::int64_t moved = 0;
  const Operator copied = last();
  for (const Kernel& work : copied.forward)
    if (const auto* m = std::get_if<MemoryWork>(&work)) moved += m->moved.value;
  CHECK(moved == 2 * (64 * 1000 * (2 * (6 + 8) + 26) + 2 * 1000 * 512 * 12));
  // A head in fp32 has no fp32 copy, and autocast's is its only one.
  w.framework.formats.frozen_dtype = DType::fp32;
  w.framework.loss.slice_logit_bytes = 1;
  CHECK(last().forward_temporary.value == 1000 * 512 * 2 + 64 * 1000 * 2);
  // Without autocast the product is an fp32 one, twice as the slice is checkpointed.
  const auto wide = [&] {
    const Operator op = last();
    return std::count_if(op.forward.begin(), op.forward.end(), [](const Kernel& k) {
      const auto* gemm = std::get_if<GemmWork>(&k);
      return gemm != nullptr && gemm->dtype == DType::fp32;
    });
  };
  CHECK(wide() == 0);
  w.framework.formats.autocast = false;
  CHECK(wide() == 2 * 3);  // of each of two slices: forward twice, and the hidden states' gradient
}

// Of all 128 x 1000 logits the fp32 log-softmax, 4 B, until backward; of a slice's 64 x 1000 two
// fp32 gradients, 8 B, for a moment.
TEST_CASE("slices that wait for the last one keep their softmax", "[layer_graph]") {
  Workload w = with_loss_in_two_slices();
  w.framework.loss.keeps_slices = true;
  const auto kept = [&](std::int64_t live) {
    const LayerGraph graph = head_graph(w, plan_of(1), false);
    const Operator& op = graph.operators.back();
    CHECK(op.forward_temporary.value == live * 64 * 1000);
    CHECK(graph.tensors[static_cast<std::size_t>(op.outputs.back())].name == "loss");
    std::int64_t bytes = 0;
    for (const TensorIndex t : op.saves) {
      const Tensor& tensor = graph.tensors[static_cast<std::size_t>(t)];
      if (tensor.name == "slices") bytes += tensor.bytes;
    }
    return bytes;
  };
  CHECK(kept(8) == 4 * 128 * 1000);
  // An fp32 head that is frozen is copied to 16 bits for each slice; the layer's own copy is one.
  w.framework.formats.autocast = true;
  w.framework.formats.frozen_dtype = DType::fp32;
  CHECK(kept(8) == 4 * 128 * 1000 + 2 * 1000 * 512);
  // A compiled loss reads 16-bit logits again, 2 B, and makes their gradient of them, 2 B.
  w.framework.formats.autocast = false;
  w.framework.loss.compiled_alone = true;
  CHECK(kept(2) == 2 * 128 * 1000);
}

// Two slices of 64 x 1000 logits that wait, 4 B of each kept, under a head of 1000 x 512: its
// gradient in 16 bits twice and a slice's gradient, while nothing of either slice is kept any more.
// A frozen head leaves the fp32 gradient of a slice. Where all 16-bit logits are there first, they
// stand beside a slice's fp32 copy.
TEST_CASE("the head's gradient is summed up beside slices that wait", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::chunked;
  w.framework.loss.chunks = 2;
  w.framework.loss.keeps_slices = true;
  const auto last = [&] { return head_graph(w, plan_of(1), false).operators.back(); };
  CHECK(last().backward_temporary.value == 2 * 2 * 1000 * 512 + 2 * 64 * 1000 - 2 * 4 * 64 * 1000);
  CHECK(last().forward_temporary.value == 8 * 64 * 1000);
  w.framework.loss.makes_slices_first = true;
  CHECK(last().forward_temporary.value == 4 * 64 * 1000 + 2 * 128 * 1000);
  w = with_loss_in_two_slices();
  CHECK(last().backward_temporary.value == 0);
  w.framework.loss.keeps_slices = true;
  CHECK(last().backward_temporary.value == 4 * 64 * 1000);
}

// 1000 x 512 elements beside a slice's logits (14 B each of 64 x 1000): in the fp32 of reductions
// where ranks have shards, else in 16 bits. Shards are made of a second such copy, beside the last
// slice's 16-bit logits, more than 14 B of each.
TEST_CASE("slices that go back at once sum the head's gradient", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::chunked;
  w.framework.loss.chunks = 2;
  w.framework.gradients.reduce_dtype = DType::fp32;
  const auto summed = [&](int zero) {
    ParallelPlan plan = plan_of(2);
    plan.zero_stage = zero;
    std::int64_t bytes = 0;
    for (const Tensor& t : head_graph(w, plan, false).tensors)
      if (t.name == std::string_view("head_gradient")) bytes += t.bytes;
    return bytes;
  };
  CHECK(summed(3) == 0);
  w.framework.loss.slices_go_back = true;
  CHECK(summed(3) == 1000 * 512 * 4);
  CHECK(summed(0) == 1000 * 512 * 2);
  const auto beside = [&](int zero) {
    ParallelPlan plan = plan_of(2);
    plan.zero_stage = zero;
    return head_graph(w, plan, false).operators.back().forward_temporary.value;
  };
  CHECK(beside(3) == 4 * 1000 * 512 + 2 * 64 * 1000);
  CHECK(beside(0) == 14 * 64 * 1000);
  w.method = Method::lora;  // a frozen head has no gradient
  CHECK(summed(3) == 0);
}

// Cut Cross-Entropy keeps 4 bytes per token and per entry of the vocabulary, writes no logit, and
// makes them again: the logits' product P = 2 x 128 x 1000 x 512 FLOPs forward and backward, and
// each gradient as ceil(0.6 x 128) = 77 rows of it, or ceil(3.27 x 128) = 419 with every block.
TEST_CASE("a cut head keeps no logits and multiplies them twice", "[layer_graph]") {
  Workload w = with_dense_loss();
  w.framework.loss.kind = LossKind::cut;
  w.framework.loss.cut_gradient_share = 0.6;
  const Operator head = head_graph(w, plan_of(1), false).operators.back();
  const double per_row = 2.0 * 1000 * 512;
  CHECK(matmul_flops(head.forward) == 128 * per_row);
  CHECK(matmul_flops(head.backward) == (128 + 77) * per_row);
  CHECK(matmul_flops(head.backward_weight) == 77 * per_row);
  CHECK(head.weight_gradient_elements == 1000 * 512);
  // The norm's input and output, 2 bytes each, beside it.
  const std::int64_t around = 2 * 2 * 128 * 512;
  CHECK(kept_bytes(head_graph(w, plan_of(1), false)) == around + 4 * (128 + 1000));
  w.framework.loss.cut_gradient_share = 3.27;
  const Operator all = head_graph(w, plan_of(1), false).operators.back();
  CHECK(matmul_flops(all.backward) == (128 + 419) * per_row);
  w.method = Method::lora;  // a frozen head has no gradient
  const Operator frozen = head_graph(w, plan_of(1), false).operators.back();
  CHECK(frozen.backward_weight.empty());
  CHECK(frozen.weight_gradient_elements == 0);
  w.method = Method::pretrain;  // a tied one's is the embedding's
  CHECK(head_graph(w, plan_of(1), true).operators.back().weight_gradient_elements == 0);
}

}  // namespace shardwise
