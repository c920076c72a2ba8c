// IdleAccount: the idle time of one rank's compute lane, as other lanes are blamed for it one after
// the other (see timeline.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "simulator/step/task_graph.hpp"

namespace shardwise {

using TimePerWork = std::array<Picoseconds, kWorkKinds>;  // indexed by WorkKind

// Something that ran on a lane.
struct PlayedWork {
  SimTime start, end;
  WorkKind work = WorkKind::other;
};

class IdleAccount {
 public:
  explicit IdleAccount(SimTime makespan) : idle_{{SimTime{}, makespan}} {}

  // Takes from the idle time what `items` cover, and enters it in `account`. `played` makes the
  // PlayedWork of an item; items are those of one lane, in order.
  template <class Items, class Played>
  void cover(const Items& items, Played played, TimePerWork& account) {
    still_idle_.clear();
    auto item = items.begin();
    for (const Span idle : idle_) {
      SimTime at = idle.from;
      for (; item != items.end(); ++item) {
        const PlayedWork runs = played(*item);
        if (!(runs.start < idle.to)) break;
        if (runs.end > at) {
          const Span covered{std::max(at, runs.start), std::min(idle.to, runs.end)};
          if (covered.from > at) still_idle_.push_back({at, covered.from});
          account[static_cast<std::size_t>(runs.work)] += length(covered);
          at = covered.to;
        }
        if (runs.end > idle.to) break;  // it may cover some of the next idle span as well
      }
      if (at < idle.to) still_idle_.push_back({at, idle.to});
    }
    std::swap(idle_, still_idle_);
  }

  // Takes from the idle time what `items` cover, and leaves it without blame.
  void set_aside(const std::vector<PlayedWork>& items) {
    TimePerWork account{};
    cover(
        items, [](const PlayedWork& item) { return item; }, account);
    for (const Picoseconds time : account) aside_ += time;
  }

  Picoseconds idle() const {
    Picoseconds sum = aside_;
    for (const Span span : idle_) sum += length(span);
    return sum;
  }

 private:
  struct Span {
    SimTime from;
    SimTime to;
  };
  static Picoseconds length(Span span) {
    return Picoseconds(span.to.picoseconds - span.from.picoseconds);
  }

  Picoseconds aside_{};
  std::vector<Span> idle_;  // not blamed on anything yet; in order of time
  std::vector<Span> still_idle_;
};

}  // namespace shardwise
