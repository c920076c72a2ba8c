// Which model chunk a stage's local chunk is.
#include "simulator/schedules/schedules.hpp"

namespace shardwise::schedules {

int looped_model_chunks(PipelineShape shape) { return shape.stages * shape.chunks_per_stage; }
int looped_model_chunk(PipelineShape shape, int stage, int chunk) {
  return chunk * shape.stages + stage;
}

int v_shaped_model_chunks(PipelineShape shape) { return 2 * shape.stages; }
int v_shaped_model_chunk(PipelineShape shape, int stage, int chunk) {
  return chunk == 0 ? stage : 2 * shape.stages - 1 - stage;
}

int mirrored_model_chunks(PipelineShape shape) { return shape.stages; }
int mirrored_model_chunk(PipelineShape shape, int stage, int chunk) {
  return chunk == 0 ? stage : shape.stages - 1 - stage;
}

}  // namespace shardwise::schedules
