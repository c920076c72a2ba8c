#include "calibrate/device/row_kernels.cuh"

namespace shardwise {
namespace {

// The launches, all of one signature: a block per row, or a thread per pack.
Tensors tensors_of(void* const* from, int count) {
  Tensors t{};
  for (int i = 0; i < count; ++i) t.at[i] = from[i];
  return t;
}

template <auto kernel, int count>
void by_row(void* const* tensors, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  kernel<<<static_cast<unsigned>(rows), row_threads, 0, stream>>>(tensors_of(tensors, count),
                                                                  columns);
}

template <auto kernel, int count, class... Function>
void by_pack(void* const* tensors, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  const std::int64_t packs = rows * columns / row_pack;
  const auto blocks = static_cast<unsigned>((packs + row_threads - 1) / row_threads);
  kernel<<<blocks, row_threads, 0, stream>>>(tensors_of(tensors, count), packs, Function()...);
}

using B = __nv_bfloat16;
using H = __half;

}  // namespace

const std::vector<RowKernel>& row_kernels() {
  static const std::vector<RowKernel> rows{
      {"rms_norm", 1, 1, by_row<rms_norm<B>, 2>, by_row<rms_norm<H>, 2>},
      {"rms_norm_backward", 2, 1, by_row<rms_norm_backward<B>, 3>, by_row<rms_norm_backward<H>, 3>},
      {"layer_norm", 1, 1, by_row<layer_norm<B>, 2>, by_row<layer_norm<H>, 2>},
      {"softmax", 1, 1, by_row<softmax<B>, 2>, by_row<softmax<H>, 2>},
      {"softmax_backward", 2, 1, by_row<softmax_backward<B>, 3>, by_row<softmax_backward<H>, 3>},
      {"cross_entropy", 1, 1, by_row<cross_entropy<B>, 2>, by_row<cross_entropy<H>, 2>},
      {"gather", 1, 1, by_row<gather<B>, 2>, by_row<gather<H>, 2>},
      {"add", 2, 1, by_pack<of_two<B, Add>, 3, Add>, by_pack<of_two<H, Add>, 3, Add>},
      {"gelu", 1, 1, by_pack<of_one<B, Gelu>, 2, Gelu>, by_pack<of_one<H, Gelu>, 2, Gelu>},
      {"gelu_backward", 2, 1, by_pack<of_two<B, GeluBackward>, 3, GeluBackward>,
       by_pack<of_two<H, GeluBackward>, 3, GeluBackward>},
      {"silu_multiply", 2, 1, by_pack<of_two<B, SiluMultiply>, 3, SiluMultiply>,
       by_pack<of_two<H, SiluMultiply>, 3, SiluMultiply>},
      {"silu_multiply_backward", 3, 2, by_pack<silu_multiply_backward<B>, 5>,
       by_pack<silu_multiply_backward<H>, 5>},
      {"cast_to_fp32", 1, 1, by_pack<cast_to_fp32<B>, 2>, by_pack<cast_to_fp32<H>, 2>},
  };
  return rows;
}

}  // namespace shardwise
