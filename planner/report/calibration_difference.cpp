#include "planner/report/calibration_difference.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/figures.hpp"
#include "planner/report/calibration_text.hpp"
#include "planner/report/table.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string shown_constant(double value) { return fixed(value, value < 10 ? 3 : 1); }

// As SizeFit::time: of the last regime that begins at or below the size.
Seconds time_of(const FittedCurve& curve, Bytes size) {
  Seconds t{0};
  for (const FittedRegime& r : curve.regimes) {
    if (r.from > size && t.value > 0) break;
    const double grown = r.beta ? static_cast<double>(size.value) / r.beta->value : 0;
    t = std::max(t, r.alpha + Seconds(grown));
  }
  return t;
}

void compare_curves(const FittedCurve& a, const FittedCurve& b, std::vector<CurveDifference>& out) {
  const auto low =
      static_cast<double>(std::max(a.regimes.front().from, b.regimes.front().from).value);
  const auto high = static_cast<double>(std::min(a.regimes.back().to, b.regimes.back().to).value);
  if (low > high) return;
  for (int i = 0; i < 4; ++i) {
    const Bytes size(static_cast<std::int64_t>(low * std::pow(high / low, i / 3.0)));
    const Seconds ta = time_of(a, size), tb = time_of(b, size);
    out.push_back({a.name, size, ta, tb, a.high * ta < b.low * tb || b.high * tb < a.low * ta});
  }
}

std::string cell(const std::optional<MeasuredConstant>& c) {
  if (!c) return "-";
  return sentence(shown_constant(c->value), " (", shown_constant(c->low), " to ",
                  shown_constant(c->high), ")");
}

std::string change(double a, double b) { return a > 0 ? shown_percent(b / a - 1) : ""; }

}  // namespace

ProfileDifference difference(const DeviceProfile& a, const DeviceProfile& b) {
  ProfileDifference d;
  std::set<std::string> keys;
  for (const auto& [key, c] : a.constants) keys.insert(key);
  for (const auto& [key, c] : b.constants) keys.insert(key);
  const auto find = [](const DeviceProfile& p, const std::string& key) {
    const auto found = p.constants.find(key);
    return found == p.constants.end() ? std::nullopt : std::optional(found->second);
  };
  for (const std::string& key : keys) {
    ConstantDifference c{key, find(a, key), find(b, key)};
    c.apart = c.a && c.b && (c.a->high < c.b->low || c.b->high < c.a->low);
    d.constants.push_back(std::move(c));
  }
  for (const FittedCurve& mine : a.fits)
    for (const FittedCurve& other : b.fits)
      if (mine.name == other.name) compare_curves(mine, other, d.curves);
  return d;
}

std::string difference_text(const DeviceProfile& a, const DeviceProfile& b) {
  const ProfileDifference d = difference(a, b);
  std::string text;
  Table constants{{"constant", a.name, b.name, "change", ""}, {}};
  for (const ConstantDifference& c : d.constants)
    constants.rows.push_back({c.key, cell(c.a), cell(c.b),
                              c.a && c.b ? change(c.a->value, c.b->value) : "",
                              c.apart ? "apart" : ""});
  if (!constants.rows.empty()) text += shown_table(constants);
  Table curves{{"curve", "size", a.name, b.name, "change", ""}, {}};
  for (const CurveDifference& c : d.curves)
    curves.rows.push_back({c.name, shown_bytes(c.bytes), shown_time(c.a), shown_time(c.b),
                           change(c.a.value, c.b.value), c.apart ? "apart" : ""});
  if (!curves.rows.empty()) text += shown_table(curves);
  const auto apart = [](const auto& row) { return row.apart; };
  if (std::any_of(d.constants.begin(), d.constants.end(), apart) ||
      std::any_of(d.curves.begin(), d.curves.end(), apart))
    text += "  apart: the 80 % intervals do not meet\n";
  return text;
}

Json difference_json(const DeviceProfile& a, const DeviceProfile& b) {
  const ProfileDifference d = difference(a, b);
  const auto value = [](const std::optional<MeasuredConstant>& c) {
    return c ? Json{{"value", c->value}, {"low", c->low}, {"high", c->high}} : Json(nullptr);
  };
  Json constants = Json::array(), curves = Json::array();
  for (const ConstantDifference& c : d.constants)
    constants.push_back(
        {{"constant", c.key}, {"a", value(c.a)}, {"b", value(c.b)}, {"apart", c.apart}});
  for (const CurveDifference& c : d.curves)
    curves.push_back({{"curve", c.name},
                      {"bytes", c.bytes.value},
                      {"a_us", c.a.value * 1e6},
                      {"b_us", c.b.value * 1e6},
                      {"apart", c.apart}});
  return {{"schema_version", 1},
          {"a", a.name},
          {"b", b.name},
          {"devices", {{"a", a.gpu}, {"b", b.gpu}}},
          {"constants", constants},
          {"curves", curves}};
}

std::string constants_text(const DeviceProfile& profile) {
  Table table{{"constant", "value", "low", "high", "points"}, {}};
  for (const auto& [key, c] : profile.constants)
    table.rows.push_back({key, shown_constant(c.value), shown_constant(c.low),
                          shown_constant(c.high), std::to_string(c.points)});
  std::string text = table.rows.empty() ? "" : shown_table(table);
  for (const GemmTile& t : profile.tiles)
    text += sentence("  tile ", t.m, " x ", t.n, ", rate ", shown_constant(t.rate), "\n");
  return text;
}

}  // namespace shardwise
