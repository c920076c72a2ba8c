#include "simulator/memory/expandable_segment.hpp"

#include <algorithm>

#include "simulator/memory/allocator_settings.hpp"

namespace shardwise {
namespace {

// More memory than any GPU has, for a capacity that is none or absurd.
constexpr Bytes boundless{std::int64_t{1} << 44};

bool is_free(const BlockList& blocks, MemoryBlockId id) {
  return blocks[id].state == BlockState::free;
}
bool is_unmapped(const BlockList& blocks, MemoryBlockId id) {
  return blocks[id].state == BlockState::unmapped;
}

void add_unmapped(BlockPool& pool, const BlockList& blocks, MemoryBlockId id) {
  const auto place =
      std::find_if(pool.unmapped.begin(), pool.unmapped.end(),
                   [&](MemoryBlockId other) { return blocks[id].address < blocks[other].address; });
  pool.unmapped.insert(place, id);
}
void remove_unmapped(BlockPool& pool, MemoryBlockId id) {
  pool.unmapped.erase(std::find(pool.unmapped.begin(), pool.unmapped.end(), id));
}

// The capacity stands for the GPU's memory, of which it is most.
Bytes address_space(const DeviceMemory& memory, Bytes page, Bytes request) {
  const Bytes capacity = std::min(memory.capacity().value_or(boundless), boundless);
  return round_up(std::max(Bytes(capacity.value / 8 * 9), request), page);
}

MemoryBlockId new_segment(BlockPool& pool, BlockList& blocks, DeviceMemory& memory, Bytes request) {
  const Bytes space = address_space(memory, pool.page_size(), request);
  const MemoryBlockId id =
      blocks.create(memory.new_address_range(space), space, pool.index, BlockState::unmapped);
  add_unmapped(pool, blocks, id);
  return id;
}

// Free and unmapped space from `id` on, up to `enough`.
Bytes room_from(const BlockList& blocks, MemoryBlockId id, Bytes enough) {
  Bytes room;
  while (room < enough && (is_free(blocks, id) || is_unmapped(blocks, id))) {
    room += blocks[id].size;
    id = blocks[id].next;
  }
  return room;
}

// The lowest chain of free and unmapped blocks with room for `size`, unmapped at least in part.
MemoryBlockId find_room(BlockPool& pool, BlockList& blocks, DeviceMemory& memory, Bytes size) {
  for (MemoryBlockId id : pool.unmapped) {
    if (is_free(blocks, blocks[id].previous)) id = blocks[id].previous;
    if (room_from(blocks, id, size) >= size) return id;
  }
  return new_segment(pool, blocks, memory, size);
}

// Maps the pages that hold the first `size` bytes of the unmapped block `id`. They become a free
// block together with their free neighbours.
MaybeBlock map_front(BlockPool& pool, BlockList& blocks, DeviceMemory& memory, MemoryBlockId id,
                     Bytes size) {
  const Bytes pages = round_up(size, pool.page_size());
  if (!memory.has_room(pages)) return std::nullopt;
  memory.take(pages);
  if (pages == blocks[id].size) {
    remove_unmapped(pool, id);
  } else {
    id = blocks.cut_front(id, pages);  // the rest keeps its place among the unmapped
  }
  add_free(pool, blocks, id);
  return id;
}

struct PageRange {
  Bytes begin;
  Bytes end;
};

// Leaves of the free block what lies before and after the pages, and unmaps the rest.
void unmap_pages(BlockPool& pool, BlockList& blocks, DeviceMemory& memory, MemoryBlockId id,
                 PageRange pages) {
  pool.free.erase(blocks[id]);
  if (blocks[id].address < pages.begin) {
    const MemoryBlockId before = blocks.cut_front(id, pages.begin - blocks[id].address);
    pool.free.insert(before, blocks[before]);
  }
  if (pages.end < blocks[id].address + blocks[id].size) {
    const MemoryBlockId after = id;
    id = blocks.cut_front(id, pages.end - pages.begin);
    pool.free.insert(after, blocks[after]);
  }
  memory.give_back(pages.end - pages.begin);

  blocks[id].state = BlockState::unmapped;
  if (is_unmapped(blocks, blocks[id].previous)) {
    remove_unmapped(pool, blocks[id].previous);
    blocks.absorb_previous(id);
  }
  if (is_unmapped(blocks, blocks[id].next)) {
    remove_unmapped(pool, blocks[id].next);
    blocks.absorb_next(id);
  }
  if (blocks[id].is_split()) {
    add_unmapped(pool, blocks, id);
  } else {
    blocks.remove(id);  // nothing is mapped any more: the address space goes too
  }
}

}  // namespace

FreeBlockSet::Position prefer_holes(const BlockPool& pool, const BlockList& blocks,
                                    FreeBlockSet::Position first) {
  const auto size_when_grown = [&](FreeBlockSet::Position at) {
    const MemoryBlockId next = blocks[at->block].next;
    return is_unmapped(blocks, next) ? at->size + blocks[next].size : at->size;
  };
  FreeBlockSet::Position best = first;
  // One that cannot grow is no larger than all behind it.
  while (is_unmapped(blocks, blocks[best->block].next)) {
    const auto at = pool.free.after(best);
    if (at == nullptr || size_when_grown(at) >= size_when_grown(best)) break;
    best = at;
  }
  return best;
}

MaybeBlock grow(BlockPool& pool, BlockList& blocks, DeviceMemory& memory, Bytes size) {
  MaybeBlock id = find_room(pool, blocks, memory, size);
  if (is_unmapped(blocks, *id)) {
    id = map_front(pool, blocks, memory, *id, std::min(size, blocks[*id].size));
  }
  while (id && blocks[*id].size < size) {
    const MemoryBlockId next = blocks[*id].next;  // unmapped: free blocks have merged
    const Bytes missing = std::min(size - blocks[*id].size, blocks[next].size);
    id = map_front(pool, blocks, memory, next, missing);
  }
  if (id) pool.free.erase(blocks[*id]);
  return id;
}

void unmap_free_pages(BlockPool& pool, BlockList& blocks, DeviceMemory& memory) {
  for (const FreeBlock& entry : pool.free.entries()) {
    const PageRange pages{round_up(entry.address, pool.page_size()),
                          round_down(entry.address + entry.size, pool.page_size())};
    if (pages.begin < pages.end) unmap_pages(pool, blocks, memory, entry.block, pages);
  }
}

}  // namespace shardwise
