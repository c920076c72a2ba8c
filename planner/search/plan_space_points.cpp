// The points of a plan space: which there are, which are legal, how many.
#include <algorithm>
#include <map>

#include "planner/search/plan_space.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/pipeline_schedule.hpp"

namespace shardwise {
namespace {

// What counts blocks from the first needs more of them than that to say something new.
bool says_nothing(const RecomputePolicy& policy, int most_blocks) {
  const bool counts = policy.checkpointed_blocks < (1 << 30) || policy.stride > 1;
  return counts && most_blocks <= (policy.stride > 1 ? 1 : policy.checkpointed_blocks);
}

}  // namespace

int PlanSpace::most_blocks(const ParallelPlan& p) const {
  const PipelineSchedule& schedule = *find_pipeline_schedule(p.schedule_row());
  const int parts = schedule.model_chunks({p.pipeline, p.chunks, p.microbatches});
  const std::vector<int> blocks =
      blocks_per_chunk(workload(p).model.layers, parts, p.layers_per_stage);
  return *std::max_element(blocks.begin(), blocks.end());
}

bool PlanSpace::outer_divides(const PlanPoint& x) const {
  const Workload& w = *without_zero_;
  const std::int64_t t = number(x, PlanAxis::tensor), c = number(x, PlanAxis::context);
  if (gpus_ % (t * c) != 0) return false;
  const bool sp = number(x, PlanAxis::sequence_parallel) != 0;
  if (sp && (t == 1 || w.sequence % (t * c) != 0)) return false;
  const bool cut = number(x, PlanAxis::expert_tensor) != 0;
  if (t == 1 && cut) return false;
  return gpus_ % (number(x, PlanAxis::expert) * (cut ? t : 1)) == 0;
}

std::vector<PlanPoint> PlanSpace::outer_points() const {
  std::vector<PlanPoint> points;
  if (nothing_left_) return points;
  PlanPoint x{};
  const std::size_t last = index(PlanAxis::recompute);
  for (;;) {
    if (outer_divides(x)) points.push_back(x);
    std::size_t axis = last;
    while (axis-- > 0) {
      if (++x[axis] < sizes_[axis]) break;
      x[axis] = 0;
      if (axis == 0) return points;
    }
  }
}

int PlanSpace::most_stages(const PlanPoint& x) const {
  const int across = number(x, PlanAxis::tensor) * number(x, PlanAxis::context);
  int most = 1;
  for (const int stages : numbers_[index(PlanAxis::pipeline)])
    if ((gpus_ / across) % stages == 0) most = std::max(most, stages);
  return most;
}

std::vector<std::uint16_t> PlanSpace::shard_positions(const ParallelPlan& p) const {
  std::vector<std::uint16_t> found;
  const std::vector<int>& groups = numbers_[index(PlanAxis::shard_group)];
  if (p.zero_stage < 3) return found;
  for (std::size_t i = 1; i < groups.size(); ++i)
    if (groups[i] < p.data && p.data % groups[i] == 0)
      found.push_back(static_cast<std::uint16_t>(i));
  return found;
}

std::vector<std::uint16_t> PlanSpace::pipeline_positions(const PlanPoint& x) const {
  const std::int64_t across =
      std::int64_t{number(x, PlanAxis::tensor)} * number(x, PlanAxis::context);
  std::vector<std::uint16_t> found;
  for (std::size_t i = 0; i < values(PlanAxis::pipeline); ++i) {
    const std::int64_t model = across * numbers_[index(PlanAxis::pipeline)][i];
    if (gpus_ % model != 0) continue;
    const auto data = static_cast<int>(gpus_ / model);
    const std::int64_t round = std::int64_t{data} * number(x, PlanAxis::microbatch);
    if (batch_ % round == 0 && shares_as_fixed(data, static_cast<int>(batch_ / round)))
      found.push_back(static_cast<std::uint16_t>(i));
  }
  return found;
}

PlanPoint PlanSpace::with(PlanPoint x, const PipelineVariant& v) {
  x[index(PlanAxis::schedule)] = v.schedule;
  x[index(PlanAxis::chunks)] = v.chunks;
  x[index(PlanAxis::stages)] = v.stages;
  return x;
}

bool PlanSpace::legal_with(PlanPoint x, const PipelineVariant& v) const {
  x = with(x, v);
  const std::optional<ParallelPlan> p = plan(x);
  return p && !why_not_shared(x, *p);
}

bool PlanSpace::legal_in_chunks(const PlanPoint& x, const PipelineVariant& v) const {
  return !says_nothing(policies_[static_cast<std::size_t>(number(x, PlanAxis::recompute))],
                       v.most_blocks);
}

std::vector<PipelineVariant> PlanSpace::variants(PlanPoint x) const {
  std::vector<PipelineVariant> found;
  const int stages = number(x, PlanAxis::pipeline), layers = without_zero_->model.layers;
  const auto add = [&](std::size_t schedule, std::size_t chunks) {
    for (std::size_t deal = 0; deal < values(PlanAxis::stages); ++deal) {
      PipelineVariant v{static_cast<std::uint16_t>(schedule), static_cast<std::uint16_t>(chunks),
                        static_cast<std::uint16_t>(deal)};
      if (!legal_with(x, v)) continue;
      const ParallelPlan p = *plan(with(x, v));
      v.most_blocks = most_blocks(p);
      found.push_back(v);
    }
  };
  for (std::size_t s = 0; s < (stages == 1 ? 1 : values(PlanAxis::schedule)); ++s)
    for (std::size_t c = 0; c < (stages == 1 ? 1 : values(PlanAxis::chunks)); ++c) {
      const int chunks = numbers_[index(PlanAxis::chunks)][c];
      if (stages * chunks > layers) break;
      const std::string& schedule =
          schedules_[static_cast<std::size_t>(numbers_[index(PlanAxis::schedule)][s])];
      const bool split = schedule == layer_split_name;
      const PipelineSchedule& row =
          *find_pipeline_schedule(split ? layer_split_schedule : schedule);
      const PlanPoint here =
          with(x, {static_cast<std::uint16_t>(s), static_cast<std::uint16_t>(c)});
      const auto p = plan(here);
      if (p && !refusal(row, {stages, chunks, p->microbatches})) add(s, c);
    }
  return found;
}

void PlanSpace::each_pipeline(PlanPoint x, const Visit& visit) const {
  for (const std::uint16_t i : pipeline_positions(x)) {
    x[index(PlanAxis::pipeline)] = i;
    for (const PipelineVariant& v : variants(x))
      if (legal_in_chunks(x, v)) visit(with(x, v), *plan(with(x, v)));
  }
}

std::int64_t PlanSpace::legal() const {
  const bool alike = cluster_->groups.size() == 1;
  struct Known {
    std::vector<PipelineVariant> variants;
    std::int64_t legal = 0;  // with every policy
  };
  std::map<std::array<int, 3>, Known> known;  // by stages, microbatches, shared axes
  std::int64_t total = 0;
  int serial = 0;
  for (PlanPoint x : outer_points()) {
    ++serial;
    for (const std::uint16_t i : pipeline_positions(x)) {
      x[index(PlanAxis::pipeline)] = i;
      const std::optional<ParallelPlan> p = plan(x);
      const std::array<int, 3> key{p->pipeline, p->microbatches, alike ? 0 : serial};
      auto it = known.find(key);
      if (it == known.end() || it->second.variants.empty()) {
        Known list{variants(x), 0};
        for (std::size_t r = 0; r < values(PlanAxis::recompute); ++r) {
          x[index(PlanAxis::recompute)] = static_cast<std::uint16_t>(r);
          for (const PipelineVariant& v : list.variants) list.legal += legal_in_chunks(x, v);
        }
        x[index(PlanAxis::recompute)] = 0;
        it = known.insert_or_assign(key, std::move(list)).first;
      }
      const Known& here = it->second;
      if (here.variants.empty() || !legal_with(x, here.variants.front())) continue;
      total += here.legal * static_cast<std::int64_t>(1 + shard_positions(*p).size());
    }
  }
  return total;
}

}  // namespace shardwise
