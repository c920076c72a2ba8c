#include "catalog/huggingface_family.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

TEST_CASE("a refusal says what is different, and names a family that is there") {
  for (const char* type : {"persimmon",
                           "fuyu",
                           "xglm",
                           "ctrl",
                           "codegen",
                           "biogpt",
                           "git",
                           "xlm",
                           "openai-gpt",
                           "musicgen",
                           "moshi",
                           "reformer",
                           "xlnet",
                           "cpmant",
                           "cohere_compass",
                           "flint",
                           "ernie4_5_vl_moe",
                           "emu3",
                           "got_ocr2",
                           "moss_transcribe_diarize",
                           "gpt_neox_japanese",
                           "modernbert-decoder",
                           "gemma4_assistant"}) {
    INFO(type);
    const RefusedFamily* family = refused_family(type);
    REQUIRE(family != nullptr);
    CHECK(family->reason.find("no row") == std::string_view::npos);
    CHECK(config_family(family->nearest) != nullptr);
  }
}
