// CollectiveUse: one collective of a training step, how NCCL runs it, and how often a rank does.
#pragma once

#include <vector>

#include "catalog/collective.hpp"
#include "catalog/units.hpp"
#include "simulator/network/collective_model.hpp"
#include "simulator/rank_layout.hpp"
#include "simulator/work_kind.hpp"

namespace shardwise {

struct CollectiveUse {
  WorkKind work = WorkKind::other;  // what it is for
  GroupKind group = GroupKind::data;
  GroupShape shape;
  Collective collective = Collective::all_reduce;
  Bytes size;           // as collective.hpp counts it
  CollectiveTime each;  // while nobody else uses the links: time, algorithm, protocol
  bool beside = false;  // hidden behind kernels of the same operator
  double per_step = 1;  // times that one rank takes part
};

// Adds a use, to one of the same message where there is one.
inline void add_use(std::vector<CollectiveUse>& uses, const CollectiveUse& use) {
  for (CollectiveUse& known : uses)
    if (known.work == use.work && known.group == use.group && known.collective == use.collective &&
        known.size == use.size && known.beside == use.beside && known.shape == use.shape) {
      known.per_step += use.per_step;
      return;
    }
  uses.push_back(use);
}

}  // namespace shardwise
