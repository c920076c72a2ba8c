#include "simulator/graphs/layer_script.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

std::size_t at(TensorIndex t) { return static_cast<std::size_t>(t); }

// Builds the three event lists of one layer.
class ScriptWriter {
 public:
  ScriptWriter(const LayerGraph& graph, const ScriptOptions& options)
      : graph_(graph), again_(options.runs_again) {
    const std::size_t n = graph.tensors.size();
    producer_.assign(n, no_operator);
    saves_.assign(n, 0);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      for (TensorIndex t : graph.operators[i].outputs) producer_[at(t)] = i;
      for (TensorIndex t : graph.operators[i].saves) ++saves_[at(t)];
    }
    mark_used();
    saved_outside_.assign(n, false);
    if (options.keeps_results)
      for (std::size_t i = 0; i < graph.operators.size(); ++i)
        for (TensorIndex t : graph.operators[i].saves)
          if (!again_[i] && made_by_attention(t)) saved_outside_[at(t)] = true;
    const std::vector<bool> asked = again_;
    drop_useless_reruns(options);
    choose_kept(options.caches_results ? asked : std::vector<bool>{});
    script_.slots = static_cast<std::int32_t>(n);
    script_.input_slot = graph.input;
    script_.output_slot = graph.output;
  }

  LayerScript write() {
    write_forward();
    write_recompute();
    write_backward();
    script_.runs_again = again_;
    return std::move(script_);
  }

 private:
  static constexpr std::size_t no_operator = static_cast<std::size_t>(-1);

  bool made_by_attention(TensorIndex t) const {
    return producer_[at(t)] != no_operator &&
           graph_.operators[producer_[at(t)]].kind == OperatorKind::attention;
  }

  bool made_again(TensorIndex t) const {
    return producer_[at(t)] != no_operator && again_[producer_[at(t)]] && !saved_outside_[at(t)];
  }

  // Walks backwards: an operator runs again only if it makes something that backward, or another
  // operator that runs again, reads. A checkpoint over a whole block runs to its end, or until
  // the last saved tensor is back.
  void drop_useless_reruns(const ScriptOptions& options) {
    std::vector<bool> needed(graph_.tensors.size(), false);
    for (std::size_t t = 0; t < needed.size(); ++t) needed[t] = saves_[t] > 0;
    std::size_t last_useful = 0;
    for (std::size_t i = graph_.operators.size(); i-- > 0;) {
      if (!again_[i]) continue;
      const Operator& op = graph_.operators[i];
      const bool useful = std::any_of(op.outputs.begin(), op.outputs.end(),
                                      [&](TensorIndex t) { return needed[at(t)]; });
      if (useful) last_useful = std::max(last_useful, i);
      if (!useful && !options.whole_block) {
        again_[i] = false;
        continue;
      }
      for (TensorIndex t : op.inputs) needed[at(t)] = needed[at(t)] || useful;
    }
    if (options.whole_block && options.stops_early)
      for (std::size_t i = last_useful + 1; i < again_.size(); ++i) again_[i] = false;
  }

  // Kept from forward to backward: saved tensors that are not made again, and what the operators
  // that run again start from; with `cached`, what the operators that it leaves out have made too.
  void choose_kept(const std::vector<bool>& cached) {
    kept_.assign(graph_.tensors.size(), false);
    for (std::size_t t = 0; t < kept_.size(); ++t)
      kept_[t] = saves_[t] > 0 && !made_again(static_cast<TensorIndex>(t));
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (!again_[i]) continue;
      for (TensorIndex t : graph_.operators[i].inputs)
        if (!made_again(t)) kept_[at(t)] = true;
    }
    for (std::size_t i = 0; i < cached.size(); ++i)
      if (!cached[i] && graph_.operators[i].kind != OperatorKind::pointwise)
        for (TensorIndex t : graph_.operators[i].outputs) kept_[at(t)] = t != graph_.output;
    for (std::size_t t = 0; t < kept_.size(); ++t) {
      if (!kept_[t]) continue;
      script_.saved_bytes += graph_.tensors[t].bytes;
      if (graph_.tensors[t].statistic) script_.saved_statistics_bytes += graph_.tensors[t].bytes;
    }
  }

  void allocate(std::vector<MemoryEvent>& to, std::int32_t slot, std::int64_t bytes,
                MemoryCategory category) const {
    to.push_back({EventKind::allocate, category, slot, bytes});
  }
  void release(std::vector<MemoryEvent>& to, std::int32_t slot,
               EventKind kind = EventKind::release) const {
    to.push_back({kind, MemoryCategory::temporaries, slot, 0});
  }

  static bool holds(const std::vector<Kernel>& pass, Collective which) {
    return std::any_of(pass.begin(), pass.end(), [which](const Kernel& k) {
      const auto* comm = std::get_if<CommWork>(&k);
      return comm != nullptr && comm->collective == which;
    });
  }
  static bool sums(const std::vector<Kernel>& pass) { return holds(pass, Collective::all_reduce); }

  static bool exchanges(const Operator& op, const std::vector<Kernel>& pass) {
    return op.kind == OperatorKind::communication &&
           (holds(pass, Collective::reduce_scatter) || holds(pass, Collective::all_gather) ||
            holds(pass, Collective::all_to_all));
  }

  // What a collective has summed in place, or gathered beside its result, it has used there too,
  // and where it is an operator of its own it marks what it reads and what it writes (PyTorch
  // v2.1.0 torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, collective(), _allgather_base,
  // _reduce_scatter_base, alltoall_base). Where marks count is said by
  // FrameworkProcess::records_streams.
  void mark_used() {
    used_.assign(graph_.tensors.size(), false);
    for (const Operator& op : graph_.operators) {
      for (TensorIndex t : op.outputs)
        if (graph_.tensors[at(t)].gathered || sums(op.forward)) used_[at(t)] = true;
      if (!exchanges(op, op.forward)) continue;
      for (const std::vector<TensorIndex>* list : {&op.inputs, &op.outputs})
        for (TensorIndex t : *list) used_[at(t)] = true;
    }
  }

  // Of gradients, by slot.
  void mark_gradient(std::int32_t slot) {
    if (slot == no_slot) return;
    if (used_.size() <= static_cast<std::size_t>(slot))
      used_.resize(static_cast<std::size_t>(slot) + 1, false);
    used_[static_cast<std::size_t>(slot)] = true;
  }
  EventKind freed(std::int32_t slot) const {
    const auto i = static_cast<std::size_t>(slot);
    return i < used_.size() && used_[i] ? EventKind::release_read : EventKind::release;
  }

  void temporary(std::vector<MemoryEvent>& to, Bytes bytes, MemoryCategory category,
                 int tensors = 1) {
    if (bytes.value <= 0) return;
    const std::int32_t first = script_.slots;
    for (; script_.slots < first + tensors; ++script_.slots)
      allocate(to, script_.slots, bytes.value / tensors, category);
    for (std::int32_t slot = first; slot < script_.slots; ++slot) release(to, slot);
  }

  // Last operator (of those that run) that reads each tensor; its producer where none does.
  std::vector<std::size_t> last_readers(bool only_again) const {
    std::vector<std::size_t> last(graph_.tensors.size(), no_operator);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (only_again && !again_[i]) continue;
      for (TensorIndex t : graph_.operators[i].outputs) last[at(t)] = i;
      for (TensorIndex t : graph_.operators[i].inputs) last[at(t)] = i;
    }
    return last;
  }

  // The tensors that each operator is the last to use, rising.
  struct LastUses {
    std::vector<std::size_t> first;  // of `tensors`, by operator
    std::vector<TensorIndex> tensors;

    std::span<const TensorIndex> of(std::size_t i) const {
      return std::span(tensors).subspan(first[i], first[i + 1] - first[i]);
    }
  };
  LastUses last_uses(bool only_again) const {
    const std::vector<std::size_t> last = last_readers(only_again);
    LastUses uses;
    uses.first.assign(graph_.operators.size() + 1, 0);
    for (const std::size_t i : last)
      if (i != no_operator) ++uses.first[i + 1];
    std::partial_sum(uses.first.begin(), uses.first.end(), uses.first.begin());
    uses.tensors.resize(uses.first.back());
    std::vector<std::size_t> next = uses.first;
    for (std::size_t t = 0; t < last.size(); ++t)
      if (last[t] != no_operator) uses.tensors[next[last[t]]++] = static_cast<TensorIndex>(t);
    return uses;
  }

  MemoryCategory forward_category(TensorIndex t) const {
    const MemoryCategory c = graph_.tensors[at(t)].category;
    if (kept_[at(t)] && c == MemoryCategory::temporaries) return MemoryCategory::activations;
    if (!kept_[at(t)] && c == MemoryCategory::activations) return MemoryCategory::temporaries;
    return c;
  }

  void write_forward() {
    const LastUses last = last_uses(false);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      const Operator& op = graph_.operators[i];
      if (op.ends_output)
        script_.forward.push_back({EventKind::end_output, MemoryCategory::temporaries, 0, 0});
      for (TensorIndex t : op.outputs)
        allocate(script_.forward, t, graph_.tensors[at(t)].bytes, forward_category(t));
      temporary(script_.forward, op.forward_temporary, op.temporary_category,
                op.forward_temporaries);
      for (const TensorIndex t : last.of(i)) {
        if (kept_[at(t)] || t == graph_.output) continue;
        release(script_.forward, t, graph_.tensors[at(t)].outlives ? EventKind::hold : freed(t));
      }
    }
  }

  void write_recompute() {
    const LastUses last = last_uses(true);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (!again_[i]) continue;
      const Operator& op = graph_.operators[i];
      for (TensorIndex t : op.outputs) {
        const Tensor& tensor = graph_.tensors[at(t)];
        if (saved_outside_[at(t)]) {  // it is still there: the second one goes at once
          temporary(script_.recompute, Bytes(tensor.bytes), MemoryCategory::recompute);
          continue;
        }
        const bool plain = tensor.category == MemoryCategory::activations ||
                           tensor.category == MemoryCategory::temporaries;
        allocate(script_.recompute, t, tensor.bytes,
                 plain ? MemoryCategory::recompute : tensor.category);
      }
      temporary(script_.recompute, op.forward_temporary, op.temporary_category,
                op.forward_temporaries);
      for (const TensorIndex t : last.of(i))
        if (saves_[at(t)] == 0 && made_again(t)) release(script_.recompute, t, freed(t));
    }
    // What only the re-run needed, not backward itself.
    for (std::size_t t = 0; t < kept_.size(); ++t)
      if (kept_[t] && saves_[t] == 0) release(script_.recompute, static_cast<TensorIndex>(t));
  }

  std::int32_t new_gradient(std::int64_t bytes, MemoryCategory category) {
    const std::int32_t slot = script_.slots++;
    allocate(script_.backward, slot, bytes, category);
    return slot;
  }

  void hold(std::int32_t slot) {
    if (references_.size() <= static_cast<std::size_t>(slot))
      references_.resize(static_cast<std::size_t>(slot) + 1, 0);
    ++references_[static_cast<std::size_t>(slot)];
  }
  void let_go(std::int32_t slot) { let_go(slot, freed(slot)); }
  void let_go(std::int32_t slot, EventKind kind) {
    if (--references_[static_cast<std::size_t>(slot)] == 0) release(script_.backward, slot, kind);
  }

  MemoryCategory gradient_category(TensorIndex t) const {
    return graph_.tensors[at(t)].category == MemoryCategory::logits ? MemoryCategory::logits
                                                                    : MemoryCategory::temporaries;
  }

  // What a gradient is written over: its own tensor, if that is saved.
  static std::int32_t overwritten(const Operator& op, TensorIndex input) {
    const bool own = std::find(op.saves.begin(), op.saves.end(), input) != op.saves.end();
    return own ? input : op.saves.front();
  }

  // The gradient of one input; two that meet are summed into the newer buffer.
  void contribute(const Operator& op, TensorIndex input, std::int32_t passed) {
    const Tensor& tensor = graph_.tensors[at(input)];
    if (tensor.gradient_bytes == 0) return;
    std::int32_t& current = gradient_[at(input)];
    std::int32_t fresh = passed;
    if (op.in_place_gradient) fresh = overwritten(op, input);
    const bool aliased = fresh != no_slot;
    if (!aliased || (current != no_slot && op.passes_gradient))
      fresh = new_gradient(tensor.gradient_bytes, gradient_category(input));
    hold(fresh);
    if (current != no_slot) let_go(current);
    current = fresh;
  }

  void write_operator_backward(const Operator& op) {
    std::int32_t arriving = no_slot;
    for (TensorIndex t : op.outputs)
      if (gradient_[at(t)] != no_slot) arriving = gradient_[at(t)];
    temporary(script_.backward, op.backward_temporary, op.temporary_category,
              op.backward_temporaries);
    const bool marks = exchanges(op, op.backward);
    if (marks || sums(op.backward)) mark_gradient(arriving);
    for (TensorIndex t : op.inputs) {
      contribute(op, t, op.passes_gradient ? arriving : no_slot);
      if (marks) mark_gradient(gradient_[at(t)]);
    }
    if (op.weight_gradient_elements > 0)
      script_.backward.push_back(
          {op.stored_gradient ? EventKind::stored_gradient : EventKind::weight_gradient,
           MemoryCategory::gradients, 0, op.weight_gradient_elements});
    for (TensorIndex t : op.outputs)
      if (gradient_[at(t)] != no_slot) let_go(gradient_[at(t)]);
    for (TensorIndex t : op.saves)
      let_go(t, graph_.tensors[at(t)].outlives && !made_again(t) ? EventKind::release_later
                                                                 : freed(t));
  }

  void write_backward() {
    gradient_.assign(graph_.tensors.size(), no_slot);
    for (std::size_t t = 0; t < saves_.size(); ++t)
      for (int i = 0; i < saves_[t]; ++i) hold(static_cast<std::int32_t>(t));
    script_.output_gradient_slot = script_.slots++;
    hold(script_.output_gradient_slot);
    gradient_[at(graph_.output)] = script_.output_gradient_slot;
    for (std::size_t i = graph_.operators.size(); i-- > 0;)
      write_operator_backward(graph_.operators[i]);
    script_.input_gradient_slot = gradient_[at(graph_.input)];
    if (script_.input_gradient_slot == no_slot) script_.input_gradient_slot = script_.slots++;
  }

  static constexpr std::int32_t no_slot = -1;

  const LayerGraph& graph_;
  std::vector<bool> again_;
  std::vector<std::size_t> producer_;
  std::vector<int> saves_;  // by how many operators
  std::vector<bool> saved_outside_;
  std::vector<bool> kept_;
  std::vector<bool> used_;  // by slot: a collective marks it
  std::vector<std::int32_t> gradient_;
  std::vector<int> references_;
  LayerScript script_;
};

}  // namespace

LayerScript layer_script(const LayerGraph& graph, const ScriptOptions& options) {
  require(options.runs_again.size() == graph.operators.size(), "one flag per operator");
  return ScriptWriter(graph, options).write();
}

LayerGraph joined(LayerGraph first, const LayerGraph& second) {
  LayerGraph both = std::move(first);
  const auto offset = static_cast<TensorIndex>(both.tensors.size());
  const TensorIndex handed_over = both.output;
  both.tensors.insert(both.tensors.end(), second.tensors.begin(), second.tensors.end());
  const auto moved = [&](TensorIndex t) { return t == second.input ? handed_over : t + offset; };
  for (Operator op : second.operators) {
    for (std::vector<TensorIndex>* list : {&op.inputs, &op.outputs, &op.saves})
      for (TensorIndex& t : *list) t = moved(t);
    both.operators.push_back(std::move(op));
  }
  both.output = moved(second.output);
  both.parameters.linear += second.parameters.linear;
  both.parameters.other += second.parameters.other;
  both.parameters.table += second.parameters.table;
  both.parameters.expert += second.parameters.expert;
  both.parameters.adapter += second.parameters.adapter;
  both.parameters.expert_adapter += second.parameters.expert_adapter;
  both.parameters.cast += second.parameters.cast;
  both.parameters.modules += second.parameters.modules;
  both.parameters.fetches += second.parameters.fetches;
  both.parameters.linear_sides += second.parameters.linear_sides;
  both.parameters.expert_sides += second.parameters.expert_sides;
  both.parameters.largest_matrix =
      std::max(both.parameters.largest_matrix, second.parameters.largest_matrix);
  return both;
}

}  // namespace shardwise
