#include <map>

#include "catalog/names.hpp"
#include "planner/sentence.hpp"
#include "planner/shell/completion.hpp"

namespace shardwise {
namespace {

// What does the work, the same for any program. bash 4 breaks words at '=', so the line is taken
// apart here and what stands before the last '=' is taken off the replies again.
constexpr std::string_view engine = R"text(
# Sets COMPREPLY to what begins with $1 of the words in $2, whatever their case.
_shardwise_begun() {
  local word
  for word in $2; do
    [[ ${word,,} == "${1,,}"* ]] && COMPREPLY+=("$word")
  done
}

# Sets COMPREPLY to the values that begin with $2 of what _shardwise_values has put into REPLY;
# $1: the program.
_shardwise_reply() {
  local i
  case $REPLY in
    ask\ *) mapfile -t COMPREPLY < <("$1" completion "${REPLY#ask }" "$2" 2>/dev/null) ;;
    words\ *) _shardwise_begun "$2" "${REPLY#words }" ;;
    folders) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
  esac
  if [[ $REPLY == folders || $REPLY == files ]] || [[ $REPLY == ask* && -z ${COMPREPLY[0]} ]]; then
    compopt -o filenames 2>/dev/null
    [[ $REPLY == folders ]] || mapfile -t COMPREPLY < <(compgen -f -- "$2")
  fi
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  if [[ $2 == *=* && $COMP_WORDBREAKS == *=* ]]; then
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"${2%=*}="}; done
  fi
}

_shardwise() {
  local line=${COMP_LINE:0:COMP_POINT} words word REPLY path='' flag='' place=0
  COMPREPLY=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ -n $flag ]]; then
      flag=''
    elif [[ $word == -* ]]; then
      [[ $word == *=* ]] || ! _shardwise_values "$path" "$word" || flag=$word
    elif _shardwise_words "$path ${word}"; then
      path="${path:+$path }$word"
    else
      place=$((place + 1))
    fi
  done
  word=${words[${#words[@]}-1]}
  if [[ -n $flag ]]; then
    _shardwise_values "$path" "$flag"
    _shardwise_reply "${words[0]}" "$word"
  elif [[ $word == --*=* ]]; then
    _shardwise_values "$path" "${word%%=*}" && _shardwise_reply "${words[0]}" "${word#*=}"
  elif [[ $word == -* ]]; then
    _shardwise_words "$path" && _shardwise_begun "$word" "${REPLY%%|*}"
  else
    _shardwise_words "$path" && _shardwise_begun "$word" "${REPLY#*|}"
    if ((${#COMPREPLY[@]} == 0)) && _shardwise_values "$path" "$place"; then
      _shardwise_reply "${words[0]}" "$word"
    fi
  fi
}

complete -F _shardwise shardwise
)text";

// "ask gpus", "words a b", "files", "folders" or "any".
std::string bash_told(const ValueWords& values) {
  switch (values.kind) {
    case ValueKind::anything:
      return "any";
    case ValueKind::words:
      return "words " + joined(values.words, " ");
    case ValueKind::asked:
      return "ask " + values.words.front();
    case ValueKind::files:
      return "files";
    case ValueKind::folders:
      return "folders";
  }
  return "any";
}

// The patterns "COMMAND FLAG" and "COMMAND PLACE" of every kind of value.
std::string value_cases(const std::vector<const CommandPage*>& pages) {
  std::map<std::string, std::string> patterns;
  const auto add = [&](const CommandOption& o, const std::string& at) {
    std::string& all = patterns[bash_told(o.values)];
    all += sentence(all.empty() ? "" : " | \\\n      ", shell_quoted(at));
  };
  for (const CommandPage* page : pages) {
    for (const CommandOption& o : page->options)
      for (const std::string& flag : o.flags)
        if (!o.placeholder.empty()) add(o, spoken_path(*page) + " " + flag);
    for (std::size_t i = 0; i < page->arguments.size(); ++i)
      add(page->arguments[i],
          sentence(spoken_path(*page), ' ', page->arguments[i].repeats ? "*" : std::to_string(i)));
  }
  std::string text;
  for (const auto& [value, at] : patterns)
    text += sentence("    ", at, ")\n      REPLY=", shell_quoted(value), " ;;\n");
  return text;
}

}  // namespace

std::string bash_completion(const CommandPage& program) {
  const auto pages = all_pages(program);
  std::string text =
      "# Completions of shardwise for bash. Made by: shardwise completion bash\n\n"
      "# Puts the flags and, behind a bar, the inner commands of command $1 into REPLY.\n"
      "_shardwise_words() {\n  case ${1# } in\n";
  for (const CommandPage* page : pages) {
    std::vector<std::string> flags, inner;
    for (const CommandOption& o : page->options)
      flags.insert(flags.end(), o.flags.begin(), o.flags.end());
    for (const CommandPage& below : page->inner) inner.push_back(below.path.back());
    text += sentence("    ", shell_quoted(spoken_path(*page)), ")\n      REPLY=",
                     shell_quoted(sentence(joined(flags, " "), '|', joined(inner, " "))), " ;;\n");
  }
  text +=
      "    *) return 1 ;;\n  esac\n}\n\n"
      "# Puts what may follow flag $2, or stand at place $2, of command $1 into REPLY; fails\n"
      "# where nothing does.\n_shardwise_values() {\n  case \"$1 $2\" in\n";
  std::string cases = value_cases(pages);
  for (std::size_t at; (at = cases.find(" *'")) != std::string::npos;)
    cases.replace(at, 3, " '[0-9]");  // any place
  return text + cases + "    *) return 1 ;;\n  esac\n}\n" + std::string(engine);
}

}  // namespace shardwise
