#include "planner/validation/plan_groups.hpp"

#include <map>
#include <type_traits>
#include <utility>

#include "planner/validation/median.hpp"

namespace shardwise {
namespace {

// Members one after the other, each ended by a character that no record's text holds.
class Key {
 public:
  Key& operator<<(const std::string& text) {
    text_ += text;
    text_ += '\x1f';
    return *this;
  }
  Key& operator<<(bool b) { return *this << std::string(b ? "yes" : "no"); }
  Key& operator<<(int n) { return *this << std::to_string(n); }
  Key& operator<<(std::int64_t n) { return *this << std::to_string(n); }
  Key& operator<<(double n) { return *this << std::to_string(n); }
  Key& operator<<(Bytes b) { return *this << b.value; }
  template <class E>
  requires std::is_enum_v<E> Key& operator<<(E word) { return *this << static_cast<int>(word); }
  template <class T>
  Key& operator<<(const std::optional<T>& member) {
    return member ? *this << *member : *this << std::string();
  }
  template <class T>
  Key& operator<<(const std::vector<T>& members) {
    for (const T& m : members) *this << m;
    return *this << std::string();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_model(const RunModel& m, Key& key) {
  key << m.name << m.hf_id << m.layers << m.hidden << m.heads << m.kv_heads << m.head_dim << m.ffn
      << m.vocab << m.gated_mlp << m.tied_embeddings << m.value_embeddings << m.narrow_tables
      << m.caps_logits << m.position << m.norm << m.qk_norm << m.norms_per_layer << m.biases
      << m.mla.has_value() << m.moe.has_value();
  if (const auto& a = m.mla)
    key << a->q_lora_rank << a->kv_lora_rank << a->qk_nope_head_dim << a->qk_rope_head_dim
        << a->v_head_dim;
  if (const auto& e = m.moe)
    key << e->experts << e->top_k << e->expert_ffn << e->shared_experts << e->dense_layers;
}

void add_hardware(const RunHardware& h, Key& key) {
  key << h.gpu << h.gpus << h.gpus_per_node << h.intra_node << h.inter_node << h.host_ram
      << h.power_limit_w << h.peer_access << h.usable;
}

void add_training(const RunTraining& t, Key& key) {
  key << t.method << t.sequence << t.global_batch << t.precision << t.grad_dtype << t.reduce_dtype
      << t.optimizer << t.fused_optimizer << t.dropout << t.framework << t.objective << t.lora_rank
      << t.lora_dropout << t.lora_targets << t.trainable_params << t.quantize << t.double_quant
      << t.compute_dtype << t.flash_attention << t.compile << t.compile_loss << t.liger_kernel
      << t.packing << t.plugins << t.loss_slice_tokens;
}

std::string size_key(const RunRecord& run) {
  const RunModel& m = run.model;
  const RunTraining& t = run.training;
  Key key;
  key << run.source << m.name << m.layers << m.hidden << run.hardware.gpu << run.hardware.gpus
      << t.sequence << t.global_batch << t.precision << t.method;
  return key.text();
}

std::string question_key(const RunRecord& run, Grouping grouping) {
  if (grouping == Grouping::by_size) return size_key(run);
  Key key;
  key << run.source;
  add_model(run.model, key);
  add_hardware(run.hardware, key);
  add_training(run.training, key);
  return key.text();
}

// As it was forecast, where a record may leave a member to be derived from the others.
std::string plan_key(const ReplayedRun& r) {
  const ReplayedShape& s = r.shape;
  const RunPlan& p = r.run->plan;
  const RunTraining& t = r.run->training;
  Key key;
  key << s.data << s.tensor << s.pipeline << s.expert << s.microbatch << p.cp.value_or(1)
      << p.vpp.value_or(1) << p.etp << p.zero.value_or(0) << p.hsdp_shard << p.fsdp_version
      << p.fsdp_units_per_block << p.sp << p.async_tp << p.schedule << p.offload
      << p.layers_per_stage << t.recompute << t.activation_offloading;
  return key.text();
}

}  // namespace

std::vector<PlanGroup> plan_groups(const std::vector<ReplayedRun>& runs, Grouping grouping) {
  struct Times {
    std::vector<double> measured, predicted;
  };
  struct Found {
    PlanGroup group;
    std::map<std::string, std::size_t> at;  // plan -> its place in `times`
    std::vector<Times> times;
  };
  const auto entry = [&](const ReplayedRun& r) {
    return grouping == Grouping::by_all_told ? plan_key(r) : r.run->id;
  };
  std::map<std::string, Found> found;
  for (const ReplayedRun& r : runs) {
    const auto measured = measured_step(*r.run);
    if (r.skipped || !measured || !r.step_time) continue;
    Found& f = found[question_key(*r.run, grouping)];
    if (f.group.first == nullptr) f.group.first = r.run;
    ++f.group.runs;
    const auto [plan, is_new] = f.at.try_emplace(entry(r), f.times.size());
    if (is_new) f.times.emplace_back();
    f.times[plan->second].measured.push_back(measured->value);
    f.times[plan->second].predicted.push_back(r.step_time->expected.value);
  }
  std::vector<PlanGroup> out;
  for (auto& [key, f] : found) {
    for (const Times& t : f.times)
      f.group.plans.push_back({median_of(t.measured), median_of(t.predicted)});
    out.push_back(std::move(f.group));
  }
  return out;
}

}  // namespace shardwise
