// The lengths of the samples that are trained on, as --lengths names a file of them: one number of
// tokens a line, or a JSON array of such numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/result.hpp"

namespace shardwise {

struct SampleLengths {
  std::string file;
  std::vector<int> tokens;  // of each sample, in the order of the file; at least one

  int longest() const;
  std::int64_t sum(int most) const;          // of tokens, where samples are cut at `most`
  std::int64_t longer_than(int most) const;  // samples
};

// Problems name the file and the line (or the JSON element) that is no number of tokens.
Result<SampleLengths> read_sample_lengths(const std::string& path);

// The length at which memory is judged: of the longest sample, as no batch is longer, rounded up to
// what every plan can cut into equal parts; at most `limit`.
int judged_length(const SampleLengths& lengths, int limit);

// "lengths.txt: 12,345 samples, 512 tokens on average, 3,001 the longest; ..."
std::string told(const SampleLengths& lengths, int sequence);

}  // namespace shardwise
