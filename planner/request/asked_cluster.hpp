// The GPUs that a request asks for, and what is to be said of how they stand.
#pragma once

#include <string>
#include <vector>

#include "catalog/cluster_parser.hpp"
#include "planner/facts.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

ClusterOptions cluster_options(const Request& request);

// GPUs at the end of words that begin with something else, as in "8b 2x 3090"; "" where none are.
std::string gpus_behind(const Catalog& catalog, const std::string& words);

// As parse_gpus, spread over the nodes asked for. Problems name the flag that is wrong.
Result<std::vector<Cluster>> asked_clusters(const Catalog& catalog, const Request& request);

// What the words of the machine were taken to mean, and which of them change nothing.
std::vector<std::string> machine_notes(const Facts& facts, const Request& request,
                                       const std::vector<Cluster>& clusters);

}  // namespace shardwise
