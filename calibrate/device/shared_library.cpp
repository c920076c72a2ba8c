#include "calibrate/device/shared_library.hpp"

#include <dlfcn.h>

namespace shardwise {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"})
    for (const std::string& name : names) {
      handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) return;
    }
  missing_ = names.front();
}

void* SharedLibrary::address(std::initializer_list<const char*> symbols) {
  for (const char* symbol : symbols) {
    void* found = handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
    if (found != nullptr) return found;
  }
  if (missing_.empty()) missing_ = *symbols.begin();
  return nullptr;
}

}  // namespace shardwise
