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

// Adds MODEL, every flag that the command knows and --request; `words` must outlive the parse.
void add_request_flags(CLI::App& command, RequestWords& words);

// The file's request first, then the flags, which win. `typed(key)` says whether a flag was given.
Result<Request> request_from(const CLI::App& command, const RequestWords& words);

// A request file: a JSON object with the keys of request_fields() that `command` knows, or
// {"request": {...}} as every answer echoes it. What stands under "assumed" as well nobody asked
// for: it stays open (planner/report/request_json.hpp).
Result<Request> read_request_file(const std::string& path, std::string_view command = {});

// The same for a text at hand; `name` is what problems call it.
Result<Request> read_request_text(std::string_view text, const std::string& name,
                                  std::string_view command = {});

}  // namespace shardwise
