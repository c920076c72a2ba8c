// `shardwise validate FILE`: what of a file of one's own was not understood is told unasked.
#include <sstream>

#include "planner/commands/validate.hpp"
#include "tests/catalog/runs_file.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

// The answer to one run whose length is `length`; `notes` as --notes.
std::string validated_file(const std::string& length, bool notes) {
  const RunsFile file(R"([{"id": "mine", "model": {"name": "Llama-3.2-1B"},
    "hardware": {"gpu": "H100-SXM-80GB", "gpus": 1},
    "training": {"method": "lora", "framework": "trl", "seq_len": )" +
                      length + R"(, "micro_batch": 1, "global_batch": 1},
    "measured": {"peak_mem_gib": 20, "outcome": "ran"}}])");
  ValidateOptions options;
  options.files = {file.path()};
  options.notes = notes;
  std::ostringstream out, err;
  CHECK(validate(options, source_dir() + "/catalog", out, err) == 0);
  INFO(err.str());
  return out.str();
}

}  // namespace

TEST_CASE("validate tells of a slip in a file of one's own", "[own_file]") {
  const std::string told = validated_file(R"("long")", false);
  CHECK(told.find("not understood  1 member of these records, such as mine: training.seq_len") !=
        std::string::npos);
  CHECK(validated_file("512", false).find("not understood") == std::string::npos);
  // --notes lists it with all else, once.
  const std::string listed = validated_file(R"("long")", true);
  CHECK(listed.find("not understood  ") == std::string::npos);
  CHECK(listed.find("mine: training.seq_len is not understood") != std::string::npos);
}

}  // namespace shardwise
