#include "planner/answers/shop_answer.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/cost.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t usual_samples = 10'000;
constexpr UsDollars usual_budget{3000};
constexpr int most_rented = 8;  // GPUs of one machine

std::vector<ShopOffer> offers_of(const Prices& prices, UsDollars budget) {
  std::vector<ShopOffer> offers;
  for (const LaunchPrice& card : prices.launch)
    for (const int cards : {1, 2, 4}) {
      if (cards * card.msrp.value > budget.value) break;
      ShopOffer& offer = offers.emplace_back();
      offer.gpus = sentence(cards, 'x', card.gpu);
      offer.price = {cards * card.msrp.value};
      offer.date = card.launch_date.empty() ? card.provenance.date : card.launch_date;
    }
  for (const CloudPrice& price : prices.cloud) {
    if (!price.per_hour || price.gpus > most_rented) continue;
    ShopOffer offer;
    offer.gpus = sentence(price.gpus, 'x', price.gpu);
    offer.rented = &price;
    offer.price = *price.per_hour;
    offer.date = price.provenance.date;
    const auto same = std::find_if(offers.begin(), offers.end(), [&](const ShopOffer& o) {
      return o.rented != nullptr && o.gpus == offer.gpus;
    });
    if (same == offers.end())
      offers.push_back(std::move(offer));
    else if (offer.price < same->price)
      *same = std::move(offer);
  }
  return offers;
}

// "Standard_ND96amsr_A100_v4" of azure is the node azure-nd96amsr-a100-v4.
std::string node_name(const CloudPrice& price) {
  std::string name = price.instance;
  for (char& c : name)
    c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::string_view plain = "standard-";
  if (name.starts_with(plain)) name.erase(0, plain.size());
  return sentence(price.provider, '-', name);
}

// What the offer itself, else the nodes of the catalog say of a rented machine; nothing where it is
// none of them.
std::optional<Bytes> rented_ram(const Catalog& catalog, const ShopOffer& offer) {
  if (offer.rented == nullptr) return std::nullopt;
  if (offer.rented->host_ram) return offer.rented->host_ram;
  const Node* node = node_named(catalog, node_name(*offer.rented));
  return node == nullptr ? std::nullopt : node->host_ram;
}

// Who buys or rents for a run wants to start it. Of the offers that a screen holds: no other has
// its star where it is read.
void note_what_nothing_starts(ShopAnswer& answer) {
  const auto shown = std::min(answer.offers.size(), most_offers_shown);
  const auto end = answer.offers.begin() + static_cast<std::ptrdiff_t>(shown);
  if (std::all_of(answer.offers.begin(), end, [](const ShopOffer& o) { return o.starts.any(); }))
    return;
  const auto first = std::find_if(answer.offers.begin(), answer.offers.end(),
                                  [](const ShopOffer& o) { return o.starts.any(); });
  answer.notes.push_back(
      sentence("No target of shardwise launch starts the plans with *: a script of your own has to",
               first == answer.offers.end()
                   ? "."
                   : sentence("; the first that one starts is ", first->gpus, ".")));
}

// Plans that offload into memory of a size that nobody knows.
void note_unknown_ram(ShopAnswer& answer) {
  std::string first;
  int many = 0;
  for (const ShopOffer& o : answer.offers)
    if (!o.host_ram && o.question && !(o.question->plan.offload == Offload{}) && many++ == 0)
      first = o.gpus;
  if (many > 0)
    answer.notes.push_back(sentence(
        many, " of these plans offload to host RAM whose size is not catalogued, the cheapest of ",
        first, "; --host-ram states it."));
}

// Fills in what the run comes to; an offer that cannot run keeps its verdict.
void judge(ShopOffer& offer, const ResolvedRequest& r, std::int64_t sequences,
           const Operations& operations, LentPlays& lent) {
  const Cluster& cluster = r.clusters.front();
  auto chosen =
      choose_plan(r, r.methods.front(), cluster, Room::weighed, nullptr, Looked::decisive, &lent);
  if (!chosen) return;
  offer.verdict = chosen->verdict;
  offer.step = chosen->forecast.step_time;
  const std::int64_t steps = (sequences - 1) / chosen->question.plan.global_batch() + 1;
  offer.time = Seconds(offer.step.expected.value * static_cast<double>(steps));
  offer.question = std::move(chosen->question);
  if (offer.rented != nullptr) {
    offer.total = for_hours(offer.price, offer.time);
    return;
  }
  offer.electricity = {gpu_energy(cluster, offer.time).value * operations.per_kwh.value};
  offer.total = {offer.price.value + offer.electricity.value};
}

bool cheaper(const ShopOffer& a, const ShopOffer& b) {
  if (a.total != b.total) return a.total < b.total;
  return a.gpus < b.gpus;
}

std::int64_t sequences_of(const ResolvedRequest& r) {
  if (r.asked.samples) return *r.asked.samples;
  if (r.asked.tokens) return (*r.asked.tokens - 1) / r.tokens_per_sample() + 1;
  return usual_samples;
}

void add_notes(ShopAnswer& answer, const Operations& operations, std::optional<int> watts) {
  if (watts)
    answer.notes.push_back(sentence("--power-limit ", *watts,
                                    " holds the cards that are bought and take it, not machines "
                                    "that are rented."));
  answer.notes.push_back(
      "Cards at the price they came out with, without the box around them; machines on demand in "
      "the cheapest region catalogued. GPUs that run neither CUDA nor ROCm are left out.");
  answer.notes.push_back(sentence("Electricity at ", fixed(operations.per_kwh.value, 4),
                                  " dollars per kWh, of the GPUs alone, at their power limit: "
                                  "without host and cooling."));
  const auto bought = std::find_if(answer.offers.begin(), answer.offers.end(),
                                   [](const ShopOffer& o) { return o.rented == nullptr; });
  const auto rented = std::find_if(answer.offers.begin(), answer.offers.end(),
                                   [](const ShopOffer& o) { return o.rented != nullptr; });
  if (bought == answer.offers.end() || rented == answer.offers.end()) return;
  const double saved = rented->total.value - bought->electricity.value;
  if (saved > 0)
    answer.notes.push_back(sentence("Buying ", bought->gpus, " pays off against renting ",
                                    rented->gpus, " after ",
                                    shown_rate(bought->price.value / saved), " such runs."));
}

// Gaudi: what is forecast is PyTorch on CUDA or ROCm, and nobody buys what cannot run it.
bool runs_other_software(const Facts& facts, const std::string& gpus) {
  const auto clusters = parse_gpus(facts.catalog, gpus, {});
  return clusters && !clusters->front().groups.front().gpu.runs_cuda_or_rocm();
}

// Fills in which targets start those that run. Most offers of one plan allocate alike: what was
// played for one of them serves the next.
void find_starts(std::vector<ShopOffer>& offers, const std::vector<ResolvedRequest>& requests) {
  std::map<std::string, std::vector<std::size_t>> by_plan;
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (offers[i].verdict != Verdict::does_not_fit)
      by_plan[whole_text(offers[i].question->plan)].push_back(i);
  std::vector<const std::vector<std::size_t>*> groups;
  for (const auto& [plan, group] : by_plan) groups.push_back(&group);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto* a, const auto* b) { return a->size() > b->size(); });
  on_all_cores(groups.size(), [&](std::size_t g) {
    std::vector<PlayedStart> played;
    for (const std::size_t i : *groups[g])
      offers[i].starts = plan_starts(requests[i], *offers[i].question, &played, true);
  });
}

// Who rents a machine may not set its limits (nvidia-smi -pl needs root on the host); a card keeps
// its own where that is lower, or so high that its driver does not take this one.
bool may_be_held(const Catalog& catalog, const ShopOffer& offer, std::optional<int> watts) {
  if (!watts || offer.rented != nullptr) return false;
  ClusterOptions held;
  held.power_limit_w = watts;
  const auto clusters = parse_gpus(catalog, offer.gpus, held);
  return clusters && clusters->front().groups.front().gpu.power_w > *watts;
}

// What is offered is one machine each time.
Problems not_asked_here(const Request& request) {
  Problems problems;
  if (request.gpus)
    problems.push_back({ProblemKind::request, "--gpus", "is what shop finds out; leave it away"});
  const auto of_several = [&](bool given, const char* flag) {
    if (given)
      problems.push_back({ProblemKind::request, flag,
                          "is of several machines, shop compares single ones; leave it away, and "
                          "ask fit or plan about a cluster"});
  };
  const auto of_one_there = [&](bool given, const char* flag) {
    if (given)
      problems.push_back({ProblemKind::request, flag,
                          "is of a machine that is there, shop looks for one; leave it away"});
  };
  of_one_there(request.used_memory.has_value(), "--used-memory");
  of_one_there(request.pcie_lanes.has_value(), "--pcie-lanes");
  of_several(request.network.has_value(), "--network");
  of_several(request.network_share.has_value(), "--network-share");
  of_several(request.nodes.has_value(), "--nodes");
  of_several(request.gpus_per_node.has_value(), "--gpus-per-node");
  return problems;
}

// All offers whose cards cost no more than this, judged.
Result<std::vector<ShopOffer>> judged_offers(const Request& request, const Facts& facts,
                                             const Operations& operations, UsDollars most,
                                             ShopAnswer& answer) {
  std::vector<ShopOffer> offers = offers_of(facts.catalog.prices, most);
  std::erase_if(offers, [&](const ShopOffer& o) { return runs_other_software(facts, o.gpus); });
  std::vector<ResolvedRequest> requests;
  for (ShopOffer& offer : offers) {
    Request one = request;
    one.gpus = offer.gpus;
    if (one.methods.empty()) one.methods = {Method::qlora};
    if (!one.host_ram) one.host_ram = rented_ram(facts.catalog, offer);
    if (!may_be_held(facts.catalog, offer, request.power_limit_w)) one.power_limit_w.reset();
    offer.host_ram = one.host_ram;
    auto r = resolve(one, facts, UnnamedMethods::one);
    if (!r) return r.error();
    requests.push_back(*std::move(r));
  }
  if (requests.empty())
    return Problem{ProblemKind::request, "--budget", "buys no catalogued card and rents nothing"};
  answer.request = requests.front();
  answer.request.asked.host_ram = request.host_ram;
  answer.method = requests.front().methods.front();
  answer.sequences = sequences_of(requests.front());
  LentPlays lent;
  on_all_cores(offers.size(), [&](std::size_t i) {
    judge(offers[i], requests[i], answer.sequences, operations, lent);
  });
  find_starts(offers, requests);
  return offers;
}

// The cheapest of the offers that run, of those bought or of those rented; one that nothing starts
// only where there is no other.
const ShopOffer* cheapest(const std::vector<ShopOffer>& offers, bool rented) {
  const ShopOffer* best = nullptr;
  for (const ShopOffer& o : offers) {
    if (o.verdict == Verdict::does_not_fit || (o.rented != nullptr) != rented) continue;
    const bool starts = o.starts.any(), better = best == nullptr || starts > best->starts.any();
    if (better || (starts == best->starts.any() && cheaper(o, *best))) best = &o;
  }
  return best;
}

std::string dollars(UsDollars amount) { return sentence('$', fixed(amount.value, 2)); }

// Where the budget is for nothing: what would do.
Problems note_what_is_needed(ShopAnswer& answer, const Request& request, const Facts& facts,
                             const Operations& operations) {
  ShopAnswer unused;
  const auto all =
      judged_offers(request, facts, operations, {std::numeric_limits<double>::infinity()}, unused);
  if (!all) return all.error();
  const ShopOffer *rent = cheapest(*all, true), *buy = cheapest(*all, false);
  if (rent == nullptr && buy == nullptr) {
    answer.notes.push_back(
        sentence("Nothing catalogued runs it at any price: up to four cards and "
                 "machines of up to ",
                 most_rented, " GPUs are looked at."));
    return {};
  }
  std::vector<std::string> ways;
  const auto add = [&](std::string_view how, const ShopOffer* o) {
    if (o != nullptr)
      ways.push_back(sentence(how, o->gpus,
                              o->rented != nullptr ? " of " + o->rented->provider : "", " for ",
                              dollars(o->total),
                              o->starts.any() ? ""
                                              : " (by a script of your own: no target of "
                                                "shardwise launch starts it)"));
  };
  add("rented ", rent);
  add("bought ", buy);
  answer.notes.push_back(sentence("The least that runs it: ", listed(ways, "; or "), "."));
  return {};
}

}  // namespace

Result<ShopAnswer> shop_answer(const Request& request, const Facts& facts,
                               const Operations& operations) {
  if (Problems problems = not_asked_here(request); !problems.empty()) return problems;
  ShopAnswer answer;
  answer.budget = request.budget ? UsDollars{*request.budget} : usual_budget;
  auto judged = judged_offers(request, facts, operations, answer.budget, answer);
  if (!judged) return judged.error();
  for (ShopOffer& offer : *judged) {
    if (offer.verdict == Verdict::does_not_fit)
      ++answer.do_not_fit;
    else if (offer.total > answer.budget)
      ++answer.too_dear;
    else
      answer.offers.push_back(std::move(offer));
  }
  std::sort(answer.offers.begin(), answer.offers.end(), cheaper);
  if (answer.offers.empty())
    if (const auto problems = note_what_is_needed(answer, request, facts, operations);
        !problems.empty())
      return problems;
  if (framework_follows_gpus(request, {answer.method}))
    answer.notes.emplace_back(framework_follows_gpus_note);
  add_notes(answer, operations, request.power_limit_w);
  note_unknown_ram(answer);
  note_what_nothing_starts(answer);
  return answer;
}

}  // namespace shardwise
