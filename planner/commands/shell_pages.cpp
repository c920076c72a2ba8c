#include "planner/commands/shell_pages.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "catalog/catalog_root.hpp"
#include "catalog/json_document.hpp"
#include "catalog/load.hpp"
#include "catalog/names.hpp"
#include "planner/commands/command_tree.hpp"
#include "planner/expected_name.hpp"
#include "planner/sentence.hpp"
#include "planner/shell/asked_words.hpp"
#include "planner/shell/completion.hpp"
#include "planner/shell/manual.hpp"

namespace shardwise {
namespace {

int refuse(const char* where, const std::string& word, const std::vector<std::string_view>& known,
           const Output& output) {
  return report_problems(
      {{ProblemKind::request, where, expected_one_of(known, word, did_you_mean(word, known))}},
      output);
}

int print_completion(const CLI::App& program, const ShellPages& pages, const Output& output) {
  std::vector<std::string_view> known;
  for (const Shell& shell : shells()) {
    known.push_back(shell.name);
    if (shell.name != pages.subject) continue;
    output.out << shell.completion(command_tree(program));
    return 0;
  }
  const auto subjects = asked_subjects();
  known.insert(known.end(), subjects.begin(), subjects.end());
  if (std::find(subjects.begin(), subjects.end(), pages.subject) == subjects.end())
    return refuse("completion", pages.subject, known, output);
  const auto root = find_catalog_root();
  if (!root) return report_problems(root.error(), output);
  const auto catalog = load_catalog(*root);
  if (!catalog) return report_problems(catalog.error(), output);
  for (const std::string& word : asked_words(pages.subject, pages.word, *catalog))
    output.out << word << '\n';
  return 0;
}

int manual(const CLI::App& program, const std::string& asked, const Output& output) {
  const CommandPage tree = command_tree(program);
  std::vector<const CommandPage*> all{&tree};
  for (const CommandPage& page : tree.inner) all.push_back(&page);
  std::vector<std::string_view> known{"pages"};
  for (const CommandPage* page : all) {
    if (asked == "pages") output.out << manual_name(*page) << '\n';
    known.push_back(page->path.back());
    if (asked != page->path.back() && !(asked.empty() && page == &tree)) continue;
    output.out << manual_page(*page, tree, program.version());
    return 0;
  }
  return asked == "pages" ? 0 : refuse("man", asked, known, output);
}

}  // namespace

void add_shell_pages(CLI::App& program, ShellPages& pages) {
  pages.completion = program.add_subcommand("completion", "completions for a shell");
  pages.completion->group("");
  pages.completion->add_option("SUBJECT", pages.subject, "bash, zsh or fish; or a kind of name")
      ->required();
  pages.completion->add_option("WORD", pages.word, "what has been typed of a name");
  pages.manual = program.add_subcommand("man", "manual pages");
  pages.manual->group("");
  pages.manual->add_option("COMMAND", pages.page, "a command; pages: the names of all pages");
}

std::optional<int> shell_pages(const CLI::App& program, const ShellPages& pages,
                               const Output& output) {
  if (*pages.completion) return print_completion(program, pages, output);
  if (*pages.manual) return manual(program, pages.page, output);
  return std::nullopt;
}

}  // namespace shardwise
