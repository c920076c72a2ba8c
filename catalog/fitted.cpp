#include "catalog/fitted.hpp"

#include "catalog/json_reader.hpp"

namespace shardwise {

std::vector<FittedField> fitted_fields(JsonReader& row) {
  std::vector<FittedField> fields;
  for (JsonReader& r : row.objects("fitted")) {
    fields.push_back({r.text("field"), r.texts("on"), r.number("without", 0, 1e9)});
    if (fields.back().on.empty()) r.problem("on", "at least one file of catalog/runs");
    r.finish();
  }
  return fields;
}

}  // namespace shardwise
