// TwoLanes: a stage's compute and its stream of data-parallel collectives, pass by pass.
//
// The parts of a bound (stage_alone.hpp says what waits for what): one stage's passes by
// themselves, or those of all stages together.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/search/stage_alone.hpp"

namespace shardwise {

// One layer of one chunk, as far as it takes these two lanes.
struct LayerWork {
  Seconds forward, input, weight;
  std::optional<Seconds> gather_forward, gather_backward, reduce;
};

// A chunk of layers, and the sums over them.
struct ChunkWork {
  std::vector<LayerWork> layers;
  Seconds forward, input, weight;
  bool gathers_forward = false, gathers_backward = false, reduces = false;

  explicit ChunkWork(const std::vector<LayerSchedule>& chunk) {
    layers.reserve(chunk.size());
    for (const LayerSchedule& l : chunk) {
      const LayerWork& w = layers.emplace_back(LayerWork{
          l.time.forward.device(), l.time.recompute.device() + l.time.backward_input.device(),
          l.time.backward_weight.device(), l.gather_forward, l.gather_backward, l.reduce});
      forward += w.forward;
      input += w.input;
      weight += w.weight;
      gathers_forward = gathers_forward || w.gather_forward;
      gathers_backward = gathers_backward || w.gather_backward;
      reduces = reduces || w.reduce;
    }
  }
};

class TwoLanes {
 public:
  explicit TwoLanes(const StepCosts& costs)
      : window_(static_cast<std::size_t>(std::max(1.0, costs.gather_window))),
        arrives_apart_(costs.overlaps_pipeline_comm) {}

  // A pass begins. Where arrivals take time of the compute lane its weights are asked for behind
  // them, else while they are on their way.
  void begin(Seconds input, Seconds arrival) {
    if (!arrives_apart_) compute_ = std::max(compute_, input) + arrival;
    started_ = compute_;
    if (arrives_apart_) compute_ = std::max(compute_, input);
    done_.clear();
  }

  void forward(const ChunkWork& chunk) {
    if (!chunk.gathers_forward) return work(chunk.forward, false);
    for (const LayerWork& l : chunk.layers) {
      if (l.gather_forward) compute_ = std::max(compute_, gather(*l.gather_forward, window_));
      work(l.forward, l.gather_forward.has_value());
    }
  }

  // The next layer's weights are asked for before this one's gradients are reduced.
  void backward(const ChunkWork& chunk, bool whole, bool reduces) {
    if (!chunk.gathers_backward && !(whole && reduces && chunk.reduces))
      return work(whole ? chunk.input + chunk.weight : chunk.input, false);
    const std::vector<LayerWork>& layers = chunk.layers;
    std::optional<Seconds> ahead;
    for (std::size_t i = layers.size(); i-- > 0;) {
      const LayerWork& l = layers[i];
      if (l.gather_backward) {
        const Seconds there = ahead ? *ahead : gather(*l.gather_backward, window_);
        ahead = prefetch(layers, i);
        compute_ = std::max(compute_, there);
      }
      work(whole ? l.input + l.weight : l.input, l.gather_backward.has_value());
      if (whole && reduces && l.reduce) reduce(*l.reduce);
    }
  }

  void weights(const ChunkWork& chunk, bool reduces) {
    if (!reduces || !chunk.reduces) return work(chunk.weight, false);
    for (auto l = chunk.layers.rbegin(); l != chunk.layers.rend(); ++l) {
      compute_ += l->weight;
      if (l->reduce) reduce(*l->reduce);
    }
  }

  StageEnd end() const { return {compute_, stream_}; }

 private:
  Seconds gather(Seconds time, std::size_t behind) {
    const bool full = behind > 0 && done_.size() >= behind;
    return stream_ = std::max(stream_, full ? done_[done_.size() - behind] : started_) + time;
  }
  std::optional<Seconds> prefetch(const std::vector<LayerWork>& layers, std::size_t i) {
    if (window_ < 2) return std::nullopt;
    while (i-- > 0)
      if (layers[i].gather_backward) return gather(*layers[i].gather_backward, window_ - 1);
    return std::nullopt;
  }
  void work(Seconds time, bool gathered) {
    compute_ += time;
    if (gathered) done_.push_back(compute_);
  }
  void reduce(Seconds time) { stream_ = std::max(stream_, compute_) + time; }

  std::size_t window_;
  bool arrives_apart_;
  Seconds compute_, stream_, started_;
  std::vector<Seconds> done_;  // ends of the layers of this pass that were gathered
};

// The lanes of one stage, slot by slot.
class StageLanes {
 public:
  // Arguments outlive this.
  StageLanes(const StageCosts& stage, const StepCosts& costs, int microbatches)
      : reduces_always_(costs.reduces_every_microbatch), last_(microbatches - 1), lanes_(costs) {
    of_.reserve(stage.chunks.size());
    chunks_.reserve(stage.chunks.size());
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      if (stage.alike[c] == c) chunks_.emplace_back(stage.chunks[c]);
      of_.push_back(stage.alike[c] == c ? chunks_.size() - 1 : of_[stage.alike[c]]);
    }
  }

  // `input`: before this it is not there; `arrivals`: of the slot's chunk.
  void run(const Slot& slot, Seconds input, const ArrivalCost& arrivals) {
    const ChunkWork& chunk = chunks_[of_[static_cast<std::size_t>(slot.chunk)]];
    const bool reduces = reduces_always_ || slot.microbatch == last_;
    if (slot.pass == Pass::forward) {
      lanes_.begin(input, arrivals.forward);
      lanes_.forward(chunk);
    } else if (slot.pass == Pass::backward_weight) {
      lanes_.weights(chunk, reduces);
    } else {
      lanes_.begin(input, arrivals.backward);
      lanes_.backward(chunk, slot.pass == Pass::backward, reduces);
    }
  }
  StageEnd end() const { return lanes_.end(); }

 private:
  std::vector<ChunkWork> chunks_;  // those that differ
  std::vector<std::size_t> of_;    // which of them each chunk is like
  bool reduces_always_;
  int last_;
  TwoLanes lanes_;
};

}  // namespace shardwise
