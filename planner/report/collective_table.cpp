#include "planner/report/collective_table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

using Uses = std::vector<CollectiveUse>;

constexpr std::size_t most_rows = 8;

Seconds per_step(const CollectiveUse& u) { return u.per_step * u.each.time; }

Seconds per_step(const Uses& uses) {
  Seconds sum;
  for (const CollectiveUse& u : uses) sum += per_step(u);
  return sum;
}

std::string shown_size(Bytes size) {
  const double bytes = static_cast<double>(size.value);
  if (bytes < 1 << 20) return sentence(fixed(bytes / (1 << 10), 1), " KiB");
  if (bytes < 1 << 30) return sentence(fixed(bytes / (1 << 20), 1), " MiB");
  return sentence(fixed(bytes / (1 << 30), 2), " GiB");
}

std::string shown_group(const CollectiveUse& u) {
  const std::string ranks = sentence(u.shape.ranks, " ranks");
  return u.shape.nodes == 1 ? ranks : sentence(ranks, ", ", u.shape.nodes, " nodes");
}

std::vector<std::string> row(const CollectiveUse& u) {
  return {std::string(name(u.work)) + (u.beside ? " (behind kernels)" : ""),
          std::string(name(u.collective)),
          shown_size(u.size),
          shown_group(u),
          sentence(u.each.algorithm_name(), "/", u.each.protocol_name()),
          shown_time(u.each.time)};
}

struct UseLine {
  std::vector<std::string> cells;
  double per_step = 0;
  Seconds time;
};

// One for all that read the same: embedding and head differ by the bytes of a norm.
std::vector<UseLine> alike_once(const Uses& uses) {
  std::vector<UseLine> list;
  for (const CollectiveUse& u : uses) {
    std::vector<std::string> cells = row(u);
    auto same = std::find_if(list.begin(), list.end(),
                             [&](const UseLine& line) { return line.cells == cells; });
    if (same == list.end()) same = list.insert(list.end(), {std::move(cells), 0, Seconds(0)});
    same->per_step += u.per_step;
    same->time += per_step(u);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const UseLine& a, const UseLine& b) { return a.time > b.time; });
  return list;
}

}  // namespace

std::string collectives_text(const StepRecord& record) {
  const auto busiest =
      std::max_element(record.collectives.begin(), record.collectives.end(),
                       [](const Uses& a, const Uses& b) { return per_step(a) < per_step(b); });
  if (busiest == record.collectives.end() || busiest->empty()) return "";
  std::vector<UseLine> all = alike_once(*busiest);
  Table t{{"for", "collective", "size", "group", "NCCL", "each", "per step"}, {}};
  for (std::size_t i = 0; i < std::min(all.size(), most_rows); ++i) {
    t.rows.push_back(std::move(all[i].cells));
    t.rows.back().push_back(sentence("x ", grouped(static_cast<std::int64_t>(all[i].per_step))));
  }
  std::string text = "  collectives";
  if (record.collectives.size() > 1)
    text += sentence(" of stage ", busiest - record.collectives.begin());
  if (all.size() > most_rows) text += sentence(", the longest ", most_rows, " of ", all.size());
  return text + "\n" + shown_table(t, "    ");
}

Json collectives_json(const StepRecord& record) {
  Json list = Json::array();
  for (std::size_t stage = 0; stage < record.collectives.size(); ++stage)
    for (const CollectiveUse& u : record.collectives[stage])
      list.push_back({{"stage", stage},
                      {"kind", name(u.work)},
                      {"collective", name(u.collective)},
                      {"size_bytes", u.size.value},
                      {"ranks", u.shape.ranks},
                      {"nodes", u.shape.nodes},
                      {"algorithm", u.each.algorithm_name()},
                      {"protocol", u.each.protocol_name()},
                      {"time_s", json_number(u.each.time.value)},
                      {"bus_gb_per_s", json_number(u.each.bus_bandwidth.value / 1e9)},
                      {"behind_kernels", u.beside},
                      {"per_step", json_number(u.per_step)}});
  return list;
}

}  // namespace shardwise
