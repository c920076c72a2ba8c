// DoRA beside a linear: a trained magnitude for each of its columns (arXiv 2402.09353).
#pragma once

#include <cstdint>
#include <string_view>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// As PEFT writes it (0.21.2, tuners/lora/dora.py, DoraLinearLayer.forward): with |W + s B A| taken
// over a weight that is made, g = magnitude / norm and z = B A x,
//   y <- y + (g - 1) y + s g z.
struct DoraShape {
  std::int64_t rows = 0, in = 0, out = 0;
  std::int64_t rank = 0, copies = 1;  // adapters that share the rows
  std::int64_t element = 2;           // bytes of y
  std::int64_t width = 2;             // of z, and of what A and B multiply
  std::int64_t read = 2;              // of x where the adapter gets it
  std::int64_t base = 2;              // of the linear's weight, dequantised
  std::int64_t magnitude = 2;
  bool quantized = false;
  bool dropout = false;
  DType dtype = DType::bf16;  // of A's and B's products

  // Of y's and z's products with g.
  std::int64_t scaled() const;
  // The weight as x's format: copied to it, or made by dequantisation.
  bool copies_weight() const { return quantized || read != base; }
  // Autocast copies what A reads to 16 bits.
  bool autocasts() const { return width < read; }
  // While y is scaled, what the norm was taken of: the weight's copy, B A and the identity.
  std::int64_t held() const;
};

// The norm, before A's product.
void add_column_norms(Operator& down, const DoraShape& shape);

// What y becomes. With dropout the base's product is made again, of what A reads.
TensorIndex scale_columns(GraphBuilder& b, std::string_view name, const DoraShape& shape,
                          TensorIndex seen, TensorIndex y, TensorIndex z);

}  // namespace shardwise
