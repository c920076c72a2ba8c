// Plan files: a user's own launch configuration, read as the plan to judge (--plan-from).
//
//   simulate 8b --gpus 8xA100-80GB --plan-from ds_config.json --plan-from sft.yaml
//
// The format is told by its keys. What the files say becomes words of plan and request, which
// planner/request/plan_from.hpp lays over the request. A report per file lists every key:
// understood, ignored (and why), could not be honoured (and why).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "planner/launch/config_entries.hpp"
#include "planner/launch/plan_key.hpp"
#include "planner/launch/plan_words.hpp"

namespace shardwise {

struct PlanFileFormat {
  std::string_view name;    // "DeepSpeed"
  std::string_view marks;   // what tells it: keys of which one is there, separated by '|'
  std::string_view defers;  // a text that leaves a value to another file: "auto"; may be empty
  int rank;                 // of several files, the highest says the framework
  std::span<const PlanKey> keys;
  // Turns what the format says in its own way into words of plan and request; says the framework.
  void (*finish)(PlanWords& words, const PlanFileContext& context, const std::string& file);
  // The catalog's name of a model that several keys name together; empty where they name none.
  std::string (*model)(const ConfigEntries& entries) = nullptr;
  std::string_view model_key{};  // the one of them that stands for all
};

std::span<const PlanFileFormat> plan_file_formats();

struct KeyNote {
  std::string key, why;
};

struct PlanFileReport {
  std::string file;
  std::string format;
  std::vector<std::string> understood;
  std::vector<KeyNote> ignored, not_honoured;
  std::vector<std::string> implied{};  // "method pretrain": holds where no flag says otherwise
};

// The report in one sentence.
std::string told(const PlanFileReport& report);

// The format of a report that tells of a run.sh of ours, which has no keys.
inline constexpr std::string_view written_script = "a script of shardwise launch";
// The format of a report that tells of a script which a folder holds.
inline constexpr std::string_view passed_over_script = "a script";

// What all files say together.
struct SaidPlan {
  PlanWords words;
  std::vector<PlanFileReport> reports;  // in the order read
  std::optional<double> learning_rate;  // as it is
  std::optional<int> batch;             // sequences per step
};

struct PlanText {
  enum class Role {
    plan,
    run_script,   // a run.sh of ours, for what no format has a key for
    passed_over,  // a script in a folder: it may be one of several, so its own name is asked for
  };
  std::string file, text;
  Role role = Role::plan;
};

// Paths of files, or of folders as `launch` writes them; with them DeepSpeed's file, where one of
// these names it and it is found.
Result<std::vector<PlanText>> plan_texts(const std::vector<std::string>& paths);

// What a file calls the model that it trains, as it stands there.
struct ModelInFile {
  std::string name;   // "meta-llama/Llama-3.1-8B"
  std::string where;  // "sft.yaml:1:model_name_or_path"
};

// In the order of the texts; one that cannot be read names none.
std::vector<ModelInFile> models_in(const std::vector<PlanText>& texts);

// Sizes that a file says in place of a name, as Megatron-LM's arguments do. 0: not said.
struct SizesInFile {
  std::int64_t layers = 0, hidden = 0, ffn = 0, kv_heads = 0, experts = 0;
};

// Of the first text that says its layers and its width.
std::optional<SizesInFile> sizes_in(const std::vector<PlanText>& texts);

// Problems name file, key, the value found and what was expected.
Result<SaidPlan> read_plan_texts(const std::vector<PlanText>& texts,
                                 const PlanFileContext& context);

}  // namespace shardwise
