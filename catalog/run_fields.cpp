#include "catalog/run_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "catalog/names.hpp"
#include "catalog/text_match.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 7> yes_words{"true",    "yes", "on",           "1",
                                                    "enabled", "y",   "torch.compile"};
constexpr std::array<std::string_view, 6> no_words{"false", "no", "off", "0", "disabled", "n"};
constexpr std::array<std::string_view, 3> null_words{"", "none", "null"};  // nothing is stated
constexpr std::array<std::string_view, 12> multiples{
    "k", "ki", "m", "mi", "g", "b", "t", "mio", "thousand", "million", "billion", "trillion"};

// What a key is measured in by its end, and how a text may write that, blanks left out.
struct UnitInText {
  std::string_view key_end;
  std::string_view name;
  std::array<std::string_view, 7> words;  // those left empty are an empty rest
};
constexpr std::array<UnitInText, 6> units_in_text{{
    {"_gib", "GiB", {"gib"}},
    {"_w", "W", {"w", "watt", "watts"}},
    {"tokens_per_s_per_gpu",
     "tokens/s/GPU",
     {"tokens/s/gpu", "tok/s/gpu", "tokens/sec/gpu", "tokens/second/gpu", "tokenspersecondpergpu"}},
    {"tokens_per_s",
     "tokens/s",
     {"tokens/s", "tok/s", "tokens/sec", "tok/sec", "tokens/second", "tokenspersecond"}},
    {"samples_per_s",
     "samples/s",
     {"samples/s", "samples/sec", "samples/second", "samplespersecond"}},
    {"_s", "s", {"s", "sec", "secs", "second", "seconds"}},
}};

// Keys under the names that configuration files give them.
struct OtherKey {
  std::string_view object, key, other;
};
constexpr std::array<OtherKey, 51> other_keys{{
    {"training", "seq_len", "sequence_length"},
    {"training", "seq_len", "sequence_len"},
    {"training", "seq_len", "seq_length"},
    {"training", "seq_len", "max_seq_len"},
    {"training", "seq_len", "max_seq_length"},
    {"training", "seq_len", "max_length"},
    {"training", "seq_len", "context_length"},
    {"training", "seq_len", "cutoff_len"},
    {"training", "micro_batch", "micro_batch_size"},
    {"training", "micro_batch", "per_device_train_batch_size"},
    {"training", "micro_batch", "local_batch_size"},
    {"training", "micro_batch", "mbs"},
    {"training", "global_batch", "global_batch_size"},
    {"training", "global_batch", "gbs"},
    {"training", "grad_accum", "gradient_accumulation_steps"},
    {"training", "grad_accum", "grad_accumulation_steps"},
    {"training", "grad_accum", "gradient_accumulation"},
    {"training", "precision", "mixed_precision"},
    {"training", "precision", "dtype"},
    {"training", "recompute", "gradient_checkpointing"},
    {"training", "recompute", "activation_checkpointing"},
    {"training", "lora_rank", "lora_r"},
    {"training", "lora_rank", "rank"},
    {"training", "lora_targets", "lora_target_modules"},
    {"training", "lora_targets", "target_modules"},
    {"training", "quantize", "quantization"},
    {"plan", "dp", "data_parallel_size"},
    {"plan", "tp", "tensor_parallel_size"},
    {"plan", "tp", "tensor_model_parallel_size"},
    {"plan", "pp", "pipeline_parallel_size"},
    {"plan", "pp", "pipeline_model_parallel_size"},
    {"plan", "cp", "context_parallel_size"},
    {"plan", "vpp", "virtual_pipeline_parallel_size"},
    {"plan", "ep", "expert_parallel_size"},
    {"plan", "ep", "expert_model_parallel_size"},
    {"plan", "sp", "sequence_parallel"},
    {"plan", "zero", "zero_stage"},
    {"hardware", "gpus", "num_gpus"},
    {"hardware", "gpus", "world_size"},
    {"model", "layers", "num_hidden_layers"},
    {"model", "layers", "num_layers"},
    {"model", "hidden", "hidden_size"},
    {"model", "heads", "num_attention_heads"},
    {"model", "kv_heads", "num_key_value_heads"},
    {"model", "ffn", "intermediate_size"},
    {"model", "vocab", "vocab_size"},
    {"model", "tied_embeddings", "tie_word_embeddings"},
    {"model.moe", "experts", "num_experts"},
    {"model.moe", "experts", "num_local_experts"},
    {"model.moe", "top_k", "num_experts_per_tok"},
    {"model.moe", "expert_ffn", "moe_intermediate_size"},
}};

template <class Words>
bool among(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool plain_number(JsonKind kind) { return kind == JsonKind::integer || kind == JsonKind::real; }

const UnitInText* unit_by_key(std::string_view key) {
  const auto unit = std::find_if(units_in_text.begin(), units_in_text.end(),
                                 [&](const UnitInText& u) { return key.ends_with(u.key_end); });
  return unit == units_in_text.end() ? nullptr : &*unit;
}

std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// The end of the number that begins at `at`: its digits, which one mark may part in groups of
// three, a fraction and an exponent.
std::size_t number_end(std::string_view text, std::size_t at) {
  std::size_t end = digits_end(text, at);
  const bool grouped = end - at <= 3 && end < text.size() && (text[end] == ',' || text[end] == '_');
  const char mark = grouped ? text[end] : '\0';
  while (grouped && end < text.size() && text[end] == mark && digits_end(text, end + 1) == end + 4)
    end += 4;
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1]))
    end = digits_end(text, end + 1);
  std::size_t exponent = end;
  if (exponent < text.size() && lower_ascii(text[exponent]) == 'e') ++exponent;
  if (exponent > end && exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+'))
    ++exponent;
  if (exponent == end || exponent >= text.size() || !is_digit(text[exponent])) return end;
  return digits_end(text, exponent);
}

struct NumberInText {
  double value = 0;
  std::string_view rest;  // behind it, without blanks at its ends
  bool joined = false;    // a letter follows at once
};

std::optional<NumberInText> number_in(std::string_view untrimmed) {
  const std::string_view text = trimmed(untrimmed);
  const auto first = std::find_if(text.begin(), text.end(), is_digit);
  if (first == text.end()) return std::nullopt;
  auto begin = static_cast<std::size_t>(first - text.begin());
  if (begin > 0 && text[begin - 1] == '.') --begin;  // ".5"
  const std::size_t end = number_end(text, begin);
  const std::string_view rest = text.substr(end);
  if (std::any_of(rest.begin(), rest.end(), is_digit)) return std::nullopt;
  std::string number(text.substr(begin, end - begin));
  number.erase(
      std::remove_if(number.begin(), number.end(), [](char c) { return c == ',' || c == '_'; }),
      number.end());
  const double value = std::strtod(number.c_str(), nullptr);
  return NumberInText{text.substr(0, begin) == "-" ? -value : value, trimmed(rest),
                      !rest.empty() && is_letter(rest.front())};
}

// "4 k", "3 million", "10 %": not the number that stands there.
bool multiplied(std::string_view rest) {
  const auto begin = std::find_if(rest.begin(), rest.end(), is_letter);
  const auto end = std::find_if_not(begin, rest.end(), is_letter);
  return rest.find('%') != std::string_view::npos || among(multiples, lowered({begin, end}));
}

std::optional<double> number_in_unit(std::string_view text, const UnitInText& unit) {
  const auto number = number_in(text);
  if (!number) return std::nullopt;
  std::string rest = lowered(number->rest);
  rest.erase(std::remove(rest.begin(), rest.end(), ' '), rest.end());
  if (!rest.empty() && !among(unit.words, rest)) return std::nullopt;
  return number->value;
}

}  // namespace

std::optional<double> number_told(std::string_view text) {
  const auto number = number_in(text);
  if (!number || number->joined || multiplied(number->rest)) return std::nullopt;
  return number->value;
}

RunFields::RunFields(JsonReader& reader, Problems& problems, std::vector<std::string>& notes,
                     std::string object)
    : reader_(reader), problems_(problems), notes_(notes), object_(std::move(object)) {}

std::string RunFields::called(std::string_view key) const {
  return (object_.empty() ? "" : object_ + '.') + std::string(key);
}

std::string_view RunFields::spelled(std::string_view key) const {
  if (reader_.has(key)) return key;
  const auto found = std::find_if(other_keys.begin(), other_keys.end(), [&](const OtherKey& k) {
    return k.object == object_ && k.key == key && reader_.has(k.other);
  });
  return found == other_keys.end() ? key : found->other;
}

JsonKind RunFields::kind(std::string_view key) const { return reader_.kind(spelled(key)); }

void RunFields::unclear(std::string_view key, const std::string& expected) {
  reader_.ignore(key);
  notes_.push_back(called(key) + " is not understood, so taken as not stated: expected " +
                   expected);
}

void RunFields::keep_unread() {
  for (const std::string& words : reader_.unread()) notes_.push_back(called(words));
}

template <class Read>
auto RunFields::silently(Read read) {
  const std::size_t before = problems_.size();
  std::optional<decltype(read())> value(std::in_place, read());
  if (problems_.size() > before) value.reset();
  problems_.resize(std::min(before, problems_.size()), Problem{ProblemKind::file, "", ""});
  return value;
}

std::optional<double> RunFields::told(std::string_view key) {
  if (reader_.kind(key) == JsonKind::text) {
    const std::string text = *reader_.maybe_text(key);
    const UnitInText* unit = unit_by_key(key) != nullptr ? unit_by_key(key) : unit_by_key(object_);
    return unit != nullptr ? number_in_unit(text, *unit) : number_told(text);
  }
  if (reader_.kind(key) != JsonKind::array) return std::nullopt;
  const auto list = silently([&] { return reader_.numbers(key); });
  if (!list || list->size() != 1) return std::nullopt;
  return list->front();
}

std::string RunFields::in_its_unit(std::string_view key, const std::string& expected) const {
  const UnitInText* unit = unit_by_key(key) != nullptr ? unit_by_key(key) : unit_by_key(object_);
  return unit != nullptr ? expected + " in " + std::string(unit->name) : expected;
}

std::optional<std::int64_t> RunFields::integer64(std::string_view asked, std::int64_t low,
                                                 std::int64_t high) {
  const std::string_view key = spelled(asked);
  const JsonKind kind = reader_.kind(key);
  if (kind == JsonKind::null || plain_number(kind)) return reader_.maybe_integer64(key, low, high);
  const auto value = told(key);
  const auto from = static_cast<double>(low), to = static_cast<double>(high);
  if (value && *value == std::floor(*value) && *value >= from && *value <= to)
    return static_cast<std::int64_t>(*value);
  unclear(key, in_its_unit(key, "a whole number"));
  return std::nullopt;
}

std::optional<int> RunFields::integer(std::string_view key, int low, int high) {
  const auto value = integer64(key, low, high);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

// What configuration files write for "none" of it.
bool RunFields::may_be_none(std::string_view key) const {
  return object_ == "plan" || key == "grad_accum" || key == "lora_rank";
}

std::optional<int> RunFields::count(std::string_view asked) {
  const std::string_view key = spelled(asked);
  const auto value =
      plain_number(reader_.kind(key)) ? reader_.maybe_number(key, -1e308, 1e308) : told(key);
  if (!value || (*value != 0 && *value != -1)) return integer(key, 1, many_of_them);
  if (!may_be_none(asked)) unclear(key, in_its_unit(key, "a whole number from 1"));
  return std::nullopt;
}

std::optional<double> RunFields::number(std::string_view asked, double low, double high) {
  const std::string_view key = spelled(asked);
  const JsonKind kind = reader_.kind(key);
  if (kind == JsonKind::null || plain_number(kind)) return reader_.maybe_number(key, low, high);
  const auto value = told(key);
  if (value && *value >= low && *value <= high) return value;
  unclear(key, in_its_unit(key, "a number"));
  return std::nullopt;
}

std::optional<double> RunFields::measurement(std::string_view key) {
  const auto value = number(key, 0, 1e18);
  if (value && *value == 0) return std::nullopt;
  return value;
}

std::optional<bool> RunFields::flag(std::string_view asked) {
  const std::string_view key = spelled(asked);
  switch (reader_.kind(key)) {
    case JsonKind::null:
    case JsonKind::boolean:
      return reader_.maybe_flag(key);
    case JsonKind::integer:
    case JsonKind::real: {
      const double number = reader_.maybe_number(key, -1e308, 1e308).value_or(0);
      return number == -1 ? std::nullopt : std::optional(number != 0);
    }
    case JsonKind::text: {
      const std::string word = lowered(trimmed(*reader_.maybe_text(key)));
      if (among(yes_words, word)) return true;
      if (among(no_words, word)) return false;
      if (among(null_words, word)) return std::nullopt;
      break;
    }
    default:
      break;
  }
  unclear(key, "true or false");
  return std::nullopt;
}

std::optional<std::string> RunFields::text(std::string_view asked) {
  const std::string_view key = spelled(asked);
  switch (reader_.kind(key)) {
    case JsonKind::boolean:
      return *reader_.maybe_flag(key) ? "true" : "false";
    case JsonKind::integer:
    case JsonKind::real:
      return shown_number(reader_.maybe_number(key, -1e308, 1e308).value_or(0));
    case JsonKind::array: {
      std::string all = joined(texts(key));
      if (all.empty()) return std::nullopt;
      return all;
    }
    case JsonKind::object:
      unclear(key, "a text");
      return std::nullopt;
    default:
      return reader_.maybe_text(key);
  }
}

std::vector<std::string> RunFields::texts(std::string_view key) {
  if (reader_.kind(key) == JsonKind::text) return {*reader_.maybe_text(key)};
  if (auto list = silently([&] { return reader_.texts(key); })) return *std::move(list);
  unclear(key, "an array of texts");
  return {};
}

std::optional<JsonReader> RunFields::object(std::string_view key) {
  if (reader_.kind(key) == JsonKind::object) return reader_.maybe_object(key);
  const bool none = reader_.kind(key) == JsonKind::null ||
                    (reader_.kind(key) == JsonKind::boolean && !*reader_.maybe_flag(key));
  if (none)
    reader_.ignore(key);
  else
    unclear(key, "an object");
  return std::nullopt;
}

}  // namespace shardwise
