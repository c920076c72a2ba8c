// How a checkpoint stores its weights, where it says so: config.json's quantization_config.
//
//   {"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_use_double_quant": true}
//     "bitsandbytes, 4 bit", counted as nf4-double
//
// The keys are those of transformers/utils/quantization_config.py: BitsAndBytesConfig, GPTQConfig,
// AwqConfig, FineGrainedFP8Config, FbgemmFp8Config, CompressedTensorsConfig, Mxfp4Config.
#pragma once

#include <optional>
#include <string>

#include "catalog/adapter.hpp"

namespace shardwise {

class JsonReader;

struct StoredWeights {
  std::string format;                   // in words, for readers: "awq, 4 bit"
  std::optional<Quantization> counted;  // the row that counts it; absent: none does
};

// Absent where the file says nothing. Problems go where `config` collects them.
std::optional<StoredWeights> read_stored_weights(JsonReader& config);

}  // namespace shardwise
