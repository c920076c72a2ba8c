// What a training framework does by default: one row of catalog/frameworks/ each.
//
// Every field is a behaviour of the framework's code, with its source in `provenance`; none of
// them is an efficiency. A request may override what its user would set by a flag.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/adapter.hpp"
#include "catalog/dtype.hpp"
#include "catalog/fitted.hpp"
#include "catalog/framework_finetuning.hpp"
#include "catalog/framework_kinds.hpp"
#include "catalog/framework_layers.hpp"
#include "catalog/framework_loss.hpp"
#include "catalog/framework_memory.hpp"
#include "catalog/framework_parallel.hpp"
#include "catalog/framework_process.hpp"
#include "catalog/provenance.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// What a question leaves out when it names this framework.
struct FrameworkDefaults {
  DType compute = DType::bf16;
  // Of plans that split the model and shard nothing of it, where FSDP alone lowers precision to
  // 16 bits.
  std::optional<DType> compute_unsharded;
  std::string optimizer = "adamw";
  int zero_stage = 0;             // with more than one data-parallel rank
  std::optional<int> microbatch;  // sequences per GPU and pass
  std::optional<int> sequence;    // tokens
  std::optional<int> vocabulary;  // of its usual tokenizer
  bool dropout = false;           // GPT-style models train with dropout unless told not to
  bool lengths_vary = false;  // fine-tuning batches are padded to their own longest sequence only
  bool cuts_samples = false;  // longer ones than the limit are cut to it; else they are left out
};

// Which memory its own log tells, and of which pipeline stage.
struct FrameworkReports {
  MemoryKind memory = MemoryKind::device;
  MemoryStage stage = MemoryStage::worst;
};

// What this framework can run; a plan outside is refused with the reason.
struct FrameworkSupport {
  std::vector<Method> methods;  // empty: every method
  bool tensor = true, pipeline = true, context = true, expert = true;
  int max_zero_stage = 3;
  // The least ZeRO stage but 0 that its code has: FSDP shards gradients and weights with the
  // optimizer's states. All that a search tries; a plan that is stated may say less, as a what-if.
  int least_zero_stage = 1;
  // Of pipelines, rows of pipeline_schedule: what its code has, which is all that a search tries; a
  // plan that is stated may say another, as a what-if. Empty: not read.
  std::vector<std::string> schedules;
};

struct Framework {
  std::string id;
  std::string name;
  // Lower-case words by which records name it; longest wins. "a & b" is there where both are.
  std::vector<std::string> match;
  bool is_engine = false;  // trainers of other rows run on it; it is meant where none is named
  std::vector<std::string> match_trainer;  // of an engine's `match`: words that name a trainer
  std::string family;   // rows of one code base are as uncertain as each other; its own id if alone
  std::string refines;  // another row, of which this is a special case ...
  std::vector<std::string> match_note;  // ... where a record's framework note holds one of these
  std::string with_zero;  // the row that holds instead where a ZeRO stage is on: DeepSpeed
  std::vector<EngineStage> with_zero_alone;  // by which it holds on one GPU, and its stage there
  std::string in_fp32;  // the row of the same code whose weights are fp32; empty: none
  std::string version;  // commit or release that was read

  FrameworkFormats formats;
  FrameworkGradients gradients;
  FrameworkSharding sharding;
  FrameworkUpdate update;
  FrameworkParallel parallel;
  FrameworkLayers layers;
  FrameworkAttention attention;
  FrameworkExperts experts;
  FrameworkNarrow narrow;
  FrameworkRecompute recompute;
  FrameworkLoss loss;
  FrameworkAdapters adapters;
  FrameworkQuantized quantized;
  FrameworkLoading loading;
  FrameworkProcess process;
  FrameworkHost host;
  FrameworkDefaults defaults;
  FrameworkReports reports;
  FrameworkSupport supports;

  std::vector<FittedField> fitted;  // of its numbers
  Provenance provenance;

  bool is_named_as_engine_by(const std::string& word) const {
    return is_engine &&
           std::find(match_trainer.begin(), match_trainer.end(), word) == match_trainer.end();
  }
  bool runs(Method method) const {
    const std::vector<Method>& all = supports.methods;
    return all.empty() || std::find(all.begin(), all.end(), method) != all.end();
  }
  Bytes gradient_bucket_at(int zero_stage) const {
    return zero_stage == 2 ? gradients.bucket_stage_2.value_or(gradients.bucket) : gradients.bucket;
  }
};

// The row as it behaves for this method and number format: fp32 computes with fp32 weights, fp16
// may keep 16-bit gradients and convert them while stepping, adapters beside quantised weights may
// have another format. What needs the framework afterwards needs no such question any more.
Framework resolved_for(Framework row, Method method, DType compute);

// Why this framework cannot train so, and what it can do; nothing where it can.
std::optional<std::string> method_refusal(const Framework& framework, Method method);

// The row that free text names: the longest `match` found in it as a whole word, of a trainer if it
// names one, else of an engine; then the row that refines it where the note holds one of its words,
// and so on. nullptr where nothing is named.
const Framework* framework_meant(const std::vector<Framework>& rows, std::string_view text,
                                 std::string_view note = {});

}  // namespace shardwise
