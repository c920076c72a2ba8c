#include "planner/search/plan_fix.hpp"

#include <algorithm>
#include <array>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/expected_name.hpp"
#include "planner/parted.hpp"
#include "planner/sentence.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {
namespace {

struct FixRow {
  std::string_view key;
  std::string (*value)(const ParallelPlan&);
  int low = 1;  // of a number
};

using P = ParallelPlan;
constexpr std::array<FixRow, 12> fix_rows{{
    {"dp", [](const P& p) { return std::to_string(p.data); }},
    {"tp", [](const P& p) { return std::to_string(p.tensor); }},
    {"sp", [](const P& p) { return std::string(p.sequence_parallel ? "true" : "false"); }},
    {"cp", [](const P& p) { return std::to_string(p.context); }},
    {"pp", [](const P& p) { return std::to_string(p.pipeline); }},
    {"vpp", [](const P& p) { return std::to_string(p.chunks); }},
    {"schedule", [](const P& p) { return p.layer_split ? std::string() : p.schedule; }},
    {"ep", [](const P& p) { return std::to_string(p.expert); }},
    {"zero", [](const P& p) { return std::to_string(p.zero_stage); }, 0},
    {"mbs", [](const P& p) { return std::to_string(p.microbatch); }},
    {"ga", [](const P& p) { return std::to_string(p.microbatches); }},
    {"recompute", [](const P& p) { return p.recompute; }},
}};

Problem wrong(std::string what) { return {ProblemKind::request, "--fix", std::move(what)}; }

std::vector<std::string_view> names_of_keys() {
  std::vector<std::string_view> names;
  for (const FixRow& row : fix_rows) names.push_back(row.key);
  return names;
}

Problem unknown_key(const std::string& name) {
  if (name == "offload") return wrong("offload is held by a flag of its own, --offload");
  const std::vector<std::string_view> names = names_of_keys();
  return wrong(expected_one_of(names, name, did_you_mean(name, names)));
}

// The value as plans spell it.
Result<std::string> read_value(const FixRow& row, const std::string& value) {
  const auto bad = [&] {
    return wrong(
        sentence("\"", printable(value), "\" is no value of ", row.key, ", as --plan takes it"));
  };
  const auto plan = parse_plan(sentence(row.key, '=', value));
  if (value.empty() || !plan) return bad();
  std::string spelled = row.value(*plan);
  const bool known = row.key == "schedule"    ? find_pipeline_schedule(spelled) != nullptr
                     : row.key == "recompute" ? static_cast<bool>(recompute_policy(spelled))
                     : row.key == "sp"        ? true
                                              : std::stoll(spelled) >= row.low;
  if (!known || (row.key == "zero" && plan->zero_stage > 3)) return bad();
  return spelled;
}

}  // namespace

Result<PlanFix> PlanFix::parse(const std::string& text) {
  PlanFix fix;
  Problems problems;
  for (const std::string& part : parted(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto row = std::find_if(fix_rows.begin(), fix_rows.end(),
                                  [&](const FixRow& r) { return r.key == name; });
    if (row == fix_rows.end()) {
      problems.push_back(unknown_key(name));
    } else if (equals == std::string::npos) {
      problems.push_back(wrong(sentence(name, " needs a value, such as ", name, "=VALUE")));
    } else if (!fix.values(name).empty()) {
      problems.push_back(wrong(
          sentence(name, " is given twice; several values go with one key: ", name, "=ONE|OTHER")));
    } else {
      Key& key = fix.keys_.emplace_back(Key{name, {}});
      for (const std::string& value : parted(part.substr(equals + 1), '|')) {
        auto read = read_value(*row, value);
        if (read)
          key.values.push_back(*std::move(read));
        else
          problems.push_back(read.error().front());
      }
      if (key.values.empty()) key.values.emplace_back();  // it was given, though badly
    }
  }
  if (!problems.empty()) return problems;
  return fix;
}

bool PlanFix::allows(std::string_view key, std::string_view value) const {
  const auto at = std::find_if(keys_.begin(), keys_.end(),
                               [&](const Key& k) { return std::string_view(k.name) == key; });
  return at == keys_.end() ||
         std::find(at->values.begin(), at->values.end(), value) != at->values.end();
}

bool PlanFix::allows(const ParallelPlan& plan) const {
  return std::all_of(keys_.begin(), keys_.end(), [&](const Key& k) {
    const auto row = std::find_if(fix_rows.begin(), fix_rows.end(),
                                  [&](const FixRow& r) { return r.key == k.name; });
    return allows(k.name, row->value(plan));
  });
}

std::vector<std::string> PlanFix::values(std::string_view key) const {
  for (const Key& k : keys_)
    if (std::string_view(k.name) == key) return k.values;
  return {};
}

std::string PlanFix::shown() const {
  std::string text;
  for (const Key& k : keys_)
    text += (text.empty() ? "" : ", ") + k.name + '=' + listed(k.values, " or ");
  return text;
}

}  // namespace shardwise
