#include "catalog/framework_groups.hpp"
#include "catalog/framework_names.hpp"

namespace shardwise::framework_groups {
namespace {

ShardedParameters read_sharded(JsonReader r) {
  ShardedParameters s;
  s.gathered_layers_forward = r.number("gathered_layers_forward", 0, 1000);
  s.gathered_layers_backward = r.number("gathered_layers_backward", 0, 1000);
  s.copy_out = r.flag("copy_out");
  s.joins_gradients = r.maybe_flag("joins_gradients").value_or(false);
  s.steps_whole_units = r.maybe_flag("steps_whole_units").value_or(false);
  s.copies_gradients = r.maybe_flag("copies_gradients").value_or(false);
  s.reshard_after_forward = r.flag("reshard_after_forward");
  s.reshard_with_pipeline = r.maybe_flag("reshard_with_pipeline").value_or(true);
  s.root_holds_ends = r.maybe_flag("root_holds_ends").value_or(false);
  s.embedding_is_unit = r.maybe_flag("embedding_is_unit").value_or(false);
  s.saved_for_backward = r.maybe_flag("saved_for_backward").value_or(false);
  s.prefetches_after_loss = r.maybe_flag("prefetches_after_loss").value_or(false);
  s.units_per_block = r.maybe_integer("units_per_block", 1, 1000).value_or(1);
  if (r.has("live_parameters_bytes")) s.live_parameters = read_bytes(r, "live_parameters_bytes");
  r.finish();
  return s;
}

WrittenOptimizer read_optimizer(JsonReader r) {
  WrittenOptimizer o;
  o.kernels = r.integer("kernels", 1, 1000);
  o.values = r.number("values", 1, 1000);
  o.temporaries = r.integer("temporaries", 0, 100);
  r.finish();
  return o;
}

}  // namespace

FrameworkFormats read_formats(JsonReader& r) {
  FrameworkFormats formats;
  formats.pretrain_weights = r.choice("pretrain_weights", weight_recipe_names);
  formats.finetune_weights = r.choice("finetune_weights", weight_recipe_names);
  formats.frozen_dtype = read_dtype(r, "frozen_dtype");
  formats.autocast = r.flag("autocast");
  formats.autocast_caches_weights = r.flag("autocast_caches_weights");
  return formats;
}

FrameworkGradients read_gradients(JsonReader& r) {
  FrameworkGradients gradients;
  gradients.dtype = read_dtype(r, "gradient_dtype");
  gradients.dtype_fp16 = maybe_dtype(r, "gradient_dtype_fp16");
  gradients.reduce_dtype = read_dtype(r, "reduce_dtype");
  gradients.life = r.choice("gradient_life", gradient_life_names);
  gradients.life_fp16 = r.maybe_choice("gradient_life_fp16", gradient_life_names);
  gradients.copy_while_accumulating = r.flag("gradient_copy_while_accumulating");
  gradients.copy_life = r.choice("gradient_copy_life", gradient_copy_life_names);
  gradients.fusion = r.flag("gradient_fusion");
  gradients.reduces_every_microbatch = r.flag("reduces_every_microbatch");
  gradients.pipelines_reduce_once = r.maybe_flag("pipelines_reduce_once").value_or(false);
  gradients.accumulates_in_reduce_dtype =
      r.maybe_flag("accumulates_in_reduce_dtype").value_or(false);
  gradients.bucket = read_bytes(r, "gradient_bucket_bytes");
  if (r.has("gradient_bucket_bytes_stage_2"))
    gradients.bucket_stage_2 = read_bytes(r, "gradient_bucket_bytes_stage_2");
  gradients.bucket_copies = r.flag("bucket_copies_gradients");
  gradients.copies_into_buckets = r.maybe_flag("copies_into_buckets").value_or(false);
  gradients.reduce_buffers = r.integer("reduce_buffers", 0, 100);
  gradients.buffers_from_stage_2 = r.maybe_flag("buffers_from_stage_2").value_or(false);
  gradients.reduces_flat_buckets = r.maybe_flag("reduces_flat_buckets").value_or(false);
  gradients.reduces_flat_gradient = r.maybe_flag("reduces_flat_gradient").value_or(false);
  gradients.stage_1_all_reduces = r.flag("stage_1_all_reduces");
  gradients.stage_2_all_reduces = r.maybe_flag("stage_2_all_reduces").value_or(false);
  gradients.overlap_reduce = r.flag("overlap_gradient_reduce");
  gradients.overlap_reduce_at_stage_2 = r.maybe_flag("overlap_reduce_at_stage_2");
  gradients.overlap_reduce_at_stage_3 = r.maybe_flag("overlap_reduce_at_stage_3").value_or(true);
  gradients.reference_has_gradients = r.maybe_flag("reference_has_gradients").value_or(false);
  return gradients;
}

FrameworkSharding read_sharding(JsonReader& r) {
  FrameworkSharding sharding;
  sharding.parameters = read_sharded(r.object("sharded"));
  sharding.gathers_as_stored = r.maybe_flag("gathers_as_stored").value_or(false);
  sharding.overlap_gather = r.flag("overlap_parameter_gather");
  sharding.stage_2_gathers = r.maybe_flag("stage_2_gathers").value_or(false);
  sharding.bf16_shards_at_stage_0 = r.maybe_flag("bf16_shards_at_stage_0").value_or(false);
  sharding.wraps_one_rank = r.maybe_flag("wraps_one_rank").value_or(false);
  sharding.flat_parameters_mix_frozen = r.maybe_flag("flat_parameters_mix_frozen").value_or(false);
  sharding.frozen_units_keep_inputs = r.maybe_flag("frozen_units_keep_inputs").value_or(false);
  sharding.fsdp1_keeps_inputs = r.maybe_flag("fsdp1_keeps_inputs").value_or(false);
  sharding.gathers_flat_copies = r.maybe_flag("gathers_flat_copies").value_or(false);
  sharding.checkpoints_gather_again = r.maybe_flag("checkpoints_gather_again").value_or(false);
  sharding.saves_whole = r.maybe_flag("saves_whole").value_or(false);
  sharding.fetch_reuse_elements =
      r.maybe_integer("fetch_reuse_elements", 1, 2'000'000'000).value_or(0);
  sharding.fetch_elements = r.maybe_integer("fetch_elements", 1, 1'000'000'000).value_or(0);
  sharding.quantized = r.flag("quantized_sharding");
  sharding.moves_constants = r.maybe_flag("moves_constants").value_or(false);
  return sharding;
}

FrameworkUpdate read_update(JsonReader& r) {
  FrameworkUpdate update;
  update.fused = r.flag("fused_optimizer");
  update.foreach = r.maybe_flag("foreach_optimizer").value_or(true);
  update.foreach_lists = r.maybe_integer("foreach_lists", 1, 2).value_or(1);
  if (r.has("written_optimizer")) update.written = read_optimizer(r.object("written_optimizer"));
  update.cpu_adam = r.maybe_flag("cpu_adam").value_or(false);
  update.states_at_start = r.maybe_flag("states_at_start").value_or(false);
  update.flat_shard = r.maybe_flag("flat_shard").value_or(false);
  update.remaps_weights = r.maybe_flag("remaps_weights").value_or(false);
  update.clones_partition = r.maybe_flag("clones_partition").value_or(false);
  update.fp32_gradient_at_step = r.flag("fp32_gradient_at_step");
  update.keeps_remainders = r.maybe_flag("keeps_remainders").value_or(false);
  update.widens_moments = r.maybe_flag("widens_moments").value_or(false);
  update.rounds_stochastically = r.maybe_flag("rounds_stochastically").value_or(false);
  update.clips_gradients = r.flag("clips_gradients");
  update.checks_gradients = r.maybe_flag("checks_gradients").value_or(false);
  update.norm_in_double = r.maybe_flag("norm_in_double").value_or(false);
  update.checks_partition = r.maybe_flag("checks_partition").value_or(false);
  update.wide_gradient_checks_fp16 = r.maybe_flag("wide_gradient_checks_fp16").value_or(false);
  update.wide_gradient_checks = r.maybe_flag("wide_gradient_checks").value_or(false);
  return update;
}

FrameworkParallel read_parallel(JsonReader& r) {
  FrameworkParallel parallel;
  parallel.sequence_parallel = r.flag("sequence_parallel");
  parallel.regathers_sequence = r.flag("regathers_sequence");
  parallel.keeps_gather_buffers = r.maybe_flag("keeps_gather_buffers").value_or(false);
  parallel.overlap_tensor_comm = r.flag("overlap_tensor_comm");
  parallel.overlap_tensor_in_mixtures = r.maybe_flag("overlap_tensor_in_mixtures").value_or(true);
  parallel.overlap_tensor_in_four_bits = r.maybe_flag("overlap_tensor_in_four_bits").value_or(true);
  parallel.overlap_tensor_backward = r.flag("overlap_tensor_backward");
  parallel.copies_linear_inputs = r.maybe_flag("copies_linear_inputs").value_or(false);
  parallel.exchanges_per_linear = r.maybe_flag("exchanges_per_linear").value_or(false);
  parallel.sums_gate_and_up_apart = r.maybe_flag("sums_gate_and_up_apart").value_or(false);
  parallel.dtensor = r.maybe_flag("dtensor_parallel").value_or(false);
  parallel.whole_tables = r.maybe_flag("whole_tables").value_or(false);
  parallel.pads_vocabulary = r.flag("pads_vocabulary");
  parallel.vocabulary_multiple = r.integer("vocabulary_multiple", 1, 1 << 20);
  parallel.overlap_pipeline_comm = r.flag("overlap_pipeline_comm");
  parallel.overlap_interleaved_comm =
      r.maybe_flag("overlap_interleaved_comm").value_or(parallel.overlap_pipeline_comm);
  parallel.partitions_pipeline_messages =
      r.maybe_flag("partitions_pipeline_messages").value_or(false);
  parallel.holds_stage_outputs = r.maybe_flag("holds_stage_outputs").value_or(false);
  parallel.whole_stage_outputs = r.maybe_flag("whole_stage_outputs").value_or(false);
  parallel.keeps_receive_buffers = r.maybe_flag("keeps_receive_buffers").value_or(false);
  parallel.ties_over_stages = r.maybe_flag("ties_over_stages").value_or(true);
  parallel.stage_balance = r.choice("stage_balance", stage_balance_names);
  parallel.context_kind = r.choice("context_kind", context_kind_names);
  parallel.context_merge =
      r.maybe_choice("context_merge", context_merge_names).value_or(ContextMerge::fused_half);
  parallel.context_in_order = r.maybe_flag("context_in_order").value_or(false);
  return parallel;
}

FrameworkLoading read_loading(JsonReader& r) {
  FrameworkLoading loading;
  loading.whole_model_on_gpu = r.flag("loads_whole_model_on_gpu");
  loading.alone_on_gpu = r.maybe_flag("loads_alone_on_gpu").value_or(false);
  loading.every_rank_on_host = r.flag("loads_every_rank_on_host");
  loading.widens_tables = r.maybe_flag("widens_tables_on_load").value_or(false);
  loading.unties_embeddings = r.maybe_flag("unties_embeddings").value_or(false);
  return loading;
}

FrameworkProcess read_process(JsonReader& r) {
  FrameworkProcess process;
  process.expandable_segments = r.flag("expandable_segments");
  process.roundup_power2_divisions = r.integer("roundup_power2_divisions", 0, 1024);
  process.records_streams = r.maybe_flag("records_streams").value_or(false);
  process.library_workspaces =
      r.has("library_workspaces") ? r.integer("library_workspaces", 0, 10) : 0;
  process.grouped_workspaces =
      r.has("grouped_workspaces") ? r.integer("grouped_workspaces", 0, 10) : 0;
  process.world_groups = r.maybe_integer("world_groups", 0, 16).value_or(0);
  process.connects_at_once = r.maybe_flag("connects_at_once").value_or(false);
  process.eager_module_loading = r.maybe_flag("eager_module_loading").value_or(false);
  return process;
}

FrameworkHost read_host(JsonReader& r) {
  FrameworkHost host;
  host.us_per_kernel = r.number("host_us_per_kernel", 0, 1e6);
  host.us_per_sharded_module = r.maybe_number("host_us_per_sharded_module", 0, 1e6).value_or(0);
  host.us_per_sharded_unit = r.maybe_number("host_us_per_sharded_unit", 0, 1e6).value_or(0);
  host.us_per_reduction = r.maybe_number("host_us_per_reduction", 0, 1e6).value_or(0);
  host.us_per_gradient = r.maybe_number("host_us_per_gradient", 0, 1e6).value_or(0);
  host.us_per_gradient_stage_2 = r.maybe_number("host_us_per_gradient_stage_2", 0, 1e6).value_or(0);
  host.us_per_stepped_tensor = r.maybe_number("host_us_per_stepped_tensor", 0, 1e6).value_or(0);
  host.us_per_read_tensor = r.maybe_number("host_us_per_read_tensor", 0, 1e6).value_or(0);
  host.us_per_read_tensor_stage_3 =
      r.maybe_number("host_us_per_read_tensor_stage_3", 0, 1e6).value_or(0);
  host.us_per_checked_tensor = r.maybe_number("host_us_per_checked_tensor", 0, 1e6).value_or(0);
  return host;
}

}  // namespace shardwise::framework_groups
