#include "planner/answers/plan_answer.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "catalog/operations.hpp"
#include "planner/answers/list_starts.hpp"
#include "planner/answers/plan_scaling.hpp"
#include "planner/answers/run_outlook.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/expected_name.hpp"
#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/launch/plan_refusal.hpp"
#include "planner/request/foreign_words.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/search/near_batch.hpp"
#include "planner/search/plan_warnings.hpp"
#include "planner/search/widened_search.hpp"
#include "planner/sentence.hpp"
#include "simulator/plan_rules.hpp"

namespace shardwise {
namespace {

Problem bad_range(const std::string& gpus) {
  return {ProblemKind::request, "--gpus",
          sentence("a range doubles from its first size to its last, such as 8..1024xH100-SXM; "
                   "found ",
                   gpus)};
}

std::optional<int> number_at_end(std::string_view text, std::size_t& from) {
  from = text.size();
  while (from > 0 && text[from - 1] >= '0' && text[from - 1] <= '9') --from;
  int n = 0;
  const auto [end, error] = std::from_chars(text.data() + from, text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1) return std::nullopt;
  return n;
}

const Objective* known_objective(const std::string& name, Problems& problems) {
  const Objective* row = objective_named(name);
  if (row != nullptr) return row;
  const std::vector<std::string_view> names = names_in(objectives());
  std::string hint = foreign_word("objective", name);
  if (hint.empty()) hint = did_you_mean(name, names);
  problems.push_back({ProblemKind::request, "--objective", expected_one_of(names, name, hint)});
  return nullptr;
}

SearchWish search_wish(const PlanWish& wish, PlanAnswer& a) {
  SearchWish s;
  s.objective = a.objective;
  s.top = wish.top;
  s.memory_fraction = wish.memory_fraction;
  s.allow_tight = wish.allow_tight;
  s.told = wish.told;
  s.host_ram_stated = a.request.host_ram_stated;
  if (!a.request.asked.framework) return s;
  const LaunchTarget* target = target_running(a.sites.front().without_zero.framework.id, a.method);
  if (target == nullptr) {
    a.notes.push_back(sentence("No launch files are written for ",
                               a.sites.front().without_zero.framework.name,
                               ": what its catalogued row does not rule out is taken to run."));
    return s;
  }
  const auto unwritten = target->workload_refusals(a.sites.front().without_zero);
  if (!unwritten.empty())
    a.notes.push_back(
        sentence("No launch file is written for the best plan: ", unwritten.front(), "."));
  s.refused = [target](const Question& q) { return first_plan_refusal(*target, q); };
  return s;
}

// Where a framework was asked for that launch files are written for.
const LaunchTarget* asked_target(const PlanAnswer& a) {
  if (!a.request.asked.framework) return nullptr;
  return target_running(a.sites.front().without_zero.framework.id, a.method);
}

// Where the best plan of a list cannot be told to the usual framework: which can.
std::string first_that_can(const PlanAnswer& a) {
  const std::vector<FoundPlan>& best = a.result.best;
  if (!a.scaling.empty() || best.empty() || !beyond_usual(a, best.front())) return "";
  const auto can = std::find_if(best.begin(), best.end(),
                                [&](const FoundPlan& p) { return !beyond_usual(a, p); });
  return can == best.end() ? " None of these is one."
                           : sentence(" The best of those is number ", can - best.begin() + 1, ".");
}

std::string shown_step(const FoundPlan& p) {
  return sentence(whole_text(p.plan), ", ", shown_time(p.forecast.step_time.expected), " a step");
}

// The first plan is what the objective says; who wants to run it is told what starts it, or which
// is the best that something starts.
void note_starts(PlanAnswer& a, const ListStarts& list) {
  const std::vector<FoundPlan>& best = a.result.best;
  if (list.started == 0) {
    a.startable = best.front();
    a.notes.push_back(sentence("The first plan is started by shardwise launch --target ",
                               listed_targets(list.first), '.'));
    return;
  }
  const std::string none = told(list.first, "the first plan");
  if (list.started) {
    a.startable = best[*list.started];
    a.notes.push_back(sentence(none, "; the best that one can is number ", *list.started + 1,
                               ", --target ", listed_targets(list.by), '.'));
    return;
  }
  if (std::optional<FoundPlan>& found = a.result.further)
    if (const PlanStarts starts = starts_of(a, *found); starts.any()) {
      a.notes.push_back(sentence(none, "; the best that one can is ", shown_step(*found),
                                 ", --target ", listed_targets(starts), '.'));
      a.startable = std::move(found);
      return;
    }
  const Question q = question_of(a, best.front());
  const LaunchTarget* usual = target_running(q.workload.framework.id, a.method);
  Refusals unwritten;
  refuse_machines(unwritten, q.cluster);
  const bool others = usual != nullptr && !a.request.asked.framework && unwritten.empty() &&
                      usual->workload_refusals(q.workload).empty();
  a.notes.push_back(sentence(
      none, ", nor any of these",
      others ? sentence("; shardwise launch --target ", usual->name, " finds the best that it can")
             : std::string(),
      "."));
}

// Nobody asked for a framework, so the search went beyond what the usual one can run. Answers mark
// such plans.
void note_what_cannot_run(PlanAnswer& a) {
  std::vector<const FoundPlan*> shown;
  for (const FoundPlan& p : a.result.best) shown.push_back(&p);
  for (const ScalingPoint& p : a.scaling)
    if (p.best) shown.push_back(&*p.best);
  for (const FoundPlan* p : shown) {
    const auto reason = beyond_usual(a, *p);
    if (!reason) continue;
    const Framework& usual = a.sites[p->site].without_zero.framework;
    if (target_running(usual.id, a.method) == nullptr) {
      a.notes.push_back(sentence("Plans with * can be told to no target of shardwise launch: ",
                                 usual.name, " takes them from a script of your own."));
      return;
    }
    a.notes.push_back(sentence("Plans with * are more than ", usual.name, " can be told (", *reason,
                               "); --framework ", usual.id, " keeps to plans that it runs.",
                               first_that_can(a)));
    return;
  }
}

// Rent, energy and what failures add, which do not depend on the plan.
SiteRates rates_of(const ResolvedRequest& r, const SearchSite& s, const Operations& operations) {
  SiteRates rates;
  rates.gpus = s.cluster.gpus();
  rates.kilowatts = gpu_energy(s.cluster, Seconds(3600)).value;
  if (const auto rental = cheapest_rental(r.facts->catalog.prices, s.cluster))
    rates.per_hour = rental->per_hour;
  const LongRun run = long_run(s.without_zero, s.cluster, Seconds(1), operations);
  rates.wall_per_useful = expected_wall_time(run, daly_interval(run)).value;
  return rates;
}

Problems add_site(PlanAnswer& a, const Request& request, const Facts& facts,
                  const Operations& operations) {
  auto r = resolve(request, facts, UnnamedMethods::one);
  if (!r) return r.error();
  r->most_gpus = a.request.gpus();  // the largest size
  a.requests.push_back(*std::move(r));
  const ResolvedRequest& kept = a.requests.back();
  SearchSite& site = a.sites.emplace_back(kept, kept.methods.front(), kept.clusters.front());
  site.rates = rates_of(kept, site, operations);
  return {};
}

// Told is which of those that were found are started.
std::optional<ListStarts> search_wider(PlanAnswer& a, const std::vector<const SearchSite*>& sites,
                                       SearchWish& search, const Facts& facts) {
  std::optional<ListStarts> starts;
  seek_startable(a, search, starts);
  const bool tight_wanted = search.allow_tight;
  a.result = widened_search(sites, facts.profile, search);
  search.further = nullptr;
  if (a.result.best.empty()) return starts;
  if (search.allow_tight && !tight_wanted)
    a.notes.push_back(
        "No plan leaves room for the error of forecasts of its kind; these fit as forecast.");
  if (const LaunchTarget* target = asked_target(a); target != nullptr && !search.refused)
    a.notes.push_back(sentence("No plan that ", target->name, " can be told fits; these are more: ",
                               first_plan_refusal(*target, question_of(a, a.result.best.front()))
                                   .value_or("each for a reason of its own"),
                               "."));
  return starts;
}

// What fits but leaves no room is no plan of the list; where it would take less than half the time,
// which is when `fit` chooses it, it is told.
void note_faster_tight(PlanAnswer& a, const std::vector<const SearchSite*>& sites,
                       SearchWish search, const Facts& facts) {
  if (search.allow_tight || a.result.best.empty() || a.objective != objective_named("time")) return;
  const FoundPlan& best = a.result.best.front();
  search.allow_tight = true;
  search.top = 1;
  search.below = best.value / tight_has_to_save;
  const SearchResult found = search_plans(sites, facts.profile, search);
  if (found.best.empty()) return;
  const FoundPlan& tight = found.best.front();
  const Forecast& f = tight.forecast;
  const StageForecast& worst = f.worst();
  a.notes.push_back(sentence(
      whole_text(tight.plan), " fits as forecast (", fixed(gib(worst.peak.device), 1), " of ",
      shown_gib(worst.capacity), ") but leaves no room for the error of such forecasts: ",
      fixed(best.forecast.step_time.expected / f.step_time.expected, 1),
      " times as fast as the first plan; --allow-tight ranks such plans as well."));
}

// The rule that most points of a space break, of those that are looked at.
std::string most_broken_rule(const PlanSpace& space) {
  constexpr std::size_t most_points = 3000;
  std::map<std::string, int> broken;
  std::size_t looked = 0;
  for (PlanPoint x : space.outer_points())
    for (std::size_t i = 0; i < space.values(PlanAxis::pipeline) && looked < most_points; ++i)
      for (std::size_t s = 0; s < space.values(PlanAxis::schedule); ++s, ++looked) {
        x[static_cast<std::size_t>(PlanAxis::pipeline)] = static_cast<std::uint16_t>(i);
        x[static_cast<std::size_t>(PlanAxis::schedule)] = static_cast<std::uint16_t>(s);
        if (const auto why = space.why_not(x)) ++broken[*why];
      }
  const auto most =
      std::max_element(broken.begin(), broken.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == broken.end()
             ? sentence("they do not divide ", counted(space.cluster().gpus(), "GPU"))
             : most->first;
}

// What was taken to be meant, but for the model's size; sizes are compared in one framework.
void note_request(PlanAnswer& a) {
  const bool sizes = a.sites.size() > 1;
  for (const std::string& note : a.request.notes)
    if (note != a.request.model_size && !(sizes && note == framework_follows_gpus_note))
      a.notes.push_back(note);
  if (sizes && a.sites.front().cluster.gpus() == 1 &&
      framework_follows_gpus(a.request.asked, a.request.methods))
    a.notes.push_back(sentence("All sizes are forecast in ", a.sites[0].with_zero.framework.name,
                               ", one GPU too, which fit forecasts in another framework."));
}

// The rules that a plan breaks which has the first of every value held fixed, as simulate would
// name them; empty where that plan is legal (and the space lacks it for another reason).
std::string rules_of_fixed(const PlanAnswer& a) {
  const SearchSite& site = a.sites.back();
  const PlanFix& fix = site.space.fix();
  std::string text;
  for (const PlanFix::Key& key : fix.keys())
    text += sentence(text.empty() ? "" : ",", key.name, '=', key.values.front());
  if (!fix.values("schedule").empty() && fix.values("pp").empty()) text += ",pp=2";
  const bool sharded = !fix.values("zero").empty();
  const Workload& w = sharded ? site.with_zero : site.without_zero;
  const auto plan = complete_plan(a.request, w, site.cluster, text);
  std::string rules;
  for (const Problem& p : plan ? plan_problems(w, *plan, site.cluster) : plan.error())
    rules += sentence(rules.empty() ? "" : "; ", p.what);
  return rules;
}

void note_nothing_legal(PlanAnswer& a) {
  if (a.result.proof.legal > 0) return;
  const PlanSpace& space = a.sites.back().space;
  if (space.fix().empty()) return;
  if (!space.nothing_left()) {
    a.notes.push_back(sentence("No plan with ", space.fix().shown(),
                               " is legal: ", most_broken_rule(space), "."));
    return;
  }
  const std::string rules = rules_of_fixed(a);
  a.notes.push_back(sentence("No plan with ", space.fix().shown(), " is legal: ",
                             *space.nothing_left(), rules.empty() ? "" : "; ", rules, "."));
}

// The search asks whether plans fit; how much of a full card they need is asked of what is shown.
void fill_need(const PlanAnswer& a, FoundPlan& p, const Profile& profile) {
  std::vector<StageForecast>& stages = p.forecast.stages;
  if (std::none_of(stages.begin(), stages.end(), [](const StageForecast& s) {
        return s.peak.device / s.capacity >= nearly_full;
      }))
    return;
  const auto f = forecast(question_of(a, p), profile, {.time = false});
  for (std::size_t i = 0; f && i < stages.size(); ++i) stages[i].needed = f->stages[i].needed;
}

void fill_needs(PlanAnswer& a, const Profile& profile) {
  for (FoundPlan& p : a.result.best) fill_need(a, p, profile);
  for (FoundPlan& p : a.pareto) fill_need(a, p, profile);
  for (ScalingPoint& p : a.scaling)
    if (p.best) fill_need(a, *p.best, profile);
}

// As the answer echoes it.
void set_wish(const PlanWish& wish, Request& r) {
  r.objective = wish.objective;
  r.top = wish.top;
  r.max_memory = wish.memory_fraction;
}

}  // namespace

PlanWish plan_wish(const Request& r) {
  PlanWish wish;
  wish.objective = r.objective.value_or(wish.objective);
  wish.top = r.top.value_or(wish.top);
  wish.memory_fraction = r.max_memory.value_or(wish.memory_fraction);
  wish.allow_tight = r.allow_tight;
  wish.pareto = r.pareto;
  return wish;
}

Result<std::vector<std::string>> cluster_sizes(const std::string& gpus) {
  const std::size_t dots = gpus.find("..");
  if (dots == std::string::npos) return std::vector<std::string>{gpus};
  std::size_t from = 0;
  const auto low = number_at_end(std::string_view(gpus).substr(0, dots), from);
  std::size_t end = dots + 2;
  while (end < gpus.size() && gpus[end] >= '0' && gpus[end] <= '9') ++end;
  std::size_t unused = 0;
  const auto high = number_at_end(std::string_view(gpus).substr(dots + 2, end - dots - 2), unused);
  if (!low || !high || *high < *low || *high % *low != 0) return bad_range(gpus);
  const int times = *high / *low;
  if ((times & (times - 1)) != 0) return bad_range(gpus);
  std::vector<std::string> sizes;
  for (std::int64_t n = *low; n <= *high; n *= 2)
    sizes.push_back(gpus.substr(0, from) + std::to_string(n) + gpus.substr(end));
  return sizes;
}

std::optional<double> usd_per_million_tokens(const SearchSite& site, const Forecast& f) {
  if (!site.rates.per_hour || f.tokens_per_s <= 0) return std::nullopt;
  return for_hours(*site.rates.per_hour, Seconds(1e6 / f.tokens_per_s)).value;
}

// Where no plan is legal for want of a batch that divides; nullptr where that is not why.
static std::unique_ptr<PlanAnswer> of_near_batch(const PlanAnswer& a, const Request& request,
                                                 const PlanWish& wish, const Facts& facts) {
  const int batch = a.request.batch, gpus = a.request.gpus();
  if (batch % gpus == 0) return nullptr;
  Request one = request;
  one.batch = nearest_batch(batch, gpus);
  auto near = plan_answer(one, wish, facts);
  if (!near || (**near).result.proof.legal == 0) return nullptr;
  (**near).request.stated = request;
  (**near).notes.insert((**near).notes.begin(), told_of_near_batch(batch, gpus));
  return *std::move(near);
}

Result<std::unique_ptr<PlanAnswer>> plan_answer(const Request& request, const PlanWish& wish,
                                                const Facts& facts) {
  auto a = std::make_unique<PlanAnswer>();
  Problems problems;
  a->objective = known_objective(wish.objective, problems);
  if (!request.plans.empty() || !request.plan_from.empty())
    problems.push_back({ProblemKind::request, "--plan",
                        "is what plan finds out; judge a plan of your own with simulate"});
  if (request.fix)
    if (const auto fix = PlanFix::parse(*request.fix); !fix) add_problems(problems, fix.error());
  const auto sizes = cluster_sizes(request.gpus.value_or(""));
  if (!sizes) add_problems(problems, sizes.error());
  const auto operations = load_operations(facts.catalog.root);
  if (!operations) add_problems(problems, operations.error());
  if (!problems.empty()) return problems;
  Request one = request;
  const bool assumed = one.methods.empty() && !one.quantization;
  if (assumed) one.methods = {Method::pretrain};
  if (request.gpus) one.gpus = sizes->back();
  auto largest = resolve(one, facts, UnnamedMethods::one);
  if (!largest) return largest.error();
  problems = precision_problems(*largest, largest->clusters.front());
  if (!problems.empty()) return problems;
  a->request = *std::move(largest);
  a->method = a->request.methods.front();
  one.batch = a->request.batch;
  for (const std::string& size : *sizes) {
    one.gpus = size;
    if (const Problems found = add_site(*a, one, facts, *operations); !found.empty()) return found;
  }
  SearchWish search = search_wish(wish, *a);
  if (a->objective->needs_rent && !a->sites.front().rates.per_hour)
    return Problem{ProblemKind::request, "--objective",
                   sentence("nobody is catalogued to rent out ", *request.gpus,
                            "; expected another objective than ", a->objective->name)};
  a->request.stated = request;
  a->request.asked.gpus = request.gpus;
  set_wish(wish, a->request.asked);
  if (assumed)
    a->notes.emplace_back(
        "No method named: pretraining; simulate, compare and launch take full fine-tuning then, so "
        "say --method pretrain to them as well.");
  note_request(*a);
  for (const std::string& note : a->sites.back().notes) a->notes.push_back(note);
  if (a->sites.size() > 1 && a->objective->name != "gpus" && !wish.pareto) {
    if (request.top) a->notes.emplace_back("Of each size the best plan is shown, not --top.");
    fill_scaling(*a, search, facts);
    fill_needs(*a, facts.profile);
    note_what_cannot_run(*a);
    if (a->result.proof.legal == 0)
      if (auto near = of_near_batch(*a, request, wish, facts)) return near;
    note_nothing_legal(*a);
    return a;
  }
  std::vector<const SearchSite*> all;
  for (const SearchSite& s : a->sites) all.push_back(&s);
  const std::optional<ListStarts> starts = search_wider(*a, all, search, facts);
  if (a->result.best.empty() && a->result.proof.legal == 0 && a->sites.size() == 1)
    if (auto near = of_near_batch(*a, request, wish, facts)) return near;
  note_nothing_legal(*a);
  note_faster_tight(*a, all, search, facts);
  if (wish.pareto) {
    SearchResult front = pareto_front(all, facts.profile, search);
    a->pareto = std::move(front.best);
    a->pareto_proof = front.proof;
    a->pareto_step = pareto_step(all);
  }
  fill_needs(*a, facts.profile);
  if (!a->result.best.empty()) {
    const FoundPlan& best = a->result.best.front();
    note_starts(*a, *starts);
    note_what_cannot_run(*a);
    a->warnings = plan_warnings(a->requests[best.site], a->sites[best.site], best, search);
  }
  return a;
}

std::optional<std::string> beyond_usual(const PlanAnswer& a, const FoundPlan& found) {
  if (a.request.asked.framework) return std::nullopt;
  const Framework& usual = a.sites[found.site].without_zero.framework;
  const LaunchTarget* target = target_running(usual.id, a.method);
  const Question q = question_of(a, found);
  if (target != nullptr) return first_plan_refusal(*target, q);
  if (takes_plan(q)) return std::nullopt;
  return "no target of shardwise launch can be told it";
}

}  // namespace shardwise
