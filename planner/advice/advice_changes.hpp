// Small changes to a question: the method, the cards, the sequences and how many of them make a
// step stay. Each may fit alone (advice.cpp) or with others (advice_together.cpp).
#pragma once

#include <array>
#include <optional>
#include <string>

#include "planner/advice/advice_trial.hpp"

namespace shardwise {

// In words; "--fused-loss", and what that is.
struct ChangeWords {
  std::string change;
  std::string meaning = {};

  std::string whole() const { return meaning.empty() ? change : change + ": " + meaning; }
};

// Changes `q`, the question that missed or what others have made of it; nothing where that changes
// nothing.
using SmallChange = std::optional<ChangeWords> (*)(const AdviceTrial& t, Question& q);

std::optional<ChangeWords> grow_segments(const AdviceTrial& t, Question& q);
std::optional<ChangeWords> quantize_constants(const AdviceTrial& t, Question& q);
std::optional<ChangeWords> fuse_loss(const AdviceTrial& t, Question& q);
std::optional<ChangeWords> pass_one_sequence(const AdviceTrial& t, Question& q);
std::optional<ChangeWords> redo_everything(const AdviceTrial& t, Question& q);
// Of a plan that was asked for; else every stage has been tried.
std::optional<ChangeWords> shard_everything(const AdviceTrial& t, Question& q);

// Every one, the cheapest in time first. Sharding comes before what changes the workload in its
// turn: its stage may decide on another engine of the framework.
inline constexpr std::array<SmallChange, 6> small_changes{shard_everything,   grow_segments,
                                                          quantize_constants, fuse_loss,
                                                          pass_one_sequence,  redo_everything};

// advice_together.cpp: the smallest set of small changes that makes it fit, where none does alone;
// true where there is one.
bool advise_together(AdviceTrial& t);

// With shorter sequences, where small changes are not enough, but leave more of a sequence than the
// `alone` tokens that are left where nothing else changes (0: none).
void advise_shorter_together(AdviceTrial& t, int alone);

}  // namespace shardwise
