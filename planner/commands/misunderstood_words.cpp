#include "planner/commands/misunderstood_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "planner/request/request_field.hpp"
#include "planner/sentence.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>{}))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::string listed_commands(const CLI::App& app) {
  const std::vector<std::string> names = command_names(app);
  return listed(std::vector<std::string_view>(names.begin(), names.end()), " or ");
}

// Flags that people know from launch scripts ("--tp 8 --pp=2"), as --plan says them: "tp=8,pp=2".
// Empty where there are none.
std::string as_plan(int argc, char** argv) {
  std::string plan;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (!word.starts_with("--")) continue;
    word.erase(0, 2);
    if (word.find('=') == std::string::npos && i + 1 < argc) word += std::string("=") + argv[i + 1];
    if (word.find('=') == std::string::npos || !parse_plan(word)) continue;
    plan += (plan.empty() ? "" : ",") + word;
  }
  return plan;
}

// "--fused-loss=maybe": a flag is there or not, or is told so.
std::optional<std::string> flag_with_value(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string_view::npos) continue;
    const CLI::Option* option = app.get_option_no_throw(std::string(word.substr(0, equals)));
    if (option == nullptr || option->get_items_expected_max() > 0) continue;
    const std::string_view value = word.substr(equals + 1);
    if (value == "true" || value == "false") continue;
    return sentence(word.substr(0, equals), ": expected nothing behind it, true or false, found \"",
                    printable(value), '"');
  }
  return std::nullopt;
}

// A flag that other commands ask: it would change nothing in this one's answer.
std::optional<std::string> flag_of_others(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string flag = word.substr(0, word.find('='));
    for (const RequestField& field : request_fields())
      if (field.flag == flag && !field.belongs_to(app.get_name()) && flag.starts_with("--") &&
          app.get_option_no_throw(flag) == nullptr)
        return sentence(flag, ": changes nothing that ", app.get_name(), " answers; expected with ",
                        commands_asking(field));
  }
  return std::nullopt;
}

// A flag that the command does not know: the parser misses what it requires before it looks.
std::optional<std::string> unknown_flag(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string flag = word.substr(0, word.find('='));
    if (flag.size() > 2 && flag.starts_with("--") && app.get_option_no_throw(flag) == nullptr)
      return sentence("The following argument was not expected: ", printable(flag));
  }
  return std::nullopt;
}

// What other programs call the same.
struct ForeignWord {
  std::string_view word, meant;
};
constexpr std::array<ForeignWord, 67> foreign_flags{
    {{"--model", "MODEL without a flag"},
     {"-m", "--method, or MODEL without a flag"},
     {"--lora", "--method lora"},
     {"--qlora", "--method qlora"},
     {"--dora", "--method dora"},
     {"--full", "--method full"},
     {"--pretrain", "--method pretrain"},
     {"--seqlen", "--seq"},
     {"--sequence", "--seq"},
     {"--sequence-length", "--seq"},
     {"--max-seq-length", "--seq"},
     {"--cutoff-len", "--seq"},
     {"--model-max-length", "--seq"},
     {"--bs", "--batch"},
     {"--mbs", "--microbatch"},
     {"--num-gpus", "--gpus (8xH100-SXM)"},
     {"--max-memory-fraction", "--max-memory"},
     {"--cpu-ram", "--host-ram"},
     {"--seq-len", "--seq"},
     {"--seq-length", "--seq"},
     {"--max-seq-len", "--seq"},
     {"--max-length", "--seq"},
     {"--context", "--seq"},
     {"--context-length", "--seq"},
     {"--batch-size", "--batch"},
     {"--global-batch-size", "--batch"},
     {"--micro-batch-size", "--microbatch"},
     {"--rank", "--lora-rank"},
     {"--dtype", "--precision"},
     {"--optim", "--optimizer"},
     {"--lr", "--learning-rate"},
     {"--ram", "--host-ram"},
     {"--epochs", "--samples (epochs times as many)"},
     {"--lora-r", "--lora-rank"},
     {"--gradient-checkpointing", "--recompute (full or none)"},
     {"--activation-checkpointing", "--recompute (full or none)"},
     {"--load-in-4bit", "--method qlora"},
     {"--load-in-8bit", "--method qlora --quantization int8"},
     {"--per-device-train-batch-size", "--microbatch"},
     {"--quant", "--quantization"},
     {"--vram", "--gpus (1x24GB)"},
     {"--4bit", "--method qlora"},
     {"--load-4bit", "--method qlora"},
     {"--load-8bit", "--method qlora --quantization int8"},
     {"--bf16", "--precision bf16"},
     {"--fp16", "--precision fp16"},
     {"--fp8", "--precision fp8"},
     {"--mixed-precision", "--precision"},
     {"--zero1", "--plan zero=1"},
     {"--zero2", "--plan zero=2"},
     {"--zero3", "--plan zero=3"},
     {"--zero-stage", "--plan zero=N"},
     {"--fsdp", "--plan zero=3"},
     {"--gradient-accumulation", "--plan ga=N, or --batch"},
     {"--gradient-accumulation-steps", "--plan ga=N, or --batch"},
     {"--tensor-parallel-size", "--plan tp=N"},
     {"--tensor-model-parallel-size", "--plan tp=N"},
     {"--pipeline-parallel-size", "--plan pp=N"},
     {"--pipeline-model-parallel-size", "--plan pp=N"},
     {"--context-parallel-size", "--plan cp=N"},
     {"--expert-model-parallel-size", "--plan ep=N"},
     {"--use-distributed-optimizer", "--plan zero=1"},
     {"--cpu-offload", "--offload (optimizer, params or all)"},
     {"--use-liger-kernel", "--fused-loss"},
     {"--liger", "--fused-loss"},
     {"--deepspeed", "--plan-from FILE"},
     {"--config", "--plan-from FILE, or MODEL without a flag"}}};

// What people ask other programs for, and who answers it here.
constexpr std::array<ForeignWord, 15> foreign_commands{{{"estimate", "fit"},
                                                        {"estimate-memory", "fit"},
                                                        {"memory", "fit"},
                                                        {"vram", "fit"},
                                                        {"calculate", "fit"},
                                                        {"predict", "simulate"},
                                                        {"forecast", "simulate"},
                                                        {"train", "simulate, or launch"},
                                                        {"search", "plan"},
                                                        {"optimize", "plan"},
                                                        {"tune", "plan"},
                                                        {"cost", "shop"},
                                                        {"buy", "shop"},
                                                        {"rent", "shop"},
                                                        {"benchmark", "calibrate"}}};

// What a refusal of `word` ends with: "; what you ask is answered by fit", "; did you mean fit?" or
// nothing.
std::string meant_command(const std::string& word, const std::vector<std::string_view>& known) {
  for (const ForeignWord& row : foreign_commands)
    if (row.word == word) return sentence("; what you ask is answered by ", row.meant);
  const std::string hint = did_you_mean(word, known);
  return hint.empty() ? hint : "; " + hint;
}

constexpr std::string_view judged_plan = "--plan ";

// Who searches plans is told what of them is fixed.
std::string plan_flag(const CLI::App& app) {
  return app.get_option_no_throw("--fix") != nullptr ? "--fix " : std::string(judged_plan);
}

std::string meant_by(const CLI::App& app, const std::string& word) {
  std::string flag = word.substr(0, word.find('='));
  std::replace(flag.begin(), flag.end(), '_', '-');  // as trainers spell theirs
  if (flag != word.substr(0, flag.size()) && app.get_option_no_throw(flag) != nullptr) return flag;
  for (const ForeignWord& row : foreign_flags)
    if (row.word == flag && app.get_option_no_throw(flag) == nullptr)
      return sentence(
          row.meant.starts_with(judged_plan) ? plan_flag(app) : "",
          row.meant.substr(row.meant.starts_with(judged_plan) ? judged_plan.size() : 0));
  return {};
}

}  // namespace

std::optional<std::string> unknown_command(const CLI::App& app, int argc, char** argv) {
  const auto commands = app.get_subcommands(std::function<bool(const CLI::App*)>{});
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with('-')) continue;
    for (const CLI::App* command : commands)
      if (command->get_name() == word) return std::nullopt;
    const std::vector<std::string> names = command_names(app);
    const std::vector<std::string_view> known(names.begin(), names.end());
    return sentence("unknown command \"", printable(word), "\"; expected ", listed(known, " or "),
                    meant_command(word, known));
  }
  return std::nullopt;
}

std::string misunderstood(const CLI::App& app, const CLI::ParseError& error, int argc,
                          char** argv) {
  if (const auto unknown = unknown_command(app, argc, argv)) return *unknown;
  std::vector<std::string> known;
  const CLI::App* inner = &app;
  std::string path;  // of it: "calibrate import "
  for (auto below = app.get_subcommands(); !below.empty(); below = inner->get_subcommands()) {
    inner = below.back();
    path += inner->get_name() + ' ';
  }
  for (const CLI::App* sub : inner->get_subcommands(std::function<bool(const CLI::App*)>{}))
    known.push_back(sub->get_name());
  for (const CLI::Option* option : inner->get_options()) known.push_back(option->get_name());
  auto misused = flag_with_value(*inner, argc, argv);
  if (!misused && inner != &app) misused = flag_of_others(*inner, argc, argv);
  if (misused) return *misused;
  std::string what = error.what();
  if (inner == &app && argc == 1) what = "a command is missing; expected " + listed_commands(app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    if (const auto flag = unknown_flag(*inner, argc, argv)) what = *flag + "; " + what;
  std::string line = what;
  const std::string plan = as_plan(argc, argv);
  const bool plans = !plan.empty() && inner->get_option_no_throw("--plan") != nullptr;
  if (plans) line += "; a plan is one text: " + plan_flag(*inner) + plan;
  for (int i = 1; i < argc && !plans; ++i) {
    const std::string word = argv[i];
    if (what.find(word) == std::string::npos) continue;
    if (const std::string meant = meant_by(*inner, word); !meant.empty()) {
      line += "; it is called " + meant + " here";
      break;
    }
    const std::vector<std::string> near =
        suggest(word, std::vector<std::string_view>(known.begin(), known.end()));
    if (!near.empty() && near.front() != word) {
      line += "; did you mean " + near.front() + '?';
      break;
    }
  }
  return line + " (see shardwise " + path + "--help)";
}

std::optional<std::string> nameless_file(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const auto& names = option->results();
    if (!(type.starts_with("FILE") || type == "DIR") || names.empty()) continue;
    if (std::find(names.begin(), names.end(), "") != names.end())
      return sentence(option->get_name(), ": is empty; expected ", type);
  }
  for (const CLI::App* inner : app.get_subcommands())
    if (auto nameless = nameless_file(*inner)) return nameless;
  return std::nullopt;
}

}  // namespace shardwise
