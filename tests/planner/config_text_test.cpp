#include "planner/launch/config_text.hpp"

#include <algorithm>

#include "planner/launch/config_reader.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

ConfigEntries sorted(ConfigEntries entries) {
  std::sort(entries.begin(), entries.end(),
            [](const ConfigEntry& a, const ConfigEntry& b) { return a.path < b.path; });
  return entries;
}

// Everything that trips readers: words that YAML takes for flags or numbers, quotes, backslashes,
// numbers without a point, lists of lists.
ConfigEntries awkward() {
  ConfigEntries e;
  put(e, "plain", "FULL_SHARD");
  put(e, "yes_word", "yes");
  put(e, "off_word", "off");
  put(e, "number_word", "1e5");
  put(e, "empty", "");
  put(e, "path", "./a b/c: d # e");
  put(e, "quotes", "say \"hi\" \\ there\n\ttwo");
  put(e, "flag", true);
  put(e, "whole", 42);
  put(e, "negative", -1);
  put_number(e, "tiny", 2e-5);
  put_number(e, "one", 1.0);
  put(e, "deep.er.value", 3);
  put(e, "deep.er.other", "x.y");
  put(e, "list.0", "a");
  put(e, "list.1", "no");
  put(e, "parts.0.0", "layers.0");
  put(e, "parts.0.1", "layers.1");
  put(e, "parts.1.0", "norm");
  return e;
}

}  // namespace

TEST_CASE("what is written as JSON, YAML or TOML reads back as the same entries") {
  const ConfigEntries e = awkward();
  const auto json = read_config(ConfigSyntax::json, json_config(e), "a.json");
  REQUIRE(json);
  CHECK(*json == e);
  const auto yaml = read_config(ConfigSyntax::yaml, yaml_config(e, {"a heading", ""}), "a.yaml");
  REQUIRE(yaml);
  CHECK(*yaml == e);
  const auto toml = read_config(ConfigSyntax::toml, toml_config(e, {"a heading"}), "a.toml");
  REQUIRE(toml);
  CHECK(sorted(*toml) == sorted(e));  // its reader sorts the keys of a table
}

TEST_CASE("a list of mappings is YAML as people write it") {
  ConfigEntries e;
  put(e, "datasets.0.path", "one");
  put(e, "datasets.0.type", "chat");
  put(e, "datasets.1.path", "two");
  const std::string text = yaml_config(e, {});
  CHECK(text == "datasets:\n  - path: one\n    type: chat\n  - path: two\n");
  const auto back = read_config(ConfigSyntax::yaml, text, "a.yaml");
  REQUIRE(back);
  CHECK(*back == e);
}

TEST_CASE("arguments are read as a shell would split them") {
  const std::string script =
      "#!/bin/bash\n"
      "TP=8   # tensor ranks\n"
      "export PP=${PP:-4}\n"
      "ARGS=(\n"
      "  --tensor-model-parallel-size $TP\n"
      "  --pipeline-model-parallel-size ${PP}  # stages\n"
      "  --split 99,1,0\n"
      ")\n"
      "torchrun --nnodes 2 --nproc_per_node=8 pretrain_gpt.py ${ARGS[@]} \\\n"
      "  --bf16 --lr 6.0e-5 --data-path \"/my data/x\" --betas 0.9 0.95\n"
      "unrelated words --bf16 && echo done\n";
  const auto e = read_config(ConfigSyntax::arguments, script, "train.sh");
  REQUIRE(e);
  const auto value = [&](const char* path) {
    for (const ConfigEntry& entry : *e)
      if (entry.path == path) return config_text(entry.value);
    return std::string("absent");
  };
  CHECK(value("tensor-model-parallel-size") == "8");
  CHECK(value("pipeline-model-parallel-size") == "4");
  CHECK(value("nnodes") == "2");
  CHECK(value("nproc_per_node") == "8");
  CHECK(value("split") == "99,1,0");
  CHECK(value("bf16") == "true");
  CHECK(value("lr") == "6e-05");
  CHECK(value("data-path") == "/my data/x");
  CHECK(value("betas.1") == "0.95");
}

TEST_CASE("files that are broken are refused by name and place") {
  struct Case {
    ConfigSyntax syntax;
    const char *text, *what;
  };
  std::string deep_and_many = "a: " + std::string(33, '[') + '1' + std::string(33, ']') + "\nb: [1";
  for (int i = 0; i < 10'001; ++i) deep_and_many += ",1";
  deep_and_many += "]\n";
  std::string empty_lists = "l0: &l0 []\n";
  for (int i = 1; i <= 6; ++i) {
    const std::string before = "*l" + std::to_string(i - 1), name = "l" + std::to_string(i);
    empty_lists += name + ": &" + name + " [" + before;
    for (int k = 1; k < 10; ++k) empty_lists += "," + before;
    empty_lists += "]\n";
  }
  const std::vector<Case> cases{
      {ConfigSyntax::json, "{\"a\": 1", "line 1"},
      {ConfigSyntax::json, "[1]", "object"},
      {ConfigSyntax::json, "{\"a\": 1, \"a\": 2}", "a"},
      {ConfigSyntax::yaml, "a: [1\nb: 2", "line"},
      {ConfigSyntax::yaml, "just words", "mapping"},
      {ConfigSyntax::yaml, "a: 1\na: 2\n", "twice"},
      {ConfigSyntax::yaml, "a: &x [*x]\n", "deep"},
      // Twice in itself: 2^32 lists above the 33rd level, and not one value.
      {ConfigSyntax::yaml, "a: &x [*x, *x]\n", "32 levels deep"},
      // l6 alone is 10^6 empty lists.
      {ConfigSyntax::yaml, empty_lists.c_str(), "more than 320000 lists"},
      {ConfigSyntax::yaml,
       "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
       "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
       "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
       "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
       "more than"},
      // 33 levels, and 10,001 values behind them: the depth is what is told.
      {ConfigSyntax::yaml, deep_and_many.c_str(), "32 levels deep"},
      {ConfigSyntax::toml, "[a\nb = 1", "line 1"},
      {ConfigSyntax::toml, "a = 1\na = 2", "line 2"},
      {ConfigSyntax::arguments, "echo hello", "none"}};
  for (const Case& c : cases) {
    INFO(c.text);
    const auto e = read_config(c.syntax, c.text, "mine.cfg");
    REQUIRE_FALSE(e);
    CHECK(e.error().front().kind == ProblemKind::file);
    const std::string all = e.error().front().where + " " + e.error().front().what;
    CHECK(all.find("mine.cfg") != std::string::npos);
    CHECK(all.find(c.what) != std::string::npos);
    if (all.find(c.what) == std::string::npos) UNSCOPED_INFO(all);
  }
}

}  // namespace shardwise
