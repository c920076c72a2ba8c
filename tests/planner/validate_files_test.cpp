// `shardwise validate FILE`: what of a file of one's own was not understood is told unasked.
#include <algorithm>
#include <sstream>
#include <utility>

#include "planner/commands/validate.hpp"
#include "tests/catalog/runs_file.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

// A run whose length is `length`.
std::string run_of(const std::string& length) {
  return R"({"id": "mine", "model": {"name": "Llama-3.2-1B"},
    "hardware": {"gpu": "H100-SXM-80GB", "gpus": 1},
    "training": {"method": "lora", "framework": "trl", "seq_len": )" +
         length + R"(, "micro_batch": 1, "global_batch": 1},
    "measured": {"peak_mem_gib": 20, "outcome": "ran"}})";
}

// The answer to that run; `notes` as --notes.
std::string validated_file(const std::string& length, bool notes) {
  const RunsFile file("[" + run_of(length) + "]");
  ValidateOptions options;
  options.files = {file.path()};
  options.notes = notes;
  std::ostringstream out, err;
  CHECK(validate(options, source_dir() + "/catalog", out, err) == 0);
  INFO(err.str());
  return out.str();
}

// The exit code for a file that says `text`, and with --json its lines.
std::pair<int, std::string> answered(const std::string& text) {
  const RunsFile file(text);
  ValidateOptions options;
  options.files = {file.path()};
  options.json = true;
  std::ostringstream out, err;
  const int code = validate(options, source_dir() + "/catalog", out, err);
  return {code, out.str()};
}

}  // namespace

// The contract of --json: a line for each record, in order, and 4 where an input file fails. One
// record that is none is lost alone; where all are, the file is no file of records.
TEST_CASE("a file without a single record fails, one with some does not", "[own_file]") {
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto [none, none_told] = answered("[1, 2]");
  CHECK(none == 4);
  CHECK(lines(none_told) == 2);
  const auto [some, some_told] = answered("[1, " + run_of("512") + "]");
  CHECK(some == 0);
  CHECK(lines(some_told) == 2);
  CHECK(answered("[]").first == 0);
}

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
