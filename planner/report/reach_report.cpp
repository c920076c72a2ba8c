#include "planner/report/reach_report.hpp"

#include <nlohmann/json.hpp>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string value_words(const Reached& r, const std::string& unit) {
  return sentence(grouped(r.value), unit, r.open ? " and more" : "");
}

// What it needs: the allocator's cache takes the rest of a card and gives it back.
std::string memory_words(const StageForecast& s) {
  return sentence(shown_gib(s.needed), s.cache_fills() ? " + cache" : "");
}

std::string lines(const char* label, const std::string& unit, const std::optional<Reached>& most,
                  const std::optional<Reached>& roomy) {
  if (!most) return sentence("    ", label, "none fits\n");
  const bool tight = most->chosen.verdict == Verdict::tight;
  std::string text = sentence(
      "    ", label, value_words(*most, unit), ": ", memory_words(most->chosen.forecast.worst()),
      " of ", shown_gib(most->chosen.forecast.worst().capacity), tight ? ", tightly" : "", ", ",
      shown_rate(most->chosen.forecast.tokens_per_s), " tokens/s; plan ",
      whole_text(most->chosen.question.plan), ", ",
      grouped(most->chosen.question.plan.global_batch()), " per step\n");
  if (tight && roomy)
    text += sentence("                        with room to spare ", value_words(*roomy, unit), ": ",
                     memory_words(roomy->chosen.forecast.worst()), "\n");
  return text;
}

Json reached_json(const std::optional<Reached>& r) {
  if (!r) return nullptr;
  return {{"value", r->value},
          {"open", r->open},
          {"step", r->step},
          {"batch", r->chosen.question.plan.global_batch()},
          {"verdict", verdict_name(r->chosen.verdict)},
          {"plan", whole_text(r->chosen.question.plan)},
          {"device_gib", json_gib(r->chosen.forecast.worst().peak.device)},
          {"capacity_gib", json_gib(r->chosen.forecast.worst().capacity)},
          {"tokens_per_s", json_number(r->chosen.forecast.tokens_per_s)}};
}

}  // namespace

std::string reach_text(const Reach& reach, const ResolvedRequest& request) {
  std::string text = "  how far it goes\n";
  text += lines("longest sequence    ", " tokens", reach.sequence, reach.roomy_sequence);
  if (const int made_for = request.model.max_positions;
      reach.sequence && made_for > 0 && reach.sequence->value > made_for)
    text += sentence("                        (", request.model.id, " was made for ",
                     grouped(made_for), ")\n");
  if (request.asked.plans.empty())
    text += lines("largest microbatch  ", sentence(" of ", grouped(request.sequence), " tokens"),
                  reach.microbatch, reach.roomy_microbatch);
  if (reach.adapters) text += lines("largest LoRA rank   ", "", reach.rank, reach.roomy_rank);
  if (reach.rank && reach.rank->value + rank_step > request.model.hidden)
    text += sentence("                        (", request.model.id, " is ",
                     grouped(request.model.hidden), " wide: more rank than that adds nothing)\n");
  return text;
}

Json reach_json(const Reach& reach) {
  Json j = {{"longest_sequence", reached_json(reach.sequence)},
            {"longest_sequence_with_room", reached_json(reach.roomy_sequence)},
            {"largest_microbatch", reached_json(reach.microbatch)},
            {"largest_microbatch_with_room", reached_json(reach.roomy_microbatch)}};
  if (reach.adapters) {
    j["largest_rank"] = reached_json(reach.rank);
    j["largest_rank_with_room"] = reached_json(reach.roomy_rank);
  }
  return j;
}

}  // namespace shardwise
