#include "catalog/load.hpp"
#include "catalog/load_folder.hpp"

namespace shardwise {
namespace {

// Measured rates by number of nodes, ascending, as fractions of the first one.
std::vector<std::pair<int, double>> read_scaling(JsonReader& network) {
  std::vector<std::pair<int, double>> out;
  double first = 0;
  for (JsonReader& r : network.objects("measured_scaling")) {
    const int nodes = r.integer("nodes", 2, 1000000);
    const double rate = r.number("all_reduce_gb_per_s", 0.001, 1e6);
    r.finish();
    if (!out.empty() && nodes <= out.back().first)
      r.problem("nodes", "more nodes than in the row before");
    if (out.empty()) first = rate;
    out.emplace_back(nodes, rate / first);
  }
  return out;
}

Network read_network(JsonReader& r) {
  Network network;
  network.id = r.text("id");
  network.name = r.text("name");
  network.aliases = r.texts("aliases");
  network.kind = r.text("kind");
  network.port_bandwidth = BytesPerSecond(r.number("port_gbit_per_s", 0.01, 1e5) * 1e9 / 8.0);
  network.efficiency = r.number("efficiency", 0.01, 1);
  network.stream_bandwidth =
      BytesPerSecond(r.maybe_number("stream_gb_per_s", 0.01, 1e4).value_or(0) * 1e9);
  network.latency = Seconds(r.number("latency_us", 0.01, 1e6) * 1e-6);
  network.message = Seconds(r.maybe_number("message_us", 0, 1e6).value_or(0) * 1e-6);
  network.gpu_direct = r.flag("gpu_direct");
  network.communicator_nics =
      static_cast<int>(r.maybe_number("communicator_nics", 1, 64).value_or(0));
  network.oversubscription = r.number("oversubscription", 1, 1000);
  network.scaling = read_scaling(r);
  network.notes = r.texts("notes");
  network.provenance = r.provenance();
  return network;
}

}  // namespace

Result<std::vector<Network>> load_networks(const std::filesystem::path& root) {
  return load_folder<Network>(root, "networks", read_network);
}

}  // namespace shardwise
