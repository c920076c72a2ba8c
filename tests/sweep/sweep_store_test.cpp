#include "planner/sweep/sweep_store.hpp"

#include <fstream>

#include "tests/catch.hpp"
#include "tests/sweep/sweep_folder.hpp"

using namespace shardwise;

namespace {

const SweepHeader header{"a name", "0123456789abcdef", "fedcba9876543210", "{}", 3};

// Every kind of value, text with a quote and a NUL byte among them.
SweepRow row_of(std::int64_t point, const char* verdict = "fits") {
  SweepRow row(sweep_columns().size());
  row[sweep_column("point")] = point;
  row[sweep_column("verdict")] = std::string(verdict);
  row[sweep_column("model")] = std::string("it's\0a \"model\"", 14);
  row[sweep_column("parameters")] = std::int64_t{1} << 62;
  row[sweep_column("step_time_s")] = 0.1;
  row[sweep_column("mfu")] = 2.0;  // a whole number stays a real one
  return row;
}

std::string problem_of(const Result<SweepStore>& store) {
  return store ? "" : store.error().front().what;
}

}  // namespace

TEST_CASE("what a store is given is there when it is opened again", "[sweep]") {
  const SweepFolder folder;
  {
    auto store = SweepStore::create(folder / "s.sqlite", header);
    REQUIRE(store);
    CHECK(store->add(row_of(2), {1, "host", Seconds(0.5)}).empty());
    CHECK(store->add(row_of(0, "failed"), {}).empty());
    // A reader sees what is finished while the writer goes on.
    const auto reader = SweepStore::read(folder / "s.sqlite");
    REQUIRE(reader);
    CHECK(reader->rows()->size() == 2);
  }
  auto store = SweepStore::resume(folder / "s.sqlite", header);
  REQUIRE(store);
  CHECK(store->header().name == "a name");
  CHECK(store->header().points == 3);
  // By point: 0 failed by a bug and is tried again, 1 is missing, 2 is there.
  CHECK(*store->finished() == std::vector<bool>{false, false, true});
  CHECK(*store->rows() == std::vector<SweepRow>{row_of(0, "failed"), row_of(2)});
  CHECK(*store->row(2) == row_of(2));
  // A second try takes the place of the first.
  CHECK(store->add(row_of(0), {}).empty());
  CHECK(*store->rows() == std::vector<SweepRow>{row_of(0), row_of(2)});
}

TEST_CASE("a store is only gone on with by the study that began it", "[sweep]") {
  const SweepFolder folder;
  const std::string path = folder / "s.sqlite";
  REQUIRE(SweepStore::create(path, header));
  CHECK(problem_of(SweepStore::create(path, header)).find("--resume") != std::string::npos);
  SweepHeader other = header;
  other.study = "another";
  CHECK(problem_of(SweepStore::resume(path, other)).find("another study") != std::string::npos);
  other = header;
  other.facts = "another";
  CHECK(problem_of(SweepStore::resume(path, other)).find("another catalog") != std::string::npos);
  CHECK(SweepStore::resume(path, header));
}

TEST_CASE("one process writes a store", "[sweep]") {
  const SweepFolder folder;
  const auto first = SweepStore::create(folder / "s.sqlite", header);
  REQUIRE(first);
  const auto second = SweepStore::resume(folder / "s.sqlite", header);
  CHECK(problem_of(second) == "another sweep is writing it");
}

TEST_CASE("what is no sweep is refused, and what was barely begun is begun", "[sweep]") {
  const SweepFolder folder;
  std::ofstream(folder / "text") << "this is no database, and long enough not to look like one";
  CHECK_FALSE(SweepStore::read(folder / "text"));
  CHECK_FALSE(SweepStore::resume(folder / "text", header));
  CHECK_FALSE(SweepStore::read(folder / "nothing"));
  CHECK_FALSE(SweepStore::create(folder / "nowhere/s.sqlite", header));
  std::ofstream(folder / "empty").flush();
  CHECK_FALSE(SweepStore::read(folder / "empty"));
  CHECK(SweepStore::resume(folder / "empty", header));
  CHECK(SweepStore::read(folder / "empty"));
}

TEST_CASE("a row travels as bytes", "[sweep]") {
  const SweepRow row = row_of(7);
  CHECK(unpacked(packed(row)) == row);
}
