// Rows of catalog/frameworks that are like another: what they state, and what they have from it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "catalog/framework.hpp"
#include "catalog/load.hpp"
#include "tests/catalog/framework_rows.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

// The catalog's megatron-deepspeed-2022, with a row of so many members more beside it.
Result<std::vector<Framework>> with_row(const std::string& members) {
  const fs::path root =
      fs::temp_directory_path() / ("shardwise-like-" + std::to_string(::getpid()));
  fs::create_directories(root / "frameworks");
  const fs::path base = "frameworks/megatron-deepspeed-2022.json";
  fs::copy_file(fs::path(source_dir()) / "catalog" / base, root / base,
                fs::copy_options::overwrite_existing);
  std::ofstream(root / "frameworks/made.json")
      << R"({"id": "made", "name": "Made", "match": ["made"], "source": "nowhere",
             "date": "2026-11-29", )"
      << members << "}";
  auto loaded = load_frameworks(root);
  fs::remove_all(root);
  return loaded;
}

const std::string* source_of(const Framework& f, const std::string& field) {
  for (const FieldSource& one : f.provenance.fields)
    if (one.field == field) return &one.source;
  return nullptr;
}

std::string refused_like(const std::string& members) {
  const auto loaded = with_row(members);
  REQUIRE_FALSE(loaded);
  return loaded.error().front().where + ": " + loaded.error().front().what;
}

}  // namespace

// The base has 8 slices of loss and vocabularies in multiples of 128, with sources for some fields;
// its names, release and "family" are its own.
TEST_CASE("A row that is like another states what it has otherwise") {
  const auto loaded = with_row(R"("like": "megatron-deepspeed-2022", "loss_chunks": 3,
      "cpu_adam": false, "field_sources": {"loss_chunks": "page 3"})");
  REQUIRE(loaded);
  REQUIRE(loaded->size() == 2);
  const Framework &made = loaded->front(), &base = loaded->back();
  REQUIRE(made.id == "made");
  CHECK(made.loss.chunks == 3);
  CHECK_FALSE(made.update.cpu_adam);
  CHECK(base.update.cpu_adam);
  CHECK(made.parallel.vocabulary_multiple == base.parallel.vocabulary_multiple);
  CHECK(made.supports.schedules == base.supports.schedules);
  CHECK(made.sharding.parameters.gathered_layers_forward ==
        base.sharding.parameters.gathered_layers_forward);
  CHECK(made.match == std::vector<std::string>{"made"});
  CHECK(made.family == "made");
  CHECK(made.version.empty());
  CHECK(made.provenance.source == "nowhere");
  // Where a field was read goes with the field.
  REQUIRE(source_of(made, "loss_chunks") != nullptr);
  CHECK(*source_of(made, "loss_chunks") == "page 3");
  REQUIRE(source_of(base, "cpu_adam") != nullptr);
  CHECK(source_of(made, "cpu_adam") == nullptr);
  REQUIRE(source_of(made, "world_groups") != nullptr);
  CHECK(*source_of(made, "world_groups") == *source_of(base, "world_groups"));
}

TEST_CASE("A row is like one that is there and stands for itself") {
  const std::string at = "frameworks/made.json:/like: ";
  CHECK(refused_like(R"("like": "nobody")") ==
        at + "expected the id of another framework, found \"nobody\"");
  CHECK(refused_like(R"("like": 3)") == at + "expected the id of another framework, found 3");
  CHECK(refused_like(R"("like": "made")") ==
        at + "expected a framework whose row is like no other, found \"made\"");
  const std::string base = R"("like": "megatron-deepspeed-2022", "loss_chunks": )";
  CHECK(refused_like(base + "3").starts_with(at + "expected field_sources of what"));
  // What is wrong with a member is told where the row would have it.
  CHECK(refused_like(base + R"(0, "field_sources": {})")
            .starts_with("frameworks/made.json:/loss_chunks: "));
}

// The loss of DeepSpeedExamples differs from that of later forks, and nothing else.
TEST_CASE("Megatron-LM of DeepSpeedExamples is Megatron-DeepSpeed but for its loss") {
  const Framework &examples = row_of("megatron-deepspeed-2020"),
                  &later = row_of("megatron-deepspeed-2022");
  CHECK(examples.loss.returns_fp32_logits);
  CHECK_FALSE(later.loss.returns_fp32_logits);
  CHECK(examples.loss.fp32_temporaries == later.loss.fp32_temporaries + 1);
  CHECK(examples.loss.kind == later.loss.kind);
  CHECK(examples.gradients.bucket == later.gradients.bucket);
  CHECK(examples.process.world_groups == later.process.world_groups);
}

}  // namespace shardwise
