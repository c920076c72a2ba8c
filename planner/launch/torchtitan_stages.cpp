#include "planner/launch/torchtitan_stages.hpp"

#include <string_view>

#include "planner/sentence.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {
namespace {

bool one_stage_each(std::string_view schedule) {
  const PipelineSchedule* row = find_pipeline_schedule(schedule);
  return row != nullptr && row->chunks_per_stage == 1;
}

int default_chunks(std::string_view schedule) { return one_stage_each(schedule) ? 1 : 2; }

int ceiling(int a, int b) { return (a + b - 1) / b; }

// What even dealing gives with the ends weighing so many layers each.
std::vector<int> dealt(int layers, int stages, int first_less, int last_less) {
  const int all = layers + first_less + last_less;
  std::vector<int> each(static_cast<std::size_t>(stages), all / stages);
  for (int i = 0; i < all % stages; ++i) ++each[static_cast<std::size_t>(i)];
  each.front() -= first_less;
  each.back() -= last_less;
  return each;
}

std::string slashed(const std::vector<int>& layers) {
  std::string text;
  for (const int n : layers) text += sentence(text.empty() ? "" : "/", n);
  return text;
}

}  // namespace

void refuse_torchtitan_stages(Refusals& to, const ParallelPlan& p, const Transformer& model) {
  const int stages = p.pipeline * p.chunks;
  refuse_if(to, one_stage_each(p.schedule) && p.chunks > 1,
            sentence(p.schedule, " has one model chunk per rank in torchtitan"));
  refuse_if(to, !one_stage_each(p.schedule) && p.chunks < 2,
            sentence(p.schedule, " has two model chunks or more per rank in torchtitan"));
  // generate_llm_fqn_per_model_part refuses more stages than layers and the weights of both ends,
  // which are written as 0 (put_torchtitan_stages).
  if (p.layers_per_stage.empty() && stages > model.layers)
    return refuse_if(to, true,
                     sentence("torchtitan refuses ", stages, " stages of ", model.layers,
                              " layers, some of which would be empty"));
  const bool even = p.layers_per_stage.empty() && p.chunks != default_chunks(p.schedule);
  refuse_if(to, even && ceiling(model.layers, ceiling(model.layers, stages)) != stages,
            sentence("torchtitan cannot deal ", model.layers, " layers to ", stages,
                     " stages by a number per stage; say layers=..."));
}

void put_torchtitan_stages(ConfigEntries& to, const ParallelPlan& p, const Transformer& model) {
  const std::string at = "parallelism.";
  const int stages = p.pipeline * p.chunks;
  if (p.layers_per_stage.empty()) {
    put(to, at + "pipeline_parallel_first_stage_less_layers", 0);
    put(to, at + "pipeline_parallel_last_stage_less_layers", 0);
    if (p.chunks != default_chunks(p.schedule))
      put(to, at + "pipeline_parallel_layers_per_stage", ceiling(model.layers, stages));
    return;
  }
  int layer = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const std::string part = sentence(at, "module_fqns_per_model_part.", stage, '.');
    int place = 0;
    if (stage == 0) put(to, sentence(part, place++), "tok_embeddings");
    for (int n = 0; n < p.layers_per_stage[static_cast<std::size_t>(stage)]; ++n)
      put(to, sentence(part, place++), sentence("layers.", layer++));
    if (stage + 1 < stages) continue;
    put(to, sentence(part, place++), "norm");
    put(to, sentence(part, place), "output");
  }
}

void read_torchtitan_stages(PlanWords& words, const PlanFileContext& context,
                            const std::string& file) {
  words.default_to("schedule", std::string(usual_schedule), file);
  const std::string schedule = words.words.find("schedule")->second.value;
  const int pipeline = words.number_or("pp", 1), layers = context.model->layers;
  const int first_less = words.number_or("first-less", 1),
            last_less = words.number_or("last-less", 1);
  int stages = pipeline * default_chunks(schedule);
  std::vector<int> each;
  if (const auto named = words.words.lower_bound("module:");
      named != words.words.end() && named->first.starts_with("module:")) {
    each = {};
    for (int stage = 0;; ++stage) {
      const std::string prefix = sentence("module:", stage, ":");
      if (!words.has(sentence(prefix, "count"))) break;
      each.push_back(words.number_or(sentence(prefix, "count"), 0));
    }
    stages = static_cast<int>(each.size());
  } else {
    if (const auto n = words.number("layers-per-chunk"))
      stages = ceiling(layers + first_less + last_less, *n);
    each = dealt(layers, stages, first_less, last_less);
  }
  if (stages % pipeline != 0) {
    words.wrong("pp", sentence(stages, " stages do not divide over ", pipeline, " pipeline ranks"));
    return;
  }
  if (stages != pipeline || !one_stage_each(schedule)) words.say("vpp", stages / pipeline, file);
  if (each != dealt(layers, stages, 0, 0)) words.say("layers", slashed(each), file);
}

}  // namespace shardwise
