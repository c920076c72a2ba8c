// What room for tensors a stage comes to need: its allocation stream played again on cards of a
// size, with batches of unlike length before the one that counts.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "planner/forecast/forecast_parts.hpp"

namespace shardwise {

// What the allocator sees beside the plan, and the partitions that it refers to.
struct LengthVariation {
  std::deque<ModelPartition> partitions;  // which point into themselves: never copied
  PlayVariation play;
};

// Batches of unlike length come in any order, and the allocator cannot serve a longer one from
// what a shorter one left. Of independent uniform lengths the k-th record is expected at
// 1 - 2^-k of the longest (each record halves what is left): four of them before the longest.
// Where longer samples are cut to the limit, a share q of all has its length, and g others come
// before the first of these with probability q (1-q)^g: 1/((g+1)(g+2)) for a share that may be
// anything from 0 to 1. They hold 1 + 1/2 + ... + 1/g records, which is one at the mean.
// Whether lengths vary or not, `play.lead` says how far the CPU may lead the GPU.
LengthVariation length_variation(const ForecastContext& context);

// Whether a stage runs through on a card with `capacity` bytes, of which `outside` are no tensors.
// Before it fails, the allocator gives back what it only caches, as far as whole segments are free;
// so between "what is allocated fits" and "what is reserved fits" the answer is to play the
// stream once more on a card of that size, unless that has been `tried`.
bool survives(const ForecastContext& context, const LengthVariation& lengths, int stage,
              const MemoryPlays& plays, Bytes outside, Bytes capacity,
              std::vector<RoomTried>& tried);

// The room for tensors that a stage comes to need, of `room` and more, where it is given more
// whenever it misses some, unless that has been played (`same_as` as in MemoryPlays). From
// `enough` on, if that is given, the answer says no more than that.
Bytes raised_room(const ForecastContext& context, const LengthVariation& lengths, int stage,
                  int same_as, Bytes room, std::vector<RoomRaised>& raised,
                  std::optional<Bytes> enough = std::nullopt);

// The same, but so that it is enough from the start: with more room the allocator caches more
// before it gives anything back, which may leave other pieces.
Bytes least_room(const ForecastContext& context, const LengthVariation& lengths, int stage,
                 int same_as, Bytes room, std::vector<RoomRaised>& raised,
                 std::optional<Bytes> enough = std::nullopt);

}  // namespace shardwise
