// MemoryTimeline: what the GPUs of one stage hold over a step, on the clock of the simulation.
//
// The allocator works in the order in which the host issues operations (memory_play.hpp), the GPU
// in the same order, later. A moment of the memory play is dated by when the GPU runs the layer it
// belongs to: between the start and the end of that layer's piece of its pass, layers that one task
// runs through in equal parts.
#pragma once

#include <vector>

#include "simulator/memory/memory_play.hpp"
#include "simulator/step/played_step.hpp"

namespace shardwise {

// From `at` until the next sample.
struct MemorySample {
  SimTime at;
  Bytes allocated;  // the most within
  Bytes reserved;
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};
using MemoryTimeline = std::vector<MemorySample>;  // in order of time, the first at 0

// `moments`: those of the same stage of the same plan (record_memory).
MemoryTimeline memory_timeline(const PlayedStep& step, int stage,
                               const std::vector<MemoryMoment>& moments);

// The step in `samples` equal parts, each with the most that is held within it.
MemoryTimeline evenly(const MemoryTimeline& timeline, SimTime end, int samples);

// As it is where it has no more than `samples`, else evenly().
MemoryTimeline thinned(const MemoryTimeline& timeline, SimTime end, int samples);

}  // namespace shardwise
