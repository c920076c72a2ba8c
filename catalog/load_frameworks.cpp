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
  f.formats.pretrain_weights = r.choice("pretrain_weights", weight_recipe_names);
  f.formats.finetune_weights = r.choice("finetune_weights", weight_recipe_names);
  f.formats.frozen_dtype = dtype(r, "frozen_dtype");
  f.quantized.linear_follows_input = r.maybe_flag("quantized_linear_follows_input").value_or(false);
  f.quantized.linear_keeps_input = r.maybe_flag("quantized_linear_keeps_input").value_or(false);
  f.sharding.flat_parameters_mix_frozen =
      r.maybe_flag("flat_parameters_mix_frozen").value_or(false);
  f.sharding.frozen_units_keep_inputs = r.maybe_flag("frozen_units_keep_inputs").value_or(false);
  f.sharding.fsdp1_keeps_inputs = r.maybe_flag("fsdp1_keeps_inputs").value_or(false);
  f.adapters.on_experts = r.maybe_flag("adapts_experts").value_or(false);
  f.adapters.sums_experts = r.maybe_flag("sums_expert_adapters").value_or(false);
  f.sharding.wraps_one_rank = r.maybe_flag("wraps_one_rank").value_or(false);
  f.gradients.reference_has_gradients = r.maybe_flag("reference_has_gradients").value_or(false);
  f.gradients.dtype = dtype(r, "gradient_dtype");
  f.gradients.dtype_fp16 = maybe_dtype(r, "gradient_dtype_fp16");
  f.gradients.reduce_dtype = dtype(r, "reduce_dtype");
  f.gradients.life = r.choice("gradient_life", gradient_life_names);
  f.gradients.life_fp16 = r.maybe_choice("gradient_life_fp16", gradient_life_names);
  f.update.wide_gradient_checks = r.maybe_flag("wide_gradient_checks").value_or(false);
  f.update.wide_gradient_checks_fp16 = r.maybe_flag("wide_gradient_checks_fp16").value_or(false);
  f.gradients.copy_while_accumulating = r.flag("gradient_copy_while_accumulating");
  f.gradients.copy_life = r.choice("gradient_copy_life", gradient_copy_life_names);
  f.gradients.bucket_copies = r.flag("bucket_copies_gradients");
  f.gradients.copies_into_buckets = r.maybe_flag("copies_into_buckets").value_or(false);
  f.gradients.bucket = bytes(r, "gradient_bucket_bytes");
  if (r.has("gradient_bucket_bytes_stage_2"))
    f.gradients.bucket_stage_2 = bytes(r, "gradient_bucket_bytes_stage_2");
  f.update.fp32_gradient_at_step = r.flag("fp32_gradient_at_step");
  f.update.keeps_remainders = r.maybe_flag("keeps_remainders").value_or(false);
  f.update.widens_moments = r.maybe_flag("widens_moments").value_or(false);
  f.gradients.reduce_buffers = r.integer("reduce_buffers", 0, 100);
  f.gradients.buffers_from_stage_2 = r.maybe_flag("buffers_from_stage_2").value_or(false);
  f.sharding.stage_2_gathers = r.maybe_flag("stage_2_gathers").value_or(false);
  f.update.flat_shard = r.maybe_flag("flat_shard").value_or(false);
  f.gradients.reduces_flat_buckets = r.maybe_flag("reduces_flat_buckets").value_or(false);
  f.gradients.reduces_flat_gradient = r.maybe_flag("reduces_flat_gradient").value_or(false);
  f.update.remaps_weights = r.maybe_flag("remaps_weights").value_or(false);
  f.update.states_at_start = r.maybe_flag("states_at_start").value_or(false);
  f.update.clones_partition = r.maybe_flag("clones_partition").value_or(false);
  f.sharding.parameters = read_sharded(r.object("sharded"));
  f.sharding.gathers_as_stored = r.maybe_flag("gathers_as_stored").value_or(false);
}

void read_communication(JsonReader& r, Framework& f) {
  f.gradients.overlap_reduce = r.flag("overlap_gradient_reduce");
  f.gradients.overlap_reduce_at_stage_2 = r.maybe_flag("overlap_reduce_at_stage_2");
  f.gradients.overlap_reduce_at_stage_3 = r.maybe_flag("overlap_reduce_at_stage_3").value_or(true);
  f.sharding.overlap_gather = r.flag("overlap_parameter_gather");
  f.parallel.overlap_tensor_comm = r.flag("overlap_tensor_comm");
  f.parallel.overlap_tensor_in_mixtures = r.maybe_flag("overlap_tensor_in_mixtures").value_or(true);
  f.parallel.overlap_tensor_in_four_bits =
      r.maybe_flag("overlap_tensor_in_four_bits").value_or(true);
  f.parallel.overlap_tensor_backward = r.flag("overlap_tensor_backward");
  f.parallel.overlap_pipeline_comm = r.flag("overlap_pipeline_comm");
  f.parallel.overlap_interleaved_comm =
      r.maybe_flag("overlap_interleaved_comm").value_or(f.parallel.overlap_pipeline_comm);
  f.parallel.partitions_pipeline_messages =
      r.maybe_flag("partitions_pipeline_messages").value_or(false);
  f.gradients.reduces_every_microbatch = r.flag("reduces_every_microbatch");
  f.gradients.pipelines_reduce_once = r.maybe_flag("pipelines_reduce_once").value_or(false);
  f.gradients.accumulates_in_reduce_dtype =
      r.maybe_flag("accumulates_in_reduce_dtype").value_or(false);
  f.parallel.copies_linear_inputs = r.maybe_flag("copies_linear_inputs").value_or(false);
  f.parallel.exchanges_per_linear = r.maybe_flag("exchanges_per_linear").value_or(false);
  f.parallel.sums_gate_and_up_apart = r.maybe_flag("sums_gate_and_up_apart").value_or(false);
  f.gradients.stage_1_all_reduces = r.flag("stage_1_all_reduces");
  f.sharding.bf16_shards_at_stage_0 = r.maybe_flag("bf16_shards_at_stage_0").value_or(false);
  f.gradients.stage_2_all_reduces = r.maybe_flag("stage_2_all_reduces").value_or(false);
  f.parallel.sequence_parallel = r.flag("sequence_parallel");
  f.parallel.regathers_sequence = r.flag("regathers_sequence");
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
  f.loss.kind = r.choice("loss", loss_kind_names);
  f.loss.fused = r.maybe_choice("fused_loss", loss_kind_names).value_or(LossKind::fused_linear);
  f.loss.slices_go_back = r.maybe_flag("slices_go_back").value_or(false);
  const bool cuts = f.loss.kind == LossKind::cut || f.loss.fused == LossKind::cut;
  f.loss.cut_gradient_share = cuts ? r.number("cut_gradient_share", 0.01, 100) : filtered_share;
  f.loss.chunks = r.integer("loss_chunks", 1, 100000);
  if (r.has("loss_slice_bytes")) f.loss.slice = bytes(r, "loss_slice_bytes");
  f.loss.slice_tokens = r.maybe_integer("loss_slice_tokens", 1, 1 << 20);
  f.loss.slice_logit_bytes = r.maybe_number("loss_slice_logit_bytes", 1, 64);
  f.loss.slice_moved_bytes = r.maybe_number("loss_slice_moved_bytes", 1, 256);
  f.loss.copies_head = r.maybe_flag("loss_copies_head").value_or(false);
  f.loss.recomputes_slices = r.maybe_flag("loss_recomputes_slices").value_or(false);
  f.loss.keeps_slices = r.maybe_flag("loss_keeps_slices").value_or(false);
  f.loss.makes_slices_first = r.maybe_flag("loss_makes_slices_first").value_or(false);
  f.loss.head_slice = r.maybe_integer("head_slice", 1, 1 << 20);
  f.loss.upcasts = r.flag("loss_upcasts");
  f.parallel.dtensor = r.maybe_flag("dtensor_parallel").value_or(false);
  f.loss.gathers_logits = r.maybe_flag("gathers_logits").value_or(false);
  f.parallel.whole_tables = r.maybe_flag("whole_tables").value_or(false);
  f.layers.lays_out_results = r.maybe_flag("lays_out_results").value_or(false);
  f.loss.z_loss = r.maybe_flag("z_loss").value_or(false);
  f.loss.fp32_temporaries = r.integer("loss_fp32_temporaries", 0, 10);
  f.loss.compiled = r.maybe_flag("compiles_loss").value_or(false);
  f.loss.compiled_alone = r.maybe_flag("compiles_loss_alone").value_or(false);
  f.loss.upcasts_itself = r.maybe_flag("upcasts_in_loss").value_or(false);
  if (r.has("logged_logits")) {
    f.loss.logged = read_logged(r.object("logged_logits"));
    if (makes_no_logits(f.loss.kind))
      r.problem("logged_logits", "absent where no logits are whole");
  }
  f.loss.returns_fp32_logits = r.maybe_flag("returns_fp32_logits").value_or(false);
  f.loss.joins_context_logits = r.maybe_flag("joins_context_logits").value_or(false);
  f.loss.returns_logits = r.maybe_flag("returns_logits").value_or(false);
  f.loss.under_autocast = r.maybe_flag("loss_under_autocast").value_or(false);
  f.loss.takes_slices = r.maybe_flag("loss_takes_slices").value_or(false);
  f.loss.output_holds_logits = r.maybe_flag("output_holds_logits").value_or(false);
  f.loss.output_holds_keys = r.maybe_flag("output_holds_keys").value_or(false);
  f.loss.output_life =
      r.maybe_choice("output_life", output_life_names).value_or(OutputLife::backward);
}

void read_host_times(JsonReader& r, Framework& f) {
  f.host.us_per_kernel = r.number("host_us_per_kernel", 0, 1e6);
  f.sharding.checkpoints_gather_again = r.maybe_flag("checkpoints_gather_again").value_or(false);
  f.sharding.fetch_reuse_elements =
      r.maybe_integer("fetch_reuse_elements", 1, 2'000'000'000).value_or(0);
  f.sharding.fetch_elements = r.maybe_integer("fetch_elements", 1, 1'000'000'000).value_or(0);
  f.host.us_per_sharded_module = r.maybe_number("host_us_per_sharded_module", 0, 1e6).value_or(0);
  f.host.us_per_sharded_unit = r.maybe_number("host_us_per_sharded_unit", 0, 1e6).value_or(0);
  f.host.us_per_reduction = r.maybe_number("host_us_per_reduction", 0, 1e6).value_or(0);
  f.host.us_per_gradient = r.maybe_number("host_us_per_gradient", 0, 1e6).value_or(0);
  f.host.us_per_gradient_stage_2 =
      r.maybe_number("host_us_per_gradient_stage_2", 0, 1e6).value_or(0);
  f.host.us_per_stepped_tensor = r.maybe_number("host_us_per_stepped_tensor", 0, 1e6).value_or(0);
  f.host.us_per_read_tensor = r.maybe_number("host_us_per_read_tensor", 0, 1e6).value_or(0);
  f.host.us_per_read_tensor_stage_3 =
      r.maybe_number("host_us_per_read_tensor_stage_3", 0, 1e6).value_or(0);
  f.host.us_per_checked_tensor = r.maybe_number("host_us_per_checked_tensor", 0, 1e6).value_or(0);
}

void read_step(JsonReader& r, Framework& f) {
  f.update.fused = r.flag("fused_optimizer");
  f.update.cpu_adam = r.maybe_flag("cpu_adam").value_or(false);
  f.update.foreach = r.maybe_flag("foreach_optimizer").value_or(true);
  f.update.foreach_lists = r.maybe_integer("foreach_lists", 1, 2).value_or(1);
  if (r.has("written_optimizer")) f.update.written = read_optimizer(r.object("written_optimizer"));
  f.update.clips_gradients = r.flag("clips_gradients");
  f.update.checks_gradients = r.maybe_flag("checks_gradients").value_or(false);
  f.update.norm_in_double = r.maybe_flag("norm_in_double").value_or(false);
  f.update.checks_partition = r.maybe_flag("checks_partition").value_or(false);
}

void read_recomputation(JsonReader& r, Framework& f) {
  f.recompute.pretrain = r.text("recompute_pretrain");
  f.recompute.finetune = r.text("recompute_finetune");
  f.recompute.quantized = r.maybe_text("recompute_quantized");
  f.recompute.offloads_from = r.maybe_integer("offloads_checkpoints_from", 1, 1 << 20);
  f.recompute.hybrids = r.maybe_flag("recomputes_hybrids").value_or(true);
  f.recompute.stops_early = r.flag("recompute_stops_early");
  f.recompute.reentrant = r.maybe_flag("reentrant_checkpoints").value_or(!f.recompute.stops_early);
}

void read_kernels(JsonReader& r, Framework& f) {
  f.layers.kernels = r.choice("kernels", kernel_style_names);
  f.layers.delta_rule = r.maybe_choice("delta_rule", delta_rule_names).value_or(DeltaRule::kernels);
  f.layers.runs_transformers = r.maybe_flag("runs_transformers").value_or(false);
  f.layers.fused_norms = r.flag("fused_norms");
  f.layers.patches_built_model = r.maybe_flag("patches_built_model").value_or(false);
  f.attention.fused_rotary = r.maybe_flag("fused_rotary").value_or(false);
  f.layers.eager_activation = r.maybe_flag("eager_activation").value_or(false);
  f.layers.plain_activation = r.maybe_flag("plain_activation").value_or(false);
  f.layers.adds_bias_apart = r.maybe_flag("adds_bias_apart").value_or(false);
  f.attention.half_softmax = r.maybe_flag("half_softmax").value_or(false);
  f.layers.compiles_whole_model = r.maybe_flag("compiles_whole_model").value_or(false);
  f.layers.leaves_odd_lengths = r.maybe_flag("leaves_odd_lengths").value_or(false);
  f.layers.cuts_compiled_graphs = r.maybe_flag("cuts_compiled_graphs").value_or(false);
  f.layers.scales_branches = r.maybe_flag("scales_branches").value_or(false);
  f.attention.rotary_code =
      r.maybe_choice("rotary_code", rotary_code_names).value_or(RotaryCode::halves);
  f.attention.eager_rotary = r.maybe_flag("eager_rotary").value_or(false);
  f.attention.transposes = r.maybe_flag("transposes_attention").value_or(false);
  f.attention.merges_heads_of_output = r.maybe_flag("merges_heads_of_output").value_or(false);
  f.attention.gathers_angles = r.maybe_flag("gathers_angles").value_or(false);
  f.layers.keeps_dropout_masks = r.maybe_flag("keeps_dropout_masks").value_or(false);
  f.attention.kernel = r.choice("attention", attention_kernel_names);
  f.attention.kernel_blackwell = r.maybe_choice("attention_blackwell", attention_kernel_names);
  f.attention.by_transformer_engine =
      r.maybe_flag("attention_by_transformer_engine").value_or(false);
  f.attention.cudnn = maybe_release(r, "cudnn");
  f.layers.deterministic = r.maybe_flag("deterministic").value_or(false);
  f.recompute.selective_op_omits_cudnn = r.maybe_flag("selective_op_omits_cudnn").value_or(false);
  f.recompute.selective_op_omits_all_to_all =
      r.maybe_flag("selective_op_omits_all_to_all").value_or(false);
  f.attention.repeats_kv = r.flag("attention_repeats_kv");
  f.narrow.scales_rows = r.maybe_flag("scales_rows").value_or(false);
  f.narrow.weight_cast =
      r.maybe_choice("weight_cast", weight_cast_names).value_or(WeightCast::once);
  f.narrow.weights =
      r.maybe_choice("narrow_weights", narrow_weights_names).value_or(NarrowWeights::none);
  f.narrow.gathers_sequence = r.maybe_flag("gathers_sequence_quantized").value_or(false);
  f.experts.dispatches_once = r.maybe_flag("dispatches_once").value_or(false);
  f.experts.dispatches_by_map = r.maybe_flag("dispatches_by_map").value_or(false);
  f.experts.overlap_keeps_nodes = r.maybe_flag("overlap_keeps_nodes").value_or(false);
  f.narrow.current_scaling = r.maybe_flag("current_scaling").value_or(false);
  f.narrow.quantizes_apart = r.maybe_flag("quantizes_apart").value_or(false);
  f.narrow.attention = r.maybe_flag("narrow_attention").value_or(false);
  f.narrow.head = r.maybe_flag("narrow_head").value_or(false);
  f.layers.sequence_first = r.maybe_flag("sequence_first").value_or(false);
  f.layers.norms_add_residual = r.maybe_flag("norms_add_residual").value_or(false);
  f.experts.weighs_bias = r.maybe_flag("weighs_expert_bias").value_or(false);
  f.experts.weighs_in_activation = r.maybe_flag("weighs_in_activation").value_or(false);
  f.experts.moves_rows_by_maps = r.maybe_flag("moves_rows_by_maps").value_or(false);
  f.experts.weighs_rows_apart = r.maybe_flag("weighs_rows_apart").value_or(false);
  f.experts.loops = r.maybe_flag("loops_experts").value_or(false);
  f.experts.torch_grouped_products = r.maybe_flag("torch_grouped_products").value_or(false);
  f.experts.casts_grouped_products = r.maybe_flag("casts_grouped_products").value_or(false);
  f.experts.routes_in_fp32 = r.maybe_flag("routes_in_fp32").value_or(false);
  f.experts.compiles_dispatch = r.maybe_flag("compiles_dispatch").value_or(false);
  f.adapters.compiled = r.maybe_flag("compiles_adapters").value_or(true);
  f.attention.repeats_kv_before_rotary = r.maybe_flag("repeats_kv_before_rotary").value_or(false);
  f.attention.value_is_view_of_qkv = r.maybe_flag("value_is_view_of_qkv").value_or(false);
  f.attention.query_is_view_of_qkv = r.maybe_flag("query_is_view_of_qkv").value_or(false);
  f.attention.masks_padding = r.maybe_flag("masks_padding").value_or(false);
  f.attention.writes_grouped_out = r.maybe_flag("writes_grouped_attention_out").value_or(false);
  f.attention.masks_windows = r.maybe_flag("masks_windows").value_or(false);
  f.attention.indexer_slice = r.maybe_integer("indexer_slice", 1, 1 << 20);
  f.attention.softmax_batches = r.maybe_integer("softmax_batches", 1, 64);
  f.attention.softmax_in_fp32 = r.maybe_flag("softmax_in_fp32").value_or(false);
  f.attention.plain_softmax = r.maybe_flag("plain_softmax").value_or(false);
  f.attention.guards_softmax = r.maybe_flag("guards_softmax").value_or(false);
  f.gradients.fusion = r.flag("gradient_fusion");
  read_loss(r, f);
  read_recomputation(r, f);
  f.formats.autocast = r.flag("autocast");
  f.formats.autocast_caches_weights = r.flag("autocast_caches_weights");
  read_step(r, f);
  f.fitted = fitted_fields(r);
}

void read_finetuning(JsonReader& r, Framework& f) {
  f.adapters.dtype = dtype(r, "adapter_dtype");
  f.adapters.dtype_quantized = maybe_dtype(r, "adapter_dtype_quantized");
  f.quantized.upcasts_unquantized = r.flag("upcasts_unquantized");
  f.quantized.recasts_tables = r.maybe_flag("recasts_tables").value_or(false);
  f.sharding.quantized = r.flag("quantized_sharding");
  f.sharding.moves_constants = r.maybe_flag("moves_constants").value_or(false);
  f.recompute.checkpoints_miss_context = r.maybe_flag("checkpoints_miss_context").value_or(false);
  f.quantized.head = r.maybe_flag("quantizes_head").value_or(false);
  f.quantized.experts = r.maybe_flag("quantizes_experts").value_or(true);
  f.quantized.widens_whole_experts = r.maybe_flag("widens_whole_experts").value_or(false);
  f.quantized.dequantizes_experts_at_once =
      r.maybe_flag("dequantizes_experts_at_once").value_or(false);
  f.quantized.dequantized_copies = r.maybe_integer("dequantized_copies", 1, 4).value_or(1);
  f.quantized.four_bit_unpacking = r.maybe_choice("four_bit_unpacking", four_bit_unpacking_names)
                                       .value_or(LaneLoop::four_bit_lookup);
  f.adapters.fused = r.maybe_flag("fuses_adapters").value_or(false);
  f.adapters.on_head = r.maybe_flag("adapts_head").value_or(false);
  f.adapters.keeps_replaced_modules = r.maybe_flag("keeps_replaced_modules").value_or(false);
  f.loading.unties_embeddings = r.maybe_flag("unties_embeddings").value_or(false);
  f.parallel.ties_over_stages = r.maybe_flag("ties_over_stages").value_or(true);
  f.loading.whole_model_on_gpu = r.flag("loads_whole_model_on_gpu");
  f.loading.widens_tables = r.maybe_flag("widens_tables_on_load").value_or(false);
  f.loading.every_rank_on_host = r.flag("loads_every_rank_on_host");
  f.loading.alone_on_gpu = r.maybe_flag("loads_alone_on_gpu").value_or(false);
  f.adapters.rank = r.integer("adapter_rank", 1, 100000);
  f.adapters.targets = r.text("adapter_targets");
  f.adapters.dropout = r.number("adapter_dropout", 0, 1);
  const auto found = r.choice_index("default_quantization", names_in(quantization_rows), true);
  f.quantized.kind = quantization_rows[found.value_or(0)].quantization;
}

void read_defaults(JsonReader& r, Framework& f) {
  f.process.expandable_segments = r.flag("expandable_segments");
  f.process.roundup_power2_divisions = r.integer("roundup_power2_divisions", 0, 1024);
  f.process.records_streams = r.maybe_flag("records_streams").value_or(false);
  f.attention.reads_lengths = r.maybe_flag("reads_lengths").value_or(false);
  f.process.library_workspaces =
      r.has("library_workspaces") ? r.integer("library_workspaces", 0, 10) : 0;
  f.process.grouped_workspaces =
      r.has("grouped_workspaces") ? r.integer("grouped_workspaces", 0, 10) : 0;
  f.sharding.gathers_flat_copies = r.maybe_flag("gathers_flat_copies").value_or(false);
  f.parallel.keeps_gather_buffers = r.maybe_flag("keeps_gather_buffers").value_or(false);
  f.parallel.holds_stage_outputs = r.maybe_flag("holds_stage_outputs").value_or(false);
  f.parallel.whole_stage_outputs = r.maybe_flag("whole_stage_outputs").value_or(false);
  f.parallel.keeps_receive_buffers = r.maybe_flag("keeps_receive_buffers").value_or(false);
  f.attention.registers_causal_masks = r.maybe_flag("registers_causal_masks").value_or(false);
  f.update.rounds_stochastically = r.maybe_flag("rounds_stochastically").value_or(false);
  f.defaults.lengths_vary = r.maybe_flag("lengths_vary").value_or(false);
  f.defaults.cuts_samples = r.maybe_flag("cuts_samples").value_or(false);
  f.process.world_groups = r.maybe_integer("world_groups", 0, 16).value_or(0);
  f.process.connects_at_once = r.maybe_flag("connects_at_once").value_or(false);
  f.process.eager_module_loading = r.maybe_flag("eager_module_loading").value_or(false);
  f.parallel.pads_vocabulary = r.flag("pads_vocabulary");
  f.parallel.vocabulary_multiple = r.integer("vocabulary_multiple", 1, 1 << 20);
  f.defaults.optimizer = r.text("optimizer");
  if (optimizer_named(f.defaults.optimizer) == nullptr)
    r.problem("optimizer", "the name of an optimizer");
  f.defaults.compute = dtype(r, "compute");
  f.defaults.compute_unsharded = maybe_dtype(r, "compute_unsharded");
  f.defaults.zero_stage = r.integer("default_zero_stage", 0, 3);
  f.defaults.vocabulary = r.maybe_integer("default_vocabulary", 1, 100'000'000);
  f.defaults.microbatch = r.maybe_integer("default_microbatch", 1, 1'000'000);
  f.defaults.sequence = r.maybe_integer("default_sequence", 1, 100'000'000);
  f.defaults.dropout = r.flag("default_dropout");
  f.parallel.context_kind = r.choice("context_kind", context_kind_names);
  f.parallel.context_merge =
      r.maybe_choice("context_merge", context_merge_names).value_or(ContextMerge::fused_half);
  f.parallel.context_in_order = r.maybe_flag("context_in_order").value_or(false);
  f.parallel.stage_balance = r.choice("stage_balance", stage_balance_names);
  f.reports.memory = r.choice("memory_reported_as", memory_kind_names);
  f.reports.stage = r.choice("memory_of_stage", memory_stage_names);
  f.supports.tensor = r.flag("supports_tensor");
  f.supports.pipeline = r.flag("supports_pipeline");
  f.supports.context = r.flag("supports_context");
  f.supports.expert = r.flag("supports_expert");
  f.supports.max_zero_stage = r.integer("max_zero_stage", 0, 3);
  f.supports.least_zero_stage = r.maybe_integer("least_zero_stage", 1, 3).value_or(1);
  f.supports.schedules = r.texts("schedules");
  for (const std::string& text : r.texts("methods")) {
    const auto method = method_named(text);
    if (!method || (!f.supports.methods.empty() && f.runs(*method)))
      r.problem("methods", "names of methods, each once");
    else
      f.supports.methods.push_back(*method);
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
