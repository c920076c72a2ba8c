// A release of a library, such as cuDNN 9.13: of its kernels, rates differ by it.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

#include "catalog/json_reader.hpp"

namespace shardwise {

struct LibraryRelease {
  int major = 0, minor = 0;
  friend constexpr auto operator<=>(const LibraryRelease&, const LibraryRelease&) = default;
};

// "9.13" under `key`; nothing where there is no such key.
std::optional<LibraryRelease> maybe_release(JsonReader& r, std::string_view key);

}  // namespace shardwise
