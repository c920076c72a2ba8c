#include "planner/report/html_report.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "catalog/require.hpp"
#include "catalog/whole_file.hpp"
#include "planner/report/embedded_files.hpp"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 15> scripts{
    "core.js",       "charts.js", "memory.js", "timeline.js", "timeline_view.js",
    "scaling.js",    "tables.js", "plans.js",  "step.js",     "explain.js",
    "validation.js", "sweep.js",  "shop.js",   "other.js",    "page.js"};

// What stands in the place of {{name}} of the template. Nothing that was put in is looked at again.
using Part = std::pair<std::string_view, std::string>;

std::string filled_page(std::string_view page, const std::vector<Part>& parts) {
  std::string out;
  for (std::size_t open = page.find("{{"); open != std::string_view::npos; open = page.find("{{")) {
    const std::size_t close = page.find("}}", open);
    require(close != std::string_view::npos, "a place of the page's template is closed");
    out += page.substr(0, open);
    const std::string_view place = page.substr(open + 2, close - open - 2);
    for (const Part& part : parts)
      if (part.first == place) out += part.second;
    page.remove_prefix(close + 2);
  }
  out += page;
  return out;
}

std::string all_scripts() {
  std::string text;
  for (const std::string_view name : scripts) text += std::string(embedded_file(name)) + "\n";
  return text;
}

}  // namespace

std::string json_in_html(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  return out;
}

namespace {

// The JSON document of such a page.
Json report_document(const Json& answer, const std::vector<ReportDetail>& details) {
  Json document = {{"answer", answer}, {"details", Json::array()}};
  for (const ReportDetail& d : details)
    document["details"].push_back(
        {{"of", d.of}, {"simulation", d.simulation}, {"timeline", d.timeline}});
  return document;
}

}  // namespace

std::string report_page(const Json& answer, const std::vector<ReportDetail>& details) {
  return filled_page(embedded_file("report.html"),
                     {{"style", std::string(embedded_file("style.css"))},
                      {"licence", std::string(embedded_file("chart-licence.txt"))},
                      {"charts", std::string(embedded_file("chart.js"))},
                      {"scripts", all_scripts()},
                      {"document", json_in_html(report_document(answer, details))}});
}

std::string served_page() {
  return filled_page(embedded_file("serve.html"),
                     {{"style", std::string(embedded_file("style.css"))},
                      {"licence", std::string(embedded_file("chart-licence.txt"))},
                      {"charts", std::string(embedded_file("chart.js"))},
                      {"scripts", all_scripts() + std::string(embedded_file("serve.js"))}});
}

Problems publish(const Output& output, const Json& answer,
                 const std::function<std::vector<ReportDetail>()>& details) {
  if (output.document == nullptr && output.report.empty()) return {};
  const std::vector<ReportDetail> found = details();
  if (output.document != nullptr)
    *output.document
        << report_document(answer, found).dump(-1, ' ', false, Json::error_handler_t::replace);
  return output.report.empty() ? Problems{} : write_report(output.report, answer, found);
}

Problems write_report(const std::string& path, const Json& answer,
                      const std::vector<ReportDetail>& details) {
  return write_whole_file(path, [&](std::ostream& file) { file << report_page(answer, details); });
}

}  // namespace shardwise
