#include "planner/commands/misunderstood_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "catalog/text_match.hpp"
#include "planner/request/foreign_flags.hpp"
#include "planner/request/request_field.hpp"
#include "planner/sentence.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>{}))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::string listed_commands(const CLI::App& app) {
  const std::vector<std::string> names = command_names(app);
  return listed(std::vector<std::string_view>(names.begin(), names.end()), " or ");
}

// Flags that people know from launch scripts ("--tp 8 --pp=2") and the command does not, as --plan
// says them: "tp=8,pp=2". Empty where there are none.
std::string as_plan(const CLI::App& app, int argc, char** argv) {
  std::string plan;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (!word.starts_with("--")) continue;
    if (app.get_option_no_throw(word.substr(0, word.find('='))) != nullptr) continue;
    word.erase(0, 2);
    if (word.find('=') == std::string::npos && i + 1 < argc) word += std::string("=") + argv[i + 1];
    if (word.find('=') == std::string::npos || !parse_plan(word)) continue;
    plan += (plan.empty() ? "" : ",") + word;
  }
  return plan;
}

// "--fused-loss=maybe": a flag is there or not, or is told so.
std::optional<std::string> flag_with_value(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string_view::npos) continue;
    const CLI::Option* option = app.get_option_no_throw(std::string(word.substr(0, equals)));
    if (option == nullptr || option->get_items_expected_max() > 0) continue;
    const std::string_view value = word.substr(equals + 1);
    if (value == "true" || value == "false") continue;
    return sentence(word.substr(0, equals), ": expected nothing behind it, true or false, found \"",
                    printable(value), '"');
  }
  return std::nullopt;
}

// A flag that other commands ask: it would change nothing in this one's answer.
std::optional<std::string> flag_of_others(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string flag = word.substr(0, word.find('='));
    for (const RequestField& field : request_fields())
      if (field.flag == flag && !field.belongs_to(app.get_name()) && flag.starts_with("--") &&
          app.get_option_no_throw(flag) == nullptr)
        return sentence(flag, ": changes nothing that ", app.get_name(), " answers; expected with ",
                        commands_asking(field));
  }
  return std::nullopt;
}

// A flag that the command does not know: the parser misses what it requires before it looks.
std::optional<std::string> unknown_flag(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string flag = word.substr(0, word.find('='));
    if (flag.size() > 2 && flag.starts_with("--") && app.get_option_no_throw(flag) == nullptr)
      return sentence("The following argument was not expected: ", printable(flag));
  }
  return std::nullopt;
}

// What a refusal of `word` ends with: "; what you ask is answered by fit", "; did you mean fit?" or
// nothing.
std::string meant_command(const std::string& word, const std::vector<std::string_view>& known) {
  if (const std::string_view by = answered_by(word); !by.empty())
    return sentence("; what you ask is answered by ", by);
  if (const std::string hint = did_you_mean(word, known); !hint.empty()) return "; " + hint;
  // "70b", "meta-llama/Llama-3.1-8B", "does 70b fit?"
  const bool names_size = std::any_of(word.begin(), word.end(), [](char c) { return is_digit(c); });
  if (names_size || word.find_first_of(" /") != std::string::npos)
    return "; a question begins with its command, as in shardwise fit 70b --gpus 6x24GB";
  return {};
}

constexpr std::string_view judged_plan = "--plan ";

// Who searches plans is told what of them is fixed.
std::string plan_flag(const CLI::App& app) {
  return app.get_option_no_throw("--fix") != nullptr ? "--fix " : std::string(judged_plan);
}

std::string meant_by(const CLI::App& app, const std::string& word) {
  std::string flag = word.substr(0, word.find('='));
  std::replace(flag.begin(), flag.end(), '_', '-');  // as trainers spell theirs
  if (flag != word.substr(0, flag.size()) && app.get_option_no_throw(flag) != nullptr) return flag;
  const std::string_view here = called_here(flag);
  if (here.starts_with(judged_plan) && app.get_option_no_throw("--plan") != nullptr)
    return sentence(plan_flag(app), here.substr(judged_plan.size()));
  const std::string first(here.substr(0, here.find_first_of(" ,")));
  const bool has_it = !first.starts_with('-') || app.get_option_no_throw(first) != nullptr;
  return has_it && app.get_option_no_throw(flag) == nullptr ? std::string(here) : std::string();
}

// What there is in place of a flag, as an error goes on: "; every answer is one: ...".
std::string told_instead(const CLI::App& app, const std::string& word) {
  std::string flag = word.substr(0, word.find('='));
  std::replace(flag.begin(), flag.end(), '_', '-');
  const std::string_view told = answered_otherwise(app.get_name(), flag);
  return told.empty() ? std::string() : sentence("; ", told);
}

}  // namespace

std::optional<std::string> unknown_command(const CLI::App& app, int argc, char** argv) {
  const auto commands = app.get_subcommands(std::function<bool(const CLI::App*)>{});
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with('-')) continue;
    for (const CLI::App* command : commands)
      if (command->get_name() == word) return std::nullopt;
    const std::vector<std::string> names = command_names(app);
    const std::vector<std::string_view> known(names.begin(), names.end());
    return sentence("unknown command \"", printable(word), "\"; expected ", listed(known, " or "),
                    meant_command(word, known));
  }
  return std::nullopt;
}

std::string misunderstood(const CLI::App& app, const CLI::ParseError& error, int argc,
                          char** argv) {
  if (const auto unknown = unknown_command(app, argc, argv)) return *unknown;
  std::vector<std::string> known;
  const CLI::App* inner = &app;
  std::string path;  // of it: "calibrate import "
  for (auto below = app.get_subcommands(); !below.empty(); below = inner->get_subcommands()) {
    inner = below.back();
    path += inner->get_name() + ' ';
  }
  for (const CLI::App* sub : inner->get_subcommands(std::function<bool(const CLI::App*)>{}))
    known.push_back(sub->get_name());
  for (const CLI::Option* option : inner->get_options()) known.push_back(option->get_name());
  auto misused = flag_with_value(*inner, argc, argv);
  if (!misused && inner != &app) misused = flag_of_others(*inner, argc, argv);
  if (misused) return *misused;
  std::string what = error.what();
  if (inner == &app && argc == 1) what = "a command is missing; expected " + listed_commands(app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    for (const CLI::Option* option : inner->get_options())
      if (what == option->get_name() + " is required") what += ": " + option->get_description();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    if (const auto flag = unknown_flag(*inner, argc, argv)) what = *flag + "; " + what;
  std::string line = what;
  const std::string plan = as_plan(*inner, argc, argv);
  const bool plans = !plan.empty() && inner->get_option_no_throw("--plan") != nullptr;
  if (plans) line += "; a plan is one text: " + plan_flag(*inner) + plan;
  for (int i = 1; i < argc && !plans; ++i) {
    const std::string word = argv[i];
    if (what.find(word) == std::string::npos) continue;
    if (const std::string meant = meant_by(*inner, word); !meant.empty()) {
      line += "; it is called " + meant + " here";
      break;
    }
    if (const std::string told = told_instead(*inner, word); !told.empty()) {
      line += told;
      break;
    }
    const std::vector<std::string> near =
        suggest(word, std::vector<std::string_view>(known.begin(), known.end()));
    if (!near.empty() && near.front() != word) {
      line += "; did you mean " + near.front() + '?';
      break;
    }
  }
  return line + " (see shardwise " + path + "--help)";
}

std::optional<std::string> nameless_file(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const auto& names = option->results();
    if (!(type.starts_with("FILE") || type == "DIR") || names.empty()) continue;
    if (std::find(names.begin(), names.end(), "") != names.end())
      return sentence(option->get_name(), ": is empty; expected ", type);
  }
  for (const CLI::App* inner : app.get_subcommands())
    if (auto nameless = nameless_file(*inner)) return nameless;
  return std::nullopt;
}

}  // namespace shardwise
