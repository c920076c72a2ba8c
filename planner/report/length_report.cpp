#include "planner/report/length_report.hpp"

#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

Seconds of_all(const LengthOutlook& o, double tokens_per_s) {
  return Seconds(static_cast<double>(o.tokens) / tokens_per_s);
}

}  // namespace

std::string length_text(const LengthOutlook& o, const Workload& w) {
  std::string text = sentence("  the ", counted(o.samples, "sample"), " of --lengths\n");
  if (o.padded)
    text +=
        sentence("    padded to the longest of each batch: ", shown_share(o.padded->padding),
                 " of the tokens computed are padding; a step takes ", shown_time(o.padded->step),
                 " on average, ", shown_rate(o.padded->tokens_per_s), " tokens/s of samples, ",
                 shown_time(of_all(o, o.padded->tokens_per_s)), " for all of them\n");
  else
    text +=
        sentence("    ", w.framework.name, " is forecast with full sequences, not padded ones\n");
  text += sentence(
      "    packed into full sequences of ", grouped(o.sequence), ": ",
      shown_rate(o.packed_tokens_per_s), " tokens/s",
      o.padded ? sentence(" (", fixed(o.packed_tokens_per_s / o.padded->tokens_per_s, 2), " times)")
               : "",
      ", ", shown_time(of_all(o, o.packed_tokens_per_s)), " for all of them\n");
  return text;
}

Json length_json(const LengthOutlook& o) {
  Json j = {{"samples", o.samples},
            {"tokens", o.tokens},
            {"longest_tokens", o.longest},
            {"judged_tokens", o.sequence},
            {"cut_samples", o.cut},
            {"packed_tokens_per_s", json_number(o.packed_tokens_per_s)},
            {"padded", nullptr}};
  if (o.padded)
    j["padded"] = {{"padding_share", json_number(o.padded->padding)},
                   {"step_time_s", json_number(o.padded->step.value)},
                   {"tokens_per_s", json_number(o.padded->tokens_per_s)}};
  return j;
}

}  // namespace shardwise
