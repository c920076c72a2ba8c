#include "planner/advice/advice.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "catalog/find.hpp"
#include "planner/advice/advice_changes.hpp"
#include "planner/advice/advice_trial.hpp"
#include "planner/choice/asked_plan.hpp"
#include "planner/choice/plan_layouts.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/figures.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"
#include "simulator/offload_choice.hpp"
#include "simulator/packed_weights.hpp"

namespace shardwise {
namespace {

void smaller_microbatch(AdviceTrial& t) {
  const ParallelPlan& p = t.question().plan;
  for (int size = p.microbatch / 2; size >= 1; size /= 2) {
    Question q = t.question();
    q.plan.microbatch = size;
    q.plan.microbatches = std::max(1, p.microbatches * p.microbatch / size);
    if (offer(t, sentence("microbatches of ", size, " instead of ", p.microbatch), q)) return;
  }
}

// A small change alone, where it changes anything.
bool offer_change(AdviceTrial& t, SmallChange change) {
  Question q = t.question();
  const auto words = change(t, q);
  return words && offer(t, words->whole(), std::move(q));
}

// A look that spares a forecast: whether it would fit if nothing of this category were left of the
// peak, and the cache, which shrinks with what made it, were gone too. A tight plan has to fit with
// the high end of its interval, and without help from the cache.
bool would_do_without(const AdviceTrial& t, MemoryCategory gone) {
  const Forecast& f = t.missed.forecast;
  const StageForecast& s = f.worst();
  const auto held = [&](MemoryCategory c) {
    return Bytes(s.breakdown[static_cast<std::size_t>(c)]);
  };
  const bool tight = t.missed.verdict == Verdict::tight;
  Bytes left = s.peak.device - held(gone);
  if (!tight && gone != MemoryCategory::cache) left -= held(MemoryCategory::cache);
  const double more = tight ? f.peak_device.high / f.peak_device.expected : 1;
  return more * static_cast<double>(left.value) <= static_cast<double>(s.capacity.value);
}

void offer_without(AdviceTrial& t, MemoryCategory gone, SmallChange change) {
  if (would_do_without(t, gone)) offer_change(t, change);
}

void smaller_optimizer(AdviceTrial& t) {
  if (!row(t.method).trains_base || t.question().workload.optimizer->in_backward) return;
  for (const char* name : {"adamw8bit", "adafactor"}) {
    Question q = t.question();
    if (q.workload.optimizer->name == name) return;
    q.workload.step_with(*optimizer_named(name));
    if (offer(t, sentence("optimizer ", name), q)) return;
  }
}

// The tokens that are left; 0 where no length does.
int shorter_sequence(AdviceTrial& t) {
  for (int s = t.request.sequence / 2; s >= 512; s /= 2) {
    Question q = t.question();
    q.workload.sequence = s;
    if (offer(t,
              sentence("sequences of ", grouped(s), " tokens instead of ",
                       grouped(t.request.sequence)),
              q))
      return s;
  }
  return 0;
}

void smaller_adapters(AdviceTrial& t) {
  constexpr int small_rank = 8;
  if (!row(t.method).adapter || t.question().workload.adapter.rank <= small_rank) return;
  Question q = t.question();
  q.workload.adapter.rank = small_rank;
  offer(
      t,
      sentence("adapters of rank ", small_rank, " instead of ", t.question().workload.adapter.rank),
      q);
}

// Of weights that are quantised as they are loaded, bitsandbytes' are parameters.
void sharded_quantization(AdviceTrial& t) {
  const Workload& w = t.question().workload;
  if (why_frozen_stay_whole(w, 3).empty() || t.cluster.gpus() == 1) return;
  if (t.request.model.stored || !t.request.asked.plans.empty()) return;
  ResolvedRequest r = t.request;
  r.asked.quantization = Quantization::nf4;
  if (const auto chosen = choose_fitting(r, t.method, t.cluster))
    record_advice(
        t,
        sentence("--quantization nf4, which can be sharded, instead of ", row(w.adapter.base).name),
        *chosen);
}

// "QLoRA (4-bit frozen weights) instead".
std::string instead(const Workload& w) {
  if (w.method == Method::lora) return "LoRA instead";
  const double bits = 8 * row(w.adapter.base).bytes_per_code;
  return sentence("QLoRA (", fixed(bits, 0), "-bit frozen weights) instead");
}

void other_method(AdviceTrial& t, Method method) {
  const bool elsewhere = t.request.asked.framework && !t.question().workload.framework.runs(method);
  const auto record = [&](const ChosenPlan& chosen) {
    const Workload& w = chosen.question.workload;
    const std::string words = instead(w);
    if (chosen.verdict != Verdict::does_not_fit)
      record_advice(t, elsewhere ? sentence(words, ", in ", w.framework.name) : words, chosen);
  };
  if (&t.cluster == &t.request.clusters.front())
    for (const KnownPlan& k : t.known)
      if (k.method == method) return record(*k.chosen);
  ResolvedRequest r = t.request;
  if (elsewhere) r.asked.framework.reset();
  if (!r.asked.framework &&
      lacking_file(r.facts->catalog, usual_framework(method, t.cluster.gpus())))
    return;
  r.asked.plans.clear();
  if (method != Method::qlora) r.asked.quantization.reset();
  if (const auto chosen = choose_fitting(r, method, t.cluster)) record(*chosen);
}

// Cards that take turns may hold unlike numbers of layers (a device_map, or its max_memory): the
// last one has the head beside its own.
void other_split(AdviceTrial& t) {
  const Workload& w = t.question().workload;
  if (!t.question().plan.layer_split || !t.question().plan.layers_per_stage.empty()) return;
  for (std::vector<int>& layers : layers_by_memory(w, t.cluster)) {
    std::string text;
    for (const int n : layers) text += sentence(text.empty() ? "" : "/", n);
    Question q = t.question();
    q.plan.layers_per_stage = std::move(layers);
    if (offer(t, sentence("layers=", text, " on the cards (device_map) instead of as many on each"),
              q))
      return;
  }
}

// The one that `fit` would choose in place of a plan that was asked for, with as many sequences per
// step.
void other_plan(AdviceTrial& t) {
  if (t.request.asked.plans.empty()) return;
  ResolvedRequest r = t.request;
  r.asked.plans.clear();
  r.batch = static_cast<int>(t.question().plan.global_batch());
  const auto chosen = choose_fitting(r, t.method, t.cluster);
  if (!chosen) return;
  const std::string plan = whole_text(chosen->question.plan);
  if (std::none_of(t.advice.begin(), t.advice.end(),
                   [&](const Advice& told) { return told.plan == plan; }))
    record_advice(t, "another plan than the one asked for", *chosen);
}

// The same in one box in a framework that is written for little memory. One that cannot accumulate
// gradients may have no room for the usual batch, but for its own. Layers are split over cards by
// transformers' device_map: adapters are trained on its models, torchtune has models of its own.
void leaner_framework(AdviceTrial& t) {
  const std::string_view leaner = leanest_on_one_gpu(t.method);
  const Request& asked = t.request.asked;
  if (asked.framework || !asked.plans.empty() || asked.preference != nullptr) return;
  if (leaner.empty() || t.cluster.nodes() > 1 || t.question().workload.framework.id == leaner)
    return;
  if (lacking_file(t.request.facts->catalog, leaner)) return;
  ResolvedRequest r = t.request;
  r.asked.framework = std::string(leaner);
  auto chosen = choose_fitting(r, t.method, t.cluster);
  if (!chosen && !asked.batch) {
    r.batch = usual_batch(r);
    if (r.batch != t.request.batch) chosen = choose_fitting(r, t.method, t.cluster);
  }
  if (!chosen || (chosen->question.plan.layer_split && row(t.method).trains_base)) return;
  if (chosen->verdict == Verdict::tight && t.missed.verdict == Verdict::tight) return;
  std::string batch;
  if (r.batch != t.request.batch)
    batch = sentence(", ", counted(r.batch, "sequence"), " per step instead of ", t.request.batch);
  else if (!asked.batch && usual_batch(r) != r.batch)  // unless it is told
    batch = sentence(" --batch ", r.batch);
  record_advice(t, sentence("--framework ", leaner, batch), *chosen);
}

void lighter_methods(AdviceTrial& t) {
  const auto& stored = t.request.model.stored;  // beside which there is no LoRA but QLoRA
  if (t.method == Method::full && !(stored && stored->counted)) other_method(t, Method::lora);
  if (t.method == Method::full || t.method == Method::lora || t.method == Method::dora)
    other_method(t, Method::qlora);
}

// Host memory holds what is offloaded only where every rank's share is its own: ZeRO-3 or one GPU.
Question sharded(const AdviceTrial& t) {
  Question q = t.question();
  ParallelPlan& p = q.plan;
  if (!p.layer_split) return q;
  p.layer_split = false;
  p.data = p.pipeline;
  p.pipeline = 1;
  p.schedule = ParallelPlan{}.schedule;
  p.zero_stage = 3;
  p.microbatches = std::max(1, t.request.batch / (p.data * p.microbatch));
  q.workload = choose_workload(t.request, t.method, t.cluster, 3).workload;
  return q;
}

std::string host_ram_words(const HostMemory& host) {
  const Bytes all = std::max(host.steady, host.load_peak);
  const Bytes once = std::max(host.steady, host.load_once);
  if (once >= all) return sentence(shown_gib(all), " of host RAM");
  return sentence(shown_gib(once), " of host RAM where the weights are read once, ", shown_gib(all),
                  " where every rank reads its own copy");
}

// Whether a catalogued machine around GPUs of the same market has so much host RAM.
bool within_reach(const AdviceTrial& t, const HostMemory& host) {
  const Bytes host_ram = std::max(host.steady, std::min(host.load_once, host.load_peak));
  const Catalog& catalog = t.request.facts->catalog;
  return std::any_of(catalog.nodes.begin(), catalog.nodes.end(), [&](const Node& node) {
    if (node.gpu.empty() || !node.host_ram || *node.host_ram < host_ram) return false;
    const auto gpu = find_gpu(catalog, node.gpu);
    return gpu && (**gpu).market == t.cluster.groups.front().gpu.market;
  });
}

// Where the framework leaves too much on the GPU for that (gradients, copies of the weights), the
// one that is written for it. False where that is no answer either.
bool offloading_elsewhere(AdviceTrial& t) {
  const Request& asked = t.request.asked;
  if (asked.framework || !asked.plans.empty() || !row(t.method).trains_base) return false;
  if (lacking_file(t.request.facts->catalog, offloads_most)) return false;
  ResolvedRequest r = t.request;
  r.asked.framework = std::string(offloads_most);
  r.asked.offload = Offload{true, true, false};
  r.host_ram_stated = false;  // the advice says how much it takes
  const auto chosen = choose_fitting(r, t.method, t.cluster);
  if (!chosen) return false;
  const HostMemory& host = chosen->forecast.host;
  if (!within_reach(t, host)) return false;
  record_advice(t,
                sentence("--framework ", offloads_most, " with offload params+optimizer: both in ",
                         "host RAM (", host_ram_words(host), ")"),
                *chosen);
  return true;
}

// DeepSpeed offloads as part of ZeRO, on one GPU as well: weights with stage 3.
void offload_by_zero(const Framework& f, ParallelPlan& plan) {
  const int stage = plan.offload.parameters ? 3 : 2;
  if (f.update.cpu_adam && f.supports.max_zero_stage >= stage)
    plan.zero_stage = std::max(plan.zero_stage, stage);
}

void offloading(AdviceTrial& t) {
  if (t.request.asked.offload) return;
  const ParallelPlan& missed = t.question().plan;
  const bool alone = missed.gpus() == 1 && !t.question().workload.framework.update.cpu_adam;
  if (alone && offloading_elsewhere(t)) return;  // no framework of its own that does it
  struct Choice {
    Offload offload;
    const char* words;
  };
  constexpr std::array<Choice, 3> choices{
      {{{true, false, false}, "its states and its step"},
       {{false, true, false}, "weights in host RAM, copied in layer by layer"},
       {{true, true, false}, "both in host RAM"}}};
  for (const Choice& choice : choices) {
    if (choice.offload.optimizer && !row(t.method).trains_base) continue;
    Question q = sharded(t);
    q.plan.offload = choice.offload;
    offload_as_usual(q.workload, q.plan);
    const bool spread = q.plan.data > 1 || q.plan.context > 1;  // no weights of its own to move
    if (!spread && q.plan.gpus() == 1) offload_by_zero(q.workload.framework, q.plan);
    if (choice.offload.parameters && q.plan.zero_stage < 3 && spread) continue;
    bool too_far = false;
    auto chosen = fits_with(t, std::move(q), HostRam::is_named, nullptr, [&](const HostMemory& m) {
      too_far = !within_reach(t, m);
      return !too_far;
    });
    if (too_far) return;
    if (!chosen) continue;
    const HostMemory host = chosen->forecast.host;
    const std::string_view what = offload_name(chosen->question.plan.offload);
    record_advice(t,
                  sentence("offload ", what, ": ", choice.words, " (", host_ram_words(host), ")"),
                  larger_passes(t, *std::move(chosen)));
    return;
  }
  if (!alone) offloading_elsewhere(t);  // else it has been asked
}

// GPU memory would do: what the host lacks.
void help_the_host(AdviceTrial& t) {
  if (t.question().workload.framework.loading.every_rank_on_host) {
    Question q = t.question();
    q.workload.framework.loading.every_rank_on_host = false;
    offer(t,
          sentence("weights read once, by rank 0, while the other ranks build on the meta device "
                   "(",
                   shown_gib(t.missed.forecast.host.load_once), " of host RAM)"),
          q);
  }
  const HostMemory& host = t.missed.forecast.host;
  const Bytes need = std::max(host.steady, host.load_peak);
  Question q = t.question();
  for (NodeGroup& g : q.cluster.groups) g.node.host_ram = need;
  offer(t,
        sentence(shown_gib(need), " of host RAM instead of ",
                 shown_gib(host.available.value_or(Bytes(0)))),
        q);
}

}  // namespace

std::vector<Advice> advise(const ResolvedRequest& request, Method method, const Cluster& cluster,
                           const ChosenPlan& missed, const std::vector<KnownPlan>& known) {
  AdviceTrial t{request, method, cluster, missed, known, {}};
  if (missed.forecast.margin >= Bytes(0) && !missed.forecast.host_fits) {
    help_the_host(t);
    leaner_framework(t);
    lighter_methods(t);
    return std::move(t.advice);
  }
  offer_without(t, MemoryCategory::cache, grow_segments);
  smaller_microbatch(t);
  offer_change(t, redo_everything);
  offer_change(t, shard_everything);
  other_split(t);
  offer_without(t, MemoryCategory::logits, fuse_loss);
  offer_without(t, MemoryCategory::quantization, quantize_constants);
  const bool misses = missed.verdict == Verdict::does_not_fit;
  const bool by_small_changes = !t.advice.empty() || (misses && advise_together(t));
  if (misses) other_plan(t);
  leaner_framework(t);
  if (!misses) return std::move(t.advice);
  smaller_optimizer(t);
  const int tokens = shorter_sequence(t);
  if (!by_small_changes) advise_shorter_together(t, tokens);
  smaller_adapters(t);
  sharded_quantization(t);
  lighter_methods(t);
  offloading(t);
  advise_more_gpus(t);
  advise_bigger_cards(t);
  return std::move(t.advice);
}

}  // namespace shardwise
