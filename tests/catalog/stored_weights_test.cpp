// config.json's quantization_config: which row of ours counts what the file stores.
#include "catalog/stored_weights.hpp"

#include "catalog/huggingface.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

constexpr const char* config_head =
    R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000,
        "intermediate_size": 11008, "num_attention_heads": 32, "quantization_config": )";

Result<Transformer> read(const std::string& quantization) {
  return parse_huggingface_config(config_head + quantization + "}", "q.json");
}

struct Case {
  const char* text;
  const char* format;
  std::optional<Quantization> counted;
};

}  // namespace

TEST_CASE("a quantised checkpoint is counted by the row of its format, or by none") {
  const Case cases[] = {
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
       "bitsandbytes, 4 bit", Quantization::nf4},
      {R"({"quant_method": "bitsandbytes", "_load_in_4bit": true, "load_in_4bit": true,
           "load_in_8bit": false, "bnb_4bit_quant_type": "fp4"})",
       "bitsandbytes, 4 bit", Quantization::nf4},
      {R"({"load_in_4bit": true, "bnb_4bit_use_double_quant": true})",
       "bitsandbytes, 4 bit with constants quantised again", Quantization::nf4_double},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", "bitsandbytes, 8 bit",
       Quantization::int8},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128})", "gptq, 4 bit",
       Quantization::gptq},
      {R"({"quant_method": "gptq", "bits": 3, "group_size": 128})", "gptq, 3 bit", std::nullopt},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true})", "awq, 4 bit",
       Quantization::gptq},
      {R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 128})", "awq, 4 bit",
       Quantization::gptq},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", "fp8", Quantization::fp8},
      {R"({"quant_method": "fbgemm_fp8"})", "fbgemm_fp8", Quantization::fp8},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
           "config_groups": {"group_0": {"weights": {"num_bits": 4}}}})",
       "compressed-tensors pack-quantized, 4 bit", Quantization::gptq},
      {R"({"quant_method": "compressed-tensors", "format": "float-quantized",
           "config_groups": {"group_0": {"weights": {"num_bits": 8}}}})",
       "compressed-tensors float-quantized, 8 bit", Quantization::fp8},
      {R"({"quant_method": "compressed-tensors", "format": "int-quantized",
           "config_groups": {"group_0": {"weights": {"num_bits": 8}}}})",
       "compressed-tensors int-quantized, 8 bit", std::nullopt},
      {R"({"quant_method": "mxfp4"})", "mxfp4", std::nullopt},
      {R"({"quant_method": "hqq"})", "hqq", std::nullopt}};
  for (const Case& c : cases) {
    INFO(c.text);
    const auto model = read(c.text);
    REQUIRE(model);
    REQUIRE(model->stored);
    CHECK(model->stored->format == c.format);
    CHECK(model->stored->counted == c.counted);
  }
  CHECK_FALSE(read("null")->stored);
}

TEST_CASE("a quantization_config of the wrong kind is a problem at its key") {
  struct Bad {
    const char *text, *where;
  };
  for (const Bad& bad :
       {Bad{"4", "q.json:/quantization_config"},
        Bad{R"({"quant_method": 4})", "q.json:/quantization_config/quant_method"},
        Bad{R"({"quant_method": "gptq", "bits": "four"})", "q.json:/quantization_config/bits"}}) {
    INFO(bad.text);
    const auto model = read(bad.text);
    REQUIRE_FALSE(model);
    CHECK(model.error().front().kind == ProblemKind::file);
    CHECK(model.error().front().where == bad.where);
  }
}

}  // namespace shardwise
