#include "planner/commands/collectives.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/expected_name.hpp"
#include "planner/figures.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/request/asked_cluster.hpp"
#include "planner/request/calibrated_facts.hpp"
#include "planner/sentence.hpp"
#include "simulator/network/collective_model.hpp"

namespace shardwise {
namespace {

// As nccl-tests is usually run (-b 1K -e 1G -f 4).
constexpr std::int64_t first_size = 1 << 10, last_size = 1 << 30, factor = 4;

struct Timed {
  Collective kind;
  Bytes size;
  CollectiveTime by;
};

struct CollectivesAnswer {
  Cluster cluster;
  std::vector<Timed> rows;
  std::vector<std::string> notes;
};

Result<std::vector<Collective>> kinds_of(const CollectivesOptions& options) {
  std::vector<Collective> kinds;
  for (const std::string& word : options.kinds) {
    const auto kind = collective_called(word);
    if (!kind || *kind == Collective::send_recv) {
      const std::vector<std::string_view> names(collective_names.begin(),
                                                collective_names.end() - 1);
      return Problem{ProblemKind::request, "--collective",
                     expected_one_of(names, word, did_you_mean(word, names))};
    }
    kinds.push_back(*kind);
  }
  if (kinds.empty())
    kinds = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
             Collective::all_to_all};
  return kinds;
}

Result<CollectivesAnswer> collectives_answer(const Request& request,
                                             const CollectivesOptions& options,
                                             const Facts& facts) {
  const auto kinds = kinds_of(options);
  if (!kinds) return kinds.error();
  const auto clusters = asked_clusters(facts.catalog, request);
  if (!clusters) return clusters.error();
  CollectivesAnswer a{clusters->front(), {}, machine_notes(facts, request, {clusters->front()})};
  if (clusters->size() > 1)
    a.notes.push_back(sentence("Of ", clusters->size(), " such cards ",
                               a.cluster.groups.front().gpu.name, " is shown."));
  for (std::string& note : calibration_notes(facts.profile, {a.cluster}))
    a.notes.push_back(std::move(note));
  if (a.cluster.gpus() < 2)
    return Problem{ProblemKind::request, "--gpus",
                   "one GPU has nobody to talk to; expected at least two"};
  const CollectiveModel model(a.cluster, facts.profile.links);
  const GroupShape all =
      group_shape(a.cluster.gpus(), 1, gpus_per_node(a.cluster), a.cluster.gpus());
  for (const Collective kind : *kinds)
    for (std::int64_t size = first_size; size <= last_size; size *= factor)
      a.rows.push_back({kind, Bytes(size), model.time(kind, Bytes(size), all)});
  return a;
}

double algorithm_gb_per_s(const Timed& t) {
  return static_cast<double>(t.size.value) / t.by.time.value / 1e9;
}

std::string shown_size(Bytes size) {
  const std::int64_t kib = size.value >> 10;
  if (kib < 1 << 10) return sentence(kib, " KiB");
  if (kib < 1 << 20) return sentence(kib >> 10, " MiB");
  return sentence(kib >> 20, " GiB");
}

std::string collectives_text(const CollectivesAnswer& a) {
  Table t{{"collective", "size", "time", "80 % interval", "algbw GB/s", "busbw GB/s", "NCCL"}, {}};
  for (const Timed& row : a.rows)
    t.rows.push_back({std::string(name(row.kind)), shown_size(row.size), shown_time(row.by.time),
                      sentence(shown_time((1 - row.by.spread) * row.by.time), " to ",
                               shown_time((1 + row.by.spread) * row.by.time)),
                      fixed(algorithm_gb_per_s(row), 2), fixed(row.by.bus_bandwidth.value / 1e9, 2),
                      sentence(row.by.algorithm_name(), "/", row.by.protocol_name())});
  std::string text =
      sentence(a.cluster.spoken, ": all ", grouped(a.cluster.gpus()),
               " ranks in one group, as nccl-tests prints it\n", shown_table(t, "  "));
  for (const std::string& note : a.notes) text += sentence("  note: ", note, '\n');
  return text;
}

Json collectives_json(const Request& request, const CollectivesAnswer& a) {
  Json rows = Json::array();
  for (const Timed& row : a.rows)
    rows.push_back({{"collective", name(row.kind)},
                    {"size_bytes", row.size.value},
                    {"time_s", json_number(row.by.time.value)},
                    {"relative_spread", json_number(row.by.spread)},
                    {"algorithm_gb_per_s", json_number(algorithm_gb_per_s(row))},
                    {"bus_gb_per_s", json_number(row.by.bus_bandwidth.value / 1e9)},
                    {"algorithm", row.by.algorithm_name()},
                    {"protocol", row.by.protocol_name()},
                    {"trust", trust_name(row.by.trust)}});
  return {{"schema_version", schema_version},
          {"command", "collectives"},
          {"request", asked_json(request)},
          {"ranks", a.cluster.gpus()},
          {"nodes", a.cluster.nodes()},
          {"collectives", rows},
          {"notes", a.notes}};
}

}  // namespace

void add_collectives_flags(CLI::App& command, CollectivesOptions& o) {
  command
      .add_option("--collective", o.kinds,
                  "all_reduce, all_gather, reduce_scatter, all_to_all or broadcast; more than once "
                  "for several")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

int collectives(const Request& request, const CollectivesOptions& options, const Facts& facts,
                const Output& output) {
  const auto answer = collectives_answer(request, options, facts);
  if (!answer) return report_problems(answer.error(), output);
  if (output.json)
    output.out << collectives_json(request, *answer).dump(2) << '\n';
  else
    output.out << collectives_text(*answer);
  return 0;
}

}  // namespace shardwise
