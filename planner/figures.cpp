#include "planner/figures.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "catalog/text_match.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// At least three digits, and no more decimals than they need.
int decimals_of(double value) {
  const double size = std::fabs(value);
  return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

struct Scale {
  double below;  // the first row whose bound is not reached is used
  double unit;
  std::string_view name;
};

constexpr std::array<Scale, 6> time_scales{{{1e-3, 1e-6, " us"},
                                            {1, 1e-3, " ms"},
                                            {120, 1, " s"},
                                            {7200, 60, " min"},
                                            {172800, 3600, " h"},
                                            {1e300, 86400, " days"}}};

struct SizeUnit {
  std::string_view name;
  double bytes;
};
// A letter alone is binary, as it is to Slurm, Docker and the JVM.
constexpr std::array<SizeUnit, 12> size_units{{{"b", 1},
                                               {"m", 1048576},
                                               {"g", 1073741824},
                                               {"t", 1099511627776},
                                               {"kb", 1e3},
                                               {"mb", 1e6},
                                               {"gb", 1e9},
                                               {"tb", 1e12},
                                               {"kib", 1024},
                                               {"mib", 1048576},
                                               {"gib", 1073741824},
                                               {"tib", 1099511627776}}};

bool same_letters(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower_ascii(a[i]) != lower_ascii(b[i])) return false;
  return true;
}

}  // namespace

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

std::string left(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value == 0 ? 0.0 : value);
  return buffer.data();
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string shown_rate(double value) {
  if (std::fabs(value) >= 999.5) return grouped(std::llround(value));
  return fixed(value, decimals_of(value));
}

std::string shown_gib_number(Bytes bytes) {
  const double value = gib(bytes);
  if (std::fabs(value) >= 999.5) return grouped(std::llround(value));
  return fixed(value, std::fabs(value) >= 99.95 ? 0 : 1);
}

std::string shown_gib(Bytes bytes) { return sentence(shown_gib_number(bytes), " GiB"); }

std::string shown_difference(Bytes bytes) {
  const double value = gib(bytes);
  if (bytes == Bytes(0) || std::fabs(value) >= 0.05) return shown_gib(bytes);
  return sentence(fixed(value * 1024, std::fabs(value * 1024) < 9.5 ? 1 : 0), " MiB");
}

std::string shown_time(Seconds time) {
  if (time.value == 0) return "0 s";
  std::size_t row = 0;
  while (time.value >= time_scales[row].below && row + 1 < time_scales.size()) ++row;
  return sentence(shown_rate(time.value / time_scales[row].unit), time_scales[row].name);
}

std::string shown_parameters(std::int64_t n) {
  const auto value = static_cast<double>(n);
  if (value >= 0.9995e12) return sentence(fixed(value / 1e12, 2), " T");
  if (value >= 0.9995e9)
    return sentence(fixed(value / 1e9, value < 99.95e9 ? (value < 9.995e9 ? 2 : 1) : 0), " B");
  return sentence(fixed(value / 1e6, value < 9.995e6 ? 1 : 0), " M");
}

std::string share_number(double fraction) { return fixed(100 * fraction, 1); }
std::string shown_share(double fraction) { return share_number(fraction) + " %"; }

std::string shown_percent(double fraction) {
  const double percent = fraction * 100;
  if (std::fabs(percent) < 0.05) return "0 %";
  return sentence(percent > 0 ? "+" : "", fixed(percent, std::fabs(percent) < 0.95 ? 1 : 0), " %");
}

std::string counted(std::int64_t n, std::string_view one) {
  return sentence(grouped(n), ' ', one, n == 1 ? "" : "s");
}

std::string shown_samples(std::int64_t n, const PreferenceRow* preference) {
  if (preference == nullptr) return counted(n, "sequence");
  return sentence(counted(n, preference->sequences == 2 ? "pair" : "sample"), " for ",
                  preference->name);
}

std::string target_names(const AdapterTargets& t) {
  std::string names;
  for (const auto& [name, used] : adapter_linears)
    if (t.*used) names += sentence(names.empty() ? "" : ",", name);
  return names;
}

std::optional<Bytes> size_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const SizeUnit& row : size_units) {
    if (!same_letters(row.name, unit)) continue;
    if (std::fabs(value * row.bytes) > 9e18) return std::nullopt;
    return Bytes(std::llround(value * row.bytes));
  }
  return std::nullopt;
}

}  // namespace shardwise
