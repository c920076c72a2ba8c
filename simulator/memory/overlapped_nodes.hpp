// OverlappedNodes: what stays of a backward pass that runs beside another microbatch's forward one.
//
// Where the exchange with the experts hides behind another microbatch, Megatron-LM cuts a layer
// into nodes: attention, what prepares the dispatch, dispatch, experts, combine. Before core 0.16 a
// node whose backward was done dropped neither its inputs, which hold their gradients, nor its
// outputs, until the pass over the whole chunk was through (NVIDIA/Megatron-LM @a56a0b001d^
// megatron/core/models/gpt/fine_grained_callables.py, TransformerLayerNode._release_state hides
// that of ScheduleNode in megatron/core/pipeline_parallel/utils.py; mended by @a56a0b001d, pull
// request 2236, January 2026). What a node frees itself (should_free_input) is gone. Of a layer
// with t tokens [t, h] and d rows [d, h] that a rank is sent:
//
//   attention   its input, the gradient of that, its output         3 t
//   preparation the gradient of its input                           1 t
//   dispatch    its input, where a token is sent once, and gradient 2 t, or k t
//   experts     the gradient of their input                         1 d
//   combine     the gradient of its input                           1 d
//
// Small tensors [t, experts] of probabilities are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/memory/memory_ledger.hpp"
#include "simulator/memory/stage_holdings.hpp"
#include "simulator/model_partition.hpp"

namespace shardwise {

// Bytes that the nodes of one layer hold once its backward is done.
std::int64_t held_by_nodes(const Workload& w, const ParallelPlan& plan, const LayerDefinition& d);

class OverlappedNodes {
 public:
  OverlappedNodes(const Workload& w, const ParallelPlan& plan, MemoryLedger& ledger)
      : keeps_(w.overlaps_experts && w.framework.experts.overlap_keeps_nodes),
        w_(&w),
        plan_(&plan),
        ledger_(&ledger) {}

  // Backward has left a layer.
  void pass(const LayerDefinition& d) {
    if (keeps_)
      kept_.push_back(ledger_->open(held_by_nodes(*w_, *plan_, d), MemoryCategory::activations));
  }
  // The pass is through, and with it the forward pass beside it.
  void release() {
    for (Holding& h : kept_) ledger_->close(h);
    kept_.clear();
  }

 private:
  bool keeps_;
  const Workload* w_;
  const ParallelPlan* plan_;
  MemoryLedger* ledger_;
  std::vector<Holding> kept_;
};

}  // namespace shardwise
