// The parts that replay() puts together. Each fills one part of the question and adds what it
// assumed to `notes`; none of them looks at what was measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "catalog/text_match.hpp"
#include "planner/validation/replay.hpp"

namespace shardwise {

// A part of the question, or why there is none.
template <class T>
using Part = std::variant<T, Skipped>;

using Notes = std::vector<std::string>;

struct ReplayContext {
  const RunRecord& run;
  const Catalog& catalog;
  const Reading& reading;
  std::vector<const PhraseReading*> phrases;  // those that this record holds
};

// The value that the first phrase with one states.
template <class T>
std::optional<T> stated(const ReplayContext& c, std::optional<T> PhraseReading::*member) {
  for (const PhraseReading* phrase : c.phrases)
    if (phrase->*member) return phrase->*member;
  return std::nullopt;
}

// Puts it in the place of `value`, if one states it.
template <class T>
void take_stated(const ReplayContext& c, std::optional<T> PhraseReading::*member, T& value) {
  value = stated(c, member).value_or(value);
}

// With hyphens for blanks and underscores: "H100_SXM 80GB" as "H100-SXM-80GB".
inline std::string hyphened(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c == ' ' || c == '_') c = '-';
  return out;
}

// The row whose text is the longest that `text` holds, as it is written or with `mark` for its
// blanks, hyphens and underscores: "paged AdamW 8bit" holds "paged_adamw_8bit".
template <class Rows>
auto longest_match_spelled(const Rows& rows, std::string_view text, char mark) -> const
    typename Rows::value_type* {
  std::string joined(text);
  for (char& c : joined)
    if (c == ' ' || c == '-' || c == '_') c = mark;
  const auto* as_written = longest_match(rows, text);
  const auto* other = longest_match(rows, joined);
  if (as_written == nullptr || other == nullptr) return as_written == nullptr ? other : as_written;
  return other->text.size() > as_written->text.size() ? other : as_written;
}

// replay_cluster.cpp
bool gpu_stated(const ReplayContext& c);
Part<Gpu> replay_gpu(const ReplayContext& c, Notes& notes);
Part<Cluster> replay_cluster(const ReplayContext& c, const Gpu& gpu, int gpus, Notes& notes);

// replay_framework.cpp
Part<const MethodReading*> replay_method(const ReplayContext& c, Notes& notes);
const Framework& replay_row(const ReplayContext& c, Method method, Notes& notes);
DType replay_compute(const ReplayContext& c, const Framework& row, const Gpu& gpu, Notes& notes);
// The format of this plan: where only FSDP would lower it and nothing shards, it stays wide.
DType unsharded_compute(const ReplayContext& c, const Framework& row, const ParallelPlan& plan,
                        DType compute, Notes& notes);
// The row for this run: the one that holds with ZeRO on, its defaults resolved, and the record's
// own statements (kernels, attention, loss, gradient format) put in their place.
Framework replay_framework(const ReplayContext& c, const Framework& row, Method method,
                           DType compute, int zero_stage);

// replay_plan.cpp: everything but `recompute`, whose default is the resolved framework's.
Part<ParallelPlan> replay_plan(const ReplayContext& c, const Framework& row, DType compute,
                               Notes& notes);

// replay_workload.cpp
Part<Workload> replay_workload(const ReplayContext& c, const MethodReading& method, DType compute,
                               const Framework& framework, const ParallelPlan& plan, Notes& notes);

}  // namespace shardwise
