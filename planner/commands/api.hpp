// The JSON API of `shardwise serve`: a request document in, the document that --json prints out.
//
//   api_answer("fit", R"({"model": "8b", "gpus": "2x24GB"})", facts)
//
// The body is a request file (the keys of request_fields()); instead of "model" it may hold
// "config", a whole config.json. It comes from a stranger: a model is a name of the catalog and
// nothing else, keys that name files are refused, and no path of this machine is read or told.
// docs/openapi.json describes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/facts.hpp"

namespace shardwise {

struct ApiAnswer {
  int status = 200;  // 400: the request is wrong; 404: no such command; 422: it has no answer
  std::string body;  // JSON; where the status is not 200 {"problems": [{"where", "what"}]}
};

inline constexpr std::size_t api_max_body = std::size_t{256} << 10;

// `command`: "fit", or "fit/document" for what a report of it would draw from.
ApiAnswer api_answer(std::string_view command, std::string_view body, const Facts& facts);

// One text for all ways to write the same question: spaces and the order of keys do not matter.
// What is no JSON document stands for itself.
std::string api_question(std::string_view command, std::string_view body);

std::vector<std::string_view> api_commands();

ApiAnswer api_problem(int status, const std::string& where, const std::string& what);

// Names to choose from, as a JSON list.
std::string api_models(const Facts& facts);
std::string api_gpus(const Facts& facts);

}  // namespace shardwise
