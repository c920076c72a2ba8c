#include "catalog/find.hpp"

#include <string>

#include "catalog/json_document.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/catch.hpp"

using namespace shardwise;

namespace {

std::string gpu_id(const char* name) {
  const auto found = find_gpu(loaded_catalog(), name);
  return found ? (*found)->id : "none";
}

}  // namespace

TEST_CASE("names: case, spaces, underscores and hyphens do not matter") {
  CHECK(normalised("  RTX_4090 ") == "rtx-4090");
  CHECK(normalised("- -") == "");
  CHECK(squeezed("RTX 4090-D") == "rtx4090d");
  CHECK(same_name("RTX 4090", "rtx4090"));
  CHECK(same_name("", "--"));
  CHECK_FALSE(same_name("rtx-4090", "rtx-4090-d"));
  CHECK_FALSE(same_name("rtx-4090", "rtx-409"));
  CHECK_FALSE(same_name("llama-3.1", "llama-31"));  // a point is part of a name
}

TEST_CASE("suggestions are near, nearest first, three at most") {
  const std::vector<std::string_view> names{"h100", "h200", "h20", "a100", "gaudi-2"};
  CHECK(suggest("h10O", names).front() == "h100");
  CHECK(suggest("h010", names).front() == "h100");  // two neighbours swapped are one edit
  CHECK(suggest("gaudi", names) == std::vector<std::string>{"gaudi-2"});
  CHECK(suggest("hf", {"hft", "hf-trainer", "ashf-2"}) ==
        std::vector<std::string>{"hft", "hf-trainer"});  // two letters: a first word, or one edit
  CHECK(suggest("zzzzzz", names).empty());
  CHECK(suggest("", names).empty());
  CHECK(suggest(std::string(100'000, 'h'), names).empty());
  CHECK(suggest("h1", {"h11", "h12", "h13", "h14"}).size() == 3);
  CHECK(did_you_mean("h10O", {"h100"}) == "did you mean h100?");
  CHECK(did_you_mean("h1", {"h11", "h12", "h13"}) == "did you mean h11, h12 or h13?");
  CHECK(did_you_mean("zzz", {"h100"}).empty());
}

TEST_CASE("GPUs by what people type") {
  struct Row {
    const char* typed;
    const char* id;
  };
  for (const Row& row : {
           Row{"4090", "rtx-4090"},
           Row{"rtx4090", "rtx-4090"},
           Row{"RTX 4090", "rtx-4090"},
           Row{"rtx-4090-24gb", "rtx-4090"},
           Row{"4090-24GB", "rtx-4090"},
           Row{"GeForce RTX 4090", "rtx-4090"},
           Row{"NVIDIA GeForce RTX 4090", "rtx-4090"},
           Row{"4090-48gb", "rtx-4090-48gb"},
           Row{"3090", "rtx-3090"},
           Row{"3090ti", "rtx-3090-ti"},
           Row{"4070ti-super", "rtx-4070-ti-super"},
           Row{"a6000", "rtx-a6000"},
           Row{"h100", "h100-sxm5-80gb"},
           Row{"h100-sxm", "h100-sxm5-80gb"},
           Row{"H100-80GB-HBM3", "h100-sxm5-80gb"},
           Row{"NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"},
           Row{"NVIDIA H100 PCIe", "h100-pcie-80gb"},
           Row{"a100", "a100-sxm4-80gb"},
           Row{"a100-80gb", "a100-sxm4-80gb"},
           Row{"a100-40gb", "a100-sxm4-40gb"},
           Row{"NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"},
           Row{"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
           Row{"Tesla T4", "t4"},
           Row{"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
           Row{"AMD Instinct MI300X", "mi300x"},
           Row{"gb200", "gb200"},
       }) {
    INFO(row.typed);
    CHECK(gpu_id(row.typed) == row.id);
  }
}

TEST_CASE("GPUs by the names that published runs use") {
  struct Row {
    const char* typed;
    const char* id;
  };
  for (const Row& row : {
           Row{"A100", "a100-sxm4-80gb"},
           Row{"A100 (DGX-A100)", "a100-sxm4-80gb"},
           Row{"A100-40GB (DGX A100)", "a100-sxm4-40gb"},
           Row{"A100-80GB (Azure NDm A100 v4)", "a100-sxm4-80gb"},
           Row{"A100-SXM-80GB", "a100-sxm4-80gb"},
           Row{"A100-SXM4-80GB", "a100-sxm4-80gb"},
           Row{"A10G-24GB", "a10g"},
           Row{"A6000-48GB", "rtx-a6000"},
           Row{"A800", "a800-sxm4-80gb"},
           Row{"A800-80GB", "a800-sxm4-80gb"},
           Row{"A800-SXM4-80GB", "a800-sxm4-80gb"},
           Row{"B200", "b200"},
           Row{"B200 (power limited)", "b200"},
           Row{"B300", "b300"},
           Row{"GB200", "gb200"},
           Row{"GB300", "gb300"},
           Row{"H100-80GB", "h100-sxm5-80gb"},
           Row{"H100-SXM-80GB", "h100-sxm5-80gb"},
           Row{"H100-SXM-95GB-HBM2e-lowTDP", "h100-sxm5-96gb-hbm2e"},
           Row{"H100-SXM-96GB-HBM2e-500W", "h100-sxm5-96gb-hbm2e"},
           Row{"H20", "h20"},
           Row{"H200-SXM-141GB", "h200-sxm-141gb"},
           Row{"H800-80GB", "h800-sxm5-80gb"},
           Row{"L40S-48GB", "l40s"},
           Row{"MI325X", "mi325x"},
           Row{"MI355X", "mi355x"},
           Row{"RTX-3090-24GB", "rtx-3090"},
           Row{"RTX-4070Ti-SUPER-16GB", "rtx-4070-ti-super"},
           Row{"RTX-4090-24GB", "rtx-4090"},
           Row{"RTX-6000-Ada-48GB", "rtx-6000-ada"},
           Row{"RTX-A5000-24GB", "rtx-a5000"},
           Row{"RTX-A6000", "rtx-a6000"},
           Row{"RTX-A6000-48GB", "rtx-a6000"},
           Row{"T4-16GB", "t4"},
           Row{"TITAN-RTX-24GB", "titan-rtx"},
           Row{"V100 (DGX-2)", "v100-sxm2-32gb"},
           Row{"V100-16GB", "v100-sxm2-16gb"},
           Row{"V100-SXM2-16GB", "v100-sxm2-16gb"},
       }) {
    INFO(row.typed);
    CHECK(gpu_id(row.typed) == row.id);
  }
}

// The sizes on both sides of the one that was asked for, one where there is none beyond, and
// nothing where no size stands for a model.
TEST_CASE("a size that no model has is told the nearest there are") {
  Catalog few;
  few.models.emplace_back().id = "tiny";
  const auto told = [&](const char* name) { return find_model(few, name).error().front().what; };
  CHECK(told("9b").find("did you mean") == std::string::npos);
  few.model_aliases = {{"7b", "tiny"}, {"13b", "tiny"}};
  CHECK(told("9b").find("did you mean 7b or 13b?") != std::string::npos);
  CHECK(told("99b").find("did you mean 13b?") != std::string::npos);
  CHECK(told("0.5b").find("did you mean 7b?") != std::string::npos);
}

TEST_CASE("a memory size that the card does not have is not that card") {
  CHECK(gpu_id("rtx-3090-48gb") == "none");
  CHECK(gpu_id("l40s-24gb") == "none");
  CHECK(gpu_id("24gb") == "none");
  CHECK(gpu_id("not stated") == "none");
  CHECK(gpu_id("48GB GPU (model not stated)") == "none");
}

TEST_CASE("an unknown name is one problem with suggestions") {
  const auto gpu = find_gpu(loaded_catalog(), "rtx-4900");
  REQUIRE_FALSE(gpu);
  REQUIRE(gpu.error().size() == 1);
  CHECK(gpu.error()[0].kind == ProblemKind::request);
  CHECK(gpu.error()[0].what.find("unknown GPU \"rtx-4900\"; did you mean rtx-4090") == 0);
  const auto odd = find_network(loaded_catalog(), "\x1B[2J\xFF");
  REQUIRE_FALSE(odd);
  CHECK(odd.error()[0].what ==
        "unknown network \"\\x1B[2J\\xFF\"; `shardwise catalog list "
        "networks` names them");
  CHECK_FALSE(find_node(loaded_catalog(), ""));
  CHECK_FALSE(find_model(loaded_catalog(), "no-such-model-at-all"));
  CHECK_FALSE(find_framework(loaded_catalog(), "no-such-framework"));
}

TEST_CASE("a misspelt framework is refused, and its neighbours are named") {
  const Catalog& c = loaded_catalog();
  const auto id = [&](const char* name) {
    const auto found = find_framework(c, name);
    return found ? (*found)->id : std::string();
  };
  CHECK(id("Megatron-LM") == "megatron-lm");
  CHECK(id("megatron") == "megatron-lm");
  CHECK(id("megatron core 0.8") == "megatron-lm");
  CHECK(id("trl==0.9.6") == "trl");
  CHECK(id("TorchTitan v0.1") == "torchtitan");
  CHECK(id("hf trainer") == "hf-trainer");
  CHECK(id("transformers==5.23.0") == "hf-trainer");
  CHECK(id("transformers==4.57.6") == "hf-trainer-4");
  // Each holds a word that is known, and none is a framework.
  for (const char* wrong : {"megatronn", "megatron-deepspeeed", "my-trl", "deepspeedy", "nemotron",
                            "internlm2.5-7b", "transformers-xl"}) {
    INFO(wrong);
    CHECK_FALSE(find_framework(c, wrong));
  }
  CHECK(find_framework(c, "megatronn")
            .error()[0]
            .what.find("unknown framework \"megatronn\"; did you mean megatron") == 0);
  // What a run record says is free text.
  const Framework* recorded = framework_meant(c.frameworks, "Megatron-LM (Megatron Core) 0.8", "");
  REQUIRE(recorded != nullptr);
  CHECK(recorded->id == "megatron-lm");
}

TEST_CASE("every id and alias finds its own entry") {
  const Catalog& c = loaded_catalog();
  for (const Gpu& g : c.gpus) {
    CHECK(gpu_id(g.id.c_str()) == g.id);
    for (const std::string& alias : g.aliases) CHECK(gpu_id(alias.c_str()) == g.id);
  }
  for (const Node& n : c.nodes) {
    INFO(n.id);
    const auto found = find_node(c, n.id);
    REQUIRE(found);
    CHECK((*found)->id == n.id);
  }
  for (const Network& n : c.networks) {
    const auto found = find_network(c, n.id);
    REQUIRE(found);
    CHECK((*found)->id == n.id);
  }
  for (const Framework& f : c.frameworks) {
    const auto found = find_framework(c, f.id);
    REQUIRE(found);
    CHECK((*found)->id == f.id);
    for (const std::string& word : f.match) CHECK(find_framework(c, word));
  }
}

// Its row says why, and which one to ask for; names that only begin alike are not meant.
TEST_CASE("frameworks that no row describes are refused with the reason") {
  const auto why = [](const char* name) {
    const auto found = find_framework(loaded_catalog(), name);
    return found ? "is " + (*found)->id : found.error().front().what;
  };
  CHECK(why("MindSpeed").find("Ascend") != std::string::npos);
  CHECK(why("maxtext").find("the row that resembles it most is torchtitan") != std::string::npos);
  CHECK(why("mlx-lm").find("Apple") != std::string::npos);
  CHECK(why("jaxon").find("unknown framework") != std::string::npos);
  for (const char* name : {"veomni", "areal", "lmflow", "oumi"})
    CHECK(why(name) == "is " + std::string(name));
  const auto document =
      parse_json_file(loaded_catalog().root / "unsupported_frameworks.json", "list");
  REQUIRE(document);
  Problems problems;
  JsonReader file(*document, problems);
  JsonReader rows = file.object("frameworks");
  file.provenance();
  file.finish();
  for (const std::string& name : rows.keys()) {
    INFO(name);
    JsonReader row = rows.object(name);
    CHECK_FALSE(row.text("reason").empty());
    CHECK(find_framework(loaded_catalog(), row.text("nearest")));
    CHECK(why(name.c_str()).find("is not supported") != std::string::npos);
    row.finish();
  }
  CHECK(problems.empty());
}

TEST_CASE("models of refused architectures are refused by name, with the reason") {
  const auto why = [](const char* name) {
    const auto found = find_model(loaded_catalog(), name);
    return found ? "is " + (*found)->id : found.error().front().what;
  };
  CHECK(why("google/gemma-3n-E4B-it") == "is gemma-3n-e4b");
  CHECK(why("jamba-1.5-mini") == "is jamba-v0.1");
  CHECK(why("minimax-m1") == "is minimax-text-01");
  CHECK(why("kimi-k3").find("attention residuals") != std::string::npos);
  // Without its row, the name would lose its version and be DeepSeek-V3's.
  CHECK(why("deepseek-v4").find("compressed keys") != std::string::npos);
  CHECK(why("deepseek-v3.1") == "is deepseek-v3");
  CHECK(why("gemma-3-4b-it") == "is gemma-3-4b");
}
