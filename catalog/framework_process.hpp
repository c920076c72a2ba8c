// A framework as a process: how it loads a model, what its libraries hold, what its CPU does.
#pragma once

namespace shardwise {

// From files to the GPU.
struct FrameworkLoading {
  bool whole_model_on_gpu = false;  // while loading, beside the shard, on every rank
  // Of one process: device_map sends every tensor to the GPU as it is read.
  bool alone_on_gpu = false;
  bool every_rank_on_host = false;  // each local rank reads its own copy of the weights
  // Embedding and head are made fp32, one after the other, and 16 bits again, unless ranks share
  // the weights.
  bool widens_tables = false;
  bool unties_embeddings = false;  // tied tables are loaded as two
};

// Allocator, libraries and communicators.
struct FrameworkProcess {
  bool expandable_segments = false;  // PYTORCH_CUDA_ALLOC_CONF that its launcher sets; PyTorch has
                                     // them on NVIDIA GPUs only
  int roundup_power2_divisions = 0;  // of the same variable; 0: off
  bool records_streams = false;      // collectives mark what they read: freed, it waits for the GPU
  int library_workspaces = 0;     // cuBLAS workspaces that its own matmul library holds as tensors,
                                  // beside PyTorch's (Transformer Engine)
  int grouped_workspaces = 0;     // and more, where the model has experts
  int world_groups = 0;           // NCCL groups over all ranks beside those of the plan's axes
  bool connects_at_once = false;  // NCCL before 2.22: every communicator has rings and trees
  bool eager_module_loading = false;  // CUDA before 11.7: all kernels of a library are loaded
};

// CPU time that operators and hooks take, beside what the machine takes for any kernel.
struct FrameworkHost {
  double us_per_kernel = 0;               // [us] CPU time to issue one kernel; 0: the profile's
  double us_per_sharded_module = 0;       // [us] of ZeRO-3's hooks around a module, each pass
  double us_per_sharded_unit = 0;         // [us] of FSDP around a unit, a block, each way
  double us_per_reduction = 0;            // [us] of ZeRO-3 for each bucket of gradients
  double us_per_gradient = 0;             // [us] of ZeRO-1's hooks, in a backward pass
  double us_per_gradient_stage_2 = 0;     // [us] of ZeRO-2's
  double us_per_stepped_tensor = 0;       // [us] of clipping, update and zeroing
  double us_per_read_tensor = 0;          // [us] of the norm at stages 1 and 2, of each it steps
  double us_per_read_tensor_stage_3 = 0;  // [us] of ZeRO-3's, of each part
  double us_per_checked_tensor = 0;       // [us] more where it is looked at for infinity and NaN
};

}  // namespace shardwise
