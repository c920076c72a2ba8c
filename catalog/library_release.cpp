#include "catalog/library_release.hpp"

#include <charconv>
#include <string>

namespace shardwise {

std::optional<LibraryRelease> maybe_release(JsonReader& r, std::string_view key) {
  if (!r.has(key)) return std::nullopt;
  const std::string text = r.text(key);
  const char* end = text.data() + text.size();
  LibraryRelease release;
  const auto major = std::from_chars(text.data(), end, release.major);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
    const auto minor = std::from_chars(major.ptr + 1, end, release.minor);
    if (minor.ec == std::errc() && minor.ptr == end) return release;
  }
  r.problem(key, "a release such as 9.13");
  return std::nullopt;
}

}  // namespace shardwise
