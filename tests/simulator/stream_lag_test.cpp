// Freed blocks that the GPU still reads. Blocks are 32 MiB, a segment each.
#include "simulator/memory/stream_lag.hpp"
#include "tests/catch.hpp"

namespace shardwise {
namespace {

constexpr std::int64_t size = 32 << 20;
constexpr StreamId reader{3};

Holding opened(MemoryLedger& ledger) { return ledger.open(size, MemoryCategory::temporaries); }

}  // namespace

// The GPU does nothing while entries are issued, but no more than ten wait: after twelve the second
// is done, which is the event that was recorded when the block was freed.
TEST_CASE("A block that a collective read comes back when the launch queue has moved past it",
          "[stream_lag]") {
  MemoryLedger ledger{AllocatorSettings{}};
  StreamLag lag(ledger, reader, {0.0, 10});
  Holding first = opened(ledger);
  lag.advance(1);
  lag.release(first);
  CHECK(ledger.allocated() == Bytes(0));  // it counts as free at once
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(2 * size));  // but cannot be used
  lag.advance(9);
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(3 * size));
  lag.advance(1);
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(3 * size));
}

TEST_CASE("A GPU that keeps up leaves nothing waiting", "[stream_lag]") {
  MemoryLedger ledger{AllocatorSettings{}};
  StreamLag lag(ledger, reader, {1.0, 1000});
  Holding first = opened(ledger);
  lag.release(first);
  lag.advance(1);
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(size));
}

TEST_CASE("A CPU that waits for the GPU gets every block back", "[stream_lag]") {
  MemoryLedger ledger{AllocatorSettings{}};
  StreamLag lag(ledger, reader, {0.0, 1000});
  Holding first = opened(ledger);
  lag.advance(1);
  lag.release(first);
  lag.catch_up();
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(size));
}

namespace {

// What is released after one kernel, by an event, is held while the next kernel is issued, and is
// back with the third.
void gives_nothing_back(MemoryLedger& ledger, StreamLag& lag, Holding& first) {
  lag.advance(1);
  lag.release(first);
  lag.advance(1);
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(2 * size));
  lag.advance(1);
  CHECK(opened(ledger).block);
  CHECK(ledger.reserved() == Bytes(2 * size));
}

}  // namespace

// The GPU keeps up, but waits in a send while the next two entries are issued: what was freed
// meanwhile comes back with the third kernel.
TEST_CASE("A GPU that waits in a send gives nothing back", "[stream_lag]") {
  MemoryLedger ledger{AllocatorSettings{}};
  StreamLag lag(ledger, reader, {1.0, 1000, 2.0});
  Holding first = opened(ledger);
  lag.stall();
  gives_nothing_back(ledger, lag, first);
}

// Microbatches that are not played have let the CPU lead by two entries: as above.
TEST_CASE("A lead from earlier microbatches gives nothing back", "[stream_lag]") {
  MemoryLedger ledger{AllocatorSettings{}};
  StreamLag lag(ledger, reader, {1.0, 1000, 0.0, 2.0});
  Holding first = opened(ledger);
  lag.begin();
  gives_nothing_back(ledger, lag, first);
}

}  // namespace shardwise
