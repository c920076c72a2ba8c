// Weights that are sharded, gathered while a stage is played: member functions of StagePlayer.
#include <cstddef>
#include <vector>

#include "simulator/gathered_layers.hpp"
#include "simulator/memory/stage_player.hpp"

namespace shardwise {

void StagePlayer::gather(std::size_t c, std::size_t i, int direction, double window) {
  if (!habits_.shards_weights) return;
  if (habits_.narrows_alone) return copy_out(c, i, direction > 0);
  const auto n = static_cast<std::ptrdiff_t>(layers_[c].size());
  const auto here = static_cast<std::ptrdiff_t>(i);
  const bool turns = direction > 0 && keeps_layers_gathered(w_, plan_);
  // DeepSpeed fetches one parameter more as long as fewer than its limit are gathered: a table as a
  // whole, however long (partitioned_param_coordinator.py, fetch_sub_module: numel_prefetching).
  const std::int64_t most = f_.sharding.parameters.live_parameters.value_or(Bytes{0}).value;
  // Its gathers' results are made on the gathers' stream (partitioned_param_coordinator.py,
  // __all_gather_params_), where overlap_comm gives them one.
  const bool apart =
      f_.sharding.parameters.live_parameters && f_.gradients.overlap_reduce_at_stage_3;
  const StreamId stream = apart ? gather_stream : StreamId{};
  std::int64_t live = 0;
  ledger_.close(gathered_part_);
  for (std::ptrdiff_t k = 0; k < n; ++k) {
    std::ptrdiff_t j = here + direction * k;
    const bool turned = turns && j >= n;
    if (turned) j = n - 1 - k;  // those from here on have been passed
    if (j < 0 || j >= n) break;
    LayerHoldings& h = holdings(c, static_cast<std::size_t>(j));
    const LayerRole role = (*chunks_)[c].layers[static_cast<std::size_t>(j)].definition->role;
    const std::int64_t before = live;
    live += h.state.gathered;
    const bool fits = f_.sharding.parameters.live_parameters
                          ? (at_an_end(role) ? before < most : live <= most)
                          : static_cast<double>(k) < window;
    if (k > 0 && !fits) {
      // It counts parameters, not layers: of the next one those within the limit are there.
      if (reaches_limit(before, most, h))
        gathered_part_ = ledger_.open(most - before, gathered_parameters, stream);
      break;
    }
    const bool looks_up = role == LayerRole::embedding;
    if (h.gathered.block || h.state.gathered == 0) continue;
    if (looks_up && (direction < 0 || turned) && embedding_.goes && !embedding_.again) continue;
    if (!f_.sharding.parameters.copy_out)
      h.gathered = ledger_.open(h.state.gathered, gathered_parameters, stream);
    else if (k == 0)
      copy_out(c, i, direction > 0);
    else if (direction < 0 && !h.buffer.block)
      h.buffer = ledger_.open(h.state.gathered, gathered_parameters, gather_stream);
  }
}

bool StagePlayer::reaches_limit(std::int64_t live, std::int64_t most, const LayerHoldings& h) {
  return live < most && live + h.state.gathered > most && !h.gathered.block;
}

void StagePlayer::copy_out(std::size_t c, std::size_t i, bool forward) {
  std::vector<LayerHoldings*> unit;
  if (!in_root(c, i)) {
    unit.push_back(&holdings(c, i));
  } else {
    for (std::size_t j = 0; j < layers_[c].size(); ++j)
      if (in_root(c, j)) unit.push_back(&holdings(c, j));
  }
  const auto make_whole = [&] {
    for (LayerHoldings* h : unit)
      if (!h->gathered.block && h->state.gathered > 0)
        h->gathered = ledger_.open(h->state.gathered, gathered_parameters);
  };
  if (habits_.narrows_alone) return make_whole();
  std::int64_t bytes = 0;
  for (const LayerHoldings* h : unit) bytes += h->state.gathered;
  Holding& buffer = holdings(c, i).buffer;
  if (!buffer.block) buffer = ledger_.open(bytes, gathered_parameters, gather_stream);
  if (forward) ledger_.close(copied_out_);
  make_whole();
  if (!forward) return ledger_.close(buffer);
  copied_out_ = buffer;
  buffer = {};
}

bool StagePlayer::stays_gathered(std::size_t c, std::size_t i) const {
  // The head, the embedding where it is in one group with it, what backward wants soon, and
  // everything where the framework does not reshard.
  const LayerRole role = (*chunks_)[c].layers[i].definition->role;
  if (!habits_.reshards || role == LayerRole::head) return true;
  return role == LayerRole::embedding ? !embedding_.goes : kept_gathered_[c][i];
}

}  // namespace shardwise
