// What the kernels between logits and loss move: PyTorch's operators, or those of a compiler.
#pragma once

#include <cstdint>

#include "catalog/framework.hpp"

namespace shardwise {

// [B] of each logit, and kernels.
struct LossTraffic {
  double cast = 0;  // to fp32; the same back
  double forward = 0;
  double backward = 0;
  int kernels = 2;  // each way, beside the cast's
};

// Values that PyTorch's softmax reads and writes forward: rows that shared memory does not hold are
// read for their maximum, for the sum and for the result. Backward reads the gradient twice
// (aten/src/ATen/native/cuda/SoftMax.cu, cunn_SoftMaxForward, cunn_SoftMaxForwardSmem,
// cunn_SoftMaxBackward).
double row_passes(std::int64_t row_bytes);

bool is_loss_compiled(const Framework& framework);

// PyTorch's cross-entropy over rows of so many logits, `each` bytes wide, of which a copy in fp32
// is made where `widens`: log-softmax and the choice of one; backward zeros for the gradient of the
// choice, and log-softmax's.
LossTraffic cross_entropy_traffic(std::int64_t width, std::int64_t each, bool widens);

// Upcast, softmax and loss as reductions over the logits, and their gradient from them.
LossTraffic compiled_loss_traffic(std::int64_t each);

}  // namespace shardwise
