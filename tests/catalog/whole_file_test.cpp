#include "catalog/whole_file.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/catch.hpp"

using namespace shardwise;
namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct ScratchFolder {
  fs::path path = fs::temp_directory_path() / "shardwise_whole_file_test";
  ScratchFolder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~ScratchFolder() { fs::remove_all(path); }
  auto files() const {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  }
};

}  // namespace

TEST_CASE("a file is written whole, over what was there, and nothing is left beside it") {
  const ScratchFolder folder;
  const std::string path = (folder.path / "t.json").string();
  CHECK(write_whole_file(path, [](std::ostream& out) { out << "first"; }).empty());
  CHECK(write_whole_file(path, [](std::ostream& out) { out << "second"; }).empty());
  CHECK(content(path) == "second");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that cannot be written is a file problem, and what was there stays") {
  const ScratchFolder folder;
  const auto missing = write_whole_file((folder.path / "no" / "t.json").string(),
                                        [](std::ostream& out) { out << "x"; });
  REQUIRE(missing.size() == 1);
  CHECK(missing.front().kind == ProblemKind::file);
  const auto is_folder =
      write_whole_file(folder.path.string(), [](std::ostream& out) { out << "x"; });
  REQUIRE(is_folder.size() == 1);
  CHECK(is_folder.front().what == "cannot be written: it is a folder");
  const std::string path = (folder.path / "t.json").string();
  CHECK(write_whole_file(path, [](std::ostream& out) { out << "old"; }).empty());
  const auto failed =
      write_whole_file(path, [](std::ostream& out) { out.setstate(std::ios::badbit); });
  CHECK(failed.size() == 1);
  CHECK(content(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("what throws while it writes leaves nothing beside the file") {
  const ScratchFolder folder;
  const std::string path = (folder.path / "t.json").string();
  CHECK(write_whole_file(path, [](std::ostream& out) { out << "old"; }).empty());
  CHECK_THROWS(write_whole_file(path, [](std::ostream&) { throw std::runtime_error("no"); }));
  CHECK(content(path) == "old");
  CHECK(folder.files() == 1);
}

// The second is written while the first is half done, as another thread may: both are whole.
TEST_CASE("two writes of the same file at once do not mix") {
  const ScratchFolder folder;
  const std::string path = (folder.path / "t.json").string();
  const auto first = write_whole_file(path, [&](std::ostream& out) {
    out << "first ";
    out.flush();
    CHECK(write_whole_file(path, [](std::ostream& other) { other << "second"; }).empty());
    CHECK(content(path) == "second");
    out << "whole";
  });
  CHECK(first.empty());
  CHECK(content(path) == "first whole");
  CHECK(folder.files() == 1);
}

// Whoever may write to /dev may otherwise end up with a plain file for /dev/null.
TEST_CASE("a pipe is written into, not replaced") {
  const ScratchFolder folder;
  const fs::path pipe = folder.path / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::fstream reader(pipe, std::ios::in | std::ios::out);  // opening to write alone would wait
  REQUIRE(reader);
  CHECK(write_whole_file(pipe.string(), [](std::ostream& out) { out << "told\n"; }).empty());
  std::string line;
  CHECK(std::getline(reader, line));
  CHECK(line == "told");
  CHECK(fs::is_fifo(pipe));
  CHECK(folder.files() == 1);
}

TEST_CASE("a link stays a link, and what it leads to is written") {
  const ScratchFolder folder;
  const fs::path target = folder.path / "target.json", link = folder.path / "link.json";
  CHECK(write_whole_file(target.string(), [](std::ostream& out) { out << "old"; }).empty());
  fs::create_symlink(target, link);
  CHECK(write_whole_file(link.string(), [](std::ostream& out) { out << "new"; }).empty());
  CHECK(fs::is_symlink(link));
  CHECK(content(target) == "new");
  CHECK(folder.files() == 2);
}
