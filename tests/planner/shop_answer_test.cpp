#include "planner/answers/shop_answer.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include "planner/answers/models_answer.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/sentence.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

Result<ShopAnswer> shop_for(double budget, std::int64_t samples) {
  Request r;
  r.model = "smollm2-135m";
  r.methods = {Method::lora};
  r.samples = samples;
  const auto operations = load_operations(source_dir() + "/catalog");
  REQUIRE(operations);
  r.budget = budget;
  return shop_answer(r, known_facts(), *operations);
}

}  // namespace

TEST_CASE("offers are ranked by what the run comes to, within the budget") {
  const auto a = shop_for(2000, 100'000);
  REQUIRE(a);
  REQUIRE(a->offers.size() > 20);
  CHECK(a->sequences == 100'000);
  UsDollars before{0};
  bool bought = false, rented = false;
  for (const ShopOffer& o : a->offers) {
    INFO(o.gpus);
    CHECK(o.total >= before);
    CHECK(o.total.value <= 2000);
    CHECK(o.verdict != Verdict::does_not_fit);
    before = o.total;
    (o.rented == nullptr ? bought : rented) = true;
    if (o.rented == nullptr)
      CHECK(o.total.value == Approx(o.price.value + o.electricity.value));
    else
      CHECK(o.total.value == Approx(o.price.value * o.time.value / 3600));
  }
  CHECK(bought);
  CHECK(rented);
  for (const ShopOffer& o : a->offers)  // rented out, and runs no framework of the catalog
    CHECK(o.gpus.find("gaudi") == std::string::npos);
}

TEST_CASE("more money never offers less, and electricity is power x time x price") {
  const auto poor = shop_for(400, 100'000), rich = shop_for(4000, 100'000);
  REQUIRE((poor && rich));
  CHECK(rich->offers.size() > poor->offers.size());
  for (const ShopOffer& o : rich->offers) {
    if (o.rented != nullptr || o.gpus != "1xrtx-4090") continue;
    CHECK(o.price.value == 1599);  // what it came out at
    // 450 W for the run at 0.1784 dollars a kWh.
    CHECK(o.electricity.value == Approx(0.450 * o.time.value / 3600 * 0.1784));
  }
}

// What the cheapest comes to at any price, less a little, buys nothing.
TEST_CASE("a budget that is for nothing is told what would do") {
  const auto rich = shop_for(1e9, 100'000);
  REQUIRE(rich);
  const auto first = [&](bool rented) {
    for (const ShopOffer& o : rich->offers)
      if ((o.rented != nullptr) == rented && o.starts.any()) return o;
    return ShopOffer{};
  };
  const ShopOffer rent = first(true), buy = first(false);
  const auto poor = shop_for(0.9 * rich->offers.front().total.value, 100'000);
  REQUIRE(poor);
  CHECK(poor->offers.empty());
  CHECK(poor->too_dear > 0);
  CHECK(poor->notes.front() == sentence("The least that runs it: rented ", rent.gpus, " of ",
                                        rent.rented->provider, " for $", fixed(rent.total.value, 2),
                                        "; or bought ", buy.gpus, " for $",
                                        fixed(buy.total.value, 2), "."));
}

// A screen shows the cheapest twenty; the stars of others are read nowhere. A full fine-tuning of
// 8B has its star on the cheapest offer, one RTX 6000 Ada; by LoRA all stars come after the first
// twenty.
TEST_CASE("a note on plans with a star goes with stars that are shown") {
  const auto operations = load_operations(source_dir() + "/catalog");
  REQUIRE(operations);
  for (const Method method : {Method::full, Method::lora}) {
    Request r = request_for("llama-3.1-8b", "", {method});
    r.gpus.reset();
    r.samples = 1'000;
    r.budget = 1e9;
    const auto a = shop_answer(r, known_facts(), *operations);
    REQUIRE(a);
    REQUIRE(a->offers.size() > most_offers_shown);
    const auto end = a->offers.begin() + most_offers_shown;
    const auto starred = [](const ShopOffer& o) { return !o.starts.any(); };
    CHECK(std::any_of(a->offers.begin(), a->offers.end(), starred));
    const bool shown = std::any_of(a->offers.begin(), end, starred);
    CHECK(shown == (method == Method::full));
    const bool told = std::any_of(a->notes.begin(), a->notes.end(), [](const std::string& note) {
      return note.find("starts the plans with *") != std::string::npos;
    });
    CHECK(told == shown);
  }
}

// Its names say which catalogued node a rented machine is: nebius-gpu-b200-sxm-8gpu-160vcpu-1792gb.
TEST_CASE("a rented machine has the host RAM that its node is catalogued with") {
  Request r;
  r.model = "llama-3.1-8b";
  r.methods = {Method::full};
  r.offload = Offload{.optimizer = true, .parameters = true};
  r.budget = 1e6;
  const auto operations = load_operations(source_dir() + "/catalog");
  REQUIRE(operations);
  const auto a = shop_answer(r, known_facts(), *operations);
  REQUIRE(a);
  CHECK_FALSE(a->request.asked.host_ram);
  int known = 0, unknown = 0;
  for (const ShopOffer& o : a->offers) {
    if (o.rented != nullptr && o.rented->instance == "gpu-b200-sxm_8gpu-160vcpu-1792gb")
      CHECK(o.host_ram == Bytes(std::int64_t{1792} << 30));
    // Vast's names end in MiB of RAM: 8x-H100_SXM-32-65536 has 64 GiB.
    if (o.rented != nullptr && o.rented->provider == "vast")
      CHECK(o.host_ram == Bytes(std::int64_t{64} << 30));
    const bool offloads = !(o.question->plan.offload == Offload{});
    ++(o.host_ram ? known : unknown);
    CHECK(offloads);
  }
  CHECK(known > 0);
  REQUIRE(unknown > 0);
  CHECK(std::any_of(a->notes.begin(), a->notes.end(), [&](const std::string& note) {
    return note.starts_with(std::to_string(unknown) + " of these plans offload");
  }));
  r.host_ram = Bytes(std::int64_t{4} << 40);
  const auto stated = shop_answer(r, known_facts(), *operations);
  REQUIRE(stated);
  for (const ShopOffer& o : stated->offers) CHECK(o.host_ram == r.host_ram);
  for (const std::string& note : stated->notes) CHECK(note.find("not catalogued") > note.size());
}

// 300 W are two thirds of a 4090's 450; a 3060 takes 170 at most, so that limit is none for it; and
// a B300 of 1,100 W takes no 200, but who rents one sets no limit.
TEST_CASE("a power limit holds the cards that are bought and take it") {
  const auto operations = load_operations(source_dir() + "/catalog");
  REQUIRE(operations);
  Request r;
  r.model = "smollm2-135m";
  r.methods = {Method::lora};
  r.samples = 100'000;
  const auto free = shop_answer(r, known_facts(), *operations);
  r.power_limit_w = 300;
  const auto held = shop_answer(r, known_facts(), *operations);
  r.power_limit_w = 200;
  CHECK(shop_answer(r, known_facts(), *operations));
  REQUIRE((free && held));
  const auto bought = [](const ShopAnswer& a, const std::string& gpus) {
    for (const ShopOffer& o : a.offers)
      if (o.rented == nullptr && o.gpus == gpus) return o;
    return ShopOffer{};
  };
  const ShopOffer card = bought(*held, "1xrtx-4090");
  CHECK(card.electricity.value == Approx(0.300 * card.time.value / 3600 * 0.1784));
  CHECK(card.time >= bought(*free, "1xrtx-4090").time);
  CHECK(bought(*held, "1xrtx-3060-12gb").time == bought(*free, "1xrtx-3060-12gb").time);
  for (const ShopOffer& o : held->offers)
    for (const ShopOffer& same : free->offers)
      if (o.rented != nullptr && o.rented == same.rented) CHECK(o.time == same.time);
  CHECK(std::any_of(held->notes.begin(), held->notes.end(), [](const std::string& note) {
    return note.starts_with("--power-limit 300 holds");
  }));
}

TEST_CASE("naming the GPUs is what shop is for") {
  Request r = request_for("smollm2-135m", "4090");
  const auto operations = load_operations(source_dir() + "/catalog");
  REQUIRE(operations);
  const auto a = shop_answer(r, known_facts(), *operations);
  REQUIRE_FALSE(a);
  CHECK(a.error().front().where == "--gpus");
}

TEST_CASE("models: what runs comes first, the largest first, each as fit would answer") {
  Request r;
  r.model = "smollm";
  r.gpus = "2060-12gb";
  const auto a = models_answer(r, known_facts());
  REQUIRE(a);
  REQUIRE(a->rows.size() >= 4);
  CHECK(a->methods.size() == 3);
  for (std::size_t i = 1; i < a->rows.size(); ++i) {
    const bool ran = a->rows[i - 1].best() != Verdict::does_not_fit;
    const bool runs = a->rows[i].best() != Verdict::does_not_fit;
    CHECK((ran || !runs));
    if (ran == runs) CHECK(a->rows[i - 1].parameters >= a->rows[i].parameters);
  }
  const ModelRow& row = a->rows.back();
  const ResolvedRequest one = resolved(request_for(row.model, "2060-12gb"));
  const auto chosen = choose_plan(one, one.methods.front(), one.clusters.front());
  REQUIRE(chosen);
  CHECK(row.cells.front().step.expected == chosen->forecast.step_time.expected);
  CHECK(row.cells.front().verdict == chosen->verdict);
  r.model = "SmolLM2 ";  // as its page writes it: smollm2-135m, -360m and -1.7b
  // Three models by three methods: each of nine plans is told of once.
  std::mutex one_at_a_time;
  std::multiset<std::size_t> told;
  const auto spelt = models_answer(r, known_facts(), [&](std::size_t done, std::size_t all) {
    const std::lock_guard lock(one_at_a_time);
    told.insert(done);
    if (all != 9) told.clear();
  });
  REQUIRE(spelt);
  CHECK(spelt->rows.size() == 3);
  CHECK(told == std::multiset<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  r.model = "no such model";
  CHECK_FALSE(models_answer(r, known_facts()));
}

}  // namespace shardwise
