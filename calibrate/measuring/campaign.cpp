#include "calibrate/measuring/campaign.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace shardwise {
namespace {

// Where a campaign stands: what is left of the plan, and what is known of memory and time.
class Course {
 public:
  explicit Course(const Subject& subject)
      : budget_(subject.budget), left_(subject.plan.begin(), subject.plan.end()) {
    for (const BenchPoint& point : left_) weight_left_ += point.weight;
  }

  // The next point to measure; what cannot fit is passed over, and what a halved point was already.
  const BenchPoint* next() {
    while (!left_.empty() && (too_large(left_.front()) || was_measured(left_.front()))) pop();
    return left_.empty() ? nullptr : &left_.front();
  }

  Seconds share() const {
    const double part = static_cast<double>(left_.front().weight) / weight_left_;
    return part * (budget_ - elapsed_);
  }

  // Takes note of what became of the next point.
  void advance(const Finding& found) {
    const BenchPoint point = left_.front();
    pop();
    measured_.insert(identity(point));
    elapsed_ += found.took;
    ++done_;
    if (found.outcome != Outcome::out_of_memory) return;
    ceilings_.push_back(point);
    if (auto half = smaller(point)) {
      weight_left_ += half->weight;
      left_.push_front(std::move(*half));
    }
  }

  bool out_of_time() const { return elapsed_ >= budget_; }

  Progress progress() const {
    Progress now;
    now.done = done_;
    now.planned = done_ + static_cast<int>(left_.size());
    now.elapsed = elapsed_;
    const double points_left = static_cast<double>(left_.size()) / std::max(1, done_);
    now.remaining =
        std::clamp(points_left * elapsed_, Seconds(0), std::max(Seconds(0), budget_ - elapsed_));
    return now;
  }

 private:
  void pop() {
    weight_left_ -= left_.front().weight;
    left_.pop_front();
  }

  bool too_large(const BenchPoint& point) const {
    return std::any_of(ceilings_.begin(), ceilings_.end(), [&](const BenchPoint& ceiling) {
      return at_least_as_large(point, ceiling);
    });
  }

  bool was_measured(const BenchPoint& point) const { return measured_.count(identity(point)) > 0; }

  Seconds budget_;
  std::set<std::string> measured_;
  std::deque<BenchPoint> left_;
  std::vector<BenchPoint> ceilings_;  // points that ran out of memory
  Seconds elapsed_;
  double weight_left_ = 0;
  int done_ = 0;
};

// The findings of earlier runs, by point.
std::map<std::string, Finding> known_findings(const std::vector<Entry>& entries) {
  std::map<std::string, Finding> known;
  for (const Entry& entry : entries) known.emplace(identity(entry.point), entry.finding);
  return known;
}

}  // namespace

CampaignEnd run_campaign(const Subject& subject, const MeasuringRules& rules,
                         const CampaignHands& hands, std::vector<Entry>& entries) {
  const auto known = known_findings(entries);
  Course course(subject);
  while (const BenchPoint* next = course.next()) {
    const BenchPoint point = *next;
    if (const auto found = known.find(identity(point)); found != known.end()) {
      course.advance(found->second);
      continue;
    }
    if (course.out_of_time()) return CampaignEnd::out_of_time;
    if (hands.interrupted()) return CampaignEnd::interrupted;
    entries.push_back({subject.gpu, point, measure(subject.device, point, rules, course.share())});
    course.advance(entries.back().finding);
    Progress progress = course.progress();
    progress.subject = &subject;
    progress.entry = &entries.back();
    hands.finished(progress);
    if (entries.back().finding.outcome == Outcome::lost) return CampaignEnd::lost;
  }
  return CampaignEnd::complete;
}

}  // namespace shardwise
