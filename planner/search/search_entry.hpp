// SearchEntry: what waits in the queue of a plan search, and what is known of it so far.
//
// There are a hundred thousand of them, so an entry keeps what it cannot find again: its plan is
// that of its point.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/forecast/forecast.hpp"
#include "planner/search/layer_bounds.hpp"
#include "planner/search/plan_bounds.hpp"
#include "planner/search/plan_search.hpp"
#include "planner/search/plan_space.hpp"

namespace shardwise {

// How far an entry has been refined: plan_search.hpp.
enum class SearchStage : std::uint8_t {
  layers,
  recompute,
  streams,
  pipelines,
  variants,
  laid,
  plan,
  together,
  cut,
  half,
  complete
};

// The ways to lay one pipeline over its stages, by what each takes at the least.
struct VariantList {
  struct One {
    Seconds time;
    PipelineVariant variant;
  };
  std::vector<One> all;
  // What they share: of each kind of layer; of data ranks; of a GPU.
  std::vector<LayerState> states;
  DataTraffic traffic;
  Bytes communicators;
};

struct Refinement;  // refine_ahead.hpp

struct SearchEntry {
  double value = 0;
  Seconds time;  // bound, then forecast
  SearchStage stage = SearchStage::layers;
  std::uint32_t site = 0;
  PlanPoint point{};
  std::uint32_t next = 0;  // of the variants
  Bytes memory;            // bound, then forecast
  Seconds unlaid;          // the bound of time before streams and pipelines were looked at
  std::shared_ptr<const LayerBounds> layers;
  std::shared_ptr<const VariantList> variants;  // none until the first of them is wanted
  std::shared_ptr<const Forecast> timed, fitted;
  mutable std::shared_ptr<Refinement> ahead;  // where it is refined before its turn

  friend bool operator<(const SearchEntry& a, const SearchEntry& b) {
    if (a.value != b.value) return a.value < b.value;
    const auto key = [](const SearchEntry& e) {
      return std::make_tuple(e.time.value, e.stage == SearchStage::complete, e.site);
    };
    if (key(a) != key(b)) return key(a) < key(b);
    if (a.point != b.point) return before(a.point, b.point);
    return a.stage < b.stage;
  }
};

// What refining one entry has led to.
struct Refined {
  std::vector<SearchEntry> entries;
  SearchProof counts;
  // Of a plan whose step was played to its end: its value, and the same if it does not fit then.
  std::optional<double> known, mistaken;
  Bytes bound, fitted;  // of a plan's memory, where that was forecast
};

}  // namespace shardwise
