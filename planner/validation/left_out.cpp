#include "planner/validation/left_out.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "planner/validation/median.hpp"

namespace shardwise {
namespace {

constexpr double step = 1.1;            // a tenth above and below
constexpr double follows_enough = 0.5;  // of a doubling of the constant, in logarithms
constexpr double farthest = 2.0;        // no source's best value is sought beyond this factor
constexpr std::size_t enough_runs = 3;  // of a source, to speak for a constant

// Tukey's biweight M-estimator of location: a value farther than 4.685 standard deviations from
// the others has no say (Beaton and Tukey, Technometrics 16, 1974; the constant gives 95 %
// efficiency under normal noise). Starts at the median. REQUIRES values.
double bisquare_location(const std::vector<double>& values) {
  constexpr double reach = 4.685, to_deviation = 1.4826;
  constexpr int rounds = 50;
  double centre = median_of(values);
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> off;
    for (const double v : values) off.push_back(std::abs(v - centre));
    const double width = reach * to_deviation * median_of(off);
    if (width <= 0) return centre;
    double weights = 0, sum = 0;
    for (const double v : values) {
      const double u = (v - centre) / width;
      const double weight = std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0;
      weights += weight;
      sum += weight * v;
    }
    centre = sum / weights;
  }
  return centre;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> all_but(const std::vector<std::string>& names, const std::string& one) {
  std::vector<std::string> rest;
  for (const std::string& n : names)
    if (n != one) rest.push_back(n);
  return rest;
}

using Medians = std::map<std::string, double>;

// Median |error| by source, of step times that `time` gives.
template <class Time>
Medians medians(const std::vector<SteppedRun>& runs, Time time) {
  std::map<std::string, std::vector<double>> errors;
  for (const SteppedRun& r : runs) errors[r.source].push_back(std::abs(time(r) / r.measured - 1));
  Medians result;
  for (auto& [source, list] : errors) result[source] = median_of(std::move(list));
  return result;
}

void add_training_loads(const Profile& profile, std::vector<FittedConstant>& to) {
  for (std::size_t i = 0; i < profile.families.size(); ++i) {
    const FamilyCalibration& f = profile.families[i];
    if (f.training_load.fitted_on.empty()) continue;
    constexpr auto bf16 = static_cast<std::size_t>(DType::bf16);
    constexpr auto fp16 = static_cast<std::size_t>(DType::fp16);
    to.push_back({sentence("training_load of ", f.family), f.training_load.matmul[bf16],
                  f.training_load.fitted_on, 1.0, [i](Catalog&, Profile& p, double v) {
                    auto& matmul = p.families[i].training_load.matmul;
                    matmul[bf16] = matmul[fp16] = std::min(v, 1.0);
                  }});
  }
}

void add_host(const Profile& profile, std::vector<FittedConstant>& to) {
  for (const FittedField& f : profile.host.fitted) {
    if (f.field == "communicator_creation_s")
      to.push_back({"creation of a communicator [s]", profile.host.communicator_creation.value,
                    f.on, f.without, [](Catalog&, Profile& p, double v) {
                      p.host.communicator_creation = Seconds(v);
                    }});
  }
}

// Rows of one family that rest on the same runs have one constant between them.
void add_frameworks(const Catalog& catalog, std::vector<FittedConstant>& to) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::size_t>> together;
  for (std::size_t i = 0; i < catalog.frameworks.size(); ++i) {
    const Framework& row = catalog.frameworks[i];
    for (const FittedField& f : row.fitted)
      if (f.field == "host_us_per_kernel")
        together[{row.family.empty() ? row.id : row.family, f.on}].push_back(i);
  }
  for (const auto& [key, rows] : together) {
    const Framework& first = catalog.frameworks[rows.front()];
    to.push_back({sentence("host time per operator of ", key.first, " [us]"),
                  first.host.us_per_kernel, key.second, first.fitted.front().without,
                  [rows = rows](Catalog& c, Profile&, double v) {
                    for (const std::size_t i : rows) c.frameworks[i].host.us_per_kernel = v;
                  }});
  }
}

struct TimedReplay {
  double step = 0;  // [s]; 0 where none was measured or the forecast has none
  bool in_one_node = false;
};

std::vector<TimedReplay> timed_replays(const std::vector<RunRecord>& runs,
                                       const ValidationInputs& inputs, int threads) {
  std::vector<TimedReplay> times;
  for (const ReplayedRun& r : replay_runs(runs, inputs, threads))
    times.push_back({r.step_time && measured_step(*r.run) ? r.step_time->expected.value : 0,
                     r.shape.nodes == 1});
  return times;
}

std::vector<TimedReplay> times_with(const FittedConstant& c, double value,
                                    const std::vector<RunRecord>& runs,
                                    const ValidationInputs& inputs, int threads) {
  Catalog catalog = inputs.catalog;
  Profile profile = inputs.profile;
  c.set(catalog, profile, value);
  return timed_replays(runs, {catalog, inputs.reading, profile}, threads);
}

// The fit without each of the constant's sources in turn.
void leave_each_out(const FittedConstant& c, const std::vector<SteppedRun>& runs,
                    const std::vector<double>& without_any, std::vector<LeftOutFit>& to) {
  const Medians before = medians(runs, [](const SteppedRun& r) { return r.here; });
  const double all = best_factor(runs, c.on);
  for (const std::string& source : c.on) {
    LeftOutFit fit{c.name, source, c.value, c.without, c.value * all, 0, 0, "", 0};
    Medians after;
    if (c.on.size() > 1) {
      const double factor = best_factor(runs, all_but(c.on, source)) / all;
      fit.refitted = c.value * factor;
      after = medians(runs, [&](const SteppedRun& r) { return step_at(r, factor); });
    } else {
      after = medians(runs, [&](const SteppedRun& r) {
        return without_any[static_cast<std::size_t>(&r - runs.data())];
      });
    }
    if (before.count(source) == 0) continue;
    fit.in_sample = before.at(source);
    fit.left_out = after.at(source);
    for (const auto& [other, error] : after) {
      const double moved = std::abs(error - before.at(other));
      if (other == source || moved <= fit.moved) continue;
      fit.most_moved = other;
      fit.moved = moved;
    }
    to.push_back(std::move(fit));
  }
}

}  // namespace

std::vector<FittedConstant> fitted_constants(const Catalog& catalog, const Profile& profile) {
  std::vector<FittedConstant> constants;
  add_training_loads(profile, constants);
  add_host(profile, constants);
  add_frameworks(catalog, constants);
  return constants;
}

Follows follows(const SteppedRun& r) {
  return {std::log(r.here / r.low) / std::log(step), std::log(r.high / r.here) / std::log(step)};
}

double step_at(const SteppedRun& r, double factor) {
  const Follows f = follows(r);
  return r.here * std::pow(factor, factor < 1 ? f.down : f.up);
}

double best_factor(const std::vector<SteppedRun>& runs, const std::vector<std::string>& on) {
  struct Wanted {
    std::vector<double> in_one_node, over_nodes;
  };
  std::map<std::string, Wanted> wanted;
  for (const SteppedRun& r : runs) {
    if (!holds(on, r.source)) continue;
    const Follows f = follows(r);
    if (std::min(std::abs(f.down), std::abs(f.up)) < follows_enough) continue;
    const double lower = std::log(r.measured / r.here) / f.down;
    const double ln = lower < 0 ? lower : std::log(r.measured / r.here) / f.up;
    Wanted& w = wanted[r.source];
    (r.in_one_node ? w.in_one_node : w.over_nodes)
        .push_back(std::clamp(std::exp(ln), 1 / farthest, farthest));
  }
  std::vector<double> best;  // logarithms
  for (auto& [source, w] : wanted) {
    std::vector<double>& runs_of = w.in_one_node;
    if (runs_of.size() < enough_runs)
      runs_of.insert(runs_of.end(), w.over_nodes.begin(), w.over_nodes.end());
    if (runs_of.size() >= enough_runs) best.push_back(std::log(median_of(std::move(runs_of))));
  }
  return best.empty() ? 1 : std::exp(bisquare_location(best));
}

std::vector<LeftOutFit> left_out_fits(const std::vector<RunRecord>& runs,
                                      const ValidationInputs& inputs, int threads) {
  std::vector<LeftOutFit> fits;
  const std::vector<TimedReplay> here = timed_replays(runs, inputs, threads);
  for (const FittedConstant& c : fitted_constants(inputs.catalog, inputs.profile)) {
    const std::vector<TimedReplay> low = times_with(c, c.value / step, runs, inputs, threads);
    const std::vector<TimedReplay> high = times_with(c, c.value * step, runs, inputs, threads);
    const bool alone = c.on.size() == 1;
    std::vector<TimedReplay> none;
    if (alone) none = times_with(c, c.without, runs, inputs, threads);
    std::vector<SteppedRun> stepped;
    std::vector<double> without_any;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (here[i].step <= 0 || low[i].step <= 0 || high[i].step <= 0) continue;
      stepped.push_back({runs[i].source, measured_step(runs[i])->value, low[i].step, here[i].step,
                         high[i].step, here[i].in_one_node});
      if (alone) without_any.push_back(none[i].step);
    }
    leave_each_out(c, stepped, without_any, fits);
  }
  return fits;
}

std::string left_out_report(const std::vector<LeftOutFit>& fits) {
  std::size_t first = 8, second = 8;
  for (const LeftOutFit& f : fits) {
    first = std::max(first, f.constant.size());
    second = std::max(second, f.source.size());
  }
  std::string text = sentence(left("constant", first), "  ", left("left out", second),
                              "   value  refitted |  its error, %  left out  ratio |  moves most,"
                              " points\n");
  double worst_ratio = 0, worst_moved = 0;
  for (const LeftOutFit& f : fits) {
    const double ratio = f.in_sample > 0 ? f.left_out / f.in_sample : 1;
    worst_ratio = std::max(worst_ratio, ratio);
    worst_moved = std::max(worst_moved, f.moved);
    text += sentence(left(f.constant, first), "  ", left(f.source, second),
                     padded(fixed(f.value, 3), 8), padded(fixed(f.refitted, 3), 10), " |",
                     padded(share_number(f.in_sample), 15), padded(share_number(f.left_out), 10),
                     padded(fixed(ratio, 2), 7), " |", padded(share_number(f.moved), 6), "  ",
                     f.most_moved, "\n");
  }
  text += "\n";
  for (const LeftOutFit& f : fits)
    if (&f == fits.data() || f.constant != (&f - 1)->constant)
      text += sentence("on all its sources ", f.constant, " comes out at ", fixed(f.on_all, 3),
                       ", the catalog has ", fixed(f.value, 3), "\n");
  return text + sentence("\nworst: a source's own median error is ", fixed(worst_ratio, 2),
                         " times what it is with it; another's moves by ",
                         share_number(worst_moved), " points\n");
}

}  // namespace shardwise
