#include "planner/request/request_field.hpp"

#include <set>

#include "planner/figures.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

// A value of the field's kind that it must accept.
FieldValue sample_value(const RequestField& field) {
  const auto choice = [&]() -> std::string {
    return field.choices == nullptr ? "some-name" : std::string(field.choices().back());
  };
  switch (field.kind) {
    case FieldKind::text:
      return choice();
    case FieldKind::texts:
      return std::vector<std::string>{choice()};
    case FieldKind::integer:
      return field.low + 6;
    case FieldKind::number:
      return (static_cast<double>(field.low) + 125) / 1000;  // below every field's most
    case FieldKind::size:
      return Bytes(field.low + 12345);
    case FieldKind::flag:
      return true;
  }
  return {};
}

void holds_all(const std::string& text, const std::vector<std::string>& parts) {
  INFO(text);
  for (const std::string& part : parts) CHECK(text.find(part) != std::string::npos);
}

Problems set(Request& r, const char* key, const std::vector<std::string>& texts) {
  return set_from_flag(*request_field(key), texts, r);
}

}  // namespace

TEST_CASE("every field has a key, a flag and a help text of its own, and keeps what is set") {
  std::set<std::string_view> keys, flags;
  for (const RequestField& field : request_fields()) {
    INFO(std::string(field.key));
    CHECK(keys.insert(field.key).second);
    CHECK(flags.insert(field.flag).second);
    CHECK_FALSE(field.help.empty());
    Request r;
    const FieldValue before = field.get(r);
    const FieldValue value = sample_value(field);
    CHECK(field_problems(field, value, "here").empty());
    field.set(r, value);
    CHECK((field.get(r) == value));
    CHECK_FALSE((field.get(r) == before));
  }
}

TEST_CASE("flags are read into the request") {
  Request r;
  CHECK(set(r, "sequence", {"4096"}).empty());
  CHECK(r.sequence == 4096);
  CHECK(set(r, "method", {"lora,qlora", "lora"}).empty());
  CHECK((r.methods == std::vector<Method>{Method::lora, Method::qlora}));  // each once, in order
  CHECK(set(r, "host_ram_gib", {"128GB"}).empty());
  CHECK(r.host_ram == Bytes(128'000'000'000));
  CHECK(set(r, "power_limit_w", {"280"}).empty());
  CHECK(r.power_limit_w == 280);
  CHECK(set(r, "used_memory_gib", {"1.5GiB"}).empty());
  CHECK(r.used_memory == Bytes(std::int64_t{3} << 29));
  CHECK(set(r, "pcie_lanes", {"4"}).empty());
  CHECK(r.pcie_lanes == 4);
  for (const char* step : {"0.5", "0.5s", "0.5 s/it", "500ms", "2it/s", "2 it/s"}) {
    CHECK(set(r, "measured_step_s", {step}).empty());
    CHECK(r.measured_step_s == 0.5);
  }
  for (const char* step : {"0", "-1", "s", "fast", "3.2s/step", "nan"})
    CHECK_FALSE(set(r, "measured_step_s", {step}).empty());
  CHECK(set(r, "network_share", {"0.5"}).empty());
  CHECK(r.network_share == 0.5);
  CHECK(set(r, "peer_access", {"No"}).empty());
  CHECK(r.peer_access == PeerAccess::no);
  CHECK(set(r, "peer_access", {"yes"}).empty());
  CHECK(r.peer_access == PeerAccess::yes);
  CHECK(set(r, "offload", {"params+optimizer"}).empty());
  CHECK((r.offload->parameters && r.offload->optimizer && !r.offload->activations));
  CHECK(set(r, "optimizer", {"adamw8bit"}).empty());
  CHECK(r.optimizer == optimizer_named("adamw8bit"));
  for (const auto& [text, name] :
       {std::pair{"adamw_torch", "adamw"}, std::pair{"adamw_torch_fused", "adamw"},
        std::pair{"adam", "adamw"}, std::pair{"adamw_bnb_8bit", "adamw8bit"},
        std::pair{"paged_adamw_32bit", "paged-adamw"},
        std::pair{"paged_adamw_8bit", "paged-adamw8bit"}}) {
    INFO(text);
    CHECK(set(r, "optimizer", {text}).empty());
    CHECK(r.optimizer == optimizer_named(name));
  }
  for (const OptimizerSpelling& other : optimizer_spellings)
    CHECK(optimizer_named(other.name) != nullptr);
  CHECK(set(r, "plans", {"dp=8,zero=3", "tp=8"}).empty());
  CHECK(r.plans == std::vector<std::string>{"dp=8,zero=3", "tp=8"});
}

// A length of 128k is 128 x 1,024 tokens, as models are named; an amount of 10k is ten thousand.
TEST_CASE("letters behind numbers and names in any case are read as people mean them") {
  Request r;
  for (const auto& [words, tokens] :
       {std::pair{"4k", 4096}, std::pair{"128K", 131'072}, std::pair{"4,096", 4096},
        std::pair{"1m", 1'048'576}, std::pair{"0.5k", 512}}) {
    CHECK(set(r, "sequence", {words}).empty());
    CHECK(r.sequence == tokens);
  }
  CHECK(set(r, "samples", {"10k"}).empty());
  CHECK(r.samples == 10'000);
  CHECK(set(r, "tokens", {"15B"}).empty());
  CHECK(r.tokens == 15'000'000'000);
  CHECK(set(r, "tokens", {"1.5T"}).empty());
  CHECK(r.tokens == 1'500'000'000'000);
  CHECK(set(r, "host_ram_gib", {"64G"}).empty());
  CHECK(r.host_ram == Bytes(std::int64_t{64} << 30));
  CHECK(set(r, "method", {"QLoRA,Full"}).empty());
  CHECK((r.methods == std::vector<Method>{Method::qlora, Method::full}));
  CHECK(set(r, "precision", {"BF16"}).empty());
  CHECK(r.precision == DType::bf16);
}

TEST_CASE("a share may be said in hundredths") {
  Request r;
  CHECK(set(r, "max_memory", {"90%"}).empty());
  CHECK(r.max_memory == 0.9);
  CHECK(set(r, "max_memory", {"0.8"}).empty());
  CHECK(r.max_memory == 0.8);
  CHECK(set(r, "max_memory", {"ninety%"}).size() == 1);
  CHECK(set(r, "max_memory", {"101%"}).size() == 1);  // of a card there is no more than all
}

TEST_CASE("a model may be said in several words") {
  Request r;
  CHECK(set(r, "model", {"llama", "3.1", "8b"}).empty());
  CHECK(r.model == "llama 3.1 8b");
}

TEST_CASE("a wrong flag is one problem that names the flag, the value and a near name") {
  Request r;
  const auto only = [&](const char* key, const std::vector<std::string>& texts) {
    const Problems problems = set(r, key, texts);
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().kind == ProblemKind::request);
    CHECK(problems.front().where == request_field(key)->flag);
    return problems.front().what;
  };
  holds_all(only("method", {"qlroa"}), {"qlroa", "did you mean qlora?"});
  holds_all(only("optimizer", {"adamw9"}), {"did you mean adamw"});
  holds_all(only("sequence", {"-4"}), {"must be positive, found -4"});
  holds_all(only("sequence", {"40,96"}), {"whole number such as 4096 or 4k", "40,96"});
  holds_all(only("sequence", {"4q"}), {"whole number such as 4096 or 4k", "4q"});
  holds_all(only("sequence", {"0.3k"}), {"whole number", "0.3k"});  // 307.2
  holds_all(only("batch", {"4k"}), {"whole number, ", "4k"});       // of sequences nobody says so
  holds_all(only("sequence", {"1", "2"}), {"given 2 times"});
  holds_all(only("batch", {"1000001"}), {"1 to 1,000,000"});
  holds_all(only("host_ram_gib", {"64"}), {"with its unit", "64"});
  holds_all(only("host_ram_gib", {"512KiB"}), {"expected 1.0 MiB to", "found 0.5 MiB"});
  holds_all(only("used_memory_gib", {"-1GiB"}), {"must be positive, found -1.0 GiB"});
  holds_all(only("measured_step_s", {"0.5ms"}), {"0.001 to 1000000, found 0.0005"});
  holds_all(only("framework", {""}), {"is empty"});
  CHECK(r.methods.empty());  // what is wrong is not set
  CHECK_FALSE(r.sequence.has_value());
}

TEST_CASE("a field of one command belongs to that one, the others to all") {
  CHECK(request_field("sequence")->belongs_to("plan"));
  CHECK(request_field("sequence")->belongs_to("shop"));
  CHECK(request_field("top")->belongs_to("plan"));
  CHECK_FALSE(request_field("top")->belongs_to("shop"));
  // Of several commands each, and no word within another.
  CHECK(request_field("why_not")->belongs_to("compare"));
  CHECK_FALSE(request_field("why_not")->belongs_to("plan"));
  CHECK_FALSE(request_field("samples")->belongs_to("models"));
  CHECK_FALSE(request_field("reach")->belongs_to(""));
  CHECK(commands_asking(*request_field("explain")) == "fit, simulate or compare");
}

TEST_CASE("keys that nobody knows are no fields") {
  CHECK(request_field("sequence") != nullptr);
  CHECK(request_field("sequense") == nullptr);
}

}  // namespace shardwise
