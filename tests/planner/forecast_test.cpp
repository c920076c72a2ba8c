#include "planner/forecast/forecast.hpp"

#include <algorithm>
#include <numeric>

#include "catalog/cluster_parser.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/forecast/step_record.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/planner/small_questions.hpp"

using namespace shardwise;

namespace {

std::vector<Question> several() {
  return {
      short_question("llama-3.2-1b", "8xH100-SXM", Method::pretrain, "megatron-lm",
                     "dp=2,tp=2,sp=true,pp=2,zero=1,mbs=1,ga=4,recompute=none"),
      short_question("llama-3.2-1b", "4xA100-80GB", Method::full, "pytorch-fsdp2",
                     "dp=4,zero=3,mbs=1,ga=2,recompute=full"),
      short_question("llama-2-7b", "2xRTX-3090", Method::qlora, "fsdp_qlora",
                     "dp=2,zero=3,mbs=1,ga=1,recompute=full"),
      // Pipeline sends and gradient rings meet at the NICs.
      short_question("llama-3.2-1b", "64xH100-SXM", Method::pretrain, "megatron-lm",
                     "dp=4,tp=4,sp=true,pp=4,zero=1,mbs=1,ga=6,recompute=none"),
      // Rings through host memory, offload copies and the optimizer on the CPU meet in it.
      short_question("llama-3.2-1b", "box-4x-rtx-3090", Method::full, "deepspeed-zero",
                     "dp=4,zero=2,mbs=1,ga=2,recompute=full,offload=optimizer"),
      short_question("gpt2", "4xRTX-4090", Method::full, "pytorch-ddp",
                     "dp=4,mbs=2,ga=1,recompute=none"),
  };
}

}  // namespace

TEST_CASE("a delta rule's kernels are taken to be there, and that is told", "[forecast]") {
  Question q = short_question("qwen3.5-0.8b", "1xH100-SXM", Method::full, "hf-trainer",
                              "mbs=1,ga=1,recompute=full");
  const auto told = [&] {
    const Forecast f = forecast_of(q);
    return std::any_of(f.notes.begin(), f.notes.end(), [](const std::string& note) {
      return note.find("flash-linear-attention is taken to be installed") == 0;
    });
  };
  CHECK(told());
  const Seconds fast = forecast_of(q).step_time.expected;
  q.workload.framework.layers.delta_rule = DeltaRule::row_by_row;
  CHECK_FALSE(told());
  CHECK(forecast_of(q).step_time.expected > fast);
}

TEST_CASE("folded and unfolded forecasts agree", "[forecast]") {
  for (const Question& q : several()) {
    const Forecast folded = forecast_of(q), unfolded = forecast_of(q, true);
    INFO(to_string(q.plan));
    CHECK(folded.step_time.expected.value == unfolded.step_time.expected.value);
    REQUIRE(folded.stages.size() == unfolded.stages.size());
    for (std::size_t i = 0; i < folded.stages.size(); ++i) {
      CHECK(folded.stages[i].peak.allocated == unfolded.stages[i].peak.allocated);
      CHECK(folded.stages[i].breakdown == unfolded.stages[i].breakdown);
    }
  }
}

TEST_CASE("the breakdown of every stage sums to its device figure, to the byte", "[forecast]") {
  for (const Question& q : several())
    for (const StageForecast& s : forecast_of(q).stages) {
      const std::int64_t sum =
          std::accumulate(s.breakdown.begin(), s.breakdown.end(), std::int64_t{0});
      CHECK(Bytes(sum) == s.peak.device);
      CHECK(s.peak.allocated <= s.peak.reserved);
      CHECK(s.peak.reserved <= s.peak.device);
    }
}

// Two fp32 moments of 1,235,814,400 parameters.
TEST_CASE("states in managed memory are on the card, and in no figure of PyTorch's", "[forecast]") {
  Question q = short_question("llama-3.2-1b", "1xH100-SXM", Method::full, "torchtune",
                              "dp=1,mbs=1,ga=1,recompute=full");
  q.workload.optimizer = optimizer_named("paged-adamw");
  const StageForecast s = forecast_of(q).stages.front();
  const auto of = [&](MemoryCategory c) { return s.breakdown[static_cast<std::size_t>(c)]; };
  CHECK(of(MemoryCategory::optimizer_states) == std::int64_t{8} * 1'235'814'400);
  CHECK(s.peak.device - s.peak.reserved ==
        Bytes(of(MemoryCategory::optimizer_states) + of(MemoryCategory::context) +
              of(MemoryCategory::nccl)));
}

TEST_CASE("one data-parallel rank sends no gradients", "[forecast]") {
  const Forecast f = forecast_of(short_question("gpt2", "4090", Method::full, "pytorch-ddp",
                                                "dp=1,mbs=2,ga=1,recompute=none"));
  CHECK(f.breakdown.exposed.count("reduce_gradients") == 0);
  CHECK(f.breakdown.exposed.count("gather_parameters") == 0);
}

// Where the CPU sets the pace (128 tokens) each reduction of ZeRO-3 that it makes costs its time. A
// layer of 4 x 4096^2 - 2 x 4096 x 3072 + 3 x 4096 x 14336 = 218 M gradients in 16 bits fills 13
// buckets of 4096^2, but it has nine modules to fill them: 32 layers x 9 x 906 us = 261 ms, and a
// bucket or two more for embedding and head.
TEST_CASE("reductions of small buckets cost the CPU its time", "[forecast]") {
  Question q = short_question("llama-3.1-8b", "8xA100-80GB", Method::full, "hf-deepspeed",
                              "dp=8,zero=3,mbs=1,ga=1,recompute=none");
  q.workload.sequence = 128;
  const Seconds with = forecast_of(q).step_time.expected;
  REQUIRE(q.workload.framework.host.us_per_reduction == 906);
  q.workload.framework.host.us_per_reduction = 0;
  const Seconds without = forecast_of(q).step_time.expected;
  CHECK((with - without).value == Approx(0.261).epsilon(0.03));
}

// 1.24 G parameters take the CPU 30 bytes each. A server of two sockets that does not say how fast
// its memory is has 2 x 8 channels of 25.6 GB/s, one of a single socket two channels: an eighth.
TEST_CASE("servers whose memory is not told have eight channels a socket", "[forecast]") {
  Question q = short_question("llama-3.2-1b", "aws-p4d.24xlarge", Method::full, "deepspeed",
                              "dp=8,zero=3,mbs=1,ga=1,recompute=full,offload=optimizer");
  Node& node = q.cluster.groups.front().node;
  REQUIRE_FALSE(node.host_memory_bandwidth);
  const Seconds server = forecast_of(q).step_time.expected;
  node.host_memory_bandwidth = BytesPerSecond(16 * 25.6e9);
  CHECK(forecast_of(q).step_time.expected.value == Approx(server.value).epsilon(0.02));
  node.host_memory_bandwidth.reset();
  node.cpu_sockets = 1;
  CHECK(forecast_of(q).step_time.expected > 2.0 * server);
}

// Model FLOPs of a token grow with the sequence by its attention's alone, 12 a d for each key more
// that it sees on the average in a layer. Heads of all but Gemma's four of 256: 32 of 128 = 4096.
TEST_CASE("model FLOPs count the layers that attend and the keys they see", "[forecast]") {
  const auto flops = [](const char* model, int sequence) {
    Question q = short_question(model, "1xH200", Method::pretrain, "megatron-lm",
                                "dp=1,zero=1,mbs=1,ga=1,recompute=full");
    q.workload.sequence = sequence;
    const Forecast f = forecast_of(q);
    return f.mfu * q.cluster.groups.front().gpu.rate(DType::bf16)->value / f.tokens_per_s;
  };
  const auto grown = [&](const char* model) { return flops(model, 16384) - flops(model, 8192); };
  // Half of the keys in every layer: 8192 against 4096.
  CHECK(grown("llama-3.1-8b") == Approx(12.0 * 32 * 4096 * 4096));
  // Four layers of 52 attend.
  CHECK(grown("nemotron-h-8b") == Approx(12.0 * 4 * 4096 * 4096));
  // A window w = 4096 in every layer: w - w^2 / 2s is 3584 of 16384 and 3072 of 8192.
  CHECK(grown("mistral-7b-v0.1") == Approx(12.0 * 32 * 4096 * (3584 - 3072)));
  // 512 in 22 of 26 layers (504 and 496), all in four.
  CHECK(grown("gemma-3-1b") == Approx(12.0 * 4 * 256 * (22 * (504 - 496) + 4 * 4096)));
  // 128 heads of latent attention: scores of 192 values, and 128 that they weigh; 61 layers.
  CHECK(grown("deepseek-v3") == Approx(6.0 * 128 * (192 + 128) * 61 * 4096));
  // An indexer chooses 2048 of them (1920 and 1792), by the scores, forward alone, that 64 heads of
  // 128 give to all.
  CHECK(grown("deepseek-v3.2") ==
        Approx(61 * (6.0 * 128 * (192 + 128) * (1920 - 1792) + 2.0 * 64 * 128 * 4096)));
}

TEST_CASE("more bandwidth is never slower", "[forecast]") {
  for (Question q : several()) {
    const double before = forecast_of(q).step_time.expected.value;
    for (NodeGroup& g : q.cluster.groups) {
      g.gpu.memory_bandwidth = 1.5 * g.gpu.memory_bandwidth;
      g.gpu.nvlink = 2.0 * g.gpu.nvlink;
    }
    CHECK(forecast_of(q).step_time.expected.value <= before);
  }
}

TEST_CASE("a card with more memory never fits less", "[forecast]") {
  for (Question q : several()) {
    const Verdict before = forecast_of(q).verdict;
    for (NodeGroup& g : q.cluster.groups) {
      g.gpu.memory_offered = g.gpu.memory_reported = std::nullopt;
      g.gpu.memory = 2 * g.gpu.memory;
    }
    CHECK(static_cast<int>(forecast_of(q).verdict) <= static_cast<int>(before));
  }
}

// 7,248,023,552 parameters over 8 ranks: two fp32 moments are 8/8 of a byte each, and the roots of
// one that foreach kernels make for a step (torch/optim/adam.py, _multi_tensor_adam) are no state.
TEST_CASE("what the optimizer makes for a step is no state", "[forecast]") {
  const Forecast f =
      forecast_of(short_question("mistral-7b-v0.3", "8xH100-SXM", Method::full, "pytorch-fsdp2",
                                 "dp=8,zero=3,mbs=1,ga=1,recompute=full"));
  const auto of = [&](MemoryCategory c) {
    return Bytes(f.stages.front().breakdown[static_cast<std::size_t>(c)]) / Bytes(7'248'023'552);
  };
  CHECK(of(MemoryCategory::optimizer_states) == Approx(1).epsilon(1e-3));
  CHECK(of(MemoryCategory::temporaries) > 0.49);
}

// The shards of N ranks hold a 1/N of the states; what a rank holds can only fall with N.
// A gathered state dict is made piece by piece: beside what stays between two steps the largest
// layer is whole, here the table of 128,256 x 2,048 fp32 weights, of which each rank has a quarter.
TEST_CASE("saving sharded weights gathers the largest layer", "[forecast]") {
  const Forecast f =
      forecast_of(short_question("llama-3.2-1b", "4xA100-80GB", Method::full, "pytorch-fsdp2",
                                 "dp=4,zero=3,mbs=1,ga=2,recompute=full"));
  const Bytes stays = f.plays->stages.front().after_step;
  CHECK(f.stages.front().save.allocated - stays == Bytes(std::int64_t{128'256} * 2'048 * 4));
}

TEST_CASE("more ranks under full sharding never hold more states each", "[forecast]") {
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const int n : {1, 2, 4, 8}) {
    const std::string plan = "dp=" + std::to_string(n) + ",zero=3,mbs=1,ga=1,recompute=full";
    const std::string gpus = std::to_string(n) + "xA100-80GB";
    const Forecast f = forecast_of(
        short_question("llama-3.2-1b", gpus.c_str(), Method::full, "pytorch-fsdp2", plan.c_str()));
    const MemoryBreakdown& b = f.stages.front().breakdown;
    const auto at = [&](MemoryCategory c) { return b[static_cast<std::size_t>(c)]; };
    const std::int64_t states = at(MemoryCategory::weights) + at(MemoryCategory::optimizer_states) +
                                at(MemoryCategory::master_weights);
    CHECK(states <= before);
    before = states;
  }
}

TEST_CASE("broken plans are refused with the rule that they break", "[forecast]") {
  const auto refused = [](const char* plan, const char* part) {
    const auto f = forecast(
        short_question("llama-3.1-8b", "8xH100-SXM", Method::pretrain, "megatron-lm", plan),
        known_facts().profile);
    INFO(plan);
    REQUIRE_FALSE(f);
    CHECK(f.error().front().what.find(part) != std::string::npos);
  };
  refused("dp=4,recompute=none", "the cluster has 8");
  refused("dp=1,tp=0,recompute=none", "tp must be");
  refused("dp=8,zero=7,recompute=none", "zero must be");
  refused("dp=8,ep=2,recompute=none", "mixture-of-experts");
  refused("dp=8,recompute=sometimes", "unknown policy");
  refused("dp=8,schedule=magic,recompute=none", "unknown pipeline schedule");
  refused("dp=8,compress=zip,recompute=none", "unknown gradient compression");
  refused("dp=8,zero=1,compress=1bit,recompute=none", "zero 0");
  refused("dp=8,zero=3,balance=speed,recompute=none", "balance=speed");
  refused("dp=4,pp=2,balance=speed,recompute=none", "layers=");
  refused("dp=8,zero=2,async-dp=true,recompute=none", "async-dp");
  refused("dp=8,nvme=true,recompute=none", "offload=optimizer");
  refused("dp=4,shard=3,tp=2,recompute=none", "shard group");
}

// Attention alone is 6 FLOP x 32 layers x 4096 x (1e8)^2 tokens = 7.9e21, of which an RTX 3090 does
// 71e12 in a second: 1.1e8 s, where the clock ends after 9.2e6. Its memory is told all the same.
TEST_CASE("a step beyond the clock is a problem of the question, and of time alone", "[forecast]") {
  Question q = short_question("llama-3.1-8b", "1xRTX-3090", Method::pretrain, "megatron-lm",
                              "mbs=1,ga=2,recompute=full");
  q.workload.sequence = 100'000'000;
  for (const bool by_tasks : {false, true}) {
    const auto f = forecast(q, known_facts().profile, {.memory = false, .record = by_tasks});
    REQUIRE_FALSE(f);
    CHECK(f.error().front().kind == ProblemKind::request);
    CHECK(f.error().front().what.find("longer than the 106 days") != std::string::npos);
  }
  const auto memory = forecast(q, known_facts().profile, {.time = false});
  REQUIRE(memory);
  CHECK(memory->verdict == Verdict::does_not_fit);
}

// Llama 3.2 3B, 3,212,749,824 parameters, all in 16 bits: 12 GiB of weights and gradients and 24
// GiB of two fp32 moments, for 24 GB. What finds no room crosses the link both ways, all of it, as
// every moment is wanted in turn; the link has 32 GB/s at most (PCIe 4.0 x16).
TEST_CASE("paged states take what room is left, and the link for the rest", "[forecast]") {
  Question q = short_question("llama-3.2-3b", "1xRTX-4090", Method::full, "torchtune",
                              "dp=1,mbs=1,ga=1,recompute=full");
  q.workload.optimizer = optimizer_named("paged-adamw");
  const Forecast f = forecast_of(q);
  const StageForecast& s = f.stages.front();
  CHECK(f.verdict != Verdict::does_not_fit);
  CHECK(s.paged == Bytes(8 * 3'212'749'824));
  CHECK(s.paged_out > Bytes(0));
  CHECK(s.peak.device == s.capacity);
  CHECK(f.breakdown.offload > Seconds(2 * 8 * 3'212'749'824 / 32e9));
  const auto sum = std::accumulate(s.breakdown.begin(), s.breakdown.end(), std::int64_t{0});
  CHECK(sum == s.peak.device.value);

  Question large = q;
  large.cluster = parse_gpus(known_facts().catalog, "1xA100-80GB")->front();
  const Forecast fits = forecast_of(large);
  CHECK(fits.stages.front().paged_out == Bytes(0));
  CHECK(fits.breakdown.offload == Seconds(0));
  CHECK(f.host.steady - fits.host.steady == s.paged_out);
}

TEST_CASE("gradients that are stepped in backward cannot accumulate", "[forecast]") {
  const Question q = short_question("llama-3.2-1b", "1xRTX-4090", Method::full,
                                    "torchtune-low-memory", "dp=1,mbs=1,ga=2,recompute=full");
  const auto f = forecast(q, known_facts().profile);
  REQUIRE_FALSE(f);
  CHECK(f.error().front().what.find("ga must be 1, got 2") != std::string::npos);
}

TEST_CASE("compressed gradients take less of the wire", "[forecast]") {
  const auto wire = [](const char* compress) {
    Question q = short_question("llama-3.2-1b", "16xA100-80GB", Method::full, "pytorch-ddp",
                                "dp=16,zero=0,mbs=1,ga=1,recompute=none");
    q.plan.compression = compress;
    const auto f = forecast(q, known_facts().profile, {.record = true});
    if (!f) FAIL(f.error().front().what);
    double bytes = 0;
    for (const CollectiveUse& u : f->record->collectives.front())
      if (u.work == WorkKind::reduce_gradients)
        bytes += static_cast<double>(u.size.value) *
                 (u.collective == Collective::all_reduce ? 2.0 : 1.0);  // in and out
    return bytes;
  };
  const double none = wire("none");
  CHECK(wire("powersgd-4") < 0.05 * none);
  // One bit where fp32 has 32, once to and once fro.
  CHECK(wire("1bit") == Approx(none / 32).epsilon(0.01));
  CHECK(wire("fp8") == Approx(none / 4).epsilon(0.01));
  CHECK(wire("bf16") == Approx(none / 2).epsilon(0.01));
}

TEST_CASE("a slow loader, drives and asynchronous reductions show in the step", "[forecast]") {
  Question q = short_question("llama-3.2-1b", "4xRTX-4090", Method::full, "deepspeed",
                              "dp=4,zero=2,mbs=1,ga=2,recompute=full,offload=optimizer");
  const double host = forecast_of(q).step_time.expected.value;
  q.plan.nvme = true;
  // 12 B of states per parameter, over 4 ranks that share the drives, read and written again.
  CHECK(forecast_of(q).step_time.expected.value > host);

  Question loads = short_question("gpt2", "4xRTX-4090", Method::full, "pytorch-ddp",
                                  "dp=4,mbs=2,ga=3,recompute=none");
  loads.workload.load_per_sequence = Seconds(1);
  // 4 ranks x 3 microbatches x 2 sequences at one per second.
  CHECK(forecast_of(loads).step_time.expected.value == Approx(24));

  Question late = short_question("llama-3.2-1b", "16xA100-80GB", Method::full, "pytorch-ddp",
                                 "dp=16,zero=0,mbs=1,ga=1,recompute=none");
  const double synchronous = forecast_of(late).step_time.expected.value;
  late.plan.async_data = true;
  const Forecast f = forecast_of(late);
  CHECK(f.step_time.expected.value < synchronous);
  REQUIRE_FALSE(f.notes.empty());
  CHECK(f.notes.back().find("one step old") != std::string::npos);
}

// 1,235,814,400 parameters in fp32: weight, gradient and AdamW's two states are 16 bytes of each,
// also where the weights stay on the GPUs and what is stepped is a copy. DeepSpeed has an fp32
// gradient, an fp32 master and the states: 16, and 18 with the 16-bit weights. That is so of each
// parameter once at stage 1 too, where every rank has all gradients on its GPU.
TEST_CASE("what is stepped on the host lies there once", "[forecast]") {
  const auto offloaded = [](const char* framework, const char* what, int stage = 3) {
    const std::string plan = "dp=4,mbs=1,ga=1,recompute=full,zero=" + std::to_string(stage);
    const auto host = [&](const std::string& text) {
      return forecast_of(short_question("llama-3.2-1b", "4xRTX-4090", Method::full, framework,
                                        text.c_str()))
          .host.steady;
    };
    return (host(plan + ",offload=" + what) - host(plan)) / Bytes(1'235'814'400);
  };
  CHECK(offloaded("pytorch-fsdp2", "params+optimizer") == Approx(16).epsilon(1e-3));
  CHECK(offloaded("pytorch-fsdp2", "optimizer") == Approx(16).epsilon(1e-3));
  CHECK(offloaded("deepspeed-zero", "params+optimizer") == Approx(18).epsilon(1e-3));
  for (const int stage : {1, 2, 3})
    CHECK(offloaded("deepspeed-zero", "optimizer", stage) == Approx(16).epsilon(1e-3));
}
