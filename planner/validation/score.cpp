#include "planner/validation/score.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/validation/median.hpp"
#include "planner/validation/plan_groups.hpp"

namespace shardwise {
namespace {

// The value at index floor(share n).
double quantile_of_sorted(std::vector<double> sorted, double share) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<double> absolute(std::vector<double> values) {
  for (double& v : values) v = std::abs(v);
  std::sort(values.begin(), values.end());
  return values;
}

struct Errors {
  std::vector<double> time, memory;
};

// Everything that is collected in one pass over the runs.
struct Tally {
  std::map<RowKey, Errors> rows;
  std::map<std::string, Errors> sources;
  int time_covered = 0, memory_covered = 0;
};

void add_time(const ReplayedRun& r, const RowKey& row, Tally& tally) {
  const auto measured = measured_step(*r.run);
  if (!measured || !r.step_time) return;
  const double m = measured->value, p = r.step_time->expected.value;
  tally.rows[row].time.push_back(p / m - 1);
  tally.sources[r.run->source].time.push_back(p / m - 1);
  tally.time_covered += r.step_time->low.value <= m && m <= r.step_time->high.value;
}

void add_memory(const ReplayedRun& r, const RowKey& row, Tally& tally) {
  const auto measured = measured_memory_gib(*r.run);
  if (!measured || !r.memory_gib) return;
  tally.rows[row].memory.push_back(r.memory_gib->expected / *measured - 1);
  tally.sources[r.run->source].memory.push_back(r.memory_gib->expected / *measured - 1);
  tally.memory_covered += r.memory_gib->low <= *measured && *measured <= r.memory_gib->high;
}

void add_outcome(const ReplayedRun& r, OutcomeScore& out) {
  const RunMeasured& m = r.run->measured;
  const bool refused = r.outcome == Outcome::oom;
  if (m.outcome == "oom" && !m.oom_suspect) {
    ++out.oom;
    out.false_fits += r.outcome == Outcome::ran;
  } else if (!r.outcome) {
    return;
  } else if (m.outcome == "ran") {
    ++out.ran;
    out.false_refusals += refused;
  } else if (m.outcome == "crashed-or-oom") {
    ++out.crashed;
    out.confirmed += refused;
  }
}

double regret(const std::vector<RankedPlan>& plans) {
  const auto chosen = std::min_element(
      plans.begin(), plans.end(),
      [](const RankedPlan& a, const RankedPlan& b) { return a.predicted < b.predicted; });
  const auto best = std::min_element(
      plans.begin(), plans.end(),
      [](const RankedPlan& a, const RankedPlan& b) { return a.measured < b.measured; });
  return chosen->measured / best->measured - 1;
}

std::optional<double> kendall_tau(const std::vector<RankedPlan>& plans) {
  int agree = 0, disagree = 0;
  for (std::size_t a = 0; a < plans.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const double x =
          (plans[a].measured - plans[b].measured) * (plans[a].predicted - plans[b].predicted);
      agree += x > 0;
      disagree += x < 0;
    }
  if (agree + disagree == 0) return std::nullopt;
  return static_cast<double>(agree - disagree) / (agree + disagree);
}

RankingScore rank(const std::vector<PlanGroup>& groups) {
  std::vector<double> regrets, taus;
  RankingScore out;
  for (const PlanGroup& group : groups) {
    if (group.plans.size() < 4) continue;
    RankedGroup& one = out.each.emplace_back();
    one.source = group.first->source;
    one.model = group.first->model.name;
    one.gpus = std::to_string(group.first->hardware.gpus.value_or(0)) + "x" +
               group.first->hardware.gpu.value_or("");
    one.runs = group.runs;
    one.plans = static_cast<int>(group.plans.size());
    one.regret = regret(group.plans);
    one.tau = kendall_tau(group.plans);
    regrets.push_back(one.regret);
    if (one.tau) taus.push_back(*one.tau);
  }
  out.groups = static_cast<int>(regrets.size());
  out.regret_median = median_of(regrets);
  out.regret_mean = mean(regrets);
  if (!taus.empty()) out.tau = mean(taus);
  return out;
}

OverSources over_sources(const std::map<std::string, Errors>& sources,
                         std::vector<double> Errors::*figure) {
  std::vector<double> medians;
  for (const auto& [source, errors] : sources)
    if ((errors.*figure).size() >= 3) medians.push_back(median_of(absolute(errors.*figure)));
  std::sort(medians.begin(), medians.end());
  return {static_cast<int>(medians.size()), median_of(medians),
          medians.empty() ? 0 : medians.back()};
}

std::vector<ScoreRow> score_rows(const Tally& tally) {
  std::vector<ScoreRow> out;
  for (const auto& [row, errors] : tally.rows)
    out.push_back({row, error_statistics(errors.time), error_statistics(errors.memory)});
  return out;
}

double share(int part, int whole) { return whole == 0 ? 0 : static_cast<double>(part) / whole; }

}  // namespace

ErrorStatistics error_statistics(std::vector<double> errors) {
  ErrorStatistics out;
  out.count = static_cast<int>(errors.size());
  std::sort(errors.begin(), errors.end());
  out.bias = median_of(errors);
  const std::vector<double> size = absolute(std::move(errors));
  out.median = median_of(size);
  out.p90 = quantile_of_sorted(size, 0.9);
  out.mean = mean(size);
  return out;
}

std::vector<SpreadSample> step_samples(const std::vector<ReplayedRun>& runs) {
  std::vector<SpreadSample> out;
  for (const ReplayedRun& r : runs)
    if (const auto measured = measured_step(*r.run); measured && r.step_time)
      out.push_back({r.run->source, r.kind, measured->value / r.step_time->expected.value});
  return out;
}

std::vector<SpreadSample> memory_samples(const std::vector<ReplayedRun>& runs) {
  std::vector<SpreadSample> out;
  for (const ReplayedRun& r : runs)
    if (const auto measured = measured_memory_gib(*r.run); measured && r.memory_gib)
      out.push_back({r.run->source, r.kind, *measured / r.memory_gib->expected});
  return out;
}

std::vector<ScoreRow> score_rows(const std::vector<ReplayedRun>& runs, ScoreBy by) {
  Tally tally;
  for (const ReplayedRun& r : runs) {
    if (r.skipped) continue;
    add_time(r, row_key(by, r), tally);
    add_memory(r, row_key(by, r), tally);
  }
  return score_rows(tally);
}

ValidationScore score(const std::vector<ReplayedRun>& runs, ScoreBy by) {
  ValidationScore out;
  Tally tally;
  for (const ReplayedRun& r : runs) {
    ++out.records;
    if (r.skipped) {
      ++out.skipped[r.skipped->reason];
      continue;
    }
    ++out.answered;
    const RowKey row = row_key(by, r);
    add_time(r, row, tally);
    add_memory(r, row, tally);
    add_outcome(r, out.outcome);
  }
  Errors all;
  for (const auto& [row, errors] : tally.rows) {
    all.time.insert(all.time.end(), errors.time.begin(), errors.time.end());
    all.memory.insert(all.memory.end(), errors.memory.begin(), errors.memory.end());
  }
  out.rows = score_rows(tally);
  out.time_coverage = share(tally.time_covered, static_cast<int>(all.time.size()));
  out.memory_coverage = share(tally.memory_covered, static_cast<int>(all.memory.size()));
  out.time_refit = spread_coverage(step_samples(runs), fit_step_spread);
  out.memory_refit = spread_coverage(memory_samples(runs), fit_memory_spread);
  out.time = error_statistics(all.time);
  out.memory = error_statistics(all.memory);
  out.time_over_sources = over_sources(tally.sources, &Errors::time);
  out.memory_over_sources = over_sources(tally.sources, &Errors::memory);
  out.ranking = rank(plan_groups(runs, Grouping::by_size));
  out.plan_ranking = rank(plan_groups(runs, Grouping::by_all_told));
  return out;
}

}  // namespace shardwise
