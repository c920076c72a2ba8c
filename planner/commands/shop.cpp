#include "planner/commands/shop.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "planner/answers/shop_answer.hpp"
#include "planner/figures.hpp"
#include "planner/report/layout_words.hpp"
#include "planner/report/outlook_report.hpp"
#include "planner/report/request_json.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string seller(const ShopOffer& o) {
  const std::string date = o.date == "unknown" ? "undated" : o.date;
  if (o.rented == nullptr) return sentence("buy at ", shown_dollars(o.price), " (", date, ')');
  return sentence("rent ", o.rented->provider, ' ', o.rented->instance, " at ",
                  shown_dollars(o.price), " an hour (", date, ')');
}

const std::string& framework_of(const ShopOffer& o) { return o.question->workload.framework.id; }

std::string shop_text(const ShopAnswer& a, std::optional<int> columns) {
  const bool several = std::any_of(a.offers.begin(), a.offers.end(), [&](const ShopOffer& o) {
    return framework_of(o) != framework_of(a.offers.front());
  });
  const bool offloads = std::any_of(a.offers.begin(), a.offers.end(), [](const ShopOffer& o) {
    return !(o.question->plan.offload == Offload{});
  });
  Table t{{"gpus", "how", "verdict", "step", "time", "total"}, {}, {1}};
  if (several) t.header.emplace_back("trained in");
  if (offloads) t.header.emplace_back("in host RAM");
  const std::size_t shown = std::min(a.offers.size(), most_offers_shown);
  for (const ShopOffer& o : std::span(a.offers).first(shown)) {
    t.rows.push_back({sentence(o.gpus, o.starts.any() ? "" : " *"), seller(o),
                      std::string(verdict_name(o.verdict)), shown_time(o.step.expected),
                      shown_time(o.time), shown_dollars(o.total)});
    if (several) t.rows.back().push_back(framework_of(o));
    const std::string offloaded = offload_words(o.question->plan);
    if (offloads) t.rows.back().push_back(offloaded.empty() ? "-" : offloaded);
  }
  std::string text =
      sentence(a.request.model.id, ", ", name(a.method), ", ", counted(a.sequences, "sequence"),
               " for ", shown_dollars(a.budget), " or less\n",
               a.offers.empty() ? "  nothing\n" : shown_table(t, "  ", columns), "  ",
               a.offers.size() > shown
                   ? sentence(a.offers.size() - shown, " more run for more (--json lists all), ")
                   : std::string(),
               a.do_not_fit, a.offers.empty() ? "" : " more", a.do_not_fit == 1 ? " does" : " do",
               " not fit, ", a.too_dear, a.too_dear == 1 ? " costs more\n" : " cost more\n");
  for (const std::string& note : a.notes) text += sentence("  note: ", note, "\n");
  return text;
}

// What all offers rest on, beside what was asked.
Json shop_request(const Request& request, const ShopAnswer& a) {
  std::vector<Json> filled;
  for (const ShopOffer& o : a.offers)
    filled.push_back(filled_json(a.request, o.question->workload, &o.question->plan));
  if (filled.empty()) {
    filled.push_back(asked_json(a.request.asked));
    filled.back()["sequence"] = a.request.sequence;
  }
  for (Json& one : filled) {
    for (const char* found_out : {"gpus", "network"}) one.erase(found_out);
    one["budget_usd"] = a.budget.value;
    if (!request.tokens) one["samples"] = a.sequences;
  }
  return echo_json(request, filled);
}

Json shop_json(const Request& request, const ShopAnswer& a) {
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
    j["plan"] = whole_text(o.question->plan);
    j["framework"] = framework_of(o);
    j["launch_targets"] = o.starts.targets;
    j["step_time_s"] = step_time_json(o.step);
    j["time_s"] = json_number(o.time.value);
    j["usd_total"] = json_number(o.total.value);
    offers.push_back(j);
  }
  return {{"schema_version", schema_version},
          {"command", "shop"},
          {"request", shop_request(request, a)},
          {"model", a.request.model.id},
          {"method", name(a.method)},
          {"sequences", a.sequences},
          {"budget_usd", json_number(a.budget.value)},
          {"offers", offers},
          {"do_not_fit", a.do_not_fit},
          {"too_dear", a.too_dear},
          {"notes", a.notes}};
}

}  // namespace

int shop(const Request& request, const Facts& facts, const Output& output) {
  const auto operations = load_operations(facts.catalog.root);
  if (!operations) return report_problems(operations.error(), output);
  const auto answer = shop_answer(request, facts, *operations);
  if (!answer) return report_problems(answer.error(), output);
  if (output.json)
    output.out << shop_json(request, *answer).dump(2) << '\n';
  else
    output.out << shop_text(*answer, output.columns);
  return 0;
}

}  // namespace shardwise
