#include "simulator/parallel_plan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "simulator/offload_choice.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/plan_keys.hpp"

namespace shardwise {
namespace {

// One key of a plan's text form: how it is written, and how it is read (false: not understood).
struct PlanKey {
  std::string_view key;
  std::string (*print)(const ParallelPlan&);  // empty: the default, left out
  bool (*read)(ParallelPlan&, std::string_view value);
  std::string_view expected;
};

constexpr std::string_view whole_number = "a whole number", yes_or_no = "true or false",
                           some_name = "a name";

bool read_int(std::string_view text, int& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size();
}

std::string unless(int value, int usual) { return value == usual ? "" : std::to_string(value); }

bool read_flag(std::string_view text, bool& to) {
  to = text == "true" || text == "1" || text == "yes" || text == "on";
  return to || text == "false" || text == "0" || text == "no" || text == "off";
}

std::string print_offload(const ParallelPlan& p) {
  return p.offload == Offload{} ? "" : std::string(offload_name(p.offload));
}

bool read_offload(ParallelPlan& p, std::string_view value) {
  const std::optional<Offload> named = offload_named(value);
  if (named) p.offload = *named;
  return named.has_value();
}

// Of the activations, in hundredths: 0.3 is "30%".
std::string print_share(const ParallelPlan& p) {
  return p.offloaded_share >= 1
             ? ""
             : std::to_string(std::max(1L, std::lround(100 * p.offloaded_share))) + "%";
}

bool read_share(ParallelPlan& p, std::string_view value) {
  int percent = 0;
  if (!value.ends_with('%') || !read_int(value.substr(0, value.size() - 1), percent) ||
      percent < 1 || percent > 100)
    return false;
  p.offloaded_share = percent / 100.0;
  return true;
}

constexpr std::array<std::string_view, 3> context_names{"ring", "all-gather", "ulysses"};

bool read_context_kind(ParallelPlan& p, std::string_view value) {
  for (std::size_t i = 0; i < context_names.size(); ++i)
    if (context_names[i] == value) {
      p.context_kind = static_cast<ContextKind>(i);
      return true;
    }
  return false;
}

// Layers of each stage: 7/9/9/7, and 1/62x2/1 for sixty-two stages of two.
std::string print_layers(const ParallelPlan& p) {
  constexpr std::ptrdiff_t worth_counting = 4;
  const std::vector<int>& layers = p.layers_per_stage;
  std::string text;
  for (auto at = layers.begin(); at != layers.end();) {
    const auto end = std::find_if(at, layers.end(), [&](int n) { return n != *at; });
    const bool counted = end - at >= worth_counting;
    text += (text.empty() ? "" : "/") + (counted ? std::to_string(end - at) + 'x' : "") +
            std::to_string(*at);
    at = counted ? end : at + 1;
  }
  return text;
}

bool read_layers(ParallelPlan& p, std::string_view value) {
  constexpr std::size_t most_stages = 100'000;
  p.layers_per_stage.clear();
  while (!value.empty()) {
    const std::size_t slash = value.find('/');
    const std::string_view part = value.substr(0, slash);
    const std::size_t times = part.find('x');
    int stages = 1, layers = 0;
    if (times != std::string_view::npos && (!read_int(part.substr(0, times), stages) || stages < 1))
      return false;
    if (!read_int(part.substr(times == std::string_view::npos ? 0 : times + 1), layers))
      return false;
    if (p.layers_per_stage.size() + static_cast<std::size_t>(stages) > most_stages) return false;
    p.layers_per_stage.insert(p.layers_per_stage.end(), static_cast<std::size_t>(stages), layers);
    value = slash == std::string_view::npos ? std::string_view() : value.substr(slash + 1);
  }
  return !p.layers_per_stage.empty();
}

using P = ParallelPlan;
using V = std::string_view;
constexpr std::array<PlanKey, 25> keys{{
    {"dp", [](const P& p) { return std::to_string(p.data); },
     [](P& p, V v) { return read_int(v, p.data); }, whole_number},
    {"tp", [](const P& p) { return unless(p.tensor, 1); },
     [](P& p, V v) { return read_int(v, p.tensor); }, whole_number},
    {"sp", [](const P& p) { return std::string(p.sequence_parallel ? "true" : ""); },
     [](P& p, V v) { return read_flag(v, p.sequence_parallel); }, yes_or_no},
    {"cp", [](const P& p) { return unless(p.context, 1); },
     [](P& p, V v) { return read_int(v, p.context); }, whole_number},
    {"cp-kind",
     [](const P& p) {
       return p.context_kind == ContextKind::ring
                  ? std::string()
                  : std::string(context_names[static_cast<std::size_t>(p.context_kind)]);
     },
     read_context_kind, "ring, all-gather or ulysses"},
    {"pp", [](const P& p) { return unless(p.pipeline, 1); },
     [](P& p, V v) { return read_int(v, p.pipeline); }, whole_number},
    {"vpp", [](const P& p) { return unless(p.chunks, 1); },
     [](P& p, V v) { return read_int(v, p.chunks); }, whole_number},
    {"schedule",
     [](const P& p) { return p.schedule == usual_schedule ? std::string() : p.schedule; },
     [](P& p, V v) { return !(p.schedule = std::string(v)).empty(); }, some_name},
    {"ep", [](const P& p) { return unless(p.expert, 1); },
     [](P& p, V v) { return read_int(v, p.expert); }, whole_number},
    {"etp", [](const P& p) { return unless(p.expert_tensor, 1); },
     [](P& p, V v) { return read_int(v, p.expert_tensor); }, whole_number},
    {"zero", [](const P& p) { return unless(p.zero_stage, 0); },
     [](P& p, V v) { return read_int(v, p.zero_stage); }, whole_number},
    {"shard", [](const P& p) { return p.shard_group ? std::to_string(*p.shard_group) : ""; },
     [](P& p, V v) { return read_int(v, p.shard_group.emplace()); }, whole_number},
    {"split", [](const P& p) { return std::string(p.layer_split ? "true" : ""); },
     [](P& p, V v) { return read_flag(v, p.layer_split); }, yes_or_no},
    {"mbs", [](const P& p) { return std::to_string(p.microbatch); },
     [](P& p, V v) { return read_int(v, p.microbatch); }, whole_number},
    {"ga", [](const P& p) { return std::to_string(p.microbatches); },
     [](P& p, V v) { return read_int(v, p.microbatches); }, whole_number},
    {"recompute", [](const P& p) { return p.recompute; },
     [](P& p, V v) { return !(p.recompute = std::string(v)).empty(); }, some_name},
    {"offload", print_offload, read_offload,
     "none, optimizer, params, params+optimizer, activations, optimizer+activations, "
     "params+activations or all"},
    {"offload-share", print_share, read_share, "a share of the activations, 1% to 100%"},
    {"async-tp", [](const P& p) { return std::string(p.async_tensor ? "true" : ""); },
     [](P& p, V v) { return read_flag(v, p.async_tensor); }, yes_or_no},
    {"layers", print_layers, read_layers, "layers of each stage, 7/9/9/7 or 1/62x2/1"},
    {"balance", [](const P& p) { return std::string(p.balance_by_speed ? "speed" : ""); },
     [](P& p, V v) { return (p.balance_by_speed = v == "speed") || v == "even"; }, "speed or even"},
    {"compress", [](const P& p) { return p.compression == "none" ? std::string() : p.compression; },
     [](P& p, V v) { return !(p.compression = std::string(v)).empty(); }, some_name},
    {"nvme", [](const P& p) { return std::string(p.nvme ? "true" : ""); },
     [](P& p, V v) { return read_flag(v, p.nvme); }, yes_or_no},
    {"async-dp", [](const P& p) { return std::string(p.async_data ? "true" : ""); },
     [](P& p, V v) { return read_flag(v, p.async_data); }, yes_or_no},
    {"fsdp", [](const P&) { return std::string(); },  // another name for zero=3 over n ranks
     [](P& p, V v) {
       p.zero_stage = 3;
       return read_int(v, p.data);
     },
     whole_number},
}};

// Chunks above one without a schedule are interleaved ones; a schedule that runs so many chunks and
// no others need not be told their number.
void complete_schedule(ParallelPlan& plan, bool says_chunks, bool says_schedule) {
  if (says_chunks == says_schedule) return;
  if (says_chunks && plan.chunks > 1 && !plan.layer_split) plan.schedule = chunked_schedule;
  const PipelineSchedule* row = find_pipeline_schedule(plan.schedule);
  if (says_schedule && row != nullptr) plan.chunks = row->chunks_per_stage.value_or(plan.chunks);
}

bool are_given(const std::vector<const PlanKey*>& given,
               std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
    return std::any_of(given.begin(), given.end(),
                       [&](const PlanKey* k) { return k->key == name; });
  });
}

}  // namespace

std::vector<std::string_view> plan_keys() {
  std::vector<std::string_view> names;
  for (const PlanKey& key : keys) names.push_back(key.key);
  return names;
}

bool reduces_every_microbatch(const Framework& f, const ParallelPlan& p) {
  // Gradients that are kept for the whole run are kept as shards: there is no room to add up whole
  // ones (Megatron-LM @d98e8a64dd megatron/core/distributed/fsdp/src/megatron_fsdp/
  // megatron_fsdp.py, grad_reduce_every_bprop).
  const bool every =
      f.gradients.reduces_every_microbatch || f.gradients.life == GradientLife::persistent;
  return every && p.zero_stage >= 2 && (p.pipeline == 1 || !f.gradients.pipelines_reduce_once);
}

bool shards_weights(const Framework& f, const ParallelPlan& p) {
  return p.zero_stage >= 3 || (p.zero_stage == 2 && f.sharding.stage_2_gathers);
}

bool reshards_weights(const Framework& f, const ParallelPlan& p) {
  return p.zero_stage >= 3 && f.sharding.parameters.reshard_after_forward &&
         (p.pipeline == 1 || f.sharding.parameters.reshard_with_pipeline);
}

std::string to_string(const ParallelPlan& plan) {
  std::string text;
  for (const PlanKey& key : keys) {
    const std::string value = key.print(plan);
    if (value.empty()) continue;
    text += (text.empty() ? "" : ",") + std::string(key.key) + "=" + value;
  }
  return text;
}

std::string whole_text(const ParallelPlan& plan) {
  std::string text = to_string(plan);
  if (plan.zero_stage == 0) text += ",zero=0";
  if (plan.tensor > 1 && !plan.sequence_parallel) text += ",sp=false";
  if (plan.context > 1 && plan.context_kind == ContextKind::ring) text += ",cp-kind=ring";
  return text;
}

// "tp=8, pp=4": people write a blank behind a comma.
static std::string_view without_blanks(std::string_view part) {
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

static std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> known;
  for (const PlanKey& key : keys) known.push_back(key.key);
  return known;
}

static std::string in_small(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return small;
}

// "tp8", "dp2-tp4pp2": keys with their numbers and nothing else but what parts them; "" where that
// is not so.
static std::string parted_pairs(std::string_view text) {
  constexpr std::string_view digits = "0123456789", between = "-_x/;:+ ";
  std::string pairs;
  while (!text.empty()) {
    const std::size_t number = text.find_first_of(digits);
    if (number == std::string_view::npos) return "";
    const std::size_t end = std::min(text.find_first_not_of(digits, number), text.size());
    const std::string_view name = text.substr(0, number);
    if (std::none_of(keys.begin(), keys.end(), [&](const PlanKey& key) { return key.key == name; }))
      return "";
    pairs += (pairs.empty() ? "" : ",") + std::string(name) + '=' +
             std::string(text.substr(number, end - number));
    text.remove_prefix(std::min(text.find_first_not_of(between, end), text.size()));
  }
  return pairs;
}

// What frameworks call a part of a plan, as the key that says it.
static std::string said_otherwise(std::string_view part) {
  struct Called {
    std::string_view name, key;
  };
  constexpr Called names[] = {{"fsdp", "zero=3"},
                              {"fsdp2", "zero=3"},
                              {"zero3", "zero=3"},
                              {"zero-3", "zero=3"},
                              {"zero2", "zero=2"},
                              {"zero-2", "zero=2"},
                              {"zero1", "zero=1"},
                              {"zero-1", "zero=1"},
                              {"hsdp", "zero=3,shard=8"},
                              {"ddp", "zero=0"},
                              {"dp", "dp=8"},
                              {"tp", "tp=2"},
                              {"pp", "pp=2"},
                              {"device_map", "split=true,pp=2"},
                              {"device_map=auto", "split=true,pp=2"}};
  const std::string small = in_small(part);
  for (const Called& one : names)
    if (one.name == small) return "; did you mean " + std::string(one.key) + "?";
  if (const std::string pairs = parted_pairs(small); !pairs.empty())
    return "; did you mean " + pairs + '?';
  // "stage=3" is ZeRO's, as DeepSpeed says it.
  const std::size_t digits = small.find_first_of("0123456789");
  if (digits != std::string::npos) {
    const std::string before = small.substr(0, digits), number = small.substr(digits);
    if (before == "stage=" || before == "zero_stage=" || before == "zero-stage=")
      return "; did you mean zero=" + number + '?';
  }
  const std::string meant = did_you_mean(small.substr(0, small.find('=')), known_keys());
  return meant.empty() ? meant : "; " + meant;
}

// "2 dp=4" behind "tp=": two parts of a plan that nothing but a blank parts.
static std::string without_comma(std::string_view value) {
  const std::size_t blank = value.find(' ');
  const bool two = blank != std::string_view::npos && value.find('=', blank) != value.npos;
  return two ? "; commas part the keys of a plan" : "";
}

Result<ParallelPlan> parse_plan(const std::string& text) {
  ParallelPlan plan;
  Problems problems;
  bool says_chunks = false, says_schedule = false, contradicts = false;
  const std::string known = joined(known_keys());
  std::string_view rest = text;
  std::vector<const PlanKey*> given;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = without_blanks(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t equals = part.find('=');
    const std::string name = in_small(part.substr(0, equals));
    says_chunks |= name == "vpp";
    says_schedule |= name == "schedule";
    const PlanKey* found = nullptr;
    for (const PlanKey& key : keys)
      if (key.key == name) found = &key;
    const int data = plan.data, zero_stage = plan.zero_stage;
    if (found == nullptr || equals == std::string_view::npos)
      problems.push_back({ProblemKind::request, "--plan",
                          "'" + printable(part) + "' is not key=value with a known key (" + known +
                              ")" + said_otherwise(part)});
    else if (std::find(given.begin(), given.end(), found) != given.end())
      problems.push_back({ProblemKind::request, "--plan",
                          name + " is given twice in " + printable(text) + "; once is enough"});
    else if (!found->read(plan, part.substr(equals + 1)))
      problems.push_back({ProblemKind::request, "--plan",
                          name + " must be " + std::string(found->expected) + ", got '" +
                              printable(part.substr(equals + 1)) + "'" +
                              without_comma(part.substr(equals + 1))});
    if (found != nullptr) given.push_back(found);
    contradicts |= are_given(given, {"fsdp", "dp"}) && plan.data != data;
    contradicts |= are_given(given, {"fsdp", "zero"}) && plan.zero_stage != zero_stage;
  }
  if (contradicts && problems.empty())
    problems.push_back({ProblemKind::request, "--plan",
                        "fsdp=N is dp=N,zero=3, which another key of " + printable(text) +
                            " contradicts; leave fsdp away, or that key"});
  if (text.empty())
    problems.push_back({ProblemKind::request, "--plan", "is empty; expected dp=2,tp=4 or similar"});
  if (!problems.empty()) return problems;
  complete_schedule(plan, says_chunks, says_schedule);
  return plan;
}

}  // namespace shardwise
