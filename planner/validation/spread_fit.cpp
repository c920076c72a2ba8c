#include "planner/validation/spread_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace shardwise {
namespace {

constexpr double low_quantile = 0.1, high_quantile = 0.9;
constexpr int whole_vote = 20;  // runs with which a family of frameworks counts in full

// What a kind needs for a row of its own, and how many runs' weight the next coarser kind has in
// it. Chosen by the interval score (Gneiting and Raftery 2007, eq. 43) of runs whose source was
// left out, on logarithms: step time 1.21 without a prior and with rows from 20 runs of two
// sources, 1.15 so; memory 0.68 so, 0.71 with the other.
struct RowRule {
  int least_runs, least_sources;
  double prior_runs;
};
constexpr RowRule step_rule{5, 1, 20}, memory_rule{20, 2, 0};

// The runs of one kind, in order of their ratio; `below[i]` is the weight of all up to and with the
// i-th, so that the last is one.
struct Kind {
  std::vector<double> ratios, below;
  int sources = 0;

  int runs() const { return static_cast<int>(ratios.size()); }
  double share_up_to(double ratio) const {
    const auto after = std::upper_bound(ratios.begin(), ratios.end(), ratio) - ratios.begin();
    return after == 0 ? 0 : below[static_cast<std::size_t>(after) - 1];
  }
};

// Samples by what they are told apart by: some 150 keys of 6,000 runs.
using Keyed = std::vector<std::vector<const SpreadSample*>>;

Keyed by_key(const std::vector<SpreadSample>& samples) {
  Keyed out;
  for (const SpreadSample& s : samples) {
    const auto alike = std::find_if(out.begin(), out.end(),
                                    [&](const auto& g) { return g.front()->key == s.key; });
    if (alike == out.end())
      out.push_back({&s});
    else
      alike->push_back(&s);
  }
  return out;
}

Kind kind_of(const SpreadRow& pattern, const Keyed& samples) {
  std::map<std::string, int> of_source;
  std::vector<const SpreadSample*> held;
  for (const auto& alike : samples)
    if (pattern.holds(alike.front()->key)) held.insert(held.end(), alike.begin(), alike.end());
  for (const SpreadSample* s : held) ++of_source[s->source];
  const auto weight = [&](const SpreadSample& s) { return 1 / std::sqrt(of_source[s.source]); };
  struct Family {
    double weight = 0;
    int runs = 0;
    double vote() const { return std::min(1.0, static_cast<double>(runs) / whole_vote); }
  };
  std::map<std::string, Family> families;
  for (const SpreadSample* s : held) {
    Family& f = families[s->key.framework];
    f.weight += weight(*s);
    ++f.runs;
  }
  double votes = 0;
  for (const auto& [name, f] : families) votes += f.vote();
  std::sort(held.begin(), held.end(),
            [](const SpreadSample* a, const SpreadSample* b) { return a->ratio < b->ratio; });
  Kind kind;
  double below = 0;
  for (const SpreadSample* s : held) {
    const Family& f = families[s->key.framework];
    below += f.vote() / votes * weight(*s) / f.weight;
    kind.ratios.push_back(s->ratio);
    kind.below.push_back(below);
  }
  kind.sources = static_cast<int>(of_source.size());
  return kind;
}

bool for_everything(const SpreadRow& r) {
  return !r.extent && !r.tensor && !r.tuning && !r.stages && !r.framework;
}

// The next coarser kind.
SpreadRow coarser(SpreadRow pattern) {
  if (pattern.framework)
    pattern.framework.reset();
  else if (pattern.stages)
    pattern.stages.reset();
  else if (pattern.tensor)
    pattern.tensor.reset();
  else if (pattern.extent)
    pattern.extent.reset();
  else
    pattern.tuning.reset();
  return pattern;
}

// Rows of one fit; what a kind's runs are is found once.
class RowFit {
 public:
  RowFit(const std::vector<SpreadSample>& samples, RowRule rule)
      : samples_(by_key(samples)), rule_(rule) {}

  // `pattern` with its quantiles; runs 0 where too few samples are of that kind.
  SpreadRow row(SpreadRow pattern) {
    const Kind& own = kind(pattern);
    if (!enough(pattern, own)) return pattern;
    const std::vector<Part> parts = mixture(pattern);
    // Three digits are more than the sample can tell.
    pattern.low = std::round(quantile(parts, low_quantile) * 1000) / 1000;
    pattern.high = std::round(quantile(parts, high_quantile) * 1000) / 1000;
    pattern.runs = own.runs();
    pattern.sources = own.sources;
    return pattern;
  }

 private:
  const Kind& kind(const SpreadRow& p) {
    const auto [at, made] =
        kinds_.try_emplace({p.extent, p.tensor, p.tuning, p.stages, p.framework});
    if (made) at->second = kind_of(p, samples_);
    return at->second;
  }

  bool enough(const SpreadRow& pattern, const Kind& own) const {
    if (for_everything(pattern)) return own.runs() > 0;
    return own.runs() >= rule_.least_runs && own.sources >= rule_.least_sources;
  }

  struct Part {
    const Kind* kind;
    double share;
  };

  // A kind and the coarser ones, with the share of the weight that the rule gives them. One that
  // holds no other runs than the kind before it says nothing more, and is passed over.
  std::vector<Part> mixture(const SpreadRow& pattern) {
    std::vector<Part> parts;
    double left = 1;  // that no kind has yet
    for (SpreadRow at = pattern;; at = coarser(at)) {
      const Kind& own = kind(at);
      const bool last = for_everything(at);
      const bool adds = parts.empty() || parts.back().kind->runs() < own.runs();
      if (last || (adds && enough(at, own))) {
        parts.push_back({&own, last ? left : left * own.runs() / (own.runs() + rule_.prior_runs)});
        left -= parts.back().share;
      }
      if (last || left <= 0) return parts;
    }
  }

  // The least ratio of any run at or below which a share `p` of the weight lies.
  double quantile(const std::vector<Part>& parts, double p) {
    const auto too_low = [&](double ratio) {
      double below = 0;
      for (const Part& part : parts) below += part.share * part.kind->share_up_to(ratio);
      return below < p * (1 - 1e-9);
    };
    const std::vector<double>& all = kind({}).ratios;
    return *std::partition_point(all.begin(), all.end() - 1, too_low);
  }

  using Fields = std::tuple<std::optional<Extent>, std::optional<bool>, std::optional<Tuning>,
                            std::optional<bool>, std::optional<std::string>>;
  Keyed samples_;
  RowRule rule_;
  std::map<Fields, Kind> kinds_;
};

std::vector<SpreadRow> fit_all(const std::vector<SpreadRow>& patterns,
                               const std::vector<SpreadSample>& samples, RowRule rule) {
  RowFit fit(samples, rule);
  std::vector<SpreadRow> rows;
  for (const SpreadRow& pattern : patterns)
    if (const SpreadRow row = fit.row(pattern); row.runs > 0) rows.push_back(row);
  return rows;
}

// Every family of frameworks, in order.
std::set<std::string> families(const std::vector<SpreadSample>& samples) {
  std::set<std::string> all;
  for (const SpreadSample& s : samples)
    if (!s.key.framework.empty()) all.insert(s.key.framework);
  return all;
}

bool within(const std::vector<SpreadRow>& rows, const SpreadSample& s) {
  const SpreadRow row = spread_of(rows, s.key);
  return row.low <= s.ratio && s.ratio <= row.high;
}

}  // namespace

std::vector<SpreadRow> fit_step_spread(const std::vector<SpreadSample>& samples) {
  std::vector<SpreadRow> patterns;
  for (const std::string& family : families(samples))
    for (const auto& [text, extent] : extent_names)
      for (const bool tensor : {false, true})
        for (const bool stages : {false, true})
          patterns.push_back({extent, tensor, {}, stages, family});
  for (const auto& [text, extent] : extent_names)
    for (const bool tensor : {false, true})
      for (const bool stages : {false, true}) patterns.push_back({extent, tensor, {}, stages, {}});
  for (const auto& [text, extent] : extent_names)
    for (const bool tensor : {false, true}) patterns.push_back({extent, tensor, {}, {}, {}});
  for (const auto& [text, extent] : extent_names) patterns.push_back({extent, {}, {}, {}, {}});
  patterns.push_back({});
  return fit_all(patterns, samples, step_rule);
}

std::vector<SpreadRow> fit_memory_spread(const std::vector<SpreadSample>& samples) {
  std::vector<SpreadRow> patterns;
  for (const std::string& family : families(samples))
    for (const auto& [method, tuning] : tuning_names)
      for (const auto& [text, extent] : extent_names)
        patterns.push_back({extent, {}, tuning, {}, family});
  for (const auto& [method, tuning] : tuning_names)
    for (const auto& [text, extent] : extent_names)
      patterns.push_back({extent, {}, tuning, {}, {}});
  for (const auto& [method, tuning] : tuning_names) patterns.push_back({{}, {}, tuning, {}, {}});
  patterns.push_back({});
  return fit_all(patterns, samples, memory_rule);
}

SpreadCoverage spread_coverage(const std::vector<SpreadSample>& samples, SpreadFit fit) {
  SpreadCoverage out;
  if (samples.empty()) return out;
  const auto share = [&](auto count) {
    return static_cast<double>(count) / static_cast<double>(samples.size());
  };
  const auto all = fit(samples);
  out.in_sample = share(std::count_if(samples.begin(), samples.end(),
                                      [&](const SpreadSample& s) { return within(all, s); }));
  std::set<std::string> sources;
  for (const SpreadSample& s : samples) sources.insert(s.source);
  std::ptrdiff_t covered = 0;
  for (const std::string& source : sources) {
    std::vector<SpreadSample> others;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(others),
                 [&](const SpreadSample& s) { return s.source != source; });
    const auto rows = fit(others);
    covered += std::count_if(samples.begin(), samples.end(), [&](const SpreadSample& s) {
      return s.source == source && within(rows, s);
    });
  }
  out.left_out = share(covered);
  return out;
}

}  // namespace shardwise
