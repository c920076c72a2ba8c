// Published runs of the catalog, and the questions that they become.
#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/validation/replay.hpp"
#include "tests/catalog/loaded_catalog.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

inline std::filesystem::path catalog_root() {
  return std::filesystem::path(source_dir()) / "catalog";
}

inline const Reading& loaded_reading() {
  static const Reading reading = [] {
    auto loaded = load_reading(catalog_root());
    if (!loaded) throw std::runtime_error(loaded.error().front().what);
    return *std::move(loaded);
  }();
  return reading;
}

inline const std::vector<RunRecord>& all_runs() {
  static const std::vector<RunRecord> runs = [] {
    auto loaded = load_all_runs(catalog_root());
    if (!loaded) throw std::runtime_error(loaded.error().front().what);
    date_by_sources(loaded_reading(), loaded->records);
    return std::move(loaded->records);
  }();
  return runs;
}

inline RunRecord record(const std::string& id) {
  for (const RunRecord& r : all_runs())
    if (r.id == id) return r;
  throw std::runtime_error("no record " + id);
}

inline ReplayResult ask(const RunRecord& run) {
  return replay(run, loaded_catalog(), loaded_reading());
}

inline Replay asked(const RunRecord& run) {
  ReplayResult result = ask(run);
  if (const auto* skipped = std::get_if<Skipped>(&result))
    throw std::runtime_error(skipped->reason + ": " + skipped->detail);
  return std::get<Replay>(std::move(result));
}
inline Replay asked(const std::string& id) { return asked(record(id)); }

inline std::string skip_reason(const RunRecord& run) {
  const ReplayResult result = ask(run);
  const auto* skipped = std::get_if<Skipped>(&result);
  return skipped == nullptr ? "" : skipped->reason;
}

inline bool notes_hold(const Replay& r, std::string_view text) {
  return std::any_of(r.notes.begin(), r.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

}  // namespace shardwise
