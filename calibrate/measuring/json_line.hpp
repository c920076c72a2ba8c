// JsonLine: one JSON object on one line, written member by member in the order given.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

class JsonLine {
 public:
  JsonLine& text(std::string_view key, std::string_view value);
  JsonLine& whole(std::string_view key, std::integral auto value) {
    return raw(key, std::to_string(value));
  }
  JsonLine& number(std::string_view key, double value);  // the shortest that reads back
  JsonLine& texts(std::string_view key, const std::map<std::string, std::string>& members);
  JsonLine& wholes(std::string_view key, const std::map<std::string, std::int64_t>& members);
  JsonLine& objects(std::string_view key,
                    const std::vector<std::map<std::string, std::string>>& elements);
  JsonLine& raw(std::string_view key, std::string_view json);

  std::string object() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace shardwise
