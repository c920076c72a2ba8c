// Reading published runs: one bad record does not take the others along, and a step time comes out
// of whatever was published.
#include "catalog/run_record.hpp"
#include "catalog/reading.hpp"

#include <filesystem>
#include <map>
#include <string>

#include "tests/catalog/runs_file.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const std::filesystem::path runs_root = std::filesystem::path(source_dir()) / "catalog";

RunRecord timed() {
  RunRecord r;
  r.training.sequence = 1000;
  r.training.global_batch = 8;
  r.hardware.gpus = 4;
  return r;
}

}  // namespace

TEST_CASE("Every published run of the catalog loads") {
  const auto runs = load_all_runs(runs_root);
  REQUIRE(runs);
  for (const Problem& p : runs->problems) {
    INFO(p.where << ": " << p.what);
    CHECK(false);
  }
  // 4,847 published runs (without 378 micro-benchmark points), 409 oracle cases, 22 of
  // Megatron-Bridge's cards, 46 of stacks seen once, 236 field reports, 95 of NVIDIA's recipes,
  // then the blind tests and the reports between them in the order in which they came.
  CHECK(runs->records.size() == 4847 + 409 + 22 + 46 + 236 + 95 + 85 + 164 + 173 + 124 + 122 + 89 +
                                    549 + 81 + 5 + 2 + 218 + 120 + 198 + 207 + 193 + 181 + 199 +
                                    110 + 185 + 145 + 102 + 90 + 161 + 75 + 71 + 89 + 115 + 74 +
                                    127 + 171 + 12 + 87 + 84 + 53 + 24 + 32 + 41 + 42 + 45);
  std::map<std::string, int> ids;
  for (const RunRecord& r : runs->records) ++ids[r.id];
  CHECK(ids.size() == runs->records.size());
}

TEST_CASE("Micro-benchmarks are told apart from runs") {
  const auto runs = load_runs(runs_root / "runs" / "c_microbench.json");
  REQUIRE(runs);
  REQUIRE(runs->records.size() == 378);
  for (const RunRecord& r : runs->records) CHECK(r.microbenchmark);
}

TEST_CASE("A record is read member by member") {
  const RunsFile file(R"([{"id": "a", "model": {"name": "M", "layers": 2, "moe": {"experts": 8,
    "top_k": 2}}, "hardware": {"gpu": "A100", "gpus": 4, "host_ram_gib": 0.5,
    "power_limit_w": 275, "peer_access": false, "usable_gib": 7.5},
    "training": {"method": "lora", "lora_rank": 16, "seq_len": 128, "base_quant": "nf4",
    "lora_dropout": 0.1, "plugins": ["LigerPlugin"],
    "loss_slice_tokens": 512}, "plan": {"dp": 2, "tp": 2, "zero": 3,
    "sp": true, "layers_per_stage": [0, 2]},
    "measured": {"step_time_s": 1.5, "peak_mem_gib": 20, "mem_kind": "nvidia-smi",
    "outcome": "ran", "mem_suspect": "why"}, "notes": "n", "anything": {"else": [1]}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  REQUIRE(runs->problems.empty());
  const RunRecord& r = runs->records.at(0);
  CHECK(r.id == "a");
  CHECK(r.model.layers == 2);
  REQUIRE(r.model.moe);
  CHECK(r.model.moe->experts == 8);
  CHECK_FALSE(r.model.moe->expert_ffn);
  CHECK(r.hardware.host_ram == Bytes(1 << 29));
  CHECK(r.hardware.power_limit_w == 275);
  CHECK(r.hardware.peer_access == false);
  CHECK(r.hardware.usable == Bytes(15LL << 29));  // 7.5 GiB
  CHECK(r.training.quantize == "nf4");
  CHECK(r.training.lora_dropout == 0.1);
  CHECK(r.training.plugins == std::vector<std::string>{"LigerPlugin"});
  CHECK(r.training.loss_slice_tokens == 512);
  CHECK(r.plan.zero == 3);
  CHECK(r.plan.sp == true);
  CHECK(r.plan.layers_per_stage == std::vector<int>{0, 2});
  CHECK_FALSE(r.plan.pp);
  CHECK(measured_step(r) == Seconds(1.5));
  CHECK_FALSE(measured_memory_gib(r));  // marked suspect
  CHECK(r.measured.peak_mem_gib == 20.0);
}

TEST_CASE("Keys of training and plan that nobody reads are named") {
  const RunsFile file(R"([{"id": "a", "model": {"name": "m"}, "colour": "red",
      "training": {"method": "lora", "liger_kernels": true},
      "plan": {"dp": 2, "shape": "round"}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  CHECK(runs->problems.empty());
  CHECK(runs->records.front().unread ==
        std::vector<std::string>{"training.liger_kernels is not read; did you mean liger_kernel?",
                                 "plan.shape is not read"});
}

TEST_CASE("A malformed record is lost alone") {
  const RunsFile file(R"([
    {"id": "good-1", "model": {"name": "M"}},
    {"id": "negative", "model": {"name": "M", "layers": -3}},
    {"id": "no-model", "training": {"seq_len": 128}},
    7,
    {"id": "good-2", "model": {"name": "M"}},
    {"id": "half", "model": {"name": "M"}, "plan": {"layers_per_stage": [1.5, 2]}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  REQUIRE(runs->records.size() == 6);
  CHECK_FALSE(runs->records[0].malformed);
  REQUIRE(runs->records[1].malformed);
  CHECK(runs->records[1].malformed->find("/1/model/layers") != std::string::npos);
  CHECK(runs->records[1].id == "negative");
  REQUIRE(runs->records[2].malformed);
  CHECK(runs->records[2].malformed->find("/2/model") != std::string::npos);
  CHECK(runs->records[3].malformed);
  CHECK_FALSE(runs->records[4].malformed);
  REQUIRE(runs->records[5].malformed);
  CHECK(runs->records[5].malformed->find("layers_per_stage") != std::string::npos);
  CHECK(runs->problems.size() == 4);
}

TEST_CASE("A record tells what a model of its own is made of") {
  const RunsFile file(R"([{"id": "a", "model": {"name": "M", "position": "RoPE", "norm": "rms",
      "qk_norm": "head_dim", "norms_per_layer": 4, "biases": "no"}},
    {"id": "b", "model": {"name": "M", "position": "sideways"}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  const RunModel& told = runs->records.at(0).model;
  CHECK(told.position == PositionKind::rope);
  CHECK(told.norm == NormKind::rms);
  CHECK((told.qk_norm == QkNorm::head_dim && told.norms_per_layer == 4));
  CHECK(told.biases == false);
  CHECK_FALSE(runs->records.at(1).malformed);
  CHECK_FALSE(runs->records.at(1).model.position);
  CHECK(runs->records.at(1).unread.size() == 1);  // which words there are
}

TEST_CASE("A file that is no array of records is refused") {
  CHECK_FALSE(RunsFile("{}").load());
  CHECK_FALSE(RunsFile("[").load());
  CHECK_FALSE(RunsFile("").load());
  CHECK_FALSE(load_runs("/nowhere/runs.json"));
  CHECK(RunsFile("[]").load());
}

// 8 sequences of 1,000 tokens on 4 GPUs: 2 samples/s is 4 s; 16,000 tokens/s is 0.5 s; 250
// tokens/s on each of the 4 is 8 s.
TEST_CASE("A step time comes out of whatever was published") {
  RunRecord r = timed();
  CHECK_FALSE(measured_step(r));
  r.measured.tokens_per_s_per_gpu = 250;
  CHECK(measured_step(r)->value == Approx(8));
  r.measured.tokens_per_s = 16000;
  CHECK(measured_step(r)->value == Approx(0.5));
  r.measured.samples_per_s = 2;
  CHECK(measured_step(r)->value == Approx(4));
  r.measured.step_time = Seconds(3);
  CHECK(measured_step(r)->value == Approx(3));
  r.measured.time_suspect = true;
  CHECK_FALSE(measured_step(r));
}

// Without a global batch: micro batch 3 on 2 data ranks, accumulated 5 times, is 30 sequences.
TEST_CASE("The batch of a step is put together where it is not stated") {
  RunRecord r = timed();
  r.training.global_batch.reset();
  r.measured.samples_per_s = 10;
  CHECK_FALSE(measured_step(r));
  r.training.micro_batch = 3;
  r.training.grad_accum = 5;
  CHECK_FALSE(measured_step(r));
  r.plan.dp = 2;
  CHECK(measured_step(r)->value == Approx(3));
  r.training.grad_accum.reset();
  CHECK(measured_step(r)->value == Approx(0.6));
}

TEST_CASE("A framework of which a record tells no age is as old as its source") {
  const auto note = [](const std::string& source, const std::string& training) {
    const RunsFile file(R"([{"id": "a", "source": )" + source + R"(, "model": {}, "training": )" +
                        training + "}]");
    const auto runs = file.load();
    REQUIRE(runs);
    return runs->records.front().training.framework_note.value_or("");
  };
  const std::string dated = R"-({"url_title": "a wiki (Apr 15 2024)"})-";
  CHECK(note(dated, R"({"framework": "trl"})") == "April 2024");
  CHECK(note(dated, R"({"framework_note": "its own script"})") == "its own script, April 2024");
  CHECK(note(dated, R"({"framework_note": "trl 0.26"})") == "trl 0.26");  // tells its age itself
  CHECK(note(R"({"where": "Table 1"})", R"({"framework": "trl"})").empty());
  // The title comes before the file.
  CHECK(note(R"({"file": "runs_202301.md", "where": "comment of 3 May 2022"})", "{}") ==
        "May 2022");
}

TEST_CASE("What no word of a source dates is as old as its document or thread") {
  const auto reading = load_reading(runs_root);
  REQUIRE(reading);
  const auto note = [&](const std::string& source, const std::string& training) {
    const RunsFile file(R"([{"id": "a", "source": )" + source + R"(, "model": {}, "training": )" +
                        training + "}]");
    auto runs = file.load();
    REQUIRE(runs);
    date_by_sources(*reading, runs->records);
    return runs->records.front().training.framework_note.value_or("");
  };
  const std::string thread = R"({"repo": "hiyouga/LLaMA-Factory", "where": "issue #4447: text"})";
  CHECK(note(thread, "{}") == "June 2024");
  CHECK(note(thread, R"({"framework_note": "0.9.3"})") == "0.9.3");
  const std::string document =
      R"({"repo": "axolotl-ai-cloud/axolotl", "file": "examples/jamba/README.md"})";
  CHECK(note(document, R"({"framework_note": "its own script"})") == "its own script, March 2024");
  CHECK(note(R"({"repo": "x/y", "where": "issue #4447"})", "{}").empty());
}

}  // namespace shardwise
