// A request: what a person asked, on the command line or in a request file, before any default is
// filled in. Closed sets (methods, optimizers, formats) are already values; names that the catalog
// has to know are still names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog/adapter.hpp"
#include "catalog/dtype.hpp"
#include "catalog/gpu.hpp"
#include "catalog/optimizer.hpp"
#include "catalog/preference.hpp"
#include "catalog/transformer.hpp"
#include "catalog/units.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {

struct Request {
  std::optional<std::string> model;  // a name, an alias, or the path of a config.json
  std::optional<std::string> gpus;
  std::optional<int> nodes, gpus_per_node;
  std::optional<std::string> network;
  std::optional<double> network_share;    // of its rate that other jobs leave; absent: all
  std::optional<Bytes> host_ram;          // of every node
  std::optional<int> power_limit_w;       // [W] of every GPU
  std::optional<Bytes> used_memory;       // of every GPU, by other programs
  std::optional<int> pcie_lanes;          // of every GPU's slot
  std::optional<PeerAccess> peer_access;  // between GPUs over PCIe; absent: as each usually has it
  std::vector<Method> methods;            // empty: the sensible ones
  std::optional<std::string> framework;
  std::optional<int> sequence;         // tokens
  std::optional<std::string> lengths;  // path of the samples' lengths (sample_lengths.hpp)
  std::optional<int> batch;            // sequences per step over all GPUs
  std::optional<int> microbatch;       // sequences
  std::optional<int> images;           // of a sequence, where the model has a vision tower
  std::optional<int> image_tokens;     // of the sequence that stand for one image
  std::vector<std::string> plans;      // empty: searched, or the framework's default
  std::vector<std::string> plan_from;  // files that say a plan (plan_from.hpp)
  std::optional<std::string> recompute;
  std::optional<Offload> offload;
  const OptimizerRow* optimizer = nullptr;  // nullptr: the framework's
  std::optional<DType> precision;
  const PreferenceRow* preference = nullptr;  // nullptr: the next token is trained for
  std::optional<int> lora_rank;
  std::optional<std::string> lora_targets;
  std::optional<Quantization> quantization;
  std::optional<double> expert_imbalance;       // Workload::expert_imbalance
  std::optional<std::int64_t> samples, tokens;  // how much data the hours are stated for
  std::optional<std::string> profile;           // path
  bool unfold = false;
  // Though the framework's row has them not.
  bool expandable_segments = false, fused_loss = false, fp8_attention = false;
  std::optional<double> jitter, straggler;  // simulator/variation.hpp
  std::optional<std::int64_t> seed;
  std::optional<double> loader_sequences_per_s;  // of one node
  std::optional<double> measured_step_s;         // simulate: [s] to hold beside the forecast
  std::optional<Bytes> measured_memory;          // likewise: of the fullest GPU, at its peak
  std::optional<Transformer> uploaded;           // the model itself, instead of a name
  bool names_only = false;  // nothing here may name a file: the question comes over a network
  bool explain = false;     // every figure with its derivation
  bool reach = false;       // how long a sequence and how large a microbatch still fit
  std::vector<std::string> why_not;  // plans to hold against the one answered with
  // Of one command each (RequestField::command):
  std::optional<int> top;                    // plan: how many
  std::optional<std::string> objective;      // plan
  std::optional<std::string> fix;            // plan: search/plan_fix.hpp
  std::optional<double> max_memory;          // plan: the most of a GPU's memory, as a fraction
  bool allow_tight = false, pareto = false;  // plan
  bool schedules = false;                  // compare: those of one plan, in place of several plans
  std::optional<Bytes> memory;             // compare, with schedules: the budget per GPU
  std::optional<std::string> target;       // launch
  std::optional<double> learning_rate;     // launch, with ...
  std::optional<int> learning_rate_batch;  // ... this many sequences per step
  std::optional<double> budget;            // shop: US dollars
  // Where a value was said that no flag says, by the flag that would: "--gpus" in "ask.json:/gpus".
  std::map<std::string, std::string, std::less<>> places;
};

}  // namespace shardwise
