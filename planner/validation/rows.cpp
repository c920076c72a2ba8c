#include "planner/validation/rows.hpp"

#include <array>
#include <cmath>

#include "catalog/names.hpp"
#include "planner/figures.hpp"

namespace shardwise {
namespace {

RowKey word(std::string text) { return {0, std::move(text)}; }
RowKey number(int value) { return {static_cast<double>(value), grouped(value)}; }

// Classes that double: [2^k, 2^(k+1)) of what is counted.
RowKey doubling(std::int64_t value, std::int64_t smallest) {
  std::int64_t from = smallest;
  while (value >= 2 * from) from *= 2;
  const std::int64_t begin = value < smallest ? 0 : from;
  const std::int64_t end = value < smallest ? smallest : 2 * from;
  const std::string name =
      end - begin <= 1 ? grouped(begin) : grouped(begin) + " to " + grouped(end - 1);
  return {static_cast<double>(end), name};
}

struct SizeClass {
  double below;  // billions of parameters
  std::string_view name;
};
constexpr std::array<SizeClass, 8> size_classes{{
    {0.5, "below 0.5B"},
    {2, "0.5B to 2B"},
    {5, "2B to 5B"},
    {10, "5B to 10B"},
    {25, "10B to 25B"},
    {60, "25B to 60B"},
    {150, "60B to 150B"},
    {1e9, "150B and more"},
}};

RowKey size_class(std::int64_t parameters) {
  for (const SizeClass& c : size_classes)
    if (static_cast<double>(parameters) < c.below * 1e9) return {c.below, std::string(c.name)};
  return {size_classes.back().below, std::string(size_classes.back().name)};
}

struct ByRow {
  std::string_view name;
  ScoreBy by;
  RowKey (*key)(const ReplayedRun&);
};

constexpr std::array<ByRow, 15> by_rows{{
    {"source", ScoreBy::source, [](const ReplayedRun& r) { return word(r.run->source); }},
    {"framework", ScoreBy::framework, [](const ReplayedRun& r) { return word(r.framework); }},
    {"gpu", ScoreBy::gpu, [](const ReplayedRun& r) { return word(r.shape.gpu); }},
    {"method", ScoreBy::method, [](const ReplayedRun& r) { return word(r.run->training.method); }},
    {"recompute", ScoreBy::recompute,
     [](const ReplayedRun& r) { return word(r.run->training.recompute.value_or("not stated")); }},
    {"precision", ScoreBy::precision,
     [](const ReplayedRun& r) { return word(std::string(name(r.shape.compute))); }},
    {"sequence", ScoreBy::sequence,
     [](const ReplayedRun& r) { return doubling(r.shape.sequence, 256); }},
    {"microbatch", ScoreBy::microbatch,
     [](const ReplayedRun& r) { return doubling(r.shape.microbatch, 1); }},
    {"tensor", ScoreBy::tensor, [](const ReplayedRun& r) { return number(r.shape.tensor); }},
    {"pipeline", ScoreBy::pipeline,
     [](const ReplayedRun& r) { return doubling(r.shape.pipeline, 1); }},
    {"data", ScoreBy::data, [](const ReplayedRun& r) { return doubling(r.shape.data, 1); }},
    {"expert", ScoreBy::expert, [](const ReplayedRun& r) { return number(r.shape.expert); }},
    {"nodes", ScoreBy::nodes, [](const ReplayedRun& r) { return doubling(r.shape.nodes, 1); }},
    {"size", ScoreBy::size, [](const ReplayedRun& r) { return size_class(r.shape.parameters); }},
    {"bound", ScoreBy::bound,
     [](const ReplayedRun& r) {
       return word(r.bound ? std::string(name(r.bound->kind)) : "no step time");
     }},
}};

}  // namespace

std::optional<ScoreBy> score_by_named(std::string_view name) {
  for (const ByRow& row : by_rows)
    if (row.name == name) return row.by;
  return std::nullopt;
}

std::vector<std::string_view> score_by_names() { return names_in(by_rows); }

RowKey row_key(ScoreBy by, const ReplayedRun& run) {
  return by_rows[static_cast<std::size_t>(by)].key(run);
}

}  // namespace shardwise
