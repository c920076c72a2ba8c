#include "calibrate/device/attention_backward.cuh"

namespace shardwise {
namespace {

template <class T, int dim>
void launch(const BackwardArguments& arguments, cudaStream_t stream) {
  constexpr int bytes =
      (4 * Tile<T, dim>::halves + Tile<T, tile>::halves) * static_cast<int>(sizeof(T));
  const AttentionShape& shape = arguments.shape;
  const std::int64_t queries =
      static_cast<std::int64_t>(shape.batch) * shape.heads * shape.sequence;
  cudaMemsetAsync(arguments.tensors.d_q, 0, static_cast<std::size_t>(queries * dim) * sizeof(float),
                  stream);
  pulls<T, dim><<<static_cast<unsigned>((queries + warps - 1) / warps), 32 * warps, 0, stream>>>(
      arguments, queries);
  cudaFuncSetAttribute(backward<T, dim>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>(shape.sequence / tile),
                  static_cast<unsigned>(shape.batch * shape.heads));
  backward<T, dim><<<grid, 32 * warps, bytes, stream>>>(arguments);
}

}  // namespace

void launch_attention_backward(const std::string& dtype, const AttentionShape& shape,
                               const AttentionTensors& tensors, cudaStream_t stream) {
  const BackwardArguments arguments{shape, tensors, rsqrtf(static_cast<float>(shape.head_dim))};
  const bool narrow = shape.head_dim == 64;
  if (dtype == "bf16")
    (narrow ? launch<__nv_bfloat16, 64> : launch<__nv_bfloat16, 128>)(arguments, stream);
  else
    (narrow ? launch<__half, 64> : launch<__half, 128>)(arguments, stream);
}

}  // namespace shardwise
