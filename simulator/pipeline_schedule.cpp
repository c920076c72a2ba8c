#include "simulator/pipeline_schedule.hpp"

#include <algorithm>
#include <array>

#include "simulator/parallel_plan.hpp"
#include "simulator/schedules/schedules.hpp"

namespace shardwise {
namespace {

constexpr std::array kPipelineSchedules = {
    PipelineSchedule{
        .name = "gpipe",
        .summary = "all forwards, then all backwards; every microbatch in flight",
        .source = "arXiv 1811.06965; PyTorch ScheduleGPipe",
        .splits_backward = false,
        .weight_copies = 1,
        .chunks_per_stage = 1,
        .refuses = nullptr,
        .order = schedules::gpipe_order,
        .model_chunks = schedules::looped_model_chunks,
        .model_chunk = schedules::looped_model_chunk,
    },
    PipelineSchedule{
        .name = layer_split_schedule,
        .summary = "one microbatch at a time through all stages (device_map)",
        .source = "huggingface/accelerate src/accelerate/hooks.py, AlignDevicesHook",
        .splits_backward = false,
        .weight_copies = 1,
        .chunks_per_stage = 1,
        .refuses = nullptr,
        .order = schedules::sequential_order,
        .model_chunks = schedules::looped_model_chunks,
        .model_chunk = schedules::looped_model_chunk,
    },
    PipelineSchedule{
        .name = usual_schedule,
        .summary = "one forward, one backward; at most p microbatches in flight",
        .source = "arXiv 2104.04473 section 2.2.1; Megatron-LM, PyTorch Schedule1F1B",
        .splits_backward = false,
        .weight_copies = 1,
        .chunks_per_stage = 1,
        .refuses = nullptr,
        .order = schedules::one_f_one_b_order,
        .model_chunks = schedules::looped_model_chunks,
        .model_chunk = schedules::looped_model_chunk,
    },
    PipelineSchedule{
        .name = chunked_schedule,
        .summary = "1f1b over v chunks per stage: the bubble over v, v times the sends",
        .source = "arXiv 2104.04473 section 2.2.2; Megatron-LM, PyTorch ScheduleInterleaved1F1B",
        .splits_backward = false,
        .weight_copies = 1,
        .chunks_per_stage = std::nullopt,
        .refuses = schedules::interleaved_refuses,
        .order = schedules::interleaved_order,
        .model_chunks = schedules::looped_model_chunks,
        .model_chunk = schedules::looped_model_chunk,
    },
    PipelineSchedule{
        .name = "zb-h1",
        .summary = "1f1b with the weight half of backward moved into the bubble; its memory",
        .source = "arXiv 2401.10241; PyTorch ScheduleInterleavedZeroBubble",
        .splits_backward = true,
        .weight_copies = 1,
        .chunks_per_stage = 1,
        .refuses = nullptr,
        .order = schedules::zb_h1_order,
        .model_chunks = schedules::looped_model_chunks,
        .model_chunk = schedules::looped_model_chunk,
    },
    PipelineSchedule{
        .name = "zb-v",
        .summary = "two chunks per stage in a V, split backward; no bubble where F = I = W",
        .source = "arXiv 2401.10241 section 6; PyTorch ScheduleZBVZeroBubble",
        .splits_backward = true,
        .weight_copies = 1,
        .chunks_per_stage = 2,
        .refuses = nullptr,
        .order = schedules::zb_v_order,
        .model_chunks = schedules::v_shaped_model_chunks,
        .model_chunk = schedules::v_shaped_model_chunk,
    },
    PipelineSchedule{
        .name = "dualpipe",
        .summary = "microbatches from both ends, forward paired with backward; weights twice",
        .source = "arXiv 2412.19437 section 3.2.1; github.com/deepseek-ai/DualPipe",
        .splits_backward = true,
        .weight_copies = 2,
        .chunks_per_stage = 2,
        .refuses = schedules::dualpipe_refuses,
        .order = schedules::dualpipe_order,
        .model_chunks = schedules::mirrored_model_chunks,
        .model_chunk = schedules::mirrored_model_chunk,
    },
    PipelineSchedule{
        .name = "dualpipe-v",
        .summary = "dualpipe folded into a V: weights once, a microbatch passes a stage twice",
        .source = "github.com/deepseek-ai/DualPipe; PyTorch ScheduleDualPipeV",
        .splits_backward = true,
        .weight_copies = 1,
        .chunks_per_stage = 2,
        .refuses = schedules::dualpipe_v_refuses,
        .order = schedules::dualpipe_v_order,
        .model_chunks = schedules::v_shaped_model_chunks,
        .model_chunk = schedules::v_shaped_model_chunk,
    },
};

// Why the row does not run so many chunks per stage, and what would do.
std::optional<std::string> chunks_refused(const PipelineSchedule& schedule, int chunks) {
  const std::string name(schedule.name), found = std::to_string(chunks);
  if (!schedule.chunks_per_stage) {
    if (chunks > 1) return std::nullopt;
    return name + " runs 2 chunks per stage or more, not 1: say vpp=2, or schedule=1f1b";
  }
  const int wanted = *schedule.chunks_per_stage;
  if (chunks == wanted) return std::nullopt;
  return name + " runs " + std::to_string(wanted) + (wanted == 1 ? " chunk" : " chunks") +
         " per stage, not " + found + ": say vpp=" + std::to_string(wanted) +
         (chunks > 1 ? ", or schedule=interleaved with vpp=" + found : "");
}

}  // namespace

std::span<const PipelineSchedule> pipeline_schedules() { return kPipelineSchedules; }

const PipelineSchedule* find_pipeline_schedule(std::string_view name) {
  for (const PipelineSchedule& schedule : kPipelineSchedules) {
    if (schedule.name == name) return &schedule;
  }
  return nullptr;
}

std::optional<std::string> refusal(const PipelineSchedule& schedule, PipelineShape shape) {
  if (shape.stages < 1) return "there must be at least 1 stage";
  if (shape.chunks_per_stage < 1) return "there must be at least 1 chunk per stage";
  if (shape.microbatches < 1) return "there must be at least 1 microbatch";
  if (auto reason = chunks_refused(schedule, shape.chunks_per_stage)) return reason;
  if (schedule.refuses == nullptr) return std::nullopt;
  const auto reason = schedule.refuses(shape);
  if (!reason) return std::nullopt;
  return std::string(schedule.name) + ' ' + *reason;
}

int peak_in_flight(std::span<const Slot> slots) {
  int in_flight = 0;
  int peak = 0;
  for (const Slot& slot : slots) {
    if (slot.pass == Pass::forward) peak = std::max(peak, ++in_flight);
    if (slot.pass == Pass::backward || slot.pass == Pass::backward_weight) --in_flight;
  }
  return peak;
}

}  // namespace shardwise
