// Optimizers as rows: what each keeps per trainable parameter, and what a step reads and writes.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace shardwise {

// In which format the states are held.
enum class StateFormat {
  follows_master,  // fp32 beside fp32 (master) weights, bf16 beside pure bf16 weights
  fp32,
  bf16,
  blockwise_8bit,  // uint8 code + one fp32 absmax per 256 elements: 1 + 4/256 bytes
  blockwise_4bit,  // half of one + one fp32 scale per 128 elements: 1/2 + 4/128 bytes
};

// Optimizers that step one tensor after another: fp32 values for each element of the one that is
// stepped, beside what is there: wide copies of gradient and weight, the update as it comes about.
struct StepValues {
  double half = 0;  // where the weight has 16 bits
  double wide = 0;  // where it has 32
};

struct OptimizerRow {
  std::string_view name;
  double full_states;  // states as large as the parameter (AdamW 2, Lion 1, SGD 0)
  StateFormat format;
  bool factored_second;  // a row and a column vector instead of a full second moment
  int rank;    // states of a matrix m x n are r x max(m, n), r x min(m, n) projects it; 0:
               // states are as large as the parameter. Tables and norms keep all of theirs
  bool paged;  // states may be evicted to host memory by the driver
  std::string_view source;
  std::optional<StepValues> one_by_one{};  // nothing: foreach kernels step lists of tensors, with
                                           // one list of temporaries
  bool in_backward = false;     // each gradient is stepped and dropped when the next one is there
  bool one_process = false;     // is refused where processes are several
  bool orthogonalizes = false;  // updates of blocks' matrices; AdamW steps all else
  // What kernels move that are not fused, over what one that reads and writes all once would:
  // foreach AdamW makes about nine passes, 88 B for 28 B.
  double passes = 88.0 / 28.0;
};

// Ranks are the Trainer's own (transformers 5.23 trainer_optimizer.py).
inline constexpr std::array<OptimizerRow, 27> optimizer_rows{{
    {"adamw", 2, StateFormat::follows_master, false, 0, false,
     "arXiv 1711.05101 algorithm 2; pytorch torch/optim/adam.py keeps exp_avg, exp_avg_sq"},
    {"adamw-bf16-states", 2, StateFormat::bf16, false, 0, false,
     "torchtitan components/optimizer/optimizer.py: states in bf16"},
    {"adamw-fp32-states", 2, StateFormat::fp32, false, 0, false,
     "TransformerEngine @d0067d0da pytorch/optimizers/fused_adam.py:124-127: fp32 moments beside "
     "16-bit weights without masters"},
    {"adamw8bit", 2, StateFormat::blockwise_8bit, false, 0, false,
     "arXiv 2110.02861; bitsandbytes/optim/optimizer.py:414,502-530: absmax per 256; "
     "csrc/kernels.cu @95f9af30, kOptimizerStatic8bit2StateBlockwise: a kernel for each tensor",
     StepValues{}},
    {"adamw4bit", 2, StateFormat::blockwise_4bit, false, 0, false,
     "torchao 0.18 optim/adam.py AdamW4bit, subclass_4bit.py: scale per 128; single_param_adam, "
     "compiled",
     StepValues{}},
    {"paged-adamw", 2, StateFormat::fp32, false, 0, true,
     "bitsandbytes/optim/optimizer.py:383-400: managed memory; csrc/kernels.cu @95f9af30, "
     "kOptimizer32bit2State",
     StepValues{}},
    {"paged-adamw8bit", 2, StateFormat::blockwise_8bit, false, 0, true,
     "bitsandbytes/optim/optimizer.py:383-400; kernels as adamw8bit's", StepValues{}},
    {"sgd", 0, StateFormat::follows_master, false, 0, false,
     "no state; pytorch torch/optim/sgd.py, _multi_tensor_sgd: one kernel, in place", StepValues{},
     false, false, false, 1},
    {"sgd-momentum", 1, StateFormat::follows_master, false, 0, false,
     "pytorch torch/optim/sgd.py: momentum_buffer; _multi_tensor_sgd: every kernel in place, mul_ "
     "2 values, add_ 3 and 3 where one pass has 5",
     StepValues{}, false, false, false, 8.0 / 5},
    {"adafactor", 0, StateFormat::fp32, true, 0, false,
     "arXiv 1804.04235 section 3: factored second moment, no first moment; values: transformers "
     "5.23 optimization.py, Adafactor.step: gradient, weight, square and update",
     StepValues{4, 2}},
    {"lion", 1, StateFormat::follows_master, false, 0, false, "arXiv 2302.06675 algorithm 2"},
    {"lion8bit", 1, StateFormat::blockwise_8bit, false, 0, false,
     "arXiv 2302.06675; bitsandbytes block-wise state; kernels as adamw8bit's", StepValues{}},
    {"muon", 1, StateFormat::follows_master, false, 0, false,
     "arXiv 2502.16982: one momentum per matrix, Newton-Schulz update", std::nullopt, false, false,
     true},
    {"adam-mini", 1, StateFormat::follows_master, false, 0, false,
     "arXiv 2406.16793: first moment, one second moment per block"},
    {"ademamix", 3, StateFormat::fp32, false, 0, false,
     "bitsandbytes 0.50 optim/ademamix.py: two first moments and one second, in fp32",
     StepValues{}},
    {"ademamix8bit", 3, StateFormat::blockwise_8bit, false, 0, false,
     "bitsandbytes 0.50 optim/ademamix.py: the same, absmax per 256", StepValues{}},
    {"schedule-free-adamw", 2, StateFormat::follows_master, false, 0, false,
     "schedulefree 1.4 adamw_schedulefree.py: z and exp_avg_sq"},
    {"galore-adamw", 2, StateFormat::follows_master, false, 128, false,
     "galore-torch 1.0 adamw.py, galore_projector.py; arXiv 2403.03507 table 1", StepValues{1, 2}},
    {"galore-adamw8bit", 2, StateFormat::blockwise_8bit, false, 128, false,
     "galore-torch 1.0 adamw8bit.py, galore_projector.py; arXiv 2403.03507"},
    {"galore-adamw-layerwise", 2, StateFormat::follows_master, false, 128, false,
     "transformers 5.23 trainer_optimizer.py, _setup_low_rank_optimizer: an optimizer of its own "
     "for each parameter, which steps when its gradient is there; refused in several processes",
     StepValues{1, 2}, true, true},
    {"galore-adamw8bit-layerwise", 2, StateFormat::blockwise_8bit, false, 128, false,
     "the same; galore-torch 1.0 adamw8bit.py: a copy of the weight, the update in full",
     StepValues{1, 2}, true, true},
    {"apollo-adamw-layerwise", 2, StateFormat::follows_master, false, 128, false,
     "the same of apollo-torch", StepValues{1, 2}, true, true},
    {"apollo-adamw", 2, StateFormat::follows_master, false, 128, false,
     "apollo-torch 1.0.3 apollo.py, random_projector.py (which keeps its matrix)",
     StepValues{1, 2}},
    {"apollo-mini", 2, StateFormat::follows_master, false, 1, false,
     "apollo-torch 1.0.3 README.md: APOLLO of rank 1, scaled by tensor", StepValues{1, 2}},
    {"lomo", 0, StateFormat::fp32, false, 0, false,
     "lomo-optim 0.1.1 lomo.py fuse_update; arXiv 2306.09782", StepValues{2, 1}, true},
    {"adalomo", 0, StateFormat::fp32, true, 0, false,
     "lomo-optim 0.1.1 adalomo.py fuse_update; arXiv 2310.10195", StepValues{3, 3}, true},
    {"none", 0, StateFormat::follows_master, false, 0, false, "no optimizer: forward only"},
}};

constexpr const OptimizerRow* optimizer_named(std::string_view name) {
  for (const OptimizerRow& r : optimizer_rows)
    if (r.name == name) return &r;
  return nullptr;
}

// What others call rows: transformers/training_args.py, OptimizerNames, where more than separators
// differ; Adam keeps what AdamW keeps.
struct OptimizerSpelling {
  std::string_view text, name;
};
inline constexpr std::array<OptimizerSpelling, 7> optimizer_spellings{{
    {"adam", "adamw"},
    {"adamw_torch", "adamw"},
    {"adamw_torch_fused", "adamw"},
    {"adamw_hf", "adamw"},
    {"adamw_bnb_8bit", "adamw8bit"},
    {"adamw_torch_8bit", "adamw8bit"},
    {"paged_adamw_32bit", "paged-adamw"},
}};

// Bytes of optimizer state per trainable parameter that has states of its own size, given the bytes
// of the weight that the optimizer steps (the fp32 master where there is one, else the weight
// itself). What rank and factors make of it: MatrixSides, parameter_state.cpp.
constexpr double state_bytes_per_parameter(const OptimizerRow& o, double stepped_weight_bytes) {
  double each = 4.0;
  switch (o.format) {
    case StateFormat::follows_master:
      each = stepped_weight_bytes;
      break;
    case StateFormat::fp32:
      each = 4.0;
      break;
    case StateFormat::bf16:
      each = 2.0;
      break;
    case StateFormat::blockwise_8bit:
      each = 1.0 + 4.0 / 256.0;
      break;
    case StateFormat::blockwise_4bit:
      each = 0.5 + 4.0 / 128.0;
      break;
  }
  return o.full_states * each;
}

}  // namespace shardwise
