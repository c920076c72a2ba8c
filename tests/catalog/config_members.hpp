// A config.json by its members: '"model_type": "helium", "hidden_size": 2560', without the braces.
#pragma once

#include <cstdint>
#include <string>

#include "catalog/huggingface.hpp"
#include "catalog/transformer.hpp"
#include "tests/catch.hpp"

namespace shardwise {

inline Result<Transformer> read_members(const std::string& members) {
  return parse_huggingface_config("{" + members + "}", "config.json");
}

inline Transformer model_of_members(const std::string& members) {
  const auto model = read_members(members);
  if (!model) UNSCOPED_INFO(model.error().front().where + ": " + model.error().front().what);
  REQUIRE(model);
  return *model;
}

// Parameters of the whole model.
inline std::int64_t counted_in(const std::string& members) {
  return parameter_count(model_of_members(members)).total;
}

// The sizes that every family has, and a comma for what follows.
inline std::string members_of(int layers, int hidden, int heads, int ffn, int vocab) {
  return R"("num_hidden_layers": )" + std::to_string(layers) + R"(, "hidden_size": )" +
         std::to_string(hidden) + R"(, "num_attention_heads": )" + std::to_string(heads) +
         R"(, "intermediate_size": )" + std::to_string(ffn) + R"(, "vocab_size": )" +
         std::to_string(vocab) + ", ";
}

}  // namespace shardwise
