// RunRecord: one training run that somebody measured and published (catalog/runs/SCHEMA.md).
//
// A record tells what its publisher told: every member that may be missing is optional, and text
// stays as it was written. What the text means is decided where a run is replayed.
//
//   measured step [s] = step_time_s
//                     | global batch / samples_per_s
//                     | global batch x sequence / tokens_per_s             (or per GPU x GPUs)
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "catalog/source_date.hpp"
#include "catalog/transformer.hpp"
#include "catalog/units.hpp"

namespace shardwise {

// Dimensions as published; a model that is only named has none.
struct RunModel {
  std::string name;
  std::string hf_id;
  std::optional<int> layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  std::optional<bool> gated_mlp, tied_embeddings;
  std::optional<int> value_embeddings;  // tables (ValueEmbeddings)
  bool narrow_tables = false;           // Transformer::narrow_tables
  bool caps_logits = false;             // Transformer::caps_logits
  // Of a model that the catalog does not have: what its sizes do not tell.
  std::optional<PositionKind> position;
  std::optional<NormKind> norm;
  std::optional<QkNorm> qk_norm;
  std::optional<int> norms_per_layer;
  std::optional<bool> biases;
  struct Experts {
    std::optional<int> experts, top_k;
    std::optional<int> expert_ffn, shared_experts, dense_layers;
  };
  std::optional<Experts> moe;
  std::optional<LatentAttention> mla;  // head_dim is that of queries, or left out
};

struct RunHardware {
  std::optional<std::string> gpu, intra_node, inter_node;
  std::optional<int> gpus, gpus_per_node;
  std::optional<Bytes> host_ram;
  std::optional<int> power_limit_w;  // [W] of every GPU, where it is not the board's
  std::optional<bool> peer_access;   // over PCIe, as NCCL was told or the driver allows
  // What one process may hold of a GPU, its context included, where that is less than CUDA offers:
  // a desktop or another process has the rest, or the process was capped.
  std::optional<Bytes> usable;
};

struct RunTraining {
  std::string method;
  std::optional<int> sequence, micro_batch, global_batch, grad_accum;
  std::optional<std::string> precision, grad_dtype, reduce_dtype, optimizer, recompute;
  std::optional<bool> fused_optimizer, dropout;
  std::optional<std::string> framework;
  std::optional<std::string> framework_note;  // ends in the source's date where it tells no age
  std::optional<std::string> objective;       // "dpo", "kto", ...; absent: the next token
  std::optional<int> lora_rank;
  std::optional<double> lora_dropout;
  std::optional<std::string> lora_targets;
  std::optional<std::int64_t> trainable_params;
  std::optional<std::string> quantize;  // "bnb.nf4", "int4 (gptq)"; also SCHEMA's base_quant
  std::optional<bool> double_quant;
  std::optional<std::string> compute_dtype;
  std::optional<bool> flash_attention, compile, compile_loss, liger_kernel, activation_offloading,
      packing;
  std::vector<std::string> plugins;
  std::optional<int> loss_slice_tokens;  // of which head and loss take so many at a time
};

struct RunPlan {
  std::optional<int> dp, tp, pp, vpp, cp, ep, etp, zero, hsdp_shard, fsdp_version;
  std::optional<int> fsdp_units_per_block;
  std::optional<bool> sp, async_tp;
  std::optional<std::string> schedule, offload;
  std::vector<int> layers_per_stage;  // empty: not stated
};

struct RunMeasured {
  std::optional<Seconds> step_time;
  std::optional<double> samples_per_s, tokens_per_s, tokens_per_s_per_gpu;
  std::optional<double> peak_mem_gib;
  // The same by category (most of them are named in simulator/graphs/memory_category.hpp): at the
  // moment of the peak, and when the last forward pass of a step has ended, where somebody counted
  // them.
  std::map<std::string, double> breakdown_gib, after_forward_gib;
  std::string mem_kind;  // "torch-allocated" | "torch-reserved" | "nvidia-smi" | ...
  std::string outcome;   // "ran" | "oom" | "crashed-or-oom" | ""
  bool time_suspect = false, mem_suspect = false, oom_suspect = false;
};

struct RunRecord {
  std::string id;
  std::string script;           // the file that was read, as its repository names it
  RunSource read_in;            // the same with all else that tells where
  std::string source;           // name of the file without .json: what is scored together
  bool microbenchmark = false;  // a point of a kernel or network sweep, not a run
  RunModel model;
  RunHardware hardware;
  RunTraining training;
  RunPlan plan;
  RunMeasured measured;
  std::string notes;
  std::vector<std::string> unread;       // in words: what is not understood, and of training and
                                         // plan the keys that nobody reads
  std::optional<std::string> malformed;  // why nothing else of this record may be believed
};

// The step time that the publisher measured: none where it is marked suspect or cannot be had from
// throughput.
std::optional<Seconds> measured_step(const RunRecord& run);

// The peak memory that may be scored.
std::optional<double> measured_memory_gib(const RunRecord& run);

// A framework of which a record tells neither release nor year is as old as what it was read in.
void date_framework(RunRecord& run, const std::optional<std::string>& date);

struct Runs {
  std::vector<RunRecord> records;  // in order of the file
  Problems problems;               // of single records, which are kept with `malformed` set
};

// One file. Keys that nobody reads are passed over: records come from the field. A member that is
// spelled in another type is read (run_fields.hpp), one that says nothing is not stated, and an
// absurd number makes its own record malformed and no other; a file that is not JSON, or not an
// array, is an error.
Result<Runs> load_runs(const std::filesystem::path& file);
Result<Runs> load_runs(const std::filesystem::path& file, const std::string& called);

// Every file of root/runs that holds training runs, in order of name.
Result<Runs> load_all_runs(const std::filesystem::path& root);

}  // namespace shardwise
