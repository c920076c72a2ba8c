// What fit says of a box whose cards are not alike.
#include <sstream>

#include "planner/answers/fit_answer.hpp"
#include "planner/report/fit_text.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

std::string fit_on(const std::string& gpus) {
  const ResolvedRequest r = resolved(request_for("llama-3.1-8b", gpus, {Method::qlora}));
  return fit_text(r, fit_answers(r), 80);
}

// The rows of the table of memory: its head's line, then a line a card, each with that many words.
std::vector<std::string> cards_told(const std::string& text) {
  std::istringstream lines(text.substr(text.find("memory per GPU in GiB")));
  std::vector<std::string> found;
  std::string line, card;
  std::getline(lines, line);
  std::getline(lines, line);
  while (std::getline(lines, line) && line.find("where the memory") == std::string::npos) {
    std::istringstream(line) >> card;
    found.push_back(card);
  }
  return found;
}

}  // namespace

// Layers are split: the 12 GB card has the least room and is told first, with verdict and time.
TEST_CASE("each kind of card in a box has its own memory where layers are split") {
  const std::string text = fit_on("3090+3060");
  REQUIRE(text.find("layers split over 2 cards") != std::string::npos);
  CHECK(text.find(" GiB on the rtx-3060-12gb, without offload") != std::string::npos);
  CHECK(cards_told(text) == std::vector<std::string>{"rtx-3060-12gb", "rtx-3090"});
}

TEST_CASE("cards that are alike are told once") {
  const std::string text = fit_on("2x3090");
  CHECK(text.find(" per GPU, without offload") != std::string::npos);
  CHECK(cards_told(text) == std::vector<std::string>{"rtx-3090"});
}

// Of cards that miss, the first one's figures are told and the others' verdicts: 16 GB of weights
// miss 12 GB. Where one of them fits, the table has every card, with memory and time.
TEST_CASE("fit's text is the same where cards that miss are forecast for it alone") {
  const auto on = [](const char* gpus) {
    return resolved(request_for("llama-3.1-8b", gpus, {Method::lora}));
  };
  ResolvedRequest r = on("1xrtx-3060-12gb");
  const auto add = [&](const char* gpus) { r.clusters.push_back(on(gpus).clusters.front()); };
  const auto told = [&](FitTold how) { return fit_text(r, fit_answers(r, how), 80); };
  add("1xrtx-4070");
  CHECK(told(FitTold::in_text) == told(FitTold::whole));
  CHECK(told(FitTold::whole).find("nearest plan") != std::string::npos);
  add("1x4090");
  CHECK(told(FitTold::in_text) == told(FitTold::whole));
  CHECK(told(FitTold::whole).find("; on 1 of 3 cards") != std::string::npos);
}

}  // namespace shardwise
