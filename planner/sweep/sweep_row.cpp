#include "planner/sweep/sweep_row.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "catalog/require.hpp"
#include "planner/report/request_json.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

using Seen = PointSeen;
using Value = SweepValue;

Value whole(std::int64_t n) { return n; }
Value real(double x) { return json_number(x); }
Value in_gib(Bytes b) { return json_gib(b); }
Value text(std::string_view t) { return std::string(t); }

// The value of a part of the answer; absent where the part is.
template <class Get>
Value of_request(const Seen& s, Get get) {
  return s.answer.request ? get(*s.answer.request) : Value();
}
template <class Get>
Value of_found(const Seen& s, Get get) {
  return s.answer.found ? get(*s.answer.found) : Value();
}
template <class Get>
Value of_forecast(const Seen& s, Get get) {
  return s.answer.found ? get(s.answer.found->forecast) : Value();
}
template <class Get>
Value of_outlook(const Seen& s, Get get) {
  return s.answer.outlook ? get(*s.answer.outlook) : Value();
}

Value exposed(const Forecast& f) {
  Seconds sum;
  for (const auto& [kind, t] : f.breakdown.exposed) sum += t;
  return real(sum.value);
}

Value problem(const Seen& s) {
  std::string all;
  for (const Problem& p : s.answer.problems)
    all += sentence(all.empty() ? "" : "; ", p.where, p.where.empty() ? "" : ": ", p.what);
  return all.empty() ? Value() : text(all);
}

// Per million tokens, what an hour costs or burns.
Value per_million_tokens(const Seen& s, std::optional<double> per_hour) {
  if (!s.answer.found || !per_hour || s.answer.found->forecast.tokens_per_s <= 0) return {};
  return real(*per_hour * 1e6 / s.answer.found->forecast.tokens_per_s / 3600);
}

// So that `shardwise simulate --request` understands it.
Request without_plan_word(Request asked) {
  if (plan_word(asked)) asked.plans.clear();
  return asked;
}

std::optional<double> usd_per_hour(const Seen& s) {
  if (!s.answer.rental) return std::nullopt;
  return s.answer.rental->per_hour.value;
}

std::optional<double> kwh_per_hour(const Seen& s) {
  if (!s.answer.request) return std::nullopt;
  return gpu_energy(s.answer.request->clusters.front(), Seconds(3600)).value;
}

using R = ResolvedRequest;
using P = PointForecast;
using F = Forecast;
using O = RunOutlook;
constexpr SweepType I = SweepType::integer;
constexpr SweepType D = SweepType::real;
constexpr SweepType T = SweepType::text;

constexpr std::array<SweepColumn, 39> column_rows{{
    {"point", I, "number of the point in its study, from 0",
     [](const Seen& s) { return whole(s.point); }},
    {"verdict", T, "fits, tight or does_not_fit; refused: there is no answer; failed: our bug",
     [](const Seen& s) {
       return text(s.answer.found ? verdict_name(s.answer.found->verdict) : sweep_refused);
     }},
    {"problem", T, "why there is no answer", problem},
    {"request", T, "the question, as a request file holds it (JSON)",
     [](const Seen& s) { return text(asked_json(without_plan_word(s.asked)).dump()); }},
    {"model", T, "id in the catalog, or the path of a config.json",
     [](const Seen& s) { return of_request(s, [](const R& r) { return text(r.model.id); }); }},
    {"parameters", I, "of the model",
     [](const Seen& s) {
       return of_request(s, [](const R& r) { return whole(parameter_count(r.model).total); });
     }},
    {"gpus", T, "as asked", [](const Seen& s) { return text(s.asked.gpus.value_or("")); }},
    {"gpu", T, "id of the card; of a mixed box the first",
     [](const Seen& s) {
       return of_request(s,
                         [](const R& r) { return text(r.clusters.front().groups.front().gpu.id); });
     }},
    {"gpu_count", I, "GPUs in all",
     [](const Seen& s) { return of_request(s, [](const R& r) { return whole(r.gpus()); }); }},
    {"nodes", I, "machines that hold them",
     [](const Seen& s) {
       return of_request(s, [](const R& r) { return whole(r.clusters.front().nodes()); });
     }},
    {"method", T, "pretrain, full, lora, dora or qlora",
     [](const Seen& s) {
       return of_request(s, [](const R& r) { return text(name(r.methods.front())); });
     }},
    {"framework", T, "id of the training framework",
     [](const Seen& s) {
       return of_found(s, [](const P& p) { return text(p.question.workload.framework.id); });
     }},
    {"sequence", I, "tokens per sequence",
     [](const Seen& s) { return of_request(s, [](const R& r) { return whole(r.sequence); }); }},
    {"batch", I, "sequences per step over all GPUs",
     [](const Seen& s) { return of_request(s, [](const R& r) { return whole(r.batch); }); }},
    {"plan_by", T, "who chose the plan: request, fit or best",
     [](const Seen& s) { return text(plan_word(s.asked).value_or("request")); }},
    {"plan", T, "the plan in full, as --plan takes it",
     [](const Seen& s) {
       return of_found(s, [](const P& p) { return text(whole_text(p.question.plan)); });
     }},
    {"step_time_low_s", D, "low end of the 80 % interval",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return real(f.step_time.low.value); });
     }},
    {"step_time_s", D, "expected time of one step",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return real(f.step_time.expected.value); });
     }},
    {"step_time_high_s", D, "high end of the 80 % interval",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return real(f.step_time.high.value); });
     }},
    {"tokens_per_s", D, "over all GPUs",
     [](const Seen& s) { return of_forecast(s, [](const F& f) { return real(f.tokens_per_s); }); }},
    {"tokens_per_s_per_gpu", D, "the same of one GPU",
     [](const Seen& s) {
       return of_found(
           s, [](const P& p) { return real(p.forecast.tokens_per_s / p.question.cluster.gpus()); });
     }},
    {"mfu", D, "model FLOPs over dense peak, 0 to 1",
     [](const Seen& s) { return of_forecast(s, [](const F& f) { return real(f.mfu); }); }},
    {"bubble_fraction", D, "of the step that a GPU waits for the pipeline, 0 to 1",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return real(f.bubble_fraction); });
     }},
    {"exposed_communication_s", D, "of the step, what nothing hides",
     [](const Seen& s) { return of_forecast(s, exposed); }},
    {"peak_memory_gib", D, "of the fullest GPU, as nvidia-smi shows it",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return in_gib(f.worst().peak.device); });
     }},
    {"peak_memory_high_gib", D, "high end of its 80 % interval",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return in_gib(f.peak_device.high); });
     }},
    {"capacity_gib", D, "what that GPU has",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return in_gib(f.worst().capacity); });
     }},
    {"margin_gib", D, "what is left; negative: the shortfall",
     [](const Seen& s) { return of_forecast(s, [](const F& f) { return in_gib(f.margin); }); }},
    {"host_ram_gib", D, "of each node, the most that training or loading takes",
     [](const Seen& s) {
       return of_forecast(
           s, [](const F& f) { return in_gib(std::max(f.host.steady, f.host.load_peak)); });
     }},
    {"host_ram_training_gib", D, "of each node while training",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return in_gib(f.host.steady); });
     }},
    {"host_ram_loading_gib", D, "of each node while the weights are read",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return in_gib(f.host.load_peak); });
     }},
    {"usd_per_hour", D, "rent of the cheapest catalogued machines, on demand",
     [](const Seen& s) {
       const auto usd = usd_per_hour(s);
       return usd ? real(*usd) : Value();
     }},
    {"usd_per_million_tokens", D, "the same for a million tokens",
     [](const Seen& s) { return per_million_tokens(s, usd_per_hour(s)); }},
    {"kwh_per_million_tokens", D, "of the GPUs alone, at their power limit",
     [](const Seen& s) { return per_million_tokens(s, kwh_per_hour(s)); }},
    {"run_tokens", I, "of the whole run, where samples or tokens are asked for",
     [](const Seen& s) { return of_outlook(s, [](const O& o) { return whole(o.tokens); }); }},
    {"run_s", D, "wall time of it, failures and checkpoints included (simulated mean)",
     [](const Seen& s) {
       return of_outlook(s, [](const O& o) { return real(o.simulated.mean.value); });
     }},
    {"run_usd", D, "rent for that time",
     [](const Seen& s) {
       return of_outlook(s, [](const O& o) { return o.rental ? real(o.rent.value) : Value(); });
     }},
    {"run_kwh", D, "of the GPUs alone, at their power limit",
     [](const Seen& s) { return of_outlook(s, [](const O& o) { return real(o.energy.value); }); }},
    {"trust", T, "the weakest thing the answer rests on",
     [](const Seen& s) {
       return of_forecast(s, [](const F& f) { return text(trust_name(f.trust)); });
     }},
}};

template <class Number>
void put(std::string& to, Number value) {
  std::array<char, sizeof(Number)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(Number));
  to.append(bytes.data(), bytes.size());
}

template <class Number>
Number take(std::string_view& from) {
  require(from.size() >= sizeof(Number), "a packed row is whole");
  Number value{};
  std::memcpy(&value, from.data(), sizeof(Number));
  from.remove_prefix(sizeof(Number));
  return value;
}

}  // namespace

std::span<const SweepColumn> sweep_columns() { return column_rows; }

std::size_t sweep_column(std::string_view name) {
  const auto* row = std::find_if(column_rows.begin(), column_rows.end(),
                                 [&](const SweepColumn& c) { return c.name == name; });
  require(row != column_rows.end(), "a column of that name");
  return static_cast<std::size_t>(row - column_rows.begin());
}

SweepRow sweep_row(const PointSeen& seen) {
  SweepRow row;
  row.reserve(column_rows.size());
  for (const SweepColumn& column : column_rows) row.push_back(column.value(seen));
  return row;
}

SweepRow failed_row(std::int64_t point, const Request& asked, const std::string& reason) {
  PointAnswer none;
  none.problems.push_back({ProblemKind::request, "", reason});
  SweepRow row = sweep_row({point, asked, none});
  row[sweep_column("verdict")] = std::string(sweep_failed);
  return row;
}

std::optional<std::string> text_in(const SweepRow& row, std::string_view column) {
  const auto* value = std::get_if<std::string>(&row[sweep_column(column)]);
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<double> number_in(const SweepRow& row, std::string_view column) {
  const SweepValue& value = row[sweep_column(column)];
  if (const auto* n = std::get_if<std::int64_t>(&value)) return static_cast<double>(*n);
  if (const auto* x = std::get_if<double>(&value)) return *x;
  return std::nullopt;
}

std::string packed(const SweepRow& row) {
  std::string bytes;
  for (const SweepValue& value : row) {
    bytes.push_back(static_cast<char>(value.index()));
    if (const auto* n = std::get_if<std::int64_t>(&value)) put(bytes, *n);
    if (const auto* x = std::get_if<double>(&value)) put(bytes, *x);
    if (const auto* t = std::get_if<std::string>(&value)) {
      put(bytes, t->size());
      bytes += *t;
    }
  }
  return bytes;
}

SweepRow unpacked(std::string_view bytes) {
  SweepRow row;
  while (!bytes.empty()) {
    const auto kind = static_cast<std::size_t>(take<char>(bytes));
    if (kind == 0) row.emplace_back();
    if (kind == 1) row.emplace_back(take<std::int64_t>(bytes));
    if (kind == 2) row.emplace_back(take<double>(bytes));
    if (kind == 3) {
      const auto size = take<std::size_t>(bytes);
      require(bytes.size() >= size, "a packed row is whole");
      row.emplace_back(std::string(bytes.substr(0, size)));
      bytes.remove_prefix(size);
    }
  }
  require(row.size() == column_rows.size(), "a packed row has every column");
  return row;
}

}  // namespace shardwise
