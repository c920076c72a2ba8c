#include <filesystem>

#include "catalog/json_reader.hpp"
#include "planner/commands/request_flags.hpp"
#include "planner/request_field.hpp"

namespace shardwise {
namespace {

constexpr double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

FieldValue read_value(JsonReader& r, const RequestField& field) {
  const std::string_view key = field.key;
  switch (field.kind) {
    case FieldKind::text:
      if (const auto v = r.maybe_text(key)) return *v;
      return {};
    case FieldKind::texts: {
      if (r.kind(key) == JsonKind::text) return std::vector<std::string>{r.text(key)};
      std::vector<std::string> v = r.texts(key);
      if (v.empty()) return {};
      return v;
    }
    case FieldKind::integer:
      if (const auto v = r.maybe_integer64(key, field.low, field.high)) return *v;
      return {};
    case FieldKind::number:
      if (const auto v = r.maybe_number(key, static_cast<double>(field.low) / 1000,
                                        static_cast<double>(field.high) / 1000))
        return *v;
      return {};
    case FieldKind::size:
      if (const auto v = r.maybe_number(key, 0, 1e9))
        return Bytes(static_cast<std::int64_t>(*v * bytes_per_gib));
      return {};
    case FieldKind::flag:
      if (const auto v = r.maybe_flag(key)) return *v;
      return {};
  }
  return {};
}

Result<Request> request_in(const JsonDocument& document) {
  Problems problems;
  JsonReader root(document, problems);
  const bool wrapped = root.has("request") && root.kind("request") == JsonKind::object;
  JsonReader r = wrapped ? root.object("request") : root;
  Request request;
  for (const RequestField& field : request_fields()) {
    const FieldValue value = read_value(r, field);
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
