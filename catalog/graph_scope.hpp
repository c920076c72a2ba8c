// Which parts of every layer CUDA graphs hold, by Megatron-Core's names (cuda_graph_scope, later
// cuda_graph_modules).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace shardwise {

enum class GraphScope : std::uint8_t { attn, mlp, moe, moe_router, moe_preprocess, mamba };

class GraphScopes {
 public:
  GraphScopes() = default;
  GraphScopes(std::initializer_list<GraphScope> scopes) {
    for (const GraphScope s : scopes) add(s);
  }
  void add(GraphScope s) { bits_ |= bit(s); }
  bool has(GraphScope s) const { return (bits_ & bit(s)) != 0; }
  bool any() const { return bits_ != 0; }
  friend bool operator==(const GraphScopes&, const GraphScopes&) = default;

 private:
  static unsigned bit(GraphScope s) { return 1U << static_cast<unsigned>(s); }
  unsigned bits_ = 0;
};

}  // namespace shardwise
