#include "calibrate/measuring/measure.hpp"

#include <algorithm>
#include <cmath>

namespace shardwise {
namespace {

Outcome outcome_of(RunStatus status) {
  switch (status) {
    case RunStatus::out_of_memory:
      return Outcome::out_of_memory;
    case RunStatus::unsupported:
      return Outcome::unsupported;
    case RunStatus::failed:
      return Outcome::failed;
    case RunStatus::lost:
      return Outcome::lost;
    case RunStatus::ok:
      break;
  }
  return Outcome::measured;
}

// The runs of one point so far.
class Tally {
 public:
  Tally(const BenchDevice& device, const MeasuringRules& rules)
      : device_(device), rules_(rules), pause_(rules.first_pause) {}

  void count(const Sample& sample) {
    const ClockState clock = device_.clock_state();
    if (clock.slowed) return rest();
    if (sample.disturbed) {
      ++discarded_;
      return;
    }
    slowed_in_a_row_ = 0;
    pause_ = rules_.first_pause;
    samples_.push_back(sample.value);
    busy_ += sample.busy;
    if (clock.sm_mhz > 0) clocks_.push_back(clock.sm_mhz);
  }

  bool enough() const { return !samples_.empty() && known_well(rules_.stopping, samples_, busy_); }

  Finding finding() const {
    Finding found;
    found.discarded = discarded_;
    if (samples_.empty()) {
      found.outcome = Outcome::throttled;
      found.why = slowed_ > 0 ? "no run at full clock within the time given"
                              : "no run without a disturbance within the time given";
      return found;
    }
    const Centre middle = centre(samples_);
    found.value = middle.median;
    found.spread = middle.spread;
    found.samples = static_cast<int>(samples_.size());
    if (!clocks_.empty()) found.sm_mhz = static_cast<int>(centre(clocks_).median);
    return found;
  }

 private:
  void rest() {
    ++discarded_;
    ++slowed_;
    if (++slowed_in_a_row_ > 3) pause_ += std::min(1.5 * pause_, Seconds(0.5));
    device_.wait(pause_);
  }

  const BenchDevice& device_;
  const MeasuringRules& rules_;
  std::vector<double> samples_;
  std::vector<double> clocks_;
  Seconds busy_;
  Seconds pause_;
  int discarded_ = 0;
  int slowed_ = 0;
  int slowed_in_a_row_ = 0;
};

Finding stopped(RunStatus status, const std::string& why) {
  Finding found;
  found.outcome = outcome_of(status);
  found.why = why;
  return found;
}

Finding run_until_known(const BenchDevice& device, const Prepared& prepared,
                        const MeasuringRules& rules, SimTime begun, Seconds budget) {
  // Warm-ups may use a third of the time: a bench of one long run has none to spare.
  const auto spent = [&] { return device.now() - begun; };
  for (int i = 0; i < rules.warm_ups && (i == 0 || 3.0 * spent() < budget); ++i) {
    const Sample sample = prepared.run_once();
    if (sample.status != RunStatus::ok) return stopped(sample.status, sample.why);
  }
  Tally tally(device, rules);
  do {
    const Sample sample = prepared.run_once();
    if (sample.status != RunStatus::ok) return stopped(sample.status, sample.why);
    tally.count(sample);
  } while (!tally.enough() && spent() < budget);
  return tally.finding();
}

}  // namespace

Finding measure(const BenchDevice& device, const BenchPoint& point, const MeasuringRules& rules,
                Seconds budget) {
  const SimTime begun = device.now();
  Finding found;
  {
    const Prepared prepared = device.prepare(point);
    found = prepared.status == RunStatus::ok
                ? run_until_known(device, prepared, rules, begun, budget)
                : stopped(prepared.status, prepared.why);
  }
  if (!std::isfinite(found.value) || found.value < 0 || !std::isfinite(found.spread))
    found = stopped(RunStatus::failed, "the run told a time that is no number");
  found.took = device.now() - begun;
  return found;
}

}  // namespace shardwise
