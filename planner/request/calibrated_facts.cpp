#include "planner/request/calibrated_facts.hpp"

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "catalog/device_profile.hpp"
#include "catalog/load_asked.hpp"
#include "planner/request/asked_cluster.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// The kinds of GPUs that the question is about; none where it does not say or says it wrongly, for
// which the answer has its own words.
std::vector<const Gpu*> gpus_of(const Catalog& catalog, const Request& request) {
  std::vector<const Gpu*> found;
  if (!request.gpus) return found;
  const auto clusters = parse_gpus(catalog, *request.gpus, cluster_options(request));
  if (!clusters) return found;
  std::set<std::string> ids;
  for (const Cluster& cluster : *clusters)
    for (const NodeGroup& group : cluster.groups) ids.insert(group.gpu.id);
  for (const Gpu& gpu : catalog.gpus)
    if (ids.count(gpu.id)) found.push_back(&gpu);
  return found;
}

const DeviceProfile* serving(const Calibration& calibration, const Gpu& gpu) {
  for (const DeviceProfile& p : calibration.devices)
    if (p.serves(gpu) && !p.constants.empty()) return &p;
  return nullptr;
}

std::string rests_on(const DeviceProfile& p) {
  return sentence("profile ", p.name, ", ", p.trust == Trust::measured ? "measured " : "published ",
                  p.provenance.date, " (", p.provenance.source, ")");
}

// A file that says a plan may name a framework too, and a name that is no id may be any row's.
AskedOfCatalog asked_by(const std::filesystem::path& root, const Request& request) {
  AskedOfCatalog asked{request.model, std::nullopt};
  if (!request.plan_from.empty()) return asked;
  std::vector<std::string> ids = frameworks_unnamed();
  if (request.framework) {
    std::optional<std::string> named = find_framework_file(root, *request.framework);
    if (!named) return asked;
    ids.push_back(*std::move(named));
  }
  asked.frameworks = std::move(ids);
  return asked;
}

// The profile of one GPU that --profile names, which comes before the others.
const DeviceProfile* named_profile(const Calibration& calibration, const Request& request) {
  if (!request.profile || calibration.devices.empty()) return nullptr;
  const DeviceProfile& first = calibration.devices.front();
  if (first.name == *request.profile) return &first;
  const auto file = load_device_profile(*request.profile);  // else it is no file of one GPU
  return file && file->name == first.name && file->gpu == first.gpu ? &first : nullptr;
}

// Whoever names a profile says that the machine is like the one it was measured on: its PCIe has
// peer access where that one's had. Whether that is other than the GPU usually has it.
bool take_peer_access(const DeviceProfile& named, std::vector<Gpu>& gpus) {
  bool other = false;
  for (Gpu& gpu : gpus) {
    if (gpu.id != named.gpu || !named.peer_over_pcie) continue;
    other = other || gpu.peer_over_pcie != *named.peer_over_pcie;
    gpu.peer_over_pcie = *named.peer_over_pcie;
  }
  return other;
}

std::string peer_access_told(const DeviceProfile& named) {
  return sentence("was measured with", *named.peer_over_pcie == PeerAccess::yes ? "" : "out",
                  " peer access over PCIe, and so it is forecast; --peer-access says otherwise");
}

// Why a profile that was named makes no constant of the answer; empty where it does.
std::string says_nothing(const DeviceProfile& named, const std::vector<const Gpu*>& asked) {
  if (std::none_of(asked.begin(), asked.end(), [&](const Gpu* g) { return named.serves(*g); }))
    return sentence("changes nothing here: it is of ", named.gpu);
  return named.constants.empty() ? "has curves to look at and no constant that a forecast reads"
                                 : "";
}

}  // namespace

Result<Facts> calibrated_facts(const std::filesystem::path& root, const Request& request,
                               ModelsAsked models) {
  auto calibrating = std::async(std::launch::async, read_calibration, root, request.profile);
  auto reader = std::async(std::launch::async, load_training_words, root);
  auto catalog =
      load_asked(root, models == ModelsAsked::one ? asked_by(root, request) : AskedOfCatalog{});
  auto reading = reader.get();
  auto calibration = calibrating.get();
  Problems problems;
  if (!catalog) add_problems(problems, catalog.error());
  if (!reading) add_problems(problems, reading.error());
  if (problems.empty() && !calibration) return calibration.error();
  if (problems.empty()) problems = unknown_devices(*calibration, *catalog);
  if (!problems.empty()) return problems;
  const DeviceProfile* named = named_profile(*calibration, request);
  std::string peer_access;  // that it brought, told
  if (named != nullptr && take_peer_access(*named, catalog->gpus) && !request.peer_access)
    peer_access = peer_access_told(*named);
  if (request.peer_access)
    for (Gpu& gpu : catalog->gpus) gpu.peer_over_pcie = *request.peer_access;
  // It serves the machine asked about, whatever --peer-access says of that.
  if (named != nullptr) calibration->devices.front().peer_over_pcie.reset();
  const std::vector<const Gpu*> asked = gpus_of(*catalog, request);
  for (const Gpu* gpu : asked)
    if (const DeviceProfile* p = serving(*calibration, *gpu))
      calibration->profile.provenance.fields.push_back({gpu->id, rests_on(*p)});
  if (!peer_access.empty() &&
      std::any_of(asked.begin(), asked.end(), [&](const Gpu* g) { return g->id == named->gpu; }))
    calibration->profile.provenance.fields.push_back({"--profile", peer_access});
  if (named != nullptr && !asked.empty())
    if (const std::string idle = says_nothing(*named, asked); !idle.empty())
      calibration->profile.provenance.fields.push_back({"--profile", idle});
  if (asked.size() == 1)
    if (const DeviceProfile* p = serving(*calibration, *asked.front()))
      lay_links_over(calibration->profile.links, *asked.front(), *p);
  lay_over_all(*calibration, catalog->gpus);
  return Facts{*std::move(catalog), *std::move(reading), std::move(calibration->profile)};
}

std::vector<std::string> calibration_notes(const Profile& profile,
                                           const std::vector<Cluster>& clusters) {
  std::vector<std::string> notes;
  for (const FieldSource& field : profile.provenance.fields) {
    if (field.field == "--profile") notes.push_back(sentence("--profile ", field.source, '.'));
    const auto has_it = [&](const Cluster& cluster) {
      return std::any_of(cluster.groups.begin(), cluster.groups.end(),
                         [&](const NodeGroup& g) { return g.gpu.id == field.field; });
    };
    if (std::any_of(clusters.begin(), clusters.end(), has_it))
      notes.push_back(sentence(field.field, " rests on ", field.source, "."));
  }
  return notes;
}

Result<Profile> calibrated_profile(Catalog& catalog) {
  auto calibration = load_calibration(catalog, std::nullopt);
  if (!calibration) return calibration.error();
  lay_over_all(*calibration, catalog.gpus);
  return std::move(calibration->profile);
}

}  // namespace shardwise
