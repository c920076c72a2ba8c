// SoleWriter: the right to write a file, held by one process of this machine at a time. A lock on
// FILE.lock, which the system drops when the process ends, however it ends.
#pragma once

#include <string>

#include "catalog/result.hpp"

namespace shardwise {

class SoleWriter {
 public:
  // Problems{file} where another process holds it, or the folder cannot be written.
  static Result<SoleWriter> of(const std::string& path);

  SoleWriter(SoleWriter&& other) noexcept;
  SoleWriter& operator=(SoleWriter&&) = delete;
  ~SoleWriter();  // removes the lock file

 private:
  SoleWriter(std::string lock, int descriptor);

  std::string lock_;
  int descriptor_ = -1;
};

}  // namespace shardwise
