#include "simulator/graphs/heads_apart.hpp"

#include <variant>
#include <vector>

namespace shardwise {
namespace {

// Scale, comparison, two of masked_fill and softmax forward; backward the like without comparison.
constexpr int score_kernels_forward = 5, score_kernels_backward = 4;

// What those of one head are beside the products.
int score_kernels(const GraphBuilder& b, bool forward) {
  const Workload& w = b.workload();
  const int casts = w.framework.formats.autocast && b.element() == 2 ? 2 : 0;
  return (forward ? score_kernels_forward : score_kernels_backward) + casts +
         (w.attention_dropout ? 1 : 0);
}

// Products become one for each head, of its part of `side`; the rest is launched as often.
std::vector<Kernel> by_head(const std::vector<Kernel>& kernels, std::int64_t GemmWork::*side,
                            std::int64_t heads) {
  std::vector<Kernel> parts;
  for (Kernel k : kernels) {
    if (auto* gemm = std::get_if<GemmWork>(&k)) {
      gemm->*side /= heads;
      parts.insert(parts.end(), static_cast<std::size_t>(heads), k);
      continue;
    }
    if (auto* moved = std::get_if<MemoryWork>(&k)) moved->launches *= static_cast<int>(heads);
    parts.push_back(k);
  }
  return parts;
}

}  // namespace

void part_linear(GraphBuilder& b, std::string_view name, TensorIndex source, std::int64_t rows,
                 std::int64_t in, std::int64_t heads) {
  if (!b.own_code().heads_apart || heads < 2 || b.last().name != name) return;
  const std::int64_t values = rows * in, others = heads - 1;
  const bool cast = b.element() == 2 && b.bytes_of(source) == 4 * values;
  Operator& op = b.last();
  op.forward = by_head(op.forward, &GemmWork::n, heads);
  op.backward = by_head(op.backward, &GemmWork::k, heads);
  op.backward_weight = by_head(op.backward_weight, &GemmWork::n, heads);
  const double wide = cast ? 4 : as_double(b.element());
  op.backward.push_back(traffic(3 * wide * as_double(values * others), static_cast<int>(others)));
  if (!cast) return;
  const double moved = as_double(values * others) * (4 + as_double(b.element()));
  op.forward.push_back(traffic(moved, static_cast<int>(others)));
  op.backward.push_back(traffic(moved, static_cast<int>(others)));
  const TensorIndex copies = b.tensor_bytes("cast_for_heads", b.element() * values * others,
                                            MemoryCategory::activations, 0);
  op.outputs.push_back(copies);
  op.saves.push_back(copies);
}

void part_attention(const GraphBuilder& b, Operator& op, std::int64_t heads) {
  if (!b.own_code().heads_apart || heads < 2) return;
  for (std::vector<Kernel>* pass : {&op.forward, &op.backward}) {
    std::vector<Kernel> parts;
    for (Kernel k : *pass) {
      std::size_t times = 1;
      if (auto* work = std::get_if<AttentionWork>(&k)) {
        work->heads = work->kv_heads = 1;
        times = static_cast<std::size_t>(heads);
      }
      parts.insert(parts.end(), times, k);
    }
    const int each = score_kernels(b, pass == &op.forward);
    parts.push_back(MemoryWork{Bytes(0), each * static_cast<int>(heads - 1)});
    *pass = std::move(parts);
  }
}

}  // namespace shardwise
