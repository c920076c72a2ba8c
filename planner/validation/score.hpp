// ValidationScore: how wrong the forecast was on published runs.
//
//   error   e = predicted / measured - 1
//   bias    median of e;  median, p90: of |e|, p90 the value at index floor(0.9 n)
//   a source's median counts among the sources where it rests on at least 3 runs
//   false fit      an out-of-memory that is a capacity fact, forecast to run
//   false refusal  a run that was made, forecast not to fit
//   regret         of a group of at least 4 plans (plan_groups.hpp): the measured time of the plan
//                  forecast fastest / that of the fastest - 1
//   tau            Kendall's, of such a group
//
// Figures that a record marks as suspect are replayed and not scored. "crashed-or-oom" proves
// nothing alone: a forecast out-of-memory there is counted as a confirmation, nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/validation/rows.hpp"

namespace shardwise {

struct ErrorStatistics {
  int count = 0;
  double bias = 0, median = 0, p90 = 0, mean = 0;  // fractions; 0 where count is 0
};

// Of signed errors, in any order.
ErrorStatistics error_statistics(std::vector<double> errors);

// A row of the table: a source, or whatever else the runs are told apart by.
struct ScoreRow {
  RowKey key;
  ErrorStatistics time, memory;
};

// The median over sources, and the worst, of each source's median error.
struct OverSources {
  int sources = 0;
  double median = 0, worst = 0;
};

struct OutcomeScore {
  int oom = 0, false_fits = 0;  // capacity facts that were answered
  int ran = 0, false_refusals = 0;
  int crashed = 0, confirmed = 0;  // crashed-or-oom
};

struct RankedGroup {
  std::string source, model, gpus;
  int runs = 0, plans = 0;
  double regret = 0;
  std::optional<double> tau;  // absent: all one tie
};

struct RankingScore {
  int groups = 0;
  std::vector<RankedGroup> each;  // in order of source and model
  double regret_median = 0, regret_mean = 0;
  std::optional<double> tau;  // absent: every group is one tie
};

struct ValidationScore {
  int records = 0, answered = 0;
  std::map<std::string, int> skipped;  // by reason
  std::vector<ScoreRow> rows;          // in order, those with anything scored
  ErrorStatistics time, memory;
  OverSources time_over_sources, memory_over_sources;
  OutcomeScore outcome;
  RankingScore ranking;                           // Grouping::by_size
  RankingScore plan_ranking;                      // Grouping::by_all_told
  double time_coverage = 0, memory_coverage = 0;  // measured within low and high
  SpreadCoverage time_refit, memory_refit;        // intervals fitted on these very runs
};

// What the intervals are fitted on: measured / forecast of every run that tells both.
std::vector<SpreadSample> step_samples(const std::vector<ReplayedRun>& runs);
std::vector<SpreadSample> memory_samples(const std::vector<ReplayedRun>& runs);

// The table alone: a row of `by` where anything of it is scored, in order.
std::vector<ScoreRow> score_rows(const std::vector<ReplayedRun>& runs, ScoreBy by);

ValidationScore score(const std::vector<ReplayedRun>& runs, ScoreBy by = ScoreBy::source);

}  // namespace shardwise
