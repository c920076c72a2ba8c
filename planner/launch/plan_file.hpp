// Plan files: a user's own launch configuration, read as the plan to judge (--plan-from).
//
//   simulate 8b --gpus 8xA100-80GB --plan-from ds_config.json --plan-from sft.yaml
//
// The format is told by its keys. What the files say becomes the plan's text and the fields of the
// request that were left open; a field that was asked for and contradicts a file is a problem. A
// report per file lists every key: understood, ignored (and why), could not be honoured (and why).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "planner/launch/config_entries.hpp"
#include "planner/launch/plan_key.hpp"
#include "planner/launch/plan_words.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

struct PlanFileFormat {
  std::string_view name;    // "DeepSpeed"
  std::string_view marks;   // what tells it: keys of which one is there, separated by '|'
  std::string_view defers;  // a text that leaves a value to another file: "auto"; may be empty
  int rank;                 // of several files, the highest says the framework
  std::span<const PlanKey> keys;
  // Turns what the format says in its own way into words of plan and request; says the framework.
  void (*finish)(PlanWords& words, const PlanFileContext& context, const std::string& file);
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

struct PlanFiles {
  Request request;                      // the one given, with what the files say
  std::vector<PlanFileReport> reports;  // in the order read
  std::optional<double> learning_rate;  // of the files, as it is
  std::optional<int> batch;             // sequences per step of the files
};

// One format's keys applied to one file's entries. Exposed for tests of a single text.
PlanFileReport read_plan_keys(const PlanFileFormat& format, const ConfigEntries& entries,
                              const std::string& file, PlanWords& words);

// `request.plan_from`: paths of files, or of folders as `launch` writes them. Problems name file,
// key, the value found and what was expected.
Result<PlanFiles> with_plan_files(const Request& request, const PlanFileContext& context);

// The same from texts: pairs of a file name and its text.
struct PlanText {
  std::string file, text;
  bool is_run_script = false;  // a run.sh of ours, for what no format has a key for
};
Result<PlanFiles> with_plan_texts(const Request& request, const PlanFileContext& context,
                                  const std::vector<PlanText>& texts);

}  // namespace shardwise
