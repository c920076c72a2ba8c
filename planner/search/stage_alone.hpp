// StageAlone: what one stage's step takes at the least, by its own slots alone.
//
// Compute, the stream of data-parallel collectives and the host that issues both run the stage's
// slots in order as the step is lowered (simulator/step/step_lowering.hpp): the gather of a layer's
// weights waits for the stream, for the layer that leaves the window and for the pass before; a
// layer for its weights and for its issue; a reduction for its layer and the stream. So what a pass
// reduces holds up the weights of the next one. Whatever other stages send is there when it is
// asked for, but for the first slot's input: the step itself waits for more, so no step is shorter.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "catalog/units.hpp"
#include "simulator/costs/step_costs.hpp"
#include "simulator/parallel_plan.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {

// What a stage's compute spends on arrivals of one microbatch at a chunk, where no lane of their
// own takes them.
struct ArrivalCost {
  Seconds forward, backward;
};

struct StageEnd {
  Seconds compute, stream;  // when each lane is done
};

// REQUIRES slots of which none is paired with the next. `input`: before this the first slot's input
// is not there. `arrivals`: of each chunk. `host_bound`: of the costs; false counts no host.
StageEnd stage_alone(const std::vector<Slot>& slots, const StageCosts& stage,
                     const StepCosts& costs, int microbatches, Seconds input,
                     const std::vector<ArrivalCost>& arrivals, bool host_bound);

// The slots of a pipeline's stages, remembered; safe to ask from several threads.
class KnownSlots {
 public:
  using List = std::shared_ptr<const std::vector<Slot>>;  // nothing where slots run in pairs
  List of(const PipelineSchedule& schedule, PipelineShape shape, int stage);

 private:
  using Key = std::tuple<const PipelineSchedule*, int, int, int, int>;
  std::mutex mutex_;
  std::map<Key, List> known_;
};

}  // namespace shardwise
