// A checkpoint that its config.json calls quantised: what is forecast of it, and what is said.
#include "catalog/huggingface.hpp"
#include "planner/answers/launch_answer.hpp"
#include "planner/choice/workload_choice.hpp"
#include "planner/forecast/forecast.hpp"
#include "planner/report/adapter_words.hpp"
#include "planner/request/plan_from.hpp"
#include "planner/sentence.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

// Llama 3 8B, stored as said.
Request request_of(const std::string& quantization, std::vector<Method> methods = {}) {
  Request r = request_for("", "1xRTX-4090", std::move(methods));
  r.uploaded = *parse_huggingface_config(
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
          "vocab_size": 128256, "intermediate_size": 14336, "num_attention_heads": 32,
          "num_key_value_heads": 8, "quantization_config": )" +
          quantization + "}",
      "q.json");
  return r;
}

constexpr const char* awq = R"({"quant_method": "awq", "bits": 4})";
constexpr const char* fp8 = R"({"quant_method": "fp8"})";
constexpr const char* mxfp4 = R"({"quant_method": "mxfp4"})";

Workload workload_of(const Request& request) {
  const ResolvedRequest r = resolved(request);
  return choose_workload(r, r.methods.front(), r.clusters.front(), 0).workload;
}

std::int64_t weights_of(const Request& request) {
  Workload w = workload_of(request);
  ParallelPlan plan = *parse_plan("dp=1,mbs=1,ga=16,recompute=full");
  const auto f = forecast({w, plan, resolved(request).clusters.front()}, known_facts().profile,
                          {.time = false});
  REQUIRE(f);
  return f->stages.front().breakdown[static_cast<std::size_t>(MemoryCategory::weights)];
}

int times_told(const ResolvedRequest& r, const std::string& words) {
  int times = 0;
  for (const std::string& note : r.notes)
    if (note.find(words) != std::string::npos) ++times;
  return times;
}

}  // namespace

// axolotl's validate_qlora refuses adapter: qlora without load_in_4bit, and with gptq.
TEST_CASE("axolotl is told of GPTQ weights by their name, and quantises to none itself") {
  const auto yaml_of = [](const char* stored) {
    Request r = request_of(stored, {Method::qlora});
    r.target = "axolotl";
    const auto a = launch_answer(r, known_facts());
    REQUIRE(a);
    REQUIRE_FALSE(a->files.files.empty());
    return a->files.files.front().text;
  };
  const auto holds = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  const std::string gptq = yaml_of(R"({"quant_method": "gptq", "bits": 4})");
  CHECK(holds(gptq, "\nadapter: lora\n"));
  CHECK(holds(gptq, "\ngptq: true\n"));
  CHECK_FALSE(holds(gptq, "load_in_"));
  const std::string of_awq = yaml_of(awq);
  CHECK(holds(of_awq, "\nadapter: lora\n"));
  CHECK_FALSE(holds(of_awq, "gptq"));

  Request plain = request_for("llama-3.1-8b", "1xRTX-4090", {Method::qlora});
  plain.target = "axolotl";
  CHECK(holds(launch_answer(plain, known_facts())->files.files.front().text,
              "\nadapter: qlora\nload_in_4bit: true\n"));
  plain.quantization = Quantization::int8;
  CHECK(holds(launch_answer(plain, known_facts())->files.files.front().text,
              "\nadapter: lora\nload_in_8bit: true\n"));
  plain.quantization = Quantization::gptq;
  const auto refused = launch_answer(plain, known_facts());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().what.find("quantises no weights to gptq") != std::string::npos);
}

// A file without load_in_4bit and load_in_8bit loads a model as it is stored: 16 bits, or GPTQ's.
TEST_CASE("no launch file leaves weights unquantised that were forecast quantised") {
  for (const char* target : {"accelerate", "deepspeed", "axolotl"}) {
    INFO(target);
    Request plain = request_for("llama-3.1-8b", "2xRTX-4090", {Method::qlora});
    plain.target = target;
    plain.quantization = Quantization::gptq;
    const auto refused = launch_answer(plain, known_facts());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().front().what.find("quantises no weights to gptq") != std::string::npos);

    Request stored = request_of(R"({"quant_method": "gptq", "bits": 4})", {Method::qlora});
    stored.gpus = "2xRTX-4090";
    stored.target = target;
    const auto whole = launch_answer(stored, known_facts());
    REQUIRE(whole);
    CHECK(whole->job.question.plan.zero_stage < 3);
    stored.plans = {"dp=2,zero=3"};
    const auto shards = launch_answer(stored, known_facts());
    REQUIRE_FALSE(shards);
    CHECK(shards.error().front().what.find("are buffers") != std::string::npos);
  }
}

TEST_CASE("8-bit weights are sharded by FSDP2 and not by FSDP1") {
  Request request = request_for("llama-3.1-8b", "2xRTX-4090", {Method::qlora});
  request.quantization = Quantization::int8;
  request.plans = {"dp=2,zero=3,mbs=1,recompute=full"};
  request.target = "axolotl";
  CHECK(launch_answer(request, known_facts()));
  request.target = "accelerate";
  const auto refused = launch_answer(request, known_facts());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().what.find("FSDP1 cannot flatten") != std::string::npos);
  request.plans = {"dp=2,zero=0,mbs=1,recompute=full"};
  CHECK(launch_answer(request, known_facts()));
}

TEST_CASE("axolotl's GPTQ reads as adapters beside GPTQ weights") {
  const Request request = request_for("llama-3.1-8b", "1xRTX-4090");
  const ResolvedRequest r = resolved(request);
  const auto files =
      with_plan_texts(request, {&r.model, &r.clusters.front(), &known_facts().catalog},
                      {{"gptq.yaml",
                        "base_model: m\ngptq: true\nadapter: lora\nlora_r: 8\n"
                        "micro_batch_size: 1\ngradient_accumulation_steps: 4\n"}});
  REQUIRE(files);
  CHECK(files->request.methods == std::vector<Method>{Method::qlora});
  CHECK(files->request.quantization == Quantization::gptq);
}

TEST_CASE("adapters stand beside what the file stores, unless --quantization says otherwise") {
  CHECK(workload_of(request_of(awq, {Method::qlora})).adapter.base == Quantization::gptq);
  CHECK(workload_of(request_of(fp8, {Method::dora})).adapter.base == Quantization::fp8);
  Request asked = request_of(awq, {Method::qlora});
  asked.quantization = Quantization::nf4;
  CHECK(workload_of(asked).adapter.base == Quantization::nf4);
  Request widened = request_of(awq, {Method::lora});
  widened.quantization = Quantization::none;
  CHECK(workload_of(widened).method == Method::lora);
  CHECK(workload_of(widened).adapter.base == Quantization::none);
  CHECK(workload_of(request_of(awq, {Method::full})).adapter.base == Quantization::none);
}

// The linears of a layer: q and o 2 x 4096 x 4096, k and v 2 x 4096 x 1024, the MLP
// 3 x 4096 x 14336, together 218,103,808; times 32 layers, times half a byte between 4 and 8 bits.
TEST_CASE("the frozen weights take what the format stores") {
  const std::int64_t linears = std::int64_t{32} * 218'103'808;
  CHECK(weights_of(request_of(fp8, {Method::qlora})) -
            weights_of(request_of(awq, {Method::qlora})) ==
        linears / 2);
}

TEST_CASE("lora beside quantised weights is qlora, once") {
  CHECK((resolved(request_of(awq)).methods == std::vector<Method>{Method::full, Method::qlora}));
  const ResolvedRequest r = resolved(request_of(awq, {Method::lora}));
  CHECK(r.methods == std::vector<Method>{Method::qlora});
  CHECK(times_told(r, "awq, 4 bit") == 1);
  CHECK(times_told(r, "lora is qlora then") == 1);
  CHECK(times_told(resolved(request_of(awq, {Method::full})), "awq, 4 bit") == 1);
}

TEST_CASE("a format that no row counts is said in one note") {
  const ResolvedRequest r = resolved(request_of(mxfp4));
  CHECK((r.methods == std::vector<Method>{Method::full, Method::lora, Method::qlora}));
  CHECK(times_told(r, "mxfp4") == 1);
  CHECK(times_told(r, "is not counted here") == 1);
  CHECK(workload_of(request_of(mxfp4, {Method::lora})).adapter.base == Quantization::none);
}

// nanotron pretrains and trains in full only, with weights of 16 bits.
TEST_CASE("a framework that does not train beside quantised weights reads the file into 16 bits") {
  Request request = request_of(awq, {Method::full});
  request.framework = "nanotron";
  const ResolvedRequest r = resolved(request);
  CHECK(times_told(r, "nanotron does not train") == 1);
  CHECK(times_told(r, "taken as 16 bits") == 1);
}

TEST_CASE("rank, targets and base of adapters are told in one line, and of nothing else") {
  Request request = request_of(awq, {Method::qlora});
  request.lora_rank = 8;
  request.lora_targets = "attention-qv";
  CHECK(adapter_text(workload_of(request)) ==
        "  adapters of rank 8 on q,v; frozen weights in gptq\n");
  Request lora = request_for("8b", "1xRTX-4090", {Method::lora});
  lora.lora_rank = 8;
  lora.lora_targets = "q";
  CHECK(adapter_text(workload_of(lora)) == "  adapters of rank 8 on q\n");
  CHECK(adapter_text(workload_of(request_for("8b", "1xRTX-4090", {Method::full}))).empty());
  // Tables have no adapters but in frameworks that make some for the head (adapts_head).
  lora.lora_targets = "q,embedding,lm_head";
  CHECK(adapter_text(workload_of(lora)) ==
        "  adapters of rank 8 on q; embedding,lm_head trained in full\n");
  lora.framework = "litgpt";
  CHECK(adapter_text(workload_of(lora)) ==
        "  adapters of rank 8 on q,lm_head; embedding trained in full\n");
}

}  // namespace shardwise
