#include "planner/request/calibrated_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "catalog/find.hpp"
#include "catalog/load_asked.hpp"
#include "planner/answers/fit_answer.hpp"
#include "planner/launch/launch_target.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/request/usual_framework.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {
namespace {

Facts facts_for(const std::string& gpus, std::optional<PeerAccess> said) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "shardwise-l40s-without-peers.json";
  std::ofstream(file) << R"({"name": "l40s-without-peers", "device": "l40s",
    "peer_over_pcie": "no", "trust": "measured", "source": "a test", "date": "2026-11-01",
    "facts": {}, "samples": 10, "discarded": 0,
    "constants": {"links.shm": {"value": 0.5, "low": 0.4, "high": 0.6, "points": 10}},
    "fits": []})";
  Request r;
  r.model = "gpt2";
  r.gpus = gpus;
  r.profile = file.string();
  r.peer_access = said;
  auto facts = calibrated_facts(source_dir() + "/catalog", r, ModelsAsked::one);
  std::filesystem::remove(file);
  REQUIRE(facts);
  return *std::move(facts);
}

PeerAccess of_l40s(const Facts& facts) {
  return (**find_gpu(facts.catalog, "l40s")).peer_over_pcie;
}

bool tells_of_peers(const Facts& facts) {
  const auto& fields = facts.profile.provenance.fields;
  return std::any_of(fields.begin(), fields.end(), [](const FieldSource& f) {
    return f.field == "--profile" && f.source.find("without peer access") != std::string::npos;
  });
}

}  // namespace

// An L40S usually has peer access over PCIe; the machine that this profile was measured on had not.
TEST_CASE("a profile that is named brings the peer access of its machine") {
  const Facts taken = facts_for("8xL40S", std::nullopt);
  CHECK(of_l40s(taken) == PeerAccess::no);
  CHECK(tells_of_peers(taken));
  CHECK(taken.profile.links.host.shm == Approx(0.5));
  // What the question says of its machine goes before, and the constants serve all the same.
  const Facts said = facts_for("8xL40S", PeerAccess::yes);
  CHECK(of_l40s(said) == PeerAccess::yes);
  CHECK_FALSE(tells_of_peers(said));
  CHECK(said.profile.links.host.shm == Approx(0.5));
  CHECK_FALSE(tells_of_peers(facts_for("2xRTX-4090", std::nullopt)));
}

// A question that names no framework reads the rows that its answer may come to, and finds each as
// the whole catalog has it: under the same id, in the same words.
TEST_CASE("the frameworks that are read of a question without one are those of the catalog") {
  const std::filesystem::path root = source_dir() + "/catalog";
  const auto whole = load_catalog(root);
  REQUIRE(whole);
  Request r;
  r.model = "gpt2";
  const auto some = calibrated_facts(root, r, ModelsAsked::one);
  REQUIRE(some);
  CHECK(some->catalog.frameworks.size() < whole->frameworks.size() / 2);
  for (const std::string& id : frameworks_unnamed()) {
    INFO(id);
    const auto here = find_framework(some->catalog, id), there = find_framework(*whole, id);
    REQUIRE((here && there));
    CHECK((**here).id == id);
    CHECK((**there).id == id);
    CHECK((**here).name == (**there).name);
    if ((**there).with_zero.empty()) continue;
    CHECK(find_framework(some->catalog, (**there).with_zero));
  }
  // Whoever names a framework in code finds it: the usual, the leanest, those to be launched.
  for (const Method method :
       {Method::pretrain, Method::full, Method::lora, Method::dora, Method::qlora}) {
    std::vector<std::string_view> named_in_code{usual_framework(method, 1),
                                                usual_framework(method, 8),
                                                leanest_on_one_gpu(method), offloads_most};
    for (const LaunchTarget& target : launch_targets())
      for (const int zero_stage : {0, 1, 2, 3})
        named_in_code.push_back(target.framework(method, zero_stage));
    for (const std::string_view id : named_in_code) {
      INFO(id);
      CHECK((id.empty() || find_framework(some->catalog, id)));
    }
  }
  const auto many = calibrated_facts(root, Request{}, ModelsAsked::many);
  REQUIRE(many);
  CHECK(many->catalog.frameworks.size() == whole->frameworks.size());
}

// One that names a framework by its id, however it is spelled, reads that row and its engine
// besides: nanotron and nanotron-zero1 are none of those that an answer comes to unasked. Any other
// name may be of any row, and is looked for in all of them.
TEST_CASE("the framework that is read of a question which names its id is the catalog's") {
  const std::filesystem::path root = source_dir() + "/catalog";
  const auto whole = load_catalog(root);
  REQUIRE(whole);
  for (const Framework& f : whole->frameworks) {
    INFO(f.id);
    const auto meant = find_framework(*whole, f.id);
    REQUIRE(meant);
    CHECK((**meant).id == f.id);
    CHECK(find_framework_file(root, f.id) == f.id);
  }
  Request r;
  r.model = "gpt2";
  const std::size_t unnamed =
      calibrated_facts(root, r, ModelsAsked::one)->catalog.frameworks.size();
  for (const char* spelled : {"nanotron", "Nanotron"}) {
    r.framework = spelled;
    const auto named = calibrated_facts(root, r, ModelsAsked::one);
    REQUIRE(named);
    CHECK(named->catalog.frameworks.size() == unnamed + 2);
    CHECK((**find_framework(named->catalog, spelled)).id == "nanotron");
  }
  for (const char* spelled : {"Hugging Face Trainer / Accelerate (DDP)", "nanotrn"}) {
    INFO(spelled);
    CHECK_FALSE(find_framework_file(root, spelled));
    r.framework = spelled;
    const auto named = calibrated_facts(root, r, ModelsAsked::one);
    REQUIRE(named);
    CHECK(named->catalog.frameworks.size() == whole->frameworks.size());
  }
}

// An answer may do without a row that is read because it might need it.
TEST_CASE("frameworks without a file are left out of what a question reads") {
  const auto rows = load_named_frameworks(source_dir() + "/catalog", {"no-such-row", "trl"});
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().id == "trl");
}

// LoRA and QLoRA on one GPU are forecast in trl, full fine-tuning in hf-trainer, which changes to
// accelerate-fsdp with ZeRO; Unsloth and torchtune-low-memory are only advised.
TEST_CASE("a trimmed catalog answers what its rows can") {
  Request r;
  r.model = "llama-3.1-8b";
  r.gpus = "1xRTX-4090";
  auto facts = calibrated_facts(source_dir() + "/catalog", r, ModelsAsked::one);
  REQUIRE(facts);
  const auto trim = [&](std::string_view id) {
    std::erase_if(facts->catalog.frameworks, [&](const Framework& f) { return f.id == id; });
  };
  const auto advised = [&](std::string_view framework) {
    const auto resolved = resolve(r, *facts, UnnamedMethods::fine_tuning);
    REQUIRE(resolved);
    bool found = false;
    for (const FitAnswer& one : fit_answers(*resolved).answers)
      for (const Advice& advice : one.advice)
        found = found || advice.change.find(framework) != std::string::npos;
    return found;
  };
  r.methods = {Method::full};
  REQUIRE(advised("--framework torchtune-low-memory"));
  trim("torchtune-low-memory");
  CHECK_FALSE(advised("torchtune-low-memory"));
  // Methods that nobody named are left out, and it is said why; one that was asked for is refused.
  trim("trl");
  r.methods.clear();
  const auto some = resolve(r, *facts, UnnamedMethods::fine_tuning);
  REQUIRE(some);
  CHECK(some->methods == std::vector{Method::full});
  CHECK(std::count_if(some->notes.begin(), some->notes.end(), [](const std::string& note) {
          return note.find("frameworks/trl.json is not in the catalog") != std::string::npos;
        }) == 2);
  r.methods = {Method::lora};
  const auto none = resolve(r, *facts, UnnamedMethods::fine_tuning);
  REQUIRE_FALSE(none);
  CHECK(none.error().front().kind == ProblemKind::file);
  CHECK(none.error().front().where == "frameworks/trl.json");
  // So is the engine of a row that is there.
  trim("accelerate-fsdp");
  CHECK(lacking_file(facts->catalog, "hf-trainer") == "frameworks/accelerate-fsdp.json");
  CHECK_FALSE(lacking_file(facts->catalog, "pytorch-fsdp2"));
}

}  // namespace shardwise
