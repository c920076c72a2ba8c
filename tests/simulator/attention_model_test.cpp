#include "simulator/costs/attention_model.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/simulator/bare_machine.hpp"
#include "tests/simulator/kernel_points.hpp"

using namespace shardwise;

namespace {

AttentionWork work(std::int64_t batch, int heads, std::int64_t sequence, bool causal = false) {
  AttentionWork w;
  w.batch = batch;
  w.heads = w.kv_heads = heads;
  w.queries = w.keys = sequence;
  w.causal = causal;
  return w;
}

double bare_seconds(const AttentionWork& w) {
  return AttentionModel(bare_gpu(), bare_profile()).time(w).value;
}

}  // namespace

TEST_CASE("pairs that a head sees") {
  CHECK(visible_pairs(1024, 1024, false) == 1024.0 * 1024);
  CHECK(visible_pairs(1024, 1024, true) == 1024.0 * 1024 / 2);
  // Context parallelism over 4: a quarter of the queries, all keys, a quarter of the pairs.
  CHECK(visible_pairs(256, 1024, true) == 1024.0 * 1024 / 8);
  // A window of 256: all but the first 256 queries see 256 keys. 256 x 1024 - 256 x 256 / 2.
  CHECK(visible_pairs(1024, 256, true) == 256.0 * 1024 - 256.0 * 128);
  // Four chunks of 256, each the half of its square; of 1,100 tokens 76 are a chunk of their own.
  CHECK(visible_pairs(1024, 256, true, true) == 4 * 256.0 * 256 / 2);
  CHECK(visible_pairs(1100, 256, true, true) == 4 * 256.0 * 256 / 2 + 76.0 * 76 / 2);
  CHECK(visible_pairs(200, 256, true, true) == visible_pairs(200, 256, true));
  // A quarter of the window's is what each of four ranks computes.
  AttentionWork share = work(1, 1, 256, true);
  share.context = 4;
  CHECK(visible_pairs(share) == (256.0 * 1024 - 256.0 * 128) / 4);
  share.keys = 1024;
  CHECK(visible_pairs(share) == visible_pairs(256, 1024, true));
}

// 200 heads: 256 x 1024 - 256 x 128 pairs, and half of the diagonal's tiles, 64 of each of 1024
// queries: 294,912, of 4 x 128 FLOPs. Of four ranks each takes a quarter as long.
TEST_CASE("ranks that share a window's queries take equal shares of its time", "[attention]") {
  AttentionWork w = work(8, 25, 1024, true);
  w.keys = 256;
  const double whole = bare_seconds(w);
  CHECK(whole == Approx(200 * 294'912.0 * 4 * 128 / 100e12));
  w.queries = 256;
  w.context = 4;
  CHECK(bare_seconds(w) == Approx(whole / 4));
}

TEST_CASE("many heads, no ramp: FLOPs over rate") {
  // 8 sequences x 25 heads x 8 blocks of 128 = 1600 blocks, 16 per multiprocessor.
  // 4 x 8 x 25 x 1024^2 x 128 = 107.4 GFLOP at 100 TFLOP/s = 1.074 ms.
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 128;
  AttentionWork w = work(8, 25, 1024);
  CHECK(bare_seconds(w) == Approx(flops / 100e12));
  w.backward = true;
  CHECK(bare_seconds(w) == Approx(2.5 * flops / 100e12));
}

// cuDNN's kernel of 8-bit operands at a half of 200 TFLOP/s takes what 16 bits take at all of 100;
// backward it computes a window's whole square. A chip without 8 bits, and a family without that
// kernel, run the one of 16.
TEST_CASE("8-bit operands: rates of the 8-bit peak, whole squares backward", "[attention]") {
  Gpu gpu = bare_gpu();
  Profile profile = bare_profile();
  AttentionCalibration half = profile.families.front().attention.front();
  half.kernel = FusedAttention::cudnn;
  AttentionCalibration narrow = half;
  narrow.kernel = FusedAttention::cudnn_mxfp8;
  for (AttentionRow& r : narrow.rows) {
    r.forward.fraction = r.backward.fraction = 0.5;
    r.backward.whole_windows = true;
  }
  profile.families.front().attention.push_back(half);
  AttentionWork w = work(8, 25, 1024, true);
  w.keys = 256;
  w.kernel = AttentionKernel::cudnn;
  const auto seconds = [&](bool narrow_operands, bool backward) {
    w.narrow_operands = narrow_operands;
    w.backward = backward;
    return AttentionModel(gpu, profile).time(w).value;
  };
  gpu.dense_rate[static_cast<std::size_t>(DType::mxfp8)] = FlopsPerSecond(200e12);
  CHECK(seconds(true, true) == seconds(false, true));
  profile.families.front().attention.push_back(narrow);
  // 294,912 pairs of each head in the window, as above, and 1024 x 1024 backward.
  CHECK(seconds(true, false) == Approx(200 * 294'912.0 * 4 * 128 / 100e12));
  CHECK(seconds(false, true) == Approx(200 * 294'912.0 * 10 * 128 / 100e12));
  CHECK(seconds(true, true) == Approx(200 * 1024.0 * 1024 * 10 * 128 / 100e12));
  gpu.dense_rate[static_cast<std::size_t>(DType::mxfp8)].reset();
  CHECK(seconds(true, true) == seconds(false, true));
}

// 107.4 GFLOP at 100 TFLOP/s of today; releases before 9.18 reach a half, before 9.10 a quarter.
TEST_CASE("cuDNN's rates are those of the oldest row that has its release", "[attention]") {
  Profile profile = bare_profile();
  auto& rows = profile.families.front().attention;
  AttentionCalibration cudnn = rows.front();
  cudnn.kernel = FusedAttention::cudnn;
  rows.push_back(cudnn);
  for (const auto& [before, fraction] : {std::pair{18, 0.5}, std::pair{10, 0.25}}) {
    cudnn.before = LibraryRelease{9, before};
    cudnn.rows.back().forward.fraction = fraction;
    rows.push_back(cudnn);
  }
  AttentionWork w = work(8, 25, 1024);
  w.kernel = AttentionKernel::cudnn;
  const auto times_of_today = [&](std::optional<LibraryRelease> release) {
    AttentionChoice choice;
    choice.cudnn = release;
    return AttentionModel(bare_gpu(), profile, choice).time(w) /
           AttentionModel(bare_gpu(), profile).time(w);
  };
  CHECK(AttentionModel(bare_gpu(), profile).time(w).value ==
        Approx(4.0 * 8 * 25 * 1024 * 1024 * 128 / 100e12));
  CHECK(times_of_today(LibraryRelease{9, 18}) == Approx(1));
  CHECK(times_of_today(LibraryRelease{10, 0}) == Approx(1));
  CHECK(times_of_today(LibraryRelease{9, 13}) == Approx(2));
  CHECK(times_of_today(LibraryRelease{9, 10}) == Approx(2));
  CHECK(times_of_today(LibraryRelease{8, 9}) == Approx(4));
}

// 2.5 times 107.4 GFLOP at 100 TFLOP/s, and at 0.8 of it where sums are taken in one order; forward
// there is one order anyway.
TEST_CASE("a deterministic backward pass has a rate of its own", "[attention]") {
  Profile profile = bare_profile();
  profile.families.front().attention.front().rows.back().backward.deterministic_rate = 0.8;
  const AttentionModel model(bare_gpu(), profile);
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 128;
  AttentionWork w = work(8, 25, 1024);
  w.deterministic = true;
  CHECK(model.time(w).value == Approx(flops / 100e12));
  w.backward = true;
  CHECK(model.time(w).value == Approx(2.5 * flops / 80e12));
  w.deterministic = false;
  CHECK(model.time(w).value == Approx(2.5 * flops / 100e12));
}

TEST_CASE("fp32 operands: three products in TF32, on the CUDA cores before Ampere") {
  // The same 107.4 GFLOP at 50 TFLOP/s of fp32, and at a third of 240 TFLOP/s of TF32.
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 128;
  Gpu gpu = bare_gpu();
  Profile profile = bare_profile();
  AttentionWork w = work(8, 25, 1024);
  w.fp32_operands = true;
  gpu.compute_capability = 7.5;
  CHECK(AttentionModel(gpu, profile).time(w).value == Approx(flops / 50e12));
  gpu.compute_capability = 8;
  gpu.dense_rate[static_cast<std::size_t>(DType::tf32)] = FlopsPerSecond(240e12);
  GemmCalibration& gemm = profile.families.front().gemm;
  gemm.issue_fraction[static_cast<std::size_t>(DType::tf32)] = 1;
  gemm.sustained_fraction[static_cast<std::size_t>(DType::tf32)] = 1;
  CHECK(AttentionModel(gpu, profile).time(w).value == Approx(flops / 80e12));
}

TEST_CASE("fp32 operands: the rate that the profile has for them, with 16-bit operands its other") {
  // 107.4 GFLOP at 0.12 of 100 TFLOP/s forward; backward 2.5 times as many at 0.06 of them. The
  // kernel's own share is a quarter.
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 128;
  Profile profile = bare_profile();
  for (AttentionCalibration& c : profile.families.front().attention)
    for (AttentionRow& row : c.rows) {
      row.forward.fp32_fraction = 0.12;
      row.backward.fp32_fraction = 0.06;
    }
  const AttentionModel model(bare_gpu(), profile);
  AttentionWork w = work(8, 25, 1024);
  w.kernel = AttentionKernel::memory_efficient;
  CHECK(model.time(w).value == Approx(flops / 25e12));
  w.fp32_operands = true;
  CHECK(model.time(w).value == Approx(flops / 12e12));
  w.backward = true;
  CHECK(model.time(w).value == Approx(2.5 * flops / 6e12));
}

TEST_CASE("a mask takes as long as so many columns of a head, whatever its operands") {
  // 107.4 GFLOP at 25 TFLOP/s, 32 columns beside 128: a quarter more. With fp32 operands at 12
  // TFLOP/s the mask adds the same 1.07 ms.
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 128;
  Profile profile = bare_profile();
  for (AttentionCalibration& c : profile.families.front().attention)
    for (AttentionRow& row : c.rows) {
      row.forward.mask_columns = 32;
      row.forward.fp32_fraction = 0.12;
    }
  const AttentionModel model(bare_gpu(), profile);
  AttentionWork w = work(8, 25, 1024);
  w.kernel = AttentionKernel::memory_efficient;
  CHECK(model.time(w).value == Approx(flops / 25e12));
  w.masked = true;
  CHECK(model.time(w).value == Approx(1.25 * flops / 25e12));
  w.fp32_operands = true;
  CHECK(model.time(w).value == Approx(flops / 12e12 + 0.25 * flops / 25e12));
}

// 41 heads are split into 200 / 41 = 4 parts each, 164 blocks, of which a multiprocessor of 100 has
// two at the most: 2 x 100 / 164 of the time that they would take if all had as many. 25 heads are
// 200 blocks of two rounds, 150 stay whole and take two as well; one of 1,024 keys is 16 tiles of
// 64. All rates are a quarter of 100 TFLOP/s.
TEST_CASE("heads whose keys are split no further than into 200 blocks come in whole rounds") {
  Profile profile = bare_profile();
  profile.families.front().attention[1].rows[1].backward.split_blocks = 200;
  profile.families.front().attention[1].rows[1].backward.fp32_fraction = 0.25;
  const AttentionModel model(bare_gpu(), profile);
  const auto rounds = [&](int heads, AttentionWork w) {
    w.kernel = AttentionKernel::memory_efficient;
    w.backward = true;
    const double flops = 10.0 * heads * 1024 * 1024 * w.head_dim;
    return model.time(w).value * 25e12 / flops;
  };
  CHECK(rounds(41, work(1, 41, 1024)) == Approx(200.0 / 164));
  CHECK(rounds(25, work(1, 25, 1024)) == Approx(1));
  CHECK(rounds(150, work(2, 75, 1024)) == Approx(200.0 / 150));
  CHECK(rounds(1, work(1, 1, 1024)) == Approx(100.0 / 16));
  // 96 columns take the kernel of 128; those of 64 have one of their own, and fp32 needs no room.
  AttentionWork between = work(1, 41, 1024), narrow = between, single = between;
  between.head_dim = 96;
  CHECK(rounds(41, between) == Approx(200.0 / 164));
  narrow.head_dim = 64;
  CHECK(rounds(41, narrow) == Approx(1));
  single.fp32_operands = true;
  CHECK(rounds(41, single) == Approx(1));
}

TEST_CASE("a causal block computes the whole of its diagonal tile") {
  // Mean keys of a query: 512, and half a tile of 64 masked ones: 576 / 512 of half the FLOPs.
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 128 / 2;
  CHECK(bare_seconds(work(8, 25, 1024, true)) == Approx(flops * 576 / 512 / 100e12));
}

TEST_CASE("few heads leave multiprocessors idle") {
  // One head of 1024: 8 blocks on 100 multiprocessors; each takes 4 x 128 x 1024 x 128 FLOPs at
  // 1 TFLOP/s = 67.1 us, and twelve heads (96 blocks) take no longer.
  const double block = 4.0 * 128 * 1024 * 128 / 1e12;
  CHECK(bare_seconds(work(1, 1, 1024)) == Approx(block));
  CHECK(bare_seconds(work(1, 12, 1024)) == Approx(block));
  CHECK(bare_seconds(work(1, 25, 1024)) == Approx(2 * block));
}

TEST_CASE("head dimensions are padded to 32 and rates interpolated between rows") {
  // 96 lies half way between 64 (half the rate) and 128 (full rate): three quarters.
  AttentionWork w = work(8, 25, 1024);
  w.head_dim = 96;
  const double flops = 4.0 * 8 * 25 * 1024 * 1024 * 96;
  CHECK(bare_seconds(w) == Approx(flops / 75e12));
  // 80 is computed as 96; below the first row the time is that row's.
  AttentionWork padded = w;
  padded.head_dim = 80;
  CHECK(bare_seconds(padded) == Approx(bare_seconds(w)));
  AttentionWork small = w, first = w;
  small.head_dim = 32;
  first.head_dim = 64;
  CHECK(bare_seconds(small) == Approx(bare_seconds(first)));
}

TEST_CASE("eager attention is its products and the traffic of its scores") {
  Profile profile = bare_profile();
  profile.eager_attention.half.forward_softmax = {{6, 4, 6}, {1, 1, 2}};
  profile.eager_attention.half.forward_elementwise = {{14, 0, 0}, {4, 0, 0}};
  const AttentionChoice eager{std::nullopt, KernelStyle::eager};
  AttentionWork w = work(4, 25, 1024);
  w.kernel = AttentionKernel::eager;
  const GemmModel gemm(bare_gpu(), profile);
  // 100 products; of 104.9 M scores 6 B each move at the reduction rate of half a TB/s (1.26 ms),
  // 14 B at a streaming TB/s (1.47 ms).
  const double products =
      (gemm.time({1024, 1024, 128, 100}) + gemm.time({1024, 128, 1024, 100})).value;
  const double scores = 100.0 * 1024 * 1024;
  CHECK(AttentionModel(bare_gpu(), profile, eager).time(w).value ==
        Approx(products + 6 * scores / 0.5e12 + 14 * scores / 1e12));
}

// fp32 scores take their own row: 8 B each at the reduction rate of half a TB/s, 16 at a TB/s.
TEST_CASE("stored scores of 32 bits move what their own kernels move") {
  Profile profile = bare_profile();
  profile.eager_attention.half.forward_softmax = {{6, 4, 6}, {1, 1, 2}};
  profile.eager_attention.fp32.forward_softmax = {{8, 8, 12}, {1, 1, 2}};
  profile.eager_attention.fp32.forward_elementwise = {{16, 0, 0}, {2, 0, 0}};
  AttentionWork w = work(4, 25, 1024);
  w.kernel = AttentionKernel::eager;
  w.fp32_operands = true;
  const GemmModel gemm(bare_gpu(), profile);
  const double products = (gemm.time({1024, 1024, 128, 100, DType::fp32}) +
                           gemm.time({1024, 128, 1024, 100, DType::fp32}))
                              .value;
  const double scores = 100.0 * 1024 * 1024;
  CHECK(AttentionModel(bare_gpu(), profile, {std::nullopt, KernelStyle::eager}).time(w).value ==
        Approx(products + 8 * scores / 0.5e12 + 16 * scores / 1e12));
}

// The bare GPU has no fp16 and computes it at half of its fp32, 25 TFLOP/s for the 100 of bf16. 100
// products of 1,024 x 1,024 x 128 twice are 53.7 GFLOP.
TEST_CASE("eager attention runs in the format of its operands, also where that is emulated") {
  Profile profile = bare_profile();
  const AttentionChoice fp16{std::nullopt, KernelStyle::eager, {}, DType::fp16};
  AttentionWork w = work(4, 25, 1024);
  w.kernel = AttentionKernel::eager;
  w.products_alone = true;
  CHECK(AttentionModel(bare_gpu(), profile, fp16).time(w).value ==
        Approx(2 * 2.0 * 100 * 1024 * 1024 * 128 / 25e12));
}

TEST_CASE("which kernel a GPU runs") {
  const auto runs = [](const std::string& id, std::optional<FusedAttention> wanted) {
    return AttentionModel(catalogued_gpu(id), published_profile(), {wanted, KernelStyle::fused})
        .flash_kernel();
  };
  CHECK(runs("h100-sxm5-80gb", std::nullopt) == FusedAttention::flash2);
  CHECK(runs("h100-sxm5-80gb", FusedAttention::cudnn) == FusedAttention::cudnn);
  CHECK(runs("h100-sxm5-80gb", FusedAttention::flash3) == FusedAttention::flash3);
  CHECK(runs("a100-sxm4-80gb", FusedAttention::flash3) == FusedAttention::flash2);
  CHECK(runs("v100-sxm2-32gb", FusedAttention::flash2) == FusedAttention::memory_efficient);
  CHECK(runs("b200", std::nullopt) == FusedAttention::cudnn);
}

TEST_CASE("the flash-attn package runs its own kernel where PyTorch has one made for the card") {
  const auto seconds = [](const char* id, AttentionKernel kernel) {
    AttentionWork w = work(1, 32, 65536, false);  // head width 128
    w.kernel = kernel;
    return AttentionModel(catalogued_gpu(id), published_profile()).time(w).value;
  };
  // Long sequences go at 0.719 of the rate by cuDNN and at 0.19 by FlashAttention-2: 3.78 times as
  // long, less what the ramps (610 and 150 beside 65,536 keys) take.
  CHECK(seconds("b200", AttentionKernel::flash2) / seconds("b200", AttentionKernel::flash) ==
        Approx(0.719 / 0.19 * (65536 + 150) / (65536 + 610)).epsilon(0.001));
  CHECK(seconds("a100-sxm4-80gb", AttentionKernel::flash2) ==
        seconds("a100-sxm4-80gb", AttentionKernel::flash));
}

TEST_CASE("longer, wider or more is never faster, and backward costs more") {
  for (const char* id : {"v100-sxm2-32gb", "rtx-3090", "a100-sxm4-80gb", "h100-sxm5-80gb", "l40s",
                         "rtx-4090", "b200", "mi300x", "gaudi-2"}) {
    const AttentionModel model(catalogued_gpu(id), published_profile());
    for (const AttentionKernel kernel : {AttentionKernel::flash, AttentionKernel::flash2,
                                         AttentionKernel::memory_efficient, AttentionKernel::eager})
      for (const bool causal : {false, true})
        for (const int heads : {1, 2, 4, 8, 16, 32})
          for (const std::int64_t sequence : {104, 128, 512, 1000, 2048, 4096, 16384}) {
            AttentionWork w = work(1, heads, sequence, causal);
            w.kernel = kernel;
            AttentionWork longer = w, wider = w, more = w, backward = w;
            longer.queries = longer.keys = sequence + 104;  // rows stay aligned
            wider.head_dim = 192;
            more.batch = 2;
            backward.backward = true;
            INFO(id << ' ' << heads << " heads of " << sequence);
            CHECK(model.time(w) <= model.time(longer));
            CHECK(model.time(w) <= model.time(wider));
            CHECK(model.time(w) <= model.time(more));
            CHECK(model.time(w) < model.time(backward));
          }
  }
}

TEST_CASE("storing scores is slower than not storing them") {
  for (const char* id : {"rtx-3090", "a100-sxm4-80gb", "h100-sxm5-80gb", "rtx-4090"}) {
    const AttentionModel model(catalogued_gpu(id), published_profile());
    AttentionWork flash = work(1, 32, 4096, true), eager = flash;
    eager.kernel = AttentionKernel::eager;
    INFO(id);
    CHECK(model.time(eager).value > 2 * model.time(flash).value);
  }
}
