#include "planner/search/plan_space.hpp"

#include <set>

#include "planner/choice/stage_balance.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/pipeline_schedule.hpp"
#include "simulator/plan_rules.hpp"
#include "tests/catch.hpp"
#include "tests/planner/small_problems.hpp"

namespace shardwise {
namespace {

std::vector<PlanPoint> enumerated(const PlanSpace& space) {
  std::vector<PlanPoint> points;
  for (PlanPoint outer : space.outer_points())
    for (std::size_t i = 0; i < space.values(PlanAxis::recompute); ++i) {
      outer[static_cast<std::size_t>(PlanAxis::recompute)] = static_cast<std::uint16_t>(i);
      space.each_pipeline(outer, [&](PlanPoint x, const ParallelPlan& p) {
        points.push_back(x);
        for (const std::uint16_t group : space.shard_positions(p)) {
          x[static_cast<std::size_t>(PlanAxis::shard_group)] = group;
          points.push_back(x);
        }
      });
    }
  std::sort(points.begin(), points.end());
  return points;
}

}  // namespace

TEST_CASE("what a space enumerates and counts is what its rules leave of all its points") {
  std::mt19937 random(7);
  int spaces = 0;
  while (spaces < 12) {
    const SmallProblem problem = small_problem(random);
    const SearchSite site(problem.request, problem.request.methods.front(),
                          problem.request.clusters.front());
    if (site.space.size() > 3e5) continue;
    ++spaces;
    INFO(problem.told);
    std::vector<PlanPoint> legal;
    each_point(site.space, [&](const PlanPoint& x) {
      if (!site.space.why_not(x)) legal.push_back(x);
    });
    CHECK(enumerated(site.space) == legal);
    CHECK(site.space.legal() == static_cast<std::int64_t>(legal.size()));
  }
}

// Megatron-LM's schedules.py has 1F1B with and without interleaving; DeepSpeed's engine 1F1B alone.
TEST_CASE("a space has the schedules that the framework's code has") {
  for (const Framework& f : known_facts().catalog.frameworks)
    for (const std::string& name : f.supports.schedules) {
      INFO(f.id);
      CHECK(find_pipeline_schedule(name) != nullptr);
    }
  Request r = request_for("llama-3.2-1b", "4xH100-SXM", {Method::pretrain});
  const auto schedules = [&](const char* framework) {
    r.framework = framework;
    const ResolvedRequest asked = resolved(r);
    const SearchSite site(asked, Method::pretrain, asked.clusters.front());
    std::set<std::string> names;
    for (std::size_t i = 0; i < site.space.values(PlanAxis::schedule); ++i)
      names.insert(site.space.shown_value(PlanAxis::schedule, i));
    return names;
  };
  CHECK(schedules("megatron-lm") == std::set<std::string>{"1f1b", "interleaved"});
  CHECK(schedules("deepspeed-pipeline") == std::set<std::string>{"1f1b"});
  CHECK(schedules("torchtitan").count("zb-v") == 1);
}

TEST_CASE("every legal point is a plan of its own that the plan rules pass") {
  std::mt19937 random(8);
  for (int i = 0; i < 10; ++i) {
    const SmallProblem problem = small_problem(random);
    const SearchSite site(problem.request, problem.request.methods.front(),
                          problem.request.clusters.front());
    INFO(problem.told);
    std::set<std::string> texts;
    const std::vector<PlanPoint> points = enumerated(site.space);
    for (const PlanPoint& x : points) {
      const ParallelPlan p = *site.space.plan(x);
      CHECK(p.gpus() == site.cluster.gpus());
      CHECK(p.global_batch() == problem.request.batch);
      CHECK(plan_problems(site.space.workload(p), p, site.cluster).empty());
      // Layers that are named are dealt otherwise than evenly, or the plan would be there twice;
      // but for a framework that deals them unevenly where nobody says.
      const Workload& w = site.space.workload(p);
      const auto chunks = static_cast<int>(p.layers_per_stage.size());
      const bool named = chunks > 0 && usual_layers_per_stage(w, chunks).empty();
      CHECK((!named || p.layers_per_stage != blocks_per_chunk(w.model.layers, chunks, {})));
      texts.insert(whole_text(p));
    }
    CHECK(texts.size() == points.size());
  }
}

TEST_CASE("a point that is no plan says why") {
  Request r = request_for("gpt2", "4xA100-80GB", {Method::pretrain});
  r.batch = 20;  // five microbatches are no even number of rounds of two stages
  const ResolvedRequest resolved_request = resolved(r);
  const SearchSite site(resolved_request, Method::pretrain, resolved_request.clusters.front());
  std::set<std::string> reasons;
  each_point(site.space, [&](const PlanPoint& x) {
    if (const auto why = site.space.why_not(x)) reasons.insert(*why);
  });
  const auto told = [&](const std::string& part) {
    return std::any_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
      return reason.find(part) != std::string::npos;
    });
  };
  CHECK(told("must divide the GPUs"));
  CHECK(told("say nothing without pipeline stages"));
  CHECK(told("ZeRO says nothing"));
  CHECK(told("a multiple of the"));  // interleaved asks for rounds
  CHECK(told("HSDP"));
}

TEST_CASE("packed weights are sharded in no plan of a space") {
  Request request = request_for("8b", "4x4090", {Method::qlora});
  // FSDP1, which the usual framework runs there, parts weights at stage 2 as well (SHARD_GRAD_OP),
  // has no stage 1, and flattens no 8-bit weights at any.
  for (const auto& [base, most] :
       {std::pair{Quantization::nf4, 3}, {Quantization::gptq, 0}, {Quantization::int8, 0}}) {
    request.quantization = base;
    const ResolvedRequest r = resolved(request);
    const SearchSite site(r, Method::qlora, r.clusters.front());
    int largest = 0;
    for (std::size_t i = 0; i < site.space.values(PlanAxis::zero); ++i)
      largest = std::max(largest, std::stoi(site.space.shown_value(PlanAxis::zero, i)));
    CHECK(largest == most);
  }
}

}  // namespace shardwise
