// FlowNetwork: flows over shared links, each at its max-min fair rate.
//
// A *flow class* is a set of equal flows, its members: each wants to move at most `ceiling` bytes
// per second, and moving one byte per second loads every link l of its path with w(l) (more than 1
// where a byte crosses a link twice or a protocol wastes part of it). With x(c) the rate of each of
// the k(c) active members of class c,
//
//   sum over c of k(c) w(c, l) x(c) <= capacity(l)   for every link l,      0 <= x(c) <= ceiling(c)
//
// and x is max-min fair: no flow can gain without a flow that has no more than it losing, or, which
// is the same (Bertsekas, Gallager, "Data Networks", 2nd ed., section 6.5.2), every flow below its
// ceiling crosses a *bottleneck*, a full link on which nobody is faster. The rates are found by
// progressive filling: all grow together; what reaches its ceiling or a full link stays there.
//
// A class costs the same whether it has one active member or thousands, which is why a simulation
// of every GPU need not cost more here than one GPU of each kind. Loads are added up as integers
// (2^-44 of a link's capacity), so that rates depend on who is active and not on the order in which
// flows came and went, to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "catalog/units.hpp"

namespace shardwise {

struct LinkId {
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(LinkId, LinkId) = default;
};
struct FlowClassId {
  std::uint32_t index = 0;
  friend constexpr auto operator<=>(FlowClassId, FlowClassId) = default;
};

struct FlowLoad {
  LinkId link;
  double weight = 1;  // of one member, in the link's bytes per byte that the flow moves
};

class FlowNetwork {
 public:
  // REQUIRES a positive capacity.
  LinkId add_link(BytesPerSecond capacity);

  // REQUIRES a positive, finite ceiling. A link may be named more than once; its weights add up.
  // No ceiling is higher than what a member alone gets over its links.
  FlowClassId add_class(BytesPerSecond ceiling, std::span<const FlowLoad> loads);

  // `members` more, or fewer, are active from now on.
  void start(FlowClassId c, std::int64_t members = 1);
  void stop(FlowClassId c, std::int64_t members = 1);
  std::int64_t active(FlowClassId c) const { return classes_[c.index].active; }

  // Finds the rates anew. Between calls they are those of the last call. Nothing is computed where
  // no link is short: everybody has its ceiling.
  void share();

  // Whether everybody has its ceiling and nobody wants more than there is: share() changes nothing.
  bool at_ceilings() const { return short_links_ == 0 && at_ceiling_; }

  // Of each member of an active class, as share() left it: 1 is the ceiling.
  double speed(FlowClassId c) const { return classes_[c.index].speed; }
  BytesPerSecond rate(FlowClassId c) const { return speed(c) * classes_[c.index].ceiling; }

  std::size_t class_count() const { return classes_.size(); }
  // The classes that have active members, in order of their numbers.
  const std::vector<FlowClassId>& active_classes() const { return active_; }

 private:
  using Load = std::int64_t;  // in units of 2^-44 of a link's capacity
  static constexpr Load whole_link = Load{1} << 44;

  struct ClassLoad {
    std::uint32_t link;
    Load load;  // of one member at its ceiling
  };
  struct Class {
    BytesPerSecond ceiling;
    std::vector<ClassLoad> loads;  // in order of links
    std::int64_t active = 0;
    double speed = 1;
    bool settled = true;  // while filling: the rate is final
  };
  struct Link {
    BytesPerSecond capacity;
    Load wanted = 0;   // by all active members at their ceilings
    double taken = 0;  // while filling: by settled classes, in units of Load
    double slope = 0;  // while filling: what 1 B/s more for all others takes, in units of Load
  };

  void change(FlowClassId c, std::int64_t members);
  void fill();
  void weigh_links();
  double level_of(const Link& link) const;  // [B/s] at which the unsettled classes fill it
  double next_level() const;

  std::vector<Link> links_;
  std::vector<Class> classes_;
  std::vector<FlowClassId> active_;
  int short_links_ = 0;     // links of which more is wanted than they have
  bool at_ceiling_ = true;  // every speed is 1
};

}  // namespace shardwise
