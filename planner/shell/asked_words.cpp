#include "planner/shell/asked_words.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "catalog/names.hpp"
#include "catalog/require.hpp"
#include "simulator/gradient_compression.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/offload_choice.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/plan_keys.hpp"

namespace shardwise {
namespace {

using Words = std::vector<std::string>;

template <class Entries>
void add_ids(const Entries& entries, Words& words) {
  for (const auto& entry : entries) words.push_back(entry.id);
}

Words model_names(const Catalog& c, std::string_view) {
  Words words;
  add_ids(c.models, words);
  for (const auto& [alias, model] : c.model_aliases) words.push_back(alias);
  return words;
}

Words gpu_names(const Catalog& c, std::string_view kept) {
  Words words;
  add_ids(c.gpus, words);
  if (kept.empty()) add_ids(c.nodes, words);
  return words;
}

Words network_names(const Catalog& c, std::string_view) {
  Words words;
  add_ids(c.networks, words);
  return words;
}

Words framework_names(const Catalog& c, std::string_view) {
  Words words;
  add_ids(c.frameworks, words);
  return words;
}

// Of the files in profiles/; the intervals beside them are no profile.
Words profile_names(const Catalog& c, std::string_view) {
  Words words;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(c.root / "profiles", error))
    if (file.path().extension() == ".json" && file.path().stem() != "spread")
      words.push_back(file.path().stem().string());
  std::sort(words.begin(), words.end());
  return words;
}

// What `catalog list` and `catalog show` take.
Words entry_names(const Catalog& c, std::string_view) {
  Words words{"gpus", "nodes", "networks", "models", "frameworks", "prices"};
  add_ids(c.gpus, words);
  add_ids(c.nodes, words);
  add_ids(c.networks, words);
  add_ids(c.models, words);
  add_ids(c.frameworks, words);
  return words;
}

template <class Rows>
Words row_names(const Rows& rows) {
  Words words;
  for (const auto& row : rows)
    if (row.name.find('%') == std::string_view::npos) words.emplace_back(row.name);
  return words;
}

// The words that one key of a plan takes; keys that take a number have none.
struct PlanValues {
  std::string_view key;
  Words (*words)();
};
Words truth() { return {"true", "false"}; }
constexpr std::array<PlanValues, 11> plan_values{
    {{"schedule", [] { return row_names(pipeline_schedules()); }},
     {"recompute", [] { return row_names(recompute_rows()); }},
     {"offload", [] { return row_names(offload_choices); }},
     {"compress", [] { return row_names(gradient_compressions); }},
     {"cp-kind",
      [] {
        return Words{"ring", "all-gather", "ulysses"};
      }},
     {"balance",
      [] {
        return Words{"speed", "even"};
      }},
     {"zero",
      [] {
        return Words{"0", "1", "2", "3"};
      }},
     {"sp", truth},
     {"split", truth},
     {"async-tp", truth},
     {"nvme", truth}}};

Words plan_words(const Catalog&, std::string_view kept) {
  Words words;
  if (!kept.ends_with('=')) {
    for (const std::string_view key : plan_keys()) words.push_back(std::string(key) + "=");
    return words;
  }
  kept.remove_suffix(1);
  const std::size_t comma = kept.rfind(',');
  if (comma != std::string_view::npos) kept.remove_prefix(comma + 1);
  for (const PlanValues& row : plan_values)
    if (row.key == kept) return row.words();
  return words;
}

// How many characters stand before the name that is being typed.
std::size_t nothing_before(std::string_view) { return 0; }

std::size_t before_gpu(std::string_view word) {
  const std::size_t plus = word.rfind('+');
  const std::size_t begin = plus == std::string_view::npos ? 0 : plus + 1;
  std::size_t digits = begin;
  while (digits < word.size() && word[digits] >= '0' && word[digits] <= '9') ++digits;
  return digits > begin && digits < word.size() && word[digits] == 'x' ? digits + 1 : begin;
}

std::size_t before_plan_word(std::string_view word) {
  const std::size_t last = word.find_last_of(",=");
  return last == std::string_view::npos ? 0 : last + 1;
}

struct Subject {
  std::string_view name;
  std::size_t (*before)(std::string_view word);
  Words (*words)(const Catalog& catalog, std::string_view kept);
};
constexpr std::array<Subject, 7> asked_rows{{{"models", nothing_before, model_names},
                                             {"gpus", before_gpu, gpu_names},
                                             {"networks", nothing_before, network_names},
                                             {"frameworks", nothing_before, framework_names},
                                             {"profiles", nothing_before, profile_names},
                                             {"plans", before_plan_word, plan_words},
                                             {"entries", nothing_before, entry_names}}};

}  // namespace

std::vector<std::string_view> asked_subjects() { return names_in(asked_rows); }

std::vector<std::string> asked_words(std::string_view subject, std::string_view word,
                                     const Catalog& catalog) {
  const auto row = std::find_if(asked_rows.begin(), asked_rows.end(),
                                [&](const Subject& each) { return each.name == subject; });
  require(row != asked_rows.end(), "only known subjects are asked for");
  const std::string_view kept = word.substr(0, row->before(word));
  const std::string begun = squeezed(word.substr(kept.size()));
  Words found;
  for (const std::string& each : row->words(catalog, kept))
    if (squeezed(each).starts_with(begun)) found.push_back(std::string(kept) + each);
  return found;
}

}  // namespace shardwise
