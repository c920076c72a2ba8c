#include "planner/report/outlook_report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

std::string shown_dollars(UsDollars amount) {
  if (amount.value >= 100) return sentence('$', grouped(std::llround(amount.value)));
  return sentence('$', fixed(amount.value, 2));
}

std::string outlook_text(const RunOutlook& o) {
  std::string text = sentence(
      "the whole run: ", counted(o.tokens, "token"), " in ", counted(o.steps, "step"), "\n",
      "  steps alone ", shown_time(o.run.useful), "; with failures ", shown_time(o.simulated.mean),
      " (", shown_time(o.simulated.low), " to ", shown_time(o.simulated.high),
      " in 80 of 100 simulated runs; by Daly's formula ", shown_time(o.expected), "), goodput ",
      fixed(100 * o.goodput, 1), " %\n", "  a failure every ",
      shown_time(o.run.mean_time_between_failures), ", restart ", shown_time(o.run.restart),
      "; a checkpoint of ", shown_gib(o.checkpoint), " takes ", shown_time(o.run.write),
      "\n  write one every ", shown_time(o.best), " of training (simulated; Young ",
      shown_time(o.young), ", Daly ", shown_time(o.daly), ")\n",
      "  GPUs alone, at their power limit: ", grouped(std::llround(o.energy.value)), " kWh, ",
      shown_dollars(o.electricity), "\n");
  if (o.rental) {
    const CloudPrice& p = *o.rental->price;
    text += sentence(
        "  rented: ", shown_dollars(o.rent), " (", o.rental->machines, " x ", p.provider, " ",
        p.instance, " at ", shown_dollars(*p.per_hour), " an hour, ",
        p.provenance.date == "unknown" ? "undated price" : sentence("price of ", p.provenance.date),
        ")\n");
  } else {
    text += "  rented: no price is catalogued for machines of these GPUs\n";
  }
  for (const std::string& note : o.notes) text += sentence("  note: ", note, "\n");
  return text;
}

Json outlook_json(const RunOutlook& o) {
  Json j = {{"tokens", o.tokens},
            {"steps", o.steps},
            {"useful_s", json_number(o.run.useful.value)},
            {"wall_s",
             {{"low", json_number(o.simulated.low.value)},
              {"mean", json_number(o.simulated.mean.value)},
              {"high", json_number(o.simulated.high.value)},
              {"daly", json_number(o.expected.value)}}},
            {"goodput", json_number(o.goodput)},
            {"mtbf_s", json_number(o.run.mean_time_between_failures.value)},
            {"restart_s", json_number(o.run.restart.value)},
            {"checkpoint_gib", json_gib(o.checkpoint)},
            {"checkpoint_s", json_number(o.run.write.value)},
            {"checkpoint_interval_s",
             {{"best", json_number(o.best.value)},
              {"young", json_number(o.young.value)},
              {"daly", json_number(o.daly.value)}}},
            {"energy_kwh", json_number(o.energy.value)},
            {"electricity_usd", json_number(o.electricity.value)},
            {"notes", o.notes}};
  if (o.rental)
    j["rental"] = {{"provider", o.rental->price->provider},
                   {"instance", o.rental->price->instance},
                   {"machines", o.rental->machines},
                   {"usd_per_hour", json_number(o.rental->per_hour.value)},
                   {"usd", json_number(o.rent.value)},
                   {"price_date", o.rental->price->provenance.date}};
  return j;
}

}  // namespace shardwise
