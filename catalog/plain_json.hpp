// Plain JSON: the JSON that nearly all files are, read in one pass without a library.
//
// Plain is what is valid, in ASCII, without escapes in texts and with numbers that int64 or double
// hold. Anything else, wrong or merely rare, is left to the library behind json_document.cpp, which
// knows all of it and says what is wrong; so this reader has no sentences of its own.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <vector>

namespace shardwise {

// Tells a tree builder of each value in turn, by the events of a SAX parser; `key` and `text` get
// what lies between the quotes. An event that returns false ends the reading.
template <class Builder>
class PlainJsonReader {
 public:
  PlainJsonReader(std::string_view text, Builder& builder)
      : at_(text.data()), end_(text.data() + text.size()), builder_(builder) {}

  // Whether the whole text was plain and the builder took all of it.
  bool read() {
    skip_space();
    if (!value()) return false;
    while (!in_object_.empty())
      if (!next_in_container()) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool takes(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool takes(std::string_view word) {
    const std::string_view left(at_, static_cast<std::size_t>(end_ - at_));
    if (!left.starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // The first value of a container, or what follows one: a comma and the next, or the end.
  bool next_in_container() {
    skip_space();
    const bool object = in_object_.back();
    if (takes(object ? '}' : ']')) {
      in_object_.pop_back();
      first_ = false;
      return object ? builder_.end_object() : builder_.end_array();
    }
    if (!first_ && !takes(',')) return false;
    first_ = false;
    skip_space();
    if (object) {
      std::string_view name;
      if (!quoted(name) || !builder_.key(name)) return false;
      skip_space();
      if (!takes(':')) return false;
      skip_space();
    } else if (at_ != end_ && *at_ == ']') {
      return false;  // behind a comma
    }
    return value();
  }

  bool value() {
    if (at_ == end_) return false;
    switch (*at_) {
      case '{':
        return enter(true) && builder_.start_object(0);
      case '[':
        return enter(false) && builder_.start_array(0);
      case '"': {
        std::string_view text;
        return quoted(text) && builder_.text(text);
      }
      case 't':
        return takes("true") && builder_.boolean(true);
      case 'f':
        return takes("false") && builder_.boolean(false);
      case 'n':
        return takes("null") && builder_.null();
      default:
        return number();
    }
  }
  bool enter(bool object) {
    ++at_;
    in_object_.push_back(object);
    return first_ = true;
  }

  bool quoted(std::string_view& text) {
    if (!takes('"')) return false;
    const char* const begin = at_;
    while (at_ != end_ && *at_ >= 0x20 && *at_ < 0x7f && *at_ != '"' && *at_ != '\\') ++at_;
    text = {begin, static_cast<std::size_t>(at_ - begin)};
    return takes('"');
  }

  bool digits() {
    const char* const begin = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != begin;
  }
  bool number() {
    const char* const begin = at_;
    takes('-');
    if (!takes('0') && !digits()) return false;
    bool whole = true;
    if (takes('.')) {
      whole = false;
      if (!digits()) return false;
    }
    if (takes('e') || takes('E')) {
      whole = false;
      if (!takes('+')) takes('-');
      if (!digits()) return false;
    }
    return whole ? converted<std::int64_t>(begin) : converted<double>(begin);
  }
  template <class Number>
  bool converted(const char* begin) {
    Number n{};
    const auto [stopped, error] = std::from_chars(begin, at_, n);
    return error == std::errc() && stopped == at_ && builder_.number(n);
  }

  const char* at_;
  const char* end_;
  Builder& builder_;
  std::vector<bool> in_object_;  // of each open container: an object, else an array
  bool first_ = false;           // nothing has been read yet of the innermost one
};

}  // namespace shardwise
