#include "planner/commands/command_tree.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "planner/shell/value_words.hpp"

namespace shardwise {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

// "GPUS", or without the rule that follows the name: "UINT in [0 - 65535]" is UINT.
std::string placeholder_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  std::string name = option.get_type_name();
  name = name.substr(0, name.find_first_of(" :"));
  const bool unnamed = name.empty() || name == "TEXT";
  return unnamed && option.get_positional() ? upper(option.get_name()) : name;
}

CommandOption read(const CLI::Option& option, const std::string& command) {
  CommandOption o;
  for (const std::string& name : option.get_snames()) o.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) o.flags.push_back("--" + name);
  o.placeholder = placeholder_of(option);
  o.help = option.get_description();
  if (!option.get_default_str().empty()) o.help += " (" + option.get_default_str() + ")";
  o.repeats =
      !o.placeholder.empty() &&
      (option.get_items_expected_max() > 1 ||
       (!o.flags.empty() && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll));
  o.required = option.get_required();
  o.values =
      value_words(command, o.flags.empty() ? option.get_name() : o.flags.back(), o.placeholder);
  return o;
}

CommandPage page_of(const CLI::App& app, std::vector<std::string> above) {
  CommandPage page;
  page.path = std::move(above);
  page.path.push_back(app.get_name());
  page.summary = app.get_description();
  page.closing = app.get_footer();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->get_positional() ? page.arguments : page.options)
          .push_back(read(*option, page.path.size() > 1 ? page.path[1] : ""));
  for (const CLI::App* inner : app.get_subcommands(std::function<bool(const CLI::App*)>{}))
    if (!inner->get_group().empty()) page.inner.push_back(page_of(*inner, page.path));
  return page;
}

}  // namespace

CommandPage command_tree(const CLI::App& program) { return page_of(program, {}); }

}  // namespace shardwise
