#include "planner/commands/calibrate_profile.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "calibrate/gemm_fit.hpp"
#include "calibrate/link_fit.hpp"
#include "calibrate/measurement.hpp"
#include "calibrate/memory_fit.hpp"
#include "calibrate/size_fit.hpp"
#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "catalog/placement.hpp"
#include "catalog/text_match.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "simulator/costs/gemm_model.hpp"
#include "simulator/network/collective_model.hpp"

namespace shardwise {
namespace {

const Gpu* gpu_meant(const Catalog& catalog, const Reading& reading, const std::string& text) {
  if (const auto exact = find_gpu(catalog, text)) return *exact;
  const GpuReading* row = longest_match(reading.gpus, text);
  if (row == nullptr) return nullptr;
  const auto gpu = find_gpu(catalog, row->gpu);
  return gpu ? *gpu : nullptr;
}

bool holds_text(const Measurement& m, const std::string& text) {
  if (text.empty() || m.source.find(text) != m.source.npos) return true;
  return std::any_of(m.labels.begin(), m.labels.end(),
                     [&](const auto& l) { return l.second.find(text) != l.second.npos; });
}

// --only where it leaves nothing, with the texts that it could have named.
std::optional<Problem> only_nothing(const std::vector<Measurement>& measurements,
                                    const std::string& only) {
  constexpr std::size_t most_texts = 12;
  std::set<std::string> texts;
  for (const Measurement& m : measurements) {
    if (holds_text(m, only)) return std::nullopt;
    for (const auto& [key, text] : m.labels) texts.insert(printable(text));
  }
  std::vector<std::string> shown(texts.begin(), texts.end());
  if (shown.size() > most_texts) shown.resize(most_texts);
  if (shown.size() < texts.size()) shown.emplace_back("others");
  return Problem{ProblemKind::request, "--only",
                 sentence("no label or source of the measurements holds \"", printable(only), '"',
                          shown.empty() ? "" : "; labels are ", listed(shown))};
}

// The one GPU that is asked for or that all measurements name.
Result<const Gpu*> the_gpu(const std::vector<Measurement>& measurements,
                           const ProfileRequest& request, const Catalog& catalog,
                           const Reading& reading) {
  if (!request.gpu.empty()) return find_gpu(catalog, request.gpu);
  std::set<std::string> named;
  std::set<const Gpu*> meant;
  for (const Measurement& m : measurements) {
    const std::string device = label(m, "device");
    if (device.empty() || !holds_text(m, request.only)) continue;
    named.insert(device);
    if (const Gpu* gpu = gpu_meant(catalog, reading, device)) meant.insert(gpu);
  }
  if (meant.size() == 1) return *meant.begin();
  return Problem{ProblemKind::request, "--gpu",
                 named.empty()
                     ? "is needed: the measurements do not say on which GPU they were made"
                     : sentence("is needed: the measurements name ", listed(named))};
}

std::vector<Measurement> those_of(const std::vector<Measurement>& measurements, const Gpu& gpu,
                                  const ProfileRequest& request, const Catalog& catalog,
                                  const Reading& reading) {
  std::map<std::string, bool> known;
  std::vector<Measurement> chosen;
  for (const Measurement& m : measurements) {
    const std::string device = label(m, "device");
    const auto [at, fresh] = known.try_emplace(device, true);
    if (fresh && !device.empty()) {
      const Gpu* meant = gpu_meant(catalog, reading, device);
      at->second = meant != nullptr && meant->id == gpu.id;
    }
    if (at->second && holds_text(m, request.only)) chosen.push_back(m);
  }
  return chosen;
}

GemmTimer gemm_timer(const Gpu& gpu, const Profile& base) {
  return [&gpu, layout = base.gemm_layout](const GemmCalibration& constants,
                                           const std::vector<GemmPoint>& points) {
    Profile own;
    own.gemm_layout = layout;
    own.families.push_back({});
    own.families.front().gemm = constants;
    own.families.front().gemm.power_exponent = 0;  // constants of this very chip
    Gpu chip = gpu;
    chip.efficiency = {};
    const GemmModel model(chip, own);
    std::vector<Seconds> times;
    for (const GemmPoint& p : points)
      times.push_back(model.time({p.m, p.n, p.k, p.batch, p.dtype, p.accumulate}));
    return times;
  };
}

void fit_memory_kernels(const std::vector<Measurement>& measurements, const Gpu& gpu,
                        const Profile& base, ProfileFit& fit) {
  auto found = fit_memory(moved_bytes(measurements), gpu.memory_bandwidth, fit.notes);
  const std::vector<SingleElements> singly = single_elements(measurements);
  const MemoryCalibration& known = base.row(gpu.family).memory;
  const auto measured = [&](const char* key, double otherwise) {
    const auto c = found.find(key);
    return c == found.end() ? otherwise : c->second.value;
  };
  const double fraction =
      measured("memory.streaming_fraction",
               known.fraction[static_cast<std::size_t>(MemoryAccess::streaming)]);
  const Seconds start(measured("memory.start_us", known.start.value * 1e6) * 1e-6);
  const auto cycles = fit_cycles(singly, gpu, fraction * gpu.memory_bandwidth, start);
  if (cycles) found["memory.cycles_per_element"] = *cycles;
  if (!singly.empty() && !cycles)
    fit.notes.push_back("memory.cycles_per_element: memory bounds all " +
                        std::to_string(singly.size()) + " kernels that take elements one by one");
  fit.profile.constants.insert(found.begin(), found.end());
}

void fit_products(const std::vector<Measurement>& measurements, const Gpu& gpu, const Profile& base,
                  ProfileFit& fit) {
  std::vector<GemmPoint> points = gemm_points(measurements);
  std::erase_if(points, [&](const GemmPoint& p) { return !gpu.rate(p.dtype); });
  if (points.size() < least_gemm_points) {
    if (!points.empty())
      fit.notes.push_back(sentence("gemm: ", points.size(), " points, too few for a fit (",
                                   least_gemm_points, ")"));
    return;
  }
  const GemmFit found = fit_gemm(points, base.row(gpu.family).gemm, gemm_timer(gpu, base));
  FamilyCalibration family;
  family.gemm = found.constants;
  const DeviceConstants target{&family, nullptr, nullptr};
  std::set<DType> dtypes;
  for (const GemmPoint& p : points) dtypes.insert(p.dtype);
  for (const DeviceConstant& c : device_constants()) {
    if (!c.key.starts_with("gemm.") || !c.number) continue;
    const bool by_dtype = c.key.find("_fraction.") != c.key.npos;
    const bool measured = std::any_of(dtypes.begin(), dtypes.end(), [&](DType d) {
      return c.key.ends_with("." + std::string(name(d)));
    });
    if (by_dtype && !measured) continue;
    const double value = std::clamp(constant_value(c, target), c.low, c.high);
    fit.profile.constants[std::string(c.key)] = {value, value * found.low,
                                                 std::min(c.high, value * found.high),
                                                 static_cast<int>(points.size())};
  }
  fit.profile.tiles = found.constants.tiles;
  fit.notes.insert(fit.notes.end(), found.notes.begin(), found.notes.end());
  fit.notes.push_back(sentence("gemm: ", points.size(), " points, 80 % within ",
                               shown_percent(found.low - 1), " and ", shown_percent(found.high - 1),
                               " of the fitted tile and wave model"));
  for (std::string& line : surface_lines(found.surface)) fit.notes.push_back(std::move(line));
}

// The machine that the card is usually in, with as many of them as the points need.
Result<Cluster> usual_machine(const Catalog& catalog, const Gpu& gpu, int cards) {
  const ClusterOptions options;
  auto groups = place_cards(catalog, gpu, {1, cards, true}, options);
  if (!groups) return groups.error();
  return join(catalog, *std::move(groups), std::to_string(cards) + "x" + gpu.id, options);
}

LinkTimer link_timer(const Cluster& cluster, const LinkCalibration& base) {
  const Gpu& gpu = cluster.groups.front().gpu;
  return
      [&cluster, &base, &gpu](const ConstantValues& values, const std::vector<LinkPoint>& points) {
        LinkCalibration links = base;
        const GpuGeneration& serving = links.generation(gpu.vendor, gpu.compute_capability);
        const DeviceConstants target{
            nullptr, &links,
            &links.generations[static_cast<std::size_t>(&serving - links.generations.data())]};
        for (const auto& [key, value] : values) set_constant(*device_constant(key), target, value);
        const CollectiveModel model(cluster, links);
        std::vector<Seconds> times;
        for (const LinkPoint& p : points) {
          GroupShape shape;
          shape.ranks = shape.ranks_per_node = p.ranks;
          times.push_back(model.time(*collective_called(p.collective), p.bytes, shape).time);
        }
        return times;
      };
}

ConstantValues link_constants_of(const Gpu& gpu, const LinkCalibration& base) {
  LinkCalibration links = base;
  const GpuGeneration& serving = links.generation(gpu.vendor, gpu.compute_capability);
  const DeviceConstants target{
      nullptr, &links,
      &links.generations[static_cast<std::size_t>(&serving - links.generations.data())]};
  ConstantValues values;
  for (const DeviceConstant& c : device_constants())
    if (c.key.starts_with("links.") && constant_value(c, target) > 0)
      values[std::string(c.key)] = constant_value(c, target);
  return values;
}

void fit_collectives(const std::vector<Sweep>& sweeps, Gpu gpu, const Catalog& catalog,
                     const Profile& base, ProfileFit& fit) {
  std::vector<LinkPoint> points = link_points(sweeps);
  std::erase_if(points, [](const LinkPoint& p) { return !collective_called(p.collective); });
  if (points.empty()) return;
  int cards = 2;
  for (const LinkPoint& p : points) cards = std::max(cards, p.ranks);
  if (fit.profile.peer_over_pcie) gpu.peer_over_pcie = *fit.profile.peer_over_pcie;
  const auto machine = usual_machine(catalog, gpu, cards);
  if (!machine || machine->nodes() > 1) {
    fit.notes.push_back(sentence("collectives: no catalogued machine holds ", cards, " x ", gpu.id,
                                 "; their curves are kept, no constant is fitted"));
    return;
  }
  Cluster cluster = *machine;
  for (NodeGroup& g : cluster.groups) g.gpu = gpu;
  const LinkFit found =
      fit_links(points, link_constants_of(gpu, base.links), link_timer(cluster, base.links));
  fit.profile.constants.insert(found.constants.begin(), found.constants.end());
  fit.notes.insert(fit.notes.end(), found.notes.begin(), found.notes.end());
  fit.notes.push_back(sentence("collectives: ", points.size(), " points in a ",
                               cluster.groups.front().node.id, ", median error of the forecast ",
                               fixed(100 * found.before, 1), " % before, ",
                               fixed(100 * found.after, 1), " % after"));
}

void keep_curves(const std::vector<Sweep>& sweeps, ProfileFit& fit) {
  for (const Sweep& s : sweeps) {
    if (s.distinct_sizes().size() < 3) continue;
    const SizeFit found = fit_sizes(s.points);
    FittedCurve curve{s.subject(), {}, found.low, found.high, static_cast<int>(s.points.size())};
    for (const Regime& r : found.regimes)
      curve.regimes.push_back({r.from, r.to, r.alpha, r.bandwidth()});
    fit.profile.fits.push_back(std::move(curve));
  }
}

void fit_context(const std::vector<Measurement>& measurements, ProfileFit& fit) {
  for (const Measurement& m : measurements) {
    const auto by = m.labels.find("by");
    if (m.bench != "memory_held" || m.quantity != "bytes" || by == m.labels.end()) continue;
    const double mib = m.value / 1024 / 1024;
    if (by->second == "context")
      fit.profile.constants["context.cuda_context_mib"] = {mib, mib, mib, 1};
    if (by->second == "cublas_workspace" && m.value > 0)
      fit.profile.constants["context.cublas_workspace_bytes"] = {m.value, m.value, m.value, 1};
  }
}

// What was there, and what a fit would have needed.
Problem nothing_fitted(const std::vector<Measurement>& measurements, const Gpu& gpu,
                       const ProfileFit& fit) {
  std::map<std::string, int> counts;
  for (const Measurement& m : measurements) ++counts[m.bench];
  std::vector<std::string> found;
  for (const auto& [bench, count] : counts) found.push_back(sentence(count, " of ", bench));
  std::vector<GemmPoint> products = gemm_points(measurements);
  std::erase_if(products, [&](const GemmPoint& p) { return !gpu.rate(p.dtype); });
  std::string why = sentence(
      "nothing in the measurements can be fitted: there are ", listed(found), "; a fit needs ",
      least_gemm_points, " products with a mean or a median in a format of ", gpu.id, " (",
      products.size(), " found), or copies inside a GPU or kernels bound by its memory (",
      moved_bytes(measurements).size(), " found), or transfers of 3 sizes (collectives, copies)");
  for (const std::string& note : fit.notes)
    if (!note.starts_with("gemm: ")) why += "; " + note;
  return {ProblemKind::request, "--out", why};
}

}  // namespace

Result<ProfileFit> fit_device_profile(const std::vector<Measurement>& measurements,
                                      const std::map<std::string, std::string>& facts,
                                      const ProfileRequest& request, const Catalog& catalog,
                                      const Reading& reading) {
  if (auto unmatched = only_nothing(measurements, request.only)) return *std::move(unmatched);
  const auto gpu = the_gpu(measurements, request, catalog, reading);
  if (!gpu) return gpu.error();
  const auto base = load_profile((catalog.root / "profiles" / "published.json").string());
  if (!base) return base.error();
  const auto chosen = those_of(measurements, **gpu, request, catalog, reading);
  if (chosen.empty())
    return Problem{ProblemKind::request, "--gpu", "no measurement was made on " + (*gpu)->id};
  ProfileFit fit;
  fit.profile.gpu = (*gpu)->id;
  fit.profile.name = request.name;
  fit.profile.peer_over_pcie = request.peer_over_pcie;
  fit.profile.facts = facts;
  fit.profile.trust = request.published ? Trust::published : Trust::measured;
  fit.profile.provenance = {request.source, request.date, {}};
  for (const Measurement& m : chosen) {
    fit.profile.samples += std::max(1, m.samples);
    fit.profile.discarded += m.discarded;
  }
  const std::vector<Sweep> sweeps = sweeps_of(chosen);
  fit_products(chosen, **gpu, *base, fit);
  fit_memory_kernels(chosen, **gpu, *base, fit);
  fit_context(chosen, fit);
  fit_collectives(sweeps, **gpu, catalog, *base, fit);
  keep_curves(sweeps, fit);
  if (fit.profile.constants.empty() && fit.profile.fits.empty())
    return nothing_fitted(chosen, **gpu, fit);
  return fit;
}

Json device_profile_json(const DeviceProfile& p) {
  const auto rounded = [](double v) { return std::stod(fixed(v, v < 10 ? 5 : 3)); };
  Json constants = Json::object(), tiles = Json::array(), fits = Json::array();
  for (const auto& [key, c] : p.constants)
    constants[key] = {{"value", rounded(c.value)},
                      {"low", std::min(rounded(c.low), rounded(c.value))},
                      {"high", std::max(rounded(c.high), rounded(c.value))},
                      {"points", c.points}};
  for (const GemmTile& t : p.tiles)
    tiles.push_back({{"m", t.m}, {"n", t.n}, {"sms", t.sms}, {"rate", rounded(t.rate)}});
  for (const FittedCurve& f : p.fits) {
    Json regimes = Json::array();
    for (const FittedRegime& r : f.regimes) {
      Json j{{"from_bytes", r.from.value},
             {"to_bytes", r.to.value},
             {"alpha_us", rounded(r.alpha.value * 1e6)}};
      if (r.beta) j["gb_per_s"] = rounded(r.beta->value / 1e9);
      regimes.push_back(std::move(j));
    }
    fits.push_back({{"name", f.name},
                    {"regimes", std::move(regimes)},
                    {"low", rounded(f.low)},
                    {"high", rounded(f.high)},
                    {"points", f.points}});
  }
  Json j{{"name", p.name}, {"device", p.gpu}};
  if (p.peer_over_pcie) j["peer_over_pcie"] = *p.peer_over_pcie == PeerAccess::yes ? "yes" : "no";
  j["trust"] = trust_name(p.trust);
  j["source"] = p.provenance.source;
  j["date"] = p.provenance.date;
  Json facts = Json::object();
  for (const auto& [key, value] : p.facts) facts[key] = value;
  j["facts"] = std::move(facts);
  j["samples"] = p.samples;
  j["discarded"] = p.discarded;
  j["constants"] = std::move(constants);
  if (!tiles.empty()) j["tiles"] = std::move(tiles);
  j["fits"] = std::move(fits);
  return j;
}

}  // namespace shardwise
