// KeptInputs: what FSDP1's hooks keep of layers without a trained weight.
//
// Such a unit cannot reshard when its gradient is there, so FSDP waits for the gradients of its
// inputs instead (PyTorch torch/distributed/fsdp/_runtime_utils.py,
// _register_post_backward_reshard_only_hook). Under a reentrant checkpoint the inputs are those of
// the re-run, and input and gradient of every layer stay until the last one is through
// (calibrate/count_kept_inputs.py, torch 2.4.1): two tensors [tokens, h] per layer that backward
// has left, none under non-reentrant checkpoints, without FSDP or where all weights train.
#pragma once

#include <vector>

#include "simulator/memory/memory_ledger.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "simulator/model_partition.hpp"

namespace shardwise {

class KeptInputs {
 public:
  KeptInputs(const Workload& w, const StageHabits& habits, MemoryLedger& ledger)
      : keeps_(w.framework.sharding.frozen_units_keep_inputs && habits.shards_weights &&
               !w.trains_base()),
        ledger_(&ledger) {}

  // Backward has left a layer, whose output's gradient is the one that the layer before it kept.
  void pass(const LayerDefinition& d) {
    if (!keeps_ || d.script.recompute.empty()) return;
    const auto at = [&](TensorIndex t) { return d.graph.tensors[static_cast<std::size_t>(t)]; };
    if (!kept_.empty())
      kept_.push_back(ledger_->open(at(d.graph.output).gradient_bytes, MemoryCategory::recompute));
    kept_.push_back(ledger_->open(at(d.graph.input).bytes, MemoryCategory::recompute));
  }
  void release() {
    for (Holding& h : kept_) ledger_->close(h);
    kept_.clear();
  }

 private:
  bool keeps_;
  MemoryLedger* ledger_;
  std::vector<Holding> kept_;
};

}  // namespace shardwise
