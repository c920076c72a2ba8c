#include "planner/answers/launch_answer.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/answers/plan_starts.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/expected_name.hpp"
#include "planner/figures.hpp"
#include "planner/launch/learning_rate.hpp"
#include "planner/request/foreign_words.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/search/near_batch.hpp"
#include "planner/search/plan_choice.hpp"
#include "planner/search/plan_search.hpp"
#include "planner/search/search_known.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

// Where no target is named: the one that runs the framework that is.
std::string target_meant(const Request& request) {
  if (!request.framework) return "; fit names those that start its plan";
  for (const MethodRow& row : method_rows) {
    const auto& asked = request.methods;
    if (!asked.empty() && std::find(asked.begin(), asked.end(), row.method) == asked.end())
      continue;
    if (const LaunchTarget* target = target_running(*request.framework, row.method))
      return sentence("; did you mean --target ", target->name, '?');
  }
  return {};
}

// Of a target that no row has.
Problem unknown_target(const Request& request) {
  const std::vector<std::string_view> known = names_in(launch_targets());
  const std::optional<std::string>& name = request.target;
  if (!name)
    return {ProblemKind::request, "--target",
            sentence("is missing; expected ", listed(known, " or "), target_meant(request))};
  std::string hint = foreign_word("target", *name);
  if (hint.empty()) hint = did_you_mean(*name, known);
  return {ProblemKind::request, "--target", expected_one_of(known, *name, hint)};
}

struct Decided {
  Question question;
  Forecast forecast;
  std::vector<std::string> notes;
  bool searched = false;
};

Problems as_problems(const LaunchTarget& target, const std::vector<std::string>& reasons) {
  Problems problems;
  for (const std::string& why : reasons)
    problems.push_back({ProblemKind::request, sentence("--target ", target.name), why});
  return problems;
}

Result<Decided> asked_plan(const ResolvedRequest& r, Method method) {
  if (r.asked.plans.size() > 1)
    return Problem{ProblemKind::request, "--plan",
                   sentence("expected one plan, found ", r.asked.plans.size())};
  const Cluster& cluster = r.clusters.front();
  ChosenWorkload chosen = choose_workload(r, method, cluster, 0);
  auto plan = complete_plan(r, chosen.workload, cluster, r.asked.plans.front());
  if (!plan) return plan.error();
  chosen = choose_workload(r, method, cluster, *plan);
  Question question{chosen.workload, *std::move(plan), cluster};
  auto f = forecast(question, r.facts->profile, {.unfold = r.asked.unfold});
  if (!f) return f.error();
  Decided d{std::move(question), *std::move(f), chosen.notes, false};
  d.notes.insert(d.notes.end(), d.forecast.notes.begin(), d.forecast.notes.end());
  return d;
}

// The first of what `plan` ranks, of plans that the target can be told, where it is faster than
// what `fit` chooses by more than the weight that a tight plan has to carry there.
std::optional<FoundPlan> faster_than(const ChosenPlan& chosen, const ResolvedRequest& r,
                                     Method method, const LaunchTarget& target) {
  const SearchSite site(r, method, r.clusters.front());
  const std::vector<const SearchSite*> sites{&site};
  SearchWish wish;
  wish.known = std::make_shared<SearchKnown>(sites, r.facts->profile);
  wish.objective = objective_named("time");
  wish.top = 1;
  wish.host_ram_stated = r.host_ram_stated;
  wish.refused = [&](const Question& q) { return first_plan_refusal(target, q); };
  const double step = chosen.forecast.step_time.expected.value;
  if (chosen.verdict == Verdict::fits) wish.below = step;
  if (chosen.verdict == Verdict::tight) wish.below = tight_has_to_save * step;
  SearchResult found = search_plans(sites, r.facts->profile, wish);
  wish.allow_tight = true;
  if (found.best.empty() && chosen.verdict != Verdict::fits) {
    if (chosen.verdict == Verdict::tight) wish.below = step;
    found = search_plans(sites, r.facts->profile, wish);
  }
  if (found.best.empty()) return std::nullopt;
  return std::move(found.best.front());
}

std::string told_of_faster(const ChosenPlan& chosen, const LaunchTarget& target) {
  if (chosen.verdict == Verdict::does_not_fit)
    return sentence("What shardwise plan ranks first, of plans that ", target.name,
                    " can be told; none that shardwise fit looks at fits.");
  return sentence("What shardwise plan ranks first, of plans that ", target.name,
                  " can be told; shardwise fit keeps to ", whole_text(chosen.question.plan), ", ",
                  shown_time(chosen.forecast.step_time.expected), " a step.");
}

// Nobody asked for the plan, so it is the best that the target can be told, of what `fit` and
// `plan` look at. Where none fits, it is the one that misses by least.
Result<Decided> chosen_plan(const ResolvedRequest& request, Method method,
                            const LaunchTarget& target) {
  const Cluster& cluster = request.clusters.front();
  const auto unwritten =
      target.workload_refusals(choose_workload(request, method, cluster, 0).workload);
  if (!unwritten.empty()) return as_problems(target, unwritten);
  auto chosen = choose_near_plan(request, method, cluster, &target);
  if (!chosen) return chosen.error();
  ResolvedRequest r = request;
  r.batch = static_cast<int>(chosen->question.plan.global_batch());
  const auto faster = faster_than(*chosen, r, method, target);
  if (!faster)
    return Decided{std::move(chosen->question), std::move(chosen->forecast),
                   std::move(chosen->notes), true};
  ChosenWorkload found = choose_workload(r, method, cluster, faster->plan);
  Question question{std::move(found.workload), faster->plan, cluster};
  auto f = forecast(question, r.facts->profile, {.unfold = r.asked.unfold});
  if (!f) return f.error();
  Decided d{std::move(question), *std::move(f), std::move(found.notes), true};
  if (r.batch != request.batch)
    d.notes.insert(d.notes.begin(), told_of_near_batch(request.batch, cluster.gpus()));
  d.notes.push_back(told_of_faster(*chosen, target));
  d.notes.insert(d.notes.end(), d.forecast.notes.begin(), d.forecast.notes.end());
  return d;
}

// Two frameworks may run one target, depending on the ZeRO stage: the plan is decided with the one
// for several ranks, then again where it turns out to need the other. Where that one would choose
// the first again, it runs the plan that the first chose.
Result<Decided> decided(const Request& request, const LaunchTarget& target, const Facts& facts,
                        ResolvedRequest& resolved) {
  const bool stated = request.framework.has_value();
  Request asked = request;
  const auto named = resolve(request, facts, UnnamedMethods::one);
  if (!named) return named.error();
  const Method method = named->methods.front();
  const auto decide = [&](int zero_stage) -> Result<Decided> {
    const std::string_view theirs = target.framework(method, zero_stage);
    if (const auto lacking = stated ? std::nullopt : lacking_file(facts.catalog, theirs))
      return Problem{ProblemKind::file, *lacking,
                     sentence("is not in the catalog: ", target.name,
                              " is forecast in it where "
                              "--framework names no other")};
    if (!stated) asked.framework = std::string(theirs);
    auto r = resolve(asked, facts, UnnamedMethods::one);
    if (!r) return r.error();
    resolved = *std::move(r);
    return resolved.asked.plans.empty() ? chosen_plan(resolved, method, target)
                                        : asked_plan(resolved, method);
  };
  const auto runs_there = [&](const Decided& d, int zero_stage) {
    const int found = d.question.plan.zero_stage;
    return stated || target.framework(method, found) == target.framework(method, zero_stage);
  };
  auto sharded = decide(3);
  if (!sharded || runs_there(*sharded, 3)) return sharded;
  auto whole = decide(0);
  if (!whole || runs_there(*whole, 0)) return whole;
  resolved.asked.plans = {whole_text(sharded->question.plan)};
  auto first = asked_plan(resolved, method);
  if (first) first->searched = true;
  return first;
}

// A framework that was asked for may not be the one that the files run: then what they run is
// forecast as well, with the same plan and work. Nothing is written that fits where it was asked
// for and not where it runs.
Result<std::optional<std::string>> forecast_of_another(const ResolvedRequest& r,
                                                       const LaunchTarget& target,
                                                       const Question& q, const Forecast& asked) {
  std::optional<std::string> nothing;
  if (!r.asked.framework) return nothing;
  const Method method = q.workload.method;
  const Framework* run =
      framework_of_id(r.facts->catalog, target.framework(method, q.plan.zero_stage));
  if (run == nullptr || run->family == q.workload.framework.family) return nothing;
  const auto f = forecast(question_in(r, q, target), r.facts->profile);
  const std::string told = sentence("The forecast is of ", q.workload.framework.name,
                                    ", as asked; these files run ", run->name);
  if (!f) return {sentence(told, ".")};
  const StageForecast& s = f->worst();
  const bool fits = judged(*f, r.host_ram_stated) != Verdict::does_not_fit;
  if (!fits && judged(asked, r.host_ram_stated) != Verdict::does_not_fit)
    return Problem{ProblemKind::request, "--framework",
                   sentence("this plan fits in ", q.workload.framework.name, " (",
                            shown_gib(asked.worst().peak.device), " per GPU), but the files run ",
                            run->name, ", where it needs ", shown_gib(s.peak.device), " of ",
                            shown_gib(s.capacity), "; expected --framework ", run->id)};
  return {sentence(told, ": ", shown_gib(s.peak.device), " of ", shown_gib(s.capacity),
                   " per GPU, ", shown_time(f->step_time.expected), " a step.")};
}

std::optional<std::int64_t> steps_of(const ResolvedRequest& r, const Question& q) {
  const std::int64_t batch = q.plan.global_batch();
  std::optional<std::int64_t> sequences = r.asked.samples;
  if (!sequences && r.asked.tokens)
    sequences = (*r.asked.tokens + q.workload.sequence - 1) / q.workload.sequence;
  if (!sequences) return std::nullopt;
  return (*sequences + batch - 1) / batch;
}

// One line for a search in vain. Who reads it may still want the files: forecasts err.
std::string what_is_missing(const LaunchAnswer& a) {
  const Forecast& f = a.forecast;
  const Bytes host =
      std::max(f.host.load_peak, f.host.steady) - f.host.available.value_or(Bytes(0));
  return sentence("No plan that ", a.target->name, " can be told fits: ",
                  f.margin < Bytes(0) ? sentence(shown_difference(Bytes(0) - f.margin), " per GPU")
                                      : sentence(shown_gib(host), " of RAM per node"),
                  " are missing at the least. No files are written; --plan ",
                  whole_text(a.job.question.plan),
                  " writes them all the same; shardwise fit says what would make it fit.");
}

bool holds_weights(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path file = entry->path().filename();
    if (file.extension() == ".safetensors" ||
        (file.extension() == ".bin" && file.string().starts_with("pytorch_model")))
      return true;
  }
  return false;
}

// The folder of a config.json that the request names by its path; nothing where it names none. A
// name with a slash may be a Hugging Face id.
std::optional<fs::path> folder_asked(const ResolvedRequest& r) {
  if (r.asked.uploaded || r.asked.names_only || !r.asked.model) return std::nullopt;
  const fs::path path = *r.asked.model;
  std::error_code failed;
  const bool folder = fs::is_directory(path, failed);
  const bool file = !folder && r.asked.model->ends_with(".json");
  if (!file && r.asked.model->find('/') == std::string::npos) return std::nullopt;
  const fs::path config = folder ? path / "config.json" : path;
  if (!fs::is_regular_file(config, failed)) return std::nullopt;
  return fs::absolute(config, failed).lexically_normal().parent_path();
}

// What weights are loaded by. The files run in another folder, so a path is written whole, and only
// where weights lie there: a config.json alone has none.
std::string loaded_from(const ResolvedRequest& r) {
  const auto folder = folder_asked(r);
  if (folder && holds_weights(*folder) && printable(folder->string()) == folder->string())
    return folder->string();
  if (!r.model.hf_id.empty()) return r.model.hf_id;
  return std::string(folder || r.asked.uploaded ? model_to_set
                                                : r.asked.model.value_or(r.model.id));
}

}  // namespace

Result<LaunchAnswer> launch_answer(const Request& request, const Facts& facts) {
  const LaunchTarget* target = launch_target_named(request.target.value_or(""));
  if (target == nullptr) return unknown_target(request);
  if (request.learning_rate && *request.learning_rate <= 0)
    return Problem{ProblemKind::request, "--learning-rate", "must be positive, found 0"};
  if (request.learning_rate_batch && !request.learning_rate && request.plan_from.empty())
    return Problem{ProblemKind::request, "--learning-rate-batch",
                   "is that of a learning rate; expected --learning-rate as well"};
  ResolvedRequest r;
  auto d = decided(request, *target, facts, r);
  if (!d) return placed(r, d.error());
  const LearningRate rate =
      learning_rate_for(request.learning_rate ? request.learning_rate : r.learning_rate,
                        request.learning_rate_batch ? request.learning_rate_batch
                        : request.learning_rate     ? std::nullopt
                                                    : r.learning_rate_batch,
                        d->question.plan.global_batch());
  r.stated = request;
  LaunchAnswer a{r,
                 target,
                 {d->question, loaded_from(r), rate.value, steps_of(r, d->question)},
                 std::move(d->forecast),
                 Verdict::fits,
                 {},
                 r.notes};
  if (r.asked.methods.empty() && r.methods.front() == Method::full)
    a.notes.emplace_back(
        "No method named: full fine-tuning; --method pretrain is what shardwise plan assumes.");
  const Problems problems = as_problems(*target, launch_refusals(*target, a.job.question));
  if (!problems.empty()) return problems;
  a.verdict = judged(a.forecast, r.host_ram_stated);
  if (d->searched && a.verdict == Verdict::does_not_fit) a.nothing_fits = what_is_missing(a);
  auto another = forecast_of_another(r, *target, a.job.question, a.forecast);
  if (!another) return another.error();
  if (*another) a.notes.push_back(**another);
  for (const std::vector<std::string>* more : {&std::as_const(d->notes), &rate.notes})
    a.notes.insert(a.notes.end(), more->begin(), more->end());
  if (!a.nothing_fits) a.files = target->write(a.job);
  return a;
}

}  // namespace shardwise
