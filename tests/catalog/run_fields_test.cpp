// Members of published runs in other types, under other names and in other units: what says the
// same is read, and what says nothing is noted.
#include "catalog/run_fields.hpp"

#include <string>

#include "tests/catalog/runs_file.hpp"
#include "tests/catch.hpp"

namespace shardwise {

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

}  // namespace shardwise
