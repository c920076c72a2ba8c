// The plans that people set side by side when they name none: data parallelism by every stage of
// ZeRO, and a node's worth of each other kind.
#pragma once

#include <string>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/transformer.hpp"

namespace shardwise {

// As --plan takes them, for all GPUs of `cluster`; none for one GPU. With n GPUs, g of them a node:
//
//   dp=n with ZeRO 0, 1, 2 and 3, and, over several nodes, 3 within each (HSDP)
//   tp=g, pp=g and cp=g (with ZeRO 3), each with dp=n/g
//   tp=g,pp=p over several nodes, p the largest divisor of their number up to 16
//   where there are experts: ep=e with dp=n, and with pp=p (pp=2 in one node), e the largest
//   divisor of dp up to g that divides them; over several nodes also up to 64
//
// No stage is without a layer. Where nodes have unlike numbers of GPUs only the first line. What a
// model or framework refuses is for the forecast to say.
std::vector<std::string> usual_plans(const Transformer& model, const Cluster& cluster);

}  // namespace shardwise
