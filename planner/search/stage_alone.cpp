#include "planner/search/stage_alone.hpp"

#include <algorithm>
#include <utility>

namespace shardwise {
namespace {

// One layer of one chunk, as far as it takes these two lanes.
struct LayerWork {
  Seconds forward, input, weight;
  std::optional<Seconds> gather_forward, gather_backward, reduce;
};

std::vector<LayerWork> works_of(const std::vector<LayerSchedule>& layers) {
  std::vector<LayerWork> works;
  works.reserve(layers.size());
  for (const LayerSchedule& l : layers)
    works.push_back(
        {l.time.forward.device(), l.time.recompute.device() + l.time.backward_input.device(),
         l.time.backward_weight.device(), l.gather_forward, l.gather_backward, l.reduce});
  return works;
}

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

  void forward(const std::vector<LayerWork>& layers) {
    for (const LayerWork& l : layers) {
      if (l.gather_forward) compute_ = std::max(compute_, gather(*l.gather_forward, window_));
      work(l.forward, l.gather_forward.has_value());
    }
  }

  // The next layer's weights are asked for before this one's gradients are reduced.
  void backward(const std::vector<LayerWork>& layers, bool whole, bool reduces) {
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

  void weights(const std::vector<LayerWork>& layers, bool reduces) {
    for (auto l = layers.rbegin(); l != layers.rend(); ++l) {
      compute_ += l->weight;
      if (reduces && l->reduce) reduce(*l->reduce);
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

}  // namespace

StageEnd stage_alone(const std::vector<Slot>& slots, const StageCosts& stage,
                     const StepCosts& costs, int microbatches, Seconds input,
                     const std::vector<ArrivalCost>& arrivals) {
  std::vector<std::vector<LayerWork>> chunks(stage.chunks.size());
  for (std::size_t c = 0; c < chunks.size(); ++c)
    chunks[c] = stage.alike[c] < c ? chunks[stage.alike[c]] : works_of(stage.chunks[c]);
  TwoLanes lanes(costs);
  for (const Slot& slot : slots) {
    const auto c = static_cast<std::size_t>(slot.chunk);
    const bool reduces = costs.reduces_every_microbatch || slot.microbatch == microbatches - 1;
    if (slot.pass == Pass::forward) {
      lanes.begin(input, arrivals[c].forward);
      lanes.forward(chunks[c]);
    } else if (slot.pass == Pass::backward_weight) {
      lanes.weights(chunks[c], reduces);
    } else {
      lanes.begin(input, arrivals[c].backward);
      lanes.backward(chunks[c], slot.pass == Pass::backward, reduces);
    }
    input = Seconds(0);
  }
  return lanes.end();
}

KnownSlots::List KnownSlots::of(const PipelineSchedule& schedule, PipelineShape shape, int stage) {
  const Key key{&schedule, shape.stages, shape.chunks_per_stage, shape.microbatches, stage};
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
  }
  auto slots = schedule.order(shape, stage);
  List list;
  if (std::none_of(slots.begin(), slots.end(), [](const Slot& s) { return s.paired_with_next; }))
    list = std::make_shared<const std::vector<Slot>>(std::move(slots));
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(list)).first->second;
}

}  // namespace shardwise
