#include "planner/search/no_microbatch.hpp"

#include <string>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

Problem no_microbatch(std::int64_t gpus, std::int64_t batch, int asked) {
  const std::int64_t pass = asked * gpus, below = batch / pass * pass;
  const std::string over = counted(gpus, "GPU");
  return {ProblemKind::request, "--microbatch",
          sentence("no plan passes ", counted(asked, "sequence"), " at once: ", batch, " per step ",
                   below == 0 || below == batch
                       ? sentence("over ", over, " leave each too few")
                       : sentence("do not divide by ", asked, " on each of ", over,
                                  "; the nearest that do are ", below, " and ", below + pass))};
}

}  // namespace shardwise
