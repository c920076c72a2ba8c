#include "planner/search/near_batch.hpp"

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

int nearest_batch(int batch, int gpus) {
  const int over = batch % gpus, below = batch - over;
  if (over == 0 || (below > 0 && 2 * over < gpus)) return below;
  return below + gpus;
}

std::string told_of_near_batch(int batch, int gpus) {
  return sentence(counted(batch, "sequence"), " per step ", batch == 1 ? "does" : "do",
                  " not divide over ", gpus, " GPUs: this is the answer for ",
                  nearest_batch(batch, gpus), ", the nearest that do.");
}

Result<ChosenPlan> choose_near_plan(const ResolvedRequest& request, Method method,
                                    const Cluster& cluster, const LaunchTarget* only,
                                    Looked looked) {
  auto chosen = choose_plan(request, method, cluster, Room::weighed, only, looked);
  const int gpus = cluster.gpus();
  if (chosen || request.batch % gpus == 0 || !request.asked.plans.empty()) return chosen;
  const Problems& problems = chosen.error();
  if (problems.size() != 1 || problems.front().where != "--batch") return chosen;
  ResolvedRequest near = request;
  near.batch = nearest_batch(request.batch, gpus);
  near.asked.batch = near.batch;
  auto other = choose_plan(near, method, cluster, Room::weighed, only, looked);
  if (!other) return chosen;
  other->notes.insert(other->notes.begin(), told_of_near_batch(request.batch, gpus));
  return other;
}

}  // namespace shardwise
