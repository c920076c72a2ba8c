#include "planner/shell/value_words.hpp"

#include <array>

#include "catalog/collective.hpp"
#include "catalog/names.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/request/request_field.hpp"
#include "planner/search/objective.hpp"
#include "planner/validation/score.hpp"
#include "simulator/graphs/recompute_policy.hpp"

namespace shardwise {
namespace {

using Words = std::vector<std::string>;

Words recompute_words() {
  Words words;
  for (const RecomputeRow& row : recompute_rows())
    if (row.name.find('%') == std::string_view::npos) words.emplace_back(row.name);
  return words;
}

Words score_words() {
  Words words;
  for (const std::string_view name : score_by_names()) words.emplace_back(name);
  return words;
}

struct ListRow {
  std::string_view command;  // that the name belongs to; empty: any
  std::string_view name;
  Words (*words)();
};
constexpr std::array<ListRow, 8> lists{
    {{"", "--recompute", recompute_words},
     {"launch", "--target", [] { return names_in<std::string>(launch_targets()); }},
     {"plan", "--objective", [] { return names_in<std::string>(objectives()); }},
     {"validate", "--by", score_words},
     {"calibrate", "--peer-access",
      [] {
        return Words{"yes", "no"};
      }},
     {"collectives", "--collective",
      [] {
        return Words(collective_names.begin(), collective_names.end() - 1);  // not send_recv
      }},
     {"", "--lora-targets",
      [] {
        return Words{"all-linear", "attention", "attention-qv", "mlp"};
      }},
     {"catalog", "VERB", [] {
        return Words{"list", "show", "check", "pages"};
      }}}};

struct SubjectRow {
  std::string_view name, subject;  // a row of asked_words.cpp
};
constexpr std::array<SubjectRow, 10> subjects{{{"model", "models"},
                                               {"--gpus", "gpus"},
                                               {"--gpu", "gpus"},
                                               {"--network", "networks"},
                                               {"--framework", "frameworks"},
                                               {"--profile", "profiles"},
                                               {"PROFILE", "profiles"},
                                               {"--plan", "plans"},
                                               {"--why-not", "plans"},
                                               {"SUBJECT", "entries"}}};

struct PathRow {
  std::string_view word;  // the option's name or what its value is called
  ValueKind kind;
};
constexpr std::array<PathRow, 6> paths{{{"FILE", ValueKind::files},
                                        {"FILE.html", ValueKind::files},
                                        {"files", ValueKind::files},
                                        {"--fit-spread", ValueKind::files},
                                        {"--residuals", ValueKind::files},
                                        {"DIR", ValueKind::folders}}};

}  // namespace

ValueWords value_words(std::string_view command, std::string_view name,
                       std::string_view placeholder) {
  for (const RequestField& field : request_fields())
    if (field.flag == name && field.choices != nullptr) {
      ValueWords values{ValueKind::words, {}};
      for (const std::string_view word : field.choices()) values.words.emplace_back(word);
      return values;
    }
  for (const ListRow& row : lists)
    if (row.name == name && (row.command.empty() || row.command == command))
      return {ValueKind::words, row.words()};
  for (const SubjectRow& row : subjects)
    if (row.name == name) return {ValueKind::asked, {std::string(row.subject)}};
  for (const PathRow& row : paths)
    if (row.word == name || row.word == placeholder) return {row.kind, {}};
  return {};
}

}  // namespace shardwise
