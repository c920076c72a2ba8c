// The passes through one layer in the cost model: its kernels one after the other, its collectives,
// and what the CPU takes to issue them.
#include <algorithm>
#include <array>
#include <utility>

#include "simulator/costs/cache_reuse.hpp"
#include "simulator/costs/cost_model.hpp"
#include "simulator/graphs/captured_parts.hpp"
#include "simulator/graphs/visited_places.hpp"
#include "simulator/graphs/weight_tensors.hpp"

namespace shardwise {

// When kernels run that a CPU issues one after the other, from the moment when it begins.
struct IssueOrder {
  Seconds issued, busy, done;  // CPU time so far, GPU time so far, and when the last kernel ends

  // One after the other, `launches` of equal length.
  void add(int launches, Seconds host, Seconds device) {
    const double n = launches > 0 ? launches : 1;
    const Seconds first = issued + (1.0 / n) * host + device;
    const Seconds last = issued + host + (1.0 / n) * device;
    done = longest(longest(done + device, first), last);
    issued += host;
    busy += device;
  }
  Seconds lead() const { return done - busy; }
};

// What the CPU issues, one by one.
struct LaunchCounts {
  int launches = 0, plain_launches = 0, looped_launches = 0;
  int grouped_products = 0, narrow_products = 0, collectives = 0;
};

struct CostModel::PassCost : LaunchCounts {
  Seconds compute, matmul, weight_matmul, attention;
  std::array<Seconds, 3> exposed{}, beside{};
  Seconds replays;  // CPU time of CUDA graphs
  std::vector<CollectiveUse>* uses = nullptr;
  IssueOrder order;    // since the CPU waited last
  IssuedWork at_wait;  // all that was issued when the CPU waited last
  int turns = 1;       // of a loop in which it does; `order` is that of one
  std::vector<IssuedWork> waited;

  // `all` that was issued, up to a point where the CPU waits for it.
  void read_back(const ReadBack& read, const IssuedWork& all) {
    end_turns(all);
    if (read.turns == 0) return;
    waited.push_back(all - at_wait);
    at_wait = all;
    order = {};
    turns = read.turns;
  }
  void run(int kernels, Seconds host, Seconds device) {
    order.add(kernels / turns, (1.0 / turns) * host, (1.0 / turns) * device);
  }
  // The last turn goes on with what follows the loop. Each of the others ends with a wait: when the
  // CPU has issued it, or the GPU, `lead` behind, has run it.
  void end_turns(const IssuedWork& all) {
    if (turns == 1) return;
    const double n = turns;
    IssuedWork others = all - at_wait;
    const Seconds slower = (1 / n) * (others.host - others.device());
    others = ((n - 1) / n) * others;
    others.lead = (n - 1) * longest(order.lead(), slower);
    waited.push_back(others);
    at_wait = at_wait + others;
    turns = 1;
  }

  int all_launches() const { return launches + plain_launches + looped_launches + collectives; }
  Seconds device() const { return compute + exposed[0] + exposed[1] + exposed[2]; }
};

namespace {

GroupKind group_of(CommAxis axis) {
  constexpr std::array kinds{GroupKind::tensor, GroupKind::context, GroupKind::expert};
  return kinds[static_cast<std::size_t>(axis)];
}

WorkKind work_of(CommAxis axis) {
  constexpr std::array kinds{WorkKind::tensor_comm, WorkKind::context_comm, WorkKind::expert_comm};
  return kinds[static_cast<std::size_t>(axis)];
}

// The GPU waits while the CPU prepares the next launch.
void wait_for_launches(LayerTime& t) {
  for (PassTime* p : {&t.forward, &t.recompute, &t.backward_input, &t.backward_weight}) {
    p->compute += p->host;
    p->host = p->lead = Seconds(0);
    p->waited.clear();
  }
}

// Kernels before a group's products that put the scales of both operands, of all of them at once,
// in the order that they want (Transformer Engine v2.8 and later
// pytorch/csrc/extensions/gemm.cpp, te_general_grouped_gemm).
int orderings_of_scales(const GemmWork& gemm) {
  return gemm.dtype == DType::mxfp8 || gemm.dtype == DType::nvfp4 ? 2 : 0;
}

}  // namespace

// Kernels that one attention call issues: flash one forward and three backward (statistics, main,
// dQ conversion); eager its two (four) matmuls and what runs on the scores between them.
int CostModel::attention_launches(const AttentionWork& work) const {
  if (work.kernel != AttentionKernel::eager) return work.backward ? 3 : 1;
  if (work.products_alone) return work.backward ? 4 : 2;
  const auto style = static_cast<std::size_t>(w_.framework.layers.kernels);
  const ScoreTraffic& t = profile_.eager_attention.of(work.fp32_operands);
  return work.backward
             ? 4 + t.backward_softmax.kernels[style] + t.backward_elementwise.kernels[style]
             : 2 + t.forward_softmax.kernels[style] + t.forward_elementwise.kernels[style];
}

void CostModel::add_kernel(const Kernel& kernel, const KernelModel& kernels, PassCost& cost,
                           Bytes& cold) const {
  if (const auto* gemm = std::get_if<GemmWork>(&kernel)) {
    const Seconds t = kernels.gemm(*gemm);
    cost.compute += t;
    cost.matmul += t;
    if (gemm->operators > 0)
      cost.plain_launches += static_cast<int>(gemm->batch) * gemm->operators;
    else if (gemm->looped)
      cost.looped_launches += static_cast<int>(gemm->batch);
    else if (!gemm->joined)
      ++cost.launches;
    if (gemm->grouped && gemm->operators == 0) {
      const auto products = static_cast<int>(gemm->batch);
      const bool fused = w_.framework.layers.kernels == KernelStyle::fused;
      const int orderings = fused ? orderings_of_scales(*gemm) : 0;
      (bytes_per_element(gemm->dtype) < 2.0 ? cost.narrow_products : cost.grouped_products) +=
          products;
      cost.looped_launches += products + orderings;
      if (orderings > 0) cost.compute += kernels.memory_bound(Bytes(0), orderings);
    }
  } else if (const auto* attention = std::get_if<AttentionWork>(&kernel)) {
    const Seconds t = kernels.attention(*attention);
    cost.compute += t;
    cost.attention += t;
    cost.launches += attention->pieces * attention_launches(*attention);
  } else if (const auto* memory = std::get_if<MemoryWork>(&kernel)) {
    cost.compute += kernels.memory_bound(*memory, std::exchange(cold, Bytes(0)));
    (memory->looped  ? cost.looped_launches
     : memory->plain ? cost.plain_launches
                     : cost.launches) += memory->launches;
  } else if (const auto* comm = std::get_if<CommWork>(&kernel)) {
    const auto axis = static_cast<std::size_t>(comm->axis);
    const GroupKind group = comm->of_experts ? GroupKind::expert_tensor : group_of(comm->axis);
    CollectiveUse call = use(work_of(comm->axis), comm->collective, sent(*comm), group);
    call.beside = comm->beside_compute || (comm->axis == CommAxis::expert && w_.overlaps_experts);
    (call.beside ? cost.beside : cost.exposed)[axis] += call.each.time;
    if (call.shape.ranks == 1) return;
    cost.collectives += comm->messages;
    if (cost.uses != nullptr) add_use(*cost.uses, call);
  }
}

// Where a token goes once to each node (or, in one node, to each rank) that holds experts of its
// own, and not once for each of them. HybridEP's rows have the fp32 scores of the experts of all
// ranks of a node beside them (deepseek-ai/DeepEP @94a9f8f csrc/hybrid_ep/backend/
// hybrid_ep_backend.cuh, dispatch_kernel and combine_kernel: NUM_OF_EXPERTS_PER_RANK *
// NUM_OF_RANKS_PER_NODE of remote_expert_output_prob).
Bytes CostModel::sent(const CommWork& comm) const {
  if (comm.collective != Collective::all_to_all || comm.axis != CommAxis::expert ||
      !w_.framework.experts.dispatches_once || !w_.model.moe)
    return comm.size;
  const GroupShape& shape = layout_.shape(GroupKind::expert);
  const double places = shape.nodes > 1 ? shape.nodes : shape.ranks;
  const double scores = 4.0 * static_cast<double>(comm.scored_rows) * w_.model.moe->experts /
                        std::max(1, shape.nodes);
  return ceil_bytes((static_cast<double>(comm.size.value) + scores) *
                    visited_places(*w_.model.moe, places) / w_.model.moe->top_k);
}

PassTime CostModel::settle(const PassCost& cost, int multiprocessors) const {
  PassTime t;
  t.compute = cost.compute;
  t.exposed = cost.exposed;
  t.waited = cost.waited;
  t.lead = cost.order.lead();
  const double share = static_cast<double>(plan_.tensor - 1) / static_cast<double>(plan_.tensor);
  const auto hide = [&](CommAxis axis, Seconds behind) {
    const auto i = static_cast<std::size_t>(axis);
    const Seconds left = longest(Seconds(0), cost.beside[i] - behind);
    t.exposed[i] += left;
    const Seconds hidden = cost.beside[i] - left;
    if (hidden > Seconds(0))
      t.compute += multiprocessors_taken(group_of(axis), multiprocessors) * hidden;
  };
  // The keys of the last rank in the ring are there when their kernel starts.
  const double but_last =
      static_cast<double>(plan_.context - 1) / static_cast<double>(plan_.context);
  hide(CommAxis::context, but_last * cost.attention);
  hide(CommAxis::tensor, share * cost.matmul);
  hide(CommAxis::expert, cost.compute);
  return t;
}

LayerTime CostModel::layer_time(const LayerDefinition& d, const KernelModel& kernels,
                                std::vector<CollectiveUse>* uses) const {
  PassCost forward, again, input, weight;
  forward.uses = again.uses = input.uses = weight.uses = uses;
  const Seconds host = host_per_kernel(kernels);
  const Seconds plain = std::min(host, kernels.host_per_kernel(KernelStyle::eager));
  const auto issue = [&](const PassCost& c) {
    if (w_.step_is_graph) return Seconds(0);
    const bool streams =
        w_.framework.layers.kernels == KernelStyle::fused;  // of Transformer Engine
    const int streamed = streams ? c.grouped_products + c.narrow_products : 0;
    return static_cast<double>(c.launches) * host + static_cast<double>(c.plain_launches) * plain +
           kernels.host_slowdown() *
               (c.replays +
                static_cast<double>(c.looped_launches) * profile_.host.per_looped_launch +
                static_cast<double>(c.grouped_products) * profile_.host.per_grouped_product +
                static_cast<double>(c.narrow_products) * profile_.host.per_narrow_product +
                static_cast<double>(streamed) * profile_.host.per_streamed_product +
                static_cast<double>(c.collectives) * profile_.host.per_collective);
  };
  const auto issued_work = [&](const PassCost& c) {
    return IssuedWork{c.compute, c.exposed, issue(c), c.order.lead()};
  };
  const CapturedParts captured(d.graph, w_, plan_);
  const auto replay = [&](const CapturedParts::Copies& copies, Seconds each, PassCost& to) {
    const Seconds issued = issue(to);
    const Seconds copied = kernels.memory_bound(copies.moved, copies.launches);
    to.replays += each;
    to.looped_launches += copies.launches;
    to.compute += copied;
    to.order.add(1 + copies.launches, issue(to) - issued, copied);
  };
  const auto add = [&](std::size_t op, const std::vector<Kernel>& list, PassCost& to,
                       Bytes cold = Bytes(0)) {
    for (const Kernel& k : list)
      if (const auto* wait = std::get_if<ReadBack>(&k)) {
        to.read_back(*wait, issued_work(to));
      } else {
        const LaunchCounts before = to;
        const int launches = to.all_launches();
        const Seconds issued = issue(to), busy = to.device();
        add_kernel(k, kernels, to, cold);
        if (captured.holds(op, k)) static_cast<LaunchCounts&>(to) = before;
        to.run(to.all_launches() - launches, issue(to) - issued, to.device() - busy);
      }
  };
  const std::vector<ColdBytes> cold = cold_bytes(d.graph, kernels);
  // Passes come one after the other, wherever they come in a step: each has waits of its own.
  for (int pass = 0; pass < w_.forward_passes(); ++pass)
    for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
      if (const CapturedParts::Replay* graph = captured.begins(i))
        replay(graph->forward, profile_.host.per_graph_forward, forward);
      add(i, d.graph.operators[i].run_by(pass), forward, cold[i].forward);
    }
  for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
    const Operator& op = d.graph.operators[i];
    if (const CapturedParts::Replay* graph = captured.begins(i))
      replay(graph->backward, profile_.host.per_graph_backward, input);
    add(i, op.backward, input, cold[i].backward);
    add(i, op.backward_weight, weight);
    if (d.redone[i] && d.script.runs_again[i]) add(i, op.forward, again, cold[i].forward);
  }
  for (PassCost* pass : {&forward, &again}) pass->end_turns(issued_work(*pass));
  // What runs beside the weight gradient hides behind it, whichever half of backward issued it.
  PassCost beside = input;
  beside.matmul += weight.matmul;
  constexpr auto tensor = static_cast<std::size_t>(CommAxis::tensor);
  beside.beside[tensor] += std::exchange(weight.beside[tensor], Seconds(0));

  const int sms = kernels.multiprocessors();
  LayerTime t{settle(forward, sms), settle(again, sms), settle(beside, sms), settle(weight, sms)};
  t.forward.host = issue(forward);
  t.recompute.host = issue(again);
  t.backward_input.host = issue(input);
  t.backward_weight.host = issue(weight);
  add_hooks(d, kernels, again.launches > 0, t);
  if (w_.blocking_launches) wait_for_launches(t);
  return t;
}

// What the CPU does around a layer's operators, beside issuing them.
void CostModel::add_hooks(const LayerDefinition& d, const KernelModel& kernels, bool runs_again,
                          LayerTime& t) const {
  const ShardingHooks hooks = sharding_hooks(d, kernels);
  const DispatchCosts dtensors = tensor_dispatch(d, kernels);
  const Seconds modules = hooks.modules + dtensors.forward;
  t.forward.host += w_.forward_passes() * (modules + hooks.units);
  const bool gathers = w_.framework.sharding.checkpoints_gather_again;
  const Seconds again = modules + (gathers ? hooks.units : Seconds(0));
  t.recompute.host += (runs_again ? again : Seconds(0)) + checkpoint_hooks(d, kernels);
  t.backward_input.host += hooks.modules + hooks.units + dtensors.backward;
  t.backward_weight.host += reduction_hooks(d, kernels);
}

// A bucket takes what follows it in backward until one more gradient would be too much; a gradient
// that is larger has one to itself (DeepSpeed runtime/zero/stage3.py, __add_grad_to_ipg_bucket).
Seconds CostModel::reduction_hooks(const LayerDefinition& d, const KernelModel& kernels) const {
  const Framework& f = w_.framework;
  if (plan_.zero_stage < 3 || f.host.us_per_reduction == 0) return Seconds(0);
  const TrainableElements t = trainable_elements(w_, d);
  const double buckets = static_cast<double>(t.dense + t.expert) *
                         bytes_per_element(f.gradients.reduce_dtype) /
                         static_cast<double>(f.gradient_bucket_at(plan_.zero_stage).value);
  return std::min<double>(buckets, d.graph.parameters.modules) * kernels.host_slowdown() *
         Seconds(f.host.us_per_reduction * 1e-6);
}

// At stage 1 gradients are taken up with the last microbatch only (DeepSpeed
// runtime/zero/stage_1_and_2.py, reduce_ready_partitions_and_remove_grads). Where they add up in a
// buffer that stays, Python is called for every weight in each pass, whatever the stage, but not in
// a graph of all passes (Megatron-LM @d98e8a64dd megatron/core/distributed/
// distributed_data_parallel.py, _make_backward_post_hook).
Seconds CostModel::gradient_hooks(const LayerDefinition& d, const KernelModel& kernels) const {
  const Framework& f = w_.framework;
  if (f.gradients.life == GradientLife::persistent && f.host.us_per_gradient > 0)
    return w_.step_is_graph || shards_weights(f, plan_)
               ? Seconds(0)
               : weight_tensors(d.graph).all() * kernels.host_slowdown() *
                     Seconds(f.host.us_per_gradient * 1e-6);
  if (plan_.zero_stage < 1 || shards_weights(f, plan_)) return Seconds(0);
  const double times = reduces_every_microbatch() ? 1.0 : 1.0 / plan_.microbatches;
  return times * trained_tensors(d.graph) * kernels.host_slowdown() *
         Seconds((plan_.zero_stage == 2 ? f.host.us_per_gradient_stage_2 : f.host.us_per_gradient) *
                 1e-6);
}

// Blocks are units, and what is wrapped in them. What lies before and behind them is one more, the
// root, which is left out: the CPU would not be ahead of the embedding's kernels then, and every
// step be played with its lane.
CostModel::ShardingHooks CostModel::sharding_hooks(const LayerDefinition& d,
                                                   const KernelModel& kernels) const {
  const Framework& f = w_.framework;
  if (!shards_weights(f, plan_)) return {};
  const int units = at_an_end(d.role) ? 0 : d.blocks * f.sharding.parameters.units_per_block;
  const double slowdown = kernels.host_slowdown();
  return {slowdown * Seconds(d.graph.parameters.modules * f.host.us_per_sharded_module * 1e-6),
          slowdown * Seconds(units * f.host.us_per_sharded_unit * 1e-6)};
}

// Where weights are DTensors, every operator of theirs goes through Python that finds how its
// result is laid out, and inputs and results are made DTensors and taken apart. A compiler does so
// once. Norms that read the whole stream are no part of a plan and stay as they are: a plan names
// the linears (mlexpos/adana @3eef26fcce src/models/enoki.py:245-250).
CostModel::DispatchCosts CostModel::tensor_dispatch(const LayerDefinition& d,
                                                    const KernelModel& kernels) const {
  const Framework& f = w_.framework;
  if (!f.parallel.dtensor || plan_.tensor == 1 || f.layers.kernels == KernelStyle::compiled)
    return {};
  const Seconds each = kernels.host_per_kernel(KernelStyle::eager);
  const auto is_norm = [](const Operator& op) {
    return op.kind == OperatorKind::pointwise && op.weight_gradient_elements > 0;
  };
  const std::vector<Operator>& all = d.graph.operators;
  const auto norms = std::count_if(all.begin(), all.end(), is_norm);
  const double modules =
      d.graph.parameters.modules - (plan_.sequence_parallel ? 0.0 : static_cast<double>(norms));
  return {modules * profile_.host.dtensor_forward * each,
          modules * profile_.host.dtensor_backward * each};
}

// A checkpoint that is not reentrant calls Python when a tensor is saved, saved again, and read
// (torch/utils/checkpoint.py, _checkpoint_hook): the operands of an operator, its weight, and what
// it keeps. One that a compiler takes in is part of its graph.
Seconds CostModel::checkpoint_hooks(const LayerDefinition& d, const KernelModel& kernels) const {
  if (w_.framework.layers.kernels == KernelStyle::compiled || w_.step_is_graph) return Seconds(0);
  int saved = 0;
  bool again = false;
  for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
    if (!d.redone[i]) continue;
    again = again || d.script.runs_again[i];
    const Operator& op = d.graph.operators[i];
    const bool weighs = op.kind == OperatorKind::matmul || op.weight_gradient_elements > 0;
    saved += static_cast<int>(op.saves.size()) + (weighs ? 1 : 0);
  }
  if (!again) return Seconds(0);
  const HostCalibration& host = profile_.host;
  const double operators = w_.framework.recompute.reentrant
                               ? host.reentrant_checkpoint
                               : host.checkpoint + host.per_checkpointed_tensor * saved;
  return operators *
         std::min(host_per_kernel(kernels), kernels.host_per_kernel(KernelStyle::eager));
}

Seconds CostModel::host_per_kernel(const KernelModel& kernels) const {
  return kernels.host_per_kernel(w_.framework.layers.kernels,
                                 Seconds(w_.framework.host.us_per_kernel * 1e-6));
}

}  // namespace shardwise
