#include "calibrate/device/together.hpp"

#include <algorithm>

namespace shardwise {

void on_each(const std::vector<Gpu*>& gpus, const std::function<void(std::size_t)>& work) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i]->activate();
    work(i);
  }
}

Sample timed_together(const std::vector<Gpu*>& gpus, const std::function<void()>& enqueue_all) {
  on_each(gpus, [&](std::size_t i) {
    gpus[i]->hold();
    gpus[i]->begin();
  });
  Sample sample;
  try {
    enqueue_all();
    on_each(gpus, [&](std::size_t i) { gpus[i]->end(); });
  } catch (...) {
    for (Gpu* gpu : gpus) gpu->release();
    throw;
  }
  for (Gpu* gpu : gpus) gpu->release();
  on_each(gpus, [&](std::size_t i) {
    sample.busy = std::max(sample.busy, gpus[i]->elapsed());
    sample.disturbed = sample.disturbed || gpus[i]->gave_up();
  });
  sample.value = sample.busy.value;
  return sample;
}

}  // namespace shardwise
