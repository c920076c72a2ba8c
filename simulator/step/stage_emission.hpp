// How work of a pass comes to lie on one stage's lanes: the CPU issues it ahead of the GPU, the
// collectives that no kernel hides follow it, and then what is left of the copies to the host.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "simulator/costs/step_costs.hpp"
#include "simulator/step/step_marks.hpp"
#include "simulator/step/step_traffic.hpp"
#include "simulator/step/task_graph.hpp"

namespace shardwise {

// One stage's lanes as they are filled.
template <class Mark>
struct StageCursor {
  int stage = 0;
  TaskTag tag;
  Mark compute;                    // the last compute task, or the collective that followed it
  bool behind_collective = false;  // `compute` is a collective on another lane
  std::vector<Mark> layers;        // compute ends of this pass, for gather windows
  Mark reduced, gathered;          // the last of each
  Mark loaded;
  Mark host;
  PassTime span;  // work not yet emitted
  Mark pending_gather, pending_again;
  WorkKind kind = WorkKind::forward;
};

// Adds tasks to a Builder (step_lowering.hpp), which outlives this.
template <class Builder>
class StageEmission {
 public:
  using Mark = typename Builder::Mark;
  using Waits = WaitList<Mark>;
  using Cursor = StageCursor<Mark>;

  // `host_bound`: whether the CPU may be what kernels wait for (StepCosts::is_host_bound).
  StageEmission(bool host_bound, Builder& builder) : builder_(builder), host_bound_(host_bound) {}

  bool host_bound() const { return host_bound_; }

  Mark add(Cursor& at, LaneKind lane, Members members, WorkKind work, Seconds duration,
           const Waits& after, std::optional<TrafficKind> traffic = std::nullopt) {
    return builder_.add(at.stage, lane, members, work, duration, at.tag, after.marks(), traffic);
  }

  // The cursor's span, behind these marks and a collective that followed the last one.
  void emit(Cursor& at, Waits waits) {
    const Mark collective = at.compute;
    if (at.behind_collective) waits.add(collective);
    at.behind_collective = false;
    if (!host_bound_ || at.span.host <= Seconds(0)) {
      emit_device(at, at.span.whole(), waits);
    } else {
      for (const IssuedWork& part : at.span.waited) {
        emit_issued(at, part, waits);
        at.host =
            add(at, LaneKind::host, Members::alone, WorkKind::host, Seconds(0), {&at.compute});
        waits = {};
      }
      emit_issued(at, at.span.after_waits(), waits);
    }
    emit_copies(at);
    at.span = {};
  }

  // The same behind `pending`, which is none from then on; of no work, nothing.
  void flush(Cursor& at, Mark& pending) {
    if (at.span.device() <= Seconds(0) && at.span.host <= Seconds(0)) return;
    emit(at, {&pending});
    pending.clear();
  }

 private:
  // The kernels start when the host is as far ahead as their order asks for, and end no earlier
  // than it does.
  void emit_issued(Cursor& at, const IssuedWork& work, Waits waits) {
    const Seconds lead = std::min(work.lead, work.host);
    if (lead > Seconds(0))
      at.host = add(at, LaneKind::host, Members::alone, WorkKind::host, lead, {});
    const Mark begun = at.host;
    at.host = add(at, LaneKind::host, Members::alone, WorkKind::host, work.host - lead, {});
    waits.add(begun);
    emit_device(at, work, waits);
    at.compute =
        add(at, LaneKind::compute, Members::alone, at.kind, Seconds(0), {&at.host, &at.compute});
    at.behind_collective = false;
  }

  void emit_device(Cursor& at, const IssuedWork& work, const Waits& waits) {
    at.compute = add(at, LaneKind::compute, Members::alone, at.kind, work.compute, waits);
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
      if (work.exposed[i] <= Seconds(0)) continue;
      at.compute = add(at, axes[i].lane, axes[i].members, axes[i].work, work.exposed[i],
                       {&at.compute}, axes[i].traffic);
      at.behind_collective = true;
    }
  }

  // What the way to the host does not hide, behind the pass.
  void emit_copies(Cursor& at) {
    if (at.span.copies <= Seconds(0)) return;
    const bool forward = at.kind == WorkKind::forward;
    const Mark copied = add(at, forward ? LaneKind::copy_to_host : LaneKind::copy_to_device,
                            Members::alone, WorkKind::offload_copy, at.span.copies, {&at.compute},
                            forward ? TrafficKind::copy_out : TrafficKind::copy_in);
    at.compute = add(at, LaneKind::compute, Members::alone, at.kind, Seconds(0), {&copied});
  }

  Builder& builder_;
  bool host_bound_;
};

}  // namespace shardwise
