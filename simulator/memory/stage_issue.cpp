// What the CPU issues while a stage is played, and where it waits for the GPU: member functions of
// StagePlayer.
#include <algorithm>
#include <variant>

#include "simulator/memory/stage_player.hpp"

namespace shardwise {

// An allocation that finds no room waits for the GPU before it gives back what is cached.
void StagePlayer::advance(int kernels) {
  if (ledger_.retries() != retries_) lag_.catch_up();
  retries_ = ledger_.retries();
  lag_.advance(kernels);
}

void StagePlayer::issue_forward(const Operator& op) {
  const bool waits = std::any_of(op.forward.begin(), op.forward.end(), [](const Kernel& k) {
    const auto* wait = std::get_if<ReadBack>(&k);
    return wait != nullptr && wait->turns > 0;
  });
  if (waits) lag_.catch_up();
  advance(launches(op.forward));
}

void StagePlayer::issue_forward(const LayerDefinition& d) {
  if (!f_.process.records_streams) return;
  for (const Operator& op : d.graph.operators) issue_forward(op);
}

void StagePlayer::issue_again(const LayerDefinition& d) {
  if (!f_.process.records_streams) return;
  for (std::size_t i = 0; i < d.graph.operators.size(); ++i)
    if (d.script.runs_again[i]) issue_forward(d.graph.operators[i]);
}

void StagePlayer::issue_backward(const LayerDefinition& d) {
  if (!f_.process.records_streams) return;
  for (const Operator& op : d.graph.operators)
    advance(launches(op.backward) + launches(op.backward_weight));
}

void StagePlayer::receive() {
  if (f_.process.records_streams && plan_.pipeline > 1) lag_.catch_up();
}

}  // namespace shardwise
