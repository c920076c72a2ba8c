// An object that states what it has otherwise than another, and takes the rest from there.
#pragma once

#include <span>
#include <string_view>

#include "catalog/json_document.hpp"

namespace shardwise {

// Appends to `object` of `document` the members of `base_object` of `base` that it does not have
// itself, but for those called in `own`. Both are objects. A problem with a member so taken says
// the place where `document` would have it.
void inherit_members(JsonDocument& document, JsonIndex object, const JsonDocument& base,
                     JsonIndex base_object, std::span<const std::string_view> own);

}  // namespace shardwise
