#include "planner/commands/shop.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

#include "catalog/json_document.hpp"
#include "planner/answers/shop_answer.hpp"
#include "planner/figures.hpp"
#include "planner/report/outlook_report.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string seller(const ShopOffer& o) {
  if (o.rented == nullptr) return sentence("buy at ", shown_dollars(o.price), " (", o.date, ')');
  return sentence("rent ", o.rented->provider, ' ', o.rented->instance, " at ",
                  shown_dollars(o.price), " an hour (", o.date, ')');
}

std::string shop_text(const std::string& model, const ShopAnswer& a, UsDollars budget,
                      std::optional<int> columns) {
  Table t{{"gpus", "how", "verdict", "step", "time", "total"}, {}};
  for (const ShopOffer& o : a.offers)
    t.rows.push_back({o.gpus, seller(o), std::string(verdict_name(o.verdict)), shown_time(o.step),
                      shown_time(o.time), shown_dollars(o.total)});
  std::string text =
      sentence(model, ", ", name(a.method), ", ", grouped(a.sequences), " sequences for ",
               shown_dollars(budget), " or less\n", shown_table(t, "  ", columns), "  ",
               a.do_not_fit, " more do not fit, ", a.too_dear, " cost more\n");
  for (const std::string& note : a.notes) text += sentence("  note: ", note, "\n");
  return text;
}

Json shop_json(const std::string& model, const ShopAnswer& a, UsDollars budget) {
  Json offers = Json::array();
  for (const ShopOffer& o : a.offers) {
    Json j = {{"gpus", o.gpus}, {"kind", o.rented == nullptr ? "buy" : "rent"}};
    if (o.rented != nullptr) {
      j["provider"] = o.rented->provider;
      j["instance"] = o.rented->instance;
      j["usd_per_hour"] = json_number(o.price.value);
    } else {
      j["usd_cards"] = json_number(o.price.value);
      j["usd_electricity"] = json_number(o.electricity.value);
    }
    j["price_date"] = o.date;
    j["verdict"] = verdict_name(o.verdict);
    j["plan"] = o.plan;
    j["step_time_s"] = json_number(o.step.value);
    j["time_s"] = json_number(o.time.value);
    j["usd_total"] = json_number(o.total.value);
    offers.push_back(j);
  }
  return {{"schema_version", schema_version},
          {"command", "shop"},
          {"model", model},
          {"method", name(a.method)},
          {"sequences", a.sequences},
          {"budget_usd", json_number(budget.value)},
          {"offers", offers},
          {"do_not_fit", a.do_not_fit},
          {"too_dear", a.too_dear},
          {"notes", a.notes}};
}

}  // namespace

void add_shop_flags(CLI::App& command, ShopOptions& options) {
  command.add_option("--budget", options.budget, "US dollars for the whole run (3000)")
      ->check(
          [](const std::string& text) {
            double dollars = 0;
            const auto* end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, dollars);
            const bool good = read.ec == std::errc() && read.ptr == end && dollars > 0;
            return good ? ""
                        : sentence("expected US dollars, such as 3000, found \"", printable(text),
                                   '"');
          },
          "")
      ->type_name("USD");
}

int shop(const Request& request, const ShopOptions& options, const Facts& facts,
         const Output& output) {
  const auto operations = load_operations(facts.catalog.root);
  if (!operations) return report_problems(operations.error(), output);
  const UsDollars budget{options.budget};
  const auto answer = shop_answer(request, budget, facts, *operations);
  if (!answer) return report_problems(answer.error(), output);
  const std::string model = request.model.value_or("");
  if (output.json)
    output.out << shop_json(model, *answer, budget).dump(2) << '\n';
  else
    output.out << shop_text(model, *answer, budget, output.columns);
  return 0;
}

}  // namespace shardwise
