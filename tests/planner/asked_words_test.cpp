// What completes a word: names of the catalog and the parts of a plan.
#include "planner/shell/asked_words.hpp"

#include <algorithm>

#include "simulator/parallel_plan.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

using namespace shardwise;
using Words = std::vector<std::string>;

namespace {

Words words_asked(std::string_view subject, std::string_view word) {
  return asked_words(subject, word, known_facts().catalog);
}

bool holds_word(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("every subject has words, and each of them completes itself", "[shell]") {
  for (const std::string_view subject : asked_subjects()) {
    const Words words = words_asked(subject, "");
    INFO(subject);
    CHECK(words.size() > 3);
    for (const std::string& word : words)
      CHECK((word.ends_with('=') ||
             holds_word(words_asked(subject, word), word)));  // behind '=': values
    CHECK(words_asked(subject, "no such name").empty());
  }
}

TEST_CASE("names are found whatever their case and dashes", "[shell]") {
  CHECK(words_asked("gpus", "RTX 4090") == words_asked("gpus", "rtx-4090"));
  CHECK(holds_word(words_asked("models", "Llama3.1"), "llama-3.1-8b"));
}

TEST_CASE("what stands before a GPU stays", "[shell]") {
  CHECK(holds_word(words_asked("gpus", "16xh1"), "16xh100-sxm5-80gb"));
  CHECK(holds_word(words_asked("gpus", "2x3090+2xrtx-40"), "2x3090+2xrtx-4090"));
  CHECK(holds_word(words_asked("gpus", "dgx"), "dgx-h100"));
  CHECK_FALSE(
      holds_word(words_asked("gpus", "2xdgx"), "2xdgx-h100"));  // nodes are counted by --nodes
}

TEST_CASE("every key and every value of a plan that is offered is understood", "[shell]") {
  const Words keys = words_asked("plans", "");
  CHECK(keys.size() == 25);  // the rows of parallel_plan.cpp
  int values = 0;
  for (const std::string& key : keys) {
    CHECK(
        words_asked("plans", "tp=2," + key.substr(0, key.size() - 1)).front().starts_with("tp=2,"));
    for (const std::string& plan : words_asked("plans", key)) {
      INFO(plan);
      CHECK(bool(parse_plan(plan)));
      ++values;
    }
  }
  CHECK(values > 20);
}
