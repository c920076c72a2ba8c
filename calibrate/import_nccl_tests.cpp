#include "calibrate/import_nccl_tests.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/log_text.hpp"
#include "calibrate/nccl_tests_row.hpp"

namespace shardwise {
namespace {

struct NamedCollective {
  std::string_view text, collective;
};
// Longer names first: "all_reduce" before "reduce".
constexpr std::array<NamedCollective, 16> named_collectives{{{"reduce_scatter", "reduce_scatter"},
                                                             {"reducescatter", "reduce_scatter"},
                                                             {"all_reduce", "all_reduce"},
                                                             {"allreduce", "all_reduce"},
                                                             {"all_gather", "all_gather"},
                                                             {"allgather", "all_gather"},
                                                             {"alltoallv", "all_to_all_v"},
                                                             {"all_to_all", "all_to_all"},
                                                             {"alltoall", "all_to_all"},
                                                             {"broadcast", "broadcast"},
                                                             {"sendrecv", "send_recv"},
                                                             {"send_recv", "send_recv"},
                                                             {"hypercube", "hypercube"},
                                                             {"scatter", "scatter"},
                                                             {"gather", "gather"},
                                                             {"reduce", "reduce"}}};

// One run of one benchmark: its header and its rows.
struct Run {
  std::string collective, device;
  std::set<std::string> hosts;
  std::map<std::int64_t, std::string> host_of;  // by rank
  bool apart = false;        // a rank on two hosts: programs that know nothing of one another
  std::int64_t ranks = 0;    // 0: no list of devices
  std::int64_t threads = 0;  // nThread x nGpus of one process
  bool has_rows() const { return !rows.empty(); }
  std::vector<std::pair<int, NcclTestsRow>> rows;  // with their lines
};

// "#  Rank  3 Group  0 Pid  77 on  host device  3 [0x9a] NVIDIA A100-SXM4-80GB"
bool read_device_line(std::string_view line, Run& run) {
  const auto rank_on = after(line, "Rank");
  if (!rank_on || line.find(" on ") == line.npos || line.find("device") == line.npos) return false;
  const auto numbers = words(*rank_on);
  const auto rank = numbers.empty() ? std::nullopt : whole_number_in(numbers.front());
  if (!rank) return false;
  run.ranks = std::max(run.ranks, *rank + 1);
  const auto host = words(*after(line, " on "));
  if (!host.empty()) {
    run.hosts.emplace(host.front());
    const auto known = run.host_of.emplace(*rank, host.front()).first;
    run.apart = run.apart || known->second != host.front();
  }
  if (const auto name = after(line, "] ")) {
    const auto bracket = name->rfind("] ");
    run.device = trimmed(bracket == name->npos ? *name : name->substr(bracket + 2));
  }
  return true;
}

void read_threads(std::string_view line, Run& run) {
  std::int64_t product = 1;
  for (const std::string_view key : {"nThread", "nGpus"}) {
    const auto rest = after(line, key);
    const auto value =
        rest ? whole_number_in(words(*rest).empty() ? "" : words(*rest).front()) : std::nullopt;
    if (value) product *= *value;
  }
  run.threads = product;
}

bool sums(const Run& run) {
  return std::any_of(run.rows.begin(), run.rows.end(), [](const auto& r) {
    return !r.second.redop.empty() && r.second.redop != "none";
  });
}

// The row whose ratio busbw / algbw is printed with most digits.
const NcclTestsTiming* finest(const Run& run) {
  const NcclTestsTiming* best = nullptr;
  for (const auto& [line, row] : run.rows)
    for (const NcclTestsTiming& t : row.timings)
      if (!best || t.algbw > best->algbw) best = &t;
  return best && best->algbw >= 1 ? best : nullptr;
}

// Where no line names the collective, its bus factor and whether it sums tell.
void infer_collective(Run& run) {
  const NcclTestsTiming* t = finest(run);
  if (!run.collective.empty() || !t) return;
  const double factor = t->busbw / t->algbw;
  if (factor > 1.02) run.collective = "all_reduce";
  if (sums(run) && run.ranks == 2 && std::abs(factor - 1) < 0.02) run.collective = "all_reduce";
  if (sums(run) && factor < 0.98) run.collective = "reduce_scatter";
}

// n of 2(n-1)/n or (n-1)/n, where the factor tells it to within half a rank.
std::int64_t ranks_of_factor(const Run& run) {
  const NcclTestsTiming* t = finest(run);
  const bool twice = run.collective == "all_reduce";
  const bool once = run.collective == "all_gather" || run.collective == "reduce_scatter" ||
                    run.collective == "all_to_all";
  if (!t || (!twice && !once)) return 0;
  const double lost = 1 - t->busbw / t->algbw / (twice ? 2 : 1);
  const double rounding = 0.01 / t->algbw;
  if (lost <= rounding) return 0;
  const double n = 1 / lost, next = 1 / std::max(1e-9, lost - rounding);
  return next - n < 0.5 && n > 1.5 ? std::llround(n) : 0;
}

Measurement measured(const Run& run, std::int64_t ranks, const NcclTestsRow& row,
                     std::size_t placement) {
  Measurement m;
  m.bench = "collective";
  m.sizes = {{"bytes", row.bytes}, {"ranks", ranks}};
  if (!run.hosts.empty())
    m.sizes["nodes"] = run.apart ? 1 : static_cast<std::int64_t>(run.hosts.size());
  m.labels = {{"collective", run.collective},
              {"dtype", row.dtype},
              {"placement", placement == 0 ? "out_of_place" : "in_place"}};
  if (!run.device.empty()) m.labels["device"] = run.device;
  m.quantity = "time_s";
  m.value = row.timings[placement].time_us * 1e-6;
  m.samples = 1;
  return m;
}

void finish(Run& run, ImportedLog& log) {
  infer_collective(run);
  std::int64_t ranks = run.ranks ? run.ranks : ranks_of_factor(run);
  if (ranks == 0 && run.hosts.size() <= 1) ranks = run.threads;
  if (run.apart && run.has_rows())
    leave_unread(log, run.rows.front().first, "",
                 "its ranks stand on several machines at once, as where nccl-tests is built "
                 "without MPI=1: read as runs of one machine each");
  for (const auto& [line, row] : run.rows) {
    if (run.collective.empty()) {
      leave_unread(log, line, "", "no line says which collective ran");
    } else if (ranks < 2) {
      leave_unread(log, line, "", "no line says between how many GPUs it ran");
    } else if (row.wrong) {
      leave_unread(log, line, "", std::string(arrived_wrong));
    } else {
      for (std::size_t i = 0; i < row.timings.size(); ++i) {
        log.measurements.push_back(measured(run, ranks, row, i));
        log.measurements.back().source = at_line(log, line);
      }
      if (!row.cut_off.empty()) leave_unread(log, line, "", row.cut_off);
    }
  }
  run = {};
  run.collective = collective_named(log.file);
}

std::string first_word(std::string_view text) {
  const auto all = words(text);
  return all.empty() ? "" : std::string(all.front());
}

// Lines of the header and of the shell; a new one after rows begins the next run.
void read_run_header(const LogLine& line, Run& run, ImportedLog& log) {
  const std::string_view text = line.text;
  const auto begin = [&] {
    if (run.has_rows()) finish(run, log);
  };
  if (text.find("_perf") != text.npos && text.find("concluded") == text.npos) {
    begin();
    if (const std::string named = collective_named(text); !named.empty()) run.collective = named;
  }
  if (text.find("nThread") != text.npos && text.find("nGpus") != text.npos) {
    begin();
    read_threads(text, run);
  } else if (read_device_line(text, run)) {
    log.facts["device"] = run.device;
  } else if (const auto version = after(text, "NCCL version ")) {
    log.facts["nccl"] = first_word(*version);
  } else if (const auto tool = after(text, "# nccl-tests version ")) {
    if (const std::string number = first_word(*tool); !number.empty())
      log.facts["tool"] = "nccl-tests " + number;
  }
}

}  // namespace

std::string collective_named(std::string_view text) {
  const std::string low = lowered(text);
  for (const NamedCollective& n : named_collectives)
    if (low.find(n.text) != low.npos) return std::string(n.collective);
  return "";
}

bool looks_like_nccl_tests(std::string_view text) {
  if (text.find("algbw") != text.npos && text.find("busbw") != text.npos) return true;
  const std::vector<LogLine> lines = log_lines(text.substr(0, 1 << 20));
  return std::any_of(lines.begin(), lines.end(), [](const LogLine& line) {
    return read_nccl_tests_line(line.text).kind == RowKind::row;
  });
}

void import_nccl_tests(std::string_view text, ImportedLog& log) {
  Run run;
  run.collective = collective_named(log.file);
  for (const LogLine& line : log_lines(text)) {
    const NcclTestsLine read = read_nccl_tests_line(line.text);
    if (read.kind == RowKind::row)
      run.rows.emplace_back(line.number, read.row);
    else if (read.kind == RowKind::broken)
      leave_unread(log, line.number, line.text, read.why);
    else
      read_run_header(line, run, log);
  }
  finish(run, log);
}

}  // namespace shardwise
