// The facts that the tests of this folder share: the repository's own catalog, loaded once.
#pragma once

#include <string>

#include "catalog/require.hpp"
#include "planner/request/resolved_request.hpp"
#include "tests/source_dir.hpp"

namespace shardwise {

inline const Facts& known_facts() {
  static const Facts facts = [] {
    auto loaded = load_facts(source_dir() + "/catalog", std::nullopt);
    require(static_cast<bool>(loaded), "the repository's catalog loads");
    return *std::move(loaded);
  }();
  return facts;
}

inline Request request_for(const std::string& model, const std::string& gpus,
                           std::vector<Method> methods = {}) {
  Request r;
  r.model = model;
  r.gpus = gpus;
  r.methods = std::move(methods);
  return r;
}

// REQUIRES a request that can be resolved.
inline ResolvedRequest resolved(const Request& request) {
  auto r = resolve(request, known_facts(), UnnamedMethods::fine_tuning);
  require(static_cast<bool>(r), "the test's request is right");
  return *std::move(r);
}

}  // namespace shardwise
