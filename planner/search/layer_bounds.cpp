#include "planner/search/layer_bounds.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "catalog/require.hpp"
#include "simulator/graphs/graph_builder.hpp"
#include "simulator/graphs/layer_graph.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {
namespace {

Seconds less(Seconds a, Seconds b) { return a < b ? a : b; }

// How far what is held rises at the most while a layer goes back, above what it has saved. In its
// slots lie what forward left there, its input, and the gradient that arrives.
Bytes backward_rise(const LayerDefinition& d) {
  const LayerScript& script = d.script;
  std::vector<std::int64_t> held(static_cast<std::size_t>(script.slots));
  const auto slot = [&](std::int32_t i) -> std::int64_t& {
    return held[static_cast<std::size_t>(i)];
  };
  const auto tensor = [&](int i) { return d.graph.tensors[static_cast<std::size_t>(i)]; };
  slot(script.input_slot) = tensor(d.graph.input).bytes;
  for (const MemoryEvent& e : script.forward)
    if (e.kind == EventKind::allocate) slot(e.slot) = e.bytes;
  const std::int64_t arriving = tensor(d.graph.output).gradient_bytes;
  std::int64_t now = arriving, most = now;
  const auto pass = [&](const std::vector<MemoryEvent>& events) {
    for (const MemoryEvent& e : events) {
      if (e.kind == EventKind::allocate) {
        slot(e.slot) = e.bytes;
        now += e.bytes;
        most = std::max(most, now);
      } else if (e.kind != EventKind::weight_gradient && e.kind != EventKind::stored_gradient &&
                 e.kind != EventKind::end_output) {
        now -= slot(e.slot);
      }
    }
  };
  pass(script.recompute);
  slot(script.output_gradient_slot) = arriving;
  pass(script.backward);
  return Bytes(most);
}

// From forward to backward. An output is the next layer's to hold, whoever reads it then.
Bytes saved_by(const LayerDefinition& d) {
  const TensorIndex output = d.graph.output;
  const auto has_output = [&](const std::vector<TensorIndex>& list) {
    return std::find(list.begin(), list.end(), output) != list.end();
  };
  bool kept = false, made_again = false;
  for (std::size_t i = 0; i < d.graph.operators.size(); ++i) {
    kept = kept || has_output(d.graph.operators[i].saves);
    made_again = made_again || (d.script.runs_again[i] && has_output(d.graph.operators[i].outputs));
  }
  const std::int64_t bytes = d.graph.tensors[static_cast<std::size_t>(output)].bytes;
  return Bytes(d.script.saved_bytes - (kept && !made_again ? bytes : 0));
}

// Base weights that are trained but have no gradient (graphs/token_indexer.cpp).
std::int64_t without_gradient(const LayerDefinition& d) {
  if (!d.trainable) return 0;
  std::int64_t graded = 0;
  for (const Operator& op : d.graph.operators) graded += op.weight_gradient_elements;
  return std::max<std::int64_t>(0, d.graph.parameters.base() - graded);
}

// What the host is sure to spend on one microbatch, forward and back. Where it is ahead in every
// layer its lane is left out of a step, which is longer all the same.
Seconds layer_issue_time(const LayerTime& t) {
  const Seconds sum = t.forward.host + t.backward_input.host + t.backward_weight.host;
  return t.recompute.device() > Seconds(0) ? sum + t.recompute.host : sum;
}

// These bounds are found once for plans that shard weights and plans that do not, whichever asks
// first: without the hooks of sharding, not with them and less them again, which rounds.
ParallelPlan with_whole_weights(ParallelPlan plan) {
  plan.zero_stage = 0;
  return plan;
}

LayerBound least_of(LayerBound a, const LayerBound& b) {
  a.forward = less(a.forward, b.forward);
  a.again = less(a.again, b.again);
  a.input = less(a.input, b.input);
  a.weight = less(a.weight, b.weight);
  a.host = less(a.host, b.host);
  a.saved = std::min(a.saved, b.saved);
  a.rise = std::min(a.rise, b.rise);
  return a;
}

// One kind of layer on the fastest GPU of the cluster, pass by pass. `kernels`: of each kind.
LayerBound bound_of(const LayerDefinition& d, const CostModel& cost,
                    const std::vector<KernelModel>& kernels) {
  std::optional<LayerBound> least;
  for (const KernelModel& on_one : kernels) {
    const LayerTime t = cost.layer_time(d, on_one);
    LayerBound b{t.forward.device(),         t.recompute.device(), t.backward_input.device(),
                 t.backward_weight.device(), Seconds(0),           saved_by(d),
                 backward_rise(d),           without_gradient(d)};
    // Unlike GPUs may run unlike numbers of microbatches.
    if (kernels.size() == 1) b.host = layer_issue_time(t);
    least = least ? least_of(*least, b) : b;
  }
  return *least;
}

// A tied head on the embedding's stage adds its gradient to that one's; on another stage it does
// not.
void leave_out_tied_sum(const LayerDefinition& head, const Workload& w, const ParallelPlan& plan,
                        const CostModel& cost, const std::vector<KernelModel>& kernels,
                        LayerBound& bound) {
  LayerDefinition apart = head;
  apart.graph = head_graph(w, plan, false);
  const LayerBound b = bound_of(apart, cost, kernels);
  bound.input = less(bound.input, b.input);
  bound.weight = less(bound.weight, b.weight);
  bound.host = less(bound.host, b.host);
}

void add_layer(RunBound& to, const LayerBound& l) {
  to.forward += l.forward;
  to.backward += l.again + l.input + l.weight;
  to.saved += l.saved;
  to.host += l.host;
}

std::vector<RunBound> sums(const std::vector<LayerBound>& layers) {
  std::vector<RunBound> list(1);
  list.reserve(layers.size());
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    const LayerBound& l = layers[i];
    list.push_back(list.back());
    add_layer(list.back(), l);
  }
  return list;
}

RunBound difference(const std::vector<RunBound>& of, int first, int count) {
  const RunBound& a = of[static_cast<std::size_t>(first)];
  const RunBound& b = of[static_cast<std::size_t>(first + count)];
  return {b.forward - a.forward, b.backward - a.backward, b.saved - a.saved, Bytes(0),
          b.host - a.host};
}

// Most layers are equal, and lists of them sorted.
template <class Value>
void sort_rising(std::vector<Value>& list) {
  if (!std::is_sorted(list.begin(), list.end())) std::sort(list.begin(), list.end());
}

// Sums of the least, each number on its own.
std::vector<RunBound> least_first(const std::vector<RunBound>& sums,
                                  const std::vector<RunBound>& or_) {
  const std::size_t n = sums.size() - 1;
  std::vector<Seconds> forward(n), backward(n), host(n);
  std::vector<Bytes> saved(n);
  for (std::size_t i = 0; i < n; ++i) {
    const RunBound one = difference(sums, static_cast<int>(i), 1);
    forward[i] = one.forward;
    backward[i] = one.backward;
    host[i] = one.host;
    saved[i] = std::min(one.saved, difference(or_, static_cast<int>(i), 1).saved);
  }
  sort_rising(forward);
  sort_rising(backward);
  sort_rising(host);
  sort_rising(saved);
  std::vector<RunBound> list(1);
  list.reserve(n + 1);
  for (std::size_t i = 0; i < n; ++i)
    list.push_back({list.back().forward + forward[i], list.back().backward + backward[i],
                    list.back().saved + saved[i], Bytes(0), list.back().host + host[i]});
  return list;
}

// The place of one of them; nothing where it is none.
std::optional<std::size_t> place_of(const LayerDefinition& d,
                                    const std::deque<LayerDefinition>& all) {
  const auto here = std::find_if(all.begin(), all.end(),
                                 [&](const LayerDefinition& other) { return &other == &d; });
  if (here == all.end()) return std::nullopt;
  return static_cast<std::size_t>(here - all.begin());
}

}  // namespace

void LayersApart::add(const LayerDefinition& d, const LayerBound& bound) {
  const auto same = [&](const LayerDefinition& one) {
    return one.role == d.role && one.kind == d.kind && one.blocks == d.blocks &&
           one.checkpointed == d.checkpointed;
  };
  if (std::any_of(definitions.begin(), definitions.end(), same)) return;
  LayerDefinition& one = definitions.emplace_back();
  one.role = d.role;
  one.kind = d.kind;
  one.blocks = d.blocks;
  one.checkpointed = d.checkpointed;
  one.trainable = d.trainable;
  one.graph.parameters = d.graph.parameters;
  bounds.push_back(bound);
}

std::vector<KernelModel> training_kernels(const Workload& w, const ParallelPlan& plan,
                                          const Cluster& cluster, const Profile& profile) {
  std::vector<KernelModel> kernels;
  kernels.reserve(cluster.groups.size());
  for (const NodeGroup& g : cluster.groups)
    kernels.emplace_back(g.gpu, profile, attention_choice(w, plan));
  return kernels;
}

namespace {

// The layers of the model on one stage, in order, as a plan has them, and what each kind takes.
class LayersSeen {
 public:
  LayersSeen(const Workload& w, const ParallelPlan& plan, const std::string& policy,
             const CostModel& cost, const std::vector<KernelModel>& kernels,
             const LayersApart* known)
      : known_(known),
        partition_(partition_model(w, plan, *find_pipeline_schedule(usual_schedule),
                                   *recompute_policy(policy),
                                   known != nullptr ? &known->definitions : nullptr)) {
    for (const LayerDefinition& d : partition_.definitions) {
      if (d.role == LayerRole::vision) {  // a bound may leave it out
        made_.emplace_back();
        continue;
      }
      made_.push_back(bound_of(d, cost, kernels));
      if (d.role == LayerRole::head && w.model.tied_embeddings)
        leave_out_tied_sum(d, w, plan, cost, kernels, made_.back());
    }
  }
  LayersSeen(const LayersSeen&) = delete;
  LayersSeen& operator=(const LayersSeen&) = delete;

  const std::vector<ChunkLayer>& list() const { return partition_.stages.front().front().layers; }
  const LayerBound& bound(std::size_t layer) const {
    const LayerDefinition& d = *list()[layer].definition;
    const auto here = place_of(d, partition_.definitions);
    return here ? made_[*here] : known_->bounds[*place_of(d, known_->definitions)];
  }

 private:
  const LayersApart* known_;
  ModelPartition partition_;
  std::vector<LayerBound> made_;  // of each definition
};

}  // namespace

// Stages take data ranks away, and where one is left some layers are others (SeenSharding): they
// are bounded by the least of both. A cut of a graph only adds, so that whole ones bound them.
BoundLayers::BoundLayers(const Workload& asked, const ParallelPlan& plan, const Cluster& cluster,
                         const Profile& profile, const CollectiveModel& collectives,
                         const std::string& policy, const LentToLayers& lent) {
  std::optional<Workload> uncut;
  if (cuts_graphs(asked, plan)) {
    uncut = asked;
    uncut->framework.layers.cuts_compiled_graphs = false;
  }
  const Workload& w = uncut ? *uncut : asked;
  const LayersApart* known = uncut ? nullptr : lent.known;
  ParallelPlan alone = plan;
  alone.data = 1;
  const ParallelPlan whole = with_whole_weights(plan);
  const CostModel cost(w, whole, cluster, profile, &collectives);
  std::vector<KernelModel> own;
  if (lent.kernels == nullptr) own = training_kernels(w, plan, cluster, profile);
  const std::vector<KernelModel>& kernels = lent.kernels != nullptr ? *lent.kernels : own;
  const LayersSeen seen(w, plan, policy, cost, kernels, known);
  std::optional<LayersSeen> seen_alone;
  if (seen_sharding(w, alone) != seen_sharding(w, plan))
    seen_alone.emplace(w, alone, policy, cost, kernels, known);
  layers.reserve(seen.list().size());
  const LayerDefinition* last = nullptr;
  for (std::size_t i = 0; i < seen.list().size(); ++i) {
    const LayerDefinition& d = *seen.list()[i].definition;
    if (&d == last && d.role == LayerRole::block) {
      layers.push_back(layers.back());
      ++kinds[kind_of.back()].layers;
      kind_of.push_back(kind_of.back());
      continue;
    }
    last = &d;
    LayerBound bound = seen.bound(i);
    if (seen_alone) bound = least_of(bound, seen_alone->bound(i));
    // The head has some where it predicts further tokens.
    if (lent.apart != nullptr && d.graph.parameters.expert == 0) lent.apart->add(d, bound);
    if (d.role == LayerRole::vision) continue;
    layers.push_back(bound);
    const std::size_t kind = kind_among_blocks(d, bound.ungraded);
    ++kinds[kind].layers;
    if (d.role == LayerRole::block) kind_of.push_back(static_cast<std::uint16_t>(kind));
  }
}

// The ends are kinds of their own.
std::size_t BoundLayers::kind_among_blocks(const LayerDefinition& d, std::int64_t ungraded) {
  const auto is = [&](const LayerKind& one) {
    return one.parameters == d.graph.parameters && one.trainable == d.trainable &&
           one.ungraded == ungraded;
  };
  std::size_t kind = std::min<std::size_t>(kinds.size(), 1);
  if (d.role == LayerRole::head) kind = kinds.size();
  while (kind < kinds.size() && !is(kinds[kind])) ++kind;
  if (kind == kinds.size()) kinds.push_back({d.graph.parameters, d.trainable, 0, ungraded});
  return kind;
}

LayerBounds::LayerBounds(const Workload& w, const ParallelPlan& plan, const Cluster& cluster,
                         const Profile& profile, const CollectiveModel& collectives)
    : LayerBounds(w, plan, [&](const std::string& policy) {
        require(plan.gpus() == cluster.gpus(), "a plan without stages");
        return std::make_shared<const BoundLayers>(w, plan, cluster, profile, collectives, policy);
      }) {}

LayerBounds::LayerBounds(const Workload& w, const ParallelPlan& plan, const Under& under)
    : plan_(plan) {
  require(plan.pipeline == 1, "a plan without stages");
  const auto policy = recompute_policy(plan.recompute);
  require(static_cast<bool>(policy), "the space holds known policies only");
  joins_blocks_ = policy->blocks_per_checkpoint > 1;
  seen_ = seen_sharding(w, plan);
  by_position_ = policy->checkpointed_blocks < (1 << 30) || policy->stride > 1;
  most_ = policy->checkpointed_blocks;
  stride_ = policy->stride;
  // What is searched or joined block by block is bounded by keeping nothing and redoing nothing.
  vague_ = policy->row->searched || joins_blocks_;
  layers_ = under(vague_ ? "none" : by_position_ ? "full" : plan.recompute);
  const std::vector<LayerBound>& all = layers_->layers;
  checked_ = sums(all);
  // Which blocks are recomputed depends on where they stand: those that are not, beside the others.
  std::shared_ptr<const BoundLayers> none;
  if (by_position_) none = under("none");
  if (none) plain_ = sums(none->layers);
  embedding_ = all.front();
  head_ = all.back();
  for (std::size_t i = 1; i + 1 < all.size(); ++i)
    rises_.push_back(vague_ ? Bytes(0)
                     : none ? std::min(all[i].rise, none->layers[i].rise)
                            : all[i].rise);
  if (vague_) {
    for (RunBound& b : plain_) b.saved = Bytes(0);
    for (RunBound& b : checked_) b.saved = Bytes(0);
  }
  least_ = least_first(by_position_ ? plain_ : checked_, checked_);
  if (!by_position_) return;
  least_again_ = all[1].again;
  least_plain_ = none->layers[1].saved;
  least_checked_ = all[1].saved;
  for (std::size_t i = 1; i + 1 < all.size(); ++i) {
    least_again_ = less(least_again_, all[i].again);
    least_plain_ = std::min(least_plain_, none->layers[i].saved);
    least_checked_ = std::min(least_checked_, all[i].saved);
  }
}

const std::deque<LayerDefinition>* LayerBounds::definitions(const Workload& w,
                                                            const ParallelPlan& plan) const {
  if (seen_sharding(w, plan) != seen_ || vague_) return nullptr;
  std::call_once(defined_, [&] {
    const PipelineSchedule& any = *find_pipeline_schedule(usual_schedule);
    RecomputePolicy policy = *recompute_policy(plan_.recompute);
    if (!by_position_) {
      definitions_ = partition_model(w, plan_, any, policy).definitions;
      return;
    }
    // Each kind of block that runs again, and each that does not.
    policy.stride = 1;
    for (const int again : {0, blocks()}) {
      policy.checkpointed_blocks = again;
      ModelPartition one = partition_model(w, plan_, any, policy, &definitions_);
      std::move(one.definitions.begin(), one.definitions.end(), std::back_inserter(definitions_));
    }
  });
  return &definitions_;
}

const LayerTimes* LayerBounds::times(const Workload& w, const ParallelPlan& plan,
                                     const Cluster& cluster, const Profile& profile,
                                     const CollectiveModel& collectives) const {
  const std::deque<LayerDefinition>* layers = definitions(w, plan);
  if (layers == nullptr) return nullptr;
  Timed& timed = timed_[shards_weights(w.framework, plan) ? 1 : 0];
  std::call_once(timed.once, [&] {
    timed.times = CostModel(w, plan, cluster, profile, &collectives).times_of(*layers);
  });
  return &timed.times;
}

Bytes LayerBounds::least_saved() const {
  if (!by_position_) return whole().saved;
  return std::int64_t{blocks()} * std::min(least_plain_, least_checked_) + embedding_.saved +
         head_.saved;
}

RunBound LayerBounds::run(const Chunk& chunk) const {
  const auto [first, count, embedding, head] = chunk;
  RunBound b = difference(by_position_ ? plain_ : checked_, first, count);
  if (by_position_) {
    const int again = redone(1, count);
    b.backward += static_cast<double>(again) * least_again_;
    b.saved = std::int64_t{count - again} * least_plain_ + std::int64_t{again} * least_checked_;
  }
  if (count > 0) b.rise = rises_[static_cast<std::size_t>(first + count - 1)];
  if (embedding) add_layer(b, embedding_);
  if (head) {
    add_layer(b, head_);
    b.rise = head_.rise;
  }
  return b;
}

}  // namespace shardwise
