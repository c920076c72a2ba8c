#include "planner/sweep/sweep_store.hpp"

#include <sqlite3.h>

#include <filesystem>
#include <utility>

#include "catalog/json_document.hpp"
#include "catalog/require.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t application_id = 0x53575350;  // "SWSP", what file(1) and we know it by
constexpr std::int64_t format_version = 1;
constexpr int patience_ms = 10'000;  // for a reader that holds the file

// One SQL statement, stepped through. Whoever steps asks `code` for what went wrong.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) : database_(database) {
    code_ = sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  void bind(int at, const SweepValue& value) {
    struct Visitor {
      sqlite3_stmt* s;
      int at;
      int operator()(std::monostate) const { return sqlite3_bind_null(s, at); }
      int operator()(std::int64_t v) const { return sqlite3_bind_int64(s, at, v); }
      int operator()(double v) const { return sqlite3_bind_double(s, at, v); }
      int operator()(const std::string& v) const {
        return sqlite3_bind_text64(s, at, v.data(), v.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
      }
    };
    if (code_ == SQLITE_OK) code_ = std::visit(Visitor{statement_, at}, value);
  }

  // True while there is a row.
  bool step() {
    if (code_ == SQLITE_OK || code_ == SQLITE_ROW) code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }

  SweepValue column(int at) const {
    switch (sqlite3_column_type(statement_, at)) {
      case SQLITE_INTEGER:
        return std::int64_t{sqlite3_column_int64(statement_, at)};
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement_, at);
      case SQLITE_NULL:
        return {};
      default:
        return text(at);
    }
  }
  std::int64_t integer(int at) const { return sqlite3_column_int64(statement_, at); }
  std::string text(int at) const {
    const void* bytes = sqlite3_column_text(statement_, at);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, at));
    return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
  }

  // Empty where it ran to its end.
  Problems problems(const std::string& path, const std::string& doing) const {
    if (code_ == SQLITE_DONE || code_ == SQLITE_OK || code_ == SQLITE_ROW) return {};
    return {{ProblemKind::file, path, sentence(doing, ": ", sqlite3_errmsg(database_))}};
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
};

Problems run(sqlite3* database, const std::string& path, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return {{ProblemKind::file, path, sentence("cannot be written: ", sqlite3_errmsg(database))}};
}

std::string column_names() {
  std::string names;
  for (const SweepColumn& c : sweep_columns()) names += sentence(names.empty() ? "" : ",", c.name);
  return names;
}

std::string type_name(SweepType type) {
  return type == SweepType::integer ? "INTEGER" : type == SweepType::real ? "REAL" : "TEXT";
}

// The first column, the point, is the key.
std::string tables() {
  std::string columns;
  for (const SweepColumn& c : sweep_columns())
    columns += sentence(columns.empty() ? "" : ", ", c.name, ' ', type_name(c.type),
                        columns.empty() ? " PRIMARY KEY" : "");
  return sentence(
      "CREATE TABLE study(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE results(",
      columns,
      ");"
      "CREATE TABLE work(point INTEGER PRIMARY KEY REFERENCES results(point), rank INTEGER NOT "
      "NULL, host TEXT NOT NULL, took_s REAL NOT NULL, finished_utc TEXT NOT NULL);");
}

std::string insertion() {
  std::string places;
  for (std::size_t i = 0; i < sweep_columns().size(); ++i) places += i == 0 ? "?" : ",?";
  return sentence("INSERT OR REPLACE INTO results(", column_names(), ") VALUES(", places, ")");
}

Problem no_sweep(const std::string& path) {
  return {ProblemKind::file, path, "is not a file of shardwise sweep"};
}

}  // namespace

void SweepStore::CloseDatabase::operator()(sqlite3* database) const { sqlite3_close(database); }

SweepStore::SweepStore(std::string path, std::optional<SoleWriter> writer)
    : path_(std::move(path)), writer_(std::move(writer)) {}

Problems SweepStore::open(int flags) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK)
    return {{ProblemKind::file, path_,
             sentence("cannot be opened: ",
                      database == nullptr ? "no memory left" : sqlite3_errmsg(database))}};
  sqlite3_busy_timeout(database, patience_ms);
  return {};
}

// True of a file that nothing was ever written to, as after a kill at the very beginning.
bool SweepStore::is_empty() const {
  Statement s(database_.get(), "SELECT count(*) FROM sqlite_master");
  return s.step() && s.integer(0) == 0;
}

Problems SweepStore::begin(const SweepHeader& header) {
  header_ = header;
  Problems problems = run(database_.get(), path_,
                          sentence("BEGIN; PRAGMA application_id=", application_id,
                                   "; PRAGMA user_version=", format_version, ";", tables()));
  const std::pair<const char*, std::string> entries[] = {{"name", header.name},
                                                         {"fingerprint", header.study},
                                                         {"facts", header.facts},
                                                         {"text", header.text},
                                                         {"points", std::to_string(header.points)}};
  for (const auto& [key, value] : entries) {
    if (!problems.empty()) return problems;
    Statement s(database_.get(), "INSERT INTO study(key, value) VALUES(?, ?)");
    s.bind(1, std::string(key));
    s.bind(2, value);
    s.step();
    problems = s.problems(path_, "cannot be written");
  }
  return problems.empty() ? run(database_.get(), path_, "COMMIT") : problems;
}

Problems SweepStore::read_header() {
  Statement id(database_.get(), "PRAGMA application_id");
  if (!id.step()) return id.problems(path_, "cannot be read");
  if (id.integer(0) != application_id) return {no_sweep(path_)};
  Statement version(database_.get(), "PRAGMA user_version");
  Statement columns(database_.get(), "SELECT group_concat(name) FROM pragma_table_info('results')");
  if (!version.step() || version.integer(0) != format_version || !columns.step() ||
      columns.text(0) != column_names())
    return {{ProblemKind::file, path_,
             "was begun by another version of shardwise, whose results have other columns"}};
  Statement s(database_.get(), "SELECT key, value FROM study");
  while (s.step()) {
    const std::string key = s.text(0);
    if (key == "name") header_.name = s.text(1);
    if (key == "fingerprint") header_.study = s.text(1);
    if (key == "facts") header_.facts = s.text(1);
    if (key == "text") header_.text = s.text(1);
    if (key == "points") header_.points = std::atoll(s.text(1).c_str());
  }
  if (header_.points < 1 || header_.points > study_max_points) return {no_sweep(path_)};
  return s.problems(path_, "cannot be read");
}

Problems SweepStore::check_same(const SweepHeader& header) const {
  if (header.study != header_.study)
    return {{ProblemKind::file, path_,
             sentence("holds another study (", counted(header_.points, "point"), ", \"",
                      printable(header_.name),
                      "\"); expected the one it was begun with, or --out "
                      "with another name")}};
  if (header.facts != header_.facts)
    return {{ProblemKind::file, path_,
             "was begun with another catalog or other model files: results of both would not be "
             "comparable; expected --out with another name"}};
  return {};
}

Result<SweepStore> SweepStore::to_write(const std::string& path, const SweepHeader& header) {
  auto writer = SoleWriter::of(path);
  if (!writer) return writer.error();
  SweepStore store(path, *std::move(writer));
  Problems problems = store.open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!problems.empty()) return problems;
  const bool is_new = store.is_empty();
  if (!is_new) {  // nothing is changed in a file that is not ours
    problems = store.read_header();
    if (problems.empty()) problems = store.check_same(header);
    if (!problems.empty()) return problems;
  }
  problems = run(store.database_.get(), path,
                 "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON");
  if (problems.empty() && is_new) problems = store.begin(header);
  if (!problems.empty()) return problems;
  return store;
}

Result<SweepStore> SweepStore::create(const std::string& path, const SweepHeader& header) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    return Problem{ProblemKind::file, path,
                   "is there already; --resume goes on with it, --out names another"};
  return to_write(path, header);
}

Result<SweepStore> SweepStore::resume(const std::string& path, const SweepHeader& header) {
  return to_write(path, header);
}

Result<SweepStore> SweepStore::read(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return Problem{ProblemKind::file, path, "is no file that can be read"};
  SweepStore store(path, std::nullopt);
  // Whoever may write clears away the log of a sweep that was killed.
  Problems problems = store.open(SQLITE_OPEN_READWRITE);
  if (!problems.empty()) problems = store.open(SQLITE_OPEN_READONLY);
  if (problems.empty()) problems = run(store.database_.get(), path, "PRAGMA query_only=ON");
  if (problems.empty()) problems = store.read_header();
  if (!problems.empty()) return problems;
  return store;
}

Problems SweepStore::add(const SweepRow& row, const PointWork& work) {
  require(writer_.has_value(), "a store that may be written");
  Problems problems = run(database_.get(), path_, "BEGIN IMMEDIATE");
  if (!problems.empty()) return problems;
  Statement result(database_.get(), insertion());
  for (std::size_t i = 0; i < row.size(); ++i) result.bind(static_cast<int>(i) + 1, row[i]);
  result.step();
  Statement by(database_.get(),
               "INSERT OR REPLACE INTO work(point, rank, host, took_s, finished_utc) "
               "VALUES(?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))");
  by.bind(1, row.front());
  by.bind(2, std::int64_t{work.rank});
  by.bind(3, work.host);
  by.bind(4, work.took.value);
  by.step();
  problems = result.problems(path_, "cannot be written");
  if (problems.empty()) problems = by.problems(path_, "cannot be written");
  const Problems ended = run(database_.get(), path_, problems.empty() ? "COMMIT" : "ROLLBACK");
  return problems.empty() ? ended : problems;
}

Problems SweepStore::checkpoint() {
  return run(database_.get(), path_, "PRAGMA wal_checkpoint(PASSIVE)");
}

Result<std::vector<bool>> SweepStore::finished() const {
  std::vector<bool> has(static_cast<std::size_t>(header_.points), false);
  Statement s(database_.get(),
              sentence("SELECT point FROM results WHERE verdict <> '", sweep_failed, "'"));
  while (s.step()) {
    const std::int64_t point = s.integer(0);
    if (point < 0 || point >= header_.points) return no_sweep(path_);
    has[static_cast<std::size_t>(point)] = true;
  }
  if (const Problems problems = s.problems(path_, "cannot be read"); !problems.empty())
    return problems;
  return has;
}

Problems SweepStore::for_each(const std::function<void(const SweepRow&)>& look) const {
  return select("ORDER BY point", look);
}

Result<std::vector<SweepRow>> SweepStore::rows() const {
  std::vector<SweepRow> rows;
  const Problems problems = for_each([&](const SweepRow& row) { rows.push_back(row); });
  if (!problems.empty()) return problems;
  return rows;
}

Result<SweepRow> SweepStore::row(std::int64_t point) const {
  std::vector<SweepRow> found;
  const Problems problems =
      select(sentence("WHERE point = ", point), [&](const SweepRow& row) { found.push_back(row); });
  if (!problems.empty()) return problems;
  if (found.empty()) return no_sweep(path_);
  return std::move(found.front());
}

Problems SweepStore::select(const std::string& which,
                            const std::function<void(const SweepRow&)>& look) const {
  Statement s(database_.get(), sentence("SELECT ", column_names(), " FROM results ", which));
  SweepRow row(sweep_columns().size());
  while (s.step()) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = s.column(static_cast<int>(i));
    look(row);
  }
  return s.problems(path_, "cannot be read");
}

}  // namespace shardwise
