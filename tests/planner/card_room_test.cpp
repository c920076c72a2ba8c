// What a plan needs of a card that its allocator's cache fills: rooms that are tried, and one that
// grows until the plan runs in it.
#include <memory>

#include "planner/forecast/forecast.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/small_questions.hpp"

namespace shardwise {

// Eight cards of 23.7 GiB hold an 8 B model's states and 20.4 GiB at the peak; unlimited, the
// allocator would reserve more than there is. What is needed lies between what tensors hold and the
// card; a card of that size does, and one that is smaller than what tensors hold does not.
TEST_CASE("where the cache fills the card, what is needed is told apart", "[forecast]") {
  Question q = short_question("llama-3.1-8b", "8xRTX-3090", Method::full, "pytorch-fsdp2",
                              "dp=8,zero=3,mbs=1,ga=2,recompute=full");
  q.workload.sequence = 2048;
  const StageForecast full = forecast_of(q).stages.front();
  REQUIRE(full.peak.device == full.capacity);
  REQUIRE(full.cache_fills());
  const Bytes outside = full.peak.device - full.peak.reserved;
  CHECK(full.needed >= full.peak.allocated + outside);
  const auto on_a_card_of = [&](Bytes memory) {
    Question smaller = q;
    smaller.cluster.groups.front().gpu.memory_offered = memory;
    return forecast_of(smaller);
  };
  CHECK(on_a_card_of(full.needed).verdict != Verdict::does_not_fit);
  CHECK(on_a_card_of(full.peak.allocated).verdict == Verdict::does_not_fit);
  // With room to spare the cache is what it is, and the peak is what is told.
  const StageForecast roomy = on_a_card_of(Bytes(80LL << 30)).stages.front();
  CHECK(roomy.needed == roomy.peak.device);
  CHECK(roomy.peak.device > full.needed);
}

// The same plan: what tensors hold fits on the card and what is reserved does not, so it is played
// once more on the card, and once on the smaller one that the interval asks for where that may do.
// A forecast that is handed its plays tries neither again: it hands on the very same.
TEST_CASE("rooms that were tried for a plan stay known", "[forecast]") {
  Question q = short_question("llama-3.1-8b", "8xRTX-3090", Method::full, "pytorch-fsdp2",
                              "dp=8,zero=3,mbs=1,ga=2,recompute=full");
  q.workload.sequence = 2048;
  const Forecast first = forecast_of(q);
  REQUIRE_FALSE(first.plays->tried.empty());
  const RoomTried& card = first.plays->tried.front();
  CHECK(card.room == first.stages.front().capacity -
                         (first.stages.front().peak.device - first.stages.front().peak.reserved));
  CHECK(card.enough);
  const auto again = forecast(q, known_facts().profile, {.plays = first.plays});
  REQUIRE(again);
  CHECK(again->plays == first.plays);
  CHECK(again->verdict == first.verdict);
  CHECK(again->stages.front().peak.device == first.stages.front().peak.device);
}

// Tensors lack less than a card of 23.7 GiB, and than one of 23: either way the card that grows
// begins with what they hold. So where the plays of the first are handed on, nothing is played for
// the second: of a room that no play has found it tells as well.
TEST_CASE("how a card grows is played once for all that lack room", "[forecast]") {
  Question q = short_question("llama-3.1-8b", "8xRTX-3090", Method::full, "pytorch-fsdp2",
                              "dp=8,zero=3,mbs=2,ga=2,recompute=full");
  q.workload.sequence = 2048;
  const Forecast first = forecast_of(q);
  REQUIRE(first.verdict == Verdict::does_not_fit);
  REQUIRE(first.plays->raised.size() == 1);
  const RoomRaised& grown = first.plays->raised.front();
  CHECK(grown.from == first.plays->stages.front().peak().allocated);
  CHECK(grown.to == first.plays->least_rooms.front()->least);

  q.cluster.groups.front().gpu.memory_offered = Bytes(23LL << 30);
  const auto device = [&](std::shared_ptr<const MemoryPlays> plays) {
    return forecast(q, known_facts().profile, {.plays = plays})->stages.front().peak.device;
  };
  CHECK(device(first.plays) == device(nullptr));
  auto altered = std::make_shared<MemoryPlays>(*first.plays);
  altered->raised.front().to += Bytes(2 << 20);
  CHECK(device(altered) == device(nullptr) + Bytes(2 << 20));
}

}  // namespace shardwise
