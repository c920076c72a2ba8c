#include "simulator/memory/shard_bucket.hpp"

namespace shardwise {

void ShardBucket::add(std::int64_t elements, double each, bool stepped) {
  const auto bytes = static_cast<std::int64_t>(static_cast<double>(elements) * each);
  Holding made = ledger_.open(bytes, MemoryCategory::gradients);
  stepped_ = stepped;
  if (bytes_ + bytes > room_) reduce();
  if (bytes_ + bytes <= room_)
    ledger_.close(made);
  else
    waiting_.push_back(made);
  ++members_;
  whole_parts_ = elements % ranks_ == 0;
  bytes_ += bytes;
  longest_ = std::max(longest_, (elements + ranks_ - 1) / ranks_);
}

void ShardBucket::reduce() {
  Holding flat;
  if (members_ > 1 || (members_ == 1 && !whole_parts_))
    flat = ledger_.open(bytes_, MemoryCategory::communication, stream_);
  if (to_host_ && stepped_ && members_ > 0) inspect_part();
  ledger_.close(flat);
  for (Holding& h : waiting_) ledger_.close(h);
  waiting_.clear();
  members_ = 0;
  bytes_ = longest_ = 0;
}

void ShardBucket::inspect_part() const {
  constexpr std::int64_t at_once = 250'000'000;  // elements: its buffer_size
  Holding part = ledger_.open(2 * longest_, MemoryCategory::gradients, stream_);
  Holding in_double =
      ledger_.open(8 * std::min(longest_, at_once), MemoryCategory::gradients, stream_);
  ledger_.close(in_double);
  Holding wide = ledger_.open(4 * longest_, MemoryCategory::gradients, stream_);
  ledger_.close(wide);
  ledger_.close(part);
}

}  // namespace shardwise
