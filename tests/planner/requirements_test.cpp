#include "planner/answers/requirements.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/commands/models.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/output.hpp"
#include "planner/sentence.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

using namespace shardwise;

namespace {

Request without_gpus(const std::string& model, std::vector<Method> methods = {}) {
  Request r = request_for(model, "", std::move(methods));
  r.gpus.reset();
  return r;
}

// What `fit` would say of so many cards with the same work.
std::optional<Verdict> verdict_on(Request r, const RequirementRow& row, const std::string& gpus) {
  r.gpus = gpus;
  r.microbatch = 1;
  r.methods = {row.way.method};
  r.optimizer = row.way.optimizer;
  const ResolvedRequest one = resolved(r);
  const auto chosen = choose_plan(one, row.way.method, one.clusters.front(), Room::demanded);
  return chosen ? std::optional(chosen->verdict) : std::nullopt;
}

int cards_of(const ChosenPlan& chosen) { return chosen.question.cluster.gpus(); }

// The smallest number on which it fits; one more than was tried where none does.
int least_of(const Requirement& cell) {
  if (cell.tight) return cards_of(*cell.tight);
  return cell.roomy ? cards_of(*cell.roomy) : most_cards_tried + 1;
}

struct Said {
  int code;
  std::string text;
};

Said said(const Request& r, bool json = false) {
  std::ostringstream out, err;
  const int code = models(r, known_facts(), {out, err, json});
  return {code, out.str() + err.str()};
}

}  // namespace

TEST_CASE("of the numbers of cards told, the one before does not do", "[requirements]") {
  const Request r = without_gpus("8b");
  const auto answer = requirements(r, known_facts());
  REQUIRE(answer);
  // Two optimizers of full, lora and qlora.
  REQUIRE(answer->rows.size() == 4);
  CHECK(way_name(answer->rows[0].way) == "full, adamw");
  CHECK(way_name(answer->rows[1].way) == "full, adamw8bit");
  REQUIRE(answer->cards.size() == 6);
  for (const RequirementRow& row : answer->rows)
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const std::string& card = answer->cards[c].id;
      const Requirement& cell = row.cells[c];
      INFO(way_name(row.way) << " on " << card);
      REQUIRE(cell.roomy);
      const int count = cards_of(*cell.roomy);
      CHECK(cell.roomy->question.plan.microbatch == 1);
      CHECK(verdict_on(r, row, sentence(count, 'x', card)) == Verdict::fits);
      if (count == 1) continue;
      // 1 to 8, then whole boxes of 8: before 16 stands 8.
      const int before = count <= 8 ? count - 1 : count - 8;
      CHECK(verdict_on(r, row, sentence(before, 'x', card)) != Verdict::fits);
      if (!cell.tight) continue;
      CHECK(cards_of(*cell.tight) < count);
      CHECK(verdict_on(r, row, sentence(cards_of(*cell.tight), 'x', card)) == Verdict::tight);
    }
}

// On which it fits, with room or without. With room the order may be another: tensor parallelism
// over PCIe is tried only where nothing else fits with room (plan_choice.hpp), and may leave more.
TEST_CASE("a larger card never takes more of them, nor a longer sequence fewer", "[requirements]") {
  Request r = without_gpus("8b", {Method::full, Method::qlora});
  const auto narrow = requirements(r, known_facts());
  r.sequence = 16384;
  const auto wide = requirements(r, known_facts());
  REQUIRE((narrow && wide));
  for (std::size_t row = 0; row < narrow->rows.size(); ++row)
    for (std::size_t c = 0; c < narrow->cards.size(); ++c) {
      INFO(way_name(narrow->rows[row].way) << " on " << narrow->cards[c].id);
      const int now = least_of(narrow->rows[row].cells[c]);
      CHECK(now <= least_of(wide->rows[row].cells[c]));
      if (c > 0) CHECK(now <= least_of(narrow->rows[row].cells[c - 1]));
    }
}

// 8.03 B parameters of 16 bytes are 119.7 GiB: two cards of 79.2 GiB or more without offload, one
// of 139 GiB; in 8-bit states (two of a byte) and weights and gradients of 16 bits 6 bytes, 44.9.
TEST_CASE("what the states alone take is less than the cards that are told", "[requirements]") {
  const auto answer = requirements(without_gpus("8b", {Method::full}), known_facts());
  REQUIRE(answer);
  for (std::size_t c = 0; c < answer->cards.size(); ++c) {
    const Requirement& cell = answer->rows[1].cells[c];
    INFO(answer->cards[c].id);
    CHECK(least_of(cell) * gib(answer->cards[c].usable_memory()) > 44.8);
  }
}

TEST_CASE("an optimizer or a microbatch that was asked for is kept", "[requirements]") {
  Request r = without_gpus("smollm2-135m", {Method::full});
  r.optimizer = optimizer_named("sgd");
  r.microbatch = 4;
  const auto answer = requirements(r, known_facts());
  REQUIRE(answer);
  REQUIRE(answer->rows.size() == 1);
  CHECK(way_name(answer->rows[0].way) == "full, sgd");
  REQUIRE(answer->rows[0].cells[0].roomy);
  CHECK(answer->rows[0].cells[0].roomy->question.plan.microbatch == 4);
}

TEST_CASE("what hangs on a number of GPUs is refused where that is asked", "[requirements]") {
  Request r = without_gpus("8b");
  r.plans = {"tp=8"};
  r.nodes = 2;
  const auto answer = requirements(r, known_facts());
  REQUIRE_FALSE(answer);
  REQUIRE(answer.error().size() == 2);
  CHECK(answer.error()[0].where == "--plan");
  CHECK(answer.error()[1].where == "--nodes");
}

TEST_CASE("models without GPUs asks for a whole name", "[requirements]") {
  const Said part = said(without_gpus("nosuchmodel"));
  CHECK(part.code == 2);
  CHECK(part.text.find("--gpus asks about all models") != std::string::npos);
  Request none;
  const Said nothing = said(none);
  CHECK(nothing.code == 2);
  CHECK(nothing.text.find("how many cards it takes") != std::string::npos);
}

TEST_CASE("models with GPUs takes the path of a config.json too", "[requirements]") {
  Request r = request_for(source_dir() + "/tests/catalog/hf_configs/01-ai--Yi-34B.json", "rtx-4090",
                          {Method::qlora});
  const Said told = said(r);
  CHECK(told.code == 0);
  CHECK(told.text.find("34.4 B") != std::string::npos);  // its published size
  r.model = "./nowhere.json";
  const Said missing = said(r);
  CHECK(missing.code == 4);
  CHECK(missing.text.find("./nowhere.json") != std::string::npos);
}

TEST_CASE("the table says which card stands for a size, and the command to go on",
          "[requirements]") {
  const Said told = said(without_gpus("smollm2-135m"));
  CHECK(told.code == 0);
  CHECK(told.text.find("rtx-4090") != std::string::npos);
  CHECK(told.text.find("shardwise fit smollm2-135m --gpus 1xrtx-4090") != std::string::npos);
  const Json answer = Json::parse(said(without_gpus("smollm2-135m"), true).text);
  CHECK(answer["request"]["microbatch"] == 1);
  CHECK(answer["request"]["assumed"]["microbatch"] == 1);
  // 135 M parameters of 16 bytes are 2 GiB: one of any card.
  for (const Json& row : answer["requirements"])
    for (const Json& cell : row["cards"]) CHECK(cell["fits"]["gpus"] == 1);
}

// A layer of 405B parameters has 3.2 B of them (126 layers), 6.0 GiB in 16 bits, which every card
// gathers whole, the head's 128,256 x 16,384 beside it: more cards do not shrink that.
TEST_CASE("where no number of cards does, what the most of them lack is told", "[requirements]") {
  const Request r = without_gpus("405b", {Method::lora});
  const auto answer = requirements(r, known_facts());
  REQUIRE(answer);
  const Requirement& cell = answer->rows[0].cells[0];
  REQUIRE(least_of(cell) > most_cards_tried);
  CHECK(cell.problem.find("1,024 cards: ") == 0);
  CHECK(cell.problem.find("of it gathered_parameters; nearest plan dp=1024") != std::string::npos);
  for (const Requirement& other : answer->rows[0].cells)
    CHECK(other.problem.empty() == (least_of(other) <= most_cards_tried));
  const Said told = said(r);
  CHECK(told.text.find("-: none up to 1,024; why\n     lora on 24 GB: " + cell.problem) !=
        std::string::npos);
}
