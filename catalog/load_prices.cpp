#include <array>
#include <utility>

#include "catalog/load.hpp"
#include "catalog/load_folder.hpp"

namespace shardwise {
namespace {

enum class TableKind { cloud, history, launch };
constexpr std::array<std::pair<std::string_view, TableKind>, 3> table_kinds{{
    {"cloud", TableKind::cloud},
    {"history", TableKind::history},
    {"launch", TableKind::launch},
}};

// One file: a table of rows that share their source, date and, where given, their provider.
struct PriceTable {
  std::string id;
  TableKind kind = TableKind::cloud;
  std::vector<CloudPrice> cloud;
  std::vector<LaunchPrice> launch;
};

std::optional<UsDollars> dollars(JsonReader& r, std::string_view key) {
  const auto value = r.maybe_number(key, 0.001, 1e6);
  if (!value) return std::nullopt;
  return UsDollars{*value};
}

CloudPrice read_cloud_row(JsonReader& r, const std::string& provider, bool single,
                          const Provenance& table) {
  CloudPrice price;
  price.single = single;
  price.provider = provider.empty() ? r.text("provider") : provider;
  price.instance = r.text("instance");
  price.gpu = r.text("gpu");
  price.gpus = r.integer("gpus", 1, 100000);
  price.per_hour = dollars(r, "usd_per_hour");
  price.spot_per_hour = dollars(r, "spot_usd_per_hour");
  if (!r.has("usd_per_hour") && !r.has("spot_usd_per_hour"))
    r.problem("usd_per_hour", "a price here or as spot_usd_per_hour");
  if (const auto ram = r.maybe_number("host_ram_gib", 1, 1e6))
    price.host_ram = Bytes(static_cast<std::int64_t>(*ram * 1024.0 * 1024.0 * 1024.0));
  price.region = r.maybe_text("region").value_or("");
  price.spot_region = r.maybe_text("spot_region").value_or("");
  price.note = r.maybe_text("notes").value_or("");
  price.provenance = table;
  r.finish();
  return price;
}

LaunchPrice read_launch_row(JsonReader& r, const Provenance& table) {
  LaunchPrice price;
  price.gpu = r.text("gpu");
  price.msrp = {r.number("launch_msrp_usd", 1, 1e6)};
  price.launch_date = r.maybe_text("launch_date").value_or("");
  price.provenance = table;
  if (auto date = r.maybe_text("date")) price.provenance.date = *date;
  r.finish();
  return price;
}

PriceTable read_table(JsonReader& r) {
  PriceTable table;
  table.id = r.text("id");
  table.kind = r.choice("kind", table_kinds);
  const std::string provider = r.maybe_text("provider").value_or("");
  const bool single = r.maybe_flag("single_machines").value_or(false);
  const Provenance provenance = r.provenance();
  std::vector<JsonReader> rows = r.objects("rows");
  if (rows.empty() && r.clean()) r.problem("rows", "an array of at least one price");
  for (JsonReader& row : rows) {
    if (table.kind == TableKind::launch)
      table.launch.push_back(read_launch_row(row, provenance));
    else
      table.cloud.push_back(read_cloud_row(row, provider, single, provenance));
  }
  return table;
}

template <class Row>
void append(std::vector<Row>& to, std::vector<Row>&& rows) {
  to.insert(to.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

}  // namespace

Result<Prices> load_prices(const std::filesystem::path& root) {
  auto tables = load_folder<PriceTable>(root, "prices", read_table);
  if (!tables) return tables.error();
  Prices prices;
  for (PriceTable& table : *tables) {
    append(prices.launch, std::move(table.launch));
    append(table.kind == TableKind::history ? prices.history : prices.cloud,
           std::move(table.cloud));
  }
  return prices;
}

}  // namespace shardwise
