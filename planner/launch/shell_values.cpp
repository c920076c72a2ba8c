#include "planner/launch/shell_values.hpp"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr int most_defaults = 8;  // of defaults within defaults

bool names_variable(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A sum of whole numbers with + - * / % and parentheses; nothing where it is something else.
class WholeSum {
 public:
  WholeSum(std::string_view text, const ShellVariables& variables)
      : text_(text), variables_(variables) {}

  std::optional<std::int64_t> value() {
    const std::int64_t sum = terms();
    space();
    return whole_ && at_ == text_.size() ? std::optional(sum) : std::nullopt;
  }

 private:
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  char next() {
    space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::int64_t terms() {
    std::int64_t sum = factors();
    for (char c = next(); whole_ && (c == '+' || c == '-'); c = next()) {
      ++at_;
      const std::int64_t more = factors();
      const bool over = c == '+' ? __builtin_add_overflow(sum, more, &sum)
                                 : __builtin_sub_overflow(sum, more, &sum);
      whole_ = whole_ && !over;
    }
    return sum;
  }

  std::int64_t factors() {
    std::int64_t product = one();
    for (char c = next(); whole_ && (c == '*' || c == '/' || c == '%'); c = next()) {
      ++at_;
      const std::int64_t more = one();
      whole_ = whole_ && (c == '*' || more > 0);
      if (!whole_) return 0;
      if (c == '*')
        whole_ = !__builtin_mul_overflow(product, more, &product);
      else
        product = c == '/' ? product / more : product % more;
    }
    return product;
  }

  std::int64_t one() {
    if (next() == '(' && ++level_ <= most_defaults) {
      ++at_;
      const std::int64_t inner = terms();
      whole_ = whole_ && next() == ')';
      ++at_;
      --level_;
      return inner;
    }
    while (next() == '$' || next() == '{') ++at_;
    std::size_t end = at_;
    while (end < text_.size() && names_variable(text_[end])) ++end;
    std::string word(text_.substr(at_, end - at_));
    at_ = end;
    if (next() == '}') ++at_;
    const auto assigned = variables_.find(word);
    if (assigned != variables_.end()) word = assigned->second;
    std::int64_t number = 0;
    const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    whole_ = whole_ && !word.empty() && error == std::errc() && last == word.data() + word.size();
    return number;
  }

  std::string_view text_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
  int level_ = 0;
  bool whole_ = true;
};

// Behind the bracket that closes what stands open before `at`; npos where none does.
std::size_t behind_closing(std::string_view text, std::size_t at, char opens, char closes) {
  for (int depth = 1; at < text.size(); ++at) {
    if (text[at] == opens) ++depth;
    if (text[at] == closes && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string ShellValues::read(std::string_view text, std::size_t& at, int level) const {
  const std::size_t start = at;
  if (text.substr(at, 2) == "((") {
    const std::size_t end = behind_closing(text, at + 1, '(', ')');
    if (end == std::string_view::npos || text[end - 2] != ')') return "$";
    const auto sum = WholeSum(text.substr(at + 2, end - at - 4), variables_).value();
    if (!sum) return "$";
    at = end;
    return std::to_string(*sum);
  }
  if (text.substr(at).starts_with("(expr ")) {
    const std::size_t end = behind_closing(text, at + 1, '(', ')');
    if (end == std::string_view::npos) return "$";
    std::string inside(text.substr(at + 6, end - at - 7));
    std::erase(inside, '\\');  // the asterisk's, for the shell
    const auto sum = WholeSum(inside, variables_).value();
    if (!sum) return "$";
    at = end;
    return std::to_string(*sum);
  }
  if (text.substr(at, 1) == "{") {
    const std::size_t end = behind_closing(text, at + 1, '{', '}');
    if (end == std::string_view::npos) return "$";
    at = end;
    return name_or_default(text.substr(start + 1, end - start - 2), text.substr(start, end - start),
                           level);
  }
  while (at < text.size() && names_variable(text[at])) ++at;
  return name_or_default(text.substr(start, at - start), text.substr(start, at - start), level);
}

std::string ShellValues::name_or_default(std::string_view inside, std::string_view written,
                                         int level) const {
  const std::size_t dash = inside.find(":-");
  const auto assigned = variables_.find(std::string(inside.substr(0, dash)));
  if (assigned != variables_.end()) return assigned->second;
  if (dash == std::string_view::npos || dash + 2 == inside.size() || level == most_defaults)
    return sentence('$', written);
  return expanded(inside.substr(dash + 2), level + 1);
}

// A default: its quotes are the shell's, and it may refer to others.
std::string ShellValues::expanded(std::string_view text, int level) const {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c == '$')
      all += read(text, at, level);
    else if (c != '"' && c != '\'')
      all += c;
  }
  return all;
}

}  // namespace shardwise
