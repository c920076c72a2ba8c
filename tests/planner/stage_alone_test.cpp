#include "planner/search/stage_alone.hpp"

#include "tests/catch.hpp"

namespace shardwise {
namespace {

// One layer whose weights are gathered in 2 s for each pass and whose gradients are reduced in 5 s;
// 3 s forward, 4 s back.
StepCosts one_layer(bool arrives_apart) {
  LayerSchedule layer;
  layer.time.forward.compute = Seconds(3);
  layer.time.backward_input.compute = Seconds(4);
  layer.gather_forward = layer.gather_backward = Seconds(2);
  layer.reduce = Seconds(5);
  StepCosts costs;
  costs.stages.resize(1);
  costs.stages.front().chunks = {{layer}};
  costs.stages.front().alike = {0};
  costs.alike = {0};
  costs.reduces_every_microbatch = true;
  costs.overlaps_pipeline_comm = arrives_apart;
  return costs;
}

const std::vector<Slot> two_microbatches{
    {Pass::forward, 0, 0}, {Pass::backward, 0, 0}, {Pass::forward, 1, 0}, {Pass::backward, 1, 0}};

StageEnd alone(const StepCosts& costs, std::size_t slots, Seconds input = Seconds(0),
               ArrivalCost arrival = {}) {
  const std::vector<Slot> some(two_microbatches.begin(),
                               two_microbatches.begin() + static_cast<std::ptrdiff_t>(slots));
  return stage_alone(some, costs.stages.front(), costs, 2, input, {arrival}, costs.is_host_bound());
}

}  // namespace

// Forward: weights at 2, done at 5. Back: weights at 5 + 2, done at 11, gradients at 16.
// Forward again: its weights wait for those gradients: 18, done at 21. Back: 23, 27; 32.
TEST_CASE("the weights of a pass wait for the gradients of the one before") {
  const StepCosts costs = one_layer(true);
  CHECK(alone(costs, 1).compute == Seconds(5));
  CHECK(alone(costs, 2).compute == Seconds(11));
  CHECK(alone(costs, 2).stream == Seconds(16));
  CHECK(alone(costs, 3).compute == Seconds(21));
  CHECK(alone(costs, 4).compute == Seconds(27));
  CHECK(alone(costs, 4).stream == Seconds(32));
}

// Gradients of the last microbatch only: the second forward pass has its weights at 11 + 2.
TEST_CASE("what is reduced once a step holds up nothing before") {
  StepCosts costs = one_layer(true);
  costs.reduces_every_microbatch = false;
  CHECK(alone(costs, 3).compute == Seconds(16));
  CHECK(alone(costs, 4).stream == Seconds(16 + 2 + 4 + 5));
}

// The first input is there at 10. On a lane of its own the weights come before it: 10 + 3. Else
// it takes a second of compute, then the weights are asked for: 10 + 1 + 2 + 3.
TEST_CASE("weights are gathered while the first input is on its way, where that is overlapped") {
  CHECK(alone(one_layer(true), 1, Seconds(10)).compute == Seconds(13));
  CHECK(alone(one_layer(false), 1, Seconds(10), {Seconds(1), Seconds(0)}).compute == Seconds(16));
}

// Backward for inputs alone (4 s) gathers; for weights (1 s) it reduces what it has made.
TEST_CASE("a backward pass in two halves reduces in the second") {
  StepCosts costs = one_layer(true);
  costs.stages.front().chunks.front().front().time.backward_weight.compute = Seconds(1);
  const std::vector<Slot> halves{
      {Pass::forward, 0, 0}, {Pass::backward_input, 0, 0}, {Pass::backward_weight, 0, 0}};
  const StageEnd end = stage_alone(halves, costs.stages.front(), costs, 1, Seconds(0), {{}}, false);
  CHECK(end.compute == Seconds(5 + 2 + 4 + 1));
  CHECK(end.stream == Seconds(12 + 5));
}

TEST_CASE("slots that run in pairs are left to other bounds") {
  KnownSlots known;
  CHECK(known.of(*find_pipeline_schedule("1f1b"), {4, 1, 8}, 0) != nullptr);
  const PipelineSchedule& pairs = *find_pipeline_schedule("dualpipe");
  CHECK(known.of(pairs, {4, 2, 8}, 0) == nullptr);
}

// One layer, 3 s forward and 4 s back, whose kernels take the host 10 s each way to issue. The host
// waits for the GPU with each microbatch: forward, its kernels are all issued at 10, back at 20;
// the second microbatch is begun then, 30 and 40. Where it counts no host, 7 s twice.
TEST_CASE("a stage is no faster than its host issues") {
  LayerSchedule layer;
  layer.time.forward.compute = Seconds(3);
  layer.time.backward_input.compute = Seconds(4);
  layer.time.forward.host = layer.time.backward_input.host = Seconds(10);
  StepCosts costs;
  costs.stages.resize(1);
  costs.stages.front().chunks = {{layer}};
  costs.stages.front().alike = {0};
  costs.alike = {0};
  REQUIRE(costs.is_host_bound());
  CHECK(alone(costs, 1).compute == Seconds(10));
  CHECK(alone(costs, 4).compute == Seconds(40));
  costs.stages.front().chunks.front().front().time.forward.host = Seconds(3);
  costs.stages.front().chunks.front().front().time.backward_input.host = Seconds(4);
  CHECK_FALSE(costs.is_host_bound());
  CHECK(alone(costs, 4).compute == Seconds(14));
}

// Two layers, 1 s of kernels and 5 s of issue, then 5 s of kernels and 1 s of issue: the second's
// kernels start when the first is issued, at 5, and are done at 10; a host that does the second
// first is done at 6, and the kernels at 5 + 1.
TEST_CASE("kernels wait for what is issued before them") {
  const auto layer = [](double kernels, double issue) {
    LayerSchedule l;
    l.time.forward.compute = Seconds(kernels);
    l.time.forward.host = Seconds(issue);
    return l;
  };
  StepCosts costs;
  costs.stages.resize(1);
  costs.stages.front().alike = {0};
  costs.alike = {0};
  costs.stages.front().chunks = {{layer(1, 5), layer(5, 1)}};
  CHECK(alone(costs, 1).compute == Seconds(10));
  costs.stages.front().chunks = {{layer(5, 1), layer(1, 5)}};
  CHECK(alone(costs, 1).compute == Seconds(6));
}

}  // namespace shardwise
