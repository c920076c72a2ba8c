#include <algorithm>
#include <utility>
#include <vector>

#include "planner/advice/advice_changes.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Some of the small changes, by their places in the list.
using Changes = std::vector<std::size_t>;

struct Changed {
  Question question;
  std::vector<std::string> words;
};

// `sequence`: tokens; as they are where nobody shortens them.
Changed changed_by(const AdviceTrial& t, const Changes& changes, int sequence) {
  Changed made{t.question(), {}};
  for (const std::size_t i : changes)
    if (const auto words = small_changes[i](t, made.question)) made.words.push_back(words->change);
  if (sequence != t.question().workload.sequence) made.question.workload.sequence = sequence;
  return made;
}

// Those that change something.
Changes all_changes(const AdviceTrial& t) {
  Changes all;
  for (std::size_t i = 0; i < small_changes.size(); ++i) {
    Question q = t.question();
    if (small_changes[i](t, q)) all.push_back(i);
  }
  return all;
}

std::optional<ChosenPlan> fits_by(const AdviceTrial& t, const Changes& changes, int sequence) {
  return fits_with(t, changed_by(t, changes, sequence).question);
}

// Of changes that fit together: those without which they do not, the dearest left out first.
Changes needed_of(const AdviceTrial& t, Changes all, int sequence) {
  for (std::size_t i = all.size(); i-- > 0 && all.size() > 1;) {
    Changes fewer = all;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits_by(t, fewer, sequence)) all = std::move(fewer);
  }
  return all;
}

// The first pair that fits, the cheaper ones first; else those needed of all.
Changes fewest_of(const AdviceTrial& t, const Changes& all, int sequence) {
  if (all.size() == 2) return all;
  for (std::size_t dearer = 1; dearer < all.size(); ++dearer)
    for (std::size_t i = 0; i < dearer; ++i)
      if (Changes pair{all[i], all[dearer]}; fits_by(t, pair, sequence)) return pair;
  return needed_of(t, all, sequence);
}

}  // namespace

bool advise_together(AdviceTrial& t) {
  const int sequence = t.question().workload.sequence;
  const Changes all = all_changes(t);
  if (all.size() < 2 || !fits_by(t, all, sequence)) return false;
  const Changes fewest = fewest_of(t, all, sequence);
  const Changed made = changed_by(t, fewest, sequence);
  return offer(t, sentence(listed(made.words), " together"), made.question);
}

void advise_shorter_together(AdviceTrial& t, int alone) {
  const Changes all = all_changes(t);
  if (all.empty()) return;
  for (int s = t.request.sequence / 2; s > std::max(alone, 511); s /= 2) {
    if (!fits_by(t, all, s)) continue;
    const Changed made = changed_by(t, needed_of(t, all, s), s);
    offer(t,
          sentence(listed(made.words), " and sequences of ", grouped(s), " tokens instead of ",
                   grouped(t.request.sequence)),
          made.question);
    return;
  }
}

}  // namespace shardwise
