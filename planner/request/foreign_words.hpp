// Words that other programs and papers use for what a flag asks, and that are none of its values.
#pragma once

#include <string>
#include <string_view>

namespace shardwise {

// What was meant, as a hint begins: "dpo is a loss, ..."; empty where nothing is known of the word.
std::string foreign_word(std::string_view key, std::string_view word);

}  // namespace shardwise
