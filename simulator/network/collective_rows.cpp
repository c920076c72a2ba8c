// The ways to run a collective, one row each. Line numbers are those of NCCL 2.30.7
// src/graph/tuning.cc unless another file is named.
#include <algorithm>
#include <cmath>

#include "simulator/network/collective_model.hpp"

namespace shardwise {
namespace {

double bytes_of(Bytes size) { return static_cast<double>(size.value); }
double log2_floor(int n) { return std::floor(std::log2(static_cast<double>(n))); }
Seconds transfer(double bytes, double bytes_per_second) {
  return Seconds(bytes / bytes_per_second);
}
const NcclConstants& nccl(const GroupLinks& l) { return l.calibration->nccl; }

// Column of a table by nodes: one, two, more.
BytesPerSecond by_nodes(const ByNodes& table, int nodes) {
  return table[static_cast<std::size_t>(std::min(nodes, 3) - 1)];
}

const HopLatency& inside(const GroupLinks& l) {
  return l.kind <= PathKind::nvl ? nccl(l).nvlink : nccl(l).pcie;
}
bool crosses_cpu(const GroupLinks& l) { return l.kind >= PathKind::phb; }
Seconds inside_hop(const GroupLinks& l, const PerProtocol<Seconds>& row, Protocol p) {
  return at(row, p) + (crosses_cpu(l) ? l.cpu_hop : Seconds(0));
}
// Simple waits for the NIC twice: the last write is flushed (:386-391).
Seconds between_hop(const GroupLinks& l, const PerProtocol<Seconds>& row, Protocol p) {
  return at(row, p) + (p == Protocol::simple ? 2.0 : 1.0) * l.network_extra;
}

// Steps of a ring (:289-291). A broadcast passes every rank once.
int ring_steps(Collective kind, int n) {
  if (kind == Collective::all_reduce) return 2 * (n - 1);
  return kind == Collective::broadcast ? n : n - 1;
}

// Bandwidth of a ring through all ranks, as the bus sees it.
double ring_bus(const GroupLinks& l) {
  if (l.nodes == 1) return l.ring.value;
  return l.local > 1 ? std::min(l.ring.value, l.network.value) : l.network.value;
}
// Between nodes the graph search gives every channel a NIC of its own.
double channels(const GroupLinks& l, double bus) {
  const double found = bus / l.generation->channel.value;
  return std::max(1.0, l.nodes > 1 ? std::min(found, static_cast<double>(l.nics)) : found);
}

// LL and LL128 spend part of every line on flags; over PCIe small stores cost more (:327-335).
double low_latency_bus(const GroupLinks& l) {
  const double half = nccl(l).ll_fraction;
  const double local = l.kind > PathKind::nvl ? l.calibration->host.ll : half;
  double bus = l.local > 1 ? local * l.ring.value : l.nodes > 1 ? half * l.network.value : 0.0;
  if (l.nodes > 1) bus = std::min(bus, half * l.network.value);
  const double ceiling = l.nodes == 1 ? l.generation->ll_ceiling.value
                                      : by_nodes(nccl(l).ll_ceiling_between_nodes, l.nodes).value;
  return std::min(bus, ceiling);
}

bool ring_applies(Collective kind, const GroupLinks&) {
  return kind == Collective::all_reduce || kind == Collective::all_gather ||
         kind == Collective::reduce_scatter || kind == Collective::broadcast;
}
bool ring_ll128_applies(Collective kind, const GroupLinks& l) {
  return ring_applies(kind, l) && l.ll128;
}

Seconds ring_latency(Collective kind, double size, Protocol p, const GroupLinks& l) {
  const NcclConstants& c = nccl(l);
  const bool reduce = kind == Collective::all_reduce;
  const int passes = reduce ? 2 : 1;
  const int between = passes * (l.nodes - 1);
  const int within = passes * (l.ranks - 1) - between;
  // With one GPU per node the Tree row holds for every algorithm (:386).
  const auto& net = l.local == 1 ? c.net.tree : c.net.ring;
  Seconds hop = inside_hop(l, inside(l).ring, p);
  if (l.nodes > 1) hop = std::max(hop, (p == Protocol::simple ? 3.0 : 1.0) * c.host_overhead);
  Seconds latency = at(c.ring_base, p) + within * hop;
  if (l.nodes > 1) latency += between * between_hop(l, net, p);
  // Every link between nodes passes all of the ring's messages, one after the other.
  if (l.nodes > 1) latency = std::max(latency, ring_steps(kind, l.ranks) * l.network_message);
  // Bulk sizes between nodes (:647-650).
  const bool plateau = reduce && l.nodes > 1 && p == Protocol::simple &&
                       size / (channels(l, ring_bus(l)) * l.ranks) >= 64.0;
  if (!plateau) return latency;
  const bool before_ampere = l.compute_capability > 0 && l.compute_capability < 8.0;
  return (before_ampere ? c.plateau_before_ampere : c.plateau) * latency;
}

CollectiveEstimate ring_time(Collective kind, Bytes size, Protocol p, const GroupLinks& l) {
  const double bus = ring_bus(l);
  double rate = bus;
  if (p == Protocol::ll) rate = low_latency_bus(l);
  if (p == Protocol::ll128)
    rate = std::min(nccl(l).ll128_fraction * bus,
                    channels(l, bus) * by_nodes(l.generation->ring_ll128, l.nodes).value);
  const double step = bytes_of(size) / l.ranks, wire = step * ring_steps(kind, l.ranks);
  if (!l.over_nvlink()) return {ring_latency(kind, bytes_of(size), p, l), transfer(wire, rate)};
  const GpuGeneration& g = *l.generation;
  const double share = kind == Collective::all_reduce  ? g.own_share_of_all_reduce
                       : kind == Collective::broadcast ? 0.0
                                                       : g.own_share;
  const double own = share * step;
  return {ring_latency(kind, bytes_of(size), p, l), transfer(wire + own, g.ring_fraction * rate)};
}

bool tree_applies(Collective kind, const GroupLinks&) { return kind == Collective::all_reduce; }
bool tree_ll128_applies(Collective kind, const GroupLinks& l) {
  return tree_applies(kind, l) && l.ll128;
}

// Trees reach less than their bandwidth at middle sizes (:623-642): entry i is for 64 B x 2^i.
// Interpolated, so that more bytes never take less time.
double size_factor(const std::vector<double>& table, double size) {
  const double last = static_cast<double>(table.size() - 1);
  const double i = std::clamp(std::log2(std::max(1.0, size / 64.0)), 0.0, last);
  const auto low = static_cast<std::size_t>(i);
  const std::size_t high = std::min(low + 1, table.size() - 1);
  const double t = i - static_cast<double>(low);
  return table[low] + t * (table[high] - table[low]);
}

// Twice the algorithm bandwidth: each rank sends S up and S down. Two nodes exchange S in each
// direction; with more, an inner node of one tree is a leaf of the other and sends 2 S in all.
double tree_bus(const GroupLinks& l) {
  double bus = l.local > 1 ? l.ring.value : 2.0 * l.network.value;
  if (l.nodes > 1) bus = std::min(bus, (l.nodes == 2 ? 2.0 : 1.0) * l.network.value);
  return bus;
}

// A tree passes a channel's bytes in chunks, through one level of nodes after the other; each is a
// message that keeps its sender busy. Two nodes, which exchange with no node between them, show
// nothing of it (33.7 ms for 8 GiB on EFA, where the bandwidth alone says 35).
Seconds chunk_messages(double channel_bytes, double chunk, const GroupLinks& l) {
  if (l.nodes == 2) return Seconds(0);
  return std::max(1.0, channel_bytes / chunk) * log2_floor(l.nodes) * l.network_message;
}
// src/enqueue.cc:2222-2300: a step of the protocol's buffer; LL128 halves it for small sizes.
double tree_chunk(double channel_bytes, Protocol p, const GroupLinks& l) {
  constexpr double kib = 1024.0;
  if (p == Protocol::simple) return 512.0 * kib;
  if (p == Protocol::ll) return 128.0 * kib;
  const double steps = 1.0 + log2_floor(l.nodes) + 0.1 * l.local;
  double chunk = 576.0 * kib;
  while (channel_bytes / chunk < 64.0 * steps / l.local && chunk > 128.0 * kib) chunk /= 2;
  while (channel_bytes / chunk < 16.0 * steps / l.local && chunk > 32.0 * kib) chunk /= 2;
  return chunk;
}

CollectiveEstimate tree_time(Collective, Bytes size, Protocol p, const GroupLinks& l) {
  const NcclConstants& c = nccl(l);
  const double bus = tree_bus(l), wide = channels(l, bus);
  double rate = std::min(wide * by_nodes(l.generation->tree, l.nodes).value, bus);
  if (l.local > 1) rate = std::min(rate, c.tree_fraction * l.ring.value);
  if (p == Protocol::ll) rate = std::min({rate, bus / c.tree_ll_divisor, 2.0 * low_latency_bus(l)});
  if (p == Protocol::ll128)
    rate = std::min({rate, bus * (l.nodes == 1 ? c.tree_ll128_one_node : c.tree_ll128_more_nodes),
                     wide * by_nodes(l.generation->tree_ll128, l.nodes).value});
  rate *= size_factor(at(c.tree_size_factor, p), bytes_of(size));
  Seconds depth = (l.local - 1) * inside_hop(l, inside(l).tree, p);
  Seconds latency = at(c.tree_base, p);
  if (l.nodes > 1) {
    depth += log2_floor(l.nodes) * between_hop(l, c.net.tree, p);
    const double each = bytes_of(size) / wide;
    latency += chunk_messages(each, tree_chunk(each, p, l), l);
  }
  return {latency + 2.0 * depth, transfer(2.0 * bytes_of(size), rate)};
}

// In-switch reduction: latency replaces the base (:424-428). The kernel works through its buffer
// in chunks, one per channel and head; the first pass fills the pipeline (src/enqueue.cc:2258).
double nvls_rate(const GroupLinks& l) { return l.nvls_fraction * l.ring.value; }
double nvls_fill(const GroupLinks& l) {
  return bytes_of(l.calibration->buffers.nvls_chunk) * l.generation->nvls_channels * l.local;
}

bool nvls_applies(Collective kind, const GroupLinks& l) {
  return l.nvls && l.nodes == 1 &&
         (kind == Collective::all_reduce || kind == Collective::all_gather ||
          kind == Collective::reduce_scatter);
}
CollectiveEstimate nvls_time(Collective kind, Bytes size, Protocol, const GroupLinks& l) {
  const double passes = kind == Collective::all_reduce ? 1.0 + 1.0 / l.ranks : 1.0;
  const double wire = passes * bytes_of(size) + std::min(bytes_of(size), nvls_fill(l));
  return {nccl(l).nvlink.nvls, transfer(wire, nvls_rate(l))};
}

bool nvls_tree_applies(Collective kind, const GroupLinks& l) {
  return l.nvls && l.nodes > 1 && l.local > 1 && kind == Collective::all_reduce;
}
CollectiveEstimate nvls_tree_time(Collective, Bytes size, Protocol p, const GroupLinks& l) {
  const double between = (l.nodes == 2 ? 1.0 : 0.5) * l.network.value;
  const double ceiling =
      l.local * by_nodes(l.generation->nvls_tree, l.nodes).value * l.ranks / (2.0 * (l.ranks - 1));
  const double rate = std::min({nvls_rate(l) / (1.0 + 1.0 / l.local), between, ceiling});
  const double fill = std::min(bytes_of(size), nvls_fill(l));
  const HopLatency& net = nccl(l).net;
  const Seconds hop = net.nvls_tree + (p == Protocol::simple ? 2.0 : 1.0) * l.network_extra;
  // src/transport/nvls.cc:240: half the chunk from four nodes on.
  const double chunk = bytes_of(l.calibration->buffers.nvls_chunk) / (l.nodes < 4 ? 1.0 : 2.0);
  const Seconds messages =
      chunk_messages(bytes_of(size) / (l.generation->nvls_channels * l.local), chunk, l);
  return {nccl(l).nvlink.nvls_tree + 2.0 * log2_floor(l.nodes) * hop + messages,
          transfer(bytes_of(size) + fill, rate)};
}

bool pat_applies(Collective kind, const GroupLinks& l) {
  return l.nodes > 1 && l.local == 1 &&
         (kind == Collective::all_gather || kind == Collective::reduce_scatter);
}
CollectiveEstimate pat_time(Collective kind, Bytes size, Protocol, const GroupLinks& l) {
  const NcclConstants& c = nccl(l);
  const Seconds hop = c.net.pat + 2.0 * l.network_extra;
  const double hops = log2_floor(l.nodes) / c.pat_hop_divisor;
  const Seconds latency = c.pat_base + hops * hop + l.ranks * c.pat_per_rank;
  const double wire = bytes_of(size) * ring_steps(kind, l.ranks) / l.ranks;
  return {latency, transfer(wire, c.pat_fraction * l.network.value)};
}

// Pairwise sends: what stays inside the node and what leaves it travel at the same time.
bool exchange_applies(Collective kind, const GroupLinks&) {
  return kind == Collective::all_to_all || kind == Collective::send_recv;
}
CollectiveEstimate exchange_time(Collective kind, Bytes size, Protocol p, const GroupLinks& l) {
  const NcclConstants& c = nccl(l);
  const PointToPointLinks& direct = l.calibration->point_to_point;
  const bool pair = kind == Collective::send_recv;
  const double per_rank = bytes_of(size) / (pair ? 1 : l.ranks);
  const bool fast = l.kind <= PathKind::nvl;
  const double fraction = pair ? direct.nvlink_fraction : direct.exchange_fraction;
  const double copy = fast ? fraction : 1.0;
  const double own = fast && !pair ? direct.own_share : 0.0;
  const Seconds base = at(c.ring_base, p) + (l.ranks - 2) * direct.per_peer;
  Seconds hop(0), time(0);
  if (l.local > 1) {
    const double rate = pair ? l.ring.value : l.exchange.value;
    time = transfer(per_rank * (pair ? 1 : l.local - 1 + own), copy * rate);
    hop = inside_hop(l, inside(l).ring, p);
  }
  if (l.nodes > 1) {
    // A pair uses one NIC; an exchange loads every NIC with the traffic of its own ranks.
    const double rate =
        pair ? std::min(l.network.value, l.nic.value) : l.network_exchange.value / l.local;
    time = std::max(time, transfer(per_rank * (pair ? 1 : l.ranks - l.local), rate));
    hop = std::max(hop, between_hop(l, c.net.ring, p));
  }
  return {base + hop, time};
}

}  // namespace

const std::array<CollectiveRow, collective_row_count> collective_rows{{
    {Algorithm::ring, "Ring", Protocol::ll, ring_applies, ring_time},
    {Algorithm::ring, "Ring", Protocol::ll128, ring_ll128_applies, ring_time},
    {Algorithm::ring, "Ring", Protocol::simple, ring_applies, ring_time},
    {Algorithm::tree, "Tree", Protocol::ll, tree_applies, tree_time},
    {Algorithm::tree, "Tree", Protocol::ll128, tree_ll128_applies, tree_time},
    {Algorithm::tree, "Tree", Protocol::simple, tree_applies, tree_time},
    {Algorithm::nvls, "NVLS", Protocol::simple, nvls_applies, nvls_time},
    {Algorithm::nvls_tree, "NVLSTree", Protocol::simple, nvls_tree_applies, nvls_tree_time},
    {Algorithm::pat, "PAT", Protocol::simple, pat_applies, pat_time},
    {Algorithm::exchange, "Exchange", Protocol::simple, exchange_applies, exchange_time},
}};

}  // namespace shardwise
