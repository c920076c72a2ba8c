#include "planner/answers/run_outlook.hpp"

#include <algorithm>

#include "planner/figures.hpp"
#include "planner/forecast/judgement.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr int simulated_runs = 100;
constexpr std::uint64_t seed = 2026;  // any will do, as long as it stays

std::optional<std::int64_t> samples_asked(const ResolvedRequest& r, std::int64_t tokens_each) {
  if (r.asked.samples) return r.asked.samples;
  if (!r.asked.tokens) return std::nullopt;
  return (*r.asked.tokens - 1) / tokens_each + 1;
}

// The record of the same architecture, else the first, which is said.
const FailureRecord& failures_of(const Operations& operations, const Cluster& cluster,
                                 std::vector<std::string>& notes) {
  const std::string& architecture = cluster.groups.front().gpu.architecture;
  const auto same = std::find_if(operations.failures.begin(), operations.failures.end(),
                                 [&](const auto& f) { return f.architecture == architecture; });
  if (same != operations.failures.end()) return *same;
  const FailureRecord& other = operations.failures.front();
  notes.push_back(sentence("No failure record of ", architecture,
                           " GPUs is catalogued: they are taken to fail as often as the ",
                           grouped(other.gpus), " ", other.architecture, " GPUs of ",
                           other.provenance.date, " did."));
  return other;
}

// One box writes to its own disks where they are catalogued, a cluster to shared storage.
BytesPerSecond storage_rate(const Operations& operations, const Cluster& cluster,
                            std::vector<std::string>& notes) {
  const Node& node = cluster.groups.front().node;
  if (cluster.nodes() == 1 && node.nvme_bandwidth) return *node.nvme_bandwidth;
  const BytesPerSecond rate(operations.storage_per_gpu.value * cluster.gpus());
  notes.push_back(sentence("Checkpoints go to shared storage at ", fixed(rate.value / 1e9, 2),
                           " GB/s (", fixed(operations.storage_per_gpu.value / 1e6, 0),
                           " MB/s per GPU) and training waits for them."));
  return rate;
}

}  // namespace

LongRun long_run(const Workload& w, const Cluster& cluster, Seconds useful,
                 const Operations& operations) {
  std::vector<std::string> untold;
  const Seconds one = failures_of(operations, cluster, untold).mean_time_between_failures();
  return {useful, Seconds(one.value / cluster.gpus()),
          checkpoint_size(w) / storage_rate(operations, cluster, untold), operations.restart};
}

std::optional<RunOutlook> run_outlook(const ResolvedRequest& request, const Question& q,
                                      const Forecast& forecast, const Operations& operations) {
  const std::int64_t each = q.workload.tokens_per_sample();
  const auto samples = samples_asked(request, each);
  if (!samples) return std::nullopt;
  RunOutlook o;
  if (judged(forecast, request.host_ram_stated) == Verdict::does_not_fit)
    o.notes.emplace_back("The plan does not fit: this is what the run would take if it did.");
  o.steps = (*samples - 1) / q.plan.global_batch() + 1;
  o.tokens = *samples * each;
  o.checkpoint = checkpoint_size(q.workload);
  o.checkpoint_rate = storage_rate(operations, q.cluster, o.notes);
  const Seconds one = failures_of(operations, q.cluster, o.notes).mean_time_between_failures();
  o.run = {Seconds(forecast.step_time.expected.value * static_cast<double>(o.steps)),
           Seconds(one.value / q.cluster.gpus()), o.checkpoint / o.checkpoint_rate,
           operations.restart};
  o.young = young_interval(o.run);
  o.daly = daly_interval(o.run);
  o.best = best_simulated_interval(o.run, simulated_runs, seed);
  o.expected = expected_wall_time(o.run, o.daly);
  o.simulated = simulated_wall_time(o.run, o.best, simulated_runs, seed);
  o.goodput = o.run.useful / o.simulated.mean;
  o.energy = gpu_energy(q.cluster, o.simulated.mean);
  o.electricity = {o.energy.value * operations.per_kwh.value};
  o.rental = cheapest_rental(request.facts->catalog.prices, q.cluster);
  if (o.rental) o.rent = for_hours(o.rental->per_hour, o.simulated.mean);
  return o;
}

}  // namespace shardwise
