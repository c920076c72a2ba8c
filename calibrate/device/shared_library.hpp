// Libraries that are looked for when the program runs, not when it starts: a box without NCCL, or
// without cuBLAS, still calibrates what it can.
#pragma once

#include <string>
#include <vector>

namespace shardwise {

class SharedLibrary {
 public:
  // The first of `names` that the loader finds: as it stands, then in the toolkit's usual folders.
  // None: is_open() is false and `missing` has the first name.
  explicit SharedLibrary(const std::vector<std::string>& names);

  bool is_open() const { return handle_ != nullptr; }
  // Nothing is missing: the library and every symbol asked for are there.
  bool complete() const { return missing_.empty(); }
  const std::string& missing() const { return missing_; }

  template <class Function>
  void resolve(const char* symbol, Function& into) {
    into = reinterpret_cast<Function>(address(symbol));
  }

 private:
  void* address(const char* symbol);

  void* handle_ = nullptr;  // never closed: such libraries leave threads behind
  std::string missing_;     // the first thing that was not there
};

}  // namespace shardwise
