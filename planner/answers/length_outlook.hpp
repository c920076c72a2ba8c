// LengthOutlook: what --lengths makes of a step that was forecast for sequences of one length.
//
//   padded   a microbatch is as long as its longest sample. Samples are drawn in an order shuffled
//            from a fixed seed, microbatches go round the data ranks, and ranks wait for the one
//            that has longest to do: at every microbatch where weights or gradients are exchanged
//            in each, else at the end of the step.
//   packed   samples are joined into full sequences: the forecast as it stands.
//
// Every time is a forecast of the same plan at the length of the microbatches, which are put into
// at most 32 classes of one width; a class is forecast at the mean length of those in it.
#pragma once

#include <optional>

#include "planner/forecast/forecast.hpp"
#include "planner/request/resolved_request.hpp"

namespace shardwise {

struct PaddedBatches {
  double padding = 0;       // share of the tokens computed
  Seconds step;             // on average
  double tokens_per_s = 0;  // of samples, padding not counted
};

struct LengthOutlook {
  std::int64_t samples = 0, tokens = 0, cut = 0;  // tokens: of samples cut at `sequence`
  int longest = 0, sequence = 0;
  std::optional<PaddedBatches> padded;  // where the framework pads batches to their own longest
  double packed_tokens_per_s = 0;
};

// Nothing where no lengths are asked about, or the step is too long to be forecast.
std::optional<LengthOutlook> length_outlook(const ResolvedRequest& request,
                                            const Question& question, const Forecast& forecast);

}  // namespace shardwise
