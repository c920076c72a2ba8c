// A request with every name looked up and every default filled in that does not depend on the plan.
//
//   methods   those asked for; else full, lora and qlora
//   sequence  2048, or 4096 where only pre-training is asked for; at most what the model can take
//             where the samples' lengths are known, the longest of them instead, and never more
//   batch     16 sequences, or half a million tokens where only pre-training is asked for, rounded
//             up to a multiple of the GPUs. No default ever displaces what was asked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/cluster.hpp"
#include "catalog/result.hpp"
#include "planner/facts.hpp"
#include "planner/request/plan_from.hpp"
#include "planner/request/request.hpp"
#include "planner/request/sample_lengths.hpp"

namespace shardwise {

struct ResolvedRequest {
  Request asked;  // with what files said and commands set; the echo tells it from `stated`
  const Facts* facts = nullptr;  // outlives the request
  Transformer model{};
  std::vector<Cluster> clusters{};  // several where a bare memory size stands for several cards
  std::optional<std::string> first_card{};  // a note of which is taken where one answer is wanted
  std::vector<Method> methods{};
  int sequence = 0;
  std::shared_ptr<const SampleLengths> lengths{};  // of --lengths
  int batch = 0;
  ImagesSeen images{};  // of a sequence
  // Where one question is about several sizes of a cluster: the most GPUs of any, whose usual
  // framework all of them then run, so that their answers differ in nothing but the size.
  int most_gpus = 0;
  bool host_ram_stated = false;      // by a size, or by naming a node whose size is catalogued
  std::vector<std::string> notes{};  // what a name was taken to mean, in whole sentences
  std::string model_size{};          // that of the model, where the answer's head says it
  std::vector<PlanFileReport> plan_files{};  // of --plan-from; what they say is in `asked`
  std::optional<double> learning_rate{};     // of those files, with
  std::optional<int> learning_rate_batch{};  // the sequences per step that it goes with

  Request stated{};  // what was asked, as the answer echoes it

  static constexpr std::int64_t usual_samples = 1000;

  int gpus() const { return clusters.front().gpus(); }
  std::int64_t tokens_per_sample() const {
    return std::int64_t{sequence} * (asked.preference != nullptr ? asked.preference->sequences : 1);
  }
  // What a time is told for: the tokens or samples asked about, else 1,000 samples.
  double tokens_in_all() const {
    return asked.tokens ? static_cast<double>(*asked.tokens)
                        : static_cast<double>(asked.samples.value_or(usual_samples)) *
                              static_cast<double>(tokens_per_sample());
  }
};

// Which methods to try where none is named. Where it is one, so is the card: the first of those
// that a bare memory size stands for.
enum class UnnamedMethods { fine_tuning, one };

// Problems name the flag that is wrong, or the place in a plan file that says it.
Result<ResolvedRequest> resolve(const Request& request, const Facts& facts, UnnamedMethods unnamed);

// Sequences per step where nobody asks for a number, for what is otherwise settled.
int usual_batch(const ResolvedRequest& request);

// Of flags that plan files have spoken for, the files' keys.
Problems placed(const ResolvedRequest& request, Problems problems);

}  // namespace shardwise
