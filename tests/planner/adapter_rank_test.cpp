#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/holds.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::string notes_of_rank(int rank) {
  Request asked = request_for("llama-3.1-8b", "4090", {Method::lora});
  asked.lora_rank = rank;
  const ResolvedRequest r = resolved(asked);
  std::string text;
  for (const std::string& note : choose_workload(r, Method::lora, r.clusters.front(), 0).notes)
    text += note + '\n';
  return text;
}

}  // namespace

// Llama 3.1 8B is 4,096 wide: two factors of rank r hold 2 x 4,096 r values, its square weights
// 4,096 x 4,096, as many at a rank of 2,048.
TEST_CASE("adapters larger than what they adapt are told of") {
  CHECK(holds(notes_of_rank(2049), "Adapters of rank 2,049 hold more values"));
  CHECK_FALSE(holds(notes_of_rank(2048), "hold more values"));
}

}  // namespace shardwise
