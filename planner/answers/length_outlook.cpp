#include "planner/answers/length_outlook.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "planner/on_all_cores.hpp"

namespace shardwise {
namespace {

constexpr std::uint64_t draw_seed = 2026;  // any will do, as long as it stays
constexpr int most_classes = 32;
constexpr std::size_t most_steps = 4096;  // drawn

// The same order with every standard library.
std::vector<int> shuffled(std::vector<int> lengths) {
  std::mt19937_64 random(draw_seed);
  for (std::size_t left = lengths.size(); left > 1; --left)
    std::swap(lengths[left - 1], lengths[random() % left]);
  return lengths;
}

// What the step of a plan is drawn from, in the order of its microbatches and data ranks.
struct Draw {
  std::vector<int> lengths;  // of microbatches: step, then accumulation, then rank
  std::int64_t tokens = 0;   // of samples
  std::size_t steps = 0;
};

// A sample of a vision model has its images at the least.
Draw drawn(const ResolvedRequest& r, const ParallelPlan& plan) {
  const std::vector<int> samples = shuffled(r.lengths->tokens);
  const int least = std::min(r.sequence, r.images.images * r.images.tokens);
  const auto batch = static_cast<std::size_t>(plan.global_batch());
  Draw d;
  d.steps = std::clamp(samples.size() / batch, std::size_t{1}, most_steps);
  const auto together = static_cast<std::size_t>(plan.microbatch);
  for (std::size_t i = 0; i < d.steps * batch; ++i) {
    const int length = std::clamp(samples[i % samples.size()], std::max(least, 1), r.sequence);
    if (i % together == 0) d.lengths.push_back(0);
    d.lengths.back() = std::max(d.lengths.back(), length);
    d.tokens += length;
  }
  return d;
}

// What sequences are padded to so that context and sequence parallelism cut them evenly.
int multiple_of(const ParallelPlan& plan) {
  return (plan.context > 1 ? 2 * plan.context : 1) * (plan.sequence_parallel ? plan.tensor : 1);
}

// The time of a step whose microbatches all have the length of one class.
using ClassTimes = std::vector<Seconds>;

int class_of(int length, int sequence) {
  const int width = (sequence + most_classes - 1) / most_classes;
  return (length - 1) / width;
}

std::optional<ClassTimes> class_times(const ResolvedRequest& r, const Question& q,
                                      const std::vector<int>& lengths) {
  std::vector<std::int64_t> sum(most_classes), number(most_classes);
  for (const int length : lengths) {
    const auto at = static_cast<std::size_t>(class_of(length, r.sequence));
    sum[at] += length;
    ++number[at];
  }
  ClassTimes times(most_classes);
  std::vector<char> failed(most_classes);
  on_all_cores(times.size(), [&](std::size_t at) {
    if (number[at] == 0) return;
    const std::int64_t step = multiple_of(q.plan), mean = (sum[at] + number[at] / 2) / number[at];
    Question shorter = q;
    shorter.workload.sequence =
        static_cast<int>(std::min<std::int64_t>(r.sequence, (mean + step - 1) / step * step));
    // Paged states cross to the host where memory is short, which takes its play to know.
    const auto f =
        forecast(shorter, r.facts->profile, {.memory = shorter.workload.optimizer->paged});
    failed[at] = f ? 0 : 1;
    if (f) times[at] = f->step_time.expected;
  });
  if (std::any_of(failed.begin(), failed.end(), [](char c) { return c != 0; })) return std::nullopt;
  return times;
}

// Whether data ranks meet in every microbatch.
bool meets_in_microbatches(const Question& q) {
  return shards_weights(q.workload.framework, q.plan) ||
         reduces_every_microbatch(q.workload.framework, q.plan);
}

// Of all steps drawn. A class's time is that of a step of `microbatches` of its kind, so each of
// them counts for its part.
Seconds time_of(const Draw& d, const Question& q, const ClassTimes& times, int sequence) {
  const auto ranks = static_cast<std::size_t>(q.plan.data);
  const auto rounds = static_cast<std::size_t>(q.plan.microbatches);
  const bool meets = meets_in_microbatches(q);
  double all = 0;
  for (std::size_t step = 0; step < d.steps; ++step) {
    std::vector<double> busy(ranks);
    double together = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      double slowest = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const int length = d.lengths[(step * rounds + round) * ranks + rank];
        const double time = times[static_cast<std::size_t>(class_of(length, sequence))].value;
        busy[rank] += time;
        slowest = std::max(slowest, time);
      }
      together += slowest;
    }
    all += (meets ? together : *std::max_element(busy.begin(), busy.end())) /
           static_cast<double>(rounds);
  }
  return Seconds(all);
}

std::optional<PaddedBatches> padded(const ResolvedRequest& r, const Question& q) {
  const Draw d = drawn(r, q.plan);
  const auto times = class_times(r, q, d.lengths);
  if (!times) return std::nullopt;
  const Seconds all = time_of(d, q, *times, r.sequence);
  const std::int64_t computed =
      q.plan.microbatch * std::accumulate(d.lengths.begin(), d.lengths.end(), std::int64_t{0});
  PaddedBatches p;
  p.padding = 1 - static_cast<double>(d.tokens) / static_cast<double>(computed);
  p.step = Seconds(all.value / static_cast<double>(d.steps));
  p.tokens_per_s = static_cast<double>(d.tokens) / all.value;
  return p;
}

}  // namespace

std::optional<LengthOutlook> length_outlook(const ResolvedRequest& r, const Question& q,
                                            const Forecast& f) {
  if (!r.lengths || f.tokens_per_s <= 0) return std::nullopt;
  LengthOutlook o;
  o.samples = static_cast<std::int64_t>(r.lengths->tokens.size());
  o.tokens = r.lengths->sum(r.sequence);
  o.cut = r.lengths->longer_than(r.sequence);
  o.longest = r.lengths->longest();
  o.sequence = r.sequence;
  o.packed_tokens_per_s = f.tokens_per_s;
  if (q.workload.framework.defaults.lengths_vary && q.workload.method != Method::pretrain)
    o.padded = padded(r, q);
  return o;
}

}  // namespace shardwise
