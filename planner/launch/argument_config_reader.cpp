// Arguments as people keep them: a shell script that sets a few variables and arrays and calls a
// program, or the bare arguments. Words are split as a shell does (quotes, backslashes, comments);
// $NAME, ${NAME} and ${NAME:-default} stand for what the same file assigned. Nothing is executed,
// and a variable that the file does not assign stays as it is written.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catalog/json_document.hpp"
#include "planner/launch/config_reader.hpp"
#include "planner/launch/shell_values.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

struct ShellWord {
  std::string text;
  int line = 0;
  bool ends_line = false;  // a newline, a parenthesis or a separator follows
};

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class ShellWords {
 public:
  explicit ShellWords(std::string_view text) : text_(text) {}

  std::vector<ShellWord> read() {
    while (at_ < text_.size()) step();
    close(true);
    return std::move(words_);
  }

 private:
  void step() {
    const char c = text_[at_++];
    if (c == '\n') {
      close(true);
      ++line_;
    } else if (quote_ == 0 && (c == ' ' || c == '\t' || c == '\r')) {
      close(false);
    } else if (quote_ == 0 && !open_ && c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (quote_ == 0 && is_within_word(c)) {
      take(c);
    } else if (quote_ == 0 && separates(c)) {
      close(true);
    } else {
      within_word(c);
    }
  }

  // A parenthesis that opens within a word, and the one that closes it, are a layout's
  // ("Et|(tt|)*29tL") in a file of bare arguments; NAME=( and $( are the shell's.
  bool is_within_word(char c) {
    if (c == ')' && depth_ > 0) return depth_-- > 0;
    if (c != '(' || word_.empty() || word_.back() == '=' || word_.back() == '$') return false;
    return ++depth_ > 0;
  }

  // A bar within a word is one of a layout ("Et|tL"), as a file of bare arguments has it.
  bool separates(char c) const {
    const bool spaced = !open_ || at_ >= text_.size() || text_[at_] == ' ' || text_[at_] == '\n';
    return c == ';' || c == '&' || c == '(' || c == ')' || (c == '|' && spaced);
  }

  void within_word(char c) {
    if (c == '\\' && quote_ != '\'' && at_ < text_.size()) {
      const char next = text_[at_++];
      if (next == '\n')
        ++line_;
      else
        take(next);
    } else if ((c == '"' || c == '\'') && (quote_ == 0 || quote_ == c)) {
      quote_ = quote_ == 0 ? c : '\0';
      open_ = true;
    } else if (c == '$' && quote_ != '\'') {
      variable();
    } else {
      take(c);
    }
  }

  void take(char c) {
    word_ += c;
    open_ = true;
  }

  // $NAME, ${NAME}, ${NAME:-default} or $((A * B)), as what the file assigned makes of it.
  void variable() {
    open_ = true;
    word_ += ShellValues(variables_).reference(text_, at_);
  }

  void close(bool ends_line) {
    if (open_) {
      const std::size_t equals = word_.find('=');
      const bool assigns =
          equals != std::string::npos && equals > 0 && !word_.starts_with('-') &&
          std::all_of(word_.begin(), word_.begin() + static_cast<std::ptrdiff_t>(equals),
                      is_name_char);
      if (assigns)
        variables_[word_.substr(0, equals)] = word_.substr(equals + 1);
      else if (word_.starts_with("--") && word_.find(' ') != std::string::npos)
        push_parts();  // ARGS+=("--key value"), which ${ARGS[*]} takes apart again
      else
        words_.push_back({word_, line_, false});
    }
    if (ends_line && !words_.empty()) words_.back().ends_line = true;
    word_.clear();
    depth_ = 0;
    open_ = false;
    if (ends_line) quote_ = 0;
  }

  void push_parts() {
    std::istringstream parts(word_);
    for (std::string part; parts >> part;) words_.push_back({part, line_, false});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  char quote_ = 0;
  bool open_ = false;
  int depth_ = 0;  // of parentheses within the word
  std::string word_;
  std::vector<ShellWord> words_;
  ShellVariables variables_;
};

bool is_key(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") &&
         std::isalpha(static_cast<unsigned char>(word[2])) != 0;
}

// Python's own words for flags that take a value (transformers' HfArgumentParser) are flags.
ConfigValue argument_value(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  std::int64_t whole = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, whole);
  if (error == std::errc() && end == last && !text.empty()) return whole;
  double real = 0;
  const auto [real_end, real_error] = std::from_chars(text.data(), last, real);
  if (real_error == std::errc() && real_end == last && !text.empty()) return real;
  return text;
}

void replace(ConfigEntries& entries, const std::string& key, const std::vector<std::string>& values,
             int line) {
  std::erase_if(entries, [&](const ConfigEntry& e) {
    return e.path == key || e.path.starts_with(sentence(key, '.'));
  });
  if (values.empty()) entries.push_back({key, ConfigValue(true), line});
  if (values.size() == 1) entries.push_back({key, argument_value(values.front()), line});
  for (std::size_t i = 0; values.size() > 1 && i < values.size(); ++i)
    entries.push_back({sentence(key, '.', i), argument_value(values[i]), line});
}

}  // namespace

Result<ConfigEntries> read_argument_config(const std::string& text, const std::string& name) {
  if (text.size() > (std::size_t{1} << 20))
    return Problem{ProblemKind::file, name, "is larger than 1 MiB, the most that is read"};
  const std::vector<ShellWord> words = ShellWords(text).read();
  ConfigEntries entries;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_key(words[i].text)) continue;
    const int line = words[i].line;
    std::string key = words[i].text.substr(2);
    std::vector<std::string> values;
    if (const std::size_t equals = key.find('='); equals != std::string::npos) {
      values.push_back(key.substr(equals + 1));
      key.resize(equals);
    }
    while (!words[i].ends_line && i + 1 < words.size() && !is_key(words[i + 1].text) &&
           !words[i + 1].text.ends_with(".py"))
      values.push_back(words[++i].text);
    if (entries.size() > most_config_entries) break;
    replace(entries, key, values, line);
  }
  if (entries.empty())
    return Problem{ProblemKind::file, name,
                   "expected arguments such as --tensor-model-parallel-size 8, found none"};
  return entries;
}

}  // namespace shardwise
