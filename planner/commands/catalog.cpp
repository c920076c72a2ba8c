#include "planner/commands/catalog.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "catalog/device_profile.hpp"
#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "catalog/load.hpp"
#include "catalog/names.hpp"
#include "catalog/operations.hpp"
#include "catalog/reading.hpp"
#include "catalog/run_record.hpp"
#include "catalog/unsupported_framework.hpp"
#include "catalog/unsupported_model.hpp"
#include "catalog/whole_file.hpp"
#include "planner/facts.hpp"
#include "planner/figures.hpp"
#include "planner/report/catalog_json.hpp"
#include "planner/report/catalog_pages.hpp"
#include "planner/report/catalog_tables.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// `rows`: the same as the table, for programs.
int print_rows(const Table& t, const Json& rows, const std::string& what, const Output& output) {
  if (output.json)
    output.out
        << Json{{"schema_version", schema_version}, {"command", "catalog"}, {what, rows}}.dump(2)
        << '\n';
  else
    output.out << shown_table(t, "");
  return 0;
}

// Names with how many there are of each.
struct Count {
  std::string name;
  std::size_t entries = 0;
};
int print_counts(const std::string& heading, const std::vector<Count>& counts,
                 const std::string& what, const Output& output) {
  Table t{{heading, "entries"}, {}};
  Json rows = Json::array();
  for (const Count& c : counts) {
    t.rows.push_back({c.name, std::to_string(c.entries)});
    rows.push_back({{heading, c.name}, {"entries", c.entries}});
  }
  return print_rows(t, rows, what, output);
}

// What --profile takes: they are loaded apart from what they calibrate.
int list_profiles(const Catalog& c, const Output& output) {
  const auto calibration = load_calibration(c, std::nullopt);
  if (!calibration) return report_problems(calibration.error(), output);
  Json rows = Json::array();
  for (const DeviceProfile* d : profiles_by_name(*calibration))
    rows.push_back({{"profile", d->name},
                    {"gpu", d->gpu},
                    {"trust", trust_name(d->trust)},
                    {"constants", d->constants.size()},
                    {"curves", d->fits.size()},
                    {"samples", d->samples},
                    {"source", d->provenance.source},
                    {"date", d->provenance.date}});
  return print_rows(profile_table(*calibration), rows, "profiles", output);
}

int list(const Catalog& c, const std::string& subject, const Output& output) {
  std::vector<std::string_view> names;
  for (const CatalogListing& l : catalog_listings()) {
    const std::string kind(l.name);
    if (same_name(kind, subject) || same_name(kind, subject + "s"))
      return print_rows(l.table(c), entries_json(c, kind), kind, output);
    names.push_back(l.name);
  }
  for (const std::string_view profiles : {"profile", "profiles"})
    if (same_name(profiles, subject)) return list_profiles(c, output);
  names.emplace_back("profiles");
  const std::string what = subject.empty() ? std::string("which kind is missing")
                                           : sentence("unknown kind '", printable(subject), "'");
  return report_problems({{ProblemKind::request, "catalog list",
                           sentence(what, "; expected ", listed(names, " or "))}},
                         output);
}

// The row of the listing that `id` heads, one field per line, with where it was read.
void print_entry(const Table& t, const std::string& id, const Provenance& p, std::ostream& out) {
  Table facts;
  for (const auto& row : t.rows) {
    if (row.front() != id) continue;
    for (std::size_t i = 0; i < row.size(); ++i) facts.rows.push_back({t.header[i], row[i]});
  }
  facts.rows.push_back({"source", p.source});
  facts.rows.push_back({"date", p.date});
  for (const FieldSource& f : p.fields) facts.rows.push_back({"  " + f.field, f.source});
  std::size_t width = 0;
  for (const auto& row : facts.rows) width = std::max(width, row[0].size());
  for (const auto& row : facts.rows)
    out << row[0] << std::string(width + 2 - row[0].size(), ' ') << row[1] << '\n';
}

template <class Entry>
int show_entry(const Table& t, const Entry& entry, const Output& output) {
  if (!output.json) {
    print_entry(t, entry.id, entry.provenance, output.out);
    return 0;
  }
  Json j = {{"schema_version", schema_version}, {"command", "catalog"}};
  j.update(entry_json(entry));
  add_provenance(j, entry.provenance);
  output.out << j.dump(2) << '\n';
  return 0;
}

Problem nothing_called(const Catalog& c, const std::string& name) {
  if (const auto why = unsupported_model(c.root, name))
    return {ProblemKind::request, "catalog show", *why};
  if (const auto why = unsupported_framework(c.root, name))
    return {ProblemKind::request, "catalog show", *why};
  std::vector<std::string_view> names;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) names.push_back(row.id);
  };
  add(c.gpus);
  add(c.nodes);
  add(c.networks);
  add(c.models);
  add(c.frameworks);
  for (const Gpu& gpu : c.gpus) names.insert(names.end(), gpu.aliases.begin(), gpu.aliases.end());
  const std::string hint = did_you_mean(name, names);
  return {ProblemKind::request, "catalog show",
          sentence("nothing is called \"", printable(name),
                   "\": no GPU, node, network, model or framework; ",
                   hint.empty() ? "`shardwise catalog list gpus` and the like name them" : hint)};
}

int show(const Catalog& c, const std::string& name, const Output& output) {
  if (name.empty())
    return report_problems({{ProblemKind::request, "catalog show",
                             "which? expected the name of a GPU, node, network, model or "
                             "framework, such as rtx-4090"}},
                           output);
  if (const auto gpu = find_gpu(c, name)) return show_entry(gpu_table(c), **gpu, output);
  if (const auto node = find_node(c, name)) return show_entry(node_table(c), **node, output);
  if (const auto network = find_network(c, name))
    return show_entry(network_table(c), **network, output);
  if (const auto model = find_model(c, name)) return show_entry(model_table(c), **model, output);
  if (const auto framework = find_framework(c, name))
    return show_entry(framework_table(c), **framework, output);
  return report_problems({nothing_called(c, name)}, output);
}

// Everything that a forecast may read, with all that is wrong in it.
int check(const std::filesystem::path& root, const Output& output) {
  const auto facts = load_facts(root, std::nullopt);
  if (!facts) return report_problems(facts.error(), output);
  Problems problems;
  const auto tell = [&](const auto& loaded) {
    if (!loaded) add_problems(problems, loaded.error());
  };
  tell(load_calibration(facts->catalog, std::nullopt));
  tell(load_operations(root));
  const auto runs = load_all_runs(root);
  tell(runs);
  if (!problems.empty()) return report_problems(problems, output);
  const Catalog& c = facts->catalog;
  return print_counts("kind",
                      {{"gpus", c.gpus.size()},
                       {"nodes", c.nodes.size()},
                       {"networks", c.networks.size()},
                       {"models", c.models.size()},
                       {"frameworks", c.frameworks.size()},
                       {"cloud prices", c.prices.cloud.size()},
                       {"published runs", runs->records.size()}},
                      "counts", output);
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
  std::vector<Count> written;
  for (const CatalogPage& page : catalog_pages(c, *calibration)) {
    const Problems problems =
        write_whole_file((folder / page.file).string(), [&](std::ostream& f) { f << page.text; });
    if (!problems.empty()) return report_problems(problems, output);
    written.push_back({page.file, static_cast<std::size_t>(page.entries)});
  }
  return print_counts("page", written, "pages", output);
}

// "catalog gpus", "catalog search 3090", "catalog rtx-4090": what would answer that.
std::string meant_verb(const CatalogQuestion& question) {
  for (const CatalogListing& l : catalog_listings())
    if (same_name(l.name, question.verb) || same_name(l.name, question.verb + "s"))
      return sentence("; did you mean catalog list ", l.name, '?');
  const std::string hint = did_you_mean(question.verb, {"list", "show", "check", "pages"});
  if (!hint.empty()) return "; " + hint;
  const std::string& named = question.subject.empty() ? question.verb : question.subject;
  return sentence("; did you mean catalog show ", printable(named), '?');
}

}  // namespace

int catalog(const CatalogQuestion& question, const std::filesystem::path& root,
            const Output& output) {
  if (question.verb == "check" && !question.subject.empty())
    return report_problems({{ProblemKind::request, "catalog check",
                             sentence("checks all of it; expected nothing behind it, found \"",
                                      printable(question.subject), '"')}},
                           output);
  if (question.verb == "check") return check(root, output);
  const bool lists = question.verb == "list", pages = question.verb == "pages";
  if (!lists && !pages && question.verb != "show")
    return report_problems(
        {{ProblemKind::request, "catalog",
          sentence("unknown verb '", printable(question.verb),
                   "'; expected list, show, check or pages", meant_verb(question))}},
        output);
  const auto loaded = load_catalog(root);
  if (!loaded) return report_problems(loaded.error(), output);
  if (pages) return write_pages(*loaded, question.subject, output);
  return lists ? list(*loaded, question.subject, output) : show(*loaded, question.subject, output);
}

}  // namespace shardwise
