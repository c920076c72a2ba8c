#include "simulator/lower.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "catalog/require.hpp"
#include "simulator/step_builder.hpp"

namespace shardwise {
namespace {

// The ends of one pass of one microbatch through one model chunk.
struct PassEnds {
  TaskSet done;      // compute has ended
  TaskSet transfer;  // the arrival of its input from another stage, if there is one
};

ParallelPlan rounds_of(ParallelPlan plan, const StepCosts& costs) {
  plan.microbatches = costs.rounds.value_or(plan.microbatches);
  return plan;
}

class StepLowering {
 public:
  StepLowering(const ParallelPlan& plan, const PipelineSchedule& schedule, const StepCosts& costs,
               bool unfold, const StepTraffic* traffic, const Variation* variation)
      : plan_(rounds_of(plan, costs)),
        schedule_(schedule),
        costs_(costs),
        shape_{plan_.pipeline, plan_.chunks, plan_.microbatches},
        model_chunks_(schedule.model_chunks(shape_)),
        builder_(plan_, costs, unfold, traffic, variation),
        forward_(table()),
        backward_(table()),
        host_bound_(is_host_bound()) {}

  LoweredStep run() {
    for (int stage = 0; stage < plan_.pipeline; ++stage) lower_stage(stage);
    link_stages();
    finish_step();
    const int replicas = builder_.replicas();
    return {builder_.take(), replicas};
  }

 private:
  using Table = std::vector<std::vector<PassEnds>>;  // [model chunk][microbatch]
  Table table() const {
    return Table(static_cast<std::size_t>(model_chunks_),
                 std::vector<PassEnds>(static_cast<std::size_t>(plan_.microbatches)));
  }

  const StageCosts& stage_costs(int stage) const {
    return costs_.stages[static_cast<std::size_t>(stage)];
  }
  const std::vector<LayerSchedule>& layers(int stage, int chunk) const {
    return stage_costs(stage).chunks[static_cast<std::size_t>(chunk)];
  }

  // Where no pass through any layer takes the host longer than the GPU, the host is always ahead
  // and its lane changes nothing.
  bool is_host_bound() const {
    const auto slow = [](const PassTime& t) { return t.host > t.device(); };
    for (const StageCosts& stage : costs_.stages)
      for (const auto& chunk : stage.chunks)
        for (const LayerSchedule& l : chunk) {
          PassTime back = l.time.recompute;
          back += l.time.backward_input;
          back += l.time.backward_weight;
          if (slow(l.time.forward) || slow(back)) return true;
        }
    return false;
  }

  // One stage's lanes as they are filled.
  struct Cursor {
    int stage = 0;
    TaskTag tag;
    TaskSet compute;                 // the last compute task, or the collective that followed it
    bool behind_collective = false;  // `compute` is a collective on another lane
    std::vector<TaskSet> layers;     // compute ends of this pass, for gather windows
    TaskSet reduced, gathered;       // the last of each
    TaskSet loaded;
    TaskSet host;
    PassTime span;  // work not yet emitted
    WorkKind kind = WorkKind::forward;
  };

  void lower_stage(int stage) {
    Cursor at;
    at.stage = stage;
    for (const Slot& slot : schedule_.order(shape_, stage)) {
      const int model_chunk = schedule_.model_chunk(shape_, stage, slot.chunk);
      at.tag = {stage, slot.chunk, std::min(slot.microbatch, 65535), 0};
      const auto c = static_cast<std::size_t>(model_chunk);
      const auto m = static_cast<std::size_t>(slot.microbatch);
      switch (slot.pass) {
        case Pass::forward:
          lower_forward(at, slot, forward_[c][m], model_chunk);
          break;
        case Pass::backward:
          lower_backward(at, slot, backward_[c][m], model_chunk, true);
          break;
        case Pass::backward_input:
          lower_backward(at, slot, backward_[c][m], model_chunk, false);
          break;
        case Pass::backward_weight:
          lower_weights(at, slot);
          break;
      }
    }
    ends_.push_back(std::move(at));
  }

  bool arrives_from_elsewhere(int stage, int neighbour) const {
    if (neighbour < 0 || neighbour >= model_chunks_) return false;
    // Where the model is held twice, the chunk next to it on a stage is of the other direction.
    if (schedule_.weight_copies > 1) return true;
    for (int k = 0; k < plan_.chunks; ++k)
      if (schedule_.model_chunk(shape_, stage, k) == neighbour) return false;
    return true;
  }

  // The wait for another stage: a transfer on this stage's own lane, or, where the framework does
  // not overlap it, time on the compute lane itself.
  void receive(Cursor& at, PassEnds& ends, int model_chunk, int from, LaneKind lane) {
    if (!arrives_from_elsewhere(at.stage, from)) return;
    const bool from_before = from < model_chunk;
    const int link = from_before ? (at.stage + plan_.pipeline - 1) % plan_.pipeline : at.stage;
    const Seconds time = costs_.send[static_cast<std::size_t>(link)];
    const bool apart = costs_.overlaps_pipeline_comm;
    ends.transfer = builder_.add(at.stage, apart ? lane : LaneKind::compute, Members::alone,
                                 WorkKind::pipeline_send, time, at.tag, {},
                                 lane == LaneKind::pipeline_comm ? TrafficKind::receive_forward
                                                                 : TrafficKind::receive_backward);
    if (apart) return;
    at.compute = ends.transfer;
    at.behind_collective = false;
  }

  void emit(Cursor& at, const std::vector<const TaskSet*>& after) {
    std::vector<const TaskSet*> waits = after;
    const TaskSet collective = at.compute;
    if (at.behind_collective) waits.push_back(&collective);
    at.behind_collective = false;
    if (host_bound_ && at.span.host > Seconds(0)) {
      // The kernels of a span start when the host begins to issue it, and end no earlier than it.
      const TaskSet begun = at.host;
      at.host = builder_.add(at.stage, LaneKind::host, Members::alone, WorkKind::host, at.span.host,
                             at.tag, {});
      waits.push_back(&begun);
      emit_device(at, waits);
      at.compute = builder_.add(at.stage, LaneKind::compute, Members::alone, at.kind, Seconds(0),
                                at.tag, {&at.host, &at.compute});
      at.behind_collective = false;
    } else {
      emit_device(at, waits);
    }
    at.span = {};
  }

  void emit_device(Cursor& at, const std::vector<const TaskSet*>& waits) {
    at.compute = builder_.add(at.stage, LaneKind::compute, Members::alone, at.kind, at.span.compute,
                              at.tag, waits);
    struct Axis {
      LaneKind lane;
      WorkKind work;
      Members members;
      TrafficKind traffic;
    };
    static constexpr std::array<Axis, 3> axes{{
        {LaneKind::tensor_comm, WorkKind::tensor_comm, Members::tensor_group, TrafficKind::tensor},
        {LaneKind::context_comm, WorkKind::context_comm, Members::data_group, TrafficKind::context},
        {LaneKind::expert_comm, WorkKind::expert_comm, Members::expert_group, TrafficKind::expert},
    }};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (at.span.exposed[i] <= Seconds(0)) continue;
      at.compute = builder_.add(at.stage, axes[i].lane, axes[i].members, axes[i].work,
                                at.span.exposed[i], at.tag, {&at.compute}, axes[i].traffic);
      at.behind_collective = true;
    }
  }

  void flush(Cursor& at, TaskSet& pending) {
    if (at.span.device() <= Seconds(0) && at.span.host <= Seconds(0)) return;
    emit(at, {&pending});
    pending.clear();
  }

  std::size_t window() const {
    return static_cast<std::size_t>(std::max(1.0, costs_.gather_window));
  }

  // The gather of a layer's weights may start once the layer that leaves the window is done:
  // `behind` layers before the last one that was emitted.
  TaskSet gather(Cursor& at, Seconds time, std::optional<Seconds> copy, const TaskSet& input,
                 std::size_t behind) {
    std::vector<const TaskSet*> after;
    if (behind > 0 && at.layers.size() >= behind)
      after.push_back(&at.layers[at.layers.size() - behind]);
    else
      after.push_back(&input);
    TaskSet copied;
    if (copy) {
      copied = builder_.add(at.stage, LaneKind::copy_to_device, Members::alone,
                            WorkKind::offload_copy, *copy, at.tag, after, TrafficKind::copy_in);
      after = {&copied};
    }
    at.gathered =
        builder_.add(at.stage, LaneKind::data_comm, Members::data_group,
                     WorkKind::gather_parameters, time, at.tag, after, TrafficKind::gather);
    return at.gathered;
  }

  // The CPU waits for the GPU: with the blocking copy that brings a microbatch to the first stage
  // (PyTorch synchronizes the stream, aten/src/ATen/native/cuda/Copy.cu), and with every exchange
  // between stages that is not overlapped (Megatron-LM megatron/core/model_parallel_config.py,
  // batch_p2p_sync). It then issues the next pass to an empty queue.
  void wait_on_host(Cursor& at, const TaskSet& arrival) {
    if (!host_bound_) return;
    at.host = builder_.add(at.stage, LaneKind::host, Members::alone, WorkKind::host, Seconds(0),
                           at.tag, {&at.compute, &arrival});
  }
  bool waits_for_neighbours() const { return plan_.pipeline > 1 && !costs_.overlaps_pipeline_comm; }

  void lower_forward(Cursor& at, const Slot& slot, PassEnds& ends, int model_chunk) {
    receive(at, ends, model_chunk, model_chunk - 1, LaneKind::pipeline_comm);
    if (model_chunk == 0 || waits_for_neighbours()) wait_on_host(at, ends.transfer);
    const TaskSet started = at.compute;
    TaskSet pending = ends.transfer;
    if (model_chunk == 0) load(at, pending);
    at.kind = WorkKind::forward;
    at.layers.clear();
    const auto& list = layers(at.stage, slot.chunk);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const LayerSchedule& l = list[i];
      at.tag.layer = static_cast<int>(i);
      std::optional<Seconds> wanted = l.gather_forward;
      if (!wanted && slot.microbatch == 0) wanted = l.gather_first;
      if (wanted || l.copy_in) {
        flush(at, pending);
        const TaskSet here = gather(at, wanted.value_or(Seconds(0)), l.copy_in, started, window());
        at.span = l.time.forward;
        emit(at, {&pending, &here});
        pending.clear();
        at.layers.push_back(at.compute);
      } else {
        at.span += l.time.forward;
        if (host_bound_) flush(at, pending);
      }
    }
    if (list.empty()) emit(at, {&pending});  // a stage without layers passes on what it gets
    flush(at, pending);
    ends.done = at.compute;
  }

  // The loader works ahead: what it loads beside one microbatch feeds the next one, and the first
  // of a step was loaded beside the last step.
  void load(Cursor& at, TaskSet& pending) {
    const auto& time = stage_costs(at.stage).load;
    if (!time) return;
    if (!at.loaded.empty()) pending = at.loaded;
    at.loaded = builder_.add(at.stage, LaneKind::loader, Members::alone, WorkKind::loader, *time,
                             at.tag, {});
  }

  void lower_backward(Cursor& at, const Slot& slot, PassEnds& ends, int model_chunk, bool whole) {
    receive(at, ends, model_chunk, model_chunk + 1, LaneKind::pipeline_comm_backward);
    if (waits_for_neighbours()) wait_on_host(at, ends.transfer);
    const TaskSet started = at.compute;
    TaskSet pending = ends.transfer;
    at.layers.clear();
    const bool reduces =
        costs_.reduces_every_microbatch || slot.microbatch == plan_.microbatches - 1;
    const auto& list = layers(at.stage, slot.chunk);
    PassTime recomputed;
    TaskSet ahead;  // the gather that was issued before the layer that it is for had its turn
    for (std::size_t i = list.size(); i-- > 0;) {
      const LayerSchedule& l = list[i];
      at.tag.layer = static_cast<int>(i);
      const bool gathers = gathers_backward(l);
      const bool reduce_here = reduces && whole && l.reduce.has_value();
      if (gathers) {
        flush_backward(at, pending, recomputed);
        pending_gather_ = ahead.empty() ? gather_backward(at, l, started, window()) : ahead;
        ahead = prefetch(at, list, i, started);
      }
      recomputed += l.time.recompute;
      at.span += l.time.backward_input;
      if (whole) at.span += l.time.backward_weight;
      if (gathers || reduce_here || host_bound_) flush_backward(at, pending, recomputed);
      if (gathers) at.layers.push_back(at.compute);
      if (reduce_here) reduce(at, l);
    }
    if (list.empty()) emit(at, {&pending});
    flush_backward(at, pending, recomputed);
    ends.done = at.compute;
  }

  static bool gathers_backward(const LayerSchedule& l) {
    return l.gather_backward.has_value() || l.copy_in.has_value();
  }

  TaskSet gather_backward(Cursor& at, const LayerSchedule& l, const TaskSet& input,
                          std::size_t behind) {
    return gather(at, l.gather_backward.value_or(Seconds(0)), l.copy_in, input, behind);
  }

  // The next layer's weights are asked for before this layer's gradients are reduced on the same
  // stream (FSDP's BACKWARD_PRE); empty where the window holds one layer only or none follows.
  TaskSet prefetch(Cursor& at, const std::vector<LayerSchedule>& list, std::size_t i,
                   const TaskSet& input) {
    if (window() < 2) return {};
    while (i-- > 0)
      if (gathers_backward(list[i])) return gather_backward(at, list[i], input, window() - 1);
    return {};
  }

  void flush_backward(Cursor& at, TaskSet& pending, PassTime& recomputed) {
    std::vector<const TaskSet*> after{&pending, &pending_gather_};
    if (recomputed.device() > Seconds(0)) {
      const PassTime back = at.span;
      at.span = recomputed;
      at.kind = WorkKind::recompute;
      emit(at, after);
      at.span = back;
      after.clear();
    }
    at.kind = WorkKind::backward;
    if (at.span.device() > Seconds(0) || at.span.host > Seconds(0)) emit(at, after);
    recomputed = {};
    pending.clear();
    pending_gather_.clear();
  }

  void lower_weights(Cursor& at, const Slot& slot) {
    const auto& list = layers(at.stage, slot.chunk);
    const bool reduces =
        costs_.reduces_every_microbatch || slot.microbatch == plan_.microbatches - 1;
    at.kind = WorkKind::backward_weight;
    TaskSet nothing;
    for (std::size_t i = list.size(); i-- > 0;) {
      at.tag.layer = static_cast<int>(i);
      at.span += list[i].time.backward_weight;
      if (!reduces || !list[i].reduce) continue;
      flush(at, nothing);
      reduce(at, list[i]);
    }
    flush(at, nothing);
  }

  void reduce(Cursor& at, const LayerSchedule& l) {
    at.reduced =
        builder_.add(at.stage, LaneKind::data_comm, Members::data_group, WorkKind::reduce_gradients,
                     *l.reduce, at.tag, {&at.compute}, TrafficKind::reduce);
    if (!l.copy_out) return;
    at.reduced =
        builder_.add(at.stage, LaneKind::copy_to_host, Members::alone, WorkKind::offload_copy,
                     *l.copy_out, at.tag, {&at.reduced}, TrafficKind::copy_out);
  }

  // Transfers wait for the pass that makes what they carry.
  void link_stages() {
    for (int c = 0; c < model_chunks_; ++c)
      for (int m = 0; m < plan_.microbatches; ++m) {
        const auto chunk = static_cast<std::size_t>(c), micro = static_cast<std::size_t>(m);
        PassEnds& f = forward_[chunk][micro];
        PassEnds& b = backward_[chunk][micro];
        if (!f.transfer.empty()) builder_.link(forward_[chunk - 1][micro].done, f.transfer);
        if (!b.transfer.empty()) builder_.link(backward_[chunk + 1][micro].done, b.transfer);
      }
  }

  void finish_step() {
    std::vector<TaskSet> ready;
    for (Cursor& at : ends_) {
      const StageCosts& costs = stage_costs(at.stage);
      at.tag = {at.stage, 0, 0, 0};
      TaskSet reduced = at.reduced;
      if (costs.reduce_at_end)
        reduced = builder_.add(at.stage, LaneKind::data_comm, Members::data_group,
                               WorkKind::reduce_gradients, *costs.reduce_at_end, at.tag,
                               {&at.compute, &reduced}, TrafficKind::reduce);
      ready.push_back(builder_.add(at.stage, LaneKind::compute, Members::alone, WorkKind::optimizer,
                                   Seconds(0), at.tag, {&reduced}));
    }
    for (Cursor& at : ends_) step_optimizer(at, ready);
  }

  void step_optimizer(Cursor& at, const std::vector<TaskSet>& ready) {
    const StageCosts& costs = stage_costs(at.stage);
    std::vector<const TaskSet*> after;
    if (costs_.waits_for_all_stages)
      for (const TaskSet& stage : ready) after.push_back(&stage);
    TaskSet issued = builder_.add(at.stage, LaneKind::host, Members::alone, WorkKind::host,
                                  costs.host_per_step, at.tag, after);
    const auto swap = [&] {
      if (!costs.nvme_each_way) return;
      issued = builder_.add(at.stage, LaneKind::host_optimizer, Members::alone,
                            WorkKind::offload_copy, *costs.nvme_each_way, at.tag, {&issued});
    };
    swap();
    if (costs.host_optimizer)
      issued =
          builder_.add(at.stage, LaneKind::host_optimizer, Members::alone, WorkKind::host_optimizer,
                       *costs.host_optimizer, at.tag, {&issued}, TrafficKind::host_optimizer);
    swap();
    TaskSet done = builder_.add(at.stage, LaneKind::compute, Members::alone, WorkKind::optimizer,
                                costs.optimizer, at.tag, {&issued});
    if (costs.copy_in_at_end)
      done =
          builder_.add(at.stage, LaneKind::copy_to_device, Members::alone, WorkKind::offload_copy,
                       *costs.copy_in_at_end, at.tag, {&done}, TrafficKind::copy_in);
    if (costs.gather_at_end)
      builder_.add(at.stage, LaneKind::data_comm, Members::data_group, WorkKind::gather_parameters,
                   *costs.gather_at_end, at.tag, {&done}, TrafficKind::gather);
  }

  const ParallelPlan plan_;
  const PipelineSchedule& schedule_;
  const StepCosts& costs_;
  PipelineShape shape_;
  int model_chunks_;
  StepBuilder builder_;
  Table forward_, backward_;
  bool host_bound_;
  TaskSet pending_gather_;
  std::vector<Cursor> ends_;
};

}  // namespace

LoweredStep lower(const ParallelPlan& plan, const PipelineSchedule& schedule,
                  const StepCosts& costs, bool unfold, const StepTraffic* traffic,
                  const Variation* variation) {
  require(static_cast<int>(costs.stages.size()) == plan.pipeline, "costs for every stage");
  return StepLowering(plan, schedule, costs, unfold, traffic, variation).run();
}

}  // namespace shardwise
