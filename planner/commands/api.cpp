#include "planner/commands/api.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "catalog/huggingface.hpp"
#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/commands/compare.hpp"
#include "planner/commands/fit.hpp"
#include "planner/commands/models.hpp"
#include "planner/commands/plan.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/commands/shop.hpp"
#include "planner/commands/simulate.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/output.hpp"
#include "planner/request/request_field.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

struct ApiCommand {
  std::string_view name;
  int (*run)(const Request&, const Facts&, const Output&);
};

constexpr std::array<ApiCommand, 6> commands{{
    {"fit", [](const Request& r, const Facts& f, const Output& o) { return fit(r, f, false, o); }},
    {"plan", [](const Request& r, const Facts& f, const Output& o) { return plan(r, {}, f, o); }},
    {"simulate",
     [](const Request& r, const Facts& f, const Output& o) { return simulate(r, f, {}, o); }},
    {"compare",
     [](const Request& r, const Facts& f, const Output& o) { return compare(r, f, false, o); }},
    {"models", models},
    {"shop", shop},
}};

constexpr std::array<std::string_view, 3> file_keys{"plan_from", "profile", "lengths"};

// Problems name flags, which a request over HTTP does not have: its keys in their place.
std::string with_keys(std::string text) {
  for (const RequestField& field : request_fields()) {
    if (text == field.flag) return std::string(field.key);  // MODEL
    if (!field.flag.starts_with("--")) continue;
    const auto goes_on = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
    for (std::size_t at = 0; (at = text.find(field.flag, at)) != std::string::npos;) {
      const std::size_t end = at + field.flag.size();
      if (end < text.size() && goes_on(text[end])) {
        at = end;
        continue;
      }
      text.replace(at, field.flag.size(), field.key);
      at += field.key.size();
    }
  }
  return text;
}

std::string dumped(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

ApiAnswer refused(const Problems& problems) {
  Json list = Json::array();
  for (const Problem& p : problems)
    list.push_back({{"where", with_keys(p.where)}, {"what", with_keys(p.what)}});
  return {400, dumped({{"problems", list}})};
}

// What stands in the body; checked for depth and duplicate keys before anything else reads it.
Result<Request> read_body(std::string_view body, std::string_view command) {
  const auto checked = parse_json(body, "request", ProblemKind::request);
  if (!checked) return checked.error();
  Json document = Json::parse(body);
  if (!document.is_object())
    return Problems{{ProblemKind::request, "request", "expected a JSON object"}};
  for (const std::string_view key : file_keys)
    if (document.contains(key))
      return Problems{
          {ProblemKind::request, std::string(key), "names a file, and no file can be named here"}};
  std::optional<Transformer> uploaded;
  if (const auto config = document.find("config"); config != document.end()) {
    if (document.contains("model"))
      return Problems{{ProblemKind::request, "config", "give either model or config, not both"}};
    auto model = parse_huggingface_config(dumped(*config), "config.json");
    if (!model) return model.error();
    uploaded = *std::move(model);
    document.erase(config);
    document["model"] = "config.json";
  }
  auto request = read_request_text(dumped(document), "request", command);
  if (!request) return request.error();
  request->uploaded = std::move(uploaded);
  request->names_only = true;
  return request;
}

// The lines of problems that a command printed: "shardwise: WHERE: WHAT".
ApiAnswer unanswered(const std::string& printed, int code) {
  Json list = Json::array();
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view program = "shardwise: ";
    if (line.starts_with(program)) line.erase(0, program.size());
    const std::size_t colon = line.find(": ");
    const bool whole = colon == std::string::npos;
    list.push_back({{"where", whole ? "" : with_keys(line.substr(0, colon))},
                    {"what", with_keys(whole ? line : line.substr(colon + 2))}});
  }
  return {code == static_cast<int>(ProblemKind::request) ? 400 : 422, dumped({{"problems", list}})};
}

}  // namespace

ApiAnswer api_problem(int status, const std::string& where, const std::string& what) {
  ApiAnswer answer = refused({{ProblemKind::request, where, what}});
  answer.status = status;
  return answer;
}

ApiAnswer api_answer(std::string_view command, std::string_view body, const Facts& facts) {
  constexpr std::string_view as_document = "/document";
  const bool wants_document = command.ends_with(as_document);
  if (wants_document) command.remove_suffix(as_document.size());
  for (const ApiCommand& c : commands) {
    if (c.name != command) continue;
    if (body.size() > api_max_body) return api_problem(413, "request", "is too large");
    const auto request = read_body(body, command);
    if (!request) return refused(request.error());
    std::ostringstream out, err, document;
    Output output{out, err, true, false, 100};
    if (wants_document) output.document = &document;
    const int code = c.run(*request, facts, output);
    if (code != 0) return unanswered(err.str(), code);
    return {200, wants_document ? document.str() : out.str()};
  }
  return api_problem(404, "command", sentence("is none of ", listed(api_commands(), ", ")));
}

std::string api_question(std::string_view command, std::string_view body) {
  std::string question(command);
  question += '\n';
  // With a key twice it is no document, as for api_answer().
  const bool is_document = body.size() <= api_max_body && bool(parse_json(body, "request"));
  if (is_document) return question + dumped(Json::parse(body));
  return question += body;
}

std::vector<std::string_view> api_commands() { return names_in(commands); }

std::string api_models(const Facts& facts) {
  Json names = Json::array();
  for (const Transformer& m : facts.catalog.models) names.push_back(m.id);
  return dumped(names);
}

std::string api_gpus(const Facts& facts) {
  Json names = Json::array();
  for (const Gpu& g : facts.catalog.gpus) names.push_back(g.id);
  return dumped(names);
}

}  // namespace shardwise
