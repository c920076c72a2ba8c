#include "planner/request/sample_lengths.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "catalog/json_document.hpp"
#include "catalog/text_file.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20;
constexpr std::int64_t most_in_sample = 100'000'000;  // as --seq
constexpr int judged_step = 128;                      // tokens
constexpr std::string_view expected = "expected a whole number of tokens from 1 to 100,000,000, ";

bool is_length(std::int64_t tokens) { return tokens >= 1 && tokens <= most_in_sample; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

Problem no_length(std::string where, std::string_view found) {
  return {ProblemKind::file, std::move(where), sentence(expected, "found ", found)};
}

Result<std::vector<int>> read_lines(std::string_view text, const std::string& path) {
  std::vector<int> lengths;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.empty()) continue;
    std::int64_t tokens = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), tokens);
    if (read.ec != std::errc() || read.ptr != line.data() + line.size() || !is_length(tokens))
      return no_length(sentence(path, ':', number), sentence('"', printable(line), '"'));
    lengths.push_back(static_cast<int>(tokens));
  }
  return lengths;
}

Result<std::vector<int>> read_array(std::string_view text, const std::string& path) {
  const auto document = parse_json(text, path);
  if (!document) return document.error();
  std::vector<int> lengths;
  for (const JsonIndex each : document->children(0)) {
    const auto tokens = document->as_whole(each);
    if (!tokens || !is_length(*tokens))
      return no_length(document->place(each), document->shown(each));
    lengths.push_back(static_cast<int>(*tokens));
  }
  return lengths;
}

}  // namespace

int SampleLengths::longest() const { return *std::max_element(tokens.begin(), tokens.end()); }

std::int64_t SampleLengths::sum(int most) const {
  std::int64_t all = 0;
  for (const int t : tokens) all += std::min(t, most);
  return all;
}

std::int64_t SampleLengths::longer_than(int most) const {
  return std::count_if(tokens.begin(), tokens.end(), [most](int t) { return t > most; });
}

Result<SampleLengths> read_sample_lengths(const std::string& path) {
  const auto text = read_text_file(path, path, most_bytes);
  if (!text) return text.error();
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  const bool array = first != std::string::npos && (*text)[first] == '[';
  auto lengths = array ? read_array(*text, path) : read_lines(*text, path);
  if (!lengths) return lengths.error();
  if (lengths->empty())
    return Problem{ProblemKind::file, path,
                   "holds no lengths; expected a number of tokens a line, or a JSON array of them"};
  return SampleLengths{path, *std::move(lengths)};
}

int judged_length(const SampleLengths& lengths, int limit) {
  const std::int64_t longest = lengths.longest();
  const std::int64_t rounded = (longest + judged_step - 1) / judged_step * judged_step;
  return static_cast<int>(std::min<std::int64_t>(rounded, limit));
}

std::string told(const SampleLengths& l, int sequence) {
  const auto samples = static_cast<std::int64_t>(l.tokens.size());
  const std::int64_t cut = l.longer_than(sequence);
  const double mean = static_cast<double>(l.sum(sequence)) / static_cast<double>(samples);
  return sentence(
      printable(l.file), ": ", counted(samples, "sample"), ", ", shown_rate(mean),
      " tokens on average, ", grouped(l.longest()), " the longest",
      cut == 0 ? ""
               : sentence("; ", grouped(cut), " (",
                          shown_share(static_cast<double>(cut) / static_cast<double>(samples)),
                          cut == 1 ? ") is" : ") are", " cut at ", grouped(sequence)),
      ". Memory is judged at the longest batch, of ", grouped(sequence), " tokens a sequence.");
}

}  // namespace shardwise
