#include "simulator/graphs/gathered_logits.hpp"

#include <utility>
#include <vector>

namespace shardwise {
namespace {

TensorIndex gathered(GraphBuilder& b, std::int64_t bytes) {
  return b.gathered_bytes(bytes, MemoryCategory::logits);
}

}  // namespace

// What is gathered into a list of tensors comes as one, and is copied to them on NCCL's stream
// (PyTorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, allgather: newLikeFlat). Then they are
// joined, row by row; a rank's own place in the list is what it sends. Backward keeps its columns
// of the gradient (picotron @59714b1 tensor_parallel/tp_communications.py, KempnerForge @5666d0d
// distributed/tensor_parallel.py, Aleph-Alpha/scaling @737f8558 core/nn/linear/utils.py).
TensorIndex gathered_logits(GraphBuilder& b, TensorIndex own, std::int64_t elements,
                            std::int64_t graded) {
  const std::int64_t whole = elements * b.element(), part = whole / b.tensor();
  const auto copy = [](std::int64_t bytes, int launches) {
    return MemoryWork{Bytes(2 * bytes), launches, MemoryAccess::streaming};
  };
  Operator gather;
  gather.name = "gather_logits";
  gather.kind = OperatorKind::communication;
  gather.outputs = {gathered(b, whole)};
  gather.forward = {CommWork{Collective::all_gather, Bytes(whole), CommAxis::tensor, false},
                    copy(whole, b.tensor())};
  Operator join;
  join.name = "join_logits";
  join.kind = OperatorKind::loss;
  join.inputs = {own};
  for (int rank = 1; rank < b.tensor(); ++rank) {
    gather.outputs.push_back(gathered(b, part));
    join.inputs.push_back(gather.outputs.back());
  }
  join.forward = {copy(whole, 1)};
  join.backward = {copy(part, 1)};
  b.add(std::move(gather));
  const TensorIndex all =
      b.tensor_bytes("all_logits", whole, MemoryCategory::logits, graded * b.element());
  join.outputs = {all};
  b.add(std::move(join));
  return all;
}

}  // namespace shardwise
