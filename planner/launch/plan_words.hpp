// PlanWords: what plan files said, as words of this project's own vocabulary.
//
//   the keys of --plan               dp tp sp cp cp-kind pp vpp schedule ep etp zero shard mbs ...
//   the keys of a request            framework method sequence batch optimizer precision ...
//   what a format says in its own way, until its finish() turns it into the two above
//                                    replicate, reshard, local-batch, layers-per-chunk, ...
//
// Two files (or two keys of one) that say different things under one word are a problem that names
// both places; the same thing said twice is not.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/load.hpp"
#include "catalog/result.hpp"
#include "catalog/transformer.hpp"

namespace shardwise {

struct PlanWord {
  std::string value;
  std::string where;     // "ds_config.json:zero_optimization.stage"
  bool implied = false;  // what is taken where nothing says otherwise: whatever does comes first
};

struct PlanWords {
  std::map<std::string, PlanWord, std::less<>> words;
  Problems problems;
  std::vector<std::pair<std::string, std::string>> unmet;  // keys that finish() found, and why

  void say(std::string_view word, std::string value, const std::string& where);
  void say(std::string_view word, int value, const std::string& where) {
    say(word, std::to_string(value), where);
  }
  // Says it unless the word is said already.
  void default_to(std::string_view word, std::string value, const std::string& where);
  // Says it where nothing else does, neither before nor after, nor a flag.
  void imply(std::string_view word, std::string value, const std::string& where);
  void count(const std::string& word, int more, const std::string& where);  // a running sum
  void forget(std::string_view word) { words.erase(std::string(word)); }

  bool has(std::string_view word) const { return words.find(word) != words.end(); }
  bool is(std::string_view word, std::string_view value) const;
  std::optional<int> number(std::string_view word) const;  // nothing where it is none
  int number_or(std::string_view word, int otherwise) const {
    return number(word).value_or(otherwise);
  }
  std::string where(std::string_view word) const;  // "" where it is not said
  void wrong(std::string_view word, std::string what);
};

// What a DeepSpeed configuration moves off the GPU, said by the words "offload-optimizer" and
// "offload-params" as "true" (to the host) or "nvme". Parameters on NVMe are a problem.
void offload_deepspeed(PlanWords& words, const std::string& file);

// What FSDP checkpoints, said by the word "fsdp-recompute", is run again whatever the Trainer's own
// checkpointing says, which is then to be off.
void recompute_by_fsdp(PlanWords& words);

// What a plan file is read for: formats leave to the model what others say in numbers.
struct PlanFileContext {
  const Transformer* model = nullptr;
  const Cluster* cluster = nullptr;
  const Catalog* catalog = nullptr;  // nullptr: what model a file names is not looked up
};

}  // namespace shardwise
