// What axolotl asks for beyond its schema.
#include "planner/answers/launch_answer.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

namespace shardwise {
namespace {

Request axolotl_request(Method method, const char* plan) {
  Request r = request_for("llama-3.1-8b", "8xA100-80GB", {method});
  r.target = "axolotl";
  r.plans = {plan};
  return r;
}

// What is written for a request that can be.
std::string written_yaml(const Request& request) {
  const auto a = launch_answer(request, known_facts());
  REQUIRE(a);
  return a->files.files.front().text;
}

}  // namespace

// loaders/adapter.py passes lora_alpha on as it stands, nothing included, and PEFT divides it by
// the rank.
TEST_CASE("axolotl's adapters have an alpha") {
  for (const Method method : {Method::lora, Method::dora, Method::qlora}) {
    Request r = axolotl_request(method, "dp=8,zero=0");
    r.lora_rank = 24;
    const auto a = launch_answer(r, known_facts());
    REQUIRE(a);
    CHECK(a->files.files.front().text.find("\nlora_alpha: 24\n") != std::string::npos);
  }
  const auto whole = launch_answer(axolotl_request(Method::full, "dp=8,zero=3"), known_facts());
  REQUIRE(whole);
  CHECK(whole->files.files.front().text.find("lora_") == std::string::npos);
}

// Its layers that see everything have heads of 512, FlashAttention-2 takes 256.
TEST_CASE("axolotl is told of heads that FlashAttention does not take") {
  Request r = request_for("gemma-4-e4b", "RTX-4090", {Method::qlora});
  r.target = "axolotl";
  const auto a = launch_answer(r, known_facts());
  REQUIRE(a);
  CHECK(a->files.files.front().text.find("\ngemma4_hybrid_attn_impl: true\n") != std::string::npos);
  const auto narrow = launch_answer(axolotl_request(Method::qlora, "dp=8,zero=0"), known_facts());
  REQUIRE(narrow);
  CHECK(narrow->files.files.front().text.find("hybrid_attn") == std::string::npos);
}

// check_fsdp2_w_8bit_optimizer: bitsandbytes' AdamW of 8 bits is refused with FSDP2, torchao's is
// what it asks for instead; of the other optimizers of 8 bits there is none of torchao's.
TEST_CASE("axolotl's FSDP2 takes torchao's optimizer of 8 bits") {
  for (const bool fsdp : {true, false}) {
    Request r = axolotl_request(Method::full, fsdp ? "dp=8,zero=3" : "dp=8,zero=1");
    r.optimizer = optimizer_named("adamw8bit");
    const auto a = launch_answer(r, known_facts());
    REQUIRE(a);
    CHECK(a->files.files.front().text.find(fsdp ? "\noptimizer: adamw_torch_8bit\n"
                                                : "\noptimizer: adamw_bnb_8bit\n") !=
          std::string::npos);
    r.optimizer = optimizer_named("lion8bit");
    const auto lion = launch_answer(r, known_facts());
    CHECK(static_cast<bool>(lion) == !fsdp);
    if (fsdp) CHECK(lion.error().front().what.find("8-bit optimizers") != std::string::npos);
  }
}

// FlashAttention-2 asks for Ampere: a V100 is of compute capability 7.0.
TEST_CASE("axolotl takes PyTorch's attention before Ampere") {
  Request r = request_for("llama-2-7b", "4xV100-SXM2-32GB", {Method::lora});
  r.target = "axolotl";
  CHECK(written_yaml(r).find("\nattn_implementation: sdpa\n") != std::string::npos);
  CHECK(written_yaml(axolotl_request(Method::lora, "dp=8,zero=0"))
            .find("\nattn_implementation: flash_attention_2\n") != std::string::npos);
}

// Without this key experts stay in 16 bits, which the forecast has in 4.
TEST_CASE("axolotl is told to quantise experts") {
  Request r = request_for("mixtral-8x7b", "8xA100-80GB", {Method::qlora});
  r.target = "axolotl";
  const std::string yaml = written_yaml(r);
  CHECK(yaml.find("\nquantize_moe_experts: true\n") != std::string::npos);
  // check_quantize_moe_experts refuses the key that stands for all linears: they are listed.
  CHECK(yaml.find("lora_target_linear") == std::string::npos);
  for (const char* linear : {"q_proj", "k_proj", "v_proj", "o_proj"})
    CHECK(yaml.find(linear) != std::string::npos);
  CHECK(written_yaml(axolotl_request(Method::qlora, "dp=8,zero=0")).find("quantize_moe") ==
        std::string::npos);
}

// The same check: "requires CUDA".
TEST_CASE("axolotl quantises no experts on ROCm") {
  Request r = request_for("mixtral-8x7b", "8xMI300X", {Method::qlora});
  r.target = "axolotl";
  r.plans = {"dp=8,zero=3"};
  const auto a = launch_answer(r, known_facts());
  REQUIRE_FALSE(a);
  CHECK(a.error().front().what.find("on CUDA only") != std::string::npos);
}

}  // namespace shardwise
