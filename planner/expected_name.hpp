// What a refusal of an unknown name says: the names that there are, the one found and a hint.
#pragma once

#include <string>
#include <string_view>

#include "catalog/json_document.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

// "expected a, b or c, found \"x\"; did you mean b?"; without a hint where it is empty.
template <class Names>
std::string expected_one_of(const Names& names, std::string_view found, const std::string& hint) {
  return sentence("expected ", listed(names, " or "), ", found \"", printable(found), '"',
                  hint.empty() ? "" : "; ", hint);
}

}  // namespace shardwise
