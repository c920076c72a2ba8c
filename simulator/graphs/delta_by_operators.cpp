#include "simulator/graphs/delta_by_operators.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardwise {
namespace delta_by_operators {

constexpr std::int64_t chunk = 64;  // torch_chunk_gated_delta_rule's default, which callers leave

struct Shape {
  std::int64_t sequences, chunks, rows;  // chunks of one sequence; rows of all, padded
  std::int64_t key_heads, value_heads, key_dim, value_dim;
  std::int64_t convolved() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  std::int64_t places() const { return rows * value_heads; }
};

Shape shape_of(const GraphBuilder& b) {
  const DeltaNet& d = *b.workload().model.delta;
  const std::int64_t sequences = std::max<std::int64_t>(
      1, std::int64_t{b.plan().microbatch} * b.workload().sequences_per_sample);
  const std::int64_t length = std::max<std::int64_t>(1, b.tokens() / sequences);
  const std::int64_t chunks = (length + chunk - 1) / chunk;
  return {sequences,
          chunks,
          sequences * chunks * chunk,
          std::max(1, d.key_heads / b.tensor()),
          std::max(1, d.value_heads / b.tensor()),
          d.key_dim,
          d.value_dim};
}

// fp32 numbers of a row and value head that a pass reads and writes beside its products' operands,
// and its kernels beside the products: of the whole, and again for every chunk of a sequence.
// Counted by calibrate/count_delta_operators.py.
struct PassCount {
  double each, of_key, of_value, of_state;  // states: K V / C of a row
  double each_of_chunk, of_key_of_chunk, of_value_of_chunk;
  int kernels, kernels_of_chunk;
};
constexpr PassCount rows_forward{8209, 25, 19, 5, 0, 0, 0, 425, 12};
constexpr PassCount rows_backward{53413, 62, 22, 11, 272, 12, 6, 917, 46};
constexpr PassCount solved_forward{749, 29, 18, 5, 0, 0, 0, 44, 5};
constexpr PassCount solved_backward{2017, 76, 24, 11, 256, 12, 6, 73, 23};

MemoryWork passes_of(const PassCount& p, const Shape& s) {
  const auto n = static_cast<double>(s.chunks);
  const auto k = static_cast<double>(s.key_dim), v = static_cast<double>(s.value_dim);
  const double numbers = p.each + p.of_key * k + p.of_value * v +
                         p.of_state * k * v / static_cast<double>(chunk) +
                         n * (p.each_of_chunk + p.of_key_of_chunk * k + p.of_value_of_chunk * v);
  MemoryWork work = traffic(4 * numbers * as_double(s.places()),
                            p.kernels + p.kernels_of_chunk * static_cast<int>(s.chunks));
  work.plain = true;
  return work;
}

void product(std::vector<Kernel>& to, std::int64_t m, std::int64_t n, std::int64_t k,
             std::int64_t batch) {
  to.push_back(GemmWork{m, n, k, batch, DType::fp32});
}

// Of all chunks at once: keys with keys, and what the triangles give of values and keys, by
// products or by solves, which multiply as much. Of one chunk after the other: the scores (unless
// `solved`, which has made them at once), the state with keys and with queries, the scores with
// values, and what is added to the state. Backward each product is two.
void add_products(bool solved, const Shape& s, int times, std::vector<Kernel>& to) {
  const std::int64_t all = s.sequences * s.chunks * s.value_heads;
  const std::int64_t one = s.sequences * s.value_heads;
  for (int i = 0; i < times; ++i) {
    product(to, chunk, chunk, s.key_dim, all);
    product(to, chunk, s.value_dim, chunk, all);
    product(to, chunk, s.key_dim, chunk, all);
    if (solved) product(to, chunk, chunk, s.key_dim, all);
  }
  for (std::int64_t i = 0; i < times * s.chunks; ++i) {
    if (!solved) product(to, chunk, chunk, s.key_dim, one);
    product(to, chunk, s.value_dim, s.key_dim, one);
    product(to, chunk, s.value_dim, s.key_dim, one);
    product(to, chunk, s.value_dim, chunk, one);
    product(to, s.key_dim, s.value_dim, chunk, one);
  }
}

// fp32 numbers that autograd keeps of a row and value head (head comment of the header).
std::int64_t kept_numbers(bool solved, const Shape& s) {
  const std::int64_t states = s.key_dim * s.value_dim / chunk;
  const std::int64_t shared = 3 * s.value_dim + states;
  if (solved) return shared + 8 * s.key_dim + 5 * chunk;
  return shared + 7 * s.key_dim + 6 * chunk + (chunk * chunk - 1) / 3;
}

// nn.Conv1d, whose result is cut to the sequence's length, and a SiLU, which keeps it.
TensorIndex convolved(GraphBuilder& b, TensorIndex projected, const Shape& s) {
  const std::int64_t n = b.tokens() * s.convolved();
  const double bytes = bytes_of_elements(b, n);
  Operator op;
  op.name = "delta_convolution";
  const TensorIndex before = b.tensor("delta_convolved", n);
  const TensorIndex out = b.tensor("delta_qkv", n);
  op.inputs = {projected};
  op.outputs = {before, out};
  op.saves = {projected, before};
  // A copy that lies channel by channel, the convolution, SiLU; back SiLU, the cut, both gradients.
  op.forward = {traffic(6 * bytes, 3)};
  op.backward = {traffic(12 * bytes, 6)};
  op.forward_temporary = op.backward_temporary = ceil_bytes(bytes);
  const DeltaNet& whole = *b.workload().model.delta;
  const std::int64_t weights = whole.convolution * s.convolved();
  b.count_other(weights);
  op.weight_gradient_elements = b.trains_base() ? weights : 0;
  issue_as_plain(op);
  b.add(std::move(op));
  return out;
}

TensorIndex rule(GraphBuilder& b, TensorIndex qkv, TensorIndex rates, const Shape& s) {
  const bool solved = b.workload().framework.layers.delta_rule == DeltaRule::solved;
  const auto kept = [&](std::string_view name, std::int64_t bytes) {
    return b.tensor_bytes(name, bytes, MemoryCategory::activations, 0);
  };
  Operator op;
  op.name = "delta_rule";
  op.inputs = {qkv, rates};
  op.outputs = {kept("delta_chunks", 4 * kept_numbers(solved, s) * s.places())};
  // Decays and rates: what softplus and sigmoid keep; `solved`, padded ones and exponentials too.
  op.outputs.push_back(kept("delta_rates", (solved ? 34 : 16) * s.places()));
  if (!solved && s.value_heads > s.key_heads)
    op.outputs.push_back(kept("delta_spread", 2 * b.element() * s.places() * s.key_dim));
  op.saves = op.outputs;
  op.saves.push_back(rates);
  // Their norms keep keys and queries as they came, where no copy for every value head was made and
  // none is widened before.
  if (!solved && s.value_heads == s.key_heads) op.saves.push_back(qkv);
  const TensorIndex out = b.tensor("delta", b.tokens() * s.value_heads * s.value_dim);
  op.outputs.push_back(out);
  op.forward = {passes_of(solved ? solved_forward : rows_forward, s)};
  add_products(solved, s, 1, op.forward);
  op.backward = {passes_of(solved ? solved_backward : rows_backward, s)};
  add_products(solved, s, 2, op.backward);
  // Forward the result in fp32 and what the triangles multiply. Backward the gradients of what the
  // chunk loop indexes, of the output twice, and the zeros of one chunk's.
  op.forward_temporary = Bytes(4 * s.places() * (s.key_dim + 2 * s.value_dim));
  op.backward_temporary = Bytes(4 * s.places() * (4 * s.key_dim + 3 * s.value_dim + chunk));
  const std::int64_t weights = 2 * s.value_heads;
  b.count_other(weights);
  op.weight_gradient_elements = b.trains_base() ? weights : 0;
  b.add(std::move(op));
  return out;
}

}  // namespace delta_by_operators

bool runs_delta_by_operators(const GraphBuilder& b) {
  const Workload& w = b.workload();
  return w.framework.layers.delta_rule != DeltaRule::kernels &&
         w.framework.layers.runs_transformers && !w.model.delta->gate_rank;
}

TensorIndex add_delta_by_operators(GraphBuilder& b, TensorIndex projected, TensorIndex rates) {
  const delta_by_operators::Shape s = delta_by_operators::shape_of(b);
  return delta_by_operators::rule(b, delta_by_operators::convolved(b, projected, s), rates, s);
}

}  // namespace shardwise
