#include "planner/answers/requirements.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/placement.hpp"
#include "planner/figures.hpp"
#include "planner/on_all_cores.hpp"
#include "planner/sentence.hpp"
#include "simulator/graphs/memory_category.hpp"

namespace shardwise {
namespace {

// A choice: of each size that is sold one card, such as most who rent it out or own it have.
constexpr std::array<std::string_view, 6> usual_cards{"rtx-4090",       "rtx-5090",       "l40s",
                                                      "h100-sxm5-80gb", "h200-sxm-141gb", "mi300x"};

// What says how many GPUs there are, or hangs on it.
Problems not_of_any_number(const Request& request) {
  Problems problems;
  const auto refuse = [&](bool given, const char* flag) {
    if (given)
      problems.push_back({ProblemKind::request, flag,
                          "needs --gpus: without them models finds out how many GPUs it takes; "
                          "expected --gpus too, or neither"});
  };
  refuse(!request.plans.empty(), "--plan");
  refuse(!request.plan_from.empty(), "--plan-from");
  refuse(request.nodes.has_value(), "--nodes");
  refuse(request.gpus_per_node.has_value(), "--gpus-per-node");
  return problems;
}

// The i-th count that people build with.
int count_at(int i) {
  return i < largest_usual_box ? i + 1 : (i - largest_usual_box + 2) * largest_usual_box;
}

constexpr int last_count = most_cards_tried / largest_usual_box + largest_usual_box - 2;

// The plans of one way on growing numbers of one card, each forecast once.
class CardCounts {
 public:
  CardCounts(const Request& request, const Facts& facts, const Gpu& gpu, TrainingWay way)
      : request_(request), facts_(facts), card_(gpu.id) {
    request_.methods = {way.method};
    request_.optimizer = way.optimizer;
  }

  Requirement least() {
    Requirement found;
    const int roomy = first(Verdict::fits, last_count + 1);
    const int tight = first(Verdict::tight, roomy);
    if (roomy <= last_count) found.roomy = *at(roomy);
    if (tight < roomy) found.tight = *at(tight);
    if (!found.roomy && !found.tight) found.problem = what_the_most_lack();
    return found;
  }

 private:
  // The first count below `end` whose verdict is no worse, else `end`: doubling, then bisection.
  int first(Verdict wanted, int end) {
    int below = -1, reaches = 0;
    while (reaches < end && !does(reaches, wanted)) {
      below = reaches;
      reaches = 2 * reaches + 1;
    }
    if (reaches >= end) {
      reaches = end;
      if (end == last_count + 1 && does(last_count, wanted)) reaches = last_count;
    }
    while (reaches - below > 1) {
      const int middle = (below + reaches) / 2;
      (does(middle, wanted) ? reaches : below) = middle;
    }
    return reaches;
  }

  bool does(int i, Verdict wanted) {
    const auto& chosen = at(i);
    return chosen && chosen->verdict <= wanted;
  }

  const std::optional<ChosenPlan>& at(int i) {
    const auto known = seen_.find(i);
    return known != seen_.end() ? known->second : seen_[i] = choose(count_at(i));
  }

  Result<ChosenPlan> choice(int count, Looked looked) {
    request_.gpus = sentence(count, 'x', card_);
    const auto r = resolve(request_, facts_, UnnamedMethods::one);
    if (!r) return r.error();
    return choose_plan(*r, r->methods.front(), r->clusters.front(), Room::demanded, nullptr,
                       looked);
  }

  std::optional<ChosenPlan> choose(int count) {
    auto chosen = choice(count, Looked::fitting);
    if (!chosen) return std::nullopt;
    return *std::move(chosen);
  }

  // By how much the nearest plan misses there, and what most of it is: what more cards do not
  // shrink. Elsewhere nobody looks which plan is the nearest.
  std::string what_the_most_lack() {
    const auto nearest = choice(most_cards_tried, Looked::decisive);
    if (!nearest) return nearest.error().front().what;
    const StageForecast& s = nearest->forecast.worst();
    const auto most = std::max_element(s.breakdown.begin(), s.breakdown.end());
    const auto category = static_cast<std::size_t>(most - s.breakdown.begin());
    return sentence(grouped(most_cards_tried), " cards: ", shown_gib(s.peak.device), " of ",
                    shown_gib(s.capacity), " per GPU, ", shown_gib(Bytes(*most)), " of it ",
                    memory_category_names[category], "; nearest plan ",
                    whole_text(nearest->question.plan), " in ",
                    nearest->question.workload.framework.name);
  }

  Request request_;
  const Facts& facts_;
  std::string card_;
  std::map<int, std::optional<ChosenPlan>> seen_;
};

// Where nobody names an optimizer, whoever trains all weights is told of 8-bit states too.
std::vector<TrainingWay> ways_of(const ResolvedRequest& r) {
  std::vector<TrainingWay> ways;
  for (const Method method : r.methods) {
    ways.push_back({method, r.asked.optimizer});
    if (r.asked.optimizer == nullptr && method == Method::full) {
      ways.back().optimizer = optimizer_named("adamw");
      ways.push_back({method, optimizer_named("adamw8bit")});
    }
  }
  return ways;
}

}  // namespace

std::string way_name(const TrainingWay& way) {
  return way.optimizer == nullptr ? std::string(name(way.method))
                                  : sentence(name(way.method), ", ", way.optimizer->name);
}

Result<RequirementsAnswer> requirements(const Request& request, const Facts& facts) {
  Problems problems = not_of_any_number(request);
  if (!problems.empty()) return problems;
  std::vector<Gpu> cards;
  for (const std::string_view id : usual_cards)
    for (const Gpu& gpu : facts.catalog.gpus)
      if (gpu.id == id) cards.push_back(gpu);
  if (cards.empty())
    return Problem{ProblemKind::file, "devices",
                   "has none of the usual cards; expected --gpus to say which is meant"};
  Request one = request;
  if (!one.microbatch) one.microbatch = 1;
  one.gpus = cards.front().id;
  auto all = resolve(one, facts, UnnamedMethods::fine_tuning);
  if (!all) return all.error();
  RequirementsAnswer answer{*std::move(all), std::move(cards), {}};
  answer.request.stated = request;
  for (const TrainingWay& way : ways_of(answer.request))
    answer.rows.push_back({way, std::vector<Requirement>(answer.cards.size())});
  const std::size_t columns = answer.cards.size();
  on_all_cores(answer.rows.size() * columns, [&](std::size_t i) {
    const CrewMember alone;
    RequirementRow& row = answer.rows[i / columns];
    row.cells[i % columns] = CardCounts(one, facts, answer.cards[i % columns], row.way).least();
  });
  return answer;
}

}  // namespace shardwise
