// How far the plays of plans that do not fit go on.
#include "planner/search/nearest_miss.hpp"

#include "tests/catch.hpp"

namespace shardwise {
namespace {

constexpr Bytes whole_gib(std::int64_t n) { return Bytes(n << 30); }

// One stage on a card of 24 GiB, 1 GiB of it outside of the allocator.
Forecast missing(Bytes allocated, Bytes cache = Bytes(0)) {
  Forecast f;
  StageForecast& s = f.stages.emplace_back();
  s.capacity = whole_gib(24);
  s.peak = {allocated, allocated + cache, allocated + cache + whole_gib(1)};
  return f;
}

}  // namespace

// 30 and 27 GiB of tensors beside 1 GiB miss 7 and 4 of 24.
TEST_CASE("Plans are held against the one that lacks least so far", "[nearest_miss]") {
  LeastLack least;
  CHECK_FALSE(least.known());
  least.learn(missing(whole_gib(30)));
  CHECK(least.known() == whole_gib(7));
  least.learn(missing(whole_gib(27), whole_gib(9)));
  CHECK(least.known() == whole_gib(4));
  least.learn(missing(whole_gib(40)));
  CHECK(least.known() == whole_gib(4));
}

// 20 GiB have room beside 1 GiB: what does not fit is the cache.
TEST_CASE("Tensors that have room lack nothing", "[nearest_miss]") {
  LeastLack least;
  least.learn(missing(whole_gib(20), whole_gib(5)));
  CHECK(least.known() == Bytes(0));
}

}  // namespace shardwise
