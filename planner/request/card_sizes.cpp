#include "planner/request/card_sizes.hpp"

#include <algorithm>
#include <string_view>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "catalog/names.hpp"
#include "catalog/spoken_cluster.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// "rtx-4060-ti" of "rtx-4060-ti-16gb"; nothing of an id that tells no size.
std::string_view without_size(std::string_view id) {
  if (!id.ends_with("gb")) return {};
  const std::size_t last = id.find_last_not_of("0123456789", id.size() - 3);
  if (last == std::string_view::npos || id[last] != '-' || last + 3 == id.size()) return {};
  return id.substr(0, last);
}

// Every consumer's card was sold; of the others some were made for one machine.
bool sold(const Catalog& catalog, const Gpu& gpu) {
  const auto is = [&](const auto& price) { return price.gpu == gpu.id; };
  const Prices& prices = catalog.prices;
  return gpu.market == Market::consumer ||
         std::any_of(prices.launch.begin(), prices.launch.end(), is) ||
         std::any_of(prices.cloud.begin(), prices.cloud.end(), is);
}

}  // namespace

std::vector<std::string> notes_of_sizes(const Catalog& catalog, const std::string& gpus) {
  const auto parts = read_spoken_cluster(gpus, cluster_names(catalog));
  std::vector<std::string> notes;
  if (!parts) return notes;
  for (const SpokenPart& part : *parts) {
    const auto gpu = find_gpu(catalog, part.name);
    if (!gpu) continue;
    const std::string_view id = (**gpu).id, name = without_size(id);
    const std::string size(name.empty() ? name : id.substr(name.size() + 1));
    const std::string short_size = size.substr(0, size.find('b'));  // "80g"
    if (size.empty() || squeezed(part.name).find(short_size) != std::string::npos) continue;
    std::vector<std::string> others;
    for (const Gpu& other : catalog.gpus)
      if (other.id != id && without_size(other.id) == name && sold(catalog, other))
        others.push_back(other.id);
    const std::string note = sentence('"', part.name, "\" is taken as ", (**gpu).name, ", not as ",
                                      listed(others, " or "), '.');
    if (!others.empty() && std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(note);
  }
  return notes;
}

}  // namespace shardwise
