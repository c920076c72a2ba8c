#include "planner/forecast/kernel_account.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "planner/forecast/forecast_parts.hpp"
#include "simulator/costs/attention_model.hpp"
#include "simulator/costs/cache_reuse.hpp"
#include "simulator/costs/kernel_model.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

class Accountant {
 public:
  Accountant(const Gpu& gpu, const Profile& profile, const AttentionChoice& choice)
      : kernels_(gpu, profile, choice), gemm_(gpu, profile), memory_(gpu, profile) {}

  std::vector<ColdBytes> cold(const LayerGraph& graph) const { return cold_bytes(graph, kernels_); }
  // `cold`: MemoryBoundModel::time, of the first kernel that moves bytes.
  void add(const std::vector<Kernel>& list, KernelAccount& to, Bytes cold = Bytes(0)) const {
    for (const Kernel& k : list)
      if (const auto* memory = std::get_if<MemoryWork>(&k))
        add(*memory, to, std::exchange(cold, Bytes(0)));
      else
        std::visit([&](const auto& work) { add(work, to); }, k);
  }

 private:
  bool streams(const GemmWork& g) const {
    const double element = bytes_per_element(g.dtype);
    const double m = static_cast<double>(g.m), n = static_cast<double>(g.n),
                 k = static_cast<double>(g.k);
    const double bytes = (m * k + k * n + m * n) * element;
    const double rate = gemm_.sustained_rate(g.dtype).value;
    return bytes / memory_.bandwidth(MemoryAccess::streaming).value > 2 * m * n * k / rate;
  }

  void add(const GemmWork& g, KernelAccount& to) const {
    const Seconds t = kernels_.gemm(g);
    (streams(g) ? to.streaming : to.arithmetic) += t;
    to.products += Flops(2 * static_cast<double>(g.m) * static_cast<double>(g.n) *
                         static_cast<double>(g.k) * static_cast<double>(g.batch));
    ++to.products_run;
  }

  void add(const AttentionWork& a, KernelAccount& to) const {
    to.arithmetic += kernels_.attention(a);
    const double per_pair = (a.backward ? 10.0 : 4.0) * a.head_dim;
    to.attention +=
        Flops(per_pair * a.pieces * static_cast<double>(a.batch) * a.heads * visible_pairs(a));
    to.products_run += a.pieces;
  }

  void add(const MemoryWork& m, KernelAccount& to, Bytes cold = Bytes(0)) const {
    to.streaming += kernels_.memory_bound(m, cold);
    to.moved += m.moved;
    to.others_run += m.launches;
  }

  void add(const CommWork&, KernelAccount&) const {}  // no kernel of the layer's own
  void add(const ReadBack&, KernelAccount&) const {}  // no kernel at all

  KernelModel kernels_;
  GemmModel gemm_;
  MemoryBoundModel memory_;
};

// All forward passes of a microbatch, those of a reference too.
void add_forward(const Operator& op, int passes, Bytes cold, const Accountant& accountant,
                 KernelAccount& to) {
  for (int pass = 0; pass < passes; ++pass) accountant.add(op.run_by(pass), to, cold);
}

StageAccount account_of(const LayerDefinition& d, int forward_passes,
                        const Accountant& accountant) {
  StageAccount p;
  const std::vector<ColdBytes> cold = accountant.cold(d.graph);
  for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
    const Operator& op = d.graph.operators[i];
    add_forward(op, forward_passes, cold[i].forward, accountant, p.forward);
    accountant.add(op.backward, p.backward, cold[i].backward);
    accountant.add(op.backward_weight, p.backward_weight);
    if (d.redone[i] && d.script.runs_again[i])
      accountant.add(op.forward, p.recompute, cold[i].forward);
  }
  return p;
}

ModelPartition partition_of(const Question& q) {
  const PipelineSchedule& schedule = *find_pipeline_schedule(q.plan.schedule_row());
  return partition_model(q.workload, q.plan, schedule, *recompute_policy(q.plan.recompute));
}

Accountant accountant_of(const Question& q, const Profile& profile, int stage) {
  AttentionChoice choice = attention_choice(q.workload, q.plan);
  choice.load = {};  // as if nothing else ran
  return {smallest_group(q.cluster, q.plan, stage).gpu, profile, choice};
}

}  // namespace

KernelAccount& KernelAccount::operator+=(const KernelAccount& o) {
  products += o.products;
  attention += o.attention;
  moved += o.moved;
  products_run += o.products_run;
  others_run += o.others_run;
  arithmetic += o.arithmetic;
  streaming += o.streaming;
  return *this;
}

StageAccount& StageAccount::operator+=(const StageAccount& o) {
  forward += o.forward;
  recompute += o.recompute;
  backward += o.backward;
  backward_weight += o.backward_weight;
  stepped += o.stepped;
  zeroed += o.zeroed;
  return *this;
}

std::vector<StageAccount> kernel_accounts(const Question& q, const Profile& profile) {
  const ModelPartition partition = partition_of(q);
  std::vector<StageAccount> out;
  for (const auto& chunks : partition.stages) {
    const Accountant accountant = accountant_of(q, profile, static_cast<int>(out.size()));
    StageAccount& account = out.emplace_back();
    for (const ModelChunk& chunk : chunks)
      for (const ChunkLayer& layer : chunk.layers) {
        const LayerDefinition& d = *layer.definition;
        account += account_of(d, q.workload.forward_passes(), accountant);
        const LayerState state = layer_state(q.workload, q.plan, d.graph.parameters, d.trainable);
        account.stepped += state.stepped_elements;
        account.zeroed += zeroed_gradients(q.workload, state);
        account.checked += checked_gradients(q.workload, q.plan, state);
      }
  }
  return out;
}

std::vector<OperatorAccount> operator_accounts(const Question& q, const Profile& profile,
                                               int stage) {
  const ModelPartition partition = partition_of(q);
  const Accountant accountant = accountant_of(q, profile, stage);
  std::map<std::string_view, OperatorAccount> by_name;
  for (const ModelChunk& chunk : partition.stages[static_cast<std::size_t>(stage)])
    for (const ChunkLayer& layer : chunk.layers) {
      const LayerDefinition& d = *layer.definition;
      const std::vector<ColdBytes> cold = accountant.cold(d.graph);
      for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
        const Operator& op = d.graph.operators[i];
        KernelAccount forward, again, backward;
        add_forward(op, q.workload.forward_passes(), cold[i].forward, accountant, forward);
        accountant.add(op.forward, again, cold[i].forward);
        accountant.add(op.backward, backward, cold[i].backward);
        accountant.add(op.backward_weight, backward);
        OperatorAccount& account = by_name[op.name];
        const double times = q.plan.microbatches;
        account.forward += times * forward.time();
        account.backward += times * backward.time();
        if (d.redone[i] && d.script.runs_again[i]) account.recompute += times * again.time();
        account.runs += q.plan.microbatches;
      }
    }
  std::vector<OperatorAccount> out;
  for (auto& [name, account] : by_name) {
    account.name = name;
    if (account.time() > Seconds(0)) out.push_back(std::move(account));
  }
  std::stable_sort(out.begin(), out.end(), [](const OperatorAccount& a, const OperatorAccount& b) {
    return a.time() > b.time();
  });
  return out;
}

}  // namespace shardwise
