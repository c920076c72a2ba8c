#include "planner/report/layout_words.hpp"

#include <vector>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

std::string data_words(const ParallelPlan& p) {
  const int ranks = p.data * p.context;  // that ZeRO shards over
  if (ranks > 1 && p.zero_stage >= 3 && p.shard_ranks() < ranks)
    return sentence("fully sharded (FSDP) within groups of ", grouped(p.shard_ranks()), " of ",
                    grouped(ranks), " GPUs (HSDP)");
  if (ranks > 1 && p.zero_stage >= 3)
    return sentence("fully sharded (FSDP) over ", grouped(ranks), " GPUs");
  if (ranks > 1 && p.zero_stage > 0)
    return sentence("ZeRO-", p.zero_stage, " over ", grouped(ranks), " GPUs");
  if (p.data > 1) return sentence("data parallel over ", grouped(p.data), " GPUs");
  return "";
}

}  // namespace

std::string layout_words(const ParallelPlan& p) {
  std::vector<std::string> words;
  if (p.layer_split)
    words.push_back(sentence("layers split over ", p.pipeline, " cards"));
  else if (p.pipeline > 1)
    words.push_back(sentence("pipeline of ", p.pipeline));
  if (p.tensor > 1) words.push_back(sentence("tensor parallel ", p.tensor));
  if (p.context > 1) words.push_back(sentence("each sequence shared by ", p.context, " GPUs"));
  if (p.expert > 1) words.push_back(sentence("experts over ", grouped(p.expert), " GPUs"));
  if (std::string data = data_words(p); !data.empty()) words.push_back(std::move(data));
  if (words.empty()) words.emplace_back("one GPU");
  if (p.offload.parameters) words.emplace_back("weights offloaded to the host");
  if (p.offload.optimizer) words.emplace_back("optimizer offloaded to the host");
  if (p.offload.activations)
    words.emplace_back(p.recompute == "full" ? "layers' inputs offloaded to the host"
                                             : "activations offloaded to the host");
  return listed(words, ", ");
}

std::string offload_words(const ParallelPlan& p) {
  std::vector<std::string_view> words;
  if (p.offload.parameters) words.emplace_back("weights");
  if (p.offload.optimizer) words.emplace_back("optimizer");
  if (p.offload.activations)
    words.emplace_back(p.recompute == "full" ? "layers' inputs" : "activations");
  return listed(words, ", ");
}

}  // namespace shardwise
