#include <filesystem>

#include "catalog/json_reader.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/request/request_field_json.hpp"

namespace shardwise {
namespace {

Result<Request> request_in(const JsonDocument& document) {
  Problems problems;
  JsonReader root(document, problems);
  const bool wrapped = root.has("request") && root.kind("request") == JsonKind::object;
  JsonReader r = wrapped ? root.object("request") : root;
  Request request;
  for (const RequestField& field : request_fields()) {
    const FieldValue value = read_field(r, field);
    if (std::holds_alternative<std::monostate>(value)) continue;
    const Problems found = field_problems(field, value, r.where(field.key));
    if (found.empty())
      field.set(request, value);
    else
      problems.insert(problems.end(), found.begin(), found.end());
  }
  if (!wrapped) r.ignore("schema_version");
  r.finish();
  for (Problem& p : problems) p.kind = ProblemKind::request;
  if (!problems.empty()) return problems;
  return request;
}

}  // namespace

Result<Request> read_request_file(const std::string& path) {
  const auto document = parse_json_file(path, std::filesystem::path(path).filename().string());
  if (!document) return document.error();
  return request_in(*document);
}

Result<Request> read_request_text(std::string_view text, const std::string& name) {
  const auto document = parse_json(text, name);
  if (!document) return document.error();
  return request_in(*document);
}

}  // namespace shardwise
