#include "planner/launch/plan_words.hpp"

#include <charconv>

#include "planner/sentence.hpp"

namespace shardwise {

void PlanWords::say(std::string_view word, std::string value, const std::string& where) {
  const auto [said, is_new] = words.emplace(std::string(word), PlanWord{value, where, false});
  if (said->second.implied) said->second = {value, where, false};
  if (is_new || said->second.value == value) return;
  problems.push_back({ProblemKind::file, where,
                      sentence("says ", word, " = ", value, ", but ", said->second.where, " says ",
                               said->second.value)});
}

void PlanWords::default_to(std::string_view word, std::string value, const std::string& where) {
  const auto [said, is_new] = words.emplace(std::string(word), PlanWord{value, where, false});
  if (!is_new && said->second.implied) said->second = {std::move(value), where, false};
}

void PlanWords::imply(std::string_view word, std::string value, const std::string& where) {
  words.emplace(std::string(word), PlanWord{std::move(value), where, true});
}

void PlanWords::count(const std::string& word, int more, const std::string& where) {
  words[word] = {std::to_string(number_or(word, 0) + more), where, false};
}

bool PlanWords::is(std::string_view word, std::string_view value) const {
  const auto said = words.find(word);
  return said != words.end() && said->second.value == value;
}

std::optional<int> PlanWords::number(std::string_view word) const {
  const auto said = words.find(word);
  if (said == words.end()) return std::nullopt;
  const std::string& text = said->second.value;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string PlanWords::where(std::string_view word) const {
  const auto said = words.find(word);
  return said == words.end() ? std::string() : said->second.where;
}

void PlanWords::wrong(std::string_view word, std::string what) {
  problems.push_back({ProblemKind::file, where(word), std::move(what)});
}

void offload_deepspeed(PlanWords& words, const std::string& file) {
  if (words.is("offload-params", "nvme"))
    words.wrong("offload-params",
                "parameters on NVMe are not modelled; the optimizer's states are");
  const bool drives = words.is("offload-optimizer", "nvme");
  const bool optimizer = drives || words.is("offload-optimizer", "true");
  const bool params = words.is("offload-params", "true");
  if (drives) words.default_to("nvme", "true", words.where("offload-optimizer"));
  if (optimizer || params)
    words.default_to("offload",
                     optimizer && params ? "params+optimizer"
                     : optimizer         ? "optimizer"
                                         : "params",
                     file);
}

void recompute_by_fsdp(PlanWords& words) {
  if (!words.is("fsdp-recompute", "full")) return;
  if (words.is("recompute", "none")) words.forget("recompute");
  words.say("recompute", "full", words.where("fsdp-recompute"));
}

}  // namespace shardwise
