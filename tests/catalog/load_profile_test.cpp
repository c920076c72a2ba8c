#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "catalog/load.hpp"
#include "catalog/profile.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

const std::string profile_root = source_dir() + "/catalog";

std::string published_text() {
  std::ifstream in(profile_root + "/profiles/published.json");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The published profile with `from` replaced by `to` once, loaded from a folder of its own.
Result<Profile> altered(const std::string& from, const std::string& to) {
  std::string text = published_text();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const auto folder = std::filesystem::temp_directory_path() / "shardwise_profile_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "altered.json") << text;
  std::filesystem::copy_file(profile_root + "/profiles/nccl-2.30.json", folder / "nccl-2.30.json",
                             std::filesystem::copy_options::overwrite_existing);
  Result<Profile> result = load_profile((folder / "altered.json").string());
  std::filesystem::remove_all(folder);
  return result;
}

bool mentions(const Result<Profile>& result, const std::string& where) {
  if (result) return false;
  return std::any_of(result.error().begin(), result.error().end(),
                     [&](const Problem& p) { return p.where.find(where) != std::string::npos; });
}

}  // namespace

TEST_CASE("the published profile loads, with a row for every catalogued family") {
  const Result<Profile> profile = load_profile(profile_root + "/profiles/published.json");
  REQUIRE(profile);
  const Result<std::vector<Gpu>> gpus = load_gpus(profile_root);
  REQUIRE(gpus);
  for (const Gpu& g : *gpus) {
    INFO(g.id << " of " << g.family);
    CHECK(profile->row(g.family).family == g.family);
  }
  std::set<std::string> known, names;
  for (const Gpu& g : *gpus) known.insert(g.id);
  for (const MeasuredMatmul& m : profile->matmuls) {
    INFO(m.gpu);
    CHECK(known.count(m.gpu) == 1);
    CHECK(names.insert(m.gpu).second);
  }
  CHECK(profile->row("no such family").family == profile->families.front().family);
  CHECK_FALSE(profile->links.name.empty());
  CHECK(profile->host.step_operators > 0);
  // A step of every loop takes cycles, and nothing takes none.
  for (std::size_t i = 1; i < lane_loop_count; ++i) {
    INFO(lane_loop_names[i - 1]);
    CHECK(profile->lane_loops.cycles({static_cast<LaneLoop>(i), 2}) ==
          2 * profile->lane_loops.loops[i].per_step);
    CHECK(profile->lane_loops.loops[i].per_step > 0);
  }
  CHECK(profile->lane_loops.cycles({LaneLoop::none, 2}) == 0);
  // Three rows of four chunks: 3 x 30,000 and 12 x 99.
  CHECK(profile->lane_loops.cycles({LaneLoop::chunk_sum, 12, 3}) == 91'188);
}

TEST_CASE("what no family can do is a problem with its place") {
  CHECK(mentions(altered("\"wave_rounding\": 0.4", "\"wave_rounding\": 1.4"),
                 "/families/0/gemm/wave_rounding"));
  CHECK(mentions(altered("\"default_attention\": \"flash2\"", "\"default_attention\": \"flash9\""),
                 "/families/0/default_attention"));
  CHECK(mentions(altered("\"step_operators\": 40", "\"step_operators\": -40"),
                 "/host/step_operators"));
  CHECK(mentions(altered("\"row_sort\": {", "\"row_short\": {"), "lane_loops"));
  CHECK(mentions(altered("\"ramp_bytes\": 300", "\"ramp_bites\": 300"), "/families/0/gemm"));
  CHECK(mentions(altered("\"head_dim\": 64", "\"head_dim\": 128"), "/families/0/attention/0/rows"));
  CHECK(mentions(altered("\"trust\": \"published\"", "\"trust\": \"rumoured\""), "/trust"));
  CHECK(mentions(altered("\"families\"", "\"fammilies\""), "families"));
  // One format with a ceiling but no sustained rate.
  CHECK(mentions(altered("\"sustained_fraction\": {\"fp32\": 0.75, ", "\"sustained_fraction\": {"),
                 "/families/0/gemm/sustained_fraction"));
}

// Blackwell Ultra states cuDNN's attention alone and has all else from Blackwell: products, clocks,
// bytes and the other two kernels. cuDNN's are three: of today, before 9.18, and of 8 bits.
TEST_CASE("a family that is like another has its rows, but for what it states") {
  const Result<Profile> profile = load_profile(profile_root + "/profiles/published.json");
  REQUIRE(profile);
  const FamilyCalibration& of = profile->row("blackwell-dc");
  const FamilyCalibration& own = profile->row("blackwell-ultra");
  CHECK(own.gemm.best_fraction == of.gemm.best_fraction);
  CHECK(own.training_load.matmul == of.training_load.matmul);
  CHECK(own.memory.fraction == of.memory.fraction);
  CHECK(own.context.cuda_context == of.context.cuda_context);
  CHECK(own.default_attention == of.default_attention);
  REQUIRE(own.attention.size() == of.attention.size());
  for (std::size_t i = 0; i < of.attention.size(); ++i) {
    const AttentionCalibration &a = own.attention[i], &b = of.attention[i];
    INFO(name(a.kernel));
    CHECK(a.kernel == b.kernel);
    CHECK(a.before == b.before);
    const bool cudnn = a.kernel == FusedAttention::cudnn || a.kernel == FusedAttention::cudnn_mxfp8;
    const bool same = a.rows.front().forward.fraction == b.rows.front().forward.fraction;
    CHECK(same == !cudnn);
  }
  CHECK(
      mentions(altered("\"like\": \"blackwell-dc\"", "\"like\": \"blackwell-geforce\""), "/like"));
  for (const char* text : {"9", "9.", "9.18.1", ".18", "new"})
    CHECK(mentions(altered("\"before\": \"9.18\"", std::string("\"before\": \"") + text + "\""),
                   "before"));
}

TEST_CASE("a missing file and a missing link calibration are problems of a file") {
  const Result<Profile> none = load_profile(profile_root + "/profiles/none.json");
  REQUIRE_FALSE(none);
  CHECK(none.error().front().kind == ProblemKind::file);
  CHECK_FALSE(altered("nccl-2.30.json", "nccl-0.json"));
}
