// A peak memory that somebody measured, held beside the forecast of it: is my calculation wrong?
#pragma once

#include <array>
#include <string_view>

#include "planner/answers/measured_step.hpp"

namespace shardwise {

// What was measured, read as one of the three figures that people call the memory of a GPU.
struct MeasuredMemory {
  struct Reading {
    std::string_view figure;  // allocated, reserved or device
    Bytes forecast;
    double of_forecast = 1;  // measured / forecast
    Measured place = Measured::within;
  };
  Bytes memory;
  std::array<Reading, 3> readings;

  // Where it lies by every reading; within where it does by any.
  Measured place() const;
};

// `memory` > 0, of the fullest GPU. The interval of the device peak is that of every figure, about
// its own forecast.
inline MeasuredMemory measured_memory(Bytes memory, const Forecast& f) {
  const MemoryFigures& peak = f.worst().peak;
  const double low = f.peak_device.low / f.peak_device.expected,
               high = f.peak_device.high / f.peak_device.expected;
  const auto reading = [&](std::string_view figure, Bytes forecast) {
    const double ratio = memory / forecast;
    return MeasuredMemory::Reading{figure, forecast, ratio,
                                   ratio < low    ? Measured::below
                                   : ratio > high ? Measured::above
                                                  : Measured::within};
  };
  return {memory,
          {reading("allocated", peak.allocated), reading("reserved", peak.reserved),
           reading("device", peak.device)}};
}

// Of one that is above as allocated and below as reserved: below, as it may be either no better.
inline Measured MeasuredMemory::place() const {
  for (const Reading& r : readings)
    if (r.place == Measured::within) return Measured::within;
  return readings.back().place;
}

}  // namespace shardwise
