// KernelModel: every kernel of a training step on one GPU, timed. Built once per kind of GPU from
// its datasheet and the profile; a call allocates nothing and looks nothing up.
#pragma once

#include <optional>

#include "simulator/costs/attention_model.hpp"
#include "simulator/costs/gemm_model.hpp"
#include "simulator/costs/memory_bound_model.hpp"
#include "simulator/graphs/operators.hpp"

namespace shardwise {

class KernelModel {
 public:
  KernelModel(const Gpu& gpu, const Profile& profile, const AttentionChoice& choice = {})
      : gemm_(gpu, profile, choice.load),
        attention_(gpu, profile, choice),
        memory_(gpu, profile),
        host_(profile.host),
        host_slowdown_(gpu.host_slowdown),
        host_per_fused_kernel_(gpu.host_per_fused_kernel),
        multiprocessors_(gpu.sm_count) {}

  Seconds gemm(const GemmShape& shape) const { return gemm_.time(shape); }
  // A group's products fill the GPU together, but each is a kernel that starts: Transformer Engine
  // spreads them over four streams (common/gemm/cublaslt_gemm.cu, multi_stream_cublas_gemm), and
  // of 8 and 16 products of 103 GFLOP in all on an H100 each takes 2.1 and 2.4 us beyond what they
  // compute, which is `start` (NVIDIA/TransformerEngine pull request 2045: 628 and 554 TFLOP/s).
  Seconds gemm(const GemmWork& w) const {
    const bool apart = w.operators > 0 || w.looped;  // each alone on the GPU
    const GemmShape shape{
        w.m,          w.n,           w.k,       apart ? 1 : w.batch,  w.dtype,
        w.accumulate, w.across_rows, w.padding, w.padding_transposes, w.padding_copies};
    if (w.by_torch) return gemm_.time_by_torch(shape);
    const bool each_starts = w.grouped && !w.at_once && !apart;
    return (apart ? static_cast<double>(w.batch) : 1.0) * gemm_.time(shape) +
           (each_starts ? static_cast<double>(w.batch - 1) : 0.0) * gemm_.start();
  }
  Seconds attention(const AttentionWork& work) const { return attention_.time(work); }
  Seconds memory_bound(Bytes moved, int kernels = 1, MemoryAccess access = MemoryAccess::streaming,
                       Bytes cold = Bytes(0)) const {
    return memory_.time(moved, kernels, access, cold);
  }
  Seconds memory_bound(const MemoryWork& w, Bytes cold = Bytes(0)) const {
    return memory_.time(w.moved, w.launches, w.access, cold, w.singly, w.lanes);
  }
  double cached_share(double bytes_since) const { return memory_.cached_share(bytes_since); }
  // CPU time to issue one kernel. `own`: what the framework's takes an x86 server, if not the same.
  Seconds host_per_kernel(KernelStyle style, Seconds own = Seconds(0)) const {
    if (style == KernelStyle::fused && host_per_fused_kernel_) return *host_per_fused_kernel_;
    const Seconds usual = host_.per_kernel[static_cast<std::size_t>(style)];
    return host_slowdown_ * (own > Seconds(0) ? own : usual);
  }
  double host_slowdown() const { return host_slowdown_; }
  // False where gemm() times a stand-in for a format that the GPU lacks.
  bool supports(DType dtype) const { return gemm_.supports(dtype); }
  FusedAttention flash_kernel() const { return attention_.flash_kernel(); }
  int multiprocessors() const { return multiprocessors_; }  // 0: not known

 private:
  GemmModel gemm_;
  AttentionModel attention_;
  MemoryBoundModel memory_;
  HostCalibration host_;
  double host_slowdown_ = 1;
  std::optional<Seconds> host_per_fused_kernel_;
  int multiprocessors_ = 0;
};

}  // namespace shardwise
