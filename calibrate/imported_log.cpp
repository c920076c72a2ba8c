#include "calibrate/imported_log.hpp"

#include <utility>

#include "catalog/json_document.hpp"

namespace shardwise {

void leave_unread(ImportedLog& log, int line, std::string_view text, std::string why) {
  constexpr std::size_t shown_bytes = 70;
  log.unread.push_back({line, printable(text, shown_bytes), std::move(why)});
}

std::string at_line(const ImportedLog& log, int line) {
  return log.file + ":" + std::to_string(line);
}

}  // namespace shardwise
