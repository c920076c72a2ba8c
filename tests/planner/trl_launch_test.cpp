// TRL's script: sequences as they are forecast, and models with a vision tower.
#include "planner/answers/launch_answer.hpp"
#include "planner/sentence.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Result<LaunchAnswer> fine_tuning(const char* model, Method method, const char* target) {
  Request r = request_for(model, "8xA100-80GB", {method});
  r.target = target;
  r.plans = {std::string_view(target) == "torchrun" ? "dp=8,zero=3,mbs=1,recompute=full"
                                                    : "dp=8,zero=3,mbs=2,recompute=full"};
  return launch_answer(r, known_facts());
}

// The script's arguments, beside the launcher's own file.
std::string script_of(const LaunchAnswer& a) {
  for (const LaunchFile& file : a.files.files)
    if (file.name == "sft.yaml") return file.text;
  return "";
}

}  // namespace

// "bfd", TRL's default, sets padding_free, by which a microbatch of n sequences is one of n times
// the length to attention that is not FlashAttention's own package.
TEST_CASE("TRL's sequences are cut full, side by side") {
  for (const char* target : {"accelerate", "deepspeed"}) {
    const auto a = fine_tuning("llama-3.1-8b", Method::full, target);
    REQUIRE(a);
    CHECK(script_of(*a).find("\npacking: true\npacking_strategy: wrapped\n") != std::string::npos);
  }
}

// sft_trainer.py: "Packing is not supported for vision-language models", which it raises.
TEST_CASE("models with a vision tower are not packed, and where nobody freezes it that is said") {
  for (const Method method : {Method::full, Method::lora}) {
    const auto a = fine_tuning("qwen2.5-vl-7b", method, "accelerate");
    REQUIRE(a);
    CHECK(script_of(*a).find("\npacking: false\n") != std::string::npos);
    CHECK(script_of(*a).find("packing_strategy") == std::string::npos);
    bool told = false;
    for (const std::string& note : a->files.notes)
      told |= note.find("vision tower") != std::string::npos;
    CHECK(told == (method == Method::full));
  }
}

// transformers' bnb_4bit_use_double_quant: axolotl hands it on by its name, TRL has its own for it
// (ModelConfig; get_quantization_config).
TEST_CASE("every target of QLoRA says whether constants are quantised too") {
  for (const auto& [target, line] : {std::pair{"accelerate", "\nuse_bnb_nested_quant: "},
                                     std::pair{"deepspeed", "\nuse_bnb_nested_quant: "},
                                     std::pair{"axolotl", "\n  bnb_4bit_use_double_quant: "}})
    for (const bool nested : {false, true}) {
      INFO(target);
      Request r = request_for("llama-3.1-8b", "1xRTX-4090", {Method::qlora});
      r.target = target;
      r.quantization = nested ? Quantization::nf4_double : Quantization::nf4;
      const auto a = launch_answer(r, known_facts());
      REQUIRE(a);
      int said = 0;
      for (const LaunchFile& file : a->files.files)
        said += file.text.find(sentence(line, nested ? "true" : "false", '\n')) != file.text.npos;
      CHECK(said == 1);
    }
}

TEST_CASE("targets that feed no images refuse a model that is forecast with them") {
  for (const char* target : {"torchrun", "axolotl"}) {
    INFO(target);
    const auto a = fine_tuning("qwen2.5-vl-7b", Method::full, target);
    REQUIRE_FALSE(a);
    CHECK(a.error().front().what.find("images") != std::string::npos);
    CHECK(fine_tuning("qwen2.5-7b", Method::full, target));
  }
}

}  // namespace shardwise
