#include "planner/report/calibration_rates.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "catalog/collective.hpp"
#include "planner/figures.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr double giga = 1e9, tera = 1e12;

// "gemm.sustained_fraction.bf16" is of the dense bf16 rate, "memory.*_fraction" of the memory's.
std::optional<DeviceRate> rate_of(const std::string& key, double value, const Gpu& gpu) {
  const auto of = [&](const char* port, const char* unit, double datasheet) {
    return DeviceRate{key, unit, value * datasheet, port, datasheet};
  };
  for (const std::string_view group : {"gemm.issue_fraction.", "gemm.sustained_fraction."}) {
    if (!key.starts_with(group)) continue;
    for (const DTypeRow& d : dtype_rows)
      if (const auto dense = gpu.rate(d.dtype); dense && key.substr(group.size()) == d.name)
        return of("dense rate", "TFLOP/s", dense->value / tera);
    return std::nullopt;
  }
  const bool of_memory = key.starts_with("memory.") || key.starts_with("gemm.memory");
  if (of_memory && key.ends_with("_fraction"))
    return of("memory", "GB/s", gpu.memory_bandwidth.value / giga);
  if (key == "links.nvlink_payload" && gpu.nvlink.value > 0)
    return of("NVLink", "GB/s", gpu.nvlink.value / giga);
  return std::nullopt;
}

// The number before " GPUs" in "all_reduce, 8 GPUs on 2 nodes"; 0 where there is none.
std::int64_t ranks_in(std::string_view name) {
  const std::size_t end = name.find(" GPUs");
  if (end == std::string_view::npos) return 0;
  const std::size_t before = name.rfind(' ', end - 1);
  const std::string_view digits =
      name.substr(before + 1, end - (before == std::string_view::npos ? 0 : before + 1));
  std::int64_t ranks = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), ranks);
  return ranks;
}

// Curves of one subject may be told apart by a label behind it: "... (h100-2nodes-k8s)".
std::string subject_of(const std::string& name) {
  const std::size_t label = name.ends_with(')') ? name.rfind(" (") : std::string::npos;
  return name.substr(0, label);
}

double pcie_line_rate(const Gpu& gpu, const HostLinks& host) {
  if (gpu.pcie_generation < 1 || gpu.pcie_lanes < 1) return 0;
  const auto row =
      std::min<std::size_t>(static_cast<std::size_t>(gpu.pcie_generation), host.lane.size());
  return gpu.pcie_lanes * host.lane[row - 1].value / giga;
}

// What the datasheet has of the path that a curve was measured on; nodes are joined by no GPU's.
void find_port(const std::string& subject, const Gpu& gpu, const HostLinks& host, bool nvlink,
               DeviceRate& rate) {
  const bool of_host = subject.find("host_to_device") != std::string::npos ||
                       subject.find("device_to_host") != std::string::npos;
  if (subject.find(" on ") != std::string::npos) return;
  const bool links = !of_host && nvlink;
  const double line = links ? gpu.nvlink.value / giga : pcie_line_rate(gpu, host);
  if (line <= 0 || (of_host && gpu.host_link)) return;
  rate.port = links ? "NVLink" : "PCIe";
  rate.datasheet = line;
}

std::optional<DeviceRate> rate_of(const FittedCurve& curve, const Gpu& gpu, const HostLinks& host,
                                  bool nvlink) {
  const auto& beta = curve.regimes.back().beta;
  if (!beta) return std::nullopt;
  const std::string subject = subject_of(curve.name);
  const double factor =
      collective_called(subject.substr(0, subject.find(',')))
          ? bus_factor(std::string_view(subject).substr(0, subject.find(',')), ranks_in(subject))
          : 1;
  if (factor <= 0) return std::nullopt;
  DeviceRate rate{subject, "GB/s", factor * beta->value / giga, "", std::nullopt};
  find_port(subject, gpu, host, nvlink, rate);
  return rate;
}

struct RatePair {
  std::optional<DeviceRate> a, b;
  const DeviceRate& either() const { return a ? *a : *b; }
};

std::vector<RatePair> pairs_of(const std::vector<DeviceRate>& a, const std::vector<DeviceRate>& b) {
  std::vector<RatePair> pairs;
  for (const DeviceRate& rate : a) pairs.push_back({rate, std::nullopt});
  for (const DeviceRate& rate : b) {
    const auto free = std::find_if(pairs.begin(), pairs.end(), [&](const RatePair& p) {
      return p.a && !p.b && p.a->name == rate.name;
    });
    if (free != pairs.end())
      free->b = rate;
    else
      pairs.push_back({std::nullopt, rate});
  }
  return pairs;
}

std::string whole_percent(double share) { return fixed(100 * share, 0) + " %"; }

std::string shown(const std::optional<DeviceRate>& rate) {
  if (!rate) return "-";
  const std::string text = fixed(rate->rate, 1);
  if (!rate->datasheet) return text;
  return sentence(text, " (", whole_percent(rate->rate / *rate->datasheet), " of ", rate->port,
                  "'s ", fixed(*rate->datasheet, 1), ")");
}

}  // namespace

std::vector<DeviceRate> device_rates(const DeviceProfile& profile, const Gpu& gpu,
                                     const HostLinks& host) {
  // Cards that a bridge can join are measured without one where their path was host memory or PCIe.
  const auto fitted = [&](const char* key) { return profile.constants.count(key) > 0; };
  const bool bridged =
      fitted("links.nvlink_payload") || !(fitted("links.shm") || fitted("links.p2p"));
  const bool nvlink = gpu.nvlink.value > 0 && bridged;
  std::vector<DeviceRate> rates;
  for (const auto& [key, c] : profile.constants)
    if (auto rate = rate_of(key, c.value, gpu)) rates.push_back(*std::move(rate));
  for (const FittedCurve& curve : profile.fits)
    if (auto rate = rate_of(curve, gpu, host, nvlink)) rates.push_back(*std::move(rate));
  return rates;
}

std::string device_rates_text(const ProfiledGpu& a, const ProfiledGpu& b, const HostLinks& host) {
  Table table{{"rate", "unit", a.profile.name, b.profile.name, "second / first"}, {}};
  for (const RatePair& p :
       pairs_of(device_rates(a.profile, a.gpu, host), device_rates(b.profile, b.gpu, host)))
    table.rows.push_back({p.either().name, p.either().unit, shown(p.a), shown(p.b),
                          p.a && p.b ? fixed(p.b->rate / p.a->rate, 2) : ""});
  std::string text = sentence(
      "different GPUs, ", a.gpu.name, " and ", b.gpu.name,
      ": what is slower may be the card. Rates, of each card's own datasheet in parentheses; "
      "collectives by their bus bandwidth at the largest sizes.\n");
  if (table.rows.empty()) return text + "  neither profile tells a rate\n";
  return text + shown_table(table);
}

Json device_rates_json(const ProfiledGpu& a, const ProfiledGpu& b, const HostLinks& host) {
  const auto side = [](const std::optional<DeviceRate>& rate) {
    if (!rate) return Json(nullptr);
    Json j{{"rate", json_number(rate->rate)}};
    if (rate->datasheet) {
      j["datasheet"] = json_number(*rate->datasheet);
      j["of"] = rate->port;
    }
    return j;
  };
  Json rates = Json::array();
  for (const RatePair& p :
       pairs_of(device_rates(a.profile, a.gpu, host), device_rates(b.profile, b.gpu, host)))
    rates.push_back(
        {{"rate", p.either().name}, {"unit", p.either().unit}, {"a", side(p.a)}, {"b", side(p.b)}});
  return rates;
}

}  // namespace shardwise
