// Sequential: one microbatch at a time through all stages and back, as `device_map` runs a model
// that is split by layers over the cards of a box.
//
//   F0 B0  F1 B1  ..  F(m-1) B(m-1)
//
// One stage works while the others wait: with equal stages of times f and b the step takes
// m p (f + b), and one microbatch is in flight. Source: Hugging Face Accelerate,
// src/accelerate/hooks.py (AlignDevicesHook moves activations from card to card; nothing overlaps).
#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {

std::vector<Slot> sequential_order(PipelineShape shape, int /*stage*/) {
  std::vector<Slot> slots;
  for (int i = 0; i < shape.microbatches; ++i) {
    slots.push_back(forward(i));
    slots.push_back(backward(i));
  }
  return slots;
}

}  // namespace shardwise::schedules
