#include "planner/sweep/study.hpp"

#include <algorithm>

#include "catalog/json_reader.hpp"
#include "catalog/require.hpp"
#include "planner/answers/plan_answer.hpp"
#include "planner/figures.hpp"
#include "planner/request/request_field_json.hpp"
#include "planner/sentence.hpp"
#include "planner/sweep/fingerprint.hpp"

namespace shardwise {
namespace {

// Not keys of which a row of figures has no place for the answer.
bool has_place(const RequestField& field) { return field.belongs_to("sweep"); }

void refuse(JsonReader& r, std::string_view key, const std::string& why, Problems& problems) {
  r.ignore(key);
  problems.push_back({ProblemKind::request, r.where(key), why});
}

// Several plans or methods are several points.
void check_single(const JsonReader& r, const RequestField& field, const FieldValue& value,
                  Problems& problems) {
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (texts == nullptr || texts->size() < 2 || field.key == "plan_from") return;
  problems.push_back({ProblemKind::request, r.where(field.key),
                      sentence("has ", texts->size(), " values; several are a list under axes")});
}

// A range of a setting that stands once is an axis that was not written as one.
void check_range(const JsonReader& r, const RequestField& field, const FieldValue& value,
                 Problems& problems) {
  const auto* text = std::get_if<std::string>(&value);
  if (field.key != "gpus" || text == nullptr || text->find("..") == std::string::npos) return;
  problems.push_back(
      {ProblemKind::request, r.where(field.key),
       sentence("\"", printable(*text), "\" is several sizes; expected under axes")});
}

std::vector<StudyValue> read_values(JsonReader& r, Problems& problems) {
  std::vector<StudyValue> values;
  for (const RequestField& field : request_fields()) {
    if (!has_place(field)) {
      if (r.has(field.key)) refuse(r, field.key, "has no place in a study", problems);
      continue;
    }
    const FieldValue value = read_field(r, field);
    if (std::holds_alternative<std::monostate>(value)) continue;
    add_problems(problems, field_problems(field, value, r.where(field.key)));
    check_single(r, field, value, problems);
    check_range(r, field, value, problems);
    values.push_back({&field, value});
  }
  refuse_flag_names(r, problems);
  r.finish();
  return values;
}

void check_list(const JsonReader& r, const StudyAxis& axis, Problems& problems) {
  const std::string where = r.where(axis.field->key);
  if (axis.values.empty())
    problems.push_back({ProblemKind::request, where, "is empty; expected at least one value"});
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    const auto here = axis.values.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(axis.values.begin(), here, *here) != here)
      problems.push_back({ProblemKind::request, sentence(where, '/', i), "is there twice"});
  }
}

// Of "8..64xH100-SXM" all sizes, as `plan` takes it.
void unroll_ranges(const JsonReader& r, StudyAxis& axis, Problems& problems) {
  if (axis.field->key != "gpus") return;
  std::vector<FieldValue> unrolled;
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    const auto sizes = cluster_sizes(std::get<std::string>(axis.values[i]));
    if (sizes)
      unrolled.insert(unrolled.end(), sizes->begin(), sizes->end());
    else
      for (const Problem& p : sizes.error())
        problems.push_back({p.kind, sentence(r.where("gpus"), '/', i), p.what});
  }
  axis.values = std::move(unrolled);
}

std::vector<StudyAxis> read_axes(JsonReader& r, Problems& problems) {
  std::vector<StudyAxis> axes;
  for (const RequestField& field : request_fields()) {
    if (!has_place(field) || field.kind == FieldKind::flag) {
      if (r.has(field.key)) refuse(r, field.key, "cannot be an axis of a study", problems);
      continue;
    }
    const std::size_t before = problems.size();
    StudyAxis axis{&field, read_field_list(r, field, problems)};
    if (!r.has(field.key) || problems.size() > before) continue;
    unroll_ranges(r, axis, problems);
    check_list(r, axis, problems);
    axes.push_back(std::move(axis));
  }
  refuse_flag_names(r, problems);
  r.finish();
  return axes;
}

bool sets(const std::vector<StudyValue>& values, const RequestField& field) {
  return std::any_of(values.begin(), values.end(),
                     [&](const StudyValue& v) { return v.field == &field; });
}

// A value that no point would ever have is a slip of whoever wrote it.
void check_hidden(const Study& study, const std::string& name, Problems& problems) {
  for (const StudyAxis& axis : study.axes) {
    if (sets(study.base, *axis.field))
      problems.push_back({ProblemKind::request, sentence(name, ":/base/", axis.field->key),
                          "stands under axes as well; expected one of the two"});
    for (std::size_t i = 0; i < study.cases.size(); ++i)
      if (sets(study.cases[i], *axis.field))
        problems.push_back({ProblemKind::request,
                            sentence(name, ":/cases/", i, '/', axis.field->key),
                            "stands under axes as well; expected one of the two"});
  }
}

void check_count(const Study& study, const std::string& name, Problems& problems) {
  std::int64_t points = static_cast<std::int64_t>(study.cases.size());
  for (const StudyAxis& axis : study.axes) {
    points *= static_cast<std::int64_t>(axis.values.size());
    if (points <= study_max_points) continue;
    problems.push_back({ProblemKind::request, name,
                        sentence("has more than ", grouped(study_max_points), " points")});
    return;
  }
}

void add(Fingerprint& f, const FieldValue& value) {
  struct Visitor {
    Fingerprint& f;
    void operator()(std::monostate) const { f.add(""); }
    void operator()(const std::string& v) const { f.add(v); }
    void operator()(const std::vector<std::string>& v) const {
      for (const std::string& each : v) f.add(each);
    }
    void operator()(std::int64_t v) const { f.add(std::to_string(v)); }
    void operator()(double v) const { f.add(shown_number(v)); }
    void operator()(Bytes v) const { f.add(std::to_string(v.value)); }
    void operator()(bool v) const { f.add(v ? "true" : "false"); }
  };
  std::visit(Visitor{f}, value);
}

void add(Fingerprint& f, const std::vector<StudyValue>& values) {
  f.add(std::to_string(values.size()));
  for (const StudyValue& v : values) {
    f.add(v.field->key);
    add(f, v.value);
  }
}

}  // namespace

std::int64_t Study::points() const {
  std::int64_t count = static_cast<std::int64_t>(cases.size());
  for (const StudyAxis& axis : axes) count *= static_cast<std::int64_t>(axis.values.size());
  return count;
}

Request Study::request_of(std::int64_t point) const {
  require(point >= 0 && point < points(), "a point of the study");
  std::vector<std::size_t> at(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    const auto size = static_cast<std::int64_t>(axes[i].values.size());
    at[i] = static_cast<std::size_t>(point % size);
    point /= size;
  }
  Request request;
  for (const StudyValue& v : base) v.field->set(request, v.value);
  for (const StudyValue& v : cases[static_cast<std::size_t>(point)]) v.field->set(request, v.value);
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i].field->set(request, axes[i].values[at[i]]);
  return request;
}

std::string Study::fingerprint() const {
  Fingerprint f;
  add(f, base);
  f.add(std::to_string(cases.size()));
  for (const std::vector<StudyValue>& one : cases) add(f, one);
  for (const StudyAxis& axis : axes) {
    f.add(axis.field->key);
    f.add(std::to_string(axis.values.size()));
    for (const FieldValue& value : axis.values) add(f, value);
  }
  return f.hex();
}

Result<Study> read_study_text(std::string_view text, const std::string& name) {
  const auto document = parse_json(text, name);
  if (!document) return document.error();
  Problems problems;
  JsonReader root(*document, problems);
  Study study;
  study.name = root.maybe_text("name").value_or("");
  if (auto base = root.maybe_object("base")) study.base = read_values(*base, problems);
  for (JsonReader& one : root.objects("cases")) study.cases.push_back(read_values(one, problems));
  if (root.kind("cases") == JsonKind::array && study.cases.empty())
    root.problem("cases", "at least one object");
  if (study.cases.empty()) study.cases.emplace_back();
  if (auto axes = root.maybe_object("axes")) study.axes = read_axes(*axes, problems);
  for (const RequestField& field : request_fields())
    if (root.has(field.key))
      refuse(root, field.key, "is a setting; expected under base, cases or axes", problems);
  for (const RequestField& field : request_fields())
    if (const std::string plural = sentence(field.key, "s");
        root.has(plural) && request_field(plural) == nullptr)
      refuse(root, plural,
             sentence("is not known; a list of values for ", field.key,
                      " stands under axes, as {\"", field.key, "\": [...]}"),
             problems);
  root.finish();
  check_hidden(study, name, problems);
  if (problems.empty()) check_count(study, name, problems);
  for (Problem& p : problems) p.kind = ProblemKind::request;
  if (!problems.empty()) return problems;
  return study;
}

}  // namespace shardwise
