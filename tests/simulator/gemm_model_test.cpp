#include "simulator/costs/gemm_model.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include "simulator/costs/kernel_model.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/bare_machine.hpp"
#include "tests/simulator/kernel_points.hpp"

using namespace shardwise;

namespace {

double seconds_of(const Gpu& gpu, const Profile& profile, const GemmShape& shape) {
  return GemmModel(gpu, profile).time(shape).value;
}

const std::vector<std::string> some_gpus{"v100-sxm2-32gb",
                                         "t4",
                                         "rtx-3090",
                                         "a40",
                                         "a100-sxm4-80gb",
                                         "rtx-4090",
                                         "l40s",
                                         "l4",
                                         "h100-sxm5-80gb",
                                         "h100-pcie-80gb",
                                         "h20",
                                         "b200",
                                         "rtx-5090",
                                         "mi300x",
                                         "gaudi-2"};

}  // namespace

TEST_CASE("a card that is held to less power reaches less") {
  const auto scale = [](const char* id, std::optional<double> limit) {
    Gpu gpu = catalogued_gpu(id);
    gpu.power_limit_w = limit;
    return sustained_scale(gpu, published_profile());
  };
  // An A100 of 300 W (PCIe) reaches 252.9 TFLOP/s where one of 400 W (SXM) reaches 271.2 (the
  // family's row in published.json): 0.933 of it; 300 / 400 to the power of 0.24 is 0.933.
  const double full = scale("a100-sxm4-80gb", {});
  CHECK(scale("a100-sxm4-80gb", 300) / full == Approx(252.9 / 271.2).epsilon(0.002));
  CHECK(scale("a100-sxm4-80gb", 275) < scale("a100-sxm4-80gb", 300));
  // An RTX 3090 keeps 95 per cent at 280 of 350 W (its row's source).
  CHECK(scale("rtx-3090", 280) / scale("rtx-3090", {}) == Approx(0.95).epsilon(0.002));
  // More than the board allows holds nothing.
  CHECK(scale("a100-sxm4-80gb", 500) == full);
}

TEST_CASE("waves of a large product") {
  // 8192 x 14336 in tiles of 128 x 256: 64 rows of 56 tiles, 3584.
  // 3584 / 148 = 24.2 and 3584 / 152 = 23.6: a last partial wave costs a full one.
  CHECK(waves(3584, 148, 1) == 25);
  CHECK(waves(3584, 152, 1) == 24);
  // Without rounding it costs its share, and half way between with one half.
  CHECK(waves(3584, 148, 0) == Approx(3584.0 / 148));
  CHECK(waves(150, 100, 0.5) == Approx(1.75));
  // Less than a wave is a wave.
  CHECK(waves(1, 148, 0) == 1);
}

TEST_CASE("one tile on one multiprocessor") {
  // 2 x 128 x 128 x 4096 FLOPs at 1 TFLOP/s = 134.2 us; A, B and C are 2.13 MB, 2.13 us, and hide.
  // Splitting k costs this profile only its partial sums, so it takes the most parts there are:
  // 8 of 512, 16.8 us, and 9 x 64 KiB of fp32 sums written and read at 1 TB/s, 0.59 us.
  const double whole = 2.0 * 128 * 128 * 4096 / 1e12;
  CHECK(seconds_of(bare_gpu(), bare_profile(), {128, 128, 4096}) ==
        Approx(whole / 8 + 9 * 4.0 * 128 * 128 / 1e12));
}

TEST_CASE("waves quantise a full chip") {
  Profile profile = bare_profile();
  const auto us = [&](std::int64_t n) {
    return 1e6 * seconds_of(bare_gpu(), profile, {1280, n, 1024});
  };
  // 10 x 10 tiles fill 100 multiprocessors once: 2 x 128 x 128 x 1024 / 1 TFLOP/s = 33.55 us.
  CHECK(us(1280) == Approx(33.554432));
  // One more column of tiles is a second wave, and up to 20 columns are no slower.
  CHECK(us(1288) == Approx(2 * 33.554432));
  CHECK(us(2560) == Approx(2 * 33.554432));
  // Without rounding the 110 tiles cost 1.1 waves.
  profile.families[0].gemm.wave_rounding = 0;
  CHECK(us(1288) == Approx(1.1 * 33.554432));
}

TEST_CASE("the ramp is extra k, counted in bytes") {
  Profile profile = bare_profile();
  profile.families[0].gemm.ramp_bytes = 256;  // 128 elements of bf16: 1024 becomes 1152
  CHECK(seconds_of(bare_gpu(), profile, {1280, 1280, 1024}) == Approx(33.554432e-6 * 1152 / 1024));
}

TEST_CASE("the sustained ceiling binds where the issue ceiling does not") {
  Profile profile = bare_profile();
  profile.families[0].gemm.sustained_fraction[static_cast<std::size_t>(DType::bf16)] = 0.5;
  CHECK(seconds_of(bare_gpu(), profile, {1280, 1280, 1024}) == Approx(2 * 33.554432e-6));
}

TEST_CASE("thin products are bound by memory") {
  // k = 16: A 2.6 MB, B 0.3 MB and C 81920 x 10240 x 2 B = 1.678 GB take 1.68 ms at 1 TB/s, the
  // arithmetic 0.27 ms.
  const GemmShape thin{81920, 10240, 16};
  const double bytes = 2.0 * (81920.0 * 16 + 10240.0 * 16 + 81920.0 * 10240.0);
  CHECK(seconds_of(bare_gpu(), bare_profile(), thin) == Approx(bytes / 1e12));
}

TEST_CASE("computing and traffic of a product do not hide behind each other wholly") {
  Profile profile = bare_profile();
  // C of 4096 x 4096 and operands of k = 128: 35.7 MB, 35.65 us; 1,024 tiles on 100 multiprocessors
  // are 11 waves of 2 x 128 x 128 x 128 FLOPs at 1 TFLOP/s, 46.14 us, which is what the longer of
  // both says; with an exponent of 2 it is the root of the sum of their squares.
  const GemmShape shape{4096, 4096, 128};
  const double traffic = 2.0 * (2 * 4096.0 * 128 + 4096.0 * 4096) / 1e12;
  const double computing = 11 * 2.0 * 128 * 128 * 128 / 1e12;
  CHECK(seconds_of(bare_gpu(), profile, shape) == Approx(computing));
  profile.gemm_layout.overlap_exponent = 2;
  CHECK(seconds_of(bare_gpu(), profile, shape) == Approx(std::hypot(computing, traffic)));
}

TEST_CASE("accumulating into fp32 and odd row lengths cost what the profile says") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  const GemmShape plain{1280, 1280, 1024};
  GemmShape added = plain;
  added.accumulate = true;
  // Six bytes more for each of 1280 x 1280 results, at 1 TB/s 9.8304 us: hidden behind the product,
  // beside it as the root of the sum of squares, or behind one another.
  CHECK(seconds_of(bare_gpu(), profile, added) == Approx(33.554432e-6));
  profile.gemm_layout.accumulate_exponent = 2;
  CHECK(seconds_of(bare_gpu(), profile, added) == Approx(std::hypot(33.554432e-6, 9.8304e-6)));
  profile.gemm_layout.accumulate_exponent = 1;
  CHECK(seconds_of(bare_gpu(), profile, added) == Approx(33.554432e-6 + 9.8304e-6));
  // 1273 elements of 2 B are no multiple of 16 B; the tiles are the same ten columns.
  CHECK(seconds_of(bare_gpu(), profile, {1280, 1273, 1024}) == Approx(33.554432e-6 / 0.5));
  // An odd number of tokens lengthens a product over them by its own share, one in 1,024, and no
  // row; the rows of what it multiplies are those of m and n.
  const double even = seconds_of(bare_gpu(), profile, {1280, 1280, 1024});
  GemmShape odd{1280, 1280, 1025};
  CHECK(seconds_of(bare_gpu(), profile, odd) > 1.9 * even);
  odd.across_rows = true;
  CHECK(seconds_of(bare_gpu(), profile, odd) == Approx(even).epsilon(0.01));
  odd.m = 1273;
  CHECK(seconds_of(bare_gpu(), profile, odd) > 1.9 * even);
}

// 100 TFLOP/s on 100 multiprocessors at 2 GHz are 500 FLOP a cycle, at 1 GHz 1,000: what is loaded
// element by element keeps the slower cores waiting less.
TEST_CASE("odd row lengths cost slow tensor cores less") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  profile.gemm_layout.slow_cores_misaligned_rate = 0.8;
  profile.gemm_layout.slow_flop_per_cycle = 512;
  Gpu gpu = bare_gpu();
  const GemmShape odd{1280, 1273, 1024};
  gpu.boost_clock_mhz = 1000;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 / 0.5));
  gpu.boost_clock_mhz = 2000;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 / 0.8));
  // A tensor clock is the one that the rate was stated at.
  gpu.tensor_clock_mhz = 1000;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 / 0.5));
}

// 100 multiprocessors at 1 GHz that do 250 FLOP a cycle in a kernel which loads element by element
// are 25 TFLOP/s, a quarter of what the cores do; 600 would be more than the half that they keep.
// They are cuBLAS's: another vendor's cores keep the half.
TEST_CASE("odd row lengths leave fast tensor cores what their loads bring") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  Gpu gpu = bare_gpu();
  gpu.boost_clock_mhz = 1000;
  gpu.vendor = "nvidia";
  const GemmShape odd{1280, 1273, 1024};
  const double flop = 2.0 * 1280 * 1273 * 1024;
  profile.gemm_layout.misaligned_flop_per_cycle = 250;
  CHECK(seconds_of(gpu, profile, odd) == Approx(flop / 25e12));
  CHECK(seconds_of(gpu, profile, {1280, 1280, 1024}) == Approx(33.554432e-6));
  profile.gemm_layout.misaligned_flop_per_cycle = 600;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 / 0.5));
  profile.gemm_layout.misaligned_flop_per_cycle = 250;
  gpu.vendor = "amd";
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 / 0.5));
}

// 1280 x 1273 x 1024 takes 33.55 us in tiles of 128, at half the rate 67.11; where the result's
// rows alone are out of line 1.25 times that, an operand's 1 / 1.1, a weight gradient's 1 / 1.2.
// Slow cores are told apart by nothing.
TEST_CASE("what is out of line decides how much it costs") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  profile.gemm_layout.misaligned_by_side = {0.8, 1.1, 1.2};
  Gpu gpu = bare_gpu();
  gpu.boost_clock_mhz = 1000;
  const GemmShape result{1280, 1273, 1024};
  GemmShape operand{1280, 1273, 1023};
  GemmShape gradient = result;
  gradient.across_rows = true;
  CHECK(seconds_of(gpu, profile, result) == Approx(67.108864e-6 / 0.8));
  CHECK(seconds_of(gpu, profile, operand) == Approx(67.108864e-6 * 1023 / 1024 / 1.1));
  CHECK(seconds_of(gpu, profile, gradient) == Approx(67.108864e-6 / 1.2));
  profile.gemm_layout.slow_flop_per_cycle = 1000;
  profile.gemm_layout.slow_cores_misaligned_rate = 0.5;
  CHECK(seconds_of(gpu, profile, result) == Approx(67.108864e-6));
}

// 1280 x 1273 x 1024 takes 33.55 us in tiles of 128, twice that with rows out of line. An operand
// of 1,303,552 elements (1024 x 1273) that is copied into the other order costs the benchmark 13.04
// us at one cycle of a multiprocessor each (100 of them at 1 GHz) and 2.61 us for zeros; 1.1 (33.55
// + 15.64) is below 67.11, and what runs reads and writes it at 1 TB/s: 5.21 us. At two cycles it
// is 1.1 (33.55 + 28.68), which is not.
TEST_CASE("a compiler pads odd lengths where its benchmark finds that faster") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  Gpu gpu = bare_gpu();
  gpu.boost_clock_mhz = 1000;
  GemmShape odd{1280, 1273, 1024};
  odd.padding = true;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6));
  odd.padding_transposes = 1024 * 1273;
  profile.gemm_layout.transposing_cycles = 1;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 + 4e-12 * 1024 * 1273));
  profile.gemm_layout.transposing_cycles = 2;
  CHECK(seconds_of(gpu, profile, odd) == Approx(2 * 33.554432e-6));
  // As it is, the copy takes 6 bytes an element, 7.8 us, and pays.
  odd.padding_transposes = 0;
  odd.padding_copies = 1024 * 1273;
  CHECK(seconds_of(gpu, profile, odd) == Approx(33.554432e-6 + 4e-12 * 1024 * 1273));
  // 30 FLOP of a multiply-add per element, where half of 100 TFLOP/s over 1 TB/s is 50.
  GemmShape narrow{1280, 1273, 32};
  const double as_is = seconds_of(gpu, profile, narrow);
  narrow.padding = true;
  CHECK(seconds_of(gpu, profile, narrow) == as_is);
  // One column stays one, and even lengths are none of its business.
  GemmShape column{1280, 1, 1024};
  const double one = seconds_of(gpu, profile, column);
  column.padding = true;
  CHECK(seconds_of(gpu, profile, column) == one);
  GemmShape even{1280, 1280, 1024};
  even.padding = true;
  even.padding_transposes = 1024 * 1280;
  CHECK(seconds_of(gpu, profile, even) == Approx(33.554432e-6));
}

// The same odd row in fp32, on the CUDA cores, takes what an even one takes: ten columns of tiles.
TEST_CASE("products without tensor cores do not ask for aligned rows") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  Gpu gpu = bare_gpu();
  const auto fp32 = static_cast<std::size_t>(DType::fp32);
  gpu.dense_rate[fp32] = FlopsPerSecond(10e12);
  profile.families.front().gemm.issue_fraction[fp32] = 1;
  profile.families.front().gemm.sustained_fraction[fp32] = 1;
  const auto seconds = [&](std::int64_t n) {
    return seconds_of(gpu, profile, {1280, n, 1024, 1, DType::fp32});
  };
  CHECK(seconds(1273) == Approx(seconds(1280)).epsilon(0.01));
}

// 2,880 rows of mxfp8 are 2,880 B, a multiple of 16; with the scales, which lie apart, 2,970 B.
TEST_CASE("the scales of a block format do not put its rows out of line") {
  Profile profile = bare_profile();
  profile.gemm_layout.misaligned_rate = 0.5;
  Gpu gpu = bare_gpu();
  for (const DType d : {DType::mxfp8, DType::nvfp4}) {
    gpu.dense_rate[static_cast<std::size_t>(d)] = FlopsPerSecond(200e12);
    profile.families.front().gemm.issue_fraction[static_cast<std::size_t>(d)] = 1;
    profile.families.front().gemm.sustained_fraction[static_cast<std::size_t>(d)] = 1;
  }
  const auto rate = [&](DType d, std::int64_t n) {
    const std::int64_t m = 12'800, k = 12'800;
    return 2.0 * static_cast<double>(m * n * k) / seconds_of(gpu, profile, {m, n, k, 1, d});
  };
  CHECK(rate(DType::mxfp8, 2880) == Approx(rate(DType::mxfp8, 3072)).epsilon(0.1));
  CHECK(rate(DType::nvfp4, 2880) == Approx(rate(DType::nvfp4, 3072)).epsilon(0.1));
  CHECK(rate(DType::mxfp8, 2888) < 0.6 * rate(DType::mxfp8, 3072));  // 8 B over a multiple of 16
}

TEST_CASE("a batch is more tiles of one launch") {
  // 4 products of 5 x 5 tiles fill the chip once.
  CHECK(seconds_of(bare_gpu(), bare_profile(), {640, 640, 1024, 4}) == Approx(33.554432e-6));
}

// The same four as kernels of their own start four times, which the first one alone does not hide.
TEST_CASE("each product of a group starts") {
  Profile profile = bare_profile();
  profile.families.front().gemm.start = Seconds(2e-6);
  const KernelModel kernels(bare_gpu(), profile);
  GemmWork group{640, 640, 1024, 4};
  CHECK(kernels.gemm(group).value == Approx(33.554432e-6 + 2e-6));
  group.grouped = true;
  CHECK(kernels.gemm(group).value == Approx(33.554432e-6 + 4 * 2e-6));
  group.at_once = true;  // but for one kernel that computes them all
  CHECK(kernels.gemm(group).value == Approx(33.554432e-6 + 2e-6));
}

// NVIDIA/TransformerEngine pull request 2045 (version 2.7, CUDA 12.9): 8 products of 4,096 rows and
// 16 of 2,048, by 768 by 2,048, in 16 bits by four streams of cuBLAS: 628 and 554 TFLOP/s on H100.
TEST_CASE("groups of products on an H100 take what Transformer Engine's authors measured") {
  const KernelModel kernels(catalogued_gpu("h100-sxm5-80gb"), published_profile());
  const auto tflops = [&](std::int64_t products, std::int64_t rows) {
    GemmWork group{rows, 768, 2048, products};
    group.grouped = true;
    const double flops = 2.0 * static_cast<double>(products * rows) * 768 * 2048;
    return flops / 1e12 / kernels.gemm(group).value;
  };
  CHECK(tflops(8, 4096) == Approx(628).epsilon(0.05));
  CHECK(tflops(16, 2048) == Approx(554).epsilon(0.05));
}

// The same four in one kernel of PyTorch's, which reaches half of the bare machine's 100 TFLOP/s:
// 2 x 640 x 640 x 1024 x 4 FLOP in 67.108864 us, whatever a load takes from other products.
TEST_CASE("PyTorch's kernel for a group of products has a rate of its own") {
  Profile profile = bare_profile();
  profile.families.front().gemm.start = Seconds(2e-6);
  GemmWork group{640, 640, 1024, 4};
  group.grouped = false;
  group.by_torch = true;
  CHECK(KernelModel(bare_gpu(), profile).gemm(group).value == Approx(33.554432e-6 + 2e-6));
  profile.families.front().gemm.torch_grouped_fraction = 0.5;
  CHECK(KernelModel(bare_gpu(), profile).gemm(group).value == Approx(67.108864e-6 + 2e-6));
  profile.families.front().training_load.matmul.fill(0.8);
  AttentionChoice loaded;
  loaded.load.training_chips = 8;
  CHECK(KernelModel(bare_gpu(), profile, loaded).gemm(group).value == Approx(67.108864e-6 + 2e-6));
  group.by_torch = false;
  CHECK(KernelModel(bare_gpu(), profile).gemm(group).value == Approx(33.554432e-6 + 2e-6));
}

// pytorch/ao @0b1bb11728 torchao/prototype/moe_training/README.md, bf16 on a B200: 128,000 rows to
// 8 experts, 5120 by 8192 and 7168 by 2048, forward and backward in 37.7 and 14.97 ms, of which a
// loss on the result takes 12 B of an element at 6.5 TB/s. The spread of the table is a fifth.
TEST_CASE("groups of products on a B200 take what torchao's authors measured of PyTorch's") {
  const KernelModel kernels(catalogued_gpu("b200"), published_profile());
  const auto taken = [&](std::int64_t in, std::int64_t out) {
    double seconds = 12.0 * 128000 * static_cast<double>(out) / 6.5e12;
    for (GemmWork group :
         {GemmWork{16000, out, in, 8}, GemmWork{16000, in, out, 8}, GemmWork{in, out, 16000, 8}}) {
      group.by_torch = true;
      seconds += kernels.gemm(group).value;
    }
    return seconds;
  };
  CHECK(taken(5120, 8192) == Approx(37.7e-3).epsilon(0.1));
  CHECK(taken(7168, 2048) == Approx(14.97e-3).epsilon(0.12));
}

TEST_CASE("formats that a GPU lacks run as their stand-in") {
  const GemmModel bare(bare_gpu(), bare_profile());
  CHECK(bare.supports(DType::bf16));
  // fp16: no rate, so fp32 (50 TFLOP/s) at the emulated rate of one half.
  CHECK_FALSE(bare.supports(DType::fp16));
  CHECK(bare.sustained_rate(DType::fp16) == FlopsPerSecond(25e12));
  // tf32 is fp32 whose operands a tensor core rounds: without one, fp32.
  CHECK_FALSE(bare.supports(DType::tf32));
  CHECK(bare.sustained_rate(DType::tf32) == FlopsPerSecond(50e12));
  // fp8: as bf16.
  CHECK_FALSE(bare.supports(DType::fp8));
  CHECK(bare.sustained_rate(DType::fp8) == bare.sustained_rate(DType::bf16));
  CHECK_FALSE(
      GemmModel(catalogued_gpu("a100-sxm4-80gb"), published_profile()).supports(DType::fp8));
  CHECK(GemmModel(catalogued_gpu("h100-sxm5-80gb"), published_profile()).supports(DType::fp8));
}

TEST_CASE("no product is faster than the datasheet") {
  for (const std::string& id : some_gpus) {
    const Gpu& gpu = catalogued_gpu(id);
    const GemmModel model(gpu, published_profile());
    for (const DTypeRow& d : dtype_rows) {
      if (!model.supports(d.dtype)) continue;
      for (const std::int64_t n : {256, 4096, 16384}) {
        const double flops = 2.0 * 8192 * 8192 * static_cast<double>(n);
        INFO(id << ' ' << d.name << ' ' << n);
        CHECK(model.time({8192, n, 8192, 1, d.dtype}).value * gpu.rate(d.dtype)->value >= flops);
      }
    }
  }
}

TEST_CASE("a larger product never takes less time") {
  const std::vector<std::int64_t> sizes{1,    16,   64,   100,   128,   129,   256,  384,
                                        511,  512,  1000, 1024,  1536,  2048,  3000, 4096,
                                        5120, 8192, 8200, 11008, 16384, 50304, 65536};
  for (const std::string& id : some_gpus) {
    const GemmModel model(catalogued_gpu(id), published_profile());
    for (const std::int64_t other : {128, 1024, 4096})
      for (std::size_t i = 1; i < sizes.size(); ++i) {
        // n and k stay on multiples of 16 elements: alignment may make a longer row faster.
        const std::int64_t a = sizes[i - 1], b = sizes[i];
        const std::int64_t ra = (a + 15) / 16 * 16, rb = (b + 15) / 16 * 16;
        INFO(id << ' ' << a << " to " << b << " beside " << other);
        CHECK(model.time({a, other, other}) <= model.time({b, other, other}));
        CHECK(model.time({other, ra, other}) <= model.time({other, rb, other}));
        CHECK(model.time({other, other, ra}) <= model.time({other, other, rb}));
        CHECK(model.time({128, 128, other, a}) <= model.time({128, 128, other, b}));
      }
  }
}

TEST_CASE("more bandwidth or a higher rate is never slower") {
  for (const std::string& id : some_gpus) {
    Gpu wide = catalogued_gpu(id), quick = wide;
    wide.memory_bandwidth = 2.0 * wide.memory_bandwidth;
    for (auto& rate : quick.dense_rate)
      if (rate) rate = 1.5 * *rate;
    quick.efficiency.gemm_peak_fraction = wide.efficiency.gemm_peak_fraction;
    Profile profile = published_profile();
    profile.matmuls.clear();  // they are rates, not fractions: a quicker chip would reach less
    for (const GemmShape& s : {GemmShape{4096, 4096, 4096}, GemmShape{512, 1024, 128},
                               GemmShape{16, 8192, 8192}, GemmShape{2048, 1280, 8192}}) {
      const double now = seconds_of(catalogued_gpu(id), profile, s);
      INFO(id << ' ' << s.m << ' ' << s.n << ' ' << s.k);
      CHECK(seconds_of(wide, profile, s) <= now);
      CHECK(seconds_of(quick, profile, s) <= now);
    }
  }
}

TEST_CASE("chips of one family differ by power or by what was measured on them") {
  const auto tflops = [](const std::string& id) {
    const double flops = 2.0 * 8192 * 8192 * 8192;
    return flops / 1e12 / seconds_of(catalogued_gpu(id), published_profile(), {8192, 8192, 8192});
  };
  // The 500 W part: (500 / 132 / 5.303)^0.56 = 0.828 of the 700 W part's 0.743 x 989.4.
  CHECK(tflops("h100-sxm5-80gb") == Approx(0.743 * 989.4).epsilon(0.01));
  CHECK(tflops("h100-sxm5-96gb-hbm2e") == Approx(0.828 * 0.743 * 989.4).epsilon(0.01));
  // L4: measured best 70.9 of 121, where its family's reference has 0.743 best, 0.559 sustained.
  CHECK(tflops("l4") == Approx(70.9 * 0.559 / 0.743).epsilon(0.01));
  // A10: 56 measured, sustained.
  CHECK(tflops("a10") == Approx(56).epsilon(0.01));
  // GeForce with half the matrix rate: within 5 % of the datasheet's 71.
  CHECK(tflops("rtx-3090") == Approx(71).epsilon(0.05));
}

TEST_CASE("nothing to multiply takes no time") {
  CHECK(GemmModel(bare_gpu(), bare_profile()).time({0, 128, 128}) == Seconds(0));
}
