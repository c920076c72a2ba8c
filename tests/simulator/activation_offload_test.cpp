// Activations that wait in host memory: what is away, what is back, and what was on the host at
// most. Blocks are whole MiB, so the allocator rounds nothing.
#include "simulator/memory/activation_offload.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t one_mib = 1 << 20;

struct OffloadedRun {
  MemoryLedger ledger{AllocatorSettings{}};
  ActivationOffload offload;
  std::vector<std::vector<Holding>> units;

  explicit OffloadedRun(double share) : offload(ledger, share) { units.reserve(8); }

  // A unit of one 24 and one 8 MiB tensor, sent when its forward is over.
  void forward(int unit) {
    std::vector<Holding>& held = units.emplace_back();
    for (const std::int64_t size : {8 * one_mib, 24 * one_mib})
      held.push_back(ledger.open(size, MemoryCategory::activations));
    std::vector<Holding*> saved;
    for (Holding& h : held) saved.push_back(&h);
    offload.send({unit, 0, 0}, saved);
  }
};

}  // namespace

TEST_CASE("An offloaded unit leaves when the next one's forward is over", "[offload]") {
  OffloadedRun run(1.0);
  run.forward(0);
  CHECK(run.ledger.allocated() == Bytes(32 * one_mib));  // its copy runs
  run.forward(1);
  CHECK(run.ledger.allocated() == Bytes(32 * one_mib));  // unit 0 is away
  CHECK(run.offload.most_on_host() == Bytes(32 * one_mib));
  run.offload.fetch({0, 0, 0});
  CHECK(run.ledger.allocated() == Bytes(64 * one_mib));
}

// Three eighths of 32 MiB are 12: the larger tensor is cut, and 12 of its 24 MiB stay.
TEST_CASE("A share of the bytes goes, the largest tensors first", "[offload]") {
  OffloadedRun run(0.375);
  run.forward(0);
  run.forward(1);
  CHECK(run.offload.most_on_host() == Bytes(12 * one_mib));
  CHECK(run.ledger.allocated() == Bytes((20 + 32) * one_mib));
  run.offload.fetch({0, 0, 0});
  CHECK(run.ledger.allocated() == Bytes(64 * one_mib));
}

TEST_CASE("A unit whose backward comes at once was never away", "[offload]") {
  OffloadedRun run(1.0);
  run.forward(0);
  run.offload.fetch({0, 0, 0});
  run.forward(1);
  CHECK(run.ledger.allocated() == Bytes(64 * one_mib));
  CHECK(run.offload.most_on_host() == Bytes(0));
}

}  // namespace shardwise
