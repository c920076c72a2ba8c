#include "catalog/stored_weights.hpp"

#include <array>
#include <string_view>

#include "catalog/json_reader.hpp"
#include "catalog/names.hpp"

namespace shardwise {
namespace {

// What a quant_method may come to. Two methods share gptq's row where their weights are 4-bit codes
// with a scale and a zero for each group: AutoAWQ packs them so (awq/modules/linear/gemm.py), and
// compressed-tensors' pack-quantized (compressors/quantized_compressors/pack_quantized.py).
enum class Told { bitsandbytes, packed, eight_bit_float, compressed };

constexpr std::array<std::pair<std::string_view, Told>, 9> methods_told{{
    {"bitsandbytes", Told::bitsandbytes},
    {"bitsandbytes_4bit", Told::bitsandbytes},
    {"bitsandbytes_8bit", Told::bitsandbytes},
    {"gptq", Told::packed},
    {"awq", Told::packed},
    {"auto-round", Told::packed},
    {"fp8", Told::eight_bit_float},
    {"fbgemm_fp8", Told::eight_bit_float},
    {"compressed-tensors", Told::compressed},
}};

constexpr int most_bits = 32;

void add_bits(StoredWeights& stored, int bits) {
  stored.format += ", " + std::to_string(bits) + " bit";
}

// fp4 takes as much as nf4: another table of 16 values.
void read_bitsandbytes(JsonReader& r, StoredWeights& stored) {
  const bool nested = r.maybe_flag("bnb_4bit_use_double_quant").value_or(false);
  if (r.maybe_flag("load_in_8bit").value_or(false)) {
    add_bits(stored, 8);
    stored.counted = Quantization::int8;
  } else if (r.maybe_flag("load_in_4bit").value_or(false)) {
    add_bits(stored, 4);
    if (nested) stored.format += " with constants quantised again";
    stored.counted = nested ? Quantization::nf4_double : Quantization::nf4;
  }
}

void read_packed(StoredWeights& stored, std::optional<int> bits) {
  if (!bits) return;
  add_bits(stored, *bits);
  if (*bits == 4) stored.counted = Quantization::gptq;
}

// The first of its groups stands for the weights.
std::optional<int> bits_of_first_group(JsonReader& r) {
  auto groups = r.maybe_object("config_groups");
  if (!groups || groups->keys().empty()) return std::nullopt;
  auto group = groups->maybe_object(groups->keys().front());
  auto weights = group ? group->maybe_object("weights") : std::nullopt;
  return weights ? weights->maybe_integer("num_bits", 1, most_bits) : std::nullopt;
}

void read_compressed(JsonReader& r, StoredWeights& stored) {
  const std::string packing = r.maybe_text("format").value_or("");
  if (!packing.empty()) stored.format += " " + printable(packing, 40);
  const auto bits = bits_of_first_group(r);
  if (packing == "pack-quantized") return read_packed(stored, bits);
  if (bits) add_bits(stored, *bits);
  if (packing == "float-quantized" && bits.value_or(8) == 8) stored.counted = Quantization::fp8;
}

}  // namespace

std::optional<StoredWeights> read_stored_weights(JsonReader& config) {
  auto r = config.maybe_object("quantization_config");
  if (!r) return std::nullopt;
  StoredWeights stored;
  // Files from before quant_method are bitsandbytes'.
  const std::string method = r->maybe_text("quant_method").value_or("bitsandbytes");
  stored.format = printable(method, 40);
  for (const auto& [name, told] : methods_told) {
    if (name != method) continue;
    if (told == Told::bitsandbytes) read_bitsandbytes(*r, stored);
    if (told == Told::packed) {
      const auto bits = r->maybe_integer("bits", 1, most_bits);
      read_packed(stored, bits ? bits : r->maybe_integer("w_bit", 1, most_bits));
    }
    if (told == Told::eight_bit_float) stored.counted = Quantization::fp8;
    if (told == Told::compressed) read_compressed(*r, stored);
  }
  return stored;
}

}  // namespace shardwise
