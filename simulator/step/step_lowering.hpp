// StepLowering: the tasks of a training step, stage by stage and slot by slot, in whatever form a
// Builder keeps them: StepBuilder as a TaskGraph of all ranks, SlotRecorder as what one slot does
// to the lanes of one stage. This is the one place that says which work follows which.
//
// A Builder has a type Mark (the tasks that stand for the end of some work; default: of none, with
// empty() and clear()), and
//
//   add(stage, lane, members, work, duration, tag, marks to wait for, traffic)  ->  Mark
//   arrival(stage, lane, duration, tag, traffic)  ->  Mark
//       of what another stage sends, which waits for that stage's pass (PassEnds)
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/costs/step_costs.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/step/stage_emission.hpp"
#include "simulator/step/step_marks.hpp"
#include "simulator/step/step_traffic.hpp"
#include "simulator/step/task_graph.hpp"

namespace shardwise {

template <class Builder>
class StepLowering {
 public:
  using Mark = typename Builder::Mark;
  using Waits = WaitList<Mark>;
  using Cursor = StageCursor<Mark>;

  // All arguments outlive this. `plan` runs the microbatches that the costs say (rounds_of).
  StepLowering(const ParallelPlan& plan, const PipelineSchedule& schedule, const StepCosts& costs,
               Builder& builder)
      : plan_(plan),
        schedule_(schedule),
        costs_(costs),
        shape_{plan.pipeline, plan.chunks, plan.microbatches},
        model_chunks_(schedule.model_chunks(shape_)),
        builder_(builder),
        lanes_(costs.is_host_bound(), builder) {}

  int model_chunks() const { return model_chunks_; }

  // Whether the input of the pass beside model chunk `neighbour` comes from another stage.
  bool arrives_from_elsewhere(int stage, int neighbour) const {
    if (neighbour < 0 || neighbour >= model_chunks_) return false;
    // Where the model is held twice, the chunk next to it on a stage is of the other direction.
    if (schedule_.weight_copies > 1) return true;
    for (int k = 0; k < plan_.chunks; ++k)
      if (schedule_.model_chunk(shape_, stage, k) == neighbour) return false;
    return true;
  }

  // The first and last microbatch of a slot's chunk: for the one weights that stay are gathered,
  // after the other gradients are reduced.
  bool is_first(const Slot& slot) const {
    return slot.microbatch == microbatches_of(schedule_, slot.chunk, plan_.microbatches).first;
  }
  bool is_last(const Slot& slot) const {
    return slot.microbatch == microbatches_of(schedule_, slot.chunk, plan_.microbatches).last;
  }

  // Which of these the tasks of the latest slot have depended on.
  struct Asked {
    bool first = false, last = false;
  };
  Asked asked() const { return asked_; }

  // The next slot of the stage. `ends`: where the ends of its pass go, if it has any.
  void lower_slot(Cursor& at, const Slot& slot, PassEnds<Mark>& ends) {
    const int model_chunk = schedule_.model_chunk(shape_, at.stage, slot.chunk);
    at.tag = {at.stage, slot.chunk, std::min(slot.microbatch, 65535), 0};
    asked_ = {};
    switch (slot.pass) {
      case Pass::forward:
        return lower_forward(at, slot, ends, model_chunk);
      case Pass::backward:
        return lower_backward(at, slot, ends, model_chunk, true);
      case Pass::backward_input:
        return lower_backward(at, slot, ends, model_chunk, false);
      case Pass::backward_weight:
        return lower_weights(at, slot);
    }
  }

  // What follows the last slots: first on every stage what is left of the reductions and what two
  // of them have tied, then its optimizer, which waits for the marks of all stages where the costs
  // say so.
  void finish(std::vector<Cursor>& stages) {
    std::vector<Mark> ready;
    for (Cursor& at : stages) ready.push_back(finish_reductions(at));
    for (const TiedReduction& tied : costs_.tied) {
      Mark& first = ready[static_cast<std::size_t>(tied.first)];
      Mark& last = ready[static_cast<std::size_t>(tied.last)];
      const Mark of_first = first, of_last = last;
      first = reduce_tied(stages[static_cast<std::size_t>(tied.first)], of_first, of_last);
      last = reduce_tied(stages[static_cast<std::size_t>(tied.last)], of_last, of_first);
    }
    std::vector<const Mark*> all;
    if (costs_.waits_for_all_stages)
      for (const Mark& stage : ready) all.push_back(&stage);
    for (Cursor& at : stages) step_optimizer(at, all);
  }

  Mark finish_reductions(Cursor& at) {
    const StageCosts& costs = stage_costs(at.stage);
    at.tag = {at.stage, 0, 0, 0};
    Mark reduced = at.reduced;
    if (costs.reduce_at_end)
      reduced = lanes_.add(at, LaneKind::data_comm, Members::data_group, WorkKind::reduce_gradients,
                           *costs.reduce_at_end, {&at.compute, &reduced}, TrafficKind::reduce);
    if (costs.copy_out_at_end)
      reduced = lanes_.add(at, LaneKind::copy_to_host, Members::alone, WorkKind::offload_copy,
                           *costs.copy_out_at_end, {&at.compute, &reduced}, TrafficKind::copy_out);
    return lanes_.add(at, LaneKind::compute, Members::alone, WorkKind::optimizer, Seconds(0),
                      {&at.compute, &reduced});
  }

  // `own`, `other`: the marks of finish_reductions() on this stage and the other one. Megatron-LM
  // megatron/core/distributed/finalize_model_grads.py, _allreduce_word_embedding_grads; DeepSpeed
  // deepspeed/runtime/pipe/module.py, allreduce_tied_weight_gradients, which comes before its other
  // reductions; nanotron trainer.py, sync_tied_weights_gradients.
  Mark reduce_tied(Cursor& at, const Mark& own, const Mark& other) {
    const Mark sum = lanes_.add(at, LaneKind::data_comm, Members::alone, WorkKind::reduce_gradients,
                                costs_.tied_at(at.stage)->time, {&own, &other});
    return lanes_.add(at, LaneKind::compute, Members::alone, WorkKind::optimizer, Seconds(0),
                      {&sum});
  }

  void step_optimizer(Cursor& at, std::span<const Mark* const> after) {
    const StageCosts& costs = stage_costs(at.stage);
    Mark issued = builder_.add(at.stage, LaneKind::host, Members::alone, WorkKind::host,
                               costs.host_per_step, at.tag, after, std::nullopt);
    // The CPU steps gradients that are there: behind what compute waits for, which is the last of
    // them, where the stage waits for no other.
    if (costs.host_optimizer && after.empty())
      issued = lanes_.add(at, LaneKind::compute, Members::alone, WorkKind::optimizer, Seconds(0),
                          {&issued});
    const auto swap = [&] {
      if (!costs.nvme_each_way) return;
      issued = lanes_.add(at, LaneKind::host_optimizer, Members::alone, WorkKind::offload_copy,
                          *costs.nvme_each_way, {&issued});
    };
    swap();
    if (costs.host_optimizer)
      issued = lanes_.add(at, LaneKind::host_optimizer, Members::alone, WorkKind::host_optimizer,
                          *costs.host_optimizer, {&issued}, TrafficKind::host_optimizer);
    swap();
    Mark done = lanes_.add(at, LaneKind::compute, Members::alone, WorkKind::optimizer,
                           costs.optimizer, {&issued});
    if (costs.copy_in_at_end)
      done = lanes_.add(at, LaneKind::copy_to_device, Members::alone, WorkKind::offload_copy,
                        *costs.copy_in_at_end, {&done}, TrafficKind::copy_in);
    if (costs.gather_at_end)
      lanes_.add(at, LaneKind::data_comm, Members::data_group, WorkKind::gather_parameters,
                 *costs.gather_at_end, {&done}, TrafficKind::gather);
  }

 private:
  const StageCosts& stage_costs(int stage) const {
    return costs_.stages[static_cast<std::size_t>(stage)];
  }
  const std::vector<LayerSchedule>& layers(int stage, int chunk) const {
    return stage_costs(stage).chunks[static_cast<std::size_t>(chunk)];
  }

  // The wait for another stage: a transfer on this stage's own lane, or, where the framework does
  // not overlap it, time on the compute lane itself.
  void receive(Cursor& at, PassEnds<Mark>& ends, int model_chunk, int from, LaneKind lane) {
    if (!arrives_from_elsewhere(at.stage, from)) return;
    const bool from_before = from < model_chunk;
    const int link = from_before ? (at.stage + plan_.pipeline - 1) % plan_.pipeline : at.stage;
    const Seconds time = costs_.send[static_cast<std::size_t>(link)];
    const bool apart = costs_.overlaps_pipeline_comm;
    // A stream of transfers waits for what the GPU was given before (PyTorch
    // torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, syncStream), collectives of the last pass
    // too.
    const bool follows = !apart && at.behind_collective;
    const Mark before = follows ? at.compute : Mark{};
    ends.transfer =
        builder_.arrival(at.stage, apart ? lane : LaneKind::compute, time, at.tag, before,
                         lane == LaneKind::pipeline_comm ? TrafficKind::receive_forward
                                                         : TrafficKind::receive_backward);
    if (apart) return;
    at.compute = ends.transfer;
    at.behind_collective = false;
  }

  std::size_t window() const {
    return static_cast<std::size_t>(std::max(1.0, costs_.gather_window));
  }

  // The gather of a layer's weights may start once the layer that leaves the window is done:
  // `behind` layers before the last one that was emitted.
  Mark gather(Cursor& at, Seconds time, std::optional<Seconds> copy, const Mark& input,
              std::size_t behind) {
    const Mark* after =
        behind > 0 && at.layers.size() >= behind ? &at.layers[at.layers.size() - behind] : &input;
    Mark copied;
    if (copy) {
      copied = lanes_.add(at, LaneKind::copy_to_device, Members::alone, WorkKind::offload_copy,
                          *copy, {after}, TrafficKind::copy_in);
      after = &copied;
    }
    at.gathered = lanes_.add(at, LaneKind::data_comm, Members::data_group,
                             WorkKind::gather_parameters, time, {after}, TrafficKind::gather);
    return at.gathered;
  }

  // The CPU waits for the GPU: with the blocking copy that brings a microbatch to the first stage
  // (PyTorch synchronizes the stream, aten/src/ATen/native/cuda/Copy.cu), and with every exchange
  // between stages that is not overlapped (Megatron-LM megatron/core/model_parallel_config.py,
  // batch_p2p_sync). It then issues the next pass to an empty queue.
  void wait_on_host(Cursor& at, const Mark& arrival) {
    if (!lanes_.host_bound()) return;
    at.host = lanes_.add(at, LaneKind::host, Members::alone, WorkKind::host, Seconds(0),
                         {&at.compute, &arrival});
  }
  bool waits_for_neighbours() const { return plan_.pipeline > 1 && !costs_.overlaps_pipeline_comm; }

  void lower_forward(Cursor& at, const Slot& slot, PassEnds<Mark>& ends, int model_chunk) {
    receive(at, ends, model_chunk, model_chunk - 1, LaneKind::pipeline_comm);
    if (model_chunk == 0 || waits_for_neighbours()) wait_on_host(at, ends.transfer);
    const Mark started = at.compute;
    Mark pending = ends.transfer;
    if (model_chunk == 0) load(at, pending);
    at.kind = WorkKind::forward;
    at.layers.clear();
    const auto& list = layers(at.stage, slot.chunk);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const LayerSchedule& l = list[i];
      at.tag.layer = static_cast<int>(i);
      std::optional<Seconds> wanted = l.gather_forward;
      if (!wanted && l.gather_first && asks_first(slot)) wanted = l.gather_first;
      if (wanted || l.copy_in) {
        lanes_.flush(at, pending);
        const Mark here = gather(at, wanted.value_or(Seconds(0)), l.copy_in, started, window());
        at.span = l.time.forward;
        lanes_.emit(at, {&pending, &here});
        pending.clear();
        at.layers.push_back(at.compute);
      } else {
        at.span += l.time.forward;
        if (lanes_.host_bound()) lanes_.flush(at, pending);
      }
    }
    if (list.empty()) lanes_.emit(at, {&pending});  // a stage without layers passes on what it gets
    lanes_.flush(at, pending);
    ends.done = at.compute;
  }

  // The loader works ahead: what it loads beside one microbatch feeds the next one, and the first
  // of a step was loaded beside the last step.
  void load(Cursor& at, Mark& pending) {
    const auto& time = stage_costs(at.stage).load;
    if (!time) return;
    if (!at.loaded.empty()) pending = at.loaded;
    at.loaded = lanes_.add(at, LaneKind::loader, Members::alone, WorkKind::loader, *time, {});
  }

  void lower_backward(Cursor& at, const Slot& slot, PassEnds<Mark>& ends, int model_chunk,
                      bool whole) {
    receive(at, ends, model_chunk, model_chunk + 1, LaneKind::pipeline_comm_backward);
    if (waits_for_neighbours()) wait_on_host(at, ends.transfer);
    const Mark started = at.compute;
    Mark pending = ends.transfer;
    at.layers.clear();
    const auto& list = layers(at.stage, slot.chunk);
    PassTime recomputed;
    Mark ahead;  // the gather that was issued before the layer that it is for had its turn
    for (std::size_t i = list.size(); i-- > 0;) {
      const LayerSchedule& l = list[i];
      at.tag.layer = static_cast<int>(i);
      const bool gathers = gathers_backward(l);
      const bool reduce_here = whole && gradients_go(l) && reduces(slot);
      if (gathers) {
        flush_backward(at, pending, recomputed);
        at.pending_gather = ahead.empty() ? gather_backward(at, l, started, window()) : ahead;
        if (l.gather_again)
          at.pending_again = gather(at, *l.gather_again, std::nullopt, started, window());
        ahead = prefetch(at, list, i, started);
      }
      recomputed += l.time.recompute;
      at.span += l.time.backward_input;
      if (whole) at.span += l.time.backward_weight;
      if (gathers || reduce_here || lanes_.host_bound()) flush_backward(at, pending, recomputed);
      if (gathers) at.layers.push_back(at.compute);
      if (reduce_here) reduce(at, l);
    }
    if (list.empty()) lanes_.emit(at, {&pending});
    flush_backward(at, pending, recomputed);
    ends.done = at.compute;
  }

  static bool gathers_backward(const LayerSchedule& l) {
    return l.gather_backward.has_value() || l.copy_in.has_value();
  }

  Mark gather_backward(Cursor& at, const LayerSchedule& l, const Mark& input, std::size_t behind) {
    return gather(at, l.gather_backward.value_or(Seconds(0)), l.copy_in, input, behind);
  }

  // The next layer's weights are asked for before this layer's gradients are reduced on the same
  // stream (FSDP's BACKWARD_PRE); empty where the window holds one layer only, none follows, or one
  // that its recomputation gathers.
  Mark prefetch(Cursor& at, const std::vector<LayerSchedule>& list, std::size_t i,
                const Mark& input) {
    if (window() < 2) return {};
    while (i-- > 0)
      if (gathers_backward(list[i]))
        return list[i].gather_again ? Mark{} : gather_backward(at, list[i], input, window() - 1);
    return {};
  }

  void flush_backward(Cursor& at, Mark& pending, PassTime& recomputed) {
    const bool nothing = recomputed.device() <= Seconds(0) && at.span.device() <= Seconds(0) &&
                         at.span.host <= Seconds(0);
    if (nothing) return;  // what is waited for stays waited for
    Waits after{&pending, &at.pending_gather};
    if (recomputed.device() > Seconds(0)) {
      const PassTime back = at.span;
      at.span = recomputed;
      at.kind = WorkKind::recompute;
      lanes_.emit(at, after);
      at.span = back;
      after = {};
    }
    after.add(at.pending_again);
    at.kind = WorkKind::backward;
    if (at.span.device() > Seconds(0) || at.span.host > Seconds(0)) lanes_.emit(at, after);
    recomputed = {};
    pending.clear();
    at.pending_gather.clear();
    at.pending_again.clear();
  }

  void lower_weights(Cursor& at, const Slot& slot) {
    const auto& list = layers(at.stage, slot.chunk);
    at.kind = WorkKind::backward_weight;
    Mark nothing;
    for (std::size_t i = list.size(); i-- > 0;) {
      at.tag.layer = static_cast<int>(i);
      at.span += list[i].time.backward_weight;
      if (!gradients_go(list[i]) || !reduces(slot)) continue;
      lanes_.flush(at, nothing);
      reduce(at, list[i]);
    }
    lanes_.flush(at, nothing);
  }

  bool asks_first(const Slot& slot) {
    asked_.first = true;
    return is_first(slot);
  }
  bool reduces(const Slot& slot) {
    if (costs_.reduces_every_microbatch) return true;
    asked_.last = true;
    return is_last(slot);
  }

  // To other ranks, to the host, or both.
  static bool gradients_go(const LayerSchedule& l) { return l.reduce || l.copy_out; }

  void reduce(Cursor& at, const LayerSchedule& l) {
    if (l.reduce)
      at.reduced =
          lanes_.add(at, LaneKind::data_comm, Members::data_group, WorkKind::reduce_gradients,
                     *l.reduce, {&at.compute}, TrafficKind::reduce);
    if (l.reduce && costs_.reduces_in_line) {
      at.compute = at.reduced;
      at.behind_collective = true;
    }
    if (!l.copy_out) return;
    at.reduced =
        lanes_.add(at, LaneKind::copy_to_host, Members::alone, WorkKind::offload_copy, *l.copy_out,
                   {l.reduce ? &at.reduced : &at.compute}, TrafficKind::copy_out);
  }

  const ParallelPlan& plan_;
  const PipelineSchedule& schedule_;
  const StepCosts& costs_;
  PipelineShape shape_;
  int model_chunks_;
  Builder& builder_;
  StageEmission<Builder> lanes_;
  Asked asked_;
};

}  // namespace shardwise
