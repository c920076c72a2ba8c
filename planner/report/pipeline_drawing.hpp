// A pipeline step drawn for the terminal: a row per stage, time from left to right.
//
//   0 |F0-F1-F2-F3-......B0====F4-B1====      F  forward, B  backward, R  recomputation before it,
//   1 |...F0-F1-F2-......B0====F3-B1====      W  weight half of backward, O  optimizer
//
// A letter opens each pass; the number of its microbatch follows where there is room, with ' for
// the second chunk and '' for the third. Idle time is . (bubble) or : (the rank communicates).
//
// Each column shows what took most of its time. Where the passes are too narrow for their numbers,
// the first and the last part of the step are drawn once more, larger.
#pragma once

#include <string>

#include "simulator/step/played_step.hpp"

namespace shardwise {

struct DrawingStyle {
  int width = 100;  // columns of the terminal, at least 20
  bool colour = false;
};

std::string pipeline_drawing(const PlayedStep& step, DrawingStyle style);

}  // namespace shardwise
