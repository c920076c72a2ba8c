#include "planner/request/usual_framework.hpp"

#include <algorithm>
#include <array>

#include "catalog/find.hpp"
#include "planner/launch/launch_target.hpp"

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

std::vector<std::string> frameworks_unnamed() {
  std::vector<std::string> ids{std::string(offloads_most)};
  for (const UsualFramework& usual : usual_frameworks) {
    for (const std::string_view id :
         {usual.one_gpu, usual.several, leanest_on_one_gpu(usual.method)})
      if (!id.empty()) ids.emplace_back(id);
    for (const LaunchTarget& target : launch_targets())
      for (const int zero_stage : {0, 1, 2, 3})
        ids.emplace_back(target.framework(usual.method, zero_stage));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::optional<std::string> lacking_file(const Catalog& catalog, std::string_view id) {
  const Framework* row = framework_of_id(catalog, id);
  if (row != nullptr && !row->with_zero.empty() &&
      framework_of_id(catalog, row->with_zero) == nullptr)
    id = row->with_zero;
  else if (row != nullptr)
    return std::nullopt;
  return "frameworks/" + std::string(id) + ".json";
}

bool framework_follows_gpus(const Request& asked, const std::vector<Method>& methods) {
  if (asked.framework) return false;
  return std::any_of(methods.begin(), methods.end(), [](Method method) {
    return row_of(method).one_gpu != row_of(method).several;
  });
}

}  // namespace shardwise
