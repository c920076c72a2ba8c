// The facts that points lean on: each point gets those that `simulate` would load for it; points
// about the same kinds of GPUs and the same profile share them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "catalog/operations.hpp"
#include "planner/facts.hpp"
#include "planner/request/request.hpp"
#include "planner/sweep/study.hpp"

namespace shardwise {

class PointFacts {
 public:
  static Result<std::unique_ptr<PointFacts>> load(const std::filesystem::path& root);

  // From any thread. What is returned lives as long as this.
  Result<const Facts*> of(const Request& request);
  const Operations& operations() const { return operations_; }

 private:
  PointFacts(std::filesystem::path root, Catalog catalog, Operations operations);
  std::string kind_of(const Request& request) const;

  std::filesystem::path root_;
  Catalog catalog_;
  Operations operations_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const Facts>> loaded_;  // by kind_of
};

// The same on two machines, or on two days, that answer from the same data: the catalog without its
// published runs, and the files that the study names (models, profiles, plans). 16 hexadecimal
// digits.
std::string facts_fingerprint(const std::filesystem::path& root, const Study& study);

}  // namespace shardwise
