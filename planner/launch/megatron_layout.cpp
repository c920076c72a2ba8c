#include "planner/launch/megatron_layout.hpp"

#include <charconv>

#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_symbols = 100'000;

// Expands x*n and (xyz)*n from `at` on, up to a closing parenthesis or the end.
class LayoutText {
 public:
  explicit LayoutText(std::string_view text) : text_(text) {}

  std::optional<std::string> expanded() {
    auto out = group(0);
    if (!out || at_ != text_.size()) return std::nullopt;
    return out;
  }

 private:
  std::optional<std::string> group(int level) {
    std::string out;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::string piece;
      if (text_[at_] == '(') {
        ++at_;
        auto inner = level < 8 ? group(level + 1) : std::nullopt;
        if (!inner || at_ >= text_.size()) return std::nullopt;
        ++at_;  // the closing parenthesis
        piece = *std::move(inner);
      } else {
        piece = text_[at_++];
        if (std::string_view("EtmL|,").find(piece.front()) == std::string_view::npos)
          return std::nullopt;
      }
      const auto times = repeats();
      if (!times || out.size() + piece.size() * *times > most_symbols) return std::nullopt;
      for (std::size_t i = 0; i < *times; ++i) out += piece;
    }
    return out;
  }

  std::optional<std::size_t> repeats() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::size_t n = 0;
    const char* begin = text_.data() + at_ + 1;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), n);
    if (error != std::errc() || n > most_symbols) return std::nullopt;
    at_ += 1 + static_cast<std::size_t>(end - begin);
    return n;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string megatron_layout(const std::vector<int>& layers_per_stage) {
  std::string text = "E";
  for (std::size_t i = 0; i < layers_per_stage.size(); ++i) {
    if (i > 0) text += '|';
    if (layers_per_stage[i] > 0) text += sentence("t*", layers_per_stage[i]);
  }
  return text + "L";
}

std::optional<std::vector<int>> layers_in_layout(std::string_view layout) {
  const auto symbols = LayoutText(layout).expanded();
  if (!symbols) return std::nullopt;
  std::vector<int> layers{0};
  for (const char c : *symbols) {
    if (c == '|') layers.push_back(0);
    if (c == 't') ++layers.back();
  }
  return layers;
}

}  // namespace shardwise
