#include "planner/launch/learning_rate.hpp"

#include "catalog/json_document.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

LearningRate learning_rate_for(std::optional<double> given, std::optional<int> old_batch,
                               int batch) {
  LearningRate rate{given, {}};
  const std::string rule = " (linear scaling, arXiv 1706.02677; with Adam often less).";
  if (!given) {
    if (old_batch && *old_batch != batch)
      rate.notes.push_back(sentence("The batch is ", counted(batch, "sequence"), " per step, not ",
                                    *old_batch, ": multiply the learning rate by ",
                                    shown_number(static_cast<double>(batch) / *old_batch), rule));
    return rate;
  }
  if (!old_batch || *old_batch == batch) return rate;
  rate.value = *given * batch / *old_batch;
  rate.notes.push_back(sentence("The batch is ", counted(batch, "sequence"), " per step, not ",
                                *old_batch, ": the learning rate is ", shown_number(*rate.value),
                                ", not ", shown_number(*given), rule));
  return rate;
}

}  // namespace shardwise
