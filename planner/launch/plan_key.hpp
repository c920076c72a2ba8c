// PlanKey: one key of a foreign configuration file and what it means here. Each format is a table
// of them (the target's own file), read by plan_file.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

namespace shardwise {

enum class KeyUse {
  says,     // a word of plan_words.hpp
  model,    // ignored, but a word: the forecast is of the model asked for, which this may not be
  ignored,  // has no bearing on memory or time, or says again what others say
  refused,  // would change the forecast and cannot be honoured, unless it asks for nothing
};

enum class KeyKind {
  integer,
  number,
  text,
  choice,
  member,   // of a list: "lora_target_modules.0: q_proj" says the word "target:q"
  linears,  // modules that adapters stand beside, by name or pattern: the words "target:q", ...
  layers,   // of a list of lists of modules: "parts.2.0: layers.7" counts the word "module:2:count"
};

// What one value of a closed set means: the word's value, "" for nothing at all. Flags are the
// texts "true" and "false".
struct Meaning {
  std::string_view found, value;
};

// The first text that means `value`, as a file is written with; "" where none does.
constexpr std::string_view spelled(std::span<const Meaning> meanings, std::string_view value) {
  for (const Meaning& m : meanings)
    if (m.value == value) return m.found;
  return "";
}

struct PlanKey {
  std::string_view path;  // "zero_optimization.stage"; a final '*' stands for whatever follows
  KeyUse use = KeyUse::ignored;
  std::string_view word;  // says: the word; refused: the values that ask for nothing ("0|false")
  std::string_view note;  // why it is ignored or refused
  KeyKind kind = KeyKind::text;
  int low = 1, high = std::numeric_limits<int>::max();
  std::span<const Meaning> meanings;
};

// Why a key is ignored, as most formats have it.
inline constexpr std::string_view no_step = "has no bearing on a step";
inline constexpr std::string_view no_bearing = "has no bearing that is modelled";
inline constexpr std::string_view row_says = "the framework's row says it";
inline constexpr std::string_view of_model = "the model is the one asked for";
inline constexpr std::string_view of_saving = "saving is not forecast";
inline constexpr std::string_view of_evaluation = "evaluation is not forecast";

constexpr PlanKey says_integer(std::string_view path, std::string_view word, int low = 1,
                               int high = std::numeric_limits<int>::max()) {
  return {path, KeyUse::says, word, "", KeyKind::integer, low, high, {}};
}
constexpr PlanKey says_number(std::string_view path, std::string_view word) {
  return {path, KeyUse::says, word, "", KeyKind::number, 0, 0, {}};
}
constexpr PlanKey says_text(std::string_view path, std::string_view word) {
  return {path, KeyUse::says, word, "", KeyKind::text, 0, 0, {}};
}
constexpr PlanKey says_choice(std::string_view path, std::string_view word,
                              std::span<const Meaning> meanings) {
  return {path, KeyUse::says, word, "", KeyKind::choice, 0, 0, meanings};
}
constexpr PlanKey says_member(std::string_view path, std::string_view word,
                              std::span<const Meaning> meanings) {
  return {path, KeyUse::says, word, "", KeyKind::member, 0, 0, meanings};
}
constexpr PlanKey says_linears(std::string_view path) {
  return {path, KeyUse::says, "target", "", KeyKind::linears, 0, 0, {}};
}
constexpr PlanKey counts_layers(std::string_view path, std::string_view word) {
  return {path, KeyUse::says, word, "", KeyKind::layers, 0, 0, {}};
}
constexpr PlanKey names_model(std::string_view path, std::string_view word) {
  return {path, KeyUse::model, word, of_model, KeyKind::text, 0, 0, {}};
}
constexpr PlanKey ignored(std::string_view path, std::string_view why) {
  return {path, KeyUse::ignored, "", why, KeyKind::text, 0, 0, {}};
}
constexpr PlanKey refused(std::string_view path, std::string_view nothing, std::string_view why) {
  return {path, KeyUse::refused, nothing, why, KeyKind::text, 0, 0, {}};
}

// A closed set, and what one format knows beside it.
template <std::size_t A, std::size_t B>
constexpr std::array<Meaning, A + B> joined(const Meaning (&some)[A], const Meaning (&more)[B]) {
  std::array<Meaning, A + B> all{};
  for (std::size_t i = 0; i < A; ++i) all[i] = some[i];
  for (std::size_t i = 0; i < B; ++i) all[A + i] = more[i];
  return all;
}

inline constexpr Meaning true_or_false[] = {{"true", "true"}, {"false", "false"}};
// A flag of its own for each 16-bit format.
inline constexpr Meaning bf16_or_not[] = {{"true", "bf16"}, {"false", ""}};
inline constexpr Meaning fp16_or_not[] = {{"true", "fp16"}, {"false", ""}};
inline constexpr Meaning full_or_none[] = {{"true", "full"}, {"false", "none"}};

}  // namespace shardwise
