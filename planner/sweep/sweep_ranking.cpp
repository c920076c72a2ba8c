#include "planner/sweep/sweep_ranking.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace shardwise {
namespace {

constexpr std::array<SweepMeasure, 9> measures{{
    {"tokens", "tokens_per_s", "tokens/s", true},
    {"tokens-per-gpu", "tokens_per_s_per_gpu", "tokens/s per GPU", true},
    {"time", "step_time_s", "seconds per step", false},
    {"dollars", "usd_per_million_tokens", "$ per million tokens", false},
    {"energy", "kwh_per_million_tokens", "kWh per million tokens", false},
    {"headroom", "margin_gib", "GiB free", true},
    {"mfu", "mfu", "MFU", true},
    {"run-time", "run_s", "seconds of the whole run", false},
    {"run-dollars", "run_usd", "$ for the whole run", false},
}};

SweepGroup& group_of(std::vector<SweepGroup>& groups, const SweepRow& row) {
  SweepGroup wanted;
  wanted.model = text_in(row, "model").value_or("");
  wanted.method = text_in(row, "method").value_or("");
  wanted.sequence = static_cast<std::int64_t>(number_in(row, "sequence").value_or(0));
  const auto known = std::find_if(groups.begin(), groups.end(), [&](const SweepGroup& g) {
    return g.model == wanted.model && g.method == wanted.method && g.sequence == wanted.sequence;
  });
  return known != groups.end() ? *known : groups.emplace_back(std::move(wanted));
}

// Largest first; what is absent last.
void sort_by(std::vector<std::size_t>& at, const std::vector<SweepRow>& rows,
             std::string_view column, bool more_is_better) {
  const double sign = more_is_better ? 1 : -1;
  const auto merit = [&](std::size_t i) {
    const auto value = number_in(rows[i], column);
    return value ? sign * *value : -std::numeric_limits<double>::infinity();
  };
  std::stable_sort(at.begin(), at.end(),
                   [&](std::size_t a, std::size_t b) { return merit(a) > merit(b); });
}

}  // namespace

std::span<const SweepMeasure> sweep_measures() { return measures; }

const SweepMeasure* sweep_measure(std::string_view name) {
  const auto* row = std::find_if(measures.begin(), measures.end(),
                                 [&](const SweepMeasure& m) { return m.name == name; });
  return row == measures.end() ? nullptr : row;
}

SweepRanking rank_sweep(const std::vector<SweepRow>& rows, const SweepMeasure& by) {
  SweepRanking ranking;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string verdict = text_in(rows[i], "verdict").value_or("");
    ++ranking.counts[verdict];
    if (verdict == sweep_refused || verdict == sweep_failed) {
      ranking.refused[text_in(rows[i], "problem").value_or("")].push_back(i);
      continue;
    }
    SweepGroup& group = group_of(ranking.groups, rows[i]);
    if (verdict == verdict_name(Verdict::does_not_fit))
      group.do_not_fit.push_back(i);
    else
      (number_in(rows[i], by.column) ? group.ranked : group.unmeasured).push_back(i);
  }
  for (SweepGroup& group : ranking.groups) {
    sort_by(group.ranked, rows, by.column, by.more_is_better);
    sort_by(group.do_not_fit, rows, "margin_gib", true);
  }
  return ranking;
}

}  // namespace shardwise
