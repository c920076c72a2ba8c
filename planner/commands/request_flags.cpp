#include "planner/commands/request_flags.hpp"

#include <CLI/CLI.hpp>

#include "planner/request/named_boxes.hpp"
#include "planner/request/request_field.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string flag_of(const RequestField& field) {
  return field.flag.starts_with("--") ? std::string(field.flag) : std::string(field.key);
}

}  // namespace

void add_request_flags(CLI::App& command, RequestWords& words) {
  for (const RequestField& field : request_fields()) {
    if (!field.belongs_to(command.get_name())) continue;
    const std::string key(field.key), help(field.help);
    CLI::Option* option = nullptr;
    if (field.kind == FieldKind::flag) {
      option = command.add_flag(flag_of(field), words.flags[key], help);
    } else {
      option = command.add_option(flag_of(field), words.texts[key], help);
      option->type_name(std::string(field.placeholder));
      // Each use of the flag takes one word: what follows it is the next flag or MODEL.
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (field.flag.starts_with("--")) option->allow_extra_args(false);
    }
  }
  command.add_option("--request", words.file, "read the whole question from a JSON file")
      ->type_name("FILE");
}

Result<Request> request_from(const CLI::App& command, const RequestWords& words) {
  Request request;
  if (!words.file.empty()) {
    auto read = read_request_file(words.file, command.get_name());
    if (!read) return read.error();
    request = *std::move(read);
  }
  Problems problems;
  for (const RequestField& field : request_fields()) {
    const std::string key(field.key);
    if (!field.belongs_to(command.get_name())) continue;
    if (command.count(flag_of(field)) == 0) continue;
    request.places.erase(std::string(field.flag));
    if (field.kind == FieldKind::flag) {
      field.set(request, words.flags.at(key));  // --fused-loss=false is one of its spellings
      continue;
    }
    const auto it = words.texts.find(key);
    std::vector<std::string> texts =
        it != words.texts.end() ? it->second : std::vector<std::string>{};
    if (key == "gpus" && command.get_name() == "compare" && texts.size() > 1)
      texts = {joined(texts, between_boxes)};  // what it sets side by side
    add_problems(problems, set_from_flag(field, texts, request));
  }
  if (!problems.empty()) return problems;
  return request;
}

}  // namespace shardwise
