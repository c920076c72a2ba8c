#include "calibrate/measuring/measurement_file.hpp"

#include <array>
#include <ostream>
#include <utility>

#include "calibrate/measuring/json_line.hpp"
#include "catalog/json_reader.hpp"
#include "catalog/text_file.hpp"
#include "catalog/whole_file.hpp"

namespace shardwise {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{256} << 20;
constexpr std::int64_t max_size = std::int64_t{1} << 60;
constexpr int version = 1;

constexpr std::array<std::pair<std::string_view, Outcome>, 6> outcomes{{
    {"measured", Outcome::measured},
    {"out_of_memory", Outcome::out_of_memory},
    {"unsupported", Outcome::unsupported},
    {"failed", Outcome::failed},
    {"lost", Outcome::lost},
    {"throttled", Outcome::throttled},
}};

Facts read_texts(JsonReader reader) {
  Facts texts;
  for (const std::string& key : reader.keys()) texts[key] = reader.text(key);
  return texts;
}

std::vector<Facts> read_list(JsonReader& reader, std::string_view key) {
  std::vector<Facts> list;
  for (const JsonReader& element : reader.objects(key)) list.push_back(read_texts(element));
  return list;
}

MachineFacts read_header(const JsonDocument& document, Problems& problems) {
  JsonReader reader(document, problems);
  reader.integer("shardwise_measurements", version, version);
  MachineFacts machine;
  machine.facts = read_texts(reader.object("facts"));
  machine.gpus = read_list(reader, "gpus");
  machine.links = read_list(reader, "links");
  reader.finish();
  return machine;
}

BenchPoint read_point(JsonReader& reader) {
  BenchPoint point;
  point.bench = reader.text("bench");
  point.labels = read_texts(reader.object("labels"));
  JsonReader sizes = reader.object("sizes");
  for (const std::string& key : sizes.keys()) point.sizes[key] = sizes.integer64(key, 0, max_size);
  point.quantity = reader.text("quantity");
  return point;
}

Finding read_finding(JsonReader& reader) {
  Finding found;
  found.outcome = reader.maybe_choice("outcome", outcomes).value_or(Outcome::measured);
  if (found.outcome == Outcome::measured) {
    found.value = reader.number("value", 0, 1e30);
    found.spread = reader.number("spread", 0, 1e9);
    found.samples = reader.integer("samples", 1, 1'000'000'000);
  } else {
    found.why = reader.text("why");
  }
  found.discarded = reader.maybe_integer("discarded", 0, 1'000'000'000).value_or(0);
  found.sm_mhz = reader.maybe_integer("sm_mhz", 0, 100'000).value_or(0);
  found.took = Seconds(reader.number("took_s", 0, 1e9));
  return found;
}

Entry read_entry(const JsonDocument& document, Problems& problems) {
  JsonReader reader(document, problems);
  Entry entry;
  entry.gpu = reader.maybe_integer("gpu", 0, 1023);
  entry.point = read_point(reader);
  entry.finding = read_finding(reader);
  reader.finish();
  return entry;
}

// The whole lines of a text; what follows the last line end is not one.
std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  for (const auto& [name, value] : outcomes)
    if (value == outcome) return name;
  return "";
}

std::string header_line(const MachineFacts& machine) {
  return JsonLine()
      .whole("shardwise_measurements", version)
      .texts("facts", machine.facts)
      .objects("gpus", machine.gpus)
      .objects("links", machine.links)
      .object();
}

std::string entry_line(const Entry& entry) {
  JsonLine line;
  if (entry.gpu) line.whole("gpu", *entry.gpu);
  line.text("bench", entry.point.bench)
      .texts("labels", entry.point.labels)
      .wholes("sizes", entry.point.sizes)
      .text("quantity", entry.point.quantity);
  const Finding& found = entry.finding;
  if (found.outcome == Outcome::measured)
    line.number("value", found.value)
        .number("spread", found.spread)
        .whole("samples", found.samples);
  else
    line.text("outcome", outcome_name(found.outcome)).text("why", found.why);
  line.whole("discarded", found.discarded);
  if (found.sm_mhz > 0) line.whole("sm_mhz", found.sm_mhz);
  return line.number("took_s", found.took.value).object();
}

Result<MeasurementFile> parse_measurement_file(const std::string& text, const std::string& name) {
  MeasurementFile file;
  Problems problems;
  const auto lines = whole_lines(text);
  if (lines.empty())
    return Problem{ProblemKind::file, name, "expected measurements of shardwise-calibrate"};
  for (std::size_t i = 0; i < lines.size() && problems.size() < max_problems; ++i) {
    const std::string place = name + ", line " + std::to_string(i + 1);
    const auto document = parse_json(lines[i], place);
    if (!document) {
      add_problems(problems, document.error());
    } else if (i == 0) {
      file.machine = read_header(*document, problems);
    } else {
      file.entries.push_back(read_entry(*document, problems));
    }
  }
  if (!problems.empty()) return problems;
  return file;
}

Result<MeasurementFile> read_measurement_file(const std::filesystem::path& path) {
  const auto text = read_text_file(path, path.string(), max_file_bytes);
  if (!text) return text.error();
  return parse_measurement_file(*text, path.string());
}

Problems write_measurement_file(const std::filesystem::path& path, const MeasurementFile& file) {
  return write_whole_file(path.string(), [&](std::ostream& out) {
    out << header_line(file.machine) << '\n';
    for (const Entry& entry : file.entries) out << entry_line(entry) << '\n';
  });
}

std::vector<Measurement> measurements(const MeasurementFile& file, const std::string& name) {
  const auto fact = [](const Facts& facts, const char* key) {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string("unknown") : found->second;
  };
  const Facts& facts = file.machine.facts;
  std::vector<Measurement> out;
  for (const Entry& entry : file.entries) {
    if (entry.finding.outcome != Outcome::measured) continue;
    Measurement m{entry.point.bench,     entry.point.sizes,       entry.point.labels,
                  entry.point.quantity,  entry.finding.value,     entry.finding.spread,
                  entry.finding.samples, entry.finding.discarded, {}};
    const auto gpu = static_cast<std::size_t>(entry.gpu.value_or(0));
    if (gpu < file.machine.gpus.size()) m.labels["device"] = fact(file.machine.gpus[gpu], "name");
    m.source.append("shardwise-calibrate ").append(fact(facts, "version"));
    m.source.append(", ").append(fact(facts, "date")).append(", ").append(name);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace shardwise
