// Training methods: everything, adapters beside frozen weights, adapters beside quantised ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "catalog/dtype.hpp"

namespace shardwise {

enum class Method : std::uint8_t { pretrain, full, lora, dora, qlora };

struct MethodRow {
  Method method;
  std::string_view name;
  bool trains_base;  // every base weight has a gradient
  bool adapter;      // low-rank pairs beside frozen linears
};

inline constexpr std::array<MethodRow, 5> method_rows{{
    {Method::pretrain, "pretrain", true, false},
    {Method::full, "full", true, false},
    {Method::lora, "lora", false, true},
    {Method::dora, "dora", false, true},
    {Method::qlora, "qlora", false, true},
}};
constexpr const MethodRow& row(Method m) { return method_rows[static_cast<std::size_t>(m)]; }
constexpr std::string_view name(Method m) { return row(m).name; }
constexpr std::optional<Method> method_named(std::string_view name) {
  for (const MethodRow& r : method_rows)
    if (r.name == name) return r.method;
  return std::nullopt;
}

// The linears that carry an adapter.
struct AdapterTargets {
  bool q = true, k = true, v = true, o = true, gate = true, up = true, down = true;
  bool embedding = false, lm_head = false;
  friend bool operator==(const AdapterTargets&, const AdapterTargets&) = default;
};

// As requests and readings name them, in the order in which a list of them is written.
inline constexpr std::array<std::pair<std::string_view, bool AdapterTargets::*>, 9> adapter_linears{
    {{"q", &AdapterTargets::q},
     {"k", &AdapterTargets::k},
     {"v", &AdapterTargets::v},
     {"o", &AdapterTargets::o},
     {"gate", &AdapterTargets::gate},
     {"up", &AdapterTargets::up},
     {"down", &AdapterTargets::down},
     {"embedding", &AdapterTargets::embedding},
     {"lm_head", &AdapterTargets::lm_head}}};

// How frozen weights are stored. Sources: bitsandbytes/functional.py:917-957 (block 64, fp32
// absmax; nested: 8-bit absmax in blocks of 256), arXiv 2305.14314 section 3; GPTQ as AutoGPTQ
// packs it, a fp16 scale and a 4-bit zero per group of 128 (qlinear_cuda_old.py @179776bd1d); fp8
// with one scale per matrix, as Transformer Engine makes parameters (te.fp8_model_init); nvfp4 by
// rows and by columns, a scale of 8 bits per 16 (its NVFP4Quantizer, which MLPerf Training 6.0's
// callback_nvfp4.py puts in place of a checkpoint's weights).
enum class Quantization : std::uint8_t { none, nf4, nf4_double, int8, gptq, fp8, nvfp4 };

struct QuantizationRow {
  Quantization quantization;
  std::string_view name;
  double bytes_per_weight;  // constants included
  double bytes_per_code;    // without them
};

constexpr bool is_bitsandbytes(Quantization q) {
  return q == Quantization::nf4 || q == Quantization::nf4_double || q == Quantization::int8;
}

// Products read them as they are stored.
constexpr bool is_operand(Quantization q) {
  return q == Quantization::fp8 || q == Quantization::nvfp4;
}

inline constexpr std::array<QuantizationRow, 7> quantization_rows{{
    {Quantization::none, "none", 2.0, 2.0},
    {Quantization::nf4, "nf4", 0.5 + 4.0 / 64.0, 0.5},
    {Quantization::nf4_double, "nf4-double", 0.5 + 1.0 / 64.0 + 4.0 / (64.0 * 256.0), 0.5},
    {Quantization::int8, "int8", 1.0, 1.0},
    {Quantization::gptq, "gptq", 0.5 + (2.0 + 0.5) / 128.0, 0.5},
    {Quantization::fp8, "fp8", 1.0, 1.0},
    {Quantization::nvfp4, "nvfp4", 2 * (0.5 + 1.0 / 16.0), 2 * 0.5},
}};
constexpr const QuantizationRow& row(Quantization q) {
  return quantization_rows[static_cast<std::size_t>(q)];
}
constexpr std::optional<Quantization> quantization_named(std::string_view name) {
  for (const QuantizationRow& r : quantization_rows)
    if (r.name == name) return r.quantization;
  return std::nullopt;
}

// What an adapter does with the input of the linear beside it.
enum class AdapterInput : std::uint8_t {
  copied,  // cast to the adapter's format, and kept (LoRA)
  shared,  // kept as it is: the linear runs on a changed weight
  unread,  // not kept: what reads it is frozen, or the method is not in the linears at all
  scaled,  // not kept, but the linear's result is: a trained vector multiplies it
};
inline constexpr std::array<std::pair<std::string_view, AdapterInput>, 4> adapter_input_names{{
    {"copied", AdapterInput::copied},
    {"shared", AdapterInput::shared},
    {"unread", AdapterInput::unread},
    {"scaled", AdapterInput::scaled},
}};

struct Adapter {
  int rank = 16;
  AdapterInput input = AdapterInput::copied;
  AdapterTargets targets;
  double dropout = 0.0;
  Quantization base = Quantization::none;
  friend bool operator==(const Adapter&, const Adapter&) = default;
};

}  // namespace shardwise
