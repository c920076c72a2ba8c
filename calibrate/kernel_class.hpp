// KernelClass: which operator a GPU kernel serves, by its name (catalog/kernel_classes.json).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

// Rows are tried in order; the first that holds one of its words, wherever it stands and in lower
// case, wins.
struct KernelClass {
  std::string name;  // "gemm", "attention_forward", "collective", "elementwise"
  std::vector<std::string> words;
};

// `root` is the catalog's.
Result<std::vector<KernelClass>> load_kernel_classes(const std::filesystem::path& root);

// "other" where no row holds a word of the name.
std::string_view kernel_class(const std::vector<KernelClass>& rows, std::string_view kernel);

}  // namespace shardwise
