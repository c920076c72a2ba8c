// TwoLanes: a stage's compute and its stream of data-parallel collectives, pass by pass, the host
// that issues their work, and the copies to and from its memory that they wait for.
//
// The parts of a bound (stage_alone.hpp says what waits for what): one stage's passes by
// themselves, or those of all stages together.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/search/stage_alone.hpp"

namespace shardwise {

// A run of kernels and their issue: after it, compute is done no earlier than `compute` later, than
// `begun` after the host began to issue the first of them, and the host `host` later. Kernels start
// when their issue begins, and end no earlier than that does (simulator/step/step_lowering.hpp).
struct LaneWork {
  Seconds compute, begun, host;

  LaneWork() = default;
  // Issued as one. Where the host is always ahead, its time is nothing.
  LaneWork(const PassTime& time, bool host_bound) {
    compute = time.device();
    if (host_bound) host = time.host;
    begun = std::max(compute, host);
  }
  LaneWork& issued_with(const LaneWork& o) {
    compute += o.compute;
    host += o.host;
    begun = std::max(compute, host);
    return *this;
  }
  LaneWork& then(const LaneWork& next) {
    begun = std::max(begun + next.compute, host + next.begun);
    compute += next.compute;
    host += next.host;
    return *this;
  }
};

// One layer of one chunk, as far as it takes these lanes. Backward: what runs again, then inputs,
// alone or with weights.
struct LayerWork {
  LaneWork forward, input, whole, weight;
  std::optional<Seconds> gather_forward, gather_backward, gather_again, reduce, copy_in, copy_out;
  Seconds redone;

  LayerWork(const LayerSchedule& l, bool host_bound)
      : forward(l.time.forward, host_bound),
        weight(l.time.backward_weight, host_bound),
        gather_forward(l.gather_forward),
        gather_backward(l.gather_backward),
        gather_again(l.gather_again),
        reduce(l.reduce),
        copy_in(l.copy_in),
        copy_out(l.copy_out),
        redone(l.time.recompute.device()) {
    if (l.time.recompute.device() > Seconds(0))
      input = whole = LaneWork(l.time.recompute, host_bound);
    input.then(LaneWork(l.time.backward_input, host_bound));
    whole.then(LaneWork(l.time.backward_input, host_bound).issued_with(weight));
  }
  // Whether a pass waits for its weights.
  bool comes_forward() const { return gather_forward || copy_in; }
  bool comes_backward() const { return gather_backward || copy_in; }
  bool gradients_go() const { return reduce || copy_out; }
};

// A chunk of layers, and the passes through all of them.
struct ChunkWork {
  std::vector<LayerWork> layers;
  LaneWork forward, input, whole, weight;
  bool gathers_forward = false, gathers_backward = false, reduces = false;

  ChunkWork(const std::vector<LayerSchedule>& chunk, bool host_bound) {
    layers.reserve(chunk.size());
    for (const LayerSchedule& l : chunk) {
      const LayerWork& w = layers.emplace_back(l, host_bound);
      forward.then(w.forward);
      weight.issued_with(w.weight);
      gathers_forward = gathers_forward || w.comes_forward();
      gathers_backward = gathers_backward || w.comes_backward();
      reduces = reduces || w.gradients_go();
    }
    for (auto w = layers.rbegin(); w != layers.rend(); ++w) {
      input.then(w->input);
      whole.then(w->whole);
    }
  }
};

class TwoLanes {
 public:
  explicit TwoLanes(const StepCosts& costs)
      : window_(static_cast<std::size_t>(std::max(1.0, costs.gather_window))),
        arrives_apart_(costs.overlaps_pipeline_comm) {}

  // A pass begins. Where arrivals take time of the compute lane its weights are asked for behind
  // them, else while they are on their way. `host_waits`: for what compute has done by then.
  void begin(Seconds input, Seconds arrival, bool host_waits) {
    if (!arrives_apart_) compute_ = std::max(compute_, input) + arrival;
    if (host_waits) host_ = std::max(host_, compute_);
    started_ = compute_;
    if (arrives_apart_) compute_ = std::max(compute_, input);
    done_.clear();
  }

  void forward(const ChunkWork& chunk) {
    if (!chunk.gathers_forward) return work(chunk.forward, false);
    for (const LayerWork& l : chunk.layers) {
      if (l.comes_forward())
        compute_ = std::max(compute_, gather(l.gather_forward, l.copy_in, window_));
      work(l.forward, l.comes_forward());
    }
  }

  // The next layer's weights are asked for before this one's gradients are reduced.
  void backward(const ChunkWork& chunk, bool whole, bool reduces) {
    if (!chunk.gathers_backward && !(whole && reduces && chunk.reduces))
      return work(whole ? chunk.whole : chunk.input, false);
    const std::vector<LayerWork>& layers = chunk.layers;
    std::optional<Seconds> ahead;
    for (std::size_t i = layers.size(); i-- > 0;) {
      const LayerWork& l = layers[i];
      if (l.comes_backward()) {
        const Seconds there = ahead ? *ahead : gather(l.gather_backward, l.copy_in, window_);
        compute_ = std::max(compute_, there);
        if (l.gather_again)  // by then the layer has run again
          compute_ = std::max(compute_, gather(l.gather_again, {}, window_) - l.redone);
        ahead = prefetch(layers, i);
      }
      work(whole ? l.whole : l.input, l.comes_backward());
      if (whole && reduces && l.gradients_go()) reduce(l);
    }
  }

  void weights(const ChunkWork& chunk, bool reduces) {
    if (!reduces || !chunk.reduces) return work(chunk.weight, false);
    LaneWork so_far;
    for (auto l = chunk.layers.rbegin(); l != chunk.layers.rend(); ++l) {
      so_far.issued_with(l->weight);
      if (!l->gradients_go()) continue;
      work(so_far, false);
      reduce(*l);
      so_far = {};
    }
    work(so_far, false);
  }

  StageEnd end() const { return {compute_, std::max(stream_, copied_out_)}; }

 private:
  Seconds gather(const std::optional<Seconds>& time, const std::optional<Seconds>& copy,
                 std::size_t behind) {
    const bool full = behind > 0 && done_.size() >= behind;
    Seconds from = full ? done_[done_.size() - behind] : started_;
    if (copy) from = copied_in_ = std::max(copied_in_, from) + *copy;
    return stream_ = std::max(stream_, from) + time.value_or(Seconds(0));
  }
  std::optional<Seconds> prefetch(const std::vector<LayerWork>& layers, std::size_t i) {
    if (window_ < 2) return std::nullopt;
    while (i-- > 0)
      if (layers[i].comes_backward()) {
        if (layers[i].gather_again) return std::nullopt;
        return gather(layers[i].gather_backward, layers[i].copy_in, window_ - 1);
      }
    return std::nullopt;
  }
  void work(const LaneWork& w, bool gathered) {
    compute_ = std::max(compute_ + w.compute, host_ + w.begun);
    host_ += w.host;
    if (gathered) done_.push_back(compute_);
  }
  void reduce(const LayerWork& l) {
    if (l.reduce) stream_ = std::max(stream_, compute_) + *l.reduce;
    if (l.copy_out)
      copied_out_ = std::max(copied_out_, l.reduce ? stream_ : compute_) + *l.copy_out;
  }

  std::size_t window_;
  bool arrives_apart_;
  Seconds compute_, stream_, host_, started_, copied_in_, copied_out_;
  std::vector<Seconds> done_;  // ends of the layers of this pass that were gathered
};

// The lanes of one stage, slot by slot.
class StageLanes {
 public:
  // Arguments outlive this.
  StageLanes(const StageCosts& stage, const StepCosts& costs, int microbatches, bool host_bound)
      : reduces_always_(costs.reduces_every_microbatch),
        waits_always_(costs.host_waits_for_neighbours()),
        waits_forward_(waits_always_ || costs.stages.size() == 1),
        last_(microbatches - 1),
        lanes_(costs) {
    of_.reserve(stage.chunks.size());
    chunks_.reserve(stage.chunks.size());
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      if (stage.alike[c] == c) chunks_.emplace_back(stage.chunks[c], host_bound);
      of_.push_back(stage.alike[c] == c ? chunks_.size() - 1 : of_[stage.alike[c]]);
    }
  }

  // `input`: before this it is not there; `arrivals`: of the slot's chunk.
  void run(const Slot& slot, Seconds input, const ArrivalCost& arrivals) {
    const ChunkWork& chunk = chunks_[of_[static_cast<std::size_t>(slot.chunk)]];
    const bool reduces = reduces_always_ || slot.microbatch == last_;
    if (slot.pass == Pass::forward) {
      lanes_.begin(input, arrivals.forward, waits_forward_);
      lanes_.forward(chunk);
    } else if (slot.pass == Pass::backward_weight) {
      lanes_.weights(chunk, reduces);
    } else {
      lanes_.begin(input, arrivals.backward, waits_always_);
      lanes_.backward(chunk, slot.pass == Pass::backward, reduces);
    }
  }
  StageEnd end() const { return lanes_.end(); }

 private:
  std::vector<ChunkWork> chunks_;  // those that differ
  std::vector<std::size_t> of_;    // which of them each chunk is like
  bool reduces_always_;
  // The host waits for the GPU before it issues a pass: any one; with each microbatch that a single
  // stage gets. With the first of several stages it does too: a bound may leave that out.
  bool waits_always_, waits_forward_;
  int last_;
  TwoLanes lanes_;
};

}  // namespace shardwise
