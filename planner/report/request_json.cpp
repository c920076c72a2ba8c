#include "planner/report/request_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/request/request_field.hpp"

namespace shardwise {
namespace {

// To the last bit, where an answer rounds its figures: the echo asks the same question.
Json field_json(const FieldValue& value) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(const std::string& v) const { return v; }
    Json operator()(const std::vector<std::string>& v) const { return v; }
    Json operator()(std::int64_t v) const { return v; }
    Json operator()(double v) const { return v; }
    Json operator()(Bytes v) const { return gib(v); }
    Json operator()(bool v) const { return v; }
  };
  return std::visit(Visitor{}, value);
}

// What does not hang on the answer.
Request filled_request(const ResolvedRequest& r) {
  Request whole = r.asked;
  whole.methods = r.methods;
  whole.sequence = r.sequence;
  whole.batch = r.batch;
  if (r.model.vision) {
    whole.images = r.images.images;
    whole.image_tokens = r.images.tokens;
  }
  if ((whole.jitter || whole.straggler) && !whole.seed) whole.seed = 0;
  if (const auto& network = r.clusters.front().network) whole.network = network->id;
  return whole;
}

Json alike_in(const std::vector<Json>& filled) {
  Json alike = Json::object();
  for (const auto& [key, value] : filled.front().items())
    if (std::all_of(filled.begin(), filled.end(), [&key = key, &value = value](const Json& one) {
          return one.contains(key) && one[key] == value;
        }))
      alike[key] = value;
  return alike;
}

}  // namespace

Json asked_json(const Request& asked) {
  Json echo = Json::object();
  for (const RequestField& field : request_fields()) {
    const Json value = field_json(field.get(asked));
    if (!value.is_null()) echo[std::string(field.key)] = value;
  }
  return echo;
}

Json filled_json(const ResolvedRequest& r, const Workload& w, const ParallelPlan* plan) {
  Json whole = asked_json(filled_request(r));
  Json settings =
      plan != nullptr ? settings_json({w, *plan, r.clusters.front()}) : workload_json(w);
  if (r.asked.plans.empty())
    for (const char* searched : {"microbatch", "recompute", "offload"}) settings.erase(searched);
  if (w.method != Method::qlora) settings.erase("quantization");  // nobody may ask for it
  for (const auto& [key, value] : settings.items()) whole[key] = value;
  return whole;
}

Json echo_json(const Request& stated, const std::vector<Json>& filled) {
  const Json asked = asked_json(stated), alike = alike_in(filled);
  Json echo = Json::object(), assumed = Json::object();
  for (const RequestField& field : request_fields()) {
    const std::string key(field.key);
    if (asked.contains(key))
      echo[key] = asked[key];
    else if (alike.contains(key))
      echo[key] = assumed[key] = alike[key];
  }
  if (!assumed.empty()) echo[assumed_key] = assumed;
  return echo;
}

Json request_json(const ResolvedRequest& r, const std::vector<const Question*>& answered) {
  if (answered.empty()) return echo_json(r.stated, {asked_json(filled_request(r))});
  std::vector<Json> filled;
  bool one_batch = true;
  const auto batch = answered.front()->plan.global_batch();
  for (const Question* q : answered) {
    filled.push_back(filled_json(r, q->workload, &q->plan));
    one_batch = one_batch && q->plan.global_batch() == batch;
  }
  // Plans round the batch up, each to its own rounds: it is then the one that all were to have.
  if (!one_batch)
    for (Json& one : filled) one["batch"] = r.batch;
  return echo_json(r.stated, filled);
}

}  // namespace shardwise
