#include "planner/answers/reach.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <utility>

namespace shardwise {
namespace {

constexpr int shortest_step = 128;           // tokens
constexpr int longest_sequence = 4'194'304;  // tokens; nothing in the catalog is made for more
constexpr int largest_microbatch = 1024;     // sequences

// Nothing where no plan is legal.
using Ask = std::function<std::optional<ChosenPlan>(int, Room)>;

// The figures that one ladder goes through: multiples of step(value) up to `most`.
struct Ladder {
  int least = 1, most = 1;
  int (*step)(int value) = nullptr;
  bool goes_on = true;  // beyond `most`, where nobody looks
};

int sequence_step(int tokens) {
  int step = shortest_step;
  while (step * 32 <= tokens) step *= 2;
  return step;
}

// Whether one figure, with the plan that takes it, is enough: what was asked, once each.
class Asked {
 public:
  Asked(const Ask& ask, Room room) : ask_(ask), room_(room) {}

  const std::optional<ChosenPlan>& at(int value) {
    const auto found = answers_.find(value);
    if (found != answers_.end()) return found->second;
    return answers_.emplace(value, ask_(value, room_)).first->second;
  }

  bool enough(int value) {
    const std::optional<ChosenPlan>& c = at(value);
    if (!c || c->verdict == Verdict::does_not_fit) return false;
    return room_ == Room::weighed || c->verdict == Verdict::fits;
  }

 private:
  const Ask& ask_;
  Room room_;
  std::map<int, std::optional<ChosenPlan>> answers_;
};

// Doubles as long as it is enough, then halves what is left.
std::optional<Reached> farthest(const Ask& ask, const Ladder& ladder, Room room) {
  Asked asked(ask, room);
  if (!asked.enough(ladder.least)) return std::nullopt;
  int good = ladder.least, bad = good;
  while (good < ladder.most) {
    bad = std::min(2 * good, ladder.most);
    if (!asked.enough(bad)) break;
    good = bad;
  }
  const int step = ladder.step(good);
  if (good == ladder.most) return Reached{good, ladder.goes_on, step, *asked.at(good)};
  while (bad - good > step) {
    const int middle = good + std::max((bad - good) / 2 / step, 1) * step;
    (asked.enough(middle) ? good : bad) = middle;
  }
  return Reached{good, false, step, *asked.at(good)};
}

}  // namespace

Reach reach(const ResolvedRequest& request, Method method, const Cluster& cluster) {
  const auto chosen = [&](const ResolvedRequest& r, Room room) -> std::optional<ChosenPlan> {
    auto c = choose_plan(r, method, cluster, room, nullptr, Looked::fitting);
    if (!c) return std::nullopt;
    return *std::move(c);
  };
  const Ask sequence = [&](int tokens, Room room) {
    ResolvedRequest longer = request;
    longer.asked.sequence = longer.sequence = tokens;
    return chosen(longer, room);
  };
  const Ask microbatch = [&](int at_once, Room room) {
    ResolvedRequest more = request;
    more.asked.microbatch = at_once;
    more.asked.batch = more.batch = at_once * cluster.gpus();
    return chosen(more, room);
  };
  const bool learned = request.model.position == PositionKind::learned;
  const int most = learned && request.model.position_rows > 0
                       ? std::min(request.model.position_rows, longest_sequence)
                       : longest_sequence;
  const Ladder lengths{std::min(shortest_step, most), most, sequence_step,
                       most == longest_sequence};
  const Ladder sizes{1, largest_microbatch, [](int) { return 1; }};
  auto longest = std::async(std::launch::async, farthest, std::cref(sequence), std::cref(lengths),
                            Room::weighed);
  const Ask rank = [&](int of_adapters, Room room) {
    ResolvedRequest wider = request;
    wider.asked.lora_rank = of_adapters;
    return chosen(wider, room);
  };
  const Ladder ranks{rank_step, std::max(rank_step, request.model.hidden / rank_step * rank_step),
                     [](int) { return rank_step; }, false};
  Reach r;
  r.adapters = row(method).adapter;
  if (r.adapters) {
    r.rank = farthest(rank, ranks, Room::weighed);
    r.roomy_rank = farthest(rank, ranks, Room::demanded);
  }
  r.roomy_sequence = farthest(sequence, lengths, Room::demanded);
  r.sequence = longest.get();
  if (!request.asked.plans.empty()) return r;  // a plan says its own
  r.microbatch = farthest(microbatch, sizes, Room::weighed);
  r.roomy_microbatch = farthest(microbatch, sizes, Room::demanded);
  return r;
}

}  // namespace shardwise
