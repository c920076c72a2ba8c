// A run that several pages tell, or two readers read, is one record: else it is scored twice.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "catalog/run_record.hpp"

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

constexpr std::size_t memory_figure = 4;  // place in Figures; the others are of time

// As published: step [s], samples/s, tokens/s, tokens/s per GPU, peak memory [GiB]; 0: not stated.
using Figures = std::array<double, 5>;

Figures figures_of(const RunRecord& r) {
  const RunMeasured& m = r.measured;
  return {m.step_time ? m.step_time->value : 0, m.samples_per_s.value_or(0),
          m.tokens_per_s.value_or(0), m.tokens_per_s_per_gpu.value_or(0),
          m.peak_mem_gib.value_or(0)};
}

// Without the zeros at either end: 3 of 0.0234 and of 23,400.
int significant_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5e", value);
  std::string digits(text.data());
  digits.resize(digits.find('e'));
  while (digits.back() == '0' || digits.back() == '.') digits.pop_back();
  return static_cast<int>(digits.size()) - (digits.size() > 1 ? 1 : 0);
}

// Two readers may have taken the GB of a page for 10^9 and for 2^30 bytes: 1.0737 apart.
bool same_figure(std::size_t figure, double a, double b) {
  const double larger = std::max(a, b) / std::min(a, b);
  return larger < 1 + 2e-5 ||
         (figure == memory_figure && std::abs(larger / 1.073741824 - 1) < 1e-4);
}

template <class T>
bool may_agree(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

bool same_address(const RunSource& a, const RunSource& b) {
  return (!a.url.empty() && a.url == b.url) ||
         (!a.file.empty() && a.file == b.file && a.repository == b.repository);
}

// Nothing that both state tells them apart, every figure that both state is the same, and that is
// no chance: two figures, or one of four digits; of one page, a figure of time.
bool one_run(const RunRecord& a, const RunRecord& b) {
  if (a.hardware.gpus != b.hardware.gpus || a.training.method != b.training.method) return false;
  if (!may_agree(a.training.sequence, b.training.sequence) ||
      !may_agree(a.training.micro_batch, b.training.micro_batch) ||
      !may_agree(a.model.layers, b.model.layers) || !may_agree(a.model.hidden, b.model.hidden)) {
    return false;
  }
  const Figures of_a = figures_of(a);
  const Figures of_b = figures_of(b);
  int shared = 0;
  int digits = 0;
  bool timed = false;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i] == 0 || of_b[i] == 0) continue;
    if (!same_figure(i, of_a[i], of_b[i])) return false;
    ++shared;
    digits = std::max(digits, significant_digits(of_a[i]));
    timed = timed || i != memory_figure;
  }
  const auto step_of_a = measured_step(a);  // one may tell a rate and the other the step
  const auto step_of_b = measured_step(b);
  if (step_of_a && step_of_b && std::abs(*step_of_a / *step_of_b - 1) > 2e-3) return false;
  return shared > 1 || digits > 3 || (timed && same_address(a.read_in, b.read_in));
}

// Pairs "id = id" of different files. Only what shares a figure to five digits is compared.
std::vector<std::string> counted_twice(const std::vector<RunRecord>& records) {
  std::map<std::tuple<int, std::size_t, std::string>, std::vector<const RunRecord*>> alike;
  for (const RunRecord& r : records) {
    const Figures figures = figures_of(r);
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (figures[i] == 0 || !r.hardware.gpus || r.microbenchmark) continue;
      std::array<char, 32> rounded{};
      std::snprintf(rounded.data(), rounded.size(), "%.5g", figures[i]);
      alike[{*r.hardware.gpus, i, rounded.data()}].push_back(&r);
    }
  }
  std::vector<std::string> pairs;
  for (const auto& [key, group] : alike) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      for (std::size_t j = i + 1; j < group.size(); ++j) {
        if (group[i]->source == group[j]->source || !one_run(*group[i], *group[j])) continue;
        pairs.push_back(group[i]->id + " = " + group[j]->id);
      }
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

RunRecord told_by(const std::string& source, double step, double gib) {
  RunRecord r;
  r.id = r.source = source;
  r.hardware.gpus = 8;
  r.training.method = "full";
  r.training.sequence = 4096;
  if (step > 0) r.measured.step_time = Seconds(step);
  if (gib > 0) r.measured.peak_mem_gib = gib;
  return r;
}

std::size_t pairs_of(const RunRecord& a, const RunRecord& b) {
  return counted_twice({a, b}).size();
}

}  // namespace

TEST_CASE("No run of the catalog is counted twice") {
  const auto runs = load_all_runs(std::filesystem::path(source_dir()) / "catalog");
  REQUIRE(runs);
  for (const std::string& pair : counted_twice(runs->records)) {
    INFO(pair);
    CHECK(false);
  }
}

TEST_CASE("Two records are one run where their figures are no chance") {
  const RunRecord a = told_by("a", 1.5, 20.25);
  CHECK(pairs_of(a, told_by("b", 1.5, 20.25)) == 1);
  CHECK(pairs_of(a, told_by("a", 1.5, 20.25)) == 0);  // one file: rows of one table
  CHECK(pairs_of(a, told_by("b", 1.6, 20.25)) == 0);
  CHECK(pairs_of(a, told_by("b", 1.5, 20.3)) == 0);
  CHECK(pairs_of(a, told_by("b", 1.5, 18.859)) == 1);  // 20.25 GB of 10^9 bytes are 18.859 GiB
  CHECK(pairs_of(a, told_by("b", 0, 20.25)) == 1);     // four digits
  CHECK(pairs_of(a, told_by("b", 1.5, 0)) == 0);       // two
  RunRecord faster = told_by("b", 0, 20.25);
  faster.training.global_batch = 8;
  faster.measured.samples_per_s = 8;  // a step of 1 s
  CHECK(pairs_of(a, faster) == 0);
  RunRecord longer = told_by("b", 1.5, 20.25);
  longer.training.sequence = 8192;
  CHECK(pairs_of(a, longer) == 0);
  longer.training.sequence.reset();
  CHECK(pairs_of(a, longer) == 1);
}

TEST_CASE("On one page a figure of time tells that two records are one run") {
  RunRecord a = told_by("a", 9.04, 0);
  RunRecord b = told_by("b", 9.04, 64);
  CHECK(pairs_of(a, b) == 0);
  a.read_in.repository = b.read_in.repository = "owner/name";
  a.read_in.file = b.read_in.file = "README.md";
  CHECK(pairs_of(a, b) == 1);
  a.measured.step_time.reset();
  a.measured.peak_mem_gib = 64;
  b.measured.step_time.reset();
  CHECK(pairs_of(a, b) == 0);  // two rows of a table may round to one memory
}

}  // namespace shardwise
