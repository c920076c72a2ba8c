// What the schedule files and the table in pipeline_schedule.cpp share: the functions of the rows.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "simulator/pipeline_schedule.hpp"

namespace shardwise::schedules {

inline Slot forward(int microbatch, int chunk = 0) { return {Pass::forward, microbatch, chunk}; }
inline Slot backward(int microbatch, int chunk = 0) { return {Pass::backward, microbatch, chunk}; }
inline Slot backward_input(int microbatch, int chunk = 0) {
  return {Pass::backward_input, microbatch, chunk};
}
inline Slot backward_weight(int microbatch, int chunk = 0) {
  return {Pass::backward_weight, microbatch, chunk};
}

// Placement of model chunks (placement.cpp).
int looped_model_chunks(PipelineShape shape);  // p v: chunk k of stage r is k p + r
int looped_model_chunk(PipelineShape shape, int stage, int chunk);
int v_shaped_model_chunks(PipelineShape shape);  // 2 p: stage r holds r and 2 p - 1 - r
int v_shaped_model_chunk(PipelineShape shape, int stage, int chunk);
int mirrored_model_chunks(PipelineShape shape);  // p, held twice: stage r holds r and p - 1 - r
int mirrored_model_chunk(PipelineShape shape, int stage, int chunk);

std::vector<Slot> sequential_order(PipelineShape shape, int stage);

std::vector<Slot> gpipe_order(PipelineShape shape, int stage);

std::vector<Slot> one_f_one_b_order(PipelineShape shape, int stage);

std::optional<std::string> interleaved_refuses(PipelineShape shape);
std::vector<Slot> interleaved_order(PipelineShape shape, int stage);

std::vector<Slot> zb_h1_order(PipelineShape shape, int stage);
std::vector<Slot> zb_v_order(PipelineShape shape, int stage);

std::optional<std::string> dualpipe_refuses(PipelineShape shape);
std::vector<Slot> dualpipe_order(PipelineShape shape, int stage);
std::optional<std::string> dualpipe_v_refuses(PipelineShape shape);
std::vector<Slot> dualpipe_v_order(PipelineShape shape, int stage);

}  // namespace shardwise::schedules
