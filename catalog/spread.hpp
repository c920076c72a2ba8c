// How far real runs lay from their forecast: the 80 % interval around every answer.
//
// A row holds for one kind of question and gives two quantiles of measured / forecast over the
// published runs of that kind: a tenth lay below `low`, a tenth above `high`. `shardwise validate
// --fit-spread` writes the file; nothing but the intervals reads it, so no forecast moves with it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/provenance.hpp"
#include "catalog/result.hpp"

namespace shardwise {

enum class Extent { one_gpu, one_node, several_nodes };
inline constexpr std::array<std::pair<std::string_view, Extent>, 3> extent_names{
    {{"one_gpu", Extent::one_gpu},
     {"one_node", Extent::one_node},
     {"several_nodes", Extent::several_nodes}}};

enum class Tuning { pretrain, full, adapters };
inline constexpr std::array<std::pair<std::string_view, Tuning>, 3> tuning_names{
    {{"pretrain", Tuning::pretrain}, {"full", Tuning::full}, {"adapters", Tuning::adapters}}};

// What tells one kind of question from another.
struct SpreadKey {
  Extent extent = Extent::one_gpu;
  bool tensor = false;  // tensor parallelism at all
  Tuning tuning = Tuning::pretrain;
  bool stages = false;      // a pipeline
  std::string framework{};  // Framework::family
  friend bool operator==(const SpreadKey&, const SpreadKey&) = default;
};

struct SpreadRow {
  std::optional<Extent> extent;  // absent: any
  std::optional<bool> tensor;
  std::optional<Tuning> tuning;
  std::optional<bool> stages;
  std::optional<std::string> framework;
  double low = 0.5, high = 2;  // measured / forecast at the 10th and the 90th of 100
  int runs = 0, sources = 0;   // that it rests on

  bool holds(const SpreadKey& key) const;
};

struct Spread {
  std::vector<SpreadRow> step_time, memory;  // the first row that holds counts
  Provenance provenance;
};

// The first row that holds; half to twice the forecast where none does.
SpreadRow spread_of(const std::vector<SpreadRow>& rows, const SpreadKey& key);

Result<Spread> load_spread(const std::string& path);

}  // namespace shardwise
