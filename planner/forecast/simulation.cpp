#include "planner/forecast/simulation.hpp"

#include "planner/forecast/judgement.hpp"

namespace shardwise {

Result<Simulation> simulate_question(const ResolvedRequest& request, const Question& question,
                                     const Variation& variation) {
  Simulation s{question, {}, {}, {}};
  auto f = forecast(s.question, request.facts->profile,
                    {.unfold = request.asked.unfold,
                     .variation = variation,
                     .critical_path = true,
                     .record = true});
  if (!f) return f.error();
  s.forecast = *std::move(f);
  s.verdict = judged(s.forecast, request.host_ram_stated);
  s.notes = s.forecast.notes;
  return s;
}

}  // namespace shardwise
