// The row kernels of shardwise-calibrate, run on the CPU against their definitions.
#include <algorithm>
#include <numeric>

// First, as the kernels are written in its words.
#include "tests/calibrate/cuda_on_cpu.hpp"

#include "calibrate/device/row_kernels.cuh"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

constexpr std::int64_t columns = 24;  // three packs: most threads of a block have none
constexpr std::int64_t elements = 2 * columns;
using Tensor = std::vector<Bf16>;
using Values = std::vector<double>;

Tensor waves(double step) {
  Tensor tensor;
  for (int i = 0; i < elements; ++i)
    tensor.push_back(Bf16(static_cast<float>(2 * std::sin(step * i))));
  return tensor;
}

// Two rows of inputs, and what a kernel makes of them.
struct Rows {
  alignas(16) Tensor a = waves(0.7), b = waves(1.3), c = waves(2.1);
  Tensor out = Tensor(elements), second = Tensor(elements);

  template <class Kernel>
  void over_rows(Kernel kernel, std::vector<void*> tensors) {
    run_on_cpu({2, 1, 1}, row_threads, [&] { kernel(bound(tensors), columns); });
  }
  static Tensors bound(const std::vector<void*>& from) {
    Tensors tensors{};
    std::copy(from.begin(), from.end(), tensors.at);
    return tensors;
  }
};

Values row(const Tensor& tensor, int number) {
  Values values;
  for (std::int64_t i = 0; i < columns; ++i)
    values.push_back(static_cast<float>(tensor[static_cast<std::size_t>(number * columns + i)]));
  return values;
}

double sum_of_products(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Found as expected to the 8 bits of bf16 and the approximate exponential.
void check_row(const Tensor& found, int number, const Values& expected) {
  const Values values = row(found, number);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(values[i] == Approx(expected[i]).epsilon(0.008).margin(0.004));
}

Values softmax_of(const Values& x) {
  Values y;
  for (const double v : x) y.push_back(std::exp(v));
  const double sum = std::accumulate(y.begin(), y.end(), 0.0);
  for (double& v : y) v /= sum;
  return y;
}

}  // namespace

TEST_CASE("norms: x / rms(x), its gradient, and (x - mean) / deviation") {
  Rows rows;
  rows.over_rows(rms_norm<Bf16>, {rows.a.data(), rows.out.data()});
  rows.over_rows(rms_norm_backward<Bf16>, {rows.a.data(), rows.b.data(), rows.second.data()});
  Rows centred;
  centred.over_rows(layer_norm<Bf16>, {centred.a.data(), centred.out.data()});
  for (const int number : {0, 1}) {
    const Values x = row(rows.a, number), dy = row(rows.b, number);
    const double n = columns, r = 1 / std::sqrt(sum_of_products(x, x) / n);
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
    const double deviation = std::sqrt(sum_of_products(x, x) / n - mean * mean);
    Values y, dx, z;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back(x[i] * r);
      dx.push_back(r * dy[i] - r * r * r * x[i] * sum_of_products(x, dy) / n);
      z.push_back((x[i] - mean) / deviation);
    }
    check_row(rows.out, number, y);
    check_row(rows.second, number, dx);
    check_row(centred.out, number, z);
  }
}

TEST_CASE("softmax, its gradient, and the gradient of a cross-entropy") {
  Rows rows;
  rows.over_rows(softmax<Bf16>, {rows.a.data(), rows.out.data()});
  rows.over_rows(cross_entropy<Bf16>, {rows.a.data(), rows.second.data()});
  Rows backward;
  backward.over_rows(softmax_backward<Bf16>,
                     {backward.a.data(), backward.b.data(), backward.out.data()});
  for (const int number : {0, 1}) {
    const Values y = softmax_of(row(rows.a, number));
    check_row(rows.out, number, y);
    Values gradient = y;
    gradient[static_cast<std::size_t>(number)] -= 1;  // the target is the row's number
    check_row(rows.second, number, gradient);
    const Values p = row(backward.a, number), dp = row(backward.b, number);
    Values dx;
    for (std::size_t i = 0; i < p.size(); ++i)
      dx.push_back(p[i] * (dp[i] - sum_of_products(p, dp)));
    check_row(backward.out, number, dx);
  }
}

TEST_CASE("element-wise kernels, and gradients as slopes") {
  Rows rows;
  const std::int64_t packs = elements / row_pack;
  const auto over_packs = [&](auto kernel) { run_on_cpu({1, 1, 1}, row_threads, kernel); };
  const auto tensors = Rows::bound({rows.a.data(), rows.b.data(), rows.out.data()});
  over_packs([&] { of_two<Bf16>(tensors, packs, GeluBackward()); });
  const auto five =
      Rows::bound({rows.a.data(), rows.b.data(), rows.c.data(), rows.c.data(), rows.second.data()});
  const Tensor upstream = rows.c;
  over_packs([&] { silu_multiply_backward<Bf16>(five, packs); });
  const auto slope = [](auto function, double at) {
    return (function(at + 1e-2) - function(at - 1e-2)) / 2e-2;
  };
  const auto gelu = [](double x) { return static_cast<double>(Gelu()(static_cast<float>(x))); };
  for (int i = 0; i < elements; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto value = [&](const Tensor& tensor) -> double {
      return static_cast<float>(tensor[at]);
    };
    const double a = value(rows.a), b = value(rows.b), dy = value(upstream);
    const auto product = [&](double gate) {
      return static_cast<double>(SiluMultiply()(static_cast<float>(gate), static_cast<float>(b)));
    };
    CHECK(value(rows.out) == Approx(b * slope(gelu, a)).epsilon(0.01).margin(0.01));
    CHECK(value(rows.c) == Approx(dy * slope(product, a)).epsilon(0.01).margin(0.02));
    // Of up: dy silu(gate).
    CHECK(value(rows.second) == Approx(dy * a / (1 + std::exp(-a))).epsilon(0.01).margin(0.01));
  }
}

TEST_CASE("a gather takes every row once") {
  Rows rows;
  rows.over_rows(gather<Bf16>, {rows.a.data(), rows.out.data()});
  // An odd factor leaves 0 and 1 of two rows where they are.
  check_row(rows.out, 0, row(rows.a, 0));
  check_row(rows.out, 1, row(rows.a, 1));
}
