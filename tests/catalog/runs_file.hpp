// Records of runs as a file, for the tests of how they are read.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "catalog/run_record.hpp"

namespace shardwise {

// A file of runs that is removed at the end of the test.
class RunsFile {
 public:
  explicit RunsFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("shardwise-runs-test-" + std::to_string(getpid()) + ".json")) {
    std::ofstream(path_) << text;
  }
  ~RunsFile() { std::filesystem::remove(path_); }
  RunsFile(const RunsFile&) = delete;
  RunsFile& operator=(const RunsFile&) = delete;
  Result<Runs> load() const { return load_runs(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace shardwise
