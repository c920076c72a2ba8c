#include "planner/answers/plan_scaling.hpp"

#include <string>
#include <utility>
#include <vector>

#include "planner/answers/list_starts.hpp"
#include "planner/figures.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/search/widened_search.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// "8, 16 and 32 GPUs".
std::string sizes_in_words(const std::vector<int>& sizes) {
  std::vector<std::string> words;
  for (const int n : sizes) words.push_back(grouped(n));
  return sentence(listed(words), sizes.size() == 1 && sizes.front() == 1 ? " GPU" : " GPUs");
}

// What starts the best plan of each size; sizes of which the same is said stand together, at the
// smallest of them. Sizes are told in rising order.
class StartNotes {
 public:
  // `further`: the best that something starts, where that was sought.
  void add(const PlanAnswer& a, const ScalingPoint& p, const FoundPlan* further) {
    if (p.starts.any()) return join({listed_targets(p.starts), {}, {}, {p.gpus}});
    const PlanStarts starts = further == nullptr ? PlanStarts{} : starts_of(a, *further);
    if (!starts.any()) return join({{}, p.starts.too_large, {}, {p.gpus}});
    said_.push_back(
        {{},
         {},
         sentence(told(p.starts, best_on({p.gpus})), "; the best that one can is ",
                  whole_text(further->plan), ", ", shown_time(further->forecast.step_time.expected),
                  " a step, --target ", listed_targets(starts), "."),
         {p.gpus}});
  }

  void write(std::vector<std::string>& notes) const {
    for (const Said& s : said_)
      if (!s.other.empty())
        notes.push_back(s.other);
      else if (!s.targets.empty())
        notes.push_back(sentence("The best plan on ", sizes_in_words(s.sizes),
                                 " is started by shardwise launch --target ", s.targets, "."));
      else
        notes.push_back(told({{}, s.too_large, {}}, best_on(s.sizes)) + ".");
  }

 private:
  struct Said {
    std::string targets;                      // that start it ...
    std::vector<std::string_view> too_large;  // ... or, if none does, what it is too large for
    std::string other;                        // of one size alone
    std::vector<int> sizes;
  };

  static std::string best_on(const std::vector<int>& sizes) {
    return sentence("the best plan on ", sizes_in_words(sizes));
  }

  void join(const Said& one) {
    for (Said& s : said_)
      if (s.other.empty() && s.targets == one.targets && s.too_large == one.too_large)
        return s.sizes.push_back(one.sizes.front());
    said_.push_back(one);
  }

  std::vector<Said> said_;
};

void note_given_up(PlanAnswer& a, const std::vector<int>& tight, const std::vector<int>& untold,
                   const LaunchTarget* target) {
  if (!tight.empty())
    a.notes.push_back(sentence("On ", sizes_in_words(tight),
                               " no plan leaves room for the error of forecasts of its kind; what "
                               "is shown fits as forecast."));
  if (!untold.empty() && target != nullptr)
    a.notes.push_back(sentence("On ", sizes_in_words(untold), " no plan that ", target->name,
                               " can be told fits; what is shown is more."));
}

}  // namespace

void fill_scaling(PlanAnswer& a, const SearchWish& wish, const Facts& facts) {
  SearchProof sum;
  StartNotes start_notes;
  std::vector<int> tight, untold;
  for (std::size_t i = 0; i < a.sites.size(); ++i) {
    SearchWish one = wish;
    one.top = 1;
    std::optional<ListStarts> starts;
    seek_startable(a, one, starts, i);
    SearchResult r = widened_search({&a.sites[i]}, facts.profile, one);
    ScalingPoint& p = a.scaling.emplace_back();
    p.gpus = a.sites[i].cluster.gpus();
    p.cluster = a.sites[i].cluster.spoken;
    sum += r.proof;
    if (r.best.empty()) continue;
    p.best = std::move(r.best.front());
    p.best->site = i;
    if (r.further) r.further->site = i;
    p.starts = starts ? std::move(starts->first) : starts_of(a, *p.best);
    start_notes.add(a, p, r.further ? &*r.further : nullptr);
    if (one.allow_tight && !wish.allow_tight) tight.push_back(p.gpus);
    if (wish.refused && !one.refused) untold.push_back(p.gpus);
    a.result.best.push_back(*p.best);
    if (i == 0 || !a.scaling[i - 1].best) continue;
    p.faster =
        a.scaling[i - 1].best->forecast.step_time.expected / p.best->forecast.step_time.expected;
    if (!a.stops_paying && *p.faster < doubling_pays) a.stops_paying = a.scaling[i - 1].gpus;
  }
  a.result.proof = sum;
  note_given_up(a, tight, untold,
                target_running(a.sites.front().without_zero.framework.id, a.method));
  start_notes.write(a.notes);
}

}  // namespace shardwise
