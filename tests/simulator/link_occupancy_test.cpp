#include "simulator/step/link_occupancy.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using namespace shardwise;

namespace {
SimTime at(std::int64_t ps) { return {ps}; }
}  // namespace

TEST_CASE("overlapping uses of a link make segments of equal users") {
  // gather   ====        0-4
  // reduce     =====     2-7         a second gather from 7 to 9 follows at once,
  // gather         ==    7-9         and one at 12-13 after a pause; 5-5 has no length.
  using enum WorkKind;
  const auto segments = link_segments({{at(0), at(4), gather_parameters},
                                       {at(2), at(7), reduce_gradients},
                                       {at(5), at(5), tensor_comm},
                                       {at(7), at(9), gather_parameters},
                                       {at(12), at(13), gather_parameters}});
  CHECK(segments == std::vector<LinkSegment>{{at(0), at(2), {gather_parameters}},
                                             {at(2), at(4), {gather_parameters, reduce_gradients}},
                                             {at(4), at(7), {reduce_gradients}},
                                             {at(7), at(9), {gather_parameters}},
                                             {at(12), at(13), {gather_parameters}}});
}

TEST_CASE("equal users that follow one another at once are one segment; two of a kind are two") {
  using enum WorkKind;
  CHECK(link_segments({{at(0), at(4), tensor_comm}, {at(4), at(6), tensor_comm}}) ==
        std::vector<LinkSegment>{{at(0), at(6), {tensor_comm}}});
  CHECK(link_segments({{at(0), at(4), tensor_comm}, {at(0), at(4), tensor_comm}}) ==
        std::vector<LinkSegment>{{at(0), at(4), {tensor_comm, tensor_comm}}});
  CHECK(link_segments({}).empty());
}

TEST_CASE("random uses: each picosecond is in the segment of its users, and in one only") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<LinkUse> uses;
    for (int i = 0; i < 8; ++i) {
      const auto start = static_cast<std::int64_t>(random() % 40);
      uses.push_back({at(start), at(start + static_cast<std::int64_t>(random() % 9)),
                      static_cast<WorkKind>(random() % kWorkKinds)});
    }
    const auto segments = link_segments(uses);
    bool right = true;
    for (std::int64_t now = 0; now < 60; ++now) {
      std::vector<WorkKind> users, said;
      for (const LinkUse& use : uses)
        if (use.start <= at(now) && at(now) < use.end) users.push_back(use.user);
      std::sort(users.begin(), users.end());
      for (const LinkSegment& s : segments)
        if (s.start <= at(now) && at(now) < s.end)
          said.insert(said.end(), s.users.begin(), s.users.end());
      right = right && users == said;
    }
    CHECK(right);
  }
}
