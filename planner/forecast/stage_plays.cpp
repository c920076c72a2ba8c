#include "planner/forecast/stage_plays.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

namespace shardwise {
namespace {

// On the line: to 1/256 of the figure. Published runs differ from their forecast by ten times that.
constexpr std::int64_t parts = 256;

std::int64_t between(std::int64_t a, std::int64_t b, double share) {
  return a + std::llround(static_cast<double>(b - a) * share);
}

Bytes between(Bytes a, Bytes b, double share) { return Bytes(between(a.value, b.value, share)); }

MemoryBreakdown between(const MemoryBreakdown& a, const MemoryBreakdown& b, double share) {
  MemoryBreakdown c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = between(a[i], b[i], share);
  return c;
}

// The breakdown sums to what is allocated, so it says how much that is.
MemoryPeak between(const MemoryPeak& a, const MemoryPeak& b, double share) {
  MemoryPeak c;
  c.breakdown = between(a.breakdown, b.breakdown, share);
  for (const std::int64_t bytes : c.breakdown) c.allocated += Bytes(bytes);
  c.reserved = std::max(c.allocated, between(a.reserved, b.reserved, share));
  return c;
}

StageMemory between(const StageMemory& a, const StageMemory& b, double share) {
  StageMemory c = a;
  c.first_step = between(a.first_step, b.first_step, share);
  c.steady = between(a.steady, b.steady, share);
  c.loaded = between(a.loaded, b.loaded, share);
  c.after_forward = between(a.after_forward, b.after_forward, share);
  c.reserved_at_step = between(a.reserved_at_step, b.reserved_at_step, share);
  c.after_step = between(a.after_step, b.after_step, share);
  c.activations_on_host = between(a.activations_on_host, b.activations_on_host, share);
  return c;
}

// The figure of a stage beside the line between two others. Where what is filled first changes once
// along a run, the line is off by at most twice what it is off in the middle.
struct OnLine {
  const StageMemory &figure, &a, &b;
  double share;

  bool near(Bytes at, Bytes first, Bytes last) const {
    const Bytes off = at - between(first, last, share);
    return parts * std::abs(off.value) <= std::min(first, last).value;
  }
  bool near(const MemoryPeak& at, const MemoryPeak& first, const MemoryPeak& last) const {
    return near(at.allocated, first.allocated, last.allocated) &&
           near(at.reserved, first.reserved, last.reserved);
  }
  bool near(const auto StageMemory::*member) const {
    return near(figure.*member, a.*member, b.*member);
  }
  bool all_near() const {
    return near(&StageMemory::first_step) && near(&StageMemory::steady) &&
           near(&StageMemory::after_step) && near(&StageMemory::reserved_at_step) &&
           near(&StageMemory::activations_on_host);
  }
};

// Microbatches (of any chunk) whose activations are held at once.
int in_flight(const std::vector<Slot>& slots) {
  int now = 0, most = 0;
  for (const Slot& slot : slots) {
    if (slot.pass == Pass::forward) most = std::max(most, ++now);
    if (slot.pass == Pass::backward || slot.pass == Pass::backward_input) --now;
  }
  return most;
}

class Stages {
 public:
  explicit Stages(const StagesToPlay& of)
      : of_(of),
        same_as_(first_of_the_same(of)),
        played_(same_as_.size()),
        known_(same_as_.size()),
        held_(same_as_.size()) {
    for (std::size_t s = 0; s < held_.size(); ++s) held_[s] = in_flight(of.slots[s]);
  }

  std::vector<StageMemory> all() {
    for (int first = 0; first < of_.stages && !given_up_;) {
      int last = first;
      while (last + 1 < of_.stages && of_.like_the_one_before(last + 1)) ++last;
      play(first);
      if (!given_up_) play(last);
      if (!given_up_) fill(first, last);
      first = last + 1;
    }
    std::vector<StageMemory> answer;
    for (std::optional<StageMemory>& s : known_)
      answer.push_back(given_up_ ? *given_up_ : std::move(*s));
    return answer;
  }

 private:
  std::optional<StageMemory>& at(int stage) { return known_[static_cast<std::size_t>(stage)]; }

  // Unless a stage that does just the same has been played.
  void play(int stage) {
    if (at(stage)) return;
    std::optional<int>& played =
        played_[static_cast<std::size_t>(same_as_[static_cast<std::size_t>(stage)])];
    at(stage) = played ? *at(*played) : of_.play(stage);
    if (!played) played = stage;
    if (at(stage)->given_up) given_up_ = at(stage);
  }

  // The stages between two of a run that are known.
  void fill(int first, int last) {
    if (last - first < 2 || given_up_) return;
    const int middle = middle_of(first, last);
    play(middle);
    const bool whole = at(first)->ran_out || at(middle)->ran_out || at(last)->ran_out;
    if (of_.may_lie_between && !whole &&
        OnLine{*at(middle), *at(first), *at(last), share(first, last, middle)}.all_near()) {
      for (int s = first + 1; s < last; ++s)
        if (!at(s)) at(s) = between(*at(first), *at(last), share(first, last, s));
      return;
    }
    fill(first, middle);
    fill(middle, last);
  }

  // The stage between two others that is the nearest to half way from one to the other.
  int middle_of(int first, int last) const {
    const auto off = [&](int s) { return std::abs(share(first, last, s) - 0.5); };
    int middle = first + (last - first) / 2;
    for (int s = first + 1; s < last; ++s)
      if (off(s) < off(middle)) middle = s;
    return middle;
  }

  // How far along the line between two stages another one is.
  double share(int first, int last, int stage) const {
    const auto held = [&](int s) { return held_[static_cast<std::size_t>(s)]; };
    const int whole = held(last) - held(first);
    const double share = whole != 0 ? static_cast<double>(held(stage) - held(first)) / whole
                                    : static_cast<double>(stage - first) / (last - first);
    return std::clamp(share, 0.0, 1.0);
  }

  const StagesToPlay& of_;
  std::vector<int> same_as_;
  std::vector<std::optional<int>> played_;  // by same_as_: the one that was
  std::vector<std::optional<StageMemory>> known_;
  std::vector<int> held_;
  std::optional<StageMemory> given_up_;
};

}  // namespace

std::vector<int> first_of_the_same(const StagesToPlay& of) {
  std::vector<int> same_as;
  int first = 0;  // of the run of stages with equal layers on equal cards
  for (int stage = 0; stage < of.stages; ++stage) {
    if (stage > 0 && !of.like_the_one_before(stage)) first = stage;
    int same = first;
    while (of.slots[static_cast<std::size_t>(same)] != of.slots[static_cast<std::size_t>(stage)])
      ++same;
    same_as.push_back(same);
  }
  return same_as;
}

std::vector<StageMemory> stage_plays(const StagesToPlay& of) { return Stages(of).all(); }

}  // namespace shardwise
