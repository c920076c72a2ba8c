#include "simulator/network/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();
// Links that fill up at levels closer than this fill up together: the difference is rounding.
constexpr double same_level = 1 + 1e-12;

}  // namespace

LinkId FlowNetwork::add_link(BytesPerSecond capacity) {
  require(capacity.value > 0, "a link that flows share has a capacity");
  links_.push_back({.capacity = capacity});
  return LinkId{static_cast<std::uint32_t>(links_.size() - 1)};
}

FlowClassId FlowNetwork::add_class(BytesPerSecond ceiling, std::span<const FlowLoad> loads) {
  require(ceiling.value > 0 && ceiling.value < no_limit, "a flow has a finite rate of its own");
  std::map<std::uint32_t, double> weights;
  for (const FlowLoad& l : loads) {
    require(l.link.index < links_.size() && l.weight >= 0, "a flow loads links of its network");
    weights[l.link.index] += l.weight;
  }
  for (const auto& [link, weight] : weights)
    if (weight > 0) ceiling = std::min(ceiling, (1 / weight) * links_[link].capacity);
  Class made{.ceiling = ceiling, .loads = {}};
  for (const auto& [link, weight] : weights) {
    const double share = weight * (ceiling / links_[link].capacity);
    const auto load = static_cast<Load>(std::min(1.0, share) * whole_link);
    if (load > 0) made.loads.push_back({link, load});
  }
  classes_.push_back(std::move(made));
  return FlowClassId{static_cast<std::uint32_t>(classes_.size() - 1)};
}

void FlowNetwork::start(FlowClassId c, std::int64_t members) { change(c, members); }
void FlowNetwork::stop(FlowClassId c, std::int64_t members) { change(c, -members); }

void FlowNetwork::change(FlowClassId c, std::int64_t members) {
  Class& changed = classes_[c.index];
  const bool was_active = changed.active > 0;
  changed.active += members;
  require(changed.active >= 0, "only flows that are active stop");
  for (const ClassLoad& l : changed.loads) {
    Link& link = links_[l.link];
    const bool was_short = link.wanted > whole_link;
    link.wanted += members * l.load;
    short_links_ += (link.wanted > whole_link ? 1 : 0) - (was_short ? 1 : 0);
  }
  const bool is_active = changed.active > 0;
  if (is_active == was_active) return;
  const auto at = std::lower_bound(active_.begin(), active_.end(), c);
  if (is_active)
    active_.insert(at, c);
  else
    active_.erase(at);
  if (is_active) changed.speed = 1;
}

void FlowNetwork::share() {
  if (short_links_ > 0) return fill();
  if (at_ceiling_) return;
  for (const FlowClassId c : active_) classes_[c.index].speed = 1;
  at_ceiling_ = true;
}

void FlowNetwork::fill() {
  at_ceiling_ = false;
  std::size_t unsettled = active_.size();
  for (const FlowClassId c : active_) classes_[c.index].settled = false;
  while (unsettled > 0) {
    weigh_links();
    const double level = next_level();
    for (const FlowClassId id : active_) {
      Class& c = classes_[id.index];
      if (c.settled) continue;
      const bool at_own_ceiling = c.ceiling.value <= level;
      const bool at_full_link = std::any_of(c.loads.begin(), c.loads.end(), [&](ClassLoad l) {
        return level_of(links_[l.link]) <= level * same_level;
      });
      if (!at_own_ceiling && !at_full_link) continue;
      c.speed = at_own_ceiling ? 1.0 : level / c.ceiling.value;
      c.settled = true;
      --unsettled;
    }
  }
}

// Summed anew in every round, in the order of the classes: sums that are carried along would depend
// on the order in which flows came and went.
void FlowNetwork::weigh_links() {
  for (const FlowClassId id : active_)
    for (const ClassLoad& l : classes_[id.index].loads)
      links_[l.link].taken = links_[l.link].slope = 0;
  for (const FlowClassId id : active_) {
    const Class& c = classes_[id.index];
    for (const ClassLoad& l : c.loads) {
      const auto load = static_cast<double>(c.active * l.load);
      if (c.settled)
        links_[l.link].taken += c.speed * load;
      else
        links_[l.link].slope += load / c.ceiling.value;
    }
  }
}

double FlowNetwork::level_of(const Link& link) const {
  if (link.slope <= 0) return no_limit;
  return std::max(0.0, static_cast<double>(whole_link) - link.taken) / link.slope;
}

double FlowNetwork::next_level() const {
  double level = no_limit;
  for (const FlowClassId id : active_) {
    const Class& c = classes_[id.index];
    if (c.settled) continue;
    level = std::min(level, c.ceiling.value);
    for (const ClassLoad& l : c.loads) level = std::min(level, level_of(links_[l.link]));
  }
  return level;
}

}  // namespace shardwise
