// Explanations add up to the figures that they explain, and say where their inputs come from.
#include "planner/forecast/explanation.hpp"

#include <algorithm>
#include <cmath>

#include "planner/forecast/kernel_account.hpp"
#include "simulator/costs/cost_model.hpp"
#include "tests/catch.hpp"
#include "tests/planner/recorded_plans.hpp"

using namespace shardwise;

namespace {

const Facts& the_facts() {
  static const Facts facts = *load_facts(source_dir() + "/catalog", std::nullopt);
  return facts;
}

Question question_of(const std::string& model, Method method, const std::string& framework,
                     const std::string& gpus, const std::string& plan) {
  Question q;
  q.workload.model = **find_model(the_facts().catalog, model);
  q.workload.method = method;
  q.workload.sequence = 1024;
  q.workload.framework = **find_framework(the_facts().catalog, framework);
  q.plan = *parse_plan(plan);
  q.cluster = parse_gpus(the_facts().catalog, gpus)->front();
  return q;
}

Question question_of(const RecordedPlan& asked) {
  return question_of(asked.model, asked.method, asked.framework, asked.gpus, asked.plan);
}

Explanation explained(const Question& q) {
  const auto f = forecast(q, the_facts().profile);
  REQUIRE(f);
  return explain(q, *f, the_facts().profile);
}

const ExplainedFigure* figure(const Explanation& e, const std::string& key) {
  for (const ExplainedFigure& f : e.figures)
    if (f.key == key) return &f;
  return nullptr;
}

// What an optimizer's figure says that it is.
double from_inputs(const ExplainedFigure& o) {
  REQUIRE(o.inputs.size() == 8);
  const auto in = [&](std::size_t i) { return o.inputs[i].value; };
  return (in(0) * in(1) + in(2) + in(3)) / (in(4) * 1e9 * in(5)) + in(6) * in(7);
}

double sum_of_inputs(const std::vector<ExplainedInput>& inputs) {
  double total = 0;
  for (const ExplainedInput& i : inputs) total += i.value;
  return total;
}

}  // namespace

// LLaMA-Factory accumulates gradients whole: of 8,030,261,248 parameters over 8 ranks 4 / 8 bytes
// each are kept, and whole ones of 2 lie there until the last of two microbatches is done.
TEST_CASE("what lies beside states for a moment is a term of its own", "[explain]") {
  const Question q = question_of("llama-3.1-8b", Method::full, "llama-factory", "8xH100-SXM",
                                 "dp=8,zero=3,mbs=1,ga=2,recompute=full");
  const Explanation e = explained(q);
  const ExplainedFigure* gradients = figure(e, "gradients");
  REQUIRE(gradients != nullptr);
  const double kept = 8'030'261'248 * 4.0 / 8 / (1 << 30);
  const ExplainedInput& beside = gradients->inputs.back();
  CHECK(beside.name == "beside them");
  CHECK(kept + beside.value == Approx(gradients->value).epsilon(1e-3));
  CHECK(gradients->formula.find("not yet summed or sharded") != std::string::npos);
}

// 8,030,261,248 parameters of 2 bytes, and of the 32 x (2 x 4,096^2 + 2 x 4,096 x 1,024 + 3 x 4,096
// x 14,336) = 6,979,321,856 of linear layers copies of 8 bits by rows and by columns: 27.96 GiB,
// there at any moment.
TEST_CASE("copies of weights for narrow products are a term of their own", "[explain]") {
  Question q = question_of("llama-3.1-8b", Method::pretrain, "megatron-lm", "8xH100-SXM",
                           "dp=8,zero=1,mbs=1,ga=1,recompute=full");
  q.workload.compute = DType::fp8;
  const Explanation e = explained(q);
  const ExplainedFigure* weights = figure(e, "weights");
  REQUIRE(weights != nullptr);
  REQUIRE(weights->inputs.size() >= 2);
  const ExplainedInput &copied = weights->inputs[weights->inputs.size() - 2],
                       &each = weights->inputs.back();
  CHECK(copied.value == 6'979'321'856);
  CHECK(each.value == 2);
  CHECK(each.source.find("TransformerEngine") != std::string::npos);
  CHECK(weights->value ==
        Approx((8'030'261'248 * 2.0 + 6'979'321'856 * 2.0) / (1 << 30)).epsilon(1e-3));
  CHECK(weights->formula.find("moment") == std::string::npos);
}

TEST_CASE("the parts of memory, of a step and of its bound add up", "[explain]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Question q = question_of(plan);
    const auto f = forecast(q, the_facts().profile);
    REQUIRE(f);
    const Explanation e = explain(q, *f, the_facts().profile);
    const ExplainedFigure* device = figure(e, "peak_memory_gib.device");
    REQUIRE(device != nullptr);
    CHECK(sum_of_inputs(device->inputs) == Approx(device->value).epsilon(1e-9));
    const ExplainedFigure* step = figure(e, "step_time_s.expected");
    REQUIRE(step != nullptr);
    CHECK(sum_of_inputs(step->inputs) == Approx(step->value).epsilon(1e-6));
    Seconds bound;
    for (const Seconds t : e.bound.parts) bound += t;
    CHECK(bound.value == Approx(f->step_time.expected.value).epsilon(1e-6));
    for (const Seconds t : e.bound.parts) CHECK(t <= e.bound.part(e.bound.kind));
    // Operators of the busiest stage, one by one and as its passes: the same kernels.
    const StageAccount work =
        kernel_accounts(q, the_facts().profile)[static_cast<std::size_t>(e.stage)];
    Seconds operators;
    for (const OperatorAccount& o : e.operators) operators += o.time();
    const Seconds passes = work.forward.time() + work.recompute.time() + work.backward.time() +
                           work.backward_weight.time();
    CHECK(operators.value == Approx(q.plan.microbatches * passes.value).epsilon(1e-9));
    CHECK(std::is_sorted(
        e.operators.begin(), e.operators.end(),
        [](const OperatorAccount& a, const OperatorAccount& b) { return a.time() > b.time(); }));
    // tokens = sequences per step x 1024 tokens / step
    const ExplainedFigure* tokens = figure(e, "tokens_per_s");
    REQUIRE(tokens != nullptr);
    CHECK(tokens->value ==
          Approx(tokens->inputs[0].value * tokens->inputs[1].value / tokens->inputs[2].value));
  }
}

TEST_CASE("states are parameters x bytes / ranks, as the derivation says", "[explain]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Question q = question_of(plan);
    const auto f = forecast(q, the_facts().profile, {.time = true});
    REQUIRE(f);
    const Explanation e = explain(q, *f, the_facts().profile);
    const ExplainedFigure* weights = figure(e, "weights");
    REQUIRE(weights != nullptr);
    double gib = 0;
    for (std::size_t i = 0; i + 2 < weights->inputs.size(); i += 3)
      gib += weights->inputs[i].value * weights->inputs[i + 1].value /
             weights->inputs[i + 2].value / (1 << 30);
    // The ledger counts blocks: the allocator rounds tensors up to 512 bytes and leaves the rest of
    // a large block, where that is less than 1 MiB, with its tensor. GPT-2's are that small.
    CHECK(gib == Approx(weights->value).epsilon(0.03));
  }
}

// Where the GPU steps, the derivation's inputs make its figure: a rank's parameters x bytes over
// the bandwidth that streaming kernels reach, and the kernels' starts.
TEST_CASE("the optimizer's time follows from its inputs", "[explain]") {
  int seen = 0;
  for (const RecordedPlan& plan : recorded_plans()) {
    INFO(plan.model << " " << plan.plan);
    const Question q = question_of(plan);
    const auto f = forecast(q, the_facts().profile);
    const Explanation e = explain(q, *f, the_facts().profile);
    const ExplainedFigure* o = figure(e, "optimizer");
    if (o == nullptr) continue;
    ++seen;
    CHECK(o->value == Approx(from_inputs(*o)).epsilon(1e-6));
  }
  CHECK(seen > 0);
}

// Of 8,030,261,248 parameters ZeRO-1 steps an eighth on each of 8 ranks; the fp32 buffer of all
// gradients, 32.1 GB, is zeroed on each, and looked through for NaN before it is reduced.
TEST_CASE("a step that zeroes a whole buffer of gradients says so", "[explain]") {
  const Explanation e =
      explained(question_of("llama-3.1-8b", Method::pretrain, "megatron-lm", "8xH100-SXM",
                            "dp=8,zero=1,mbs=1,ga=1,recompute=full"));
  const ExplainedFigure* o = figure(e, "optimizer");
  REQUIRE(o != nullptr);
  CHECK(o->inputs.at(0).value == 8'030'261'248 / 8);
  CHECK(o->inputs.at(2).name == "gradient buffer zeroed");
  CHECK(o->inputs.at(2).value == 8'030'261'248 * 4.0);
  CHECK(o->inputs.at(3).name == "gradients checked");
  CHECK(o->inputs.at(3).value == 8'030'261'248 * 4.0);
  CHECK(o->value == Approx(from_inputs(*o)).epsilon(1e-6));
}

// Llama-3.1-8B on one GPU, one sequence of 1,024 tokens: every matrix meets every token once
// forward and twice backward, so products are 2 x 7.50e9 x 1,024 FLOPs forward (8.03e9 parameters
// less the 0.53e9 of the table that is only looked up) and twice that backward. Attention is 4 d
// FLOPs for each of 1,024^2 / 2 pairs, 32 heads of 128, 32 layers: 0.275e12 forward, 2.5 times that
// backward.
TEST_CASE("the kernels of a pass add up to the model's products", "[explain]") {
  Question q = question_of({"llama-3.1-8b", "1xH100-SXM", Method::full, "pytorch-fsdp2",
                            "dp=1,mbs=1,ga=1,recompute=none"});
  const auto stages = kernel_accounts(q, the_facts().profile);
  REQUIRE(stages.size() == 1);
  const StageAccount& a = stages.front();
  const double products = 2 * 7.5046e9 * 1024;
  CHECK(a.forward.products.value == Approx(products).epsilon(0.001));
  CHECK((a.backward.products + a.backward_weight.products).value ==
        Approx(2 * products).epsilon(0.001));
  const double attention = 4.0 * 128 * 32 * 32 * (1024.0 * 1024 / 2);
  CHECK(a.forward.attention.value == Approx(attention).epsilon(1e-9));
  CHECK(a.backward.attention.value == Approx(2.5 * attention).epsilon(1e-9));
  CHECK(a.recompute.products_run == 0);
  CHECK(a.stepped == parameter_count(q.workload.model).total);
}

// cuDNN before 9.18 reaches less of Blackwell's rate (catalog/profiles/published.json), and what is
// counted of a run with 9.13 is what its step is forecast with: a layer takes as much longer.
TEST_CASE("kernels are counted with the release of cuDNN that a run has", "[explain]") {
  Question q = question_of("llama-3.1-8b", Method::full, "megatron-lm", "1xB200",
                           "dp=1,mbs=1,ga=1,recompute=none");
  const auto counted = [&](std::optional<LibraryRelease> release) {
    q.workload.framework.attention.cudnn = release;
    return kernel_accounts(q, the_facts().profile).front().forward.time();
  };
  const auto timed = [&](std::optional<LibraryRelease> release) {
    q.workload.framework.attention.cudnn = release;
    const CostModel cost(q.workload, q.plan, q.cluster, the_facts().profile);
    const ModelPartition partition =
        partition_model(q.workload, q.plan, *find_pipeline_schedule(q.plan.schedule_row()),
                        *recompute_policy("none"));
    AttentionChoice alone = attention_choice(q.workload, q.plan);
    alone.load = {};
    const KernelModel kernels(q.cluster.groups.front().gpu, the_facts().profile, alone);
    Seconds sum;
    for (const ChunkLayer& layer : partition.stages.front().front().layers)
      sum += cost.layer_time(*layer.definition, kernels).forward.compute;
    return sum;
  };
  const double longer = (timed(LibraryRelease{9, 13}) - timed(std::nullopt)).value;
  CHECK(longer > 0);
  CHECK((counted(LibraryRelease{9, 13}) - counted(std::nullopt)).value == Approx(longer));
}

// Pairs of two sequences each: DPO's reference passes over them forward once more.
TEST_CASE("the passes of a reference model are counted", "[explain]") {
  Question q = question_of({"llama-3.2-1b", "1xH100-SXM", Method::full, "pytorch-fsdp2",
                            "dp=1,mbs=1,ga=1,recompute=full"});
  const auto passes = [&](const char* preference) {
    q.workload.prefer(preference_named(preference));
    return kernel_accounts(q, the_facts().profile).front();
  };
  const StageAccount one = passes("simpo"), two = passes("dpo");
  CHECK(two.forward.products.value == Approx(2 * one.forward.products.value).epsilon(1e-9));
  CHECK(two.recompute.products == one.recompute.products);
  CHECK(two.backward.products == one.backward.products);
}

TEST_CASE("every input that was read says where", "[explain]") {
  for (const RecordedPlan& plan : recorded_plans()) {
    const Question q = question_of(plan);
    const auto f = forecast(q, the_facts().profile);
    for (const ExplainedFigure& figure : explain(q, *f, the_facts().profile).figures)
      for (const ExplainedInput& input : figure.inputs) {
        INFO(figure.key << ", " << input.name);
        CHECK((!input.trust || !input.source.empty()));
        CHECK(std::isfinite(input.value));
        CHECK_FALSE(input.name.empty());
      }
  }
}

TEST_CASE("a GPU with a tenth of the bandwidth moves the bound from compute to hbm", "[explain]") {
  Question q = question_of(recorded_plans()[4]);  // gpt2 on 4 x RTX 4090
  const auto before = forecast(q, the_facts().profile);
  const StepBound fast = step_bound(q, *before, the_facts().profile);
  Gpu& gpu = q.cluster.groups.front().gpu;
  gpu.memory_bandwidth = BytesPerSecond(gpu.memory_bandwidth.value / 10);
  const auto after = forecast(q, the_facts().profile);
  const StepBound slow = step_bound(q, *after, the_facts().profile);
  CHECK(slow.part(BoundKind::hbm) > fast.part(BoundKind::hbm));
  CHECK(slow.kind == BoundKind::hbm);
}

// PEFT's preparation makes fp32 of experts that bitsandbytes does not quantise: of Mixtral 8x7B
// 32 layers x 8 experts x 3 x 4,096 x 14,336 = 45,097,156,608 weights of 4 bytes, 168 GiB.
TEST_CASE("experts that PEFT has widened are explained as they are held", "[explain]") {
  Question q = question_of("mixtral-8x7b", Method::qlora, "axolotl-whole-experts", "8xB200",
                           "dp=8,mbs=1,ga=1,recompute=full");
  q.workload.adapter.base = Quantization::nf4;
  const Explanation e = explained(q);
  const ExplainedFigure* weights = figure(e, "weights");
  REQUIRE(weights != nullptr);
  double experts = 0;
  for (std::size_t i = 0; i + 2 < weights->inputs.size(); i += 3)
    if (weights->inputs[i].value == 45'097'156'608)
      experts = weights->inputs[i].value * weights->inputs[i + 1].value /
                weights->inputs[i + 2].value / (1 << 30);
  CHECK(experts == Approx(168.0).epsilon(1e-3));
}

// Two ranks of four experts: (2 - 3/8) / (2 + 1/4) = 0.72222, 0.58946 deviations of the logarithm
// up, whose variance is ln(1 + 0.56^2 / 4) = 0.07548: exp(0.27473 x 0.58946 - 0.03774) = 1.1322.
TEST_CASE("what is taken of experts is told where a rank may be fuller", "[explain]") {
  Question q = question_of("mixtral-8x7b", Method::full, "megatron-lm", "8xB200",
                           "dp=8,ep=2,mbs=1,ga=1,zero=1,recompute=full");
  q.workload.expert_spread = trained_expert_spread;
  const auto told = [&] {
    const auto f = forecast(q, the_facts().profile);
    REQUIRE(f);
    return std::any_of(f->notes.begin(), f->notes.end(), [](const std::string& note) {
      return note.find("--expert-imbalance 1 ") != std::string::npos &&
             note.find("0.56") != std::string::npos && note.find("1.13") != std::string::npos;
    });
  };
  const auto fullest = [&] {
    const Explanation e = explained(q);
    for (const ExplainedInput& input : figure(e, "forward, backward")->inputs)
      if (input.name.find("fullest rank") != std::string::npos) return input.value;
    return 1.0;
  };
  CHECK(told());
  CHECK(fullest() == Approx(1.1322).epsilon(1e-4));
  q.workload.expert_spread = 0;
  CHECK_FALSE(told());
  CHECK(fullest() == 1);
  q.workload.expert_spread = trained_expert_spread;
  q.plan = *parse_plan("dp=8,mbs=1,ga=1,zero=1,recompute=full");
  CHECK_FALSE(told());
}
