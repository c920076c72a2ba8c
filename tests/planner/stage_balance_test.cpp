// How layers are dealt to pipeline stages where nobody says.
#include "planner/choice/stage_balance.hpp"
#include "planner/forecast/forecast.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/sample_workload.hpp"

namespace shardwise {
namespace {

// 16 layers of 4 x 2048^2 + 3 x 8192 x 2048 + 2 x 2048 = 2^26 + 2^12 and a head of 131072 x 2048
// = 2^28 parameters: 20 layers all in all but for the norms, which the head has not.
Workload sixteen_layers() {
  Workload w = pretraining(llama(16, 2048, 32, 32, 8192, 131072), 4096);
  w.framework.parallel.stage_balance = StageBalance::head_by_parameters;
  return w;
}

}  // namespace

// A half is 10 x 2^26 + 8 x 2^12, which ten layers exceed by two of 2^12; so do five a quarter.
TEST_CASE("A stage closes once it holds more than its share", "[stage_balance]") {
  CHECK(usual_layers_per_stage(sixteen_layers(), 2) == std::vector<int>{10, 6});
  CHECK(usual_layers_per_stage(sixteen_layers(), 4) == std::vector<int>{5, 5, 5, 1});
}

// DeepSeek-V3 of 61 layers with one predicted depth, as its recipe lays it out: 63 / 16 is 4 for
// each chunk, of which the last one is left with 61 - 15 x 4; 63 / 8 is 8 and 61 - 7 x 8. In 32
// chunks of 2 the last one has none, and the first 61 - 30 x 2.
TEST_CASE("The last stage has what predicts further tokens", "[stage_balance]") {
  Workload w = pretraining(llama(61, 2048, 32, 32, 8192, 131072), 4096);
  w.framework.parallel.stage_balance = StageBalance::ends_as_layers;
  w.prediction_depths = 1;
  std::vector<int> sixteen(16, 4), eight(8, 8);
  sixteen.back() = 1;
  eight.back() = 5;
  CHECK(usual_layers_per_stage(w, 16) == sixteen);
  CHECK(usual_layers_per_stage(w, 8) == eight);
  std::vector<int> many(32, 2);
  many.front() = 1;
  many.back() = 0;
  CHECK(usual_layers_per_stage(w, 32) == many);
  w.prediction_depths = 0;
  CHECK(usual_layers_per_stage(w, 16).empty());
}

// 60 layers with embedding, last norm and head are 63 modules, 3 each for 16 stages and one more
// for the first 15: the embedding is one of four, norm and head are two of the last three. Four
// layers in four stages are 7 modules, 2 2 2 1: the head is alone and the norm beside one layer.
TEST_CASE("Ends of the model are dealt as layers are", "[stage_balance]") {
  Workload w = pretraining(llama(60, 2048, 32, 32, 8192, 131072), 4096);
  w.framework.parallel.stage_balance = StageBalance::modules_in_turn;
  std::vector<int> sixteen(16, 4);
  sixteen.front() = 3;
  sixteen.back() = 1;
  CHECK(usual_layers_per_stage(w, 16) == sixteen);
  w.model.layers = 4;
  CHECK(usual_layers_per_stage(w, 4) == std::vector<int>{1, 2, 1, 0});
}

// LiBai: 24 layers in four stages as if they were 27, 6 7 7 7, of which the last one lacks three;
// 48 in eight as if they were 54, 6 6 7 7 7 7 7 7, less six. Two stages, and what does not divide,
// are dealt evenly.
TEST_CASE("The last stage may be relieved", "[stage_balance]") {
  Workload w = pretraining(gpt(24, 1024, 16), 1024);
  w.framework.parallel.stage_balance = StageBalance::last_relieved;
  CHECK(usual_layers_per_stage(w, 4) == std::vector<int>{6, 7, 7, 4});
  CHECK(usual_layers_per_stage(w, 2).empty());
  w.model.layers = 48;
  CHECK(usual_layers_per_stage(w, 8) == std::vector<int>{6, 6, 7, 7, 7, 7, 7, 1});
  w.model.layers = 26;
  CHECK(usual_layers_per_stage(w, 4).empty());
}

// 32 layers over 64 stages: 32 hold one, the first the embedding as well, and the last the head
// alone. 64 - 32 - 1 = 31 hold nothing. Of layers that are dealt out, those of 0 between the ends.
TEST_CASE("stages that hold no part of the model are told", "[stage_balance]") {
  Question q;
  q.workload = pretraining(llama(32, 2048, 32, 32, 8192, 131072), 4096);
  const auto told = [&](int stages, std::vector<int> layers) {
    q.plan.pipeline = stages;
    q.plan.microbatches = stages;
    q.plan.layers_per_stage = std::move(layers);
    return told_of_empty_stages(q).value_or("");
  };
  CHECK(told(64, {}).find("31 of 64 stages hold no part") == 0);
  CHECK(told(34, {}).find("1 of 34 stages holds no part") == 0);
  CHECK(told(33, {}).empty());
  CHECK(told(32, {}).empty());
  CHECK(told(1, {}).empty());
  CHECK(told(4, {16, 0, 16, 0}).find("1 of 4 stages holds no part") == 0);
  CHECK(told(4, {0, 16, 16, 0}).empty());
}

}  // namespace shardwise
