// A step that somebody measured, held beside the forecast of it: is my run as fast as it should be?
#pragma once

#include "planner/forecast/forecast.hpp"

namespace shardwise {

enum class Measured { below, within, above };  // the 80 % interval of the forecast
constexpr std::string_view measured_name(Measured m) {
  return m == Measured::below ? "below" : m == Measured::within ? "within" : "above";
}

struct MeasuredStep {
  Seconds step;
  double of_forecast = 1;  // measured / expected
  Measured place = Measured::within;
  double tokens_per_s = 0, mfu = 0;  // of the step measured
  // What was measured may be one of a step's microbatches: so many of them lie in the interval.
  int microbatches = 1;
};

// `step` > 0, in the same sense as the forecast's: one optimizer step of `accumulation`
// microbatches. Where batches are padded, `f.step_time` is that of the mean step.
inline MeasuredStep measured_step(Seconds step, const Forecast& f, int accumulation) {
  const Interval<Seconds>& t = f.step_time;
  const auto place = [&](Seconds at) {
    return at < t.low ? Measured::below : at > t.high ? Measured::above : Measured::within;
  };
  const double faster = t.expected / step;
  MeasuredStep m{step, step / t.expected, place(step), f.tokens_per_s * faster, f.mfu * faster};
  if (m.place == Measured::below && place(accumulation * step) == Measured::within)
    m.microbatches = accumulation;
  return m;
}

}  // namespace shardwise
