// LinkOccupancy: which of a GPU's links are in use when, and by what.
//
// A GPU has up to four: to its neighbours in the box (NVLink, or PCIe, straight or through host
// memory), to the network through its node's NICs, and to host memory (copies of an offload). A
// collective whose group lies in several nodes uses the links in the box and the network; one in a
// single node only those in the box. The tasks of a link may overlap: a segment is a time during
// which the same ones run.
#pragma once

#include <string>
#include <vector>

#include "simulator/network/topology.hpp"
#include "simulator/rank_layout.hpp"
#include "simulator/step/played_step.hpp"

namespace shardwise {

struct LinkSegment {
  SimTime start, end;
  std::vector<WorkKind> users;  // at least one, in the order of WorkKind, each as often as it runs
  friend bool operator==(const LinkSegment&, const LinkSegment&) = default;
};

struct LinkOccupancy {
  int stage = 0;     // of which the first rank stands for all
  std::string link;  // "NVLink", "PCIe", "PCIe through host memory", "network", "host memory"
  std::vector<LinkSegment> segments;  // in order of time, apart
};

// Links that nothing uses are left out.
std::vector<LinkOccupancy> link_occupancy(const PlayedStep& step, const RankLayout& layout,
                                          const Topology& topology);

// The segments of spans that may overlap; those of no length count for nothing.
struct LinkUse {
  SimTime start, end;
  WorkKind user = WorkKind::other;
};
std::vector<LinkSegment> link_segments(const std::vector<LinkUse>& uses);

}  // namespace shardwise
