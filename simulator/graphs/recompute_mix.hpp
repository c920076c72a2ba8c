// Recompute mixes: how many blocks of a stage take which recompute option.
//
// The ways to give n blocks one of K options each are many; what a search needs of them is
//
//   the path   from "all keep everything" to "all keep the least", one block changed at a time, the
//              changes that cost least time per byte first: along the lower convex hull
//   the mixes  that no other beats in both bytes and time, all of them, or those that come below a
//              line. With a price l per byte every mix costs at least the sum of its blocks' least
//              time + l kept; so what is above the line with some blocks chosen stays above it,
//              and between two neighbours on the path few mixes are left.
//              Of blocks with hundreds of options (adapters double a block's operators) there are
//              still millions: then those of which all blocks but one are as on the path.
#pragma once

#include <optional>
#include <vector>

#include "simulator/graphs/recompute_options.hpp"

namespace shardwise {

// Blocks that have the same options.
struct EqualBlocks {
  int blocks = 0;
  std::vector<RecomputeOption> options;  // by time, rising; not empty
};

struct RecomputeMix {
  std::vector<std::vector<int>> counts;  // [kind][option]: blocks
  Bytes kept;
  Picoseconds time;
};

// By time, rising; the bytes fall.
std::vector<RecomputeMix> recompute_path(const std::vector<EqualBlocks>& kinds);

// time + price x kept stays below that of the given point.
struct MixLine {
  double picoseconds_per_byte = 0;
  Picoseconds time;
  Bytes kept;
};

struct RecomputeMixes {
  std::vector<RecomputeMix> list;  // by time, rising
  bool all = true;                 // that no other beats; else those beside the path alone
};

// Without a line: all unbeaten mixes. With one: all that are below it, and perhaps some above;
// where that would look at more than 65,536 sums of mixes and options (a millisecond) those beside
// the path, of which no other beats one, nor any mix of the path.
RecomputeMixes recompute_mixes(const std::vector<EqualBlocks>& kinds,
                               const std::optional<MixLine>& line = std::nullopt);

}  // namespace shardwise
