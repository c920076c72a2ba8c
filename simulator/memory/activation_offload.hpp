// ActivationOffload: saved activations that wait for their backward in host memory.
//
// A unit is what is copied together: the layers of one model chunk where there is a pipeline, one
// layer otherwise. While a unit's copy to the host runs, the next unit computes: its tensors are
// let go when that one's forward is over. One unit is brought back ahead of the backward that needs
// it, so two units' copies are on the GPU then. Of a unit's tensors the largest go first until
// `share` of its bytes are away; the last one is cut. Tensors under 1 MiB stay. Source: kwai's
// Megatron, megatron/core/pipeline_parallel/offload.py (ActivationGroup, record; ping and pong
// buffers) @b2646e4d; torchtune training/_activation_offloading.py:66-72 does the same per tensor.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "simulator/memory/memory_ledger.hpp"

namespace shardwise {

class ActivationOffload {
 public:
  struct Unit {
    int microbatch = 0, chunk = 0, layer = 0;
    friend auto operator<=>(const Unit&, const Unit&) = default;
  };

  ActivationOffload(MemoryLedger& ledger, double share) : ledger_(ledger), share_(share) {}

  // The unit's forward is over. REQUIRES that `saved` stays where it is until fetch(unit).
  void send(const Unit& unit, std::vector<Holding*> saved) {
    if (copying_) let_go(*copying_);
    units_[unit].saved = std::move(saved);
    copying_ = unit;
  }

  // Brings a unit back; nothing where it is here, or not known.
  void fetch(const Unit& unit) {
    const auto found = units_.find(unit);
    if (found == units_.end()) return;
    if (copying_ == unit) copying_.reset();
    for (Away& a : found->second.away) {
      ledger_.close(a.rest);
      *a.holding = ledger_.open(a.bytes, MemoryCategory::activations);
    }
    on_host_ -= found->second.bytes;
    units_.erase(found);
  }

  Bytes most_on_host() const { return Bytes(most_on_host_); }

 private:
  struct Away {
    Holding* holding = nullptr;
    Holding rest;  // what stayed of a tensor that was cut
    std::int64_t bytes = 0;
  };
  struct Copies {
    std::vector<Holding*> saved;
    std::vector<Away> away;
    std::int64_t bytes = 0;
  };

  void let_go(const Unit& unit) {
    const auto found = units_.find(unit);
    if (found == units_.end()) return;
    Copies& c = found->second;
    const auto size = [&](const Holding* h) { return ledger_.bytes_of(*h).value; };
    std::erase_if(c.saved, [&](const Holding* h) { return size(h) < (1 << 20); });
    std::stable_sort(c.saved.begin(), c.saved.end(),
                     [&](const Holding* a, const Holding* b) { return size(a) > size(b); });
    std::int64_t all = 0;
    for (const Holding* h : c.saved) all += size(h);
    auto left = static_cast<std::int64_t>(share_ * static_cast<double>(all));
    for (Holding* h : c.saved) {
      if (left <= 0) break;
      const std::int64_t whole = size(h), gone = std::min(left, whole);
      ledger_.close(*h);
      Away away{h, {}, whole};
      if (gone < whole) away.rest = ledger_.open(whole - gone, MemoryCategory::activations);
      c.away.push_back(away);
      c.bytes += gone;
      left -= gone;
    }
    on_host_ += c.bytes;
    most_on_host_ = std::max(most_on_host_, on_host_);
  }

  MemoryLedger& ledger_;
  double share_;
  std::map<Unit, Copies> units_;
  std::optional<Unit> copying_;
  std::int64_t on_host_ = 0, most_on_host_ = 0;
};

}  // namespace shardwise
