// The corpus of bad catalog files: bad_input/<folder>/<case>.json is put into a catalog as the only
// entry of its folder (named entry.json), and <case>.expect says, line by line, what the problems
// must hold.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "catalog/load.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;
namespace fs = std::filesystem;

namespace {

const fs::path corpus = fs::path(source_dir()) / "tests/catalog/bad_input";

// A folder that goes away with the test.
struct Scratch {
  fs::path path;
  explicit Scratch(const std::string& name)
      : path(fs::temp_directory_path() / ("shardwise-" + name + '-' + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

template <class Kind>
Problems problems_of(const Result<Kind>& loaded) {
  return loaded ? Problems{} : loaded.error();
}

using Load = std::function<Problems(const fs::path&)>;
struct DataFolder {
  std::string name;
  Load load;
};
const std::vector<DataFolder>& folders() {
  static const std::vector<DataFolder> rows{
      {"devices", [](const fs::path& root) { return problems_of(load_gpus(root)); }},
      {"nodes", [](const fs::path& root) { return problems_of(load_nodes(root)); }},
      {"networks", [](const fs::path& root) { return problems_of(load_networks(root)); }},
      {"prices", [](const fs::path& root) { return problems_of(load_prices(root)); }},
  };
  return rows;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string said(const Problems& problems) {
  std::string out;
  for (const Problem& p : problems) out += p.where + ": " + p.what + '\n';
  return out;
}

Problems load_alone(const DataFolder& folder, const fs::path& file) {
  const Scratch root("bad-" + folder.name);
  fs::create_directories(root.path / folder.name);
  fs::copy_file(file, root.path / folder.name / "entry.json");
  return folder.load(root.path);
}

}  // namespace

TEST_CASE("every bad catalog file is refused with its place and what was expected") {
  int cases = 0;
  for (const DataFolder& folder : folders()) {
    for (const auto& entry : fs::directory_iterator(corpus / folder.name)) {
      if (entry.path().extension() != ".json") continue;
      ++cases;
      const Problems problems = load_alone(folder, entry.path());
      const std::string text = said(problems);
      fs::path expected = entry.path();
      const auto fragments = lines_of(expected.replace_extension(".expect"));
      INFO(entry.path() << " said:\n" << text);
      REQUIRE_FALSE(fragments.empty());
      for (const std::string& fragment : fragments) {
        INFO("expected: " << fragment);
        CHECK(text.find(fragment) != std::string::npos);
      }
      // One clear problem each, but for the files that are wrong in several places.
      std::size_t places = 0;
      for (const std::string& fragment : fragments) places += fragment.find(": ") < fragment.size();
      CHECK(problems.size() <= std::max<std::size_t>(1, places));
      for (const Problem& p : problems) CHECK(p.kind == ProblemKind::file);
    }
  }
  CHECK(cases >= 60);
}

TEST_CASE("a device of a hundred megabytes of brackets is refused unread") {
  const Scratch root("brackets");
  fs::create_directories(root.path / "devices");
  {
    std::ofstream out(root.path / "devices/entry.json", std::ios::binary);
    const std::string megabyte(1'000'000, '[');
    for (int i = 0; i < 100; ++i) out << megabyte;
  }
  CHECK(said(problems_of(load_gpus(root.path))) ==
        "devices/entry.json: larger than 16 MiB, the most that is read\n");
}

TEST_CASE("a file that never ends is read no further than the limit") {
  const Scratch root("endless");
  fs::create_directories(root.path / "devices");
  fs::create_symlink("/dev/zero", root.path / "devices/entry.json");
  CHECK(said(problems_of(load_gpus(root.path))) ==
        "devices/entry.json: larger than 16 MiB, the most that is read\n");
}

TEST_CASE("a folder that is missing, empty or holds a folder named like a file") {
  const Scratch root("folders");
  CHECK(said(problems_of(load_gpus(root.path))).find("cannot be listed") != std::string::npos);
  fs::create_directories(root.path / "devices");
  CHECK(said(problems_of(load_gpus(root.path))).find("holds no .json file") != std::string::npos);
  fs::create_directories(root.path / "devices/entry.json");
  CHECK(said(problems_of(load_gpus(root.path))).find("devices/entry.json: cannot be read") == 0);
}

TEST_CASE("problems of all files of a folder are reported together") {
  const Scratch root("together");
  fs::create_directories(root.path / "devices");
  for (const char* name : {"memory-negative", "nan"}) {
    const fs::path from = corpus / "devices" / (std::string(name) + ".json");
    fs::copy_file(from, root.path / "devices" / (std::string(name) + ".json"));
  }
  const std::string text = said(problems_of(load_gpus(root.path)));
  CHECK(text.find("devices/memory-negative.json:/memory_gib") != std::string::npos);
  CHECK(text.find("devices/nan.json: not valid JSON") != std::string::npos);
}
