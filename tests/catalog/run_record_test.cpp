// Reading published runs: one bad record does not take the others along, and a step time comes out
// of whatever was published.
#include "catalog/run_record.hpp"
#include "catalog/reading.hpp"
#include "catalog/run_fields.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

const std::filesystem::path runs_root = std::filesystem::path(source_dir()) / "catalog";

// A file of runs that is removed at the end of the test.
class RunsFile {
 public:
  explicit RunsFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("shardwise-runs-test-" + std::to_string(getpid()) + ".json")) {
    std::ofstream(path_) << text;
  }
  ~RunsFile() { std::filesystem::remove(path_); }
  RunsFile(const RunsFile&) = delete;
  RunsFile& operator=(const RunsFile&) = delete;
  Result<Runs> load() const { return load_runs(path_); }

 private:
  std::filesystem::path path_;
};

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
  // 4,848 published runs (without 378 micro-benchmark points), 403 oracle cases, 22 of
  // Megatron-Bridge's cards, 46 of stacks seen once, 236 field reports, 95 of NVIDIA's recipes,
  // then the blind tests and the reports between them in the order in which they came.
  CHECK(runs->records.size() == 4848 + 403 + 22 + 46 + 236 + 95 + 85 + 165 + 174 + 133 + 122 + 89 +
                                    549 + 81 + 5 + 2 + 237 + 120 + 201 + 210 + 193 + 181 + 199 +
                                    110 + 185 + 145 + 102 + 90 + 162 + 81 + 72 + 89 + 115 + 74 +
                                    127 + 171 + 12 + 88 + 84 + 62);
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
    "power_limit_w": 275, "peer_access": false},
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
      "qk_norm": "head_dim", "biases": "no"}},
    {"id": "b", "model": {"name": "M", "position": "sideways"}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  const RunModel& told = runs->records.at(0).model;
  CHECK(told.position == PositionKind::rope);
  CHECK(told.norm == NormKind::rms);
  CHECK(told.qk_norm == QkNorm::head_dim);
  CHECK(told.biases == false);
  CHECK_FALSE(runs->records.at(1).malformed);
  CHECK_FALSE(runs->records.at(1).model.position);
  CHECK(runs->records.at(1).unread.size() == 1);  // which words there are
}

TEST_CASE("A member is read in another type where it says the same") {
  const RunsFile file(R"([{"id": 7, "model": {"name": "M", "layers": "32", "vocab": "131,072",
      "gated_mlp": "yes", "moe": false}, "hardware": {"gpu": "H100", "gpus": [8]},
    "training": {"method": "lora", "lora_rank": [16], "lora_targets": ["q", "v"],
      "seq_len": "4096 tokens", "recompute": true, "compile": 1, "packing": "off",
      "flash_attention": "fa2", "dropout": 0.1, "plugins": "liger"},
    "plan": {"dp": 8.0, "pp": 0, "cp": -1, "zero": "ZeRO-3", "offload": false},
    "measured": {"peak_mem_gib": "20.5 GiB", "mem_suspect": false}, "notes": ["a", "b"]}])");
  const auto runs = file.load();
  REQUIRE(runs);
  REQUIRE(runs->problems.empty());
  const RunRecord& r = runs->records.at(0);
  CHECK(r.id == "7");
  CHECK(r.model.layers == 32);
  CHECK(r.model.vocab == 131072);
  CHECK(r.model.gated_mlp == true);
  CHECK_FALSE(r.model.moe);
  CHECK(r.hardware.gpus == 8);
  CHECK(r.training.lora_rank == 16);
  CHECK(r.training.lora_targets == "q, v");
  CHECK(r.training.sequence == 4096);
  CHECK(r.training.recompute == "true");
  CHECK(r.training.compile == true);
  CHECK(r.training.packing == false);
  CHECK(r.training.flash_attention == true);
  CHECK(r.training.dropout == true);
  CHECK(r.training.plugins == std::vector<std::string>{"liger"});
  CHECK(r.plan.dp == 8);
  CHECK_FALSE(r.plan.pp);
  CHECK_FALSE(r.plan.cp);
  CHECK(r.plan.zero == 3);
  CHECK(r.plan.offload == "false");
  CHECK(measured_memory_gib(r) == 20.5);
  CHECK(r.notes == "a, b");
  CHECK(r.unread.empty());
}

// Configuration files call the keys by other names, which count where the record's own is missing.
TEST_CASE("Keys are read under the names of configuration files") {
  const RunsFile file(R"([{"id": "a", "model": {"num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "tie_word_embeddings": false,
    "moe": {"num_experts": 8, "num_experts_per_tok": 2}},
    "hardware": {"nodes": 4, "gpus_per_node": 8},
    "training": {"sequence_length": 4096, "micro_batch": 2, "micro_batch_size": 7,
    "gradient_accumulation_steps": 4, "gradient_checkpointing": true, "lora_r": 16},
    "plan": {"tensor_parallel_size": 2, "zero_stage": 3, "sequence_parallel": true}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  const RunRecord& r = runs->records.front();
  CHECK(r.model.layers == 32);
  CHECK(r.model.hidden == 4096);
  CHECK(r.model.heads == 32);
  CHECK(r.model.kv_heads == 8);
  CHECK(r.model.ffn == 14336);
  CHECK(r.model.vocab == 128256);
  CHECK(r.model.tied_embeddings == false);
  REQUIRE(r.model.moe);
  CHECK(r.model.moe->experts == 8);
  CHECK(r.model.moe->top_k == 2);
  CHECK(r.hardware.gpus == 32);
  CHECK(r.training.sequence == 4096);
  CHECK(r.training.micro_batch == 2);
  CHECK(r.training.grad_accum == 4);
  CHECK(r.training.recompute == "true");
  CHECK(r.training.lora_rank == 16);
  CHECK(r.plan.tp == 2);
  CHECK(r.plan.zero == 3);
  CHECK(r.plan.sp == true);
  // The one that is passed over is told of, the others are not.
  REQUIRE(r.unread.size() == 1);
  CHECK(r.unread.front().find("micro_batch_size") != std::string::npos);
}

TEST_CASE("A stage of sharding under the names of FSDP and DDP") {
  const auto stage = [](const std::string& told) {
    const RunsFile file(R"([{"id": "a", "plan": {"zero": ")" + told + R"("}}])");
    const auto runs = file.load();
    REQUIRE(runs);
    return runs->records.front().plan;
  };
  CHECK(stage("FSDP").zero == 3);
  CHECK(stage("FSDP2").zero == 3);  // not stage 2
  CHECK(stage("FSDP2").fsdp_version == 2);
  CHECK(stage("fsdp (full_shard)").zero == 3);
  CHECK(stage("FULL-SHARD").zero == 3);
  CHECK(stage("FSDP SHARD_GRAD_OP").zero == 2);
  CHECK(stage("NO_SHARD").zero == 0);
  CHECK(stage("ddp").zero == 0);
  CHECK(stage("distributed optimizer").zero == 1);
  CHECK(stage("ZeRO-2, as FSDP's shard_grad_op").zero == 2);
  CHECK(stage("zero-1 (distributed optimizer)").zero == 1);
  CHECK(stage("stage3").zero == 3);
  CHECK_FALSE(stage("some").zero);
  CHECK_FALSE(stage("no FSDP").zero);
}

// 8 x 1,024 = 8,192
TEST_CASE("A length in units of 1,024 tokens") {
  const auto length = [](const std::string& told) {
    const RunsFile file(R"([{"id": "a", "training": {"seq_len": ")" + told + R"("}}])");
    const auto runs = file.load();
    REQUIRE(runs);
    return runs->records.front().training.sequence;
  };
  CHECK(length("8k") == 8192);
  CHECK(length("8 K tokens") == 8192);
  CHECK(length("128K") == 131072);
  CHECK(length("8,192") == 8192);
  CHECK_FALSE(length("8km"));
  CHECK_FALSE(length("4k to 8k"));
  CHECK_FALSE(length("0k"));
}

TEST_CASE("A member that says nothing is not stated, and a note tells of it") {
  const RunsFile file(R"([{"id": "a", "model": "M", "source": "a page", "hardware": {"gpus": "8x8"},
    "training": {"seq_len": "long", "micro_batch": 0.5, "lora_targets": {"q": 1}},
    "plan": {"tp": true}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  const RunRecord& r = runs->records.at(0);
  CHECK(r.model.name == "M");
  CHECK_FALSE(r.hardware.gpus);
  CHECK_FALSE(r.training.sequence);
  CHECK_FALSE(r.training.lora_targets);
  CHECK_FALSE(r.plan.tp);
  // gpus, seq_len, lora_targets and tp; half a sequence is no spelling but an absurd number.
  CHECK(r.unread.size() == 4);
  CHECK(r.unread.front() ==
        "hardware.gpus is not understood, so taken as not stated: expected a whole number");
  REQUIRE(r.malformed);
  CHECK(r.malformed->find("micro_batch") != std::string::npos);
}

TEST_CASE("What Python writes for no number is nothing") {
  const RunsFile file(R"([{"id": "a NaN", "model": {"name": "-Infinity \" NaN"},
    "hardware": {"gpus": NaN}, "measured": {"peak_mem_gib": NaN, "step_time_s": -Infinity,
    "tokens_per_s": 3}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  const RunRecord& r = runs->records.at(0);
  CHECK(r.id == "a NaN");
  CHECK(r.model.name == "-Infinity \" NaN");
  CHECK_FALSE(r.hardware.gpus);
  CHECK_FALSE(r.measured.peak_mem_gib);
  CHECK_FALSE(r.measured.step_time);
  CHECK(r.measured.tokens_per_s == 3.0);
  CHECK_FALSE(RunsFile("[{\"id\": \"a\", \"model\": {\"layers\": Nan}}]").load());
}

TEST_CASE("The one number of a text is read") {
  CHECK(number_told("4,096 tokens") == 4096.0);
  CHECK(number_told("131_072") == 131072.0);
  CHECK(number_told("ZeRO-3") == 3.0);
  CHECK(number_told("-3") == -3.0);
  CHECK(number_told("1e-4") == 1e-4);
  CHECK(number_told("0.5, say") == 0.5);
  CHECK_FALSE(number_told("8x8"));
  CHECK_FALSE(number_told("70B"));
  CHECK_FALSE(number_told("2 or 4"));
  CHECK_FALSE(number_told("long"));
  CHECK(number_told("512,102") == 512102.0);
  CHECK(number_told("1,048,576 tokens") == 1048576.0);
  CHECK(number_told(".5") == 0.5);
  CHECK_FALSE(number_told("512,1024"));   // two numbers: a group has three digits
  CHECK_FALSE(number_told("5120,102"));   // nor may the first have four
  CHECK_FALSE(number_told("1,5"));        // one and a half, or two numbers
  CHECK_FALSE(number_told("1_000,000"));  // one mark parts a number
  CHECK_FALSE(number_told("1.2.3"));      // a version
  CHECK_FALSE(number_told("4 k"));        // 4,000 or 4,096
  CHECK_FALSE(number_told("3 million"));
  CHECK_FALSE(number_told("10 %"));
}

// A number of another unit is another number: 350 ms are not 350 s. A text may name its key's unit.
TEST_CASE("A unit that is not the key's own is not understood") {
  const RunsFile file(R"([{"id": "a", "model": {"name": "M"},
    "hardware": {"gpu": "H100", "host_ram_gib": "1 TB", "power_limit_w": "0.4 kW"},
    "measured": {"step_time_s": "350 ms", "peak_mem_gib": "40960 MiB",
      "tokens_per_s": "3000 tokens/s/GPU", "samples_per_s": "2 per minute",
      "breakdown_gib": {"weights": "3 GB"}}},
    {"id": "b", "model": {"name": "M"},
    "hardware": {"gpu": "H100", "host_ram_gib": "0.5GiB", "power_limit_w": "400 W"},
    "measured": {"step_time_s": "1.5 seconds", "peak_mem_gib": " 20.5 gib", "tokens_per_s": "3,000",
      "tokens_per_s_per_gpu": "750 tokens/s/GPU", "samples_per_s": "2 samples/s",
      "breakdown_gib": {"weights": "3 GiB"}}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  REQUIRE(runs->problems.empty());
  const RunRecord& other = runs->records.at(0);
  CHECK_FALSE(other.hardware.host_ram);
  CHECK_FALSE(other.hardware.power_limit_w);
  CHECK_FALSE(other.measured.step_time);
  CHECK_FALSE(other.measured.peak_mem_gib);
  CHECK_FALSE(other.measured.tokens_per_s);  // of one GPU, not of the job
  CHECK_FALSE(other.measured.samples_per_s);
  CHECK(other.measured.breakdown_gib.empty());
  CHECK(other.unread.size() == 7);
  CHECK(other.unread.front() ==
        "hardware.host_ram_gib is not understood, so taken as not stated: expected a number in "
        "GiB");
  const RunRecord& own = runs->records.at(1);
  CHECK(own.hardware.host_ram == Bytes(1 << 29));
  CHECK(own.hardware.power_limit_w == 400);
  CHECK(own.measured.step_time == Seconds(1.5));
  CHECK(own.measured.peak_mem_gib == 20.5);
  CHECK(own.measured.tokens_per_s == 3000.0);
  CHECK(own.measured.tokens_per_s_per_gpu == 750.0);
  CHECK(own.measured.samples_per_s == 2.0);
  CHECK(own.measured.breakdown_gib.at("weights") == 3.0);
  CHECK(own.unread.empty());
}

// 0 and -1 stand for "none" only where a run can do without: of a model's layers they are a slip,
// which a note tells of, for what was measured is still of use.
TEST_CASE("Zero and minus one of what every run has are noted") {
  const RunsFile file(R"([{"id": "a", "model": {"name": "M", "layers": 0},
    "hardware": {"gpus": "-1"}, "training": {"seq_len": -1, "grad_accum": 0, "lora_rank": -1},
    "plan": {"pp": 0, "cp": "0"}, "measured": {"step_time_s": 2}}])");
  const auto runs = file.load();
  REQUIRE(runs);
  REQUIRE(runs->problems.empty());
  const RunRecord& r = runs->records.at(0);
  CHECK_FALSE(r.model.layers);
  CHECK_FALSE(r.hardware.gpus);
  CHECK_FALSE(r.training.sequence);
  CHECK_FALSE(r.training.grad_accum);
  CHECK_FALSE(r.training.lora_rank);
  CHECK_FALSE(r.plan.pp);
  CHECK_FALSE(r.plan.cp);
  CHECK(measured_step(r) == Seconds(2));
  const std::string reads =
      " is not understood, so taken as not stated: expected a whole number from 1";
  CHECK(r.unread == std::vector<std::string>{"model.layers" + reads, "hardware.gpus" + reads,
                                             "training.seq_len" + reads});
}

TEST_CASE("FlashAttention is denied, or not stated, as a record words it") {
  const auto flash = [](const std::string& told) {
    const RunsFile file(R"([{"id": "a", "model": {"name": "M"}, "training": {"flash_attention": )" +
                        told + "}}]");
    const auto runs = file.load();
    REQUIRE(runs);
    return runs->records.front().training.flash_attention;
  };
  for (const char* on :
       {R"("fa2")", R"("FlashAttention-2")", R"("flash_attn 2.5")", "1", R"("flash, not eager")"})
    CHECK(flash(on) == true);
  // A denial of it, and another kernel that begins with "fa".
  for (const char* off : {R"("no flash attention")", R"("flash_attention_2=False")",
                          R"-("fallback (eager)")-", R"("eager")", R"("false")", "0"})
    CHECK(flash(off) == false);
  // What Python writes for nothing, what configuration files do, and a text that names both.
  for (const char* none :
       {R"("")", R"("none")", R"("None")", "-1", R"("flash attention or eager")"}) {
    INFO(none);
    CHECK_FALSE(flash(none));
  }
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
