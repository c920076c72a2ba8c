// Libraries that are looked for when the program runs, not when it starts: a box without NCCL, or
// without cuBLAS, still calibrates what it can.
#pragma once

#include <initializer_list>
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

  // The first of `symbols` that it has: the same function under a newer and an older name.
  template <class Function, class... Symbols>
  void resolve(Function& into, Symbols... symbols) {
    into = reinterpret_cast<Function>(address({symbols...}));
  }

 private:
  void* address(std::initializer_list<const char*> symbols);

  void* handle_ = nullptr;  // never closed: such libraries leave threads behind
  std::string missing_;     // the first thing that was not there
};

}  // namespace shardwise
