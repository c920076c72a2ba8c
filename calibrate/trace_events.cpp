#include "calibrate/trace_events.hpp"

namespace shardwise {
namespace {

// One past the end of the value that begins at `at` with a brace; npos where it never ends.
std::size_t end_of_object(std::string_view text, std::size_t at) {
  int depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return text.npos;
}

std::size_t array_start(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != text.npos && text[first] == '[') return first;
  const std::size_t key = text.find("\"traceEvents\"");
  return key == text.npos ? key : text.find('[', key);
}

}  // namespace

TraceWalk walk_trace_events(std::string_view text,
                            const std::function<void(std::string_view event)>& visit) {
  const std::size_t start = array_start(text);
  if (start == text.npos) return {};
  TraceWalk walk{true, false, text.substr(0, start)};
  for (std::size_t at = start + 1; at < text.size();) {
    at = text.find_first_of("{]", at);
    if (at == text.npos) break;
    if (text[at] == ']') {
      walk.whole = true;
      break;
    }
    const std::size_t end = end_of_object(text, at);
    if (end == text.npos) break;
    visit(text.substr(at, end - at));
    at = end;
  }
  return walk;
}

}  // namespace shardwise
