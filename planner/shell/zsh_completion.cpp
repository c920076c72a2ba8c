#include "catalog/names.hpp"
#include "planner/sentence.hpp"
#include "planner/shell/completion.hpp"

namespace shardwise {
namespace {

constexpr std::string_view zsh_head = R"zsh(#compdef shardwise
# Completions of shardwise for zsh. Made by: shardwise completion zsh

# Asks the program which words of kind $1 can stand here; a file where it knows none.
_shardwise_asked() {
  local -a found
  found=(${(f)"$(${shardwise_program:-shardwise} completion $1 "$PREFIX" 2>/dev/null)"})
  if (( $#found == 0 )); then
    _files
  else
    compadd -U -S '' -- ${(M)found:#*=}
    compadd -U -- ${found:#*=}
  fi
}
)zsh";

constexpr std::string_view tail = R"zsh(
_shardwise() {
  local shardwise_program=$words[1]
  _shardwise_at_ "$@"
}

if [[ $funcstack[1] == _shardwise ]]; then
  _shardwise "$@"
else
  compdef _shardwise shardwise
fi
)zsh";

// Inside an _arguments specification '[', ']', ':' and '\' have a meaning of their own.
std::string zsh_plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_told(const ValueWords& values) {
  switch (values.kind) {
    case ValueKind::words:
      return "(" + joined(values.words, " ") + ")";
    case ValueKind::asked:
      return " _shardwise_asked " + values.words.front();  // the space: called as it stands
    case ValueKind::files:
      return "_files";
    case ValueKind::folders:
      return "_files -/";
    case ValueKind::anything:
      return " ";
  }
  return " ";
}

std::string option_lines(const CommandOption& o) {
  std::string text;
  for (const std::string& flag : o.flags) {
    const bool value = !o.placeholder.empty();
    std::string line =
        sentence(o.repeats ? "*" : "", flag, value && flag.starts_with("--") ? "=" : "", '[',
                 zsh_plain(short_help(o.help)), ']');
    if (value) line += sentence(':', zsh_plain(o.placeholder), ':', zsh_told(o.values));
    text += sentence("    ", shell_quoted(line), " \\\n");
  }
  return text;
}

// _shardwise_at_calibrate_import
std::string function_of(const CommandPage& page) {
  std::string name = "_shardwise_at_";
  for (std::size_t i = 1; i < page.path.size(); ++i) name += (i == 1 ? "" : "_") + page.path[i];
  return name;
}

// Where there are inner commands the first word that is no flag is one, and all else is theirs.
std::string inner_commands(const CommandPage& page) {
  std::string names, calls;
  for (const CommandPage& below : page.inner) {
    names += sentence(
        "        ", shell_quoted(sentence(below.path.back(), ':', zsh_plain(below.summary))), "\n");
    calls += sentence("        ", below.path.back(), ") ", function_of(below), " ;;\n");
  }
  return sentence("    '1: :->command' \\\n    '*:: :->inner'\n  case $state in\n    command)\n",
                  "      local -a commands\n      commands=(\n", names,
                  "      )\n      _describe command commands ;;\n    inner)\n",
                  "      case $words[1] in\n", calls, "      esac ;;\n  esac\n");
}

std::string function_text(const CommandPage& page) {
  std::string text = sentence("\n", function_of(page), "() {\n");
  if (!page.inner.empty())
    text += "  local context state state_descr line\n  typeset -A opt_args\n";
  text += sentence("  _arguments", page.inner.empty() ? "" : " -C", " \\\n");
  for (const CommandOption& o : page.options) text += option_lines(o);
  if (!page.inner.empty()) return text + inner_commands(page) + "}\n";
  for (const CommandOption& o : page.arguments)
    text += sentence("    ",
                     shell_quoted(sentence(o.repeats ? "*:" : ":", zsh_plain(o.placeholder), ':',
                                           zsh_told(o.values))),
                     " \\\n");
  text.resize(text.size() - 3);  // the last line goes on no further
  return text + "\n}\n";
}

}  // namespace

std::string zsh_completion(const CommandPage& program) {
  std::string text(zsh_head);
  for (const CommandPage* page : all_pages(program)) text += function_text(*page);
  return text + std::string(tail);
}

}  // namespace shardwise
