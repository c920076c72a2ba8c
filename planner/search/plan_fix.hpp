// PlanFix: what of a plan is held fixed while the best of all others is sought: "tp=8,pp=4|8".
//
// Each key is one of --plan, with one value or several between bars. A space with a fix holds only
// plans that have these values: it shrinks before anything is searched.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "simulator/parallel_plan.hpp"

namespace shardwise {

class PlanFix {
 public:
  // Problems name --fix. REQUIRES nothing: the text is a user's.
  static Result<PlanFix> parse(const std::string& text);

  bool empty() const { return keys_.empty(); }
  // Whether `value` is among those of the key, or nobody fixed it.
  bool allows(std::string_view key, std::string_view value) const;
  bool allows(const ParallelPlan& plan) const;
  // Of the key, as --plan says them; empty: not fixed.
  std::vector<std::string> values(std::string_view key) const;
  // As it was understood: "tp=8, pp=4 or 8".
  std::string shown() const;

  struct Key {
    std::string name;
    std::vector<std::string> values;
  };
  const std::vector<Key>& keys() const { return keys_; }

 private:
  std::vector<Key> keys_;  // in the order of the text
};

}  // namespace shardwise
