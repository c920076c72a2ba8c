#include "planner/request/usual_framework.hpp"

#include <algorithm>
#include <array>

namespace shardwise {
namespace {

// Adapters on one GPU go through a trainer with autocast, as adapters on several do: a plain loop
// around PEFT multiplies fp32 behind the norms that PEFT widens for QLoRA, which nobody chooses.
struct UsualFramework {
  Method method;
  std::string_view one_gpu, several;
};

constexpr std::array<UsualFramework, 5> usual_frameworks{{
    {Method::pretrain, "megatron-lm", "megatron-lm"},
    {Method::full, "hf-trainer", "pytorch-fsdp2"},
    {Method::lora, "trl", "accelerate-fsdp"},
    {Method::dora, "trl", "accelerate-fsdp"},
    {Method::qlora, "trl", "fsdp_qlora"},
}};

const UsualFramework& row_of(Method method) {
  return usual_frameworks[static_cast<std::size_t>(method)];
}

}  // namespace

std::string_view usual_framework(Method method, int gpus) {
  return gpus > 1 ? row_of(method).several : row_of(method).one_gpu;
}

bool framework_follows_gpus(const Request& asked, const std::vector<Method>& methods) {
  if (asked.framework) return false;
  return std::any_of(methods.begin(), methods.end(), [](Method method) {
    return row_of(method).one_gpu != row_of(method).several;
  });
}

}  // namespace shardwise
