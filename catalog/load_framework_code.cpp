#include "catalog/adapter.hpp"
#include "catalog/framework_groups.hpp"
#include "catalog/framework_names.hpp"
#include "catalog/names.hpp"

namespace shardwise::framework_groups {
namespace {

// A run may say that its loss is cut where the row of its framework has another: as the kernel
// comes, with its filter, (95 - 43) / 86 of the product that makes the logits (arXiv 2411.09009v1,
// table A2: Gemma 2 2B on 8,192 tokens, A100).
constexpr double filtered_share = 0.6;

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

}  // namespace

FrameworkLayers read_layers(JsonReader& r) {
  FrameworkLayers layers;
  layers.kernels = r.choice("kernels", kernel_style_names);
  layers.runs_transformers = r.maybe_flag("runs_transformers").value_or(false);
  layers.patches_built_model = r.maybe_flag("patches_built_model").value_or(false);
  layers.compiles_whole_model = r.maybe_flag("compiles_whole_model").value_or(false);
  layers.cuts_compiled_graphs = r.maybe_flag("cuts_compiled_graphs").value_or(false);
  layers.leaves_odd_lengths = r.maybe_flag("leaves_odd_lengths").value_or(false);
  layers.deterministic = r.maybe_flag("deterministic").value_or(false);
  layers.delta_rule = r.maybe_choice("delta_rule", delta_rule_names).value_or(DeltaRule::kernels);
  layers.fused_norms = r.flag("fused_norms");
  layers.norms_add_residual = r.maybe_flag("norms_add_residual").value_or(false);
  layers.keeps_narrow_gate = r.maybe_flag("keeps_narrow_gate").value_or(false);
  layers.eager_activation = r.maybe_flag("eager_activation").value_or(false);
  layers.overwrites_gate_and_up = r.maybe_flag("overwrites_gate_and_up").value_or(false);
  layers.plain_activation = r.maybe_flag("plain_activation").value_or(false);
  layers.adds_bias_apart = r.maybe_flag("adds_bias_apart").value_or(false);
  layers.scales_branches = r.maybe_flag("scales_branches").value_or(false);
  layers.keeps_dropout_masks = r.maybe_flag("keeps_dropout_masks").value_or(false);
  layers.sequence_first = r.maybe_flag("sequence_first").value_or(false);
  layers.lays_out_results = r.maybe_flag("lays_out_results").value_or(false);
  return layers;
}

FrameworkAttention read_attention(JsonReader& r) {
  FrameworkAttention attention;
  attention.kernel = r.choice("attention", attention_kernel_names);
  attention.kernel_blackwell = r.maybe_choice("attention_blackwell", attention_kernel_names);
  attention.by_transformer_engine = r.maybe_flag("attention_by_transformer_engine").value_or(false);
  attention.cudnn = maybe_release(r, "cudnn");
  attention.by_operators = r.maybe_flag("attends_by_operators").value_or(false);
  attention.repeats_kv = r.flag("attention_repeats_kv");
  attention.repeats_kv_before_rotary = r.maybe_flag("repeats_kv_before_rotary").value_or(false);
  attention.writes_grouped_out = r.maybe_flag("writes_grouped_attention_out").value_or(false);
  attention.masks_padding = r.maybe_flag("masks_padding").value_or(false);
  attention.masks_windows = r.maybe_flag("masks_windows").value_or(false);
  attention.registers_causal_masks = r.maybe_flag("registers_causal_masks").value_or(false);
  attention.reads_lengths = r.maybe_flag("reads_lengths").value_or(false);
  attention.indexer_slice = r.maybe_integer("indexer_slice", 1, 1 << 20);
  attention.softmax_batches = r.maybe_integer("softmax_batches", 1, 64);
  attention.half_softmax = r.maybe_flag("half_softmax").value_or(false);
  attention.softmax_in_fp32 = r.maybe_flag("softmax_in_fp32").value_or(false);
  attention.plain_softmax = r.maybe_flag("plain_softmax").value_or(false);
  attention.guards_softmax = r.maybe_flag("guards_softmax").value_or(false);
  attention.value_is_view_of_qkv = r.maybe_flag("value_is_view_of_qkv").value_or(false);
  attention.query_is_view_of_qkv = r.maybe_flag("query_is_view_of_qkv").value_or(false);
  attention.transposes = r.maybe_flag("transposes_attention").value_or(false);
  attention.merges_heads_of_output = r.maybe_flag("merges_heads_of_output").value_or(false);
  attention.rotary_code =
      r.maybe_choice("rotary_code", rotary_code_names).value_or(RotaryCode::halves);
  attention.eager_rotary = r.maybe_flag("eager_rotary").value_or(false);
  attention.fused_rotary = r.maybe_flag("fused_rotary").value_or(false);
  attention.gathers_angles = r.maybe_flag("gathers_angles").value_or(false);
  return attention;
}

FrameworkExperts read_experts(JsonReader& r) {
  FrameworkExperts experts;
  experts.routes_in_fp32 = r.maybe_flag("routes_in_fp32").value_or(false);
  experts.loops = r.maybe_flag("loops_experts").value_or(false);
  experts.torch_grouped_products = r.maybe_flag("torch_grouped_products").value_or(false);
  experts.casts_grouped_products = r.maybe_flag("casts_grouped_products").value_or(false);
  experts.weighs_bias = r.maybe_flag("weighs_expert_bias").value_or(false);
  experts.weighs_in_activation = r.maybe_flag("weighs_in_activation").value_or(false);
  experts.moves_rows_by_maps = r.maybe_flag("moves_rows_by_maps").value_or(false);
  experts.weighs_rows_apart = r.maybe_flag("weighs_rows_apart").value_or(false);
  experts.compiles_dispatch = r.maybe_flag("compiles_dispatch").value_or(false);
  experts.dispatches_once = r.maybe_flag("dispatches_once").value_or(false);
  experts.dispatches_by_map = r.maybe_flag("dispatches_by_map").value_or(false);
  experts.overlap_keeps_nodes = r.maybe_flag("overlap_keeps_nodes").value_or(false);
  return experts;
}

FrameworkNarrow read_narrow(JsonReader& r) {
  FrameworkNarrow narrow;
  narrow.scales_rows = r.maybe_flag("scales_rows").value_or(false);
  narrow.weight_cast = r.maybe_choice("weight_cast", weight_cast_names).value_or(WeightCast::once);
  narrow.weights =
      r.maybe_choice("narrow_weights", narrow_weights_names).value_or(NarrowWeights::none);
  narrow.keeps_frozen_twice = r.maybe_flag("keeps_frozen_transposes").value_or(false);
  narrow.gathers_sequence = r.maybe_flag("gathers_sequence_quantized").value_or(false);
  narrow.current_scaling = r.maybe_flag("current_scaling").value_or(false);
  narrow.quantizes_apart = r.maybe_flag("quantizes_apart").value_or(false);
  narrow.attention = r.maybe_flag("narrow_attention").value_or(false);
  narrow.head = r.maybe_flag("narrow_head").value_or(false);
  return narrow;
}

FrameworkRecompute read_recompute(JsonReader& r) {
  FrameworkRecompute recompute;
  recompute.pretrain = r.text("recompute_pretrain");
  recompute.finetune = r.text("recompute_finetune");
  recompute.quantized = r.maybe_text("recompute_quantized");
  recompute.stops_early = r.flag("recompute_stops_early");
  recompute.reentrant = r.maybe_flag("reentrant_checkpoints").value_or(!recompute.stops_early);
  recompute.hybrids = r.maybe_flag("recomputes_hybrids").value_or(true);
  recompute.offloads_from = r.maybe_integer("offloads_checkpoints_from", 1, 1 << 20);
  recompute.checkpoints_miss_context = r.maybe_flag("checkpoints_miss_context").value_or(false);
  recompute.selective_op_omits_cudnn = r.maybe_flag("selective_op_omits_cudnn").value_or(false);
  recompute.selective_op_omits_all_to_all =
      r.maybe_flag("selective_op_omits_all_to_all").value_or(false);
  return recompute;
}

FrameworkLoss read_loss(JsonReader& r) {
  FrameworkLoss loss;
  loss.kind = r.choice("loss", loss_kind_names);
  loss.fused = r.maybe_choice("fused_loss", loss_kind_names).value_or(LossKind::fused_linear);
  const bool cuts = loss.kind == LossKind::cut || loss.fused == LossKind::cut;
  loss.cut_gradient_share = cuts ? r.number("cut_gradient_share", 0.01, 100) : filtered_share;
  loss.chunks = r.integer("loss_chunks", 1, 100000);
  if (r.has("loss_slice_bytes")) loss.slice = read_bytes(r, "loss_slice_bytes");
  loss.slices_go_back = r.maybe_flag("slices_go_back").value_or(false);
  loss.slice_tokens = r.maybe_integer("loss_slice_tokens", 1, 1 << 20);
  loss.fused_slice_tokens = r.maybe_integer("fused_loss_slice_tokens", 1, 1 << 20);
  loss.slice_logit_bytes = r.maybe_number("loss_slice_logit_bytes", 1, 64);
  loss.slice_moved_bytes = r.maybe_number("loss_slice_moved_bytes", 1, 256);
  loss.copies_head = r.maybe_flag("loss_copies_head").value_or(false);
  loss.recomputes_slices = r.maybe_flag("loss_recomputes_slices").value_or(false);
  loss.keeps_slices = r.maybe_flag("loss_keeps_slices").value_or(false);
  loss.makes_slices_first = r.maybe_flag("loss_makes_slices_first").value_or(false);
  loss.adds_head_slices_apart = r.maybe_flag("adds_head_slices_apart").value_or(false);
  loss.head_slice = r.maybe_integer("head_slice", 1, 1 << 20);
  loss.takes_slices = r.maybe_flag("loss_takes_slices").value_or(false);
  loss.upcasts = r.flag("loss_upcasts");
  loss.upcasts_itself = r.maybe_flag("upcasts_in_loss").value_or(false);
  loss.under_autocast = r.maybe_flag("loss_under_autocast").value_or(false);
  loss.fp32_temporaries = r.integer("loss_fp32_temporaries", 0, 10);
  loss.gathers_logits = r.maybe_flag("gathers_logits").value_or(false);
  loss.z_loss = r.maybe_flag("z_loss").value_or(false);
  loss.compiled = r.maybe_flag("compiles_loss").value_or(false);
  loss.compiled_alone = r.maybe_flag("compiles_loss_alone").value_or(false);
  loss.scatters_labels = r.maybe_flag("scatters_labels").value_or(false);
  loss.returns_fp32_logits = r.maybe_flag("returns_fp32_logits").value_or(false);
  loss.joins_context_logits = r.maybe_flag("joins_context_logits").value_or(false);
  loss.returns_logits = r.maybe_flag("returns_logits").value_or(false);
  if (r.has("logged_logits")) {
    loss.logged = read_logged(r.object("logged_logits"));
    if (makes_no_logits(loss.kind)) r.problem("logged_logits", "absent where no logits are whole");
  }
  loss.output_holds_logits = r.maybe_flag("output_holds_logits").value_or(false);
  loss.output_holds_keys = r.maybe_flag("output_holds_keys").value_or(false);
  loss.output_life =
      r.maybe_choice("output_life", output_life_names).value_or(OutputLife::backward);
  return loss;
}

FrameworkAdapters read_adapters(JsonReader& r) {
  FrameworkAdapters adapters;
  adapters.dtype = read_dtype(r, "adapter_dtype");
  adapters.dtype_quantized = maybe_dtype(r, "adapter_dtype_quantized");
  adapters.rank = r.integer("adapter_rank", 1, 100000);
  adapters.targets = r.text("adapter_targets");
  adapters.dropout = r.number("adapter_dropout", 0, 1);
  adapters.fused = r.maybe_flag("fuses_adapters").value_or(false);
  adapters.on_joined = r.maybe_flag("adapts_joined_projections").value_or(false);
  adapters.compiled = r.maybe_flag("compiles_adapters").value_or(true);
  adapters.on_experts = r.maybe_flag("adapts_experts").value_or(false);
  adapters.sums_experts = r.maybe_flag("sums_expert_adapters").value_or(false);
  adapters.on_head = r.maybe_flag("adapts_head").value_or(false);
  adapters.keeps_replaced_modules = r.maybe_flag("keeps_replaced_modules").value_or(false);
  return adapters;
}

FrameworkQuantized read_quantized(JsonReader& r) {
  FrameworkQuantized quantized;
  const auto found = r.choice_index("default_quantization", names_in(quantization_rows), true);
  quantized.kind = quantization_rows[found.value_or(0)].quantization;
  quantized.upcasts_unquantized = r.flag("upcasts_unquantized");
  quantized.recasts_tables = r.maybe_flag("recasts_tables").value_or(false);
  quantized.head = r.maybe_flag("quantizes_head").value_or(false);
  quantized.experts = r.maybe_flag("quantizes_experts").value_or(true);
  quantized.widens_whole_experts = r.maybe_flag("widens_whole_experts").value_or(false);
  quantized.dequantizes_experts_at_once =
      r.maybe_flag("dequantizes_experts_at_once").value_or(false);
  quantized.dequantized_copies = r.maybe_integer("dequantized_copies", 1, 4).value_or(1);
  quantized.four_bit_unpacking = r.maybe_choice("four_bit_unpacking", four_bit_unpacking_names)
                                     .value_or(LaneLoop::four_bit_lookup);
  quantized.linear_keeps_input = r.maybe_flag("quantized_linear_keeps_input").value_or(false);
  quantized.linear_follows_input = r.maybe_flag("quantized_linear_follows_input").value_or(false);
  return quantized;
}

}  // namespace shardwise::framework_groups
