// PipelineSchedule: in which order each pipeline stage runs its passes.
//
// Vocabulary. p *stages*, one per pipeline rank, in a row. The layers are cut into *model chunks*,
// 0 with the embedding to the last with the head; a stage holds `chunks_per_stage` of them, and
// `model_chunk(shape, stage, chunk)` says which. m *microbatches* pass every model chunk forward in
// rising order, then backward in falling order. A slot is one pass of one microbatch through one
// local chunk; a stage runs its slots strictly in order, each as soon as its input is there.
//
// What a slot needs, with c its model chunk and C = model_chunks(shape):
//   forward           forward of c - 1 for the same microbatch (none for c = 0)
//   backward(_input)  its own forward, and backward(_input) of c + 1 (none for c = C - 1)
//   backward_weight   its own backward_input
//
// A schedule is a row of `kPipelineSchedules`: to add one, write a file in schedules/ and its row.
// Rows are data: that every microbatch passes every model chunk once, and that no shape deadlocks,
// is swept by tests over all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

enum class Pass : std::uint8_t {
  forward,
  backward,         // for inputs and weights in one go
  backward_input,   // the half that the stage before waits for
  backward_weight,  // the half that only the optimizer waits for
};

struct Slot {
  Pass pass = Pass::forward;
  int microbatch = 0;
  int chunk = 0;  // local: 0 .. chunks_per_stage - 1

  // Runs as one with the slot after it (always a forward with a backward): both start when both
  // have their inputs, and the communication of each hides behind the other (DualPipe).
  bool paired_with_next = false;

  friend bool operator==(const Slot&, const Slot&) = default;
};

struct PipelineShape {
  int stages = 1;
  int chunks_per_stage = 1;
  int microbatches = 1;

  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

struct PipelineSchedule {
  std::string_view name;     // as written in plans: "1f1b"
  std::string_view summary;  // one line for listings
  std::string_view source;   // where the order was read
  bool splits_backward;      // its slots hold backward_input and backward_weight passes
  int weight_copies;         // how often the stages together hold the model: 1, DualPipe 2
  std::optional<int> chunks_per_stage;  // nothing: any number from 2

  // Why the shape cannot be run, as what follows the schedule's name in a sentence for the user, or
  // nothing. REQUIRES: at least 1 stage, chunks as above and 1 microbatch; `refusal` below checks
  // that first. nullptr: nothing else is refused.
  std::optional<std::string> (*refuses)(PipelineShape shape);

  // The slots of `stage`, in order. REQUIRES: refuses(shape) is nothing, 0 <= stage < stages.
  std::vector<Slot> (*order)(PipelineShape shape, int stage);

  // How many model chunks there are, and which one local `chunk` of `stage` is.
  int (*model_chunks)(PipelineShape shape);
  int (*model_chunk)(PipelineShape shape, int stage, int chunk);
};

// The microbatches that a chunk of a stage runs, of `all`: where the model is held twice, each copy
// takes its half (DualPipe).
struct MicrobatchRange {
  int first = 0, last = 0;
};
inline MicrobatchRange microbatches_of(const PipelineSchedule& schedule, int chunk, int all) {
  if (schedule.weight_copies == 1) return {0, all - 1};
  const int each = all / schedule.weight_copies;
  return {chunk * each, (chunk + 1) * each - 1};
}

// All schedules, in the order of listings.
std::span<const PipelineSchedule> pipeline_schedules();

// The row of that name, or nullptr where there is none.
const PipelineSchedule* find_pipeline_schedule(std::string_view name);

// Why `schedule` cannot run `shape` (also a shape with less than one of anything), or nothing.
std::optional<std::string> refusal(const PipelineSchedule& schedule, PipelineShape shape);

// The most microbatch-chunks whose activations `slots` hold at once, counted per chunk from its
// forward until its backward (or its backward_weight, which still needs the saved inputs).
int peak_in_flight(std::span<const Slot> slots);

}  // namespace shardwise
