// A folder of a test's own, removed at its end, and the study that the tests of this folder share.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "catalog/require.hpp"
#include "planner/sweep/sweep_desk.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

class SweepFolder {
 public:
  SweepFolder() {
    const std::string pattern = "shardwise-sweep-" + std::string(6, 'X');  // as mkdtemp wants it
    std::string name = (std::filesystem::temp_directory_path() / pattern).string();
    require(mkdtemp(name.data()) != nullptr, "a folder for the test");
    path_ = name;
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;
  ~SweepFolder() { std::filesystem::remove_all(path_); }

  std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline PointFacts& point_facts() {
  static const std::unique_ptr<PointFacts> facts = [] {
    auto loaded = PointFacts::load(source_dir() + "/catalog");
    require(static_cast<bool>(loaded), "the repository's catalog loads");
    return *std::move(loaded);
  }();
  return *facts;
}

// 2 models x 2 sizes x 3 plans: answers that fit, answers that do not, and refusals.
inline OpenedStudy small_study() {
  const std::string text = R"({
    "name": "small", "base": {"method": "full", "batch": 16, "sequence": 512},
    "axes": {"model": ["gpt2", "llama-3.1-8b"], "gpus": ["2xRTX-4090", "4xRTX-4090"],
             "plans": ["fit", "dp=2,zero=3", "tp=2"]}})";
  auto study = read_study_text(text, "small.json");
  require(static_cast<bool>(study), "the test's study is right");
  return {*std::move(study), text};
}

}  // namespace shardwise
