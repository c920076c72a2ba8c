// The flags that state a request, and the request file: both made from the rows of request_field.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

// What was typed: the texts of each flag, by key, and the request file.
struct RequestWords {
  std::map<std::string, std::vector<std::string>> texts;
  std::map<std::string, bool> flags;
  std::string file;
};

// Adds MODEL, every flag and --request; `words` must outlive the parse.
void add_request_flags(CLI::App& command, RequestWords& words);

// The file's request first, then the flags, which win. `typed(key)` says whether a flag was given.
Result<Request> request_from(const CLI::App& command, const RequestWords& words);

// A request file: a JSON object with the keys of request_fields(), or {"request": {...}} as every
// answer echoes it.
Result<Request> read_request_file(const std::string& path);

// The same for a text at hand; `name` is what problems call it.
Result<Request> read_request_text(std::string_view text, const std::string& name);

}  // namespace shardwise
