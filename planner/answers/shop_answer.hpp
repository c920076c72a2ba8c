// What `shop` answers: which cards to buy, or which machines to rent, for an amount of training.
//
//   buy    launch price of the cards + electricity of the run   (the box around them not counted)
//   rent   hours of the run x price per hour, on demand
//
// A rented machine has the host RAM that its offer says, or that of the catalogued node it is:
// offloading may use it.
// Every offer is judged by the plan that `fit` would choose on it and the one predictor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/operations.hpp"
#include "planner/answers/plan_starts.hpp"
#include "planner/request/resolved_request.hpp"
#include "planner/search/plan_choice.hpp"

namespace shardwise {

struct ShopOffer {
  std::string gpus;                    // "2xrtx-3090", as a request says it
  const CloudPrice* rented = nullptr;  // nullptr: bought
  UsDollars price;                     // of the cards, or per hour
  std::string date;                    // of the price
  std::optional<Bytes> host_ram;       // stated, or that of the machine which is rented
  // Of the run, where some plan runs there:
  Verdict verdict = Verdict::does_not_fit;
  std::optional<Question> question;  // the plan chosen, and where it runs
  PlanStarts starts;                 // which launch targets start it
  Interval<Seconds> step;
  Seconds time;
  UsDollars electricity;  // bought only
  UsDollars total;
};

inline constexpr std::size_t most_offers_shown = 20;  // the cheapest: a screen of them

struct ShopAnswer {
  ResolvedRequest request;  // of one offer
  UsDollars budget;
  Method method = Method::qlora;
  std::int64_t sequences = 0;
  std::vector<ShopOffer> offers;  // that run and cost no more than the budget, cheapest first
  int do_not_fit = 0, too_dear = 0;
  std::vector<std::string> notes;
};

// `request` without GPUs; its samples or tokens say how much is trained, else 10,000 sequences, its
// budget how much that may cost, else 3,000 US dollars.
Result<ShopAnswer> shop_answer(const Request& request, const Facts& facts,
                               const Operations& operations);

}  // namespace shardwise
