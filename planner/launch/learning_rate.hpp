// The learning rate for another batch: linear scaling, lr x batch / old batch ("when the minibatch
// size is multiplied by k, multiply the learning rate by k", arXiv 1706.02677 section 2.1). A rule
// of thumb for SGD with warm-up; adaptive optimizers often want less.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shardwise {

struct LearningRate {
  std::optional<double> value;     // nothing where none was given
  std::vector<std::string> notes;  // where the batch changed, or may have
};

// `old_batch`: the sequences per step that `given` was found with, where that is known.
LearningRate learning_rate_for(std::optional<double> given, std::optional<int> old_batch,
                               int batch);

}  // namespace shardwise
