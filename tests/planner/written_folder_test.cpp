// Launch files on disk: all of them or none, and nobody's edits are lost without a word.
#include "planner/launch/written_folder.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/catch.hpp"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

struct EmptyFolder {
  fs::path path = fs::temp_directory_path() / ("shardwise-written-" + std::to_string(::getpid()));
  EmptyFolder() { fs::create_directories(path); }
  ~EmptyFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string text(const char* name) const {
    std::ifstream in(path / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void put(const char* name, const char* text) const { std::ofstream(path / name) << text; }
};

const std::vector<LaunchFile> files{{"plan.json", "{}\n"}, {"run.sh", "true\n"}};

}  // namespace

TEST_CASE("the same files are written twice without a word, and scripts may be run") {
  const EmptyFolder folder;
  for (int time = 0; time < 2; ++time) {
    CHECK(write_launch_files(folder.path, files, OtherFiles::refused).empty());
    CHECK(folder.text("plan.json") == "{}\n");
    const fs::perms run = fs::status(folder.path / "run.sh").permissions();
    CHECK((run & fs::perms::owner_exec) != fs::perms::none);
  }
}

TEST_CASE("a file that was edited stays, and so does everything beside it") {
  const EmptyFolder folder;
  folder.put("run.sh", "mine\n");  // as long as what would be written
  const Problems problems = write_launch_files(folder.path, files, OtherFiles::refused);
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().kind == ProblemKind::file);
  CHECK(problems.front().where == (folder.path / "run.sh").string());
  CHECK(problems.front().what.find("--force") != std::string::npos);
  CHECK(folder.text("run.sh") == "mine\n");
  CHECK_FALSE(fs::exists(folder.path / "plan.json"));
  CHECK(write_launch_files(folder.path, files, OtherFiles::replaced).empty());
  CHECK(folder.text("run.sh") == "true\n");
}

TEST_CASE("a folder where the last file belongs keeps the first from being written") {
  for (const OtherFiles others : {OtherFiles::refused, OtherFiles::replaced}) {
    const EmptyFolder folder;
    fs::create_directories(folder.path / "run.sh");
    const Problems problems = write_launch_files(folder.path, files, others);
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().what.find("is a folder") == 0);
    CHECK_FALSE(fs::exists(folder.path / "plan.json"));
  }
}

}  // namespace shardwise
