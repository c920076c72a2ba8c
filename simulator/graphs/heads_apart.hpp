// Attention as courses write it: a module for each head, with three linears of its own, in a loop.
//
// Each of h linears is a product of its own, of d columns. autocast casts what each of them reads
// anew, for it caches weights alone, and autograd keeps every copy; backward each gives a gradient
// of the same input, which is added to those before. Scores, mask, softmax and dropout are kernels
// of one head (counted of prasannakotyal/distributed-transformer @e266ece models/
// self_attention.py): besides the two products forward a scale, a comparison, two of masked_fill
// and a softmax, dropout where there is one, and under autocast a cast to fp32 and one back;
// besides four backward the like without comparison.
#pragma once

#include <string_view>

#include "simulator/graphs/graph_builder.hpp"

namespace shardwise {

// Makes the linear that was added last, from `in` columns of `source` to those of `heads` heads,
// one linear for each head. Nothing where models are not written so, nor where what was added last
// is not the linear of that name: an adapter behind it, or the keys' where values are keys.
void part_linear(GraphBuilder& b, std::string_view name, TensorIndex source, std::int64_t rows,
                 std::int64_t in, std::int64_t heads);

// The kernels of one head after the other, in place of those of all.
void part_attention(const GraphBuilder& b, Operator& op, std::int64_t heads);

}  // namespace shardwise
