// The kernels of training that move memory and compute little, one row each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct CUstream_st;  // what a cudaStream_t points to

namespace shardwise {

// A kernel over rows x columns elements of a half type: `inputs` tensors are read, `outputs`
// written (cast_to_fp32's is of 4 bytes an element). `vectors`: of `columns` elements, weights.
struct RowKernel {
  const char* name;
  int inputs;
  int outputs;
  using Launch = void (*)(void* const* tensors, std::int64_t rows, std::int64_t columns,
                          CUstream_st* stream);
  Launch bf16;
  Launch fp16;
};
const std::vector<RowKernel>& row_kernels();

inline constexpr std::int64_t row_pack = 8;  // columns are a multiple of it

// AdamW over fp32 parameters, gradients and both moments (Loshchilov and Hutter, 2019).
void launch_adam(float* parameters, const float* gradients, float* first, float* second,
                 std::int64_t count, CUstream_st* stream);

// NF4 to bf16, blocks of 64 with an fp32 scale each (arXiv 2305.14314, appendix E).
inline constexpr std::int64_t nf4_block = 64;
void launch_nf4_dequantise(const std::uint8_t* codes, const float* scales, void* out,
                           std::int64_t count, CUstream_st* stream);

}  // namespace shardwise
