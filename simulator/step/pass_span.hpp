// PassSpan: what the compute lane of one pipeline stage did, pass by pass.
//
// A pass of one microbatch through one chunk is lowered to one task or to many (each wait for a
// collective ends one); here they are one again. Recomputation belongs to the backward pass that
// asked for it. Spans are in order of time and do not overlap; between two of them, and between
// two pieces, the lane waits.
#pragma once

#include <vector>

#include "simulator/step/played_step.hpp"

namespace shardwise {

// One task of a pass.
struct PassPiece {
  WorkKind work = WorkKind::forward;
  int layer = 0;  // the last layer of the chunk that it runs through
  SimTime start, end;
};

struct PassSpan {
  WorkKind pass = WorkKind::forward;  // forward, backward, backward_weight, optimizer, or other
  int chunk = 0;                      // local
  int microbatch = 0;
  std::vector<PassPiece> pieces;  // at least one, in order of time; none of no length

  SimTime start() const { return pieces.front().start; }
  SimTime end() const { return pieces.back().end; }
};

std::vector<PassSpan> pass_spans(const PlayedStep& step, int stage);

}  // namespace shardwise
