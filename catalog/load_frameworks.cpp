#include <algorithm>
#include <string>

#include "catalog/framework.hpp"
#include "catalog/framework_names.hpp"
#include "catalog/framework_row.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"
#include "catalog/optimizer.hpp"

namespace shardwise {
namespace {

// A run may say that its loss is cut where the row of its framework has another: as the kernel
// comes, with its filter, (95 - 43) / 86 of the product that makes the logits (arXiv 2411.09009v1,
// table A2: Gemma 2 2B on 8,192 tokens, A100).
constexpr double filtered_share = 0.6;

Method method_of(JsonReader& r) {
  const auto method = method_named(r.text("method"));
  if (!method) r.problem("method", "name of a method");
  return method.value_or(Method::full);
}

constexpr double most_bytes = 1e13;

std::optional<DType> maybe_dtype(JsonReader& r, std::string_view key) {
  const auto found = r.choice_index(key, names_in(dtype_rows), false);
  if (!found) return std::nullopt;
  return dtype_rows[*found].dtype;
}

DType dtype(JsonReader& r, std::string_view key) {
  if (!r.has(key)) r.problem(key, "a number format");
  return maybe_dtype(r, key).value_or(DType::bf16);
}

Bytes bytes(JsonReader& r, std::string_view key) {
  return Bytes(r.integer64(key, 0, static_cast<std::int64_t>(most_bytes)));
}

void read_names(JsonReader& r, Framework& f) {
  f.id = r.text("id");
  f.name = r.text("name");
  f.family = r.maybe_text("family").value_or(f.id);
  f.match = r.texts("match");
  f.is_engine = r.maybe_flag("is_engine").value_or(false);
  f.match_trainer = r.texts("match_trainer");
  f.refines = r.maybe_text("refines").value_or("");
  f.match_note = r.texts("match_note");
  f.with_zero = r.maybe_text("with_zero").value_or("");
  for (JsonReader& alone : r.objects("with_zero_alone")) {
    f.with_zero_alone.push_back({method_of(alone), alone.integer("stage", 1, 3)});
    alone.finish();
  }
  f.in_fp32 = r.maybe_text("in_fp32").value_or("");
  if (r.has("version")) f.version = r.maybe_text("version").value_or("");
  for (const std::string& word : f.match_trainer)
    if (!f.is_engine || std::find(f.match.begin(), f.match.end(), word) == f.match.end())
      r.problem("match_trainer", "words of an engine's match");
  for (const std::string& word : f.match)
    if (std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      r.problem("match", "lower-case words");
}

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
  if (r.has("live_parameters_bytes")) s.live_parameters = bytes(r, "live_parameters_bytes");
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

void read_states(JsonReader& r, Framework& f) {
  f.pretrain_weights = r.choice("pretrain_weights", weight_recipe_names);
  f.finetune_weights = r.choice("finetune_weights", weight_recipe_names);
  f.frozen_dtype = dtype(r, "frozen_dtype");
  f.quantized_linear_follows_input = r.maybe_flag("quantized_linear_follows_input").value_or(false);
  f.quantized_linear_keeps_input = r.maybe_flag("quantized_linear_keeps_input").value_or(false);
  f.flat_parameters_mix_frozen = r.maybe_flag("flat_parameters_mix_frozen").value_or(false);
  f.frozen_units_keep_inputs = r.maybe_flag("frozen_units_keep_inputs").value_or(false);
  f.fsdp1_keeps_inputs = r.maybe_flag("fsdp1_keeps_inputs").value_or(false);
  f.adapts_experts = r.maybe_flag("adapts_experts").value_or(false);
  f.sums_expert_adapters = r.maybe_flag("sums_expert_adapters").value_or(false);
  f.wraps_one_rank = r.maybe_flag("wraps_one_rank").value_or(false);
  f.reference_has_gradients = r.maybe_flag("reference_has_gradients").value_or(false);
  f.gradient_dtype = dtype(r, "gradient_dtype");
  f.gradient_dtype_fp16 = maybe_dtype(r, "gradient_dtype_fp16");
  f.reduce_dtype = dtype(r, "reduce_dtype");
  f.gradient_life = r.choice("gradient_life", gradient_life_names);
  f.gradient_life_fp16 = r.maybe_choice("gradient_life_fp16", gradient_life_names);
  f.wide_gradient_checks = r.maybe_flag("wide_gradient_checks").value_or(false);
  f.wide_gradient_checks_fp16 = r.maybe_flag("wide_gradient_checks_fp16").value_or(false);
  f.gradient_copy_while_accumulating = r.flag("gradient_copy_while_accumulating");
  f.gradient_copy_life = r.choice("gradient_copy_life", gradient_copy_life_names);
  f.bucket_copies_gradients = r.flag("bucket_copies_gradients");
  f.copies_into_buckets = r.maybe_flag("copies_into_buckets").value_or(false);
  f.gradient_bucket = bytes(r, "gradient_bucket_bytes");
  if (r.has("gradient_bucket_bytes_stage_2"))
    f.gradient_bucket_stage_2 = bytes(r, "gradient_bucket_bytes_stage_2");
  f.fp32_gradient_at_step = r.flag("fp32_gradient_at_step");
  f.keeps_remainders = r.maybe_flag("keeps_remainders").value_or(false);
  f.widens_moments = r.maybe_flag("widens_moments").value_or(false);
  f.reduce_buffers = r.integer("reduce_buffers", 0, 100);
  f.buffers_from_stage_2 = r.maybe_flag("buffers_from_stage_2").value_or(false);
  f.stage_2_gathers = r.maybe_flag("stage_2_gathers").value_or(false);
  f.flat_shard = r.maybe_flag("flat_shard").value_or(false);
  f.reduces_flat_buckets = r.maybe_flag("reduces_flat_buckets").value_or(false);
  f.reduces_flat_gradient = r.maybe_flag("reduces_flat_gradient").value_or(false);
  f.remaps_weights = r.maybe_flag("remaps_weights").value_or(false);
  f.states_at_start = r.maybe_flag("states_at_start").value_or(false);
  f.clones_partition = r.maybe_flag("clones_partition").value_or(false);
  f.sharded = read_sharded(r.object("sharded"));
  f.gathers_as_stored = r.maybe_flag("gathers_as_stored").value_or(false);
}

void read_communication(JsonReader& r, Framework& f) {
  f.overlap_gradient_reduce = r.flag("overlap_gradient_reduce");
  f.overlap_reduce_at_stage_2 = r.maybe_flag("overlap_reduce_at_stage_2");
  f.overlap_reduce_at_stage_3 = r.maybe_flag("overlap_reduce_at_stage_3").value_or(true);
  f.overlap_parameter_gather = r.flag("overlap_parameter_gather");
  f.overlap_tensor_comm = r.flag("overlap_tensor_comm");
  f.overlap_tensor_in_mixtures = r.maybe_flag("overlap_tensor_in_mixtures").value_or(true);
  f.overlap_tensor_in_four_bits = r.maybe_flag("overlap_tensor_in_four_bits").value_or(true);
  f.overlap_tensor_backward = r.flag("overlap_tensor_backward");
  f.overlap_pipeline_comm = r.flag("overlap_pipeline_comm");
  f.overlap_interleaved_comm =
      r.maybe_flag("overlap_interleaved_comm").value_or(f.overlap_pipeline_comm);
  f.partitions_pipeline_messages = r.maybe_flag("partitions_pipeline_messages").value_or(false);
  f.reduces_every_microbatch = r.flag("reduces_every_microbatch");
  f.pipelines_reduce_once = r.maybe_flag("pipelines_reduce_once").value_or(false);
  f.accumulates_in_reduce_dtype = r.maybe_flag("accumulates_in_reduce_dtype").value_or(false);
  f.copies_linear_inputs = r.maybe_flag("copies_linear_inputs").value_or(false);
  f.exchanges_per_linear = r.maybe_flag("exchanges_per_linear").value_or(false);
  f.sums_gate_and_up_apart = r.maybe_flag("sums_gate_and_up_apart").value_or(false);
  f.stage_1_all_reduces = r.flag("stage_1_all_reduces");
  f.bf16_shards_at_stage_0 = r.maybe_flag("bf16_shards_at_stage_0").value_or(false);
  f.stage_2_all_reduces = r.maybe_flag("stage_2_all_reduces").value_or(false);
  f.sequence_parallel = r.flag("sequence_parallel");
  f.regathers_sequence = r.flag("regathers_sequence");
}

LoggedLogits read_logged(JsonReader r) {
  LoggedLogits l;
  l.bytes = r.number("bytes", 1, 256);
  l.slice_tokens = r.integer("slice_tokens", 1, 1 << 20);
  l.kernels = r.integer("kernels", 1, 100);
  r.finish();
  return l;
}

// But for a slice of the tokens, or for none at all.
bool makes_no_logits(LossKind loss) {
  return loss == LossKind::chunked || loss == LossKind::fused_linear || loss == LossKind::cut;
}

void read_loss(JsonReader& r, Framework& f) {
  f.loss = r.choice("loss", loss_kind_names);
  f.fused_loss = r.maybe_choice("fused_loss", loss_kind_names).value_or(LossKind::fused_linear);
  f.slices_go_back = r.maybe_flag("slices_go_back").value_or(false);
  const bool cuts = f.loss == LossKind::cut || f.fused_loss == LossKind::cut;
  f.cut_gradient_share = cuts ? r.number("cut_gradient_share", 0.01, 100) : filtered_share;
  f.loss_chunks = r.integer("loss_chunks", 1, 100000);
  if (r.has("loss_slice_bytes")) f.loss_slice = bytes(r, "loss_slice_bytes");
  f.loss_slice_tokens = r.maybe_integer("loss_slice_tokens", 1, 1 << 20);
  f.loss_slice_logit_bytes = r.maybe_number("loss_slice_logit_bytes", 1, 64);
  f.loss_slice_moved_bytes = r.maybe_number("loss_slice_moved_bytes", 1, 256);
  f.loss_copies_head = r.maybe_flag("loss_copies_head").value_or(false);
  f.loss_recomputes_slices = r.maybe_flag("loss_recomputes_slices").value_or(false);
  f.loss_keeps_slices = r.maybe_flag("loss_keeps_slices").value_or(false);
  f.loss_makes_slices_first = r.maybe_flag("loss_makes_slices_first").value_or(false);
  f.head_slice = r.maybe_integer("head_slice", 1, 1 << 20);
  f.loss_upcasts = r.flag("loss_upcasts");
  f.dtensor_parallel = r.maybe_flag("dtensor_parallel").value_or(false);
  f.gathers_logits = r.maybe_flag("gathers_logits").value_or(false);
  f.whole_tables = r.maybe_flag("whole_tables").value_or(false);
  f.lays_out_results = r.maybe_flag("lays_out_results").value_or(false);
  f.z_loss = r.maybe_flag("z_loss").value_or(false);
  f.loss_fp32_temporaries = r.integer("loss_fp32_temporaries", 0, 10);
  f.compiles_loss = r.maybe_flag("compiles_loss").value_or(false);
  f.compiles_loss_alone = r.maybe_flag("compiles_loss_alone").value_or(false);
  f.upcasts_in_loss = r.maybe_flag("upcasts_in_loss").value_or(false);
  if (r.has("logged_logits")) {
    f.logged_logits = read_logged(r.object("logged_logits"));
    if (makes_no_logits(f.loss)) r.problem("logged_logits", "absent where no logits are whole");
  }
  f.returns_fp32_logits = r.maybe_flag("returns_fp32_logits").value_or(false);
  f.joins_context_logits = r.maybe_flag("joins_context_logits").value_or(false);
  f.returns_logits = r.maybe_flag("returns_logits").value_or(false);
  f.loss_under_autocast = r.maybe_flag("loss_under_autocast").value_or(false);
  f.loss_takes_slices = r.maybe_flag("loss_takes_slices").value_or(false);
  f.output_holds_logits = r.maybe_flag("output_holds_logits").value_or(false);
  f.output_holds_keys = r.maybe_flag("output_holds_keys").value_or(false);
  f.output_life = r.maybe_choice("output_life", output_life_names).value_or(OutputLife::backward);
}

void read_host_times(JsonReader& r, Framework& f) {
  f.host_us_per_kernel = r.number("host_us_per_kernel", 0, 1e6);
  f.checkpoints_gather_again = r.maybe_flag("checkpoints_gather_again").value_or(false);
  f.fetch_reuse_elements = r.maybe_integer("fetch_reuse_elements", 1, 2'000'000'000).value_or(0);
  f.fetch_elements = r.maybe_integer("fetch_elements", 1, 1'000'000'000).value_or(0);
  f.host_us_per_sharded_module = r.maybe_number("host_us_per_sharded_module", 0, 1e6).value_or(0);
  f.host_us_per_sharded_unit = r.maybe_number("host_us_per_sharded_unit", 0, 1e6).value_or(0);
  f.host_us_per_reduction = r.maybe_number("host_us_per_reduction", 0, 1e6).value_or(0);
  f.host_us_per_gradient = r.maybe_number("host_us_per_gradient", 0, 1e6).value_or(0);
  f.host_us_per_gradient_stage_2 =
      r.maybe_number("host_us_per_gradient_stage_2", 0, 1e6).value_or(0);
  f.host_us_per_stepped_tensor = r.maybe_number("host_us_per_stepped_tensor", 0, 1e6).value_or(0);
  f.host_us_per_read_tensor = r.maybe_number("host_us_per_read_tensor", 0, 1e6).value_or(0);
  f.host_us_per_read_tensor_stage_3 =
      r.maybe_number("host_us_per_read_tensor_stage_3", 0, 1e6).value_or(0);
  f.host_us_per_checked_tensor = r.maybe_number("host_us_per_checked_tensor", 0, 1e6).value_or(0);
}

void read_step(JsonReader& r, Framework& f) {
  f.fused_optimizer = r.flag("fused_optimizer");
  f.cpu_adam = r.maybe_flag("cpu_adam").value_or(false);
  f.foreach_optimizer = r.maybe_flag("foreach_optimizer").value_or(true);
  f.foreach_lists = r.maybe_integer("foreach_lists", 1, 2).value_or(1);
  if (r.has("written_optimizer"))
    f.written_optimizer = read_optimizer(r.object("written_optimizer"));
  f.clips_gradients = r.flag("clips_gradients");
  f.checks_gradients = r.maybe_flag("checks_gradients").value_or(false);
  f.norm_in_double = r.maybe_flag("norm_in_double").value_or(false);
  f.checks_partition = r.maybe_flag("checks_partition").value_or(false);
}

void read_recomputation(JsonReader& r, Framework& f) {
  f.recompute_pretrain = r.text("recompute_pretrain");
  f.recompute_finetune = r.text("recompute_finetune");
  f.recompute_quantized = r.maybe_text("recompute_quantized");
  f.offloads_checkpoints_from = r.maybe_integer("offloads_checkpoints_from", 1, 1 << 20);
  f.recomputes_hybrids = r.maybe_flag("recomputes_hybrids").value_or(true);
  f.recompute_stops_early = r.flag("recompute_stops_early");
  f.reentrant_checkpoints =
      r.maybe_flag("reentrant_checkpoints").value_or(!f.recompute_stops_early);
}

void read_kernels(JsonReader& r, Framework& f) {
  f.kernels = r.choice("kernels", kernel_style_names);
  f.delta_rule = r.maybe_choice("delta_rule", delta_rule_names).value_or(DeltaRule::kernels);
  f.runs_transformers = r.maybe_flag("runs_transformers").value_or(false);
  f.fused_norms = r.flag("fused_norms");
  f.patches_built_model = r.maybe_flag("patches_built_model").value_or(false);
  f.fused_rotary = r.maybe_flag("fused_rotary").value_or(false);
  f.eager_activation = r.maybe_flag("eager_activation").value_or(false);
  f.plain_activation = r.maybe_flag("plain_activation").value_or(false);
  f.adds_bias_apart = r.maybe_flag("adds_bias_apart").value_or(false);
  f.half_softmax = r.maybe_flag("half_softmax").value_or(false);
  f.compiles_whole_model = r.maybe_flag("compiles_whole_model").value_or(false);
  f.leaves_odd_lengths = r.maybe_flag("leaves_odd_lengths").value_or(false);
  f.cuts_compiled_graphs = r.maybe_flag("cuts_compiled_graphs").value_or(false);
  f.scales_branches = r.maybe_flag("scales_branches").value_or(false);
  f.rotary_code = r.maybe_choice("rotary_code", rotary_code_names).value_or(RotaryCode::halves);
  f.eager_rotary = r.maybe_flag("eager_rotary").value_or(false);
  f.transposes_attention = r.maybe_flag("transposes_attention").value_or(false);
  f.merges_heads_of_output = r.maybe_flag("merges_heads_of_output").value_or(false);
  f.gathers_angles = r.maybe_flag("gathers_angles").value_or(false);
  f.keeps_dropout_masks = r.maybe_flag("keeps_dropout_masks").value_or(false);
  f.attention = r.choice("attention", attention_kernel_names);
  f.attention_blackwell = r.maybe_choice("attention_blackwell", attention_kernel_names);
  f.attention_by_transformer_engine =
      r.maybe_flag("attention_by_transformer_engine").value_or(false);
  f.cudnn = maybe_release(r, "cudnn");
  f.deterministic = r.maybe_flag("deterministic").value_or(false);
  f.selective_op_omits_cudnn = r.maybe_flag("selective_op_omits_cudnn").value_or(false);
  f.selective_op_omits_all_to_all = r.maybe_flag("selective_op_omits_all_to_all").value_or(false);
  f.attention_repeats_kv = r.flag("attention_repeats_kv");
  f.scales_rows = r.maybe_flag("scales_rows").value_or(false);
  f.weight_cast = r.maybe_choice("weight_cast", weight_cast_names).value_or(WeightCast::once);
  f.narrow_weights =
      r.maybe_choice("narrow_weights", narrow_weights_names).value_or(NarrowWeights::none);
  f.gathers_sequence_quantized = r.maybe_flag("gathers_sequence_quantized").value_or(false);
  f.dispatches_once = r.maybe_flag("dispatches_once").value_or(false);
  f.dispatches_by_map = r.maybe_flag("dispatches_by_map").value_or(false);
  f.overlap_keeps_nodes = r.maybe_flag("overlap_keeps_nodes").value_or(false);
  f.current_scaling = r.maybe_flag("current_scaling").value_or(false);
  f.quantizes_apart = r.maybe_flag("quantizes_apart").value_or(false);
  f.narrow_attention = r.maybe_flag("narrow_attention").value_or(false);
  f.narrow_head = r.maybe_flag("narrow_head").value_or(false);
  f.sequence_first = r.maybe_flag("sequence_first").value_or(false);
  f.norms_add_residual = r.maybe_flag("norms_add_residual").value_or(false);
  f.weighs_expert_bias = r.maybe_flag("weighs_expert_bias").value_or(false);
  f.weighs_in_activation = r.maybe_flag("weighs_in_activation").value_or(false);
  f.moves_rows_by_maps = r.maybe_flag("moves_rows_by_maps").value_or(false);
  f.weighs_rows_apart = r.maybe_flag("weighs_rows_apart").value_or(false);
  f.loops_experts = r.maybe_flag("loops_experts").value_or(false);
  f.torch_grouped_products = r.maybe_flag("torch_grouped_products").value_or(false);
  f.casts_grouped_products = r.maybe_flag("casts_grouped_products").value_or(false);
  f.routes_in_fp32 = r.maybe_flag("routes_in_fp32").value_or(false);
  f.compiles_dispatch = r.maybe_flag("compiles_dispatch").value_or(false);
  f.compiles_adapters = r.maybe_flag("compiles_adapters").value_or(true);
  f.repeats_kv_before_rotary = r.maybe_flag("repeats_kv_before_rotary").value_or(false);
  f.value_is_view_of_qkv = r.maybe_flag("value_is_view_of_qkv").value_or(false);
  f.query_is_view_of_qkv = r.maybe_flag("query_is_view_of_qkv").value_or(false);
  f.masks_padding = r.maybe_flag("masks_padding").value_or(false);
  f.writes_grouped_attention_out = r.maybe_flag("writes_grouped_attention_out").value_or(false);
  f.masks_windows = r.maybe_flag("masks_windows").value_or(false);
  f.indexer_slice = r.maybe_integer("indexer_slice", 1, 1 << 20);
  f.softmax_batches = r.maybe_integer("softmax_batches", 1, 64);
  f.softmax_in_fp32 = r.maybe_flag("softmax_in_fp32").value_or(false);
  f.plain_softmax = r.maybe_flag("plain_softmax").value_or(false);
  f.guards_softmax = r.maybe_flag("guards_softmax").value_or(false);
  f.gradient_fusion = r.flag("gradient_fusion");
  read_loss(r, f);
  read_recomputation(r, f);
  f.autocast = r.flag("autocast");
  f.autocast_caches_weights = r.flag("autocast_caches_weights");
  read_step(r, f);
  f.fitted = fitted_fields(r);
}

void read_finetuning(JsonReader& r, Framework& f) {
  f.adapter_dtype = dtype(r, "adapter_dtype");
  f.adapter_dtype_quantized = maybe_dtype(r, "adapter_dtype_quantized");
  f.upcasts_unquantized = r.flag("upcasts_unquantized");
  f.recasts_tables = r.maybe_flag("recasts_tables").value_or(false);
  f.quantized_sharding = r.flag("quantized_sharding");
  f.moves_constants = r.maybe_flag("moves_constants").value_or(false);
  f.checkpoints_miss_context = r.maybe_flag("checkpoints_miss_context").value_or(false);
  f.quantizes_head = r.maybe_flag("quantizes_head").value_or(false);
  f.quantizes_experts = r.maybe_flag("quantizes_experts").value_or(true);
  f.widens_whole_experts = r.maybe_flag("widens_whole_experts").value_or(false);
  f.dequantizes_experts_at_once = r.maybe_flag("dequantizes_experts_at_once").value_or(false);
  f.dequantized_copies = r.maybe_integer("dequantized_copies", 1, 4).value_or(1);
  f.four_bit_unpacking = r.maybe_choice("four_bit_unpacking", four_bit_unpacking_names)
                             .value_or(LaneLoop::four_bit_lookup);
  f.fuses_adapters = r.maybe_flag("fuses_adapters").value_or(false);
  f.adapts_head = r.maybe_flag("adapts_head").value_or(false);
  f.keeps_replaced_modules = r.maybe_flag("keeps_replaced_modules").value_or(false);
  f.unties_embeddings = r.maybe_flag("unties_embeddings").value_or(false);
  f.ties_over_stages = r.maybe_flag("ties_over_stages").value_or(true);
  f.loads_whole_model_on_gpu = r.flag("loads_whole_model_on_gpu");
  f.widens_tables_on_load = r.maybe_flag("widens_tables_on_load").value_or(false);
  f.loads_every_rank_on_host = r.flag("loads_every_rank_on_host");
  f.loads_alone_on_gpu = r.maybe_flag("loads_alone_on_gpu").value_or(false);
  f.adapter_rank = r.integer("adapter_rank", 1, 100000);
  f.adapter_targets = r.text("adapter_targets");
  f.adapter_dropout = r.number("adapter_dropout", 0, 1);
  const auto found = r.choice_index("default_quantization", names_in(quantization_rows), true);
  f.default_quantization = quantization_rows[found.value_or(0)].quantization;
}

void read_defaults(JsonReader& r, Framework& f) {
  f.expandable_segments = r.flag("expandable_segments");
  f.roundup_power2_divisions = r.integer("roundup_power2_divisions", 0, 1024);
  f.records_streams = r.maybe_flag("records_streams").value_or(false);
  f.reads_lengths = r.maybe_flag("reads_lengths").value_or(false);
  f.library_workspaces = r.has("library_workspaces") ? r.integer("library_workspaces", 0, 10) : 0;
  f.grouped_workspaces = r.has("grouped_workspaces") ? r.integer("grouped_workspaces", 0, 10) : 0;
  f.gathers_flat_copies = r.maybe_flag("gathers_flat_copies").value_or(false);
  f.keeps_gather_buffers = r.maybe_flag("keeps_gather_buffers").value_or(false);
  f.holds_stage_outputs = r.maybe_flag("holds_stage_outputs").value_or(false);
  f.whole_stage_outputs = r.maybe_flag("whole_stage_outputs").value_or(false);
  f.keeps_receive_buffers = r.maybe_flag("keeps_receive_buffers").value_or(false);
  f.registers_causal_masks = r.maybe_flag("registers_causal_masks").value_or(false);
  f.rounds_stochastically = r.maybe_flag("rounds_stochastically").value_or(false);
  f.lengths_vary = r.maybe_flag("lengths_vary").value_or(false);
  f.cuts_samples = r.maybe_flag("cuts_samples").value_or(false);
  f.world_groups = r.maybe_integer("world_groups", 0, 16).value_or(0);
  f.connects_at_once = r.maybe_flag("connects_at_once").value_or(false);
  f.eager_module_loading = r.maybe_flag("eager_module_loading").value_or(false);
  f.pads_vocabulary = r.flag("pads_vocabulary");
  f.vocabulary_multiple = r.integer("vocabulary_multiple", 1, 1 << 20);
  f.optimizer = r.text("optimizer");
  if (optimizer_named(f.optimizer) == nullptr) r.problem("optimizer", "the name of an optimizer");
  f.compute = dtype(r, "compute");
  f.compute_unsharded = maybe_dtype(r, "compute_unsharded");
  f.default_zero_stage = r.integer("default_zero_stage", 0, 3);
  f.default_vocabulary = r.maybe_integer("default_vocabulary", 1, 100'000'000);
  f.default_microbatch = r.maybe_integer("default_microbatch", 1, 1'000'000);
  f.default_sequence = r.maybe_integer("default_sequence", 1, 100'000'000);
  f.default_dropout = r.flag("default_dropout");
  f.context_kind = r.choice("context_kind", context_kind_names);
  f.context_merge =
      r.maybe_choice("context_merge", context_merge_names).value_or(ContextMerge::fused_half);
  f.context_in_order = r.maybe_flag("context_in_order").value_or(false);
  f.stage_balance = r.choice("stage_balance", stage_balance_names);
  f.memory_reported_as = r.choice("memory_reported_as", memory_kind_names);
  f.memory_of_stage = r.choice("memory_of_stage", memory_stage_names);
  f.supports_tensor = r.flag("supports_tensor");
  f.supports_pipeline = r.flag("supports_pipeline");
  f.supports_context = r.flag("supports_context");
  f.supports_expert = r.flag("supports_expert");
  f.max_zero_stage = r.integer("max_zero_stage", 0, 3);
  f.least_zero_stage = r.maybe_integer("least_zero_stage", 1, 3).value_or(1);
  f.schedules = r.texts("schedules");
  for (const std::string& text : r.texts("methods")) {
    const auto method = method_named(text);
    if (!method || (!f.methods.empty() && f.runs(*method)))
      r.problem("methods", "names of methods, each once");
    else
      f.methods.push_back(*method);
  }
}

}  // namespace

Framework read_framework(JsonReader& r) {
  Framework f;
  read_names(r, f);
  read_states(r, f);
  read_communication(r, f);
  read_kernels(r, f);
  read_host_times(r, f);
  read_finetuning(r, f);
  read_defaults(r, f);
  f.provenance = r.provenance();
  r.ignore("notes");
  return f;
}

}  // namespace shardwise
