#include "planner/request/spoken_number.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "planner/figures.hpp"

namespace shardwise {
namespace {

// Digits only, "4,096" as answers have it, or 1e12 and 1.5e12.
std::optional<std::int64_t> integer_in(std::string_view digits) {
  std::int64_t value = 0;
  if (digits.find(',') != std::string_view::npos) {
    std::string plain(digits);
    std::erase(plain, ',');
    const auto whole = integer_in(plain);
    return whole && grouped(*whole) == digits ? whole : std::nullopt;
  }
  if (digits.find('e') != std::string_view::npos) {
    double real = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), real);
    const bool whole =
        error == std::errc() && end == digits.data() + digits.size() && real > -9e18 && real < 9e18;
    if (whole && real == static_cast<double>(static_cast<std::int64_t>(real)))
      return static_cast<std::int64_t>(real);
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

struct NumberLetter {
  char letter;
  double binary, decimal;
};
constexpr std::array<NumberLetter, 5> number_letters{{{'k', 0x1p10, 1e3},
                                                      {'m', 0x1p20, 1e6},
                                                      {'b', 0x1p30, 1e9},
                                                      {'g', 0x1p30, 1e9},
                                                      {'t', 0x1p40, 1e12}}};

}  // namespace

// "4k", "1.5T" by the letters of the field; what is no whole number then is none.
std::optional<std::int64_t> lettered_integer_in(std::string_view words, NumberLetters letters) {
  if (letters == NumberLetters::watts && words.ends_with('W')) words.remove_suffix(1);
  const bool multiplied = letters == NumberLetters::binary || letters == NumberLetters::decimal;
  if (!multiplied || words.empty()) return integer_in(words);
  for (const NumberLetter& row : number_letters) {
    if ((words.back() | 0x20) != row.letter) continue;
    double value = 0;
    const char* end = words.data() + words.size() - 1;
    const auto [stopped, error] = std::from_chars(words.data(), end, value);
    value *= letters == NumberLetters::binary ? row.binary : row.decimal;
    if (error != std::errc() || stopped != end || !(value > -9e18 && value < 9e18))
      return std::nullopt;
    const auto whole = static_cast<std::int64_t>(value);
    if (static_cast<double>(whole) != value) return std::nullopt;
    return whole;
  }
  return integer_in(words);
}

std::optional<double> plain_number_in(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<double> share_in(std::string_view words) {
  const bool percent = words.ends_with('%');
  if (percent) words.remove_suffix(1);
  const auto value = plain_number_in(words);
  return value && percent ? std::optional(*value / 100) : value;
}

std::optional<double> seconds_in(std::string_view words) {
  const bool rate = words.ends_with("it/s");
  const auto take = [&](std::string_view unit) {
    if (!words.ends_with(unit)) return false;
    words.remove_suffix(unit.size());
    return true;
  };
  double times = 1;
  if (!take("it/s")) {
    take("/it");
    if (take("ms"))
      times = 1e-3;
    else
      take("s");
  }
  while (words.ends_with(' ')) words.remove_suffix(1);
  const auto value = plain_number_in(words);
  if (!value || *value <= 0) return std::nullopt;
  return rate ? 1 / *value : times * *value;
}

}  // namespace shardwise
