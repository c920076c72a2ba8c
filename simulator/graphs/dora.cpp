#include "simulator/graphs/dora.hpp"

#include <algorithm>
#include <utility>

namespace shardwise {

std::int64_t DoraShape::scaled() const { return std::max({element, width, magnitude}); }

std::int64_t DoraShape::held() const {
  const std::int64_t weights = (copies_weight() ? 2 : 1) * read * in * out;
  return weights + width * in * in;
}

// B A is made of the identity, which autocast copies to 16 bits; its result is copied to x's
// format, as the weight is. Then s B A, W + s B A (of which B A is a transposed view) and the norm
// of each column.
void add_column_norms(Operator& down, const DoraShape& d) {
  const std::int64_t square = d.in * d.in, weights = d.in * d.out;
  std::int64_t moved = d.read * square;
  int launches = 1;
  if (d.autocasts()) {
    moved += (d.read + d.width) * (square + weights);
    launches += 2;
  }
  if (d.read != d.base) {
    moved += (d.base + d.read) * weights;
    ++launches;
  }
  moved += 2 * d.read * weights;
  down.forward.push_back(GemmWork{d.in, d.rank, d.in, d.copies, d.dtype});
  down.forward.push_back(GemmWork{d.in, d.out, d.rank, d.copies, d.dtype});
  down.forward.push_back(traffic(as_double(d.copies * moved), launches + 1));
  down.forward.push_back(
      one_by_one(3 * as_double(d.copies * d.read * weights), 1, as_double(d.copies * weights)));
  down.forward.push_back(
      traffic(as_double(d.copies * d.read * weights), 1, MemoryAccess::reduction));
  down.forward_temporary = Bytes(d.held() + 2 * d.read * weights);
}

namespace {

// The frozen weight's copy stays until backward, which multiplies by it.
TensorIndex base_of_dropped(GraphBuilder& b, const DoraShape& d, TensorIndex seen) {
  const TensorIndex result = b.tensor_bytes("dora_base", d.rows * d.out * d.width,
                                            MemoryCategory::temporaries, d.rows * d.out * d.width);
  const std::int64_t each = std::max<std::int64_t>(1, d.rows / d.copies);
  const std::int64_t weights = d.copies * d.in * d.out;
  Operator op;
  op.name = "dora_base";
  op.kind = OperatorKind::matmul;
  op.inputs = {seen};
  op.outputs = {result};
  if (d.autocasts()) {  // the weight and x to 16 bits, and x's gradient back
    const auto both = static_cast<double>(d.read + d.width);
    op.forward.push_back(traffic(both * as_double(weights + d.rows * d.in), 2));
    op.backward.push_back(traffic(both * as_double(d.rows * d.in), 1));
    op.forward_temporary = Bytes(d.held() + d.width * d.rows * d.in);
  } else {
    op.forward_temporary = Bytes(d.held() - (d.copies_weight() ? d.read * d.in * d.out : 0));
  }
  op.forward.push_back(GemmWork{each, d.out, d.in, d.copies, d.dtype});
  op.backward.push_back(GemmWork{each, d.in, d.out, d.copies, d.dtype});
  if (d.copies_weight() || d.autocasts()) {
    op.saves = {b.tensor_bytes(
        "dora_weight", weights * d.width,
        d.quantized ? MemoryCategory::quantization : MemoryCategory::gathered_parameters, 0)};
    op.outputs.push_back(op.saves.front());
  }
  b.add(std::move(op));
  return result;
}

// Bytes of each value. Forward: (g - 1) y, g z, s (g z), their sum, y + it, and that in y's format;
// a factor for each column is broadcast. Backward: the gradient in the products' format and back
// for y itself, s times it, by g - 1 and g to y and z, and added to y's.
void scale_each(Operator& op, const DoraShape& d, std::int64_t base) {
  const double values = as_double(d.rows * d.out);
  const std::int64_t m = d.scaled(), e = d.element, l = d.width;
  const bool narrows = m > e;
  const std::int64_t products = base + l + 2 * m, sums = 2 * m + 3 * m, added = e + 2 * m;
  op.forward = {
      one_by_one(values * as_double(products), 2, 2 * values),
      traffic(values * as_double(sums), 2),
      one_by_one(values * as_double(added), 1, narrows ? values : 0.0),
  };
  if (narrows) op.forward.push_back(traffic(values * as_double(m + e), 1));
  // Both ways between the formats; s; the result in z's and the base's format.
  const int copies = (narrows ? 2 : 0) + (m > l ? 1 : 0) + (m > base ? 1 : 0);
  std::int64_t straight = 2 * m + (narrows ? 2 * (m + e) : 0);
  if (m > l) straight += m + l;
  if (m > base) straight += m + base;
  if (!d.dropout) straight += 3 * e;
  op.backward = {
      traffic(values * as_double(straight), 1 + copies + (d.dropout ? 0 : 1)),
      one_by_one(values * as_double(4 * m), 2, 2 * values),
  };
  // The magnitude's: the gradient by y and by z, each summed over the rows.
  const double mixed = (m > l ? values : 0.0) + (m > base ? values : 0.0);
  op.backward_weight = {
      one_by_one(values * as_double(4 * m + l + base), 2, mixed),
      traffic(values * as_double(2 * m), 2, MemoryAccess::reduction),
  };
  // The three results that are there at once, of which y's own is made last; backward the gradient,
  // s times it and its two products, beside the narrow one for y.
  op.forward_temporary = Bytes(d.held() + d.rows * d.out * (3 * m - e));
  op.backward_temporary = Bytes(d.rows * d.out * (narrows ? 4 : 3) * m);
}

}  // namespace

TensorIndex scale_columns(GraphBuilder& b, std::string_view name, const DoraShape& d,
                          TensorIndex seen, TensorIndex y, TensorIndex z) {
  const TensorIndex scaled = d.dropout ? base_of_dropped(b, d, seen) : y;
  const TensorIndex sum = b.tensor(name, d.rows * d.out);
  // The norms, g and g - 1.
  const TensorIndex factors = b.tensor_bytes("dora_factors", 3 * d.copies * d.out * d.magnitude,
                                             MemoryCategory::temporaries, 0);
  Operator op;
  op.name = "dora_scale";
  op.inputs = {y, z};
  if (d.dropout) op.inputs.push_back(scaled);
  op.outputs = {sum, factors};
  op.saves = {scaled, z, factors};
  scale_each(op, d, d.dropout ? d.width : d.element);
  op.weight_gradient_elements = d.copies * d.out;
  b.add(std::move(op));
  return sum;
}

}  // namespace shardwise
