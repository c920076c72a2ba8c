#include "catalog/json_reader.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/report/request_json.hpp"
#include "planner/request/request_field_json.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

bool is_open(const FieldValue& value) { return std::holds_alternative<std::monostate>(value); }

Result<Request> request_in(const JsonDocument& document, std::string_view command) {
  Problems problems;
  JsonReader root(document, problems);
  const bool wrapped = root.has("request") && root.kind("request") == JsonKind::object;
  JsonReader r = wrapped ? root.object("request") : root;
  std::optional<JsonReader> assumed = r.maybe_object(assumed_key);
  Request request;
  for (const RequestField& field : request_fields()) {
    const FieldValue filled =
        assumed ? as_spelled(field, read_field(*assumed, field)) : FieldValue();
    if (!field.belongs_to(command) && !r.has(field.key)) continue;
    const FieldValue value = as_spelled(field, read_field(r, field));
    if (is_open(value) || value == filled) continue;
    if (!field.belongs_to(command)) {
      r.problem(field.key,
                sentence(is_open(filled) ? "no such key" : "the assumed value", " (", field.key,
                         " belongs to ", commands_asking(field), ", not to ", command, ")"));
      continue;
    }
    const Problems found = field_problems(field, value, r.where(field.key));
    if (found.empty()) {
      field.set(request, value);
      request.places[std::string(field.flag)] = r.where(field.key);
    } else {
      add_problems(problems, found);
    }
  }
  if (!wrapped) r.ignore("schema_version");
  refuse_flag_names(r, problems);
  if (assumed) assumed->finish();
  r.finish();
  for (Problem& p : problems) p.kind = ProblemKind::request;
  if (!problems.empty()) return problems;
  return request;
}

}  // namespace

Result<Request> read_request_file(const std::string& path, std::string_view command) {
  const auto document = parse_json_file(path, path);
  if (!document) return document.error();
  return request_in(*document, command);
}

Result<Request> read_request_text(std::string_view text, const std::string& name,
                                  std::string_view command) {
  const auto document = parse_json(text, name);
  if (!document) return document.error();
  return request_in(*document, command);
}

}  // namespace shardwise
