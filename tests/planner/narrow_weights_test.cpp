#include <string>
#include <utility>
#include <vector>

#include "planner/choice/workload_choice.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {

// Compute capability 8.9, 9.0 and 12.0 multiply 8 bits with the inner dimension last alone, so that
// backward reads a transposed copy; 10.0 takes operands as they lie.
TEST_CASE("weights of 8-bit products lie twice where a card cannot read them by columns") {
  const std::vector<std::pair<std::string, bool>> cards{
      {"8xRTX-4090", true}, {"8xH100-SXM", true}, {"8xRTX-5090", true}, {"8xB200", false}};
  for (const auto& [name, twice] : cards) {
    CAPTURE(name);
    const ResolvedRequest r = resolved(request_for("8b", name, {Method::full}));
    Framework f;
    settle_on(r.clusters.front().groups.front().gpu, DType::fp8, f);
    CHECK(f.narrow_weights_twice == twice);
  }
}

}  // namespace shardwise
