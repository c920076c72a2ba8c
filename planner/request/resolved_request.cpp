#include "planner/request/resolved_request.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "catalog/find.hpp"
#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "catalog/spoken_cluster.hpp"
#include "planner/figures.hpp"
#include "planner/request/asked_cluster.hpp"
#include "planner/request/asked_model.hpp"
#include "planner/request/calibrated_facts.hpp"
#include "planner/request/usual_framework.hpp"
#include "planner/sentence.hpp"
#include "simulator/graphs/recompute_policy.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {
namespace {

// Assumed: what people fine-tune with when they say nothing. Pre-training: half a million tokens
// per step is GPT-3's smallest batch (arXiv 2005.14165, table 2.1), as a power of two, which
// sequences and ranks mostly are: a batch that few ranks divide leaves out most plans.
constexpr int fine_tuning_sequence = 2048;
constexpr int pretraining_sequence = 4096;
constexpr int fine_tuning_batch = 16;
constexpr std::uint64_t pretraining_batch_tokens = 1 << 19;

void add_under(Problems& to, Problems from, const char* flag) {
  for (Problem& p : from) {
    if (p.kind == ProblemKind::request) p.where = flag;
    to.push_back(std::move(p));
  }
}

// True where every part of the GPUs names a node whose host RAM is catalogued: whoever names the
// node has stated its RAM.
bool names_nodes_with_ram(const Catalog& catalog, const std::string& text) {
  std::vector<std::string_view> names;
  for (const Node& node : catalog.nodes) {
    names.push_back(node.id);
    names.insert(names.end(), node.aliases.begin(), node.aliases.end());
  }
  const auto parts = read_spoken_cluster(text, names);
  if (!parts) return false;
  return std::all_of(parts->begin(), parts->end(), [&](const SpokenPart& part) {
    const Node* node = node_named(catalog, part.name);
    return node != nullptr && node->host_ram;
  });
}

// Frameworks are rows of PyTorch on CUDA and ROCm: names, allocator and all.
void note_other_software(ResolvedRequest& r) {
  for (const NodeGroup& g : r.clusters.front().groups)
    if (!g.gpu.runs_cuda_or_rocm())
      return r.notes.push_back(sentence(
          g.gpu.name,
          " runs neither CUDA nor ROCm: the answer is as if the framework named, its allocator and "
          "its kernels were there. Intel's own software (SynapseAI, Optimum for Intel Gaudi) is "
          "not modelled, and no launch files are written for it."));
}

// Each name once, in order.
void name_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// Assumed: of limits below half of what a board may draw no measurement is known.
constexpr double least_measured_limit = 0.5;

// A limit changes nothing for cards of whose family no benchmark tells what it does, nor above what
// their boards draw.
void note_power_limit(ResolvedRequest& r) {
  if (!r.asked.power_limit_w) return;
  std::vector<std::string> unknown, unheld, beyond;
  for (const Cluster& c : r.clusters)
    for (const NodeGroup& g : c.groups) {
      const GemmCalibration& gemm = r.facts->profile.row(g.gpu.family).gemm;
      if (g.gpu.power_w <= 0 || gemm.power_limit_exponent <= 0)
        name_once(unknown, g.gpu.name);
      else if (*r.asked.power_limit_w >= g.gpu.power_w)
        name_once(unheld, g.gpu.name);
      else if (*r.asked.power_limit_w < least_measured_limit * g.gpu.power_w)
        name_once(beyond, g.gpu.name);
    }
  if (!unknown.empty())
    r.notes.push_back(sentence("What --power-limit takes from ", listed(unknown),
                               " is not known: forecast at the power of the board."));
  if (!unheld.empty())
    r.notes.push_back(sentence("--power-limit ", *r.asked.power_limit_w, " holds nothing back on ",
                               listed(unheld), ": the board draws no more."));
  if (!beyond.empty())
    r.notes.push_back(sentence("--power-limit ", *r.asked.power_limit_w,
                               " is less than half of what ", listed(beyond),
                               " may draw, far below any limit that was measured: the step is "
                               "extrapolated."));
}

void resolve_clusters(ResolvedRequest& r, Problems& problems) {
  const Catalog& catalog = r.facts->catalog;
  auto clusters = asked_clusters(catalog, r.asked);
  if (!clusters) return add_problems(problems, clusters.error());
  r.clusters = *std::move(clusters);
  note_other_software(r);
  for (std::string& note : machine_notes(*r.facts, r.asked, r.clusters))
    r.notes.push_back(std::move(note));
  note_power_limit(r);
  r.host_ram_stated = r.asked.host_ram || names_nodes_with_ram(catalog, *r.asked.gpus);
}

void keep_first_card(ResolvedRequest& r) {
  if (r.clusters.size() < 2) return;
  r.first_card = sentence("the size stands for ", r.clusters.size(), " cards; this is ",
                          r.clusters.front().groups.front().gpu.name);
  r.notes.push_back(*r.first_card);
  r.clusters.erase(r.clusters.begin() + 1, r.clusters.end());
}

bool has(const std::vector<Method>& methods, Method wanted) {
  return std::find(methods.begin(), methods.end(), wanted) != methods.end();
}

// The framework that was asked for, where it is known.
const Framework* asked_framework(const ResolvedRequest& r) {
  if (!r.asked.framework) return nullptr;
  const auto found = find_framework(r.facts->catalog, *r.asked.framework);
  return found ? *found : nullptr;
}

// A method that trains the weights, or a framework that knows no quantised ones, reads a quantised
// file into 16 bits.
bool trains_as_stored(const ResolvedRequest& r) {
  if (!r.model.stored || !r.model.stored->counted || r.asked.quantization) return false;
  const Framework* framework = asked_framework(r);
  return framework == nullptr || framework->runs(Method::qlora);
}

void resolve_methods(ResolvedRequest& r, UnnamedMethods unnamed, Problems& problems) {
  const Request& a = r.asked;
  const bool wide = a.quantization == Quantization::none;  // also of a quantised checkpoint
  const bool packed = a.quantization && !wide;
  r.methods = a.methods;
  if (unnamed == UnnamedMethods::one) {
    const bool quantised = packed || trains_as_stored(r);
    if (r.methods.empty()) r.methods = {quantised ? Method::qlora : Method::full};
    if (r.methods.size() > 1)
      problems.push_back({ProblemKind::request, "--method", "expected one method here"});
  }
  if (r.methods.empty()) r.methods = {Method::full, Method::lora};
  if (a.methods.empty() && r.methods.size() > 1 && !wide) r.methods.push_back(Method::qlora);
  const bool adapters =
      std::any_of(r.methods.begin(), r.methods.end(), [](Method m) { return row(m).adapter; });
  if (packed && !has(r.methods, Method::qlora))
    problems.push_back({ProblemKind::request, "--quantization",
                        "only --method qlora quantises the frozen weights"});
  if (wide && has(r.methods, Method::qlora))
    problems.push_back({ProblemKind::request, "--quantization",
                        "none is --method lora; qlora expects nf4, nf4-double, int8, gptq, fp8 or "
                        "nvfp4"});
  if (a.preference != nullptr && has(r.methods, Method::pretrain))
    problems.push_back({ProblemKind::request, "--preference",
                        "fine-tunes: expected --method full, lora, dora or qlora"});
  if ((a.lora_rank || a.lora_targets) && !adapters)
    problems.push_back({ProblemKind::request, a.lora_rank ? "--lora-rank" : "--lora-targets",
                        "needs a method with adapters: lora, dora or qlora"});
}

// Before the methods: files say a method, a framework and much else that is left open.
void resolve_plan_files(ResolvedRequest& r, Problems& problems) {
  if (r.asked.plan_from.empty()) return;
  auto files = with_plan_files(r.asked, {&r.model, &r.clusters.front(), &r.facts->catalog});
  if (!files) return add_problems(problems, files.error());
  r.asked = std::move(files->request);
  r.plan_files = std::move(files->reports);
  r.learning_rate = files->learning_rate;
  r.learning_rate_batch = files->batch;
  for (const PlanFileReport& report : r.plan_files) r.notes.push_back(told(report));
}

// A release that has no row of its own is forecast as the one that its name leads to.
void note_framework_taken(ResolvedRequest& r, const Framework& row) {
  const std::string& asked = *r.asked.framework;
  if (same_name(asked, row.id) || same_name(asked, row.name)) return;
  if (asked.find_first_of("0123456789") == std::string::npos) return;
  r.notes.push_back(sentence('"', asked, "\" is taken as ", row.name, '.'));
}

// Methods that were asked for and that the framework has not are problems; of those that nobody
// named, the ones that it has are left.
void resolve_framework(ResolvedRequest& r, Problems& problems) {
  if (!r.asked.framework) return;
  const auto found = find_framework(r.facts->catalog, *r.asked.framework);
  if (!found) return add_under(problems, found.error(), "--framework");
  const Framework& row = **found;
  note_framework_taken(r, row);
  for (auto method = r.methods.begin(); method != r.methods.end();) {
    const bool named =
        !r.asked.methods.empty() || (r.asked.quantization && *method == Method::qlora);
    const auto refusal = method_refusal(row, *method);
    if (refusal && named)
      problems.push_back({ProblemKind::request, "--method", *refusal});
    else if (refusal)
      r.notes.push_back(sentence(*refusal, '.'));
    method = refusal && !named ? r.methods.erase(method) : method + 1;
  }
}

// The rows that methods run in where nobody names one. A method that was not named either is left
// out where a trimmed catalog lacks its row.
void resolve_usual_framework(ResolvedRequest& r, Problems& problems) {
  if (r.asked.framework) return;
  Problems lacking;
  for (auto method = r.methods.begin(); method != r.methods.end();) {
    std::optional<std::string> file;
    for (const Cluster& cluster : r.clusters)
      if (!file) file = lacking_file(r.facts->catalog, usual_framework(*method, cluster.gpus()));
    if (!file) {
      ++method;
      continue;
    }
    const std::string why = sentence("is not in the catalog: ", row(*method).name,
                                     " is forecast in it where --framework names no other");
    lacking.push_back({ProblemKind::file, *file, why});
    r.notes.push_back(sentence("No forecast of ", row(*method).name, ": ", *file, ' ', why, '.'));
    method = r.methods.erase(method);
  }
  if (r.methods.empty() || !r.asked.methods.empty()) add_problems(problems, lacking);
}

// Adapters beside weights that the checkpoint's file stores quantised are QLoRA, whatever they were
// called.
void follow_stored_weights(ResolvedRequest& r) {
  if (!r.model.stored || r.asked.quantization) return;
  const StoredWeights& stored = *r.model.stored;
  std::string note = sentence("The file stores its weights quantised (", stored.format, "): ");
  if (!stored.counted) {
    note +=
        "that is not counted here; they are taken as 16 bits, those of qlora as the framework "
        "quantises them (--quantization).";
  } else if (!trains_as_stored(r)) {
    note += sentence(asked_framework(r)->name, " does not train beside such; taken as 16 bits.");
  } else {
    note += sentence("what adapters freeze is counted as ", row(*stored.counted).name,
                     ", and what is trained in full as 16 bits");
    const auto lora = std::find(r.methods.begin(), r.methods.end(), Method::lora);
    if (lora != r.methods.end()) {
      note += "; lora is qlora then";
      if (has(r.methods, Method::qlora))
        r.methods.erase(lora);
      else
        *lora = Method::qlora;
    }
    note += '.';
  }
  r.notes.push_back(std::move(note));
}

void check_targets(const ResolvedRequest& r, Problems& problems) {
  if (!r.asked.lora_targets) return;
  std::vector<std::string_view> known;
  for (const TargetReading& row : r.facts->reading.targets) known.push_back(row.text);
  std::string_view rest = *r.asked.lora_targets;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string hint = did_you_mean(word, known);
    problems.push_back(
        {ProblemKind::request, "--lora-targets",
         sentence("expected all-linear, attention, attention-qv, mlp or a list of q, k, v, o, "
                  "gate, up, down, embedding, lm_head, found \"",
                  printable(word), '"', hint.empty() ? "" : "; ", hint)});
  }
}

void check_images(const ResolvedRequest& r, Problems& problems) {
  if (r.model.vision || r.model.id.empty()) return;
  for (const char* flag :
       {r.asked.images ? "--images" : "", r.asked.image_tokens ? "--image-tokens" : ""})
    if (*flag != '\0')
      problems.push_back({ProblemKind::request, flag,
                          sentence(r.model.id, " has no vision tower in the catalog")});
}

void check_experts(const ResolvedRequest& r, Problems& problems) {
  if (r.asked.expert_imbalance && !r.model.moe && !r.model.id.empty())
    problems.push_back(
        {ProblemKind::request, "--expert-imbalance", sentence(r.model.id, " has no experts")});
}

void check_data(const ResolvedRequest& r, Problems& problems) {
  if (r.asked.samples && r.asked.tokens)
    problems.push_back({ProblemKind::request, "--samples",
                        sentence(*r.asked.samples, " and --tokens ", *r.asked.tokens,
                                 " both say how much is trained; expected one of them")});
}

void check_seed(const ResolvedRequest& r, Problems& problems) {
  if (r.asked.seed && !r.asked.jitter && !r.asked.straggler)
    problems.push_back({ProblemKind::request, "--seed",
                        "draws nothing without --jitter or --straggler; expected one of them"});
}

// Whether a plan is legal is part of the answer; whether a text is a plan is not.
void check_why_not(const ResolvedRequest& r, Problems& problems) {
  for (const std::string& text : r.asked.why_not) {
    if (text.empty()) continue;  // the usual plan
    const auto plan = parse_plan(text);
    if (!plan) add_under(problems, plan.error(), "--why-not");
  }
}

void resolve_lengths(ResolvedRequest& r, Problems& problems) {
  if (!r.asked.lengths) return;
  if (r.asked.preference != nullptr)
    return problems.push_back({ProblemKind::request, "--lengths",
                               "are those of single sequences; --preference trains on several of "
                               "a sample"});
  if (r.asked.tokens)
    return problems.push_back({ProblemKind::request, "--tokens",
                               "with --lengths; expected --samples, whose lengths are known"});
  auto lengths = read_sample_lengths(*r.asked.lengths);
  if (!lengths) return add_problems(problems, lengths.error());
  r.lengths = std::make_shared<const SampleLengths>(*std::move(lengths));
}

void check_names(const ResolvedRequest& r, Problems& problems) {
  if (r.asked.recompute) {
    const auto policy = recompute_policy(*r.asked.recompute);
    if (!policy) add_under(problems, policy.error(), "--recompute");
  }
  check_why_not(r, problems);
  check_targets(r, problems);
  check_images(r, problems);
  check_experts(r, problems);
  check_data(r, problems);
  check_seed(r, problems);
}

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

bool pretrains(const ResolvedRequest& r) {
  return r.methods == std::vector<Method>{Method::pretrain};
}

void resolve_sizes(ResolvedRequest& r) {
  const bool pretraining = pretrains(r);
  r.sequence = r.asked.sequence.value_or(pretraining ? pretraining_sequence : fine_tuning_sequence);
  const int most = r.model.position == PositionKind::learned && r.model.position_rows > 0
                       ? r.model.position_rows
                       : r.model.max_positions;
  if (r.lengths && !r.asked.sequence) r.sequence = most > 0 ? most : r.lengths->longest();
  if (!r.asked.sequence && most > 0) r.sequence = std::min(r.sequence, most);
  if (r.lengths) {
    r.sequence = judged_length(*r.lengths, r.sequence);
    r.notes.push_back(told(*r.lengths, r.sequence));
  }
  if (most > 0 && r.sequence > most)
    r.notes.push_back(sentence(grouped(r.sequence), " tokens per sequence are more than the ",
                               grouped(most), " positions that ", r.model.id,
                               " was made for; the forecast goes on as if it could."));
  // Plans beside those of files take the files' batch: another would not be compared with them.
  r.batch = r.asked.batch ? *r.asked.batch : r.learning_rate_batch.value_or(usual_batch(r));
}

// Of a model with a vision tower.
void resolve_images(ResolvedRequest& r, Problems& problems) {
  const VisionTower& tower = *r.model.vision;
  const Request& a = r.asked;
  r.images = usual_images(tower, r.sequence);
  r.images.images = a.images.value_or(r.images.images);
  r.images.tokens = a.image_tokens.value_or(r.images.tokens);
  const auto [images, tokens] = r.images;
  if (std::int64_t{images} * tokens > r.sequence) {
    problems.push_back(
        {ProblemKind::request, a.images ? "--images" : "--image-tokens",
         sentence(counted(images, "image"), " of ", counted(tokens, "token"), " are more than the ",
                  counted(r.sequence, "token"), " of a sequence",
                  a.sequence ? "" : "; --seq says how many it has")});
    return;
  }
  const bool stated = a.images && (a.image_tokens || images == 0);
  const std::string seen =
      images == 0 ? "no image"
                  : sentence(counted(images, "image"), " of ", counted(tokens, "token"));
  r.notes.push_back(sentence(
      "A sequence has ", seen, stated ? "" : " (assumed; --images, --image-tokens)",
      "; the vision tower, ", shown_parameters(tower.parameters()), " parameters, is frozen."));
}

// Before it is a multiple of the GPUs.
std::int64_t batch_by_habit(const ResolvedRequest& r) {
  if (r.asked.optimizer != nullptr && r.asked.optimizer->in_backward)  // nothing accumulates
    return r.gpus();
  if (const Framework* framework = asked_framework(r))
    if (framework->gradients.life == GradientLife::in_backward)  // nothing accumulates
      return r.gpus() * framework->defaults.microbatch.value_or(1);
  if (!pretrains(r)) return fine_tuning_batch;
  const auto sequence = static_cast<std::uint64_t>(r.sequence);
  return static_cast<std::int64_t>(std::bit_floor(pretraining_batch_tokens / sequence));
}

}  // namespace

int usual_batch(const ResolvedRequest& r) {
  const std::int64_t usual = std::max<std::int64_t>(batch_by_habit(r), 1);
  return static_cast<int>(rounded_up(usual, r.gpus()));
}

Problems placed(const ResolvedRequest& r, Problems problems) {
  if (r.plan_files.empty()) return problems;
  for (Problem& p : problems) {
    const auto said = r.asked.places.find(p.where);
    if (said == r.asked.places.end() || r.stated.places.count(p.where) > 0) continue;
    p = {ProblemKind::file, said->second, p.what};
  }
  return problems;
}

Result<ResolvedRequest> resolve(const Request& request, const Facts& facts,
                                UnnamedMethods unnamed) {
  ResolvedRequest r{.asked = request, .facts = &facts, .stated = request};
  Problems problems;
  resolve_model(r, problems);
  resolve_clusters(r, problems);
  if (problems.empty()) resolve_plan_files(r, problems);
  resolve_methods(r, unnamed, problems);
  resolve_framework(r, problems);
  if (problems.empty()) follow_stored_weights(r);
  if (problems.empty()) resolve_usual_framework(r, problems);
  check_names(r, problems);
  resolve_lengths(r, problems);
  if (!problems.empty()) return placed(r, problems);
  if (unnamed == UnnamedMethods::one) keep_first_card(r);
  for (std::string& note : calibration_notes(facts.profile, r.clusters))
    r.notes.push_back(std::move(note));
  resolve_sizes(r);
  if (r.model.vision) resolve_images(r, problems);
  if (!problems.empty()) return placed(r, problems);
  if (framework_follows_gpus(r.asked, r.methods)) r.notes.emplace_back(framework_follows_gpus_note);
  return r;
}

}  // namespace shardwise
