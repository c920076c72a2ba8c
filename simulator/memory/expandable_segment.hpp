// Expandable segments: one range of address space per stream and pool, into which memory is mapped
// page by page as it is needed, so that blocks of any sizes can follow each other without gaps.
//
//   page = 2 MiB (small pool), 20 MiB (large pool): reserved grows and shrinks by whole pages
//   address space = 9/8 of the GPU's memory; a second segment only where a request has no room
//
// - Growth maps the fewest pages at the lowest address at which free and unmapped space together
//   hold the request, so free memory before the edge is used up first.
//                               [find_expandable_block, try_allocate_expandable_block, map_block]
// - Pages go back only when the cache is released, and only those without any block that is in
//   use or waiting: a free block gives the whole pages inside it.    [unmap_block, release_blocks]
// - In the search for the best fit, a block before unmapped space counts as large as it could
//   grow, so that other holes are filled before it.                               [get_free_block]
//
// Source: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp @001074d250, also its Note [Expandable
// Segments].
#pragma once

#include <optional>

#include "catalog/units.hpp"
#include "simulator/memory/block_pool.hpp"
#include "simulator/memory/device_memory.hpp"
#include "simulator/memory/memory_block.hpp"

namespace shardwise {

// The best fit for a request, given the first entry of at least its size.
FreeBlockSet::Position prefer_holes(const BlockPool& pool, const BlockList& blocks,
                                    FreeBlockSet::Position first);

// A free block of at least `size`, taken out of the set, made by mapping pages. None when the
// memory ends before; pages mapped on the way stay, as free blocks.
MaybeBlock grow(BlockPool& pool, BlockList& blocks, DeviceMemory& memory, Bytes size);

// Unmaps every page that lies wholly in a free block.
void unmap_free_pages(BlockPool& pool, BlockList& blocks, DeviceMemory& memory);

}  // namespace shardwise
