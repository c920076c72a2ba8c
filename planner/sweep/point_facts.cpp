#include "planner/sweep/point_facts.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "catalog/text_file.hpp"
#include "planner/request/asked_cluster.hpp"
#include "planner/request/calibrated_facts.hpp"
#include "planner/sweep/fingerprint.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = std::size_t{16} << 20;

void add_file(Fingerprint& f, const fs::path& path, const std::string& called) {
  f.add(called);
  const auto text = read_text_file(path, called, most_bytes);
  f.add(text ? *text : "cannot be read");
}

// Every file below a folder, by its path in it.
void add_folder(Fingerprint& f, const fs::path& root) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory() && entry.depth() == 0 && entry->path().filename() == "runs")
      entry.disable_recursion_pending();
    else if (entry->path().extension() == ".json")
      files.push_back(entry->path().lexically_relative(root));
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) add_file(f, root / file, file.generic_string());
}

void collect(const StudyValue& v, std::set<std::string>& texts) {
  if (v.field->key != "model" && v.field->key != "profile" && v.field->key != "plan_from") return;
  if (const auto* one = std::get_if<std::string>(&v.value)) texts.insert(*one);
  if (const auto* many = std::get_if<std::vector<std::string>>(&v.value))
    texts.insert(many->begin(), many->end());
}

std::set<std::string> names_of_files(const Study& study) {
  std::set<std::string> texts;
  for (const StudyValue& v : study.base) collect(v, texts);
  for (const auto& one : study.cases)
    for (const StudyValue& v : one) collect(v, texts);
  for (const StudyAxis& axis : study.axes)
    for (const FieldValue& value : axis.values) collect({axis.field, value}, texts);
  return texts;
}

}  // namespace

PointFacts::PointFacts(fs::path root, Catalog catalog, Operations operations)
    : root_(std::move(root)), catalog_(std::move(catalog)), operations_(std::move(operations)) {}

Result<std::unique_ptr<PointFacts>> PointFacts::load(const fs::path& root) {
  auto catalog = load_catalog(root);
  if (!catalog) return catalog.error();
  auto operations = load_operations(root);
  if (!operations) return operations.error();
  return std::unique_ptr<PointFacts>(
      new PointFacts(root, *std::move(catalog), *std::move(operations)));
}

// Constants of links are laid over where all is about one kind of GPU (calibrated_facts.hpp).
std::string PointFacts::kind_of(const Request& request) const {
  std::set<std::string> ids;
  if (request.gpus) {
    const auto clusters = parse_gpus(catalog_, *request.gpus, cluster_options(request));
    if (clusters)
      for (const Cluster& cluster : *clusters)
        for (const NodeGroup& group : cluster.groups) ids.insert(group.gpu.id);
  }
  std::string kind = request.profile.value_or("");
  if (request.peer_access) kind += *request.peer_access == PeerAccess::yes ? "\nyes" : "\nno";
  for (const std::string& id : ids) kind += '\n' + id;
  return kind;
}

Result<const Facts*> PointFacts::of(const Request& request) {
  const std::string kind = kind_of(request);
  const std::scoped_lock lock(mutex_);
  const auto known = loaded_.find(kind);
  if (known != loaded_.end()) return known->second.get();
  auto facts = calibrated_facts(root_, request);
  if (!facts) return facts.error();
  return loaded_.emplace(kind, std::make_unique<const Facts>(*std::move(facts)))
      .first->second.get();
}

std::string facts_fingerprint(const fs::path& root, const Study& study) {
  Fingerprint f;
  add_folder(f, root);
  std::error_code ignored;
  for (const std::string& text : names_of_files(study)) {
    if (fs::is_regular_file(text, ignored)) add_file(f, text, text);
    if (!fs::is_directory(text, ignored)) continue;
    f.add(text);
    add_folder(f, text);
  }
  return f.hex();
}

}  // namespace shardwise
