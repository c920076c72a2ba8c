// Kernels of calibrate/device on the CPU: a fiber for each of a block's threads, all on one thread
// of the machine and in a fixed order; blocks one after the other. As much of CUDA as those kernels
// use; the half type is bf16 in software.
#pragma once

// Kernels are written for nvcc: indices are signed.
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __device__
#define __global__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(threads)
#define SHARDWISE_UNROLL

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};
struct __attribute__((may_alias)) uint4 {
  unsigned x, y, z, w;
};
struct float4 {
  float x, y, z, w;
};

inline Index3 threadIdx, blockIdx, gridDim;

namespace shardwise {

// bf16: the upper half of an fp32, rounded to the nearest and to even.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  explicit Bf16(float value) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof wide);
    bits = static_cast<std::uint16_t>((wide + 0x7fffU + (wide >> 16U & 1U)) >> 16U);
  }
  explicit operator float() const {
    const std::uint32_t wide = std::uint32_t{bits} << 16U;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

// The threads of a block. A fiber runs until it waits for others, then the next one does.
class Fibers {
 public:
  Fibers(unsigned count, const std::function<void()>& kernel) : kernel_(kernel) {
    for (unsigned i = 0; i < count; ++i) {
      fibers_.push_back(std::make_unique<Fiber>());
      Fiber& fiber = *fibers_.back();
      begin(fiber.context);
      if (stacks.size() <= i) stacks.push_back(std::unique_ptr<Stack>(new Stack));
      fiber.context.uc_stack.ss_sp = stacks[i]->bytes;
      fiber.context.uc_stack.ss_size = sizeof(Stack);
      fiber.context.uc_link = &home_;
      makecontext(&fiber.context, &Fibers::enter, 0);
    }
  }
  void run() {
    running = this;
    for (std::size_t done = 0; done < fibers_.size();)
      for (std::size_t i = 0; i < fibers_.size(); ++i) {
        if (fibers_[i]->done) continue;
        threadIdx.x = static_cast<unsigned>(i);
        swapcontext(&home_, &fibers_[i]->context);
        done += fibers_[i]->done ? 1 : 0;
      }
  }
  void let_others_run() { swapcontext(&fibers_[threadIdx.x]->context, &home_); }

  static inline Fibers* running = nullptr;

 private:
  struct Stack {
    alignas(16) char bytes[std::size_t{1} << 17U];
  };
  static inline std::vector<std::unique_ptr<Stack>> stacks;  // of one block after the other
  struct Fiber {
    ucontext_t context{};
    bool done = false;
  };
  // By itself: what is live across getcontext might be clobbered.
  [[gnu::noinline]] static void begin(ucontext_t& context) { getcontext(&context); }
  static void enter() {
    running->kernel_();
    running->fibers_[threadIdx.x]->done = true;
  }

  const std::function<void()>& kernel_;
  ucontext_t home_{};
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

class Barrier {
 public:
  explicit Barrier(unsigned count) : count_(count) {}
  void arrive_and_wait() {
    const unsigned round = round_;
    if (++here_ == count_) {
      here_ = 0;
      ++round_;
    }
    while (round == round_) Fibers::running->let_others_run();
  }

 private:
  unsigned count_, here_ = 0, round_ = 0;
};

// What the 32 lanes of a warp show each other, between two barriers.
struct Warp {
  Barrier together{32};
  float value[32] = {};
  std::uint32_t a[32][4] = {}, b[32][2] = {};
};

struct Block {
  Barrier together;
  std::vector<Warp> warps;
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(16384);
  explicit Block(unsigned threads) : together(threads), warps(threads / 32) {}
};
inline std::unique_ptr<Block> block;

// kernel(): a call of the kernel, as each thread of each block of the grid makes it.
inline void run_on_cpu(Index3 grid, unsigned threads, const std::function<void()>& kernel) {
  gridDim = grid;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
      block = std::make_unique<Block>(threads);
      Fibers(threads, kernel).run();
    }
}

inline Warp& my_warp() { return block->warps[threadIdx.x / 32]; }
inline unsigned char* block_memory() {
  return reinterpret_cast<unsigned char*>(block->memory.data());
}

using Fragment __attribute__((may_alias)) = std::uint32_t;

template <class T>
Fragment packed(float a, float b) {
  const T pair[2] = {T(a), T(b)};
  Fragment both = 0;
  std::memcpy(&both, pair, sizeof both);
  return both;
}

inline float half_of(Fragment pair, int which) {
  Bf16 half;
  half.bits = static_cast<std::uint16_t>(which == 0 ? pair : pair >> 16U);
  return static_cast<float>(half);
}

// The layouts that warp_primitives.cuh states, taken literally.
inline void multiply(float (&c)[4], const Fragment (&a)[4], Fragment b0, Fragment b1, Bf16) {
  Warp& warp = my_warp();
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  std::memcpy(warp.a[lane], a, sizeof a);
  warp.b[lane][0] = b0;
  warp.b[lane][1] = b1;
  warp.together.arrive_and_wait();
  for (int i = 0; i < 4; ++i) {
    const int row = g + 8 * (i / 2), column = 2 * t + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int piece = k % 8 / 2;
      const Fragment left = warp.a[row % 8 * 4 + piece][(row >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0)];
      const Fragment right = warp.b[column * 4 + piece][k >= 8 ? 1 : 0];
      c[i] += half_of(left, k % 2) * half_of(right, k % 2);
    }
  }
  warp.together.arrive_and_wait();
}

template <class T>
void pairs_down(const T* from, int stride, Fragment& b0, Fragment& b1) {
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  const auto pair = [&](int row) {
    const T both[2] = {from[row * stride + g], from[(row + 1) * stride + g]};
    Fragment packed_pair = 0;
    std::memcpy(&packed_pair, both, sizeof packed_pair);
    return packed_pair;
  };
  b0 = pair(2 * t);
  b1 = pair(2 * t + 8);
}

}  // namespace shardwise

inline void __syncthreads() { shardwise::block->together.arrive_and_wait(); }

inline float __shfl_xor_sync(unsigned, float value, int lanes) {
  shardwise::Warp& warp = shardwise::my_warp();
  const auto lane = static_cast<int>(threadIdx.x % 32);
  warp.value[lane] = value;
  warp.together.arrive_and_wait();
  const float other = warp.value[lane ^ lanes];
  warp.together.arrive_and_wait();
  return other;
}

inline void atomicAdd(float* to, float value) { *to += value; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
