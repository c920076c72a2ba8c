#include "calibrate/measuring/progress_text.hpp"

#include <cmath>
#include <cstdio>

namespace shardwise {
namespace {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string minutes(Seconds time) {
  const auto seconds = static_cast<int>(std::ceil(time.value));
  char text[32];
  std::snprintf(text, sizeof text, "%d:%02d", seconds / 60, seconds % 60);
  return text;
}

// "12.3 us", "1.20 ms", "2.50 s".
std::string spent_time(Seconds time) {
  if (time < Seconds(1e-3)) return formatted("%.2f us", time.value * 1e6);
  if (time < Seconds(1)) return formatted("%.3f ms", time.value * 1e3);
  return formatted("%.2f s", time.value);
}

std::string shown_finding(const Entry& entry) {
  const Finding& found = entry.finding;
  if (found.outcome != Outcome::measured)
    return std::string(outcome_name(found.outcome)).append(": ").append(found.why);
  std::string text = entry.point.quantity == "time_s"
                         ? spent_time(Seconds(found.value))
                         : formatted("%.6g ", found.value) + entry.point.quantity;
  text.append(formatted(", spread %.1f %%", 100 * found.spread));
  text.append(", ").append(std::to_string(found.samples)).append(" runs");
  if (found.discarded > 0)
    text.append(" (").append(std::to_string(found.discarded)) += " discarded)";
  return text;
}

}  // namespace

std::string progress_text(const Progress& progress) {
  std::string text = progress.subject->name;
  text.append(": ").append(std::to_string(progress.done));
  text.append(" of ").append(std::to_string(progress.planned));
  text.append(", ").append(minutes(progress.remaining)).append(" left: ");
  return text.append(identity(progress.entry->point)).append(" ") + shown_finding(*progress.entry);
}

std::string end_text(const Subject& subject, CampaignEnd end) {
  switch (end) {
    case CampaignEnd::complete:
      return subject.name + ": all measured";
    case CampaignEnd::out_of_time:
      return subject.name + ": time is up; a larger --budget goes on";
    case CampaignEnd::lost:
      return subject.name + ": lost, its other benches are left out";
    case CampaignEnd::interrupted:
      break;
  }
  return subject.name + ": interrupted";
}

}  // namespace shardwise
