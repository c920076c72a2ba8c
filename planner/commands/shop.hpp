// `shardwise shop MODEL --budget 3000`: buy which cards, or rent which machines?
#pragma once

#include "planner/commands/output.hpp"
#include "planner/facts.hpp"
#include "planner/request/request.hpp"

namespace CLI {
class App;
}

namespace shardwise {

struct ShopOptions {
  double budget = 3000;  // US dollars
};

void add_shop_flags(CLI::App& command, ShopOptions& options);

int shop(const Request& request, const ShopOptions& options, const Facts& facts,
         const Output& output);

}  // namespace shardwise
