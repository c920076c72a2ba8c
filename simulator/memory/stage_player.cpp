#include "simulator/memory/stage_player.hpp"

#include <algorithm>
#include <utility>

#include "simulator/gathered_layers.hpp"
#include "simulator/tied_tables.hpp"

namespace shardwise {

StagePlayer::StagePlayer(const Workload& w, const ParallelPlan& plan,
                         const std::vector<ModelChunk>& chunks,
                         const ContextCalibration& calibration, std::optional<Bytes> capacity,
                         const PlayVariation& variation)
    : w_(w),
      f_(w.framework),
      plan_(plan),
      habits_(w.framework, plan),
      fuses_gradients_(habits_.persistent_gradients && f_.gradients.fusion),
      embedding_(embedding_gathers(w, plan)),
      chunks_(&chunks),
      ledger_(allocator_settings(w.framework), capacity, variation.raises_capacity),
      offload_(ledger_, plan.offloaded_share),
      lag_(ledger_, nccl_stream, variation.lead),
      most_(variation.most_allocated),
      raised_enough_(capacity ? variation.raised_enough : std::nullopt),
      kept_(w, habits_, ledger_),
      nodes_(w, plan, ledger_),
      buckets_(w, plan, ledger_),
      shard_bucket_(w, plan, ledger_),
      optimizer_(w, plan, ledger_) {
  const int grouped = w.model.moe ? f_.process.grouped_workspaces : 0;
  for (int i = 0; i < calibration.cublas_workspaces + f_.process.library_workspaces + grouped; ++i)
    fixed_.push_back(ledger_.open(calibration.cublas_workspace.value, workspace));
  for (std::size_t c = 0; c < chunks.size(); ++c) load_chunk(c);
  if (f_.loading.widens_tables && !habits_.shards_weights) widen_tables();
  load_masters();
  if (f_.loading.whole_model_on_gpu && habits_.shards_weights) {
    Holding whole = ledger_.open(total_.gathered, gathered_parameters);
    ledger_.close(whole);
  }
  for (const std::int64_t bytes : run_buffers(w_, plan_, total_)) keep(bytes, communication);
  if (!chunks.empty() && !chunks.front().layers.empty() && !chunks.back().layers.empty())
    for (const std::int64_t bytes :
         receive_buffers(w_, plan_, *chunks.front().layers.front().definition,
                         *chunks.back().layers.back().definition))
      keep(bytes, communication);
  if (copies_to_host()) keep(largest_gradient_bytes(layers_), communication);
  if (habits_.flat_gradient_shard) keep(total_.gradients, gradients);
  if (f_.update.states_at_start) optimizer_.make_states(layers_, total_);
}

void StagePlayer::play_step(const std::vector<Slot>& order) {
  std::vector<int> last(layers_.size());  // microbatch of each chunk
  for (const Slot& slot : order) {
    int& of_chunk = last[static_cast<std::size_t>(slot.chunk)];
    of_chunk = std::max(of_chunk, slot.microbatch);
  }
  lag_.begin();
  for (std::size_t at = 0; at < order.size(); ++at) {
    // The rest would say nothing.
    if (ledger_.exhausted() || given_up() || raised_enough()) return;
    const Slot& slot = order[at];
    last_microbatch_ = slot.microbatch == last[static_cast<std::size_t>(slot.chunk)];
    fetch_next_backward(order, at);
    switch (slot.pass) {
      case Pass::forward:
        forward(slot);
        nodes_.release();
        break;
      case Pass::backward:
      case Pass::backward_input:
        nodes_.release();
        backward(slot);
        break;
      case Pass::backward_weight:
        break;  // what it needs is small beside what input kept
    }
  }
  nodes_.release();
  step_optimizer();
  lag_.catch_up();
}

bool StagePlayer::reduces_now() const {
  return habits_.shards_gradients && (habits_.reduces_every_microbatch || last_microbatch_);
}

void StagePlayer::mark(WorkKind pass, const Slot& slot, std::size_t layer) {
  if (record_ == nullptr) return;
  record_->push_back({pass, slot.chunk, slot.microbatch, static_cast<int>(layer),
                      ledger_.take_recent_peak(), ledger_.allocated(), ledger_.reserved()});
}

void StagePlayer::run(const std::vector<MemoryEvent>& events, Slots& slots, std::size_t c,
                      std::size_t i, std::int32_t handed_on) {
  const MemoryEvent* const end = events.data() + events.size();
  for (const MemoryEvent* at = events.data(); at != end; ++at) {
    const MemoryEvent& e = *at;
    Holding& h = slots[static_cast<std::size_t>(e.slot)];
    if (e.kind == EventKind::allocate) {  // the two that most events are come first
      if (at + 1 != end && at[1].kind == EventKind::release && at[1].slot == e.slot) {
        ledger_.touch(e.bytes, e.category);
        ++at;
        continue;
      }
      h = ledger_.open_here(e.bytes, e.slot == handed_on ? activations : e.category);
      continue;
    }
    if (e.kind == EventKind::release) {
      ledger_.close_here(h);
      continue;
    }
    switch (e.kind) {
      case EventKind::allocate:
      case EventKind::release:
        break;  // never here: taken above
      case EventKind::release_read:
        if (f_.process.records_streams) {
          lag_.release(h);
          break;
        }
        ledger_.close(h);
        break;
      case EventKind::release_later:
        left_.push_back(h);
        h = {};
        break;
      case EventKind::hold:
        held_.push_back(h);
        h = {};
        break;
      case EventKind::end_output:
        close_all(left_);
        left_.swap(held_);
        break;
      case EventKind::weight_gradient:
      case EventKind::stored_gradient:
        if (fuses_gradients_)
          largest_gradient_ = std::max(largest_gradient_, e.bytes);
        else
          make_gradient(e.bytes, c, i, e.kind == EventKind::stored_gradient);
        break;
    }
  }
}

void StagePlayer::forward(const Slot& slot) {
  const auto c = static_cast<std::size_t>(slot.chunk);
  const ModelChunk& chunk = (*chunks_)[c];
  InFlight& flight = in_flight(slot);
  flight.layers.resize(chunk.layers.size());
  if (chunk.layers.empty()) return;
  const LayerDefinition& first = *chunk.layers.front().definition;
  if (first.role != LayerRole::embedding) receive();
  flight.carried = ledger_.open(
      first.graph.tensors[static_cast<std::size_t>(first.graph.input)].bytes, activations);
  for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
    if (given_up() || raised_enough()) return;
    const LayerScript& script = chunk.layers[i].definition->script;
    Slots& slots = flight.layers[i];
    slots.assign(static_cast<std::size_t>(script.slots), {});
    gather(c, i, +1, f_.sharding.parameters.gathered_layers_forward);
    cache_autocast(c, i);
    slots[static_cast<std::size_t>(script.input_slot)] = flight.carried;
    const bool last = i + 1 == chunk.layers.size();
    const LayerDefinition& definition = *chunk.layers[i].definition;
    run(script.forward, slots, c, i, last ? -1 : script.output_slot);
    // Autocast caches copies of leaves that have a gradient alone (PyTorch
    // aten/src/ATen/autocast_mode.cpp, cached_cast); others live on the graph, if there is one.
    if (!definition.trainable && !script.recompute.empty()) ledger_.close(holdings(c, i).autocast);
    issue_forward(definition);
    flight.carried = slots[static_cast<std::size_t>(script.output_slot)];
    slots[static_cast<std::size_t>(script.output_slot)] = {};
    if (!stays_gathered(c, i)) ledger_.close(holdings(c, i).gathered);
    send_activations(slot, i);
    mark(WorkKind::forward, slot, i);
  }
  const LayerDefinition& last = *chunk.layers.back().definition;
  const std::int64_t sent = bytes_kept_of_sent(w_, plan_, last);
  if (sent > 0) flight.output = ledger_.open(sent, activations);
  if (const std::int64_t compared = reference_logits(w_, last); compared > 0)
    ledger_.touch(compared, logits);
  ledger_.close(flight.carried);  // the output is sent on, or is the loss
  ledger_.close(copied_out_);
  leave_autocast(c);
  ledger_.remember();
  const bool second_send = first.role == LayerRole::embedding && slot.microbatch == 1;
  if (second_send && plan_.pipeline > 2) lag_.stall();
}

void StagePlayer::fetch_next_backward(const std::vector<Slot>& order, std::size_t at) {
  if (!plan_.offload.activations || plan_.pipeline == 1 || order[at].pass == Pass::forward) return;
  const auto next = std::find_if(
      order.begin() + static_cast<std::ptrdiff_t>(at) + 1, order.end(),
      [](const Slot& s) { return s.pass == Pass::backward || s.pass == Pass::backward_input; });
  if (next != order.end()) offload_.fetch({next->microbatch, next->chunk, 0});
}

void StagePlayer::send_activations(const Slot& slot, std::size_t layer) {
  if (!plan_.offload.activations) return;
  const ModelChunk& chunk = (*chunks_)[static_cast<std::size_t>(slot.chunk)];
  const bool by_chunk = plan_.pipeline > 1;
  if (by_chunk && layer + 1 < chunk.layers.size()) return;
  std::vector<Holding*> saved;
  InFlight& flight = in_flight(slot);
  for (std::size_t i = by_chunk ? 0 : layer; i <= layer; ++i) {
    if (chunk.layers[i].definition->role != LayerRole::block) continue;
    for (Holding& h : flight.layers[i])
      if (h.block && h.category == activations) saved.push_back(&h);
  }
  offload_.send({slot.microbatch, slot.chunk, by_chunk ? 0 : static_cast<int>(layer)},
                std::move(saved));
}

void StagePlayer::fetch_activations(const Slot& slot, std::size_t layer) {
  if (!plan_.offload.activations) return;
  const int last = static_cast<int>(layer);
  if (plan_.pipeline > 1) return offload_.fetch({slot.microbatch, slot.chunk, 0});
  for (int ahead = 0; ahead < 2; ++ahead)
    offload_.fetch({slot.microbatch, slot.chunk, last - ahead});
}

void StagePlayer::cache_autocast(std::size_t c, std::size_t i) {
  if (!f_.formats.autocast_caches_weights || !casts_weights(w_, plan_)) return;
  const std::int64_t copies = 2 * (*chunks_)[c].layers[i].definition->graph.parameters.cast;
  LayerHoldings& h = holdings(c, i);
  if (!h.autocast.block && copies > 0) h.autocast = ledger_.open(copies, gathered_parameters);
}

void StagePlayer::leave_autocast(std::size_t c) {
  for (std::size_t i = 0; i < layers_[c].size(); ++i)
    if (!(*chunks_)[c].layers[i].definition->script.recompute.empty())
      ledger_.close(layers_[c][i].autocast);
}

void StagePlayer::backward(const Slot& slot) {
  const auto c = static_cast<std::size_t>(slot.chunk);
  const ModelChunk& chunk = (*chunks_)[c];
  InFlight& flight = in_flight(slot);
  if (chunk.layers.empty()) return;
  buckets_.begin(total_);
  if (f_.gradients.copy_life == GradientCopyLife::next_backward) release_copies(c);
  const LayerDefinition& last = *chunk.layers.back().definition;
  if (last.role != LayerRole::head) receive();
  flight.carried = ledger_.open(
      last.graph.tensors[static_cast<std::size_t>(last.graph.output)].gradient_bytes, temporaries);
  for (std::size_t i = chunk.layers.size(); i-- > 0;) {
    if (raised_enough()) return;
    const LayerScript& script = chunk.layers[i].definition->script;
    Slots& slots = flight.layers[i];
    const bool loss_first = f_.sharding.parameters.prefetches_after_loss &&
                            chunk.layers[i].definition->role == LayerRole::head;
    gather(c, i, -1, loss_first ? 1 : f_.sharding.parameters.gathered_layers_backward);
    fetch_activations(slot, i);
    if (!script.recompute.empty()) cache_autocast(c, i);
    run(script.recompute, slots, c, i);
    issue_again(*chunk.layers[i].definition);
    slots[static_cast<std::size_t>(script.output_gradient_slot)] = flight.carried;
    run(script.backward, slots, c, i);
    if (chunk.layers[i].definition->role == LayerRole::head) hold_tied(c);
    kept_.pass(*chunk.layers[i].definition);
    nodes_.pass(*chunk.layers[i].definition);
    flight.carried = slots[static_cast<std::size_t>(script.input_gradient_slot)];
    issue_backward(*chunk.layers[i].definition);
    if (!in_root(c, i)) finish_layer_backward(c, i);
    mark(WorkKind::backward, slot, i);
  }
  ledger_.close(flight.carried);
  ledger_.close(flight.output);
  finish_root(c);
  ledger_.close(reduce_input_);
  ledger_.close(gathered_part_);
  kept_.release();
  widen_copies();
  buckets_.end();
  shard_bucket_.reduce();
  close_all(added_later_);
  if (f_.gradients.copy_life == GradientCopyLife::microbatch) release_copies(c);
  flights_.erase({slot.microbatch, slot.chunk});
  if (f_.loss.output_life != OutputLife::backward) return;
  close_all(held_);
  close_all(left_);
}

// Both of a tied table's gradients and their sum stand together: autograd buffers the head's until
// the embedding's is there (counted by tests/oracle on models that tie them).
void StagePlayer::make_gradient(std::int64_t elements, std::size_t c, std::size_t i, bool stored) {
  const StoredParameter& p = holdings(c, i).trained;
  // Autocast does not cast what an embedding looks up: its gradient is the table's from the start.
  const bool looked_up = (*chunks_)[c].layers[i].definition->role == LayerRole::embedding;
  const double each = stored || (looked_up && f_.formats.autocast) ? p.gradient : p.raw_gradient;
  const auto raw = static_cast<std::int64_t>(static_cast<double>(elements) * each);
  Holding own;
  const bool tied = looked_up && tied_.block && elements == tied_elements_;
  if (tied) own = ledger_.open(raw, gradients);
  if (shard_bucket_.used())
    fill_shard_bucket(elements, c, i);
  else
    place_gradient(elements, raw, holdings(c, i));
  ledger_.close(own);
  if (tied) ledger_.close(tied_);
}

// Experts that are called one by one have tensors of their own.
void StagePlayer::fill_shard_bucket(std::int64_t elements, std::size_t c, std::size_t i) {
  const LayerHoldings& h = holdings(c, i);
  const std::vector<Operator>& operators = h.graph->operators;
  const auto op = std::find_if(operators.begin(), operators.end(), [&](const Operator& o) {
    return o.weight_gradient_elements == elements;
  });
  const int tensors = op == operators.end() ? 1 : std::max(op->weight_gradients, 1);
  largest_gradient_ = std::max(largest_gradient_, elements);
  for (int t = 0; t < tensors; ++t)
    shard_bucket_.add(elements / tensors, h.trained.raw_gradient, last_microbatch_);
}

// The head's part of a tied table's gradient.
void StagePlayer::hold_tied(std::size_t c) {
  const ModelChunk& chunk = (*chunks_)[c];
  const LayerDefinition& first = *chunk.layers.front().definition;
  const bool here = first.role == LayerRole::embedding;
  if (!shares_table(w_) || !here || !w_.trains_head() || f_.gradients.fusion) return;
  const StoredParameter& p = holdings(c, 0).trained;
  const double each = f_.formats.autocast ? p.gradient : p.raw_gradient;
  const Operator& table = first.graph.operators.front();
  tied_elements_ = table.weight_gradient_elements;
  tied_ = ledger_.open(static_cast<std::int64_t>(static_cast<double>(tied_elements_) * each),
                       gradients);
}

void StagePlayer::place_gradient(std::int64_t elements, std::int64_t raw, LayerHoldings& h) {
  largest_gradient_ = std::max(largest_gradient_, elements);
  const StoredParameter& p = h.trained;
  if (habits_.persistent_gradients) {
    if (!f_.gradients.fusion) keep_or_pass(raw, h);
    return;
  }
  if (habits_.shards_gradients) {
    const double each = reduces_now() ? p.raw_gradient : p.whole_gradient;
    Holding made =
        ledger_.open(static_cast<std::int64_t>(static_cast<double>(elements) * each), gradients);
    if (h.has_gradient && !habits_.reduces_every_microbatch)
      ledger_.close(made);  // added into the whole gradient of an earlier microbatch
    else
      h.unsharded_gradients.push_back(made);
    inspect_offloaded(elements);
    return;
  }
  const auto kept = static_cast<std::int64_t>(static_cast<double>(elements) * p.gradient);
  if (w_.optimizer->in_backward) return optimizer_.step_in_backward(elements, raw, p.weight);
  if (h.has_gradient && f_.layers.compiles_whole_model &&
      f_.layers.kernels == KernelStyle::compiled) {
    added_later_.push_back(ledger_.open(std::max(raw, kept), gradients));
    return;
  }
  if (h.has_gradient || kept <= 0 || habits_.steps_in_backward)
    return ledger_.touch(std::max(raw, kept), gradients);
  Holding made;
  if (kept > raw) made = ledger_.open(raw, gradients);  // then cast to its wider home
  h.unsharded_gradients.push_back(ledger_.open(kept, gradients));
  ledger_.close(made);
}

bool StagePlayer::copies_to_host() const {
  return plan_.offload.optimizer && f_.update.clones_partition && plan_.zero_stage == 2;
}

void StagePlayer::inspect_offloaded(std::int64_t elements) {
  if (!copies_to_host() || !last_microbatch_) return;
  ledger_.touch(8 * elements, gradients);
  Holding wide = ledger_.open(4 * elements, gradients),
          flags = ledger_.open(3 * elements, gradients);
  ledger_.touch(4 * elements, gradients);
  ledger_.close(flags);
  ledger_.close(wide);
}

void StagePlayer::release_copies(std::size_t c) {
  if (!habits_.persistent_gradients) return;
  if (f_.process.records_streams)
    lag_.advance(trained_tensors(layers_));  // added to their wide ones
  for (LayerHoldings& h : layers_[c]) close_all(h.unsharded_gradients);
}

void StagePlayer::widen_copies() {
  const bool waits = f_.gradients.copy_life == GradientCopyLife::next_backward ||
                     f_.gradients.copy_life == GradientCopyLife::run;
  if (!habits_.persistent_gradients || !waits) return;
  Holding wide = ledger_.open(4 * largest_gradient_, gradients);
  ledger_.close(wide);
}

void StagePlayer::keep_or_pass(std::int64_t raw, LayerHoldings& h) {
  const bool there = f_.gradients.copy_life == GradientCopyLife::run && h.copied;
  if (f_.gradients.copy_while_accumulating && !there)
    h.unsharded_gradients.push_back(ledger_.open(raw, gradients));
  else
    ledger_.touch(raw, gradients);
}

bool StagePlayer::in_root(std::size_t c, std::size_t i) const {
  const ShardedParameters& s = f_.sharding.parameters;
  const bool ends_are_units = s.embedding_is_unit && !shares_table(w_);
  return s.root_holds_ends && !ends_are_units && habits_.shards_weights &&
         at_an_end((*chunks_)[c].layers[i].definition->role);
}

void StagePlayer::finish_root(std::size_t c) {
  for (std::size_t i = 0; i < layers_[c].size(); ++i) {
    if (!in_root(c, i)) continue;
    ledger_.close(layers_[c][i].gathered);
    root_input_ += reduced_bytes(layers_[c][i]);
  }
  for (std::size_t i = layers_[c].size(); i-- > 0;)
    if (in_root(c, i)) finish_layer_backward(c, i);
  root_input_ = 0;
}

void StagePlayer::finish_layer_backward(std::size_t c, std::size_t i) {
  LayerHoldings& h = holdings(c, i);
  ledger_.close(h.gathered);
  ledger_.close(h.buffer);
  ledger_.close(h.autocast);
  if (gradients_of_frozen(f_, habits_, *(*chunks_)[c].layers[i].definition) && !h.has_gradient)
    h.unsharded_gradients.push_back(ledger_.open(h.state.gathered, gradients));
  if (reduces_now()) {
    reduce_layer(h);
  } else if (!habits_.shards_gradients && habits_.persistent_gradients &&
             f_.gradients.copy_life == GradientCopyLife::layer) {
    close_all(h.unsharded_gradients);
  }
  h.has_gradient = h.has_gradient || h.state.gradients > 0;
  h.copied = h.copied || !h.unsharded_gradients.empty();
}

std::int64_t StagePlayer::reduced_bytes(const LayerHoldings& h) const {
  if (h.state.unsharded_gradients == 0) return 0;
  const double widening = bytes_per_element(f_.gradients.reduce_dtype) / h.trained.raw_gradient;
  return static_cast<std::int64_t>(static_cast<double>(h.state.unsharded_gradients) * widening);
}

void StagePlayer::reduce_layer(LayerHoldings& h) {
  if (h.state.unsharded_gradients == 0) return;
  buckets_.fill(h.state.unsharded_gradients);
  ledger_.close(reduce_input_);
  if (habits_.shards_weights && f_.gradients.reduce_buffers == 0)
    reduce_input_ = ledger_.open(std::max(root_input_, reduced_bytes(h)), communication);
  close_all(h.unsharded_gradients);
  if (habits_.persistent_gradients || habits_.flat_gradient_shard || plan_.offload.optimizer)
    return;
  Holding made = ledger_.open(h.state.gradients, gradients, reduced_on());
  if (!h.sharded_gradient.block) std::swap(h.sharded_gradient, made);
  ledger_.close(made);
  if (habits_.steps_in_backward) ledger_.close(h.sharded_gradient);
}

void StagePlayer::close_all(std::vector<Holding>& list) {
  for (Holding& h : list) ledger_.close(h);
  list.clear();
}

void StagePlayer::reduce_buckets() {
  for (const std::int64_t elements : flat_buckets(w_, plan_, layers_)) {
    Holding flat = ledger_.open(2 * elements, communication);
    const double wide = bytes_per_element(f_.gradients.reduce_dtype);
    if (wide > 2) ledger_.touch(static_cast<std::int64_t>(wide) * elements, communication);
    ledger_.close(flat);
  }
}

void StagePlayer::step_optimizer() {
  if (f_.process.records_streams)
    lag_.advance(kernels_per_stepped_parameter(w_) * trained_tensors(layers_));
  if (const std::int64_t sent = reduced_at_end(w_, plan_, total_); sent > 0)
    ledger_.touch(sent, communication);
  reduce_buckets();
  optimizer_.step(layers_, total_, largest_gradient_);
  reserved_at_step_ = ledger_.reserved();
  const bool copies_stay =
      habits_.persistent_gradients && (f_.gradients.copy_life == GradientCopyLife::next_backward ||
                                       f_.gradients.copy_life == GradientCopyLife::run);
  for (auto& chunk : layers_)
    for (LayerHoldings& h : chunk) {
      if (!copies_stay) close_all(h.unsharded_gradients);
      ledger_.close(h.sharded_gradient);
      ledger_.close(h.gathered);
      h.has_gradient = false;
    }
  mark(WorkKind::optimizer, {}, 0);
}

}  // namespace shardwise
