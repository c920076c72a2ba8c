// Latent attention as published runs tell it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catalog/load.hpp"
#include "catalog/partial_model.hpp"
#include "catalog/run_record.hpp"
#include "tests/catalog/sized_partial.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

Result<Runs> runs_of(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("shardwise-latent-test-" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << text;
  auto runs = load_runs(path);
  std::filesystem::remove(path);
  return runs;
}

Result<Transformer> model_of(const PartialModel& partial) {
  static const std::vector<Transformer> known =
      *load_models(std::filesystem::path(source_dir()) / "catalog");
  return complete(partial, known);
}

Transformer latent_model(const PartialModel& partial) {
  const auto model = model_of(partial);
  REQUIRE(model);
  return *model;
}

}  // namespace

TEST_CASE("Latent attention that lacks a width is a problem of its record") {
  const auto runs = runs_of(R"([
    {"id": "whole", "model": {"name": "M", "mla": {"kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128}}},
    {"id": "half", "model": {"name": "M", "mla": {"kv_lora_rank": 512, "v_head_dim": 128}}},
    {"id": "none", "model": {"name": "M", "mla": {"kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 0}}}])");
  REQUIRE(runs);
  REQUIRE(runs->problems.size() == 2);
  CHECK_FALSE(runs->records[0].malformed);
  REQUIRE(runs->records[0].model.mla);
  CHECK_FALSE(runs->records[0].model.mla->q_lora_rank);
  REQUIRE(runs->records[1].malformed);
  const std::string& half = *runs->records[1].malformed;
  CHECK(half.find("/1/model/mla") != std::string::npos);
  CHECK(half.find("qk_nope_head_dim") != std::string::npos);
  CHECK(half.find("a whole number from 1") != std::string::npos);
  REQUIRE(runs->records[2].malformed);
  CHECK(runs->records[2].malformed->find("v_head_dim") != std::string::npos);
}

// 128 + 64 of a query's head: of a model of one's own and in the place of Llama's grouped heads,
// whose published size it then has no longer.
TEST_CASE("latent attention that is told sets the width of heads") {
  PartialModel own = sized_partial("nobodys", 2, 1024);
  own.heads = 16;
  own.mla = LatentAttention{std::nullopt, 512, 128, 64, 128};
  const Transformer m = latent_model(own);
  REQUIRE(m.mla);
  CHECK(m.head_dim == 192);
  CHECK(m.kv_heads == 16);
  PartialModel variant = sized_partial("llama-3.1-8b", 32, 4096);
  variant.mla = own.mla;
  CHECK(latent_model(variant).head_dim == 192);
  CHECK(latent_model(variant).kv_heads == 32);
  CHECK_FALSE(latent_model(variant).published);
  own.head_dim = 192;
  CHECK(latent_model(own).head_dim == 192);
  own.head_dim = 128;
  const auto refused = model_of(own);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().what.find("head_dim: expected 192") != std::string::npos);
}

}  // namespace shardwise
