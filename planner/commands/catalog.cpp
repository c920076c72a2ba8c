#include "planner/commands/catalog.hpp"

#include <algorithm>
#include <string_view>

#include "catalog/device_profile.hpp"
#include "catalog/find.hpp"
#include "catalog/load.hpp"
#include "catalog/names.hpp"
#include "catalog/reading.hpp"
#include "catalog/run_record.hpp"
#include "catalog/whole_file.hpp"
#include "planner/facts.hpp"
#include "planner/figures.hpp"
#include "planner/report/catalog_pages.hpp"
#include "planner/report/catalog_tables.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

Json table_json(const Table& t) {
  Json rows = Json::array();
  for (const auto& row : t.rows) {
    Json j = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) j[t.header[i]] = row[i];
    rows.push_back(j);
  }
  return rows;
}

int print_table(const Table& t, const std::string& what, const Output& output) {
  if (output.json)
    output.out << Json{{"schema_version", schema_version},
                       {"command", "catalog"},
                       {what, table_json(t)}}
                      .dump(2)
               << '\n';
  else
    output.out << shown_table(t, "");
  return 0;
}

int list(const Catalog& c, const std::string& subject, const Output& output) {
  std::vector<std::string_view> names;
  for (const CatalogListing& l : catalog_listings()) {
    if (l.name == subject) return print_table(l.table(c), subject, output);
    names.push_back(l.name);
  }
  return report_problems(
      {{ProblemKind::request, "catalog list",
        sentence("unknown kind '", subject, "'; expected ", listed(names, " or "))}},
      output);
}

// The row of the listing that `id` heads, one field per line, with where it was read.
int show_row(const Table& t, const std::string& id, const Provenance& p, const Output& output) {
  Table facts;
  for (const auto& row : t.rows) {
    if (row.front() != id) continue;
    for (std::size_t i = 0; i < row.size(); ++i) facts.rows.push_back({t.header[i], row[i]});
  }
  facts.rows.push_back({"source", p.source});
  facts.rows.push_back({"date", p.date});
  for (const FieldSource& f : p.fields) facts.rows.push_back({"  " + f.field, f.source});
  if (!output.json) {
    std::size_t width = 0;
    for (const auto& row : facts.rows) width = std::max(width, row[0].size());
    for (const auto& row : facts.rows)
      output.out << row[0] << std::string(width + 2 - row[0].size(), ' ') << row[1] << '\n';
    return 0;
  }
  Json j = {{"schema_version", schema_version}, {"command", "catalog"}};
  for (const auto& row : facts.rows) j[row[0]] = row[1];
  output.out << j.dump(2) << '\n';
  return 0;
}

int show(const Catalog& c, const std::string& name, const Output& output) {
  if (const auto gpu = find_gpu(c, name))
    return show_row(gpu_table(c), (*gpu)->id, (*gpu)->provenance, output);
  if (const auto node = find_node(c, name))
    return show_row(node_table(c), (*node)->id, (*node)->provenance, output);
  if (const auto network = find_network(c, name))
    return show_row(network_table(c), (*network)->id, (*network)->provenance, output);
  const auto model = find_model(c, name);
  if (model) return show_row(model_table(c), (*model)->id, (*model)->provenance, output);
  if (const auto framework = find_framework(c, name))
    return show_row(framework_table(c), (*framework)->id, (*framework)->provenance, output);
  Problems problems{
      {ProblemKind::request, "catalog show",
       sentence("nothing is called '", name, "': no GPU, node, network, model or framework")}};
  problems.push_back(find_gpu(c, name).error().front());
  problems.push_back(model.error().front());
  return report_problems(problems, output);
}

int check(const std::filesystem::path& root, const Output& output) {
  const auto facts = load_facts(root, std::nullopt);
  if (!facts) return report_problems(facts.error(), output);
  const auto runs = load_all_runs(root);
  if (!runs) return report_problems(runs.error(), output);
  const Catalog& c = facts->catalog;
  const Table counts{{"kind", "entries"},
                     {{"gpus", std::to_string(c.gpus.size())},
                      {"nodes", std::to_string(c.nodes.size())},
                      {"networks", std::to_string(c.networks.size())},
                      {"models", std::to_string(c.models.size())},
                      {"frameworks", std::to_string(c.frameworks.size())},
                      {"cloud prices", std::to_string(c.prices.cloud.size())},
                      {"published runs", std::to_string(runs->records.size())}}};
  return print_table(counts, "counts", output);
}

// A page for each kind of entry, into a folder.
int write_pages(const Catalog& c, const std::filesystem::path& folder, const Output& output) {
  if (folder.empty())
    return report_problems(
        {{ProblemKind::request, "catalog pages", "name the folder to write them into"}}, output);
  const auto calibration = load_calibration(c, std::nullopt);
  if (!calibration) return report_problems(calibration.error(), output);
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // what fails is told by the first file
  Table written{{"page", "entries"}, {}};
  for (const CatalogPage& page : catalog_pages(c, *calibration)) {
    const Problems problems =
        write_whole_file((folder / page.file).string(), [&](std::ostream& f) { f << page.text; });
    if (!problems.empty()) return report_problems(problems, output);
    written.rows.push_back({page.file, std::to_string(page.entries)});
  }
  return print_table(written, "pages", output);
}

}  // namespace

int catalog(const CatalogQuestion& question, const std::filesystem::path& root,
            const Output& output) {
  if (question.verb == "check") return check(root, output);
  const bool lists = question.verb == "list", pages = question.verb == "pages";
  if (!lists && !pages && question.verb != "show")
    return report_problems(
        {{ProblemKind::request, "catalog",
          sentence("unknown verb '", question.verb, "'; expected list, show, check or pages")}},
        output);
  const auto loaded = load_catalog(root);
  if (!loaded) return report_problems(loaded.error(), output);
  if (pages) return write_pages(*loaded, question.subject, output);
  return lists ? list(*loaded, question.subject, output) : show(*loaded, question.subject, output);
}

}  // namespace shardwise
