#include "planner/request/plan_from.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/request/request_field.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// The keys of --plan that some format says, in the order in which it prints them.
constexpr std::string_view plan_keys[] = {
    "dp",   "tp",    "sp",  "cp", "cp-kind",   "pp",      "vpp",      "schedule", "ep",  "etp",
    "zero", "shard", "mbs", "ga", "recompute", "offload", "async-tp", "layers",   "nvme"};

std::string plan_text(const PlanWords& words) {
  std::string text;
  for (const std::string_view key : plan_keys) {
    const auto said = words.words.find(key);
    if (said == words.words.end()) continue;
    text += sentence(text.empty() ? "" : ",", key, '=', said->second.value);
  }
  return text;
}

std::string shown_field(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* many = std::get_if<std::vector<std::string>>(&value)) return listed(*many);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return {};
}

// The words that are fields of a request, where the request leaves them open. The framework is only
// implied by a file, so one that was asked for holds.
void fill_open_fields(PlanWords& words, Request& request, std::vector<PlanFileReport>& reports) {
  for (const RequestField& field : request_fields()) {
    const auto said = words.words.find(field.key);
    if (said == words.words.end()) continue;
    const FieldValue asked = field.get(request);
    if (!std::holds_alternative<std::monostate>(asked)) {
      if (!said->second.implied && field.key != "framework" && field.key != "batch" &&
          shown_field(asked) != said->second.value)
        words.problems.push_back({ProblemKind::request, std::string(field.flag),
                                  sentence(shown_field(asked), " contradicts ", said->second.where,
                                           ", which says ", said->second.value)});
      continue;
    }
    Problems found = set_from_flag(field, {said->second.value}, request);
    if (!said->second.where.empty()) request.places[std::string(field.flag)] = said->second.where;
    for (Problem& p : found)
      words.problems.push_back({ProblemKind::file, said->second.where, p.what});
    for (PlanFileReport& report : reports)
      if (said->second.implied && report.file == said->second.where)
        report.implied.push_back(sentence(field.key, ' ', said->second.value));
  }
}

}  // namespace

Result<PlanFiles> with_plan_texts(const Request& request, const PlanFileContext& context,
                                  const std::vector<PlanText>& texts) {
  auto said = read_plan_texts(texts, context);
  if (!said) return said.error();
  PlanWords& words = said->words;
  PlanFiles files{request, std::move(said->reports), said->learning_rate, said->batch};
  // Another batch was asked for: the files' plan takes it by accumulating more or less often.
  const bool other_batch = request.batch && files.batch && *request.batch != *files.batch;
  if (other_batch) words.forget("ga");
  if (other_batch || request.microbatch)  // implied: what was left of the files' batch
    for (const std::string_view word : {"mbs", "ga"}) {
      const auto left = words.words.find(word);
      if (left != words.words.end() && left->second.implied) words.words.erase(left);
    }
  std::vector<std::string> names;
  for (const PlanFileReport& r : files.reports)
    if (r.format != written_script && r.format != passed_over_script) names.push_back(r.file);
  fill_open_fields(words, files.request, files.reports);
  if (!words.problems.empty()) return words.problems;
  std::erase_if(files.reports, [](const PlanFileReport& r) {
    return r.format == written_script && r.implied.empty();
  });
  if (const std::string text = plan_text(words); !text.empty()) {
    if (request.plans.empty()) files.request.places["--plan"] = listed(names);
    files.request.plans.insert(files.request.plans.begin(), text);
  }
  files.request.plan_from.clear();
  return files;
}

Result<PlanFiles> with_plan_files(const Request& request, const PlanFileContext& context) {
  const auto texts = plan_texts(request.plan_from);
  if (!texts) return texts.error();
  return with_plan_texts(request, context, *texts);
}

}  // namespace shardwise
