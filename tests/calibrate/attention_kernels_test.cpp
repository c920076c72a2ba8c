// The attention kernels of shardwise-calibrate, run on the CPU against attention as it is defined.
#include <algorithm>

// First, as the kernels are written in its words.
#include "tests/calibrate/cuda_on_cpu.hpp"

#include "calibrate/device/attention_backward.cuh"
#include "calibrate/device/attention_forward.cuh"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

using Values = std::vector<double>;

std::vector<Bf16> drawn(int count, unsigned seed) {
  std::vector<Bf16> values;
  std::uint32_t state = seed;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(Bf16(static_cast<float>(state >> 8U) * 0x1p-23f - 1.0f));
  }
  return values;
}

// Tensors of both passes, and the kernels' answers in them.
struct Run {
  static constexpr int sequence = 128, heads = 2, kv_heads = 1, dim = 64;
  static constexpr int queries = heads * sequence;
  bool causal;
  std::vector<Bf16> q = drawn(queries * dim, 1), k = drawn(kv_heads * sequence * dim, 2),
                    v = drawn(kv_heads * sequence * dim, 3), d_o = drawn(queries * dim, 4);
  std::vector<Bf16> o = std::vector<Bf16>(q.size()), d_k = o, d_v = o;
  std::vector<float> log_sums = std::vector<float>(queries), pulls_of = log_sums;
  std::vector<float> d_q = std::vector<float>(q.size());
  float scale = 0.125f;  // 1 / sqrt(64)

  explicit Run(bool causal_) : causal(causal_) {
    const AttentionShape shape{1, heads, kv_heads, sequence, dim, causal};
    const AttentionTensors tensors{q.data(),        k.data(),   v.data(),   o.data(),
                                   log_sums.data(), d_o.data(), d_q.data(), pulls_of.data(),
                                   d_k.data(),      d_v.data()};
    const Index3 tiles{sequence / tile, heads, 1};
    run_on_cpu(tiles, 32 * warps, [&] { forward<Bf16, dim>({shape, tensors, scale}); });
    run_on_cpu({queries / warps, 1, 1}, 32 * warps, [&] {
      pulls<Bf16, dim>({shape, tensors, scale}, queries);
    });
    run_on_cpu(tiles, 32 * warps, [&] { backward<Bf16, dim>({shape, tensors, scale}); });
  }
};

double at(const std::vector<Bf16>& tensor, int row, int d) {
  return static_cast<float>(tensor[static_cast<std::size_t>(row * Run::dim + d)]);
}

double dot(const std::vector<Bf16>& a, int i, const std::vector<Bf16>& b, int j) {
  double sum = 0;
  for (int d = 0; d < Run::dim; ++d) sum += at(a, i, d) * at(b, j, d);
  return sum;
}

// p = softmax(scale q k^T); o = p v; ds = p (do v^T - sum(o do)) scale; dq = ds k; dk = ds^T q;
// dv = p^T do. All heads share the one key head.
struct Defined {
  Values o, d_q, d_k, d_v;

  explicit Defined(const Run& run) {
    const std::size_t size = run.q.size();
    o = d_q = d_k = d_v = Values(size, 0.0);
    for (int query = 0; query < Run::queries; ++query) one_query(run, query);
  }

  void one_query(const Run& run, int query) {
    constexpr int dim = Run::dim;
    const int head = query / Run::sequence, own = query % Run::sequence;
    const int keys = run.causal ? own + 1 : Run::sequence;
    Values p;
    double sum = 0;
    for (int key = 0; key < keys; ++key) {
      p.push_back(std::exp(run.scale * dot(run.q, query, run.k, key)));
      sum += p.back();
    }
    double pull = 0;
    for (int d = 0; d < dim; ++d) {
      double& out = o[static_cast<std::size_t>(query * dim + d)];
      for (int key = 0; key < keys; ++key)
        out += p[static_cast<std::size_t>(key)] / sum * at(run.v, key, d);
      pull += out * at(run.d_o, query, d);
    }
    for (int key = 0; key < keys; ++key) {
      const double share = p[static_cast<std::size_t>(key)] / sum;
      const double ds = share * (dot(run.d_o, query, run.v, key) - pull) * run.scale;
      for (int d = 0; d < dim; ++d) {
        const auto to = static_cast<std::size_t>((head * Run::sequence + key) * dim + d);
        d_q[static_cast<std::size_t>(query * dim + d)] += ds * at(run.k, key, d);
        d_k[to] += ds * at(run.q, query, d);
        d_v[to] += share * at(run.d_o, query, d);
      }
    }
  }
};

template <class T>
double greatest_error(const std::vector<T>& found, const Values& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error =
        std::max(error, std::abs(static_cast<double>(static_cast<float>(found[i])) - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  return error / size;
}

}  // namespace

TEST_CASE("the attention kernels compute attention and its gradients") {
  for (const bool causal : {false, true}) {
    const Run run(causal);
    const Defined defined(run);
    INFO("causal: " << causal);
    // bf16 keeps 8 bits: a result is off by 2^-9 of itself, what is summed from rounded
    // probabilities by a little more.
    CHECK(greatest_error(run.o, defined.o) < 0.01);
    CHECK(greatest_error(run.d_q, defined.d_q) < 0.01);
    CHECK(greatest_error(run.d_k, defined.d_k) < 0.01);
    CHECK(greatest_error(run.d_v, defined.d_v) < 0.01);
  }
}
