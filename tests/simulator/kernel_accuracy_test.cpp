// The kernel models against published measurements of single kernels. Bounds are what the models
// reach, rounded up; a set that stays far off says so beside its bound.
//
// "grid" and "layers" are shapes held out of the fit (H200: no point of it was used), "training
// layers" and "training attention a100" come from laboratories that no constant rests on. The
// other sets are where rates of the profile were read from, so their error is that of the formula.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "simulator/costs/kernel_model.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kernel_points.hpp"

using namespace shardwise;

namespace {

struct Bound {
  std::string_view prefix;  // of the set's name; the first that matches holds
  double median;            // of |log(predicted / measured)|
  double p90;
};

constexpr Bound bounds[] = {
    {"grid ", 0.07, 0.20},
    {"layers h100", 0.07, 0.30},
    {"layers ", 0.07, 0.18},
    {"training layers a100", 0.04, 0.13},
    // Another kernel's, which scales blocks; what does not grow with k is a tenth to a third short.
    {"weight gradient fp8 h800", 0.12, 0.14},
    // One laboratory's B200 is a quarter slower than three others': see the profile's source.
    {"training layers b200", 0.32, 0.45},
    // The best of a search over shapes: the model gives the usual shape's rate.
    {"best shape gaudi-3", 0.25, 0.25},  // narrow: as much traffic as computing
    {"best shape mi300x", 0.23, 0.23},   // an MI325X keeps 0.785 of the best for 30 s
    {"best shape ", 0.21, 0.21},
    {"large fp8 gb200", 0.13, 0.15},  // its 16-bit products, which scale it, are nearer to B200's
    {"large fp8 ", 0.07, 0.15},
    {"square rtx-5090", 0.15, 0.17},  // boosts above the datasheet, where the model stops
    {"square ", 0.09, 0.09},
    {"chart ", 0.07, 0.13},
    // The old backward kernel of 1,024 tokens splits no keys; the new one is a seventh faster.
    {"memory efficient a100 backward", 0.16, 0.20},
    {"memory efficient ", 0.06, 0.12},
    {"few and many heads b200", 0.36, 0.58},  // of TensorRT-LLM, a quarter slower than cuDNN's
    {"few and many heads ", 0.13, 0.36},
    // Launches of 0.13 ms are in it: as much on GB300 and at any length.
    {"training attention b200 forward", 0.40, 0.76},
    {"training attention ", 0.12, 0.30},
    {"cuDNN 9.22 mxfp8 gb200 backward", 0.03, 0.12},
    {"cuDNN 9.22 mxfp8 ", 0.03, 0.07},
    {"cuDNN 9.22 gb200 backward", 0.04, 0.14},  // at 16,384 tokens the clock has fallen
    {"cuDNN 9.22 ", 0.03, 0.07},
    {"stored scores h100", 0.35, 0.45},  // its softmax is followed by a dropout of rate 0
    {"stored scores ", 0.12, 0.20},
    {"flash2 ", 0.10, 0.13},
    {"aiter ", 0.05, 0.10},
    // Tensors that fit the L2 cache: by another laboratory's curves of it.
    {"residual add ", 0.13, 0.27},
    {"scale mi210", 0.05, 0.35},     // what it finds in its cache falls in two steps
    {"scale h200-sxm", 0.12, 0.27},  // all 60 MiB that its driver tells are taken to help
    {"scale ", 0.12, 0.26},
};

const Bound* bound_of(std::string_view name) {
  const auto* found = std::find_if(std::begin(bounds), std::end(bounds), [&](const Bound& b) {
    return name.substr(0, b.prefix.size()) == b.prefix;
  });
  return found == std::end(bounds) ? nullptr : found;
}

template <class Visit>
void for_each_set(Visit visit) {
  const KernelPoints& p = kernel_points();
  for (const auto* list : {&p.gemm, &p.attention, &p.memory})
    for (const KernelSet& s : *list) visit(s);
}

}  // namespace

TEST_CASE("kernels are predicted within the stated bounds") {
  for_each_set([](const KernelSet& s) {
    INFO(s.name << ": median " << s.median_error() << ", p90 " << s.error_quantile(0.9) << ", bias "
                << s.bias());
    const Bound* bound = bound_of(s.name);
    REQUIRE(bound != nullptr);
    REQUIRE(s.measured.size() > 0);
    CHECK(s.median_error() <= bound->median);
    CHECK(s.error_quantile(0.9) <= bound->p90);
  });
}

TEST_CASE("the median set is within 6 per cent for products and for attention") {
  const KernelPoints& p = kernel_points();
  for (const auto* list : {&p.gemm, &p.attention}) {
    std::vector<double> medians;
    for (const KernelSet& s : *list)
      if (s.measured.size() > 1) medians.push_back(s.median_error());
    std::sort(medians.begin(), medians.end());
    CHECK(medians[medians.size() / 2] <= 0.06);
  }
}

// Two sequences of 4,096 tokens, heads of 64 (NVIDIA/cudnn-frontend, gpt_oss: windows of 128 at
// 3929da2e, April 2026, of 1,024 before 50c8aeb, February): a window's work is its own, not the
// square's.
TEST_CASE("heads of 64 in windows take what cuDNN's authors timed") {
  struct Timed {
    const char* gpu;
    int heads, kv_heads;
    std::int64_t window;
    double forward_us, backward_us;
  };
  for (const Timed& t :
       {Timed{"gb200", 128, 128, 128, 210, 465}, Timed{"gb200", 64, 8, 1024, 209, 487},
        Timed{"gb300", 128, 128, 128, 202, 442}, Timed{"gb300", 64, 8, 1024, 178, 472}}) {
    INFO(t.gpu << ", window " << t.window);
    const KernelModel model(catalogued_gpu(t.gpu), published_profile(),
                            {FusedAttention::cudnn, KernelStyle::fused});
    AttentionWork work;
    work.batch = 2, work.heads = t.heads, work.kv_heads = t.kv_heads, work.head_dim = 64;
    work.queries = 4096, work.keys = t.window;
    CHECK(model.attention(work).value * 1e6 == Approx(t.forward_us).epsilon(0.03));
    work.backward = true;
    CHECK(model.attention(work).value * 1e6 == Approx(t.backward_us).epsilon(0.03));
  }
}

// The same with operands of 8 bits (mxfp8, 3929da2e): backward all pairs are computed, so that four
// times the tokens take eleven times as long and more, where the window's own grow fourfold.
TEST_CASE("heads of 64 in windows take what cuDNN's authors timed, in 8 bits") {
  struct Timed {
    const char* gpu;
    std::int64_t tokens;
    double forward_us, backward_us;
  };
  for (const Timed& t : {Timed{"gb200", 2048, 109, 642}, Timed{"gb200", 8192, 417, 7427},
                         Timed{"gb300", 2048, 92, 581}, Timed{"gb300", 8192, 342, 6648}}) {
    INFO(t.gpu << ", " << t.tokens << " tokens");
    const KernelModel model(catalogued_gpu(t.gpu), published_profile());
    AttentionWork work;
    work.batch = 2, work.heads = work.kv_heads = 128, work.head_dim = 64;
    work.queries = t.tokens, work.keys = 128;
    work.kernel = AttentionKernel::cudnn;
    work.narrow_operands = true;
    CHECK(model.attention(work).value * 1e6 == Approx(t.forward_us).epsilon(0.05));
    work.backward = true;
    CHECK(model.attention(work).value * 1e6 == Approx(t.backward_us).epsilon(0.05));
  }
}

TEST_CASE("the best shape that was found is never slower than the model's", "[best]") {
  for (const KernelSet& s : kernel_points().gemm)
    if (s.name.rfind("best shape ", 0) == 0) CHECK(s.bias() >= 0);
}

// Run by hand: prints one line per set.
TEST_CASE("the table of kernel errors", "[.table]") {
  for_each_set([](const KernelSet& s) {
    std::printf("%-60s %3zu  median %.3f  p90 %.3f  bias %+.3f\n", s.name.c_str(),
                s.measured.size(), s.median_error(), s.error_quantile(0.9), s.bias());
  });
}
