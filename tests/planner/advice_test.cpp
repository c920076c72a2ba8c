#include "planner/advice/advice.hpp"

#include "catalog/cluster_parser.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

struct MissedAnswer {
  ResolvedRequest request;
  ChosenPlan chosen;
  std::vector<Advice> advice;
};

// Of a plan that does not fit, or is tight.
MissedAnswer missed(const Request& request, Verdict verdict = Verdict::does_not_fit) {
  MissedAnswer m{resolved(request), {}, {}};
  const Method method = m.request.methods.front();
  auto chosen = choose_plan(m.request, method, m.request.clusters.front());
  REQUIRE(chosen);
  m.chosen = *std::move(chosen);
  REQUIRE(m.chosen.verdict == verdict);
  m.advice = advise(m.request, method, m.request.clusters.front(), m.chosen);
  return m;
}

const Advice* about(const MissedAnswer& m, const std::string& words) {
  for (const Advice& a : m.advice)
    if (a.change.find(words) != std::string::npos) return &a;
  return nullptr;
}

}  // namespace

TEST_CASE("every advice makes it fit and tells its price") {
  for (const Method method : {Method::full, Method::lora}) {
    const MissedAnswer m = missed(request_for("70b", "6x4090", {method}));
    CHECK(m.advice.size() >= (method == Method::full ? 1U : 3U));
    for (const Advice& a : m.advice) {
      INFO(a.change);
      CHECK(a.verdict != Verdict::does_not_fit);
      CHECK(parse_plan(a.plan));
      CHECK(a.step_time.low > Seconds(0));
      CHECK(a.time_ratio.has_value());
      CHECK(a.needed <= a.device);
      CHECK(a.memory_effect == a.needed - m.chosen.forecast.worst().needed);
    }
  }
}

// Of samples of all lengths the allocator keeps blocks until the card is full; less would do.
TEST_CASE("advice tells what is needed, not what is cached") {
  const MissedAnswer m = missed(request_for("qwen2.5-14b", "1xA100-80GB", {Method::full}));
  const Advice* lora = about(m, "LoRA instead");
  REQUIRE(lora != nullptr);
  CHECK(lora->device / m.request.clusters.front().groups.front().gpu.usable_memory() > 0.98);
  CHECK(lora->needed / lora->device < 0.9);
}

// 8.03 G parameters take 16 bytes each, 60 GiB on each of two cards, 15 on each of eight, where
// what the optimizer makes for a step is a quarter of what it is on two as well.
TEST_CASE("more cards are looked at from the least that may do") {
  const MissedAnswer m = missed(request_for("llama-3.1-8b", "2xRTX-4090", {Method::full}));
  REQUIRE(about(m, "instead of 2"));
  CHECK(about(m, "instead of 2")->change.rfind("8 x", 0) == 0);
}

// Three PCIe cards of 80 GB with the plan that missed on NVLink take 2.7 times as long, for gathers
// of every one of six microbatches; a pipeline of three, which then has room, does not.
TEST_CASE("a larger machine is advised with a plan that suits it") {
  const MissedAnswer m = missed(request_for("llama-3.1-8b", "3xA100-40GB", {Method::full}));
  REQUIRE(about(m, "cards of 80 GB"));
  CHECK(*about(m, "cards of 80 GB")->time_ratio < 1.2);
}

TEST_CASE("a 70B that misses is told of QLoRA, offloading, more cards and bigger cards") {
  const MissedAnswer m = missed(request_for("70b", "6x4090", {Method::lora}));
  REQUIRE(about(m, "QLoRA"));
  REQUIRE(about(m, "offload params"));
  // The weights alone are 2 bytes x 70.6e9, and they must be in host RAM.
  CHECK(about(m, "offload params")->host_ram > Bytes(141'000'000'000));
  REQUIRE(about(m, "instead of 6"));
  REQUIRE(about(m, "6 cards of"));
  CHECK(about(m, "6 cards of")->gpu != "rtx-4090");
}

// 16 bytes x 70.6e9 are 1,052 GiB: more host RAM than any catalogued box of GeForce cards has, and
// 44 times the memory of one of these cards, where advice stops at four times. Servers have 2 TiB.
TEST_CASE("advice stays within reach of who has such cards") {
  const MissedAnswer box = missed(request_for("70b", "6x4090", {Method::full}));
  CHECK(about(box, "offload") == nullptr);
  CHECK(about(box, "cards of") == nullptr);
  CHECK(about(box, "QLoRA") != nullptr);
  CHECK(about(missed(request_for("70b", "8xH100-SXM", {Method::full})), "offload") != nullptr);
  // 51 GiB would do where what is not quantised is fp32: the A100 and the H100 of 64 GB were made
  // for one supercomputer each.
  Request widened = request_for("70b", "4090", {Method::qlora});
  widened.framework = "trl-2025";
  const MissedAnswer one = missed(widened);
  CHECK(about(one, "(custom)") == nullptr);
  CHECK(about(one, "1 card of 80 GB") != nullptr);
}

TEST_CASE("pinned settings are what advice loosens first") {
  Request r = request_for("8b", "4090", {Method::qlora});
  r.sequence = 1024;
  r.microbatch = 16;
  r.recompute = "none";
  const MissedAnswer m = missed(r);
  REQUIRE_FALSE(m.advice.empty());
  CHECK(m.advice.front().change.find("microbatches of") == 0);
  r.microbatch = 4;
  CHECK(about(missed(r), "recompute=full instead of none") != nullptr);
}

// 8,192 tokens and 128,256 words: the dense loss holds 1.05e9 logits several times over.
TEST_CASE("logits that decide are advised away") {
  Request r = request_for("8b", "4090", {Method::lora});
  r.framework = "hf-trainer";
  r.sequence = 8192;
  const MissedAnswer m = missed(r);
  const Advice* fused = about(m, "head and loss in one kernel");
  REQUIRE(fused != nullptr);
  CHECK(fused->memory_effect < Bytes(-4 * 8192LL * 128256));
}

// Samples of all lengths leave blocks that the next one does not fit into.
TEST_CASE("a cache that decides is advised away") {
  Request r = request_for("8b", "4090", {Method::lora});
  r.sequence = 15360;
  const MissedAnswer m = missed(r);
  REQUIRE_FALSE(m.advice.empty());
  CHECK(m.advice.front().change.find("expandable_segments:True") != std::string::npos);
  CHECK(m.advice.front().memory_effect < Bytes(0));
  r.expandable_segments = true;
  const auto asked = resolved(r);
  const auto chosen = choose_plan(asked, Method::lora, asked.clusters.front());
  REQUIRE(chosen);
  CHECK(chosen->verdict != Verdict::does_not_fit);
  r.expandable_segments = false;
  r.gpus = "rx-7900-xtx";  // whose driver has none
  CHECK(about(missed(r), "expandable_segments") == nullptr);
}

TEST_CASE("a tight plan is told what leaves room, and that only") {
  Request r = request_for("8b", "2xRTX-3090", {Method::lora});
  r.sequence = 8192;
  const MissedAnswer m = missed(r, Verdict::tight);
  REQUIRE_FALSE(m.advice.empty());
  CHECK(m.advice.front().change.find("--fused-loss") == 0);
  for (const Advice& a : m.advice) CHECK(a.verdict == Verdict::fits);
  CHECK(about(m, "sequences of") == nullptr);
}

// 8.2 B parameters, 1.2 B of them in 16 bits, are 6.0 GiB in any framework: 8 GB do in Unsloth.
// Weights, gradients and states of a 3.2 B are 48 GiB in mixed precision; torchtune's low-memory
// recipe keeps 16-bit weights, no gradients, and 8-bit states.
TEST_CASE("one GPU is told of a framework that takes less memory") {
  Request r = request_for("qwen3-8b", "4060", {Method::qlora});
  r.lora_rank = 8;
  REQUIRE(about(missed(r), "--framework unsloth"));
  r.framework = "trl";
  CHECK(about(missed(r), "--framework") == nullptr);
  CHECK(about(missed(request_for("llama-3.2-3b", "4090", {Method::full})), "torchtune-low-memory"));
}

// torchtune's 8B_full_single_device.yaml takes 24 GB with two sequences: 8.03e9 weights in 16 bits
// are 15 GiB. Sixteen at once, which is the usual batch, have no room.
TEST_CASE("what cannot accumulate is advised with the batch that it takes") {
  Request r = request_for("llama-3.1-8b", "4090", {Method::full});
  const MissedAnswer m = missed(r);
  const Advice* low = about(m, "--framework torchtune-low-memory");
  REQUIRE(low != nullptr);
  CHECK(low->change.find("2 sequences per step instead of 16") != std::string::npos);
  r.batch = 16;
  CHECK(about(missed(r), "torchtune-low-memory") == nullptr);
}

// 106 GiB of tensors are too much for a card of 80 GB, which is told of what they need without any
// cache; one of 141 GB has room for that as well, and is told the same whoever asked before.
TEST_CASE("advice of bigger cards says what the plan takes on those") {
  Request r = request_for("llama-3.1-70b", "2xH100-SXM", {Method::qlora});
  r.sequence = 32768;
  const MissedAnswer m = missed(r);
  const Advice* bigger = about(m, "2 cards of 141 GB");
  REQUIRE(bigger != nullptr);
  REQUIRE(bigger->plan == whole_text(m.chosen.question.plan));
  Question alone = m.chosen.question;
  alone.cluster = parse_gpus(known_facts().catalog, "2xH200-SXM-141GB")->front();
  const auto f = forecast(alone, known_facts().profile);
  REQUIRE(f);
  REQUIRE(f->worst().needed > m.chosen.forecast.worst().needed);
  CHECK(bigger->needed == f->worst().needed);
  CHECK(bigger->device == f->worst().peak.device);
}

// Two sequences per GPU are the recipe's own batch, eight on four of them: the advice, which holds
// sixteen, says so, and who follows it gets what it promises.
TEST_CASE("advice of another framework says which batch it holds") {
  Request r = request_for("mistral-7b-v0.1", "4xV100", {Method::full});
  const MissedAnswer m = missed(r);
  const Advice* low = about(m, "--framework torchtune-low-memory --batch 16");
  REQUIRE(low != nullptr);
  r.framework = "torchtune-low-memory";
  CHECK(resolved(r).batch == 8);
  r.batch = 16;
  const ResolvedRequest followed = resolved(r);
  const auto chosen = choose_plan(followed, Method::full, followed.clusters.front());
  REQUIRE(chosen);
  CHECK(whole_text(chosen->question.plan) == low->plan);
  CHECK(chosen->forecast.step_time.expected == low->step_time.expected);
  CHECK(chosen->verdict == low->verdict);
}

// A block has q and o of 8,192^2 weights, k and v of 8,192 x 1,024 and three matrices of
// 8,192 x 28,672: 855,638,016, of which every 64 have a constant of 4 bytes, 53,477,376 bytes. That
// is 1 MiB short of 26 times the 2 MiB that segments are rounded to, and PyTorch leaves a rest of
// no more than that with its block. In 8 bits a constant is 1 byte, and 4 for every 256 of them:
// 13,578,240, whose rest is larger. In each of 80 layers segments may end 2 MiB sooner or later.
TEST_CASE("constants of 4-bit weights are advised to be quantised too, where they are not") {
  Request r = request_for("llama-3.1-70b", "1xRTX-4090-48GB", {Method::qlora});
  const MissedAnswer m = missed(r, Verdict::tight);
  const Advice* nested = about(m, "--quantization nf4-double");
  REQUIRE(nested != nullptr);
  const auto f = forecast(nested->question, known_facts().profile);
  REQUIRE(f);
  constexpr std::int64_t mib = 1 << 20, constants = 855'638'016 / 64;
  constexpr std::int64_t each = constants + constants / 256 * 4;
  constexpr auto quantization = static_cast<std::size_t>(MemoryCategory::quantization);
  CHECK(m.chosen.forecast.worst().breakdown[quantization] - f->worst().breakdown[quantization] ==
        80 * (26 * 2 * mib - each));
  const std::int64_t effect = -nested->memory_effect.value;
  CHECK(effect > 80 * (4 * constants - each - 2 * mib));
  CHECK(effect < 80 * (4 * constants - each + 2 * mib));
  r.quantization = Quantization::nf4_double;
  const ResolvedRequest followed = resolved(r);
  const auto chosen = choose_plan(followed, Method::qlora, followed.clusters.front());
  REQUIRE(chosen);
  CHECK(chosen->verdict == Verdict::fits);
  CHECK(whole_text(chosen->question.plan) == nested->plan);
  CHECK(chosen->forecast.worst().needed == nested->needed);
  // Where a framework's own default is that, or somebody asked for it, there is nothing to say.
  CHECK(about(missed(request_for("70b", "2xRTX-3090", {Method::qlora})), "nf4-double") == nullptr);
  r.gpus = "1xRTX-A6000";
  r.sequence = 65536;
  CHECK(about(missed(r), "nf4-double") == nullptr);
}

// 64 layers; logits of 5,120 tokens and 152,064 words lie on the last card, 5,120 x 152,064 x 4 B =
// 2.9 GiB in fp32.
TEST_CASE("cards that take turns are told of another split") {
  Request r = request_for("32b", "2xRTX-3090", {Method::qlora});
  r.sequence = 5120;
  const MissedAnswer m = missed(r);
  const Advice* other = about(m, "layers=40/24 on the cards");
  REQUIRE(other != nullptr);
  CHECK(other->memory_effect < Bytes(0));
  CHECK(parse_plan(other->plan)->layers_per_stage == std::vector<int>{40, 24});
}

// A mixed box is told of no more cards of its first kind.
TEST_CASE("more cards are those that are there") {
  Request r = request_for("32b", "3060+3090", {Method::qlora});
  r.sequence = 8192;
  CHECK(about(missed(r), "RTX 3060") == nullptr);
}

// 70.6e9 weights of 4 bits are 35 GiB, 18 on each of two cards: Unsloth keeps no whole logits.
TEST_CASE("a box is told of a framework that takes less memory as well") {
  const MissedAnswer m = missed(request_for("70b", "2xRTX-3090", {Method::qlora}));
  REQUIRE(about(m, "--framework unsloth") != nullptr);
  CHECK(parse_plan(about(m, "--framework unsloth")->plan)->layer_split);
}

// Unsloth sends the layers' inputs to the host by itself: who says --offload has to say those too.
TEST_CASE("offloading is named as its plan has it") {
  const MissedAnswer m = missed(request_for("mixtral-8x7b", "4090", {Method::qlora}));
  const Advice* offload = about(m, "offload params+activations: weights in host RAM");
  REQUIRE(offload != nullptr);
  CHECK(parse_plan(offload->plan)->offload == Offload{false, true, true});
}

// TRL keeps activations on the GPU; who named Unsloth would have its own.
TEST_CASE("another method is advised in the framework that was named, where it can") {
  Request r = request_for("llama-3.1-8b", "4090", {Method::full});
  r.framework = "unsloth";
  const MissedAnswer m = missed(r);
  REQUIRE(about(m, "QLoRA") != nullptr);
  r.methods = {Method::qlora};
  const ResolvedRequest qlora = resolved(r);
  const auto chosen = choose_plan(qlora, Method::qlora, qlora.clusters.front());
  REQUIRE(chosen);
  CHECK(about(m, "QLoRA")->device == chosen->forecast.worst().peak.device);
  CHECK(about(m, "QLoRA")->change.find(", in ") == std::string::npos);
}

// Weights, gradients, master and states of 14.8e9 are 16 bytes each in host RAM; Accelerate keeps
// bf16 gradients on the GPU, 27.5 GiB of them.
TEST_CASE("one card is told of offloading where its framework leaves too much on it") {
  const MissedAnswer m = missed(request_for("qwen2.5-14b", "4090", {Method::full}));
  const Advice* offload = about(m, "offload params+optimizer");
  REQUIRE(offload != nullptr);
  CHECK(offload->change.find("--framework hf-deepspeed") == 0);
  CHECK(offload->host_ram > Bytes(16 * 14'770'000'000));
  Request r = request_for("qwen2.5-14b", "4090", {Method::full});
  r.framework = "hf-trainer";
  CHECK(about(missed(r), "hf-deepspeed") == nullptr);
  // Of 8e9 parameters Accelerate's gradients would leave just room: DeepSpeed's plan is the one
  // that can be launched, and who names it is told the same one, which shards by stage 3.
  const MissedAnswer small = missed(request_for("llama-3.1-8b", "4090", {Method::full}));
  REQUIRE(about(small, "--framework hf-deepspeed with offload params+optimizer") != nullptr);
  Request named = request_for("llama-3.1-8b", "4090", {Method::full});
  named.framework = "hf-deepspeed";
  const MissedAnswer theirs = missed(named);
  REQUIRE(about(theirs, "offload params+optimizer") != nullptr);
  CHECK(parse_plan(about(theirs, "offload params+optimizer")->plan)->zero_stage == 3);
}

// 26 GB of weights are 13 on each of two cards; 16 bytes x 8.03e9 are 120 GiB: six cards hold those
// and nothing else. There is no second card for a laptop.
TEST_CASE("one card is told of several") {
  const MissedAnswer lora = missed(request_for("llama-2-13b", "3090", {Method::lora}));
  REQUIRE(about(lora, "2 x GeForce RTX 3090 instead of 1") != nullptr);
  CHECK(about(lora, "2 x GeForce RTX 3090")->memory_effect < Bytes(0));
  const MissedAnswer full = missed(request_for("llama-3.1-8b", "4090", {Method::full}));
  REQUIRE(about(full, "instead of 1") != nullptr);
  const ParallelPlan plan = *parse_plan(about(full, " x GeForce RTX 4090 instead of 1")->plan);
  CHECK(plan.gpus() > 6);
  CHECK(plan.zero_stage == 3);
  const MissedAnswer laptop =
      missed(request_for("llama-3.2-3b", "rtx-4090-laptop", {Method::full}));
  CHECK(about(laptop, " x ") == nullptr);
}

TEST_CASE("a host that is too small is advised on the host") {
  Request r = request_for("llama-2-70b", "4x4090", {Method::lora});
  r.framework = "pytorch-fsdp1";  // every rank reads the weights
  r.offload = Offload{false, true, false};
  r.host_ram = Bytes(500'000'000'000);
  const MissedAnswer m = missed(r);
  REQUIRE(m.advice.size() >= 2);
  CHECK(m.advice[0].change.find("meta device") != std::string::npos);
  CHECK(m.advice[0].host_ram < *r.host_ram);
  CHECK(m.advice[1].change.find("of host RAM instead of") != std::string::npos);
}

// 16 bytes x 8.03e9 are 120 GiB; adapters beside 16-bit weights take no host RAM but to load these.
TEST_CASE("who lacks host RAM is told what needs less of it") {
  Request r = request_for("llama-3.1-8b", "2xRTX-4090", {Method::full});
  r.host_ram = Bytes(64LL << 30);
  const MissedAnswer m = missed(r);
  REQUIRE_FALSE(m.chosen.forecast.host_fits);
  REQUIRE(about(m, "of host RAM instead of") != nullptr);
  REQUIRE(about(m, "LoRA instead") != nullptr);
  CHECK(about(m, "LoRA instead")->host_ram < *r.host_ram);
}

TEST_CASE("what is known of another method is what a search would find") {
  const MissedAnswer m = missed(request_for("70b", "6x4090", {Method::lora}));
  const auto qlora = choose_plan(m.request, Method::qlora, m.request.clusters.front());
  REQUIRE(qlora);
  const std::vector<KnownPlan> known{{Method::qlora, &*qlora}};
  const auto advice = advise(m.request, Method::lora, m.request.clusters.front(), m.chosen, known);
  REQUIRE(advice.size() == m.advice.size());
  for (std::size_t i = 0; i < advice.size(); ++i) {
    CHECK(advice[i].change == m.advice[i].change);
    CHECK(advice[i].device == m.advice[i].device);
    CHECK(advice[i].time_ratio == m.advice[i].time_ratio);
  }
}

// fp32 weights of a whole 8B, 32 GB over PCIe in forward and again in backward of every microbatch:
// with twice the sequences in each they cross half as often.
TEST_CASE("offloading is priced with the microbatch that it makes room for") {
  Request r = request_for("8b", "1xA100-80GB", {Method::full});
  r.framework = "hf-trainer-4";
  const MissedAnswer open = missed(r);
  REQUIRE(about(open, "offload params"));
  CHECK(parse_plan(about(open, "offload params")->plan)->microbatch > 1);
  r.microbatch = 1;
  const MissedAnswer one = missed(r);
  REQUIRE(about(one, "offload params"));
  CHECK(parse_plan(about(one, "offload params")->plan)->microbatch == 1);
  CHECK(*about(one, "offload params")->time_ratio > *about(open, "offload params")->time_ratio);
}

}  // namespace shardwise
