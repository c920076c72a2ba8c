#include "planner/report/measured_report.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string meaning(const MeasuredStep& m) {
  if (m.microbatches > 1)
    return sentence("  ", m.microbatches, " times that would be as forecast: is an iteration of ",
                    "your log one of the ", m.microbatches, " microbatches of a step?\n");
  if (m.mfu > 1)
    return "  more than these GPUs can compute: are model, length, batch and plan as above?\n";
  if (m.place == Measured::below)
    return "  faster than nine of ten runs of this kind: are model, length, batch and plan as "
           "above?\n";
  if (m.place == Measured::above)
    return "  slower than nine of ten runs of this kind: look at the GPUs' clocks and power, the "
           "data loader (--loader-rate), the links (shardwise collectives)\n";
  return "";
}

const char* memory_meaning(Measured place) {
  return place == Measured::below
             ? "  less than nine of ten runs of this kind: are model, length, batch and plan as "
               "above, and is it the peak (torch.cuda.max_memory_allocated), not one moment?\n"
             : "  more than nine of ten runs of this kind: look at longer samples (--lengths), "
               "evaluation or generation between steps, other programs on the card "
               "(--used-memory)\n";
}

}  // namespace

std::string measured_text(const MeasuredStep& m) {
  return sentence("measured ", shown_time(m.step), " a step: ", fixed(m.of_forecast, 2),
                  " times the forecast, ", measured_name(m.place), " its 80 % interval; ",
                  shown_rate(m.tokens_per_s), " tokens/s, MFU ", fixed(100 * m.mfu, 1), " %\n",
                  meaning(m));
}

Json measured_json(const MeasuredStep& m) {
  return {{"step_time_s", json_number(m.step.value)},
          {"of_forecast", json_number(m.of_forecast)},
          {"interval", measured_name(m.place)},
          {"tokens_per_s", json_number(m.tokens_per_s)},
          {"mfu", json_number(m.mfu)},
          {"microbatches", m.microbatches}};
}

std::string measured_text(const MeasuredMemory& m) {
  std::string text = sentence("measured ", shown_gib(m.memory), " at the peak of a GPU:");
  std::vector<std::string> within;
  for (const MeasuredMemory::Reading& r : m.readings) {
    text += sentence(text.ends_with(':') ? " " : ", ", fixed(r.of_forecast, 2), " times the ",
                     shown_gib(r.forecast), " forecast as ", r.figure);
    if (r.place == Measured::within) within.emplace_back(r.figure);
  }
  if (!within.empty())
    return text + sentence("; within the 80 % interval of ", listed(within), '\n');
  return text + sentence("; ", measured_name(m.place()), " every 80 % interval\n",
                         memory_meaning(m.place()));
}

Json measured_json(const MeasuredMemory& m) {
  Json readings = Json::object();
  for (const MeasuredMemory::Reading& r : m.readings)
    readings[std::string(r.figure)] = {{"forecast_gib", json_gib(r.forecast)},
                                       {"of_forecast", json_number(r.of_forecast)},
                                       {"interval", measured_name(r.place)}};
  return {
      {"memory_gib", json_gib(m.memory)}, {"interval", measured_name(m.place())}, {"as", readings}};
}

}  // namespace shardwise
