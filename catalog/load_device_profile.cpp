// Reads the device profiles of catalog/profiles/ and puts the calibration of a question together.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

#include "catalog/device_profile.hpp"
#include "catalog/find.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"
#include "catalog/text_file.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, Trust>, 2> told_trusts{
    {{"measured", Trust::measured}, {"published", Trust::published}}};
constexpr std::array<std::pair<std::string_view, PeerAccess>, 2> peer_names{
    {{"yes", PeerAccess::yes}, {"no", PeerAccess::no}}};

void read_constants(JsonReader r, DeviceProfile& d) {
  for (const std::string& key : r.keys()) {
    const DeviceConstant* constant = device_constant(key);
    JsonReader c = r.object(key);
    if (!constant) {
      std::vector<std::string_view> known;
      for (const DeviceConstant& row : device_constants()) known.push_back(row.key);
      c.problem_here("no such constant; " + did_you_mean(key, known));
      continue;
    }
    MeasuredConstant& m = d.constants[key];
    m.value = c.number("value", constant->low, constant->high);
    m.low = c.number("low", 0, 1e12);
    m.high = c.number("high", 0, 1e12);
    m.points = c.integer("points", 1, 1'000'000'000);
    if (m.low > m.value || m.high < m.value) c.problem("value", "a number between low and high");
    c.finish();
  }
}

FittedCurve read_fit(JsonReader& r) {
  FittedCurve f;
  f.name = r.text("name");
  for (JsonReader& regime : r.objects("regimes")) {
    FittedRegime g;
    g.from = Bytes(regime.integer64("from_bytes", 1, std::int64_t{1} << 60));
    g.to = Bytes(regime.integer64("to_bytes", g.from.value, std::int64_t{1} << 60));
    g.alpha = Seconds(regime.number("alpha_us", 0, 1e12) * 1e-6);
    if (const auto rate = regime.maybe_number("gb_per_s", 1e-9, 1e9))
      g.beta = BytesPerSecond(*rate * 1e9);
    regime.finish();
    f.regimes.push_back(g);
  }
  if (f.regimes.empty()) r.problem("regimes", "at least one regime");
  f.low = r.number("low", 0, 1);
  f.high = r.number("high", 1, 1e6);
  f.points = r.integer("points", 1, 1'000'000'000);
  r.finish();
  return f;
}

void read_facts(JsonReader r, DeviceProfile& d) {
  for (const std::string& key : r.keys()) d.facts[key] = r.maybe_text(key).value_or("");
}

// Those files of profiles/ that are of a device; what else is there has no member "device".
struct FoundProfile {
  fs::path file;
  DeviceProfile profile;
};

bool is_device_document(const JsonDocument& document) {
  return document.at(0).kind == JsonKind::object && document.member(0, "device") != no_json;
}

Result<DeviceProfile> read_device_profile(const JsonDocument& document) {
  Problems problems;
  JsonReader r(document, problems);
  DeviceProfile d;
  d.name = r.text("name");
  d.gpu = r.text("device");
  d.peer_over_pcie = r.maybe_choice("peer_over_pcie", peer_names);
  d.trust = r.choice("trust", told_trusts);
  d.provenance = r.provenance();
  if (auto facts = r.maybe_object("facts")) read_facts(*facts, d);
  d.samples = r.integer("samples", 1, 1'000'000'000);
  d.discarded = r.integer("discarded", 0, 1'000'000'000);
  read_constants(r.object("constants"), d);
  for (JsonReader& t : r.objects("tiles")) {
    d.tiles.push_back({t.integer("m", 8, 4096), t.integer("n", 8, 4096), t.integer("sms", 1, 16),
                       t.number("rate", 0.001, 1)});
    t.finish();
  }
  if (d.tiles.size() > 8) r.problem("tiles", "at most eight tiles");
  for (JsonReader& f : r.objects("fits")) d.fits.push_back(read_fit(f));
  r.finish();
  if (!problems.empty()) return problems;
  return d;
}

Result<std::vector<DeviceProfile>> load_device_profiles(const fs::path& folder) {
  Problems problems;
  std::vector<DeviceProfile> found;
  for (const fs::path& file : json_files(folder, problems)) {
    const auto document = parse_json_file(file, "profiles/" + file.filename().string());
    if (document && !is_device_document(*document)) continue;
    auto profile = document ? read_device_profile(*document) : document.error();
    if (profile)
      found.push_back(*std::move(profile));
    else
      add_problems(problems, profile.error());
  }
  if (!problems.empty()) return problems;
  std::stable_sort(found.begin(), found.end(), [](const DeviceProfile& a, const DeviceProfile& b) {
    return std::tie(a.trust, b.provenance.date, a.name) <
           std::tie(b.trust, a.provenance.date, b.name);
  });
  return found;
}

}  // namespace

Problems unknown_devices(const Calibration& calibration, const Catalog& catalog) {
  Problems problems;
  for (const DeviceProfile& p : calibration.devices)
    if (std::none_of(catalog.gpus.begin(), catalog.gpus.end(),
                     [&](const Gpu& g) { return g.id == p.gpu; }))
      problems.push_back({ProblemKind::file, "profiles/" + p.name + ".json:/device",
                          "\"" + p.gpu + "\" is no GPU of the catalog"});
  return problems;
}

Result<DeviceProfile> load_device_profile(const fs::path& file) {
  const auto document = parse_json_file(file, file.string());
  if (!document) return document.error();
  return read_device_profile(*document);
}

Result<fs::path> find_profile(const fs::path& root, const std::string& asked) {
  std::error_code ignored;
  if (fs::exists(asked, ignored)) return fs::path(asked);
  const fs::path named = root / "profiles" / (asked + ".json");
  if (fs::exists(named, ignored)) return named;
  if (asked.find('/') != std::string::npos || fs::path(asked).extension() == ".json")
    return Problem{ProblemKind::file, "--profile", "there is no file \"" + asked + "\""};
  Problems unlisted;
  std::vector<std::string> names;
  for (const fs::path& file : json_files(root / "profiles", unlisted))
    names.push_back(file.stem().string());
  const std::string hint = did_you_mean(asked, {names.begin(), names.end()});
  return Problem{ProblemKind::request, "--profile",
                 "\"" + asked + "\" is no file and no profile of the catalog" +
                     (hint.empty() ? "" : "; " + hint)};
}

Result<DeviceProfile> find_device_profile(const fs::path& root, const std::string& asked,
                                          const std::string& where) {
  const auto file = find_profile(root, asked);
  if (file) {
    const auto document = parse_json_file(*file, file->string());
    if (!document) return document.error();
    if (is_device_document(*document)) return read_device_profile(*document);
  }
  std::vector<std::string> names;
  if (const auto known = load_device_profiles(root / "profiles"))
    for (const DeviceProfile& d : *known) names.push_back(d.name);
  std::sort(names.begin(), names.end());
  const std::string why =
      file ? "\"" + asked + "\" is no profile of one GPU" : file.error().front().what;
  return Problem{file ? ProblemKind::request : file.error().front().kind, where,
                 why + "; expected what calibrate import --out wrote, or one of " + joined(names)};
}

Result<Calibration> read_calibration(const fs::path& root,
                                     const std::optional<std::string>& asked) {
  const fs::path folder = root / "profiles";
  std::optional<DeviceProfile> first;
  fs::path whole = folder / "published.json";
  bool alone = false;
  if (asked) {
    const auto file = find_profile(root, *asked);
    if (!file) {
      Problem unknown = file.error().front();
      if (unknown.kind == ProblemKind::request)
        unknown.what +=
            "; expected a file of calibrate import --out, or a name in catalog/profiles";
      return unknown;
    }
    const auto document = parse_json_file(*file, file->string());
    alone = !document || !is_device_document(*document);
    if (alone) {
      whole = *file;
    } else {
      auto device = load_device_profile(*file);
      if (!device) return device.error();
      first = *std::move(device);
    }
  }
  auto profile = load_profile(whole.string());
  if (!profile) return profile.error();
  Calibration calibration{*std::move(profile), {}};
  if (alone) return calibration;
  auto others = load_device_profiles(folder);
  if (!others) return others.error();
  if (first) calibration.devices.push_back(*std::move(first));
  std::move(others->begin(), others->end(), std::back_inserter(calibration.devices));
  return calibration;
}

Result<Calibration> load_calibration(const Catalog& catalog,
                                     const std::optional<std::string>& asked) {
  auto calibration = read_calibration(catalog.root, asked);
  if (!calibration) return calibration;
  const Problems problems = unknown_devices(*calibration, catalog);
  if (!problems.empty()) return problems;
  return calibration;
}

void lay_over_all(Calibration& calibration, std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus)
    for (const DeviceProfile& p : calibration.devices)
      if (p.serves(gpu) && !p.constants.empty()) {
        lay_over(calibration.profile, gpu, p);
        break;
      }
}

}  // namespace shardwise
