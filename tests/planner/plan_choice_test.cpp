#include "planner/search/plan_choice.hpp"

#include "planner/answers/fit_answer.hpp"
#include "planner/choice/plan_layouts.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/model_states.hpp"
#include "planner/search/near_batch.hpp"
#include "simulator/plan_rules.hpp"
#include "tests/catch.hpp"
#include "tests/planner/chosen_plan.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/uncertain_facts.hpp"

namespace shardwise {
namespace {

Bytes device(const ChosenPlan& c) { return c.forecast.peak_device.expected; }

std::string note_with(const ChosenPlan& c, const std::string& words) {
  for (const std::string& note : c.notes)
    if (note.find(words) != std::string::npos) return note;
  return "";
}

Request request_in(const char* framework, const char* model, const char* gpus, Method method) {
  Request r = request_for(model, gpus, {method});
  r.framework = framework;
  return r;
}

}  // namespace

TEST_CASE("every layout is legal and multiplies out, and data ranks divide the batch") {
  for (const char* gpus : {"4090", "6x4090", "2x3090+2x4090", "8xA100-80GB", "32xH100-SXM"})
    for (const MethodRow& m : method_rows) {
      INFO(gpus << " " << m.name);
      const ResolvedRequest r = resolved(request_for("8b", gpus, {m.method}));
      const Cluster& cluster = r.clusters.front();
      const Workload w = choose_workload(r, m.method, cluster, 0).workload;
      const auto layouts = plan_layouts(w, cluster, r.batch);
      CHECK_FALSE(layouts.empty());
      for (ParallelPlan plan : layouts) {
        plan.recompute = "none";
        plan.microbatches = r.batch / plan.data;
        CHECK(plan.gpus() == cluster.gpus());
        CHECK(plan.global_batch() == r.batch);
        CHECK(plan_problems(w, plan, cluster).empty());
      }
    }
}

// 29 billion weights of Qwen3-30B-A3B's 30.5 are those of experts: 4 bits take 15 GiB for all, 16
// bits at least 54 GiB for the experts.
TEST_CASE("a model of experts trains in 4 bits where those are quantised") {
  Request request = request_for("qwen3-30b-a3b", "1xH100-SXM", {Method::qlora});
  const auto workload = [&] {
    const ResolvedRequest r = resolved(request);
    return choose_workload(r, Method::qlora, r.clusters.front(), 0);
  };
  const ChosenWorkload usual = workload();
  CHECK(usual.workload.framework.id == "unsloth");
  REQUIRE(usual.notes.size() == 1);
  CHECK(usual.notes.front().find("quantises the experts") != std::string::npos);
  CHECK(model_states(usual.workload).value < std::int64_t{20} << 30);
  request.framework = "trl";
  const ChosenWorkload asked = workload();
  REQUIRE(asked.notes.size() == 1);
  CHECK(asked.notes.front().find("does not quantise the experts") != std::string::npos);
  CHECK(model_states(asked.workload).value > std::int64_t{54} << 30);
  request.framework.reset();
  request.gpus = "2xH100-SXM";  // FSDP with weights that it shards in 4 bits
  CHECK(workload().workload.framework.id == "fsdp_qlora");
}

TEST_CASE("tensor parallelism stays inside nodes with NVLink") {
  const auto most_tensor = [](const char* gpus) {
    const ResolvedRequest r = resolved(request_for("8b", gpus, {Method::pretrain}));
    const Workload w = choose_workload(r, Method::pretrain, r.clusters.front(), 0).workload;
    int most = 0;
    for (const ParallelPlan& p : plan_layouts(w, r.clusters.front(), r.batch))
      most = std::max(most, p.tensor);
    return most;
  };
  CHECK(most_tensor("8x4090") == 1);
  CHECK(most_tensor("16xH100-SXM") == 8);
}

TEST_CASE("model states are a lower bound of what the same plan takes") {
  for (const char* method : {"full", "lora", "qlora"})
    for (const char* text : {"none", "full"}) {
      Request request = request_for("8b", "8xA100-80GB", {*method_named(method)});
      request.recompute = text;
      const ResolvedRequest r = resolved(request);
      const Cluster& cluster = r.clusters.front();
      const Workload w = choose_workload(r, r.methods.front(), cluster, 0).workload;
      for (ParallelPlan plan : plan_layouts(w, cluster, r.batch)) {
        plan.recompute = text;
        plan.microbatches = r.batch / plan.data;
        for (const Offload& offload : {Offload{}, Offload{true, false, false}}) {
          plan.offload = offload;
          INFO(method << " " << to_string(plan));
          const auto f = forecast({w, plan, cluster}, r.facts->profile, {.time = false});
          REQUIRE(f);
          Bytes most;
          for (const StageForecast& s : f->stages) most = std::max(most, s.peak.allocated);
          CHECK(states_on_gpu(w, plan) <= most);
        }
      }
    }
}

TEST_CASE("model states of a 70B are those of the ZeRO paper") {
  // AdamW in mixed precision: 16 bytes per parameter; 70,553,706,496 parameters.
  const ResolvedRequest r = resolved(request_for("70b", "6x4090", {Method::full}));
  const Workload w = choose_workload(r, Method::full, r.clusters.front(), 3).workload;
  CHECK(model_states(w) == Bytes(16 * 70'553'706'496));
}

TEST_CASE("a bigger card never fits less") {
  // The same architecture and the same bandwidths, more memory: 10, 30, 50, ... GiB.
  for (const Method method : {Method::full, Method::lora, Method::qlora}) {
    ResolvedRequest r = resolved(request_for("8b", "2x4090", {method}));
    Verdict before = Verdict::does_not_fit;
    for (std::int64_t size = 10; size <= 190; size += 20) {
      Gpu& gpu = r.clusters.front().groups.front().gpu;
      gpu.memory = Bytes(size << 30);
      gpu.memory_reported.reset();
      gpu.memory_offered.reset();
      const auto c = choose_plan(r, method, r.clusters.front());
      REQUIRE(c);
      INFO(name(method) << " on " << size << " GiB: " << verdict_name(c->verdict));
      CHECK((before == Verdict::does_not_fit || c->verdict != Verdict::does_not_fit));
      before = c->verdict;
    }
    CHECK(before == Verdict::fits);
  }
}

TEST_CASE("more GPUs never take more of each under FSDP") {
  for (const Method method : {Method::full, Method::lora, Method::qlora}) {
    std::optional<Bytes> before;
    for (const int gpus : {2, 4, 8}) {
      Request r = request_for("8b", std::to_string(gpus) + "x4090", {method});
      r.batch = 16;
      r.recompute = "full";
      r.plans = {"dp=" + std::to_string(gpus) + ",zero=3,mbs=1"};
      const Bytes now = device(chosen(r));
      INFO(name(method) << " over " << gpus);
      // NCCL takes more for each further rank of a communicator: far less than a shard gives back.
      if (before) CHECK(now < *before);
      before = now;
    }
  }
}

TEST_CASE("the chosen plan keeps what was pinned") {
  Request r = request_for("8b", "4x4090", {Method::qlora});
  r.microbatch = 2;
  r.recompute = "full";
  r.batch = 32;
  const ChosenPlan c = chosen(r);
  CHECK(c.question.plan.microbatch == 2);
  CHECK(c.question.plan.recompute == "full");
  CHECK(c.question.plan.global_batch() == 32);
}

// Forecasts that may be 1.27 times too small ask what takes more than 18.6 of 23.7 GiB to do with
// 18.6: 21.1 of which 2.0 are cache is tight, and 14.9 safe. Sharded, a 70B takes 47 s where six
// cards that take turns need 4.6 minutes: more than twice, so the tight plan is chosen and the safe
// one told. Two cards that take turns with a 14B need 86 s for 59 (18.3 GiB for 23.0): less than
// twice, so the safe one is chosen.
TEST_CASE("a tight plan is chosen where it saves more than half the time") {
  const Facts facts = facts_with_memory_interval(0.9, 1.27);
  const auto of = [&](Request r) {
    const auto asked = resolve(r, facts, UnnamedMethods::fine_tuning);
    REQUIRE(asked);
    auto plan = choose_plan(*asked, Method::qlora, asked->clusters.front());
    REQUIRE(plan);
    return *std::move(plan);
  };
  const ChosenPlan sharded = of(request_for("70b", "6xRTX-3090", {Method::qlora}));
  CHECK(sharded.verdict == Verdict::tight);
  CHECK_FALSE(sharded.question.plan.layer_split);
  REQUIRE_FALSE(sharded.notes.empty());
  CHECK(sharded.notes.back().starts_with("With room to spare: dp=1,pp=6,split=true"));
  Request two = request_for("14b", "3090+4090", {Method::qlora});
  two.sequence = 4096;
  const ChosenPlan split = of(two);
  CHECK(split.verdict == Verdict::fits);
  CHECK(split.question.plan.layer_split);
}

// Experts are widened to 16 bits anew in every pass, whatever comes through: of 16 sequences one at
// a time that is 16 times, eight at a time twice.
TEST_CASE("a tight microbatch is weighed beside a small one with room to spare") {
  Request r = request_for("qwen3-30b-a3b", "4090", {Method::qlora});
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict == Verdict::tight);
  CHECK(c.question.plan.microbatch > 1);
  CHECK_FALSE(note_with(c, "With room to spare").empty());
  r.microbatch = 1;
  const ChosenPlan one = chosen(r);
  CHECK(one.verdict == Verdict::fits);
  CHECK(c.forecast.step_time.expected < 0.5 * one.forecast.step_time.expected);
}

// 8.4 million values of a layer's stream are 17 MB in 16 bits, which an L2 cache of 72 MB hands
// from kernel to kernel; those of four sequences it does not.
TEST_CASE("a larger microbatch is no merit where it takes longer") {
  Request r = request_in("trl", "llama-3.1-8b", "4090", Method::lora);
  const ChosenPlan c = chosen(r);
  CHECK(c.question.plan.microbatch == 1);
  r.microbatch = 4;
  CHECK(chosen(r).forecast.step_time.expected > c.forecast.step_time.expected);
}

// The same plan and 1.15: 23.7 / 1.15 = 20.6 GiB hold the 19.1 that are not cache, so it has room,
// and says what of it is cache. Its interval ends at the card.
TEST_CASE("cache that would be given back does not make a plan tight") {
  const Facts facts = facts_with_memory_interval(0.9, 1.15);
  const auto asked = resolve(request_for("70b", "6xRTX-3090", {Method::qlora}), facts,
                             UnnamedMethods::fine_tuning);
  REQUIRE(asked);
  const auto plan = choose_plan(*asked, Method::qlora, asked->clusters.front());
  REQUIRE(plan);
  const Forecast& f = plan->forecast;
  const StageForecast& worst = f.stages.front();
  CHECK(plan->verdict == Verdict::fits);
  CHECK(1.15 * gib(worst.peak.device) > gib(worst.capacity));
  CHECK(f.peak_device.high == worst.capacity);
  REQUIRE_FALSE(plan->notes.empty());
  CHECK(plan->notes.back() ==
        "Of the memory reserved 2.0 GiB are the allocator's cache, which it gives back before it "
        "runs out: a card with 20.6 GiB would do as well.");
}

// FSDP in Accelerate leaves gradients whole until the last microbatch: 32.8 G x 2 B = 61 GiB beside
// 76 of states and what is gathered. Two sequences at once on each of eight cards need none of it.
TEST_CASE("one microbatch is tried where many keep whole gradients") {
  Request r = request_in("llama-factory", "qwen2.5-32b", "8xA100-80GB", Method::full);
  r.sequence = 2048;
  r.batch = 16;
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict != Verdict::does_not_fit);
  CHECK(c.question.plan.zero_stage == 3);
  CHECK(c.question.plan.microbatches == 1);
}

// Four sequences divide over no eight ranks of FSDP, and no more is said to it: two stages do it,
// which its user would have to write. (Tensor parallelism would too, by DTensors, which take the
// CPU longer than these layers take the GPU.) Of eight sequences each rank has one, and keeps to
// that though it is no faster.
TEST_CASE("a framework that was asked for is given plans that it can be told") {
  Request r = request_in("pytorch-fsdp2", "llama-3.1-8b", "8xH100-SXM", Method::full);
  r.batch = 8;
  const auto told_of = [](const ChosenPlan& c) {
    return !note_with(c, "can be told fits").empty();
  };
  const ChosenPlan plain = chosen(r);
  CHECK(plain.question.plan.data == 8);
  CHECK_FALSE(told_of(plain));
  r.batch = 4;
  const ChosenPlan beyond = chosen(r);
  CHECK(beyond.verdict == Verdict::fits);
  CHECK(beyond.question.plan.pipeline == 2);
  CHECK(told_of(beyond));
}

// 48 sequences divide over four and six GPUs, not over five, which 45 or 50 would.
TEST_CASE("a batch that does not divide is told where layers are split for it") {
  const auto note_of = [](const char* gpus) -> std::string {
    Request r = request_for("llama-3.1-70b", gpus, {Method::lora});
    r.batch = 48;
    return note_with(chosen(r), "do not divide over");
  };
  CHECK(note_of("5xA100-80GB").find("45 or 50 would divide") != std::string::npos);
  CHECK(note_of("6xA100-80GB").empty());
}

// DeepSpeed offloads weights with ZeRO-3 only, on one GPU too, where it shards nothing.
TEST_CASE("one GPU is told ZeRO where it offloads") {
  Request r = request_in("hf-deepspeed", "llama-3.1-8b", "1xRTX-4090", Method::full);
  r.host_ram = Bytes(std::int64_t{256} << 30);
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict != Verdict::does_not_fit);
  CHECK(c.question.plan.zero_stage == 3);
  CHECK(c.question.plan.offload.parameters);
}

// Nothing that transformers' Trainer can be told offloads on one GPU: the nearest plan is another.
TEST_CASE("where nothing can be told, what misses is still told of") {
  Request r = request_in("hf-trainer", "llama-3.1-8b", "1xRTX-4090", Method::full);
  r.offload = Offload{true, false, false};
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict == Verdict::does_not_fit);
  CHECK(c.question.plan.offload.optimizer);
}

// 1.24 G parameters take 16 bytes each in FSDP2, 18.5 GiB, and 8 Ki tokens of 128 Ki logits 4 GiB
// and more: too much for 23.7. The two GPUs that share a sequence share the states as well.
TEST_CASE("ranks that share a sequence shard the model") {
  Request r = request_for("llama-3.2-1b", "2xRTX-3090", {Method::full});
  r.framework = "pytorch-fsdp2";
  r.sequence = 8192;
  r.batch = 16;
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict != Verdict::does_not_fit);
  CHECK(c.question.plan.context == 2);
  CHECK(c.question.plan.zero_stage >= 2);
}

// 141 G parameters take 2,357 GiB of states in Megatron, 74 of the 79 GiB of each of 32 GPUs where
// they divide evenly: matrices of experts cut in eight leave no room for what is computed. Dealt to
// four ranks whole they do, as Megatron's own recipes deal them.
TEST_CASE("experts are dealt to ranks where the framework can") {
  Request r = request_for("mixtral-8x22b", "4x8xH100-SXM", {Method::pretrain});
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict != Verdict::does_not_fit);
  CHECK(c.question.plan.expert > 1);
  CHECK(c.question.plan.expert_tensor == 1);
  r.framework = "hf-trainer";
  CHECK(chosen(r).question.plan.expert == 1);
}

TEST_CASE("offloading is used only when asked for or when host RAM is stated") {
  Request r = request_for("llama-2-70b", "2x4090", {Method::qlora});
  r.microbatch = 2;
  CHECK(chosen(r).question.plan.offload == Offload{});
  r.host_ram = Bytes(2048LL << 30);
  const ChosenPlan with_ram = chosen(r);
  CHECK(with_ram.verdict != Verdict::does_not_fit);
  CHECK(with_ram.question.plan.offload.parameters);
  r.offload = Offload{};  // asked: none
  CHECK(chosen(r).question.plan.offload == Offload{});
}

TEST_CASE("the host decides where its stated RAM is too small") {
  Request r = request_for("llama-2-70b", "4x4090", {Method::lora});
  r.framework = "pytorch-fsdp1";  // every rank reads the weights
  r.offload = Offload{false, true, false};
  r.host_ram = Bytes(500'000'000'000);  // four copies of 138 GB do not fit
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict == Verdict::does_not_fit);
  CHECK(c.forecast.margin > Bytes(0));
  CHECK(c.forecast.host.load_peak > *r.host_ram);
  CHECK(c.forecast.host.load_once < *r.host_ram);
}

// Reading takes 10 GB of a file, in a process of 3 GiB.
TEST_CASE("what loading lacks on the host is not told to offload") {
  Request r = request_for("8b", "4090", {Method::qlora});
  r.host_ram = Bytes(12'000'000'000);
  const ChosenPlan c = chosen(r);
  CHECK(c.verdict == Verdict::does_not_fit);
  CHECK_FALSE(c.forecast.host_fits);
  CHECK(c.question.plan.offload == Offload{});
}

// A Trainer is handed a model that lies on the host: 2 bytes of each parameter. What QLoRA
// quantises on the GPU goes there file by file, of 10 GB at most: a 1B has one of 2.5, an 8B,
// 8,030,261,248 parameters, two. TRL's device_map sends a LoRA's weights there alike.
TEST_CASE("weights that go to one GPU as they are read are read a file at a time") {
  const auto loading = [](const char* framework, const char* model, Method method) {
    return chosen(request_in(framework, model, "4090", method)).forecast.host.load_peak;
  };
  const Bytes process = known_facts().profile.host_memory.process_resident;
  CHECK(loading("peft", "llama-3.2-1b", Method::qlora) ==
        loading("peft", "llama-3.2-1b", Method::lora));
  CHECK(loading("peft", "llama-3.1-8b", Method::lora) == process + Bytes(2 * 8'030'261'248));
  for (const Method method : {Method::lora, Method::qlora})
    CHECK(loading("trl", "llama-3.1-8b", method) == process + Bytes(10'000'000'000));
}

// Two processes, one for each stage, read the halves that add up to 2 bytes of each parameter;
// layers split over two cards are one process, which reads a file at a time.
TEST_CASE("a node's processes read what its GPUs hold") {
  const Bytes process = known_facts().profile.host_memory.process_resident;
  const auto host = [](const char* framework, const char* plan) {
    Request r = request_in(framework, "llama-3.1-8b", "2xA100-80GB", Method::lora);
    r.plans = {plan};
    return chosen(r).forecast.host;
  };
  const HostMemory stages = host("pytorch-fsdp2", "dp=1,pp=2,mbs=1,ga=16,recompute=full");
  CHECK(stages.load_peak == process + process + Bytes(2 * 8'030'261'248));
  const HostMemory split = host("trl", "dp=1,pp=2,split=true,mbs=1,ga=16,recompute=full");
  CHECK(split.load_peak == process + Bytes(10'000'000'000));
  CHECK(split.steady < process + process);
}

TEST_CASE("a batch that divides over nothing is a problem with the nearest that do") {
  Request request = request_for("8b", "16xA100-80GB", {Method::lora});
  request.batch = 15;
  const ResolvedRequest r = resolved(request);
  const auto c = choose_plan(r, Method::lora, r.clusters.front());
  REQUIRE_FALSE(c);
  CHECK(c.error().front().where == "--batch");
  CHECK(c.error().front().what.find("the least is 16") != std::string::npos);
}

// Three sequences on each of two cards are six: 16 lies between 12 and 18. Of 32 each would pass
// 64, four times the batch.
TEST_CASE("a microbatch that no plan passes says what would divide, and a format who lacks it") {
  Request request = request_for("8b", "2x4090", {Method::qlora});
  const auto refused = [&] {
    const ResolvedRequest r = resolved(request);
    const auto c = choose_plan(r, Method::qlora, r.clusters.front());
    REQUIRE_FALSE(c);
    return c.error().front();
  };
  request.batch = 16;
  request.microbatch = 3;
  CHECK(refused().where == "--microbatch");
  CHECK(refused().what.find("are 12 and 18") != std::string::npos);
  request.microbatch = 32;
  CHECK(refused().what.find("leave each too few") != std::string::npos);
  request.microbatch.reset();
  request.precision = DType::nvfp4;  // of Blackwell
  CHECK(refused().where == "--precision");
}

// 48 = 4 x 10 + 8 is nearer to 50 than to 40; 45 is as near to both, and 44 nearer to 40; of seven
// there is no smaller one than 10.
TEST_CASE("the nearest batch that divides is answered, and said") {
  CHECK(nearest_batch(48, 10) == 50);
  CHECK(nearest_batch(45, 10) == 50);
  CHECK(nearest_batch(44, 10) == 40);
  CHECK(nearest_batch(7, 10) == 10);
  CHECK(nearest_batch(2, 10) == 10);
  CHECK(nearest_batch(40, 10) == 40);
  Request request = request_for("8b", "10xA100-80GB", {Method::lora});
  request.batch = 48;
  ResolvedRequest r = resolved(request);
  const auto near = choose_near_plan(r, Method::lora, r.clusters.front());
  REQUIRE(near);
  CHECK(near->question.plan.global_batch() == 50);
  CHECK(note_with(*near, "48 sequences per step").find("answer for 50") != std::string::npos);
  request.batch = 50;
  CHECK(near->question.plan == chosen(request).question.plan);
  r.asked.plans = {"dp=10"};  // says what it is
  CHECK_FALSE(choose_near_plan(r, Method::lora, r.clusters.front()));
}

// Two sequences per GPU, as its recipes have it, where nobody asks for a batch: one pass of two; of
// eight asked for, all eight.
TEST_CASE("what steps its gradients in backward takes its whole share at once") {
  Request request = request_for("llama-3.2-1b", "1xA100-80GB", {Method::full});
  request.framework = "torchtune-low-memory";
  CHECK(resolved(request).batch == 2);
  for (const int batch : {2, 8}) {
    request.batch = batch;
    const ParallelPlan plan = chosen(request).question.plan;
    CHECK(plan.microbatch == batch);
    CHECK(plan.microbatches == 1);
  }
}

// torchtitan's launcher asks for expandable segments, which the AMD card among them has not.
TEST_CASE("every card that a size stands for is answered with its own number format") {
  Request titan = request_for("8b", "1x24GB", {Method::full});
  titan.framework = "torchtitan";
  for (const Request& request : {request_for("8b", "2x24GB", {Method::qlora}), titan}) {
    const ResolvedRequest r = resolved(request);
    const FitAnswers all = fit_answers(r);
    REQUIRE(all.answers.size() == r.clusters.size());
    for (std::size_t i = 0; i < all.answers.size(); ++i) {
      const FitAnswer& a = all.answers[i];
      const Gpu& gpu = r.clusters[i].groups.front().gpu;
      CHECK(a.cluster == i);
      CHECK(a.gpu == gpu.id);
      const auto again = forecast(a.chosen.question, r.facts->profile);
      REQUIRE(again);  // plays are shared between cards: that changes no figure
      CHECK(again->peak_device.expected == a.chosen.forecast.peak_device.expected);
      CHECK(again->stages.front().peak.reserved == a.chosen.forecast.stages.front().peak.reserved);
      CHECK(again->step_time.expected == a.chosen.forecast.step_time.expected);
      CHECK(gpu.rate(a.chosen.question.workload.compute).has_value());
    }
  }
}

}  // namespace shardwise
