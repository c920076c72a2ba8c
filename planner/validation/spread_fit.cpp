#include "planner/validation/spread_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace shardwise {
namespace {

constexpr int least_runs = 20, least_sources = 2;
constexpr double low_quantile = 0.1, high_quantile = 0.9;

struct Weighted {
  double ratio, weight;
};

// The least ratio at or below which a share `p` of the weight lies.
double weighted_quantile(const std::vector<Weighted>& sorted, double p) {
  double total = 0, below = 0;
  for (const Weighted& w : sorted) total += w.weight;
  for (const Weighted& w : sorted)
    if ((below += w.weight) >= p * total * (1 - 1e-9)) return w.ratio;
  return sorted.back().ratio;
}

// `pattern` with its quantiles; runs 0 where too few samples are of that kind.
SpreadRow fitted(SpreadRow pattern, const std::vector<SpreadSample>& samples) {
  std::map<std::string, int> of_source;
  std::vector<const SpreadSample*> held;
  for (const SpreadSample& s : samples)
    if (pattern.holds(s.key)) {
      ++of_source[s.source];
      held.push_back(&s);
    }
  const auto weight = [&](const SpreadSample& s) { return 1 / std::sqrt(of_source[s.source]); };
  struct Family {
    double weight = 0;
    int runs = 0;
    double vote() const { return std::min(1.0, static_cast<double>(runs) / least_runs); }
  };
  std::map<std::string, Family> families;
  for (const SpreadSample* s : held) {
    Family& f = families[s->key.framework];
    f.weight += weight(*s);
    ++f.runs;
  }
  std::vector<Weighted> found;
  for (const SpreadSample* s : held) {
    const Family& f = families[s->key.framework];
    found.push_back({s->ratio, f.vote() * weight(*s) / f.weight});
  }
  const bool any = !pattern.extent && !pattern.tensor && !pattern.tuning && !pattern.stages;
  const int sources = static_cast<int>(of_source.size());
  const int runs = static_cast<int>(found.size());
  if (found.empty() || (!any && (runs < least_runs || sources < least_sources))) return pattern;
  std::sort(found.begin(), found.end(),
            [](const Weighted& a, const Weighted& b) { return a.ratio < b.ratio; });
  // Three digits are more than the sample can tell.
  pattern.low = std::round(weighted_quantile(found, low_quantile) * 1000) / 1000;
  pattern.high = std::round(weighted_quantile(found, high_quantile) * 1000) / 1000;
  pattern.runs = runs;
  pattern.sources = sources;
  return pattern;
}

std::vector<SpreadRow> fit_all(const std::vector<SpreadRow>& patterns,
                               const std::vector<SpreadSample>& samples) {
  std::vector<SpreadRow> rows;
  for (const SpreadRow& pattern : patterns)
    if (const SpreadRow row = fitted(pattern, samples); row.runs > 0) rows.push_back(row);
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
  return fit_all(patterns, samples);
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
  return fit_all(patterns, samples);
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
