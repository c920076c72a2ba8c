// From what people say to clusters.
//
//   6x24GB                   every catalogued 24 GB card, one cluster each
//   4090, 2xRTX-3090         cards in one box: the smallest usual box that holds them
//   2x3090+2x4090            one box that mixes cards
//   16xH100-SXM              nodes of the size that the card is usually sold in
//   4 nodes of 8xA100-80GB   said in full; also 4x8xA100-80GB
//   dgx-h100, 2xp4d.24xlarge catalogued nodes
//
// More cards than one box holds become equal boxes where the count divides, else full boxes and a
// smaller one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/load.hpp"
#include "catalog/result.hpp"

namespace shardwise {

inline constexpr int max_cluster_gpus = 1'000'000;

struct ClusterOptions {
  std::optional<std::string> network;  // name in the catalog; absent: the one of the nodes
  std::optional<Bytes> host_ram;       // of every node
  std::optional<int> gpus_per_node;
  std::optional<int> power_limit_w;         // [W] of every GPU
  std::optional<PeerAccess> peer_access{};  // over PCIe; absent: as each GPU usually has it
  std::optional<double> network_share{};    // of the network's rate that other jobs leave, (0, 1]
  std::optional<Bytes> used_memory{};       // of every GPU, by other programs
  std::optional<int> pcie_lanes{};          // of every GPU's slot, riser or cable; 1 to 16
};

// At least one cluster, each with 1 to 1,000,000 GPUs. Problems are of kind request.
Result<std::vector<Cluster>> parse_gpus(const Catalog& catalog, std::string_view text,
                                        const ClusterOptions& options = {});

// Ids, aliases and boards that stand for GPUs and nodes: they share one place in the question.
std::vector<std::string_view> cluster_names(const Catalog& catalog);

}  // namespace shardwise
