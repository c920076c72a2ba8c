#include "planner/launch/plan_file.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "catalog/json_document.hpp"
#include "catalog/names.hpp"
#include "catalog/text_file.hpp"
#include "catalog/text_match.hpp"
#include "planner/launch/config_reader.hpp"
#include "planner/launch/hugging_face_names.hpp"
#include "planner/launch/named_model.hpp"
#include "planner/launch/written_words.hpp"
#include "planner/parted.hpp"
#include "planner/sentence.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view to_another_file = "leaves it to another file";
constexpr std::size_t most_bytes = std::size_t{4} << 20;

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == path;
}

const PlanKey* key_of(const PlanFileFormat& format, std::string_view path) {
  for (const PlanKey& key : format.keys)
    if (matches(key.path, path)) return &key;
  return nullptr;
}

bool asks_for_nothing(const PlanKey& key, const std::string& value) {
  bool nothing = value == "null";
  for (const std::string& word : parted(key.word, '|')) nothing |= word == value;
  return nothing;
}

std::string shown_value(const ConfigEntry& e) {
  const std::string text = config_text(e.value);
  return std::holds_alternative<std::string>(e.value) ? sentence('"', printable(text), '"') : text;
}

std::string place_of(const std::string& file, const ConfigEntry& e) {
  return e.line > 0 ? sentence(file, ':', e.line, ":", e.path) : sentence(file, ":", e.path);
}

// The number of a value that is one, or a text that is nothing but one.
std::optional<double> number_in(const ConfigValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  const auto* text = std::get_if<std::string>(&value);
  double number = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

// What was expected, or nothing where the key has said its word.
std::optional<std::string> say(const PlanKey& key, const ConfigEntry& e, const std::string& place,
                               PlanWords& words) {
  if (key.kind == KeyKind::integer) {
    const auto number = number_in(e.value);
    const auto whole = number ? static_cast<std::int64_t>(*number) : 0;
    if (!number || *number != static_cast<double>(whole) || whole < key.low || whole > key.high)
      return key.high == std::numeric_limits<int>::max()
                 ? sentence("a whole number from ", key.low)
                 : sentence("a whole number from ", key.low, " to ", key.high);
    words.say(key.word, std::to_string(whole), place);
    return std::nullopt;
  }
  if (key.kind == KeyKind::number) {
    if (!number_in(e.value)) return "a number";
    words.say(key.word, shown_number(*number_in(e.value)), place);
    return std::nullopt;
  }
  const std::string text = config_text(e.value);
  if (key.kind == KeyKind::text) {
    if (std::holds_alternative<std::monostate>(e.value)) return "a text";
    words.say(key.word, text, place);
    return std::nullopt;
  }
  if (key.kind == KeyKind::layers) {
    const std::size_t prefix = key.path.size();  // the final '*' stands where '.' does
    const std::string part = e.path.substr(prefix, e.path.find('.', prefix) - prefix);
    words.count(sentence(key.word, ':', part, ":count"), text.starts_with("layers.") ? 1 : 0,
                place);
    return std::nullopt;
  }
  std::vector<std::string_view> known;
  for (const Meaning& meaning : key.meanings) {
    if (meaning.found == text) {
      if (key.kind == KeyKind::member)
        words.say(sentence(key.word, ':', meaning.value), "true", place);
      else if (!meaning.value.empty())
        words.say(key.word, std::string(meaning.value), place);
      return std::nullopt;
    }
    known.push_back(meaning.found);
  }
  return listed(known, " or ");
}

// The modules of one entry; why none of them, or not exactly they, are counted.
std::string say_linears(const PlanKey& key, const ConfigEntry& e, const std::string& place,
                        PlanWords& words) {
  const NamedLinears named = linears_named(config_text(e.value));
  for (const std::string_view linear : named.linears)
    words.say(sentence(key.word, ':', linear), "true", place);
  if (named.linears.empty()) words.imply(sentence(key.word, ":none"), "true", place);
  return named.note;
}

std::string unknown_key(const PlanFileFormat& format, std::string_view path) {
  std::vector<std::string_view> known;
  for (const PlanKey& key : format.keys)
    if (key.use == KeyUse::says) known.push_back(key.path);
  const std::string hint = did_you_mean(path, known);
  return sentence("is not known here", hint.empty() ? "" : "; ", hint);
}

bool has_mark(const PlanFileFormat& format, const ConfigEntries& entries) {
  bool found = false;
  for (const std::string& mark : parted(format.marks, '|')) found |= has_part(entries, mark);
  return found;
}

const PlanFileFormat* format_of(const ConfigEntries& entries) {
  for (const PlanFileFormat& format : plan_file_formats())
    if (has_mark(format, entries)) return &format;
  return nullptr;
}

Problem unrecognised(const std::string& file) {
  std::string known;
  for (const PlanFileFormat& format : plan_file_formats())
    known += sentence(known.empty() ? "" : "; ", format.name, " (",
                      format.marks.substr(0, format.marks.find('|')), ")");
  return {ProblemKind::file, file,
          sentence("is no launch configuration that is known here; expected one of: ", known)};
}

// The run.sh of a folder, where it is one of ours and was not gathered before.
void gather_run_script(const fs::path& folder, std::vector<PlanText>& to) {
  const std::string name = (folder / run_script_name).string();
  auto text = read_text_file(name, name, most_bytes);
  if (!text || !was_written_here(*text)) return;
  for (const PlanText& before : to)
    if (before.role == PlanText::Role::run_script && before.text == *text) return;
  to.push_back({name, *std::move(text), PlanText::Role::run_script});
}

// Whether a text names a key by which a format is known: one that cannot be read is then an error,
// not one of the other things that a folder may hold.
bool names_a_mark(const std::string& text) {
  bool found = false;
  for (const PlanFileFormat& format : plan_file_formats())
    for (const std::string& mark : parted(format.marks, '|'))
      found |= text.find(mark.substr(mark.rfind('.') + 1)) != std::string::npos;
  return found;
}

// A script that says a plan and is none of ours.
void gather_script(const std::string& name, std::vector<PlanText>& to) {
  auto text = read_text_file(name, name, most_bytes);
  if (!text || was_written_here(*text)) return;
  const auto entries = read_config(config_syntax(name, *text), *text, name);
  if (entries && format_of(*entries) != nullptr)
    to.push_back({name, *std::move(text), PlanText::Role::passed_over});
}

Problems holds_none(const std::string& folder, const std::vector<PlanText>& scripts) {
  std::vector<std::string> named;
  for (const PlanText& script : scripts) named.push_back("--plan-from " + printable(script.file));
  return {{ProblemKind::file, folder,
           sentence("holds no launch configuration that is known here",
                    named.empty() ? "" : "; a script is read where it is named itself: ",
                    listed(named, " or "))}};
}

// A file's texts, or those of a folder that hold a plan: a folder may hold other things.
Problems gather(const std::string& path, std::vector<PlanText>& to) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    auto text = read_text_file(path, path, most_bytes);
    if (!text) return text.error();
    to.push_back({path, *std::move(text)});
    if (fs::path(path).filename() != run_script_name)
      gather_run_script(fs::path(path).parent_path(), to);
    return {};
  }
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    files.push_back(entry->path());
  if (error) return {{ProblemKind::file, path, sentence("cannot be listed: ", error.message())}};
  std::sort(files.begin(), files.end());
  const std::size_t before = to.size();
  std::vector<PlanText> scripts;
  for (const fs::path& file : files) {
    const std::string ending = file.extension().string(), name = file.string();
    if (ending == ".sh") gather_script(name, scripts);
    if (ending != ".json" && ending != ".yaml" && ending != ".yml" && ending != ".toml" &&
        ending != ".args")
      continue;
    auto text = read_text_file(file, name, most_bytes);
    if (!text) return text.error();
    const auto entries = read_config(config_syntax(name, *text), *text, name);
    if (!entries && names_a_mark(*text)) return entries.error();
    if (entries && format_of(*entries) != nullptr) to.push_back({name, *std::move(text)});
  }
  if (to.size() == before) return holds_none(path, scripts);
  to.insert(to.end(), scripts.begin(), scripts.end());
  gather_run_script(path, to);
  return {};
}

// Sequences per step that the files ask for, where they say enough.
std::optional<int> batch_of(const PlanWords& words, const PlanFileContext& context) {
  if (const auto batch = words.number("batch")) return batch;
  const auto microbatch = words.number("mbs"), rounds = words.number("ga");
  const int rest = product_in_int(
      {words.number_or("tp", 1), words.number_or("cp", 1), words.number_or("pp", 1)});
  const int data = words.number_or("dp", context.cluster->gpus() / std::max(rest, 1));
  if (!microbatch || !rounds) return std::nullopt;
  return product_in_int({data, *microbatch, *rounds});  // beyond it, the plan's rules refuse it
}

void append_notes(std::string& text, std::string_view heading, const std::vector<KeyNote>& notes) {
  // Keys that share a reason are told together.
  std::vector<std::pair<std::string, std::string>> by_reason;
  for (const KeyNote& note : notes) {
    const auto same = std::find_if(by_reason.begin(), by_reason.end(),
                                   [&](const auto& one) { return one.first == note.why; });
    if (same == by_reason.end())
      by_reason.emplace_back(note.why, note.key);
    else
      same->second += sentence(", ", note.key);
  }
  for (const auto& [why, those] : by_reason)
    text += sentence("; ", heading, ' ', those, " (", why, ')');
}

}  // namespace

std::string told(const PlanFileReport& report) {
  if (report.format == passed_over_script)
    return sentence(report.file, " is not read: of a folder, a script is where it is named itself",
                    " (--plan-from ", report.file, ").");
  std::string text = sentence(report.file, " is read as ", report.format);
  if (!report.understood.empty() || report.implied.empty())
    text += sentence(": ", report.understood.empty() ? "nothing" : listed(report.understood),
                     " understood");
  append_notes(text, "could not honour", report.not_honoured);
  append_notes(text, "ignored", report.ignored);
  if (!report.implied.empty())
    text += sentence("; taken where no flag says otherwise: ", listed(report.implied));
  return text + '.';
}

namespace {

// One format's keys applied to one file's entries.
PlanFileReport read_plan_keys(const PlanFileFormat& format, const ConfigEntries& entries,
                              const std::string& file, PlanWords& words) {
  PlanFileReport report{file, std::string(format.name), {}, {}, {}, {}};
  for (const ConfigEntry& e : entries) {
    const PlanKey* key = key_of(format, e.path);
    const std::string value = config_text(e.value);
    if (key == nullptr && std::holds_alternative<std::monostate>(e.value)) {
      report.ignored.push_back({e.path, "says nothing"});
    } else if (key == nullptr) {
      report.not_honoured.push_back({e.path, unknown_key(format, e.path)});
    } else if (key->use == KeyUse::ignored || key->use == KeyUse::model) {
      if (key->use == KeyUse::model && !std::holds_alternative<std::monostate>(e.value))
        words.say(key->word, value, place_of(file, e));
      report.ignored.push_back({e.path, std::string(key->note)});
    } else if (!format.defers.empty() && value == format.defers) {
      report.ignored.push_back({e.path, sentence('"', value, "\" ", to_another_file)});
    } else if (std::holds_alternative<std::monostate>(e.value)) {
      report.ignored.push_back({e.path, "null leaves it to the framework's default"});
    } else if (key->use == KeyUse::refused) {
      if (asks_for_nothing(*key, value))
        report.ignored.push_back({e.path, "asks for nothing"});
      else
        report.not_honoured.push_back({e.path, std::string(key->note)});
    } else if (key->kind == KeyKind::linears) {
      if (const std::string note = say_linears(*key, e, place_of(file, e), words); note.empty())
        report.understood.push_back(e.path);
      else
        report.not_honoured.push_back({e.path, note});
    } else if (const auto expected = say(*key, e, place_of(file, e), words)) {
      words.problems.push_back({ProblemKind::file, place_of(file, e),
                                sentence("expected ", *expected, ", found ", shown_value(e))});
    } else {
      report.understood.push_back(e.path);
    }
  }
  return report;
}

// A file that leaves every value to others, none of which was given: no plan can be read from it.
Problems nothing_said(const std::vector<PlanFileReport>& reports) {
  std::string deferred;
  for (const PlanFileReport& report : reports) {
    if (!report.understood.empty()) return {};
    for (const KeyNote& note : report.ignored)
      if (note.why.ends_with(to_another_file))
        deferred += sentence(deferred.empty() ? "" : ", ", note.key);
  }
  if (deferred.empty()) return {};
  return {{ProblemKind::file, reports.front().file,
           sentence("says nothing of a plan: ", deferred,
                    " leave it to another file, which has "
                    "to be given too, by another --plan-from")}};
}

}  // namespace

Result<SaidPlan> read_plan_texts(const std::vector<PlanText>& texts,
                                 const PlanFileContext& context) {
  SaidPlan said;
  PlanWords& words = said.words;
  std::vector<std::pair<const PlanFileFormat*, std::string>> finishing;
  for (const PlanText& one : texts) {
    if (one.role != PlanText::Role::plan) continue;
    imply_by_heading(one.text, one.file, words);
    const auto entries = read_config(config_syntax(one.file, one.text), one.text, one.file);
    if (!entries) return entries.error();
    const PlanFileFormat* format = format_of(*entries);
    if (format == nullptr) return unrecognised(one.file);
    said.reports.push_back(read_plan_keys(*format, *entries, one.file, words));
    finishing.emplace_back(format, one.file);
  }
  for (const PlanText& one : texts) {
    if (one.role == PlanText::Role::passed_over)
      said.reports.push_back({one.file, std::string(passed_over_script), {}, {}, {}, {}});
    if (one.role != PlanText::Role::run_script) continue;
    imply_by_run_script(one.text, one.file, words);
    said.reports.push_back({one.file, std::string(written_script), {}, {}, {}, {}});
  }
  const Problems unsaid = nothing_said(said.reports);
  words.problems.insert(words.problems.end(), unsaid.begin(), unsaid.end());
  if (!words.problems.empty()) return words.problems;
  std::stable_sort(finishing.begin(), finishing.end(),
                   [](const auto& a, const auto& b) { return a.first->rank > b.first->rank; });
  for (const auto& one : finishing) {
    one.first->finish(words, context, one.second);
    const auto report = std::find_if(said.reports.begin(), said.reports.end(),
                                     [&](const PlanFileReport& r) { return r.file == one.second; });
    for (auto& [key, why] : words.unmet) {
      std::erase(report->understood, key);
      std::erase_if(report->ignored, [&key = key](const KeyNote& n) { return n.key == key; });
      report->not_honoured.push_back({key, why});
    }
    words.unmet.clear();
  }
  if (!words.problems.empty()) return words.problems;
  said.batch = batch_of(words, context);
  if (words.has("learning-rate"))
    said.learning_rate = number_in(ConfigValue(words.words.find("learning-rate")->second.value));
  return said;
}

std::vector<ModelInFile> models_in(const std::vector<PlanText>& texts) {
  std::vector<ModelInFile> found;
  for (const PlanText& one : texts) {
    if (one.role != PlanText::Role::plan) continue;
    const auto entries = read_config(config_syntax(one.file, one.text), one.text, one.file);
    const PlanFileFormat* format = entries ? format_of(*entries) : nullptr;
    if (format == nullptr) continue;
    const std::string together = format->model != nullptr ? format->model(*entries) : "";
    for (const ConfigEntry& e : *entries) {
      if (!together.empty() && e.path == format->model_key)
        found.push_back({together, place_of(one.file, e)});
      const PlanKey* key = key_of(*format, e.path);
      const auto* name = std::get_if<std::string>(&e.value);
      if (key != nullptr && name != nullptr && key->use == KeyUse::model &&
          key->word == named_model)
        found.push_back({*name, place_of(one.file, e)});
    }
  }
  return found;
}

std::optional<SizesInFile> sizes_in(const std::vector<PlanText>& texts) {
  for (const PlanText& one : texts) {
    if (one.role != PlanText::Role::plan) continue;
    const auto entries = read_config(config_syntax(one.file, one.text), one.text, one.file);
    if (!entries) continue;
    const auto said = [&](std::string_view path) {
      for (const ConfigEntry& e : *entries)
        if (const auto n = e.path == path ? number_in(e.value) : std::nullopt)
          return static_cast<std::int64_t>(*n);
      return std::int64_t{0};
    };
    const SizesInFile sizes{said("num-layers"), said("hidden-size"), said("ffn-hidden-size"),
                            said("num-query-groups"), said("num-experts")};
    if (sizes.layers > 0 && sizes.hidden > 0) return sizes;
  }
  return std::nullopt;
}

namespace {

// The JSON file that a line gives to `deepspeed` or to `deepspeed_config_file`: as YAML, as JSON or
// as a flag. Empty where it gives none.
std::string_view deepspeed_file_in(std::string_view line) {
  constexpr std::string_view key = "deepspeed", longer = "_config_file";
  if (trimmed(line).starts_with('#')) return {};
  line = line.substr(0, line.find(" #"));
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    std::string_view rest = line.substr(at + key.size());
    if (rest.starts_with(longer)) rest.remove_prefix(longer.size());
    const std::size_t begin = rest.find_first_not_of("\"':= \t");
    if (begin == 0 || begin == std::string_view::npos) continue;
    const std::string_view value = rest.substr(begin, rest.find_first_of("\"', \t", begin) - begin);
    if (value.ends_with(".json")) return value;
  }
  return {};
}

// A trainer's file may name DeepSpeed's, which says the plan: where it stands beside it or under
// the folder that the trainer is started in.
std::optional<fs::path> deepspeed_file_of(const PlanText& t) {
  std::istringstream lines(t.text);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view value = deepspeed_file_in(line);
    if (value.empty()) continue;
    for (const fs::path& path : {fs::path(t.file).parent_path() / value, fs::path(value)}) {
      std::error_code unreadable;
      if (fs::is_regular_file(path, unreadable)) return path;
    }
  }
  return std::nullopt;
}

bool is_among(const fs::path& path, const std::vector<PlanText>& texts) {
  return std::any_of(texts.begin(), texts.end(), [&](const PlanText& t) {
    std::error_code unreadable;
    return fs::equivalent(path, t.file, unreadable);
  });
}

}  // namespace

Result<std::vector<PlanText>> plan_texts(const std::vector<std::string>& paths) {
  std::vector<PlanText> texts;
  Problems problems;
  for (const std::string& path : paths) {
    add_problems(problems, gather(path, texts));
  }
  for (std::size_t i = 0, given = texts.size(); i < given; ++i) {
    if (texts[i].role == PlanText::Role::passed_over) continue;
    if (const auto named = deepspeed_file_of(texts[i]); named && !is_among(*named, texts)) {
      const Problems found = gather(named->string(), texts);
      add_problems(problems, found);
    }
  }
  if (!problems.empty()) return problems;
  return texts;
}

}  // namespace shardwise
