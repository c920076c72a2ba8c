#include "calibrate/device/attention_forward.cuh"

namespace shardwise {
namespace {

template <class T, int dim>
void launch(const ForwardArguments& arguments, cudaStream_t stream) {
  constexpr int bytes = 3 * Tile<T, dim>::halves * static_cast<int>(sizeof(T));
  cudaFuncSetAttribute(forward<T, dim>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const AttentionShape& shape = arguments.shape;
  const dim3 grid(static_cast<unsigned>(shape.sequence / tile),
                  static_cast<unsigned>(shape.batch * shape.heads));
  forward<T, dim><<<grid, 32 * warps, bytes, stream>>>(arguments);
}

}  // namespace

void launch_attention_forward(const std::string& dtype, const AttentionShape& shape,
                              const AttentionTensors& tensors, cudaStream_t stream) {
  const ForwardArguments arguments{shape, tensors, rsqrtf(static_cast<float>(shape.head_dim))};
  const bool narrow = shape.head_dim == 64;
  if (dtype == "bf16")
    (narrow ? launch<__nv_bfloat16, 64> : launch<__nv_bfloat16, 128>)(arguments, stream);
  else
    (narrow ? launch<__half, 64> : launch<__half, 128>)(arguments, stream);
}

}  // namespace shardwise
