#include "catalog/json_reader.hpp"
#include "catalog/operations.hpp"

namespace shardwise {
namespace {

FailureRecord read_failures(JsonReader& r) {
  FailureRecord record;
  record.architecture = r.text("architecture");
  record.gpus = r.integer("gpus", 1, 10'000'000);
  record.days = r.number("days", 0.1, 10'000);
  record.interruptions = r.integer("interruptions", 1, 1'000'000);
  record.provenance = r.provenance();
  r.finish();
  return record;
}

}  // namespace

Result<Operations> load_operations(const std::filesystem::path& root) {
  const auto document = parse_json_file(root / "operations.json", "operations.json");
  if (!document) return document.error();
  Problems problems;
  JsonReader r(*document, problems);
  Operations o;
  r.ignore("id");
  std::vector<JsonReader> rows = r.objects("failures");
  if (rows.empty() && r.clean()) r.problem("failures", "an array of at least one record");
  for (JsonReader& row : rows) o.failures.push_back(read_failures(row));
  o.restart = Seconds(r.number("restart_minutes", 0, 10'000) * 60);
  o.storage_per_gpu = BytesPerSecond(r.number("storage_mb_per_s_per_gpu", 0.001, 1e6) * 1e6);
  o.per_kwh = UsDollars{r.number("usd_per_kwh", 0, 100)};
  o.provenance = r.provenance();
  r.finish();
  if (!problems.empty()) return problems;
  return o;
}

}  // namespace shardwise
