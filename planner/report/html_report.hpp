// The HTML report: any command's JSON answer as one page that needs no network.
//
// The page draws from one JSON document in it and from nothing else:
//
//   answer    what --json prints
//   details   for some of its plans the step in full: `of` is the index in the answer's list of
//             plans (or its answers), `simulation` what simulate --json would print for that plan,
//             `timeline` as timeline_json.hpp has it
//
// Whatever the page does not know by name it shows as a table, so a new command needs no edit here.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/output.hpp"

namespace shardwise {

struct ReportDetail {
  std::size_t of = 0;
  Json simulation, timeline;
};

// JSON that may stand inside an HTML script element: ASCII, without < > &, and so without </script>
// and <!--. It reads back as the same value.
std::string json_in_html(const Json& value);

std::string report_page(const Json& answer, const std::vector<ReportDetail>& details = {});

// The page of `serve`, which asks for its documents.
std::string served_page();

// Problems{file} where `path` cannot be written.
Problems write_report(const std::string& path, const Json& answer,
                      const std::vector<ReportDetail>& details = {});

// To wherever an output wants a page or its document. `details` is called where one is wanted.
Problems publish(const Output& output, const Json& answer,
                 const std::function<std::vector<ReportDetail>()>& details);

}  // namespace shardwise
