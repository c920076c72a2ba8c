// Layers that share keys and have embeddings of their own (Gemma 4 E2B and E4B).
#include <vector>

#include "simulator/graphs/layer_graph.hpp"
#include "simulator/model_partition.hpp"
#include "simulator/parameter_state.hpp"
#include "tests/catch.hpp"
#include "tests/simulator/kept_bytes.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;

namespace {

Workload sharing() {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 256);
  w.model.shared_keys = SharedKeys{2, true};
  return w;
}

}  // namespace

// k and v of 4 heads of 64 values each are neither made nor kept: 2 x 256 x 2 bytes of a token, and
// 2 x 512 x 256 weights; of an MLP twice as wide gate, up and product: 3 x 1408 x 2 bytes more.
TEST_CASE("a layer that shares keys makes and keeps none", "[layer_graph]") {
  const Workload w = sharing();
  BlockKind kind;
  const LayerGraph own = block_graph(w, plan_of(1), kind);
  kind.keys = KeySource::shared;
  const LayerGraph shared = block_graph(w, plan_of(1), kind);
  CHECK(kept_bytes(own) - kept_bytes(shared) == 256 * 2 * 256 * 2);
  CHECK(own.parameters.base() - shared.parameters.base() == 2 * 512 * 256);
  kind.double_wide_mlp = true;
  const LayerGraph wide = block_graph(w, plan_of(1), kind);
  CHECK(kept_bytes(wide) - kept_bytes(shared) == 256 * 3 * 1408 * 2);
  CHECK(wide.parameters.base() - shared.parameters.base() == 3 * 512 * 1408);
}

TEST_CASE("what a layer lends lives as long as who reads it, under a checkpoint too",
          "[layer_graph]") {
  const Workload w = sharing();
  BlockKind kind;
  const auto outliving = [&] {
    int n = 0;
    for (const Tensor& t : block_graph(w, plan_of(1), kind).tensors) n += t.outlives ? 1 : 0;
    return n;
  };
  CHECK(outliving() == 0);
  kind.keys = KeySource::lent;
  CHECK(outliving() == 2);
}

// Two tables of 1,000 rows of 4 heads of 64 values: 512,000 weights at the embedding, and of each
// token the rows that were looked up, 2 x 256 of 2 bytes.
TEST_CASE("value embeddings: tables that are looked up", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 256);
  const LayerGraph plain = embedding_graph(w, plan_of(1));
  w.model.value_embeddings = ValueEmbeddings{2};
  const LayerGraph more = embedding_graph(w, plan_of(1));
  CHECK(more.parameters.other - plain.parameters.other == 512'000);
  CHECK(kept_bytes(more) - kept_bytes(plain) == 256 * 2 * 256 * 2);
  CHECK(parameter_count(w.model).value_embeddings == 512'000);
}

// AdamW over fp32 weights stores 4 + 4 + 8 bytes each, of 512,000 of the token table as well;
// narrowed to bf16 that table, its gradient and two moments take 2 + 2 + 4. Muon leaves tables to
// AdamW. What computes in fp32 narrows nothing.
TEST_CASE("narrow tables have narrow gradients and states", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 256);
  w.framework.formats.pretrain_weights = WeightRecipe::fp32_with_half_compute;
  for (const char* optimizer : {"adamw", "muon"}) {
    w.optimizer = optimizer_named(optimizer);
    for (const bool narrow : {false, true}) {
      w.model.narrow_tables = narrow;
      const LayerGraph table = embedding_graph(w, plan_of(1));
      const LayerState s = layer_state(w, plan_of(1), table.parameters, true);
      const std::int64_t wide = narrow ? 1 : 2;
      CHECK(s.weights == wide * 2 * 512'000);
      CHECK(s.gradients == wide * 2 * 512'000);
      CHECK(s.optimizer == wide * 4 * 512'000);
      CHECK(s.stepped_elements == 512'000);
    }
  }
  w.compute = DType::fp32;
  const LayerGraph table = embedding_graph(w, plan_of(1));
  CHECK(layer_state(w, plan_of(1), table.parameters, true).weights == 4 * 512'000);
}

// In a block: what the gate reads (512 values of a token), the gate, its GELU, the product (64
// each), what the norm reads (512); 2 x 512 x 64 weights and a norm of 512. At the embedding: the
// pieces of all 4 layers, what the projection reads (512) and the norm does (4 x 64); a table of
// 1,000 rows of 256, 512 x 256 of the projection and a norm of 64.
TEST_CASE("embeddings of each layer: a table, a projection, a gate in every block",
          "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 256);
  const LayerGraph block = block_graph(w, plan_of(1), {});
  const LayerGraph embedding = embedding_graph(w, plan_of(1));
  w.model.layer_embeddings = LayerEmbeddings{1000, 64};
  const LayerGraph gated = block_graph(w, plan_of(1), {});
  CHECK(kept_bytes(gated) - kept_bytes(block) == 256 * 2 * (512 + 3 * 64 + 512));
  CHECK(gated.parameters.base() - block.parameters.base() == 2 * 512 * 64 + 512);
  const LayerGraph all = embedding_graph(w, plan_of(1));
  CHECK(kept_bytes(all) - kept_bytes(embedding) == 256 * 2 * (256 + 512 + 256));
  CHECK(all.parameters.base() - embedding.parameters.base() == 1000 * 256 + 512 * 256 + 64);
  const ParameterCount count = parameter_count(w.model);
  CHECK(all.parameters.base() == count.embedding + count.layer_embeddings);
  CHECK(gated.parameters.base() == count.dense_layer() + count.layer_input_per_layer);
}

TEST_CASE("the last layers read what the last of their kind lends", "[partition]") {
  const Workload w = sharing();  // four layers that see everything
  const ParallelPlan plan = plan_of(1);
  const ModelPartition p = partition_weights(w, plan, *find_pipeline_schedule(plan.schedule_row()));
  std::vector<KeySource> keys;
  for (const ChunkLayer& layer : p.stages.front().front().layers)
    if (layer.definition->role == LayerRole::block) keys.push_back(layer.definition->kind.keys);
  CHECK(keys == std::vector<KeySource>{KeySource::own, KeySource::lent, KeySource::shared,
                                       KeySource::shared});
}

// Four streams of 512 values between layers; projections of the three beside the first one: 3 h^2
// weights behind the embedding and 3 h^2 before the head. In a block a norm of h and a projection
// to a value for each stream (one set of weights, read twice), s^3 and s^2 of coefficients, a scale
// of h, and a linear through rank 16 with its norm. A gate that is cut is one tensor of the MLP's
// width more.
TEST_CASE("alternating updates count their projections and carry all streams", "[layer_graph]") {
  Workload w = pretraining(llama(4, 512, 8, 4, 1408, 1000), 256);
  w.model.norms.per_layer = 4;
  w.model.layer_embeddings = LayerEmbeddings{1000, 64};
  const ParameterCount without = parameter_count(w.model);
  const std::int64_t embedding = embedding_graph(w, plan_of(1)).parameters.base();
  const std::int64_t head = head_graph(w, plan_of(1), false).parameters.base();
  w.model.altup = AlternatingUpdates{4, 16, 2};
  const ParameterCount count = parameter_count(w.model);
  CHECK(count.streams == 6 * 512 * 512);
  CHECK(count.streams_per_layer == 64 + 16 + 4 * 512 + 512 + 512 + 2 * 512 * 16 + 512);
  CHECK(count.total - without.total == count.streams + 4 * count.streams_per_layer);
  CHECK(embedding_graph(w, plan_of(1)).parameters.base() - embedding == 3 * 512 * 512);
  CHECK(head_graph(w, plan_of(1), false).parameters.base() - head == 3 * 512 * 512);

  BlockKind kind;
  const LayerGraph plain = block_graph(w, plan_of(1), kind);
  CHECK(plain.tensors[static_cast<std::size_t>(plain.input)].bytes == 256 * 4 * 512 * 2);
  CHECK(plain.tensors[static_cast<std::size_t>(plain.output)].bytes == 256 * 4 * 512 * 2);
  kind.cuts_gate = true;
  CHECK(kept_bytes(block_graph(w, plan_of(1), kind)) - kept_bytes(plain) == 256 * 1408 * 2);
}
