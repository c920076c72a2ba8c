// The heap of the program: operator new and delete for small objects, a few instructions each.
//
// A search makes and drops layer graphs, costs and plans by the million, most of them under a
// kilobyte. One stretch of address space has a region for every size (16, 32, ... bytes), so that
// an address tells the size of what lies there. Each thread keeps a shelf of free pieces per size;
// what it has too many of goes in batches to the store that all threads share, and what a thread
// leaves on its shelves when it ends goes there too. Larger requests, and everything where no
// address space can be had, go to malloc. Memory of small objects is used again, never given back.
//
// Linked into programs, not into the libraries. Sanitizers watch the heap themselves: not there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDWISE_WATCHED_HEAP
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__linux__)
#define SHARDWISE_WATCHED_HEAP
#endif
#ifndef SHARDWISE_WATCHED_HEAP
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

namespace {

constexpr std::size_t step = 16;          // sizes are multiples
constexpr std::size_t sizes = 64;         // below 1 KiB; size 0 stays unused
constexpr std::size_t region_bits = 28;   // 256 MiB of addresses for each size
constexpr std::size_t new_pieces = 4096;  // bytes that are cut into pieces at once
constexpr std::uint32_t batch = 64;       // pieces that change hands at once

struct Piece {
  Piece* next;
  Piece* next_batch;  // of the first piece of a batch
};
static_assert(sizeof(Piece) <= step);

struct Shelf {
  Piece* first;
  std::uint32_t count;
};

struct Store {
  std::mutex mutex;
  std::array<Piece*, sizes> batches{};
  std::array<std::size_t, sizes> used{};  // of each region, in bytes
  bool asked = false;
};

constinit Store store;
// Where the regions begin, and how many bytes they have: 0 until the first small request.
constinit std::uintptr_t regions = 0;
constinit std::size_t reserved = 0;
constinit thread_local std::array<Shelf, sizes> shelves{};

void reserve_regions() {
  store.asked = true;
  constexpr std::size_t bytes = sizes << region_bits;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  regions = reinterpret_cast<std::uintptr_t>(at);
  reserved = bytes;
}

// Puts the pieces of a shelf into the store, all of them as one batch. REQUIRES the lock.
void put_back(std::size_t size, Shelf& shelf) {
  shelf.first->next_batch = store.batches[size];
  store.batches[size] = shelf.first;
  shelf = {};
}

// Gives a thread's pieces back when it ends.
struct Leaver {
  bool watches = false;
  ~Leaver() {
    const std::lock_guard lock(store.mutex);
    for (std::size_t size = 1; size < sizes; ++size)
      if (shelves[size].first != nullptr) put_back(size, shelves[size]);
  }
};
thread_local Leaver leaver;

// A batch from the store, or fresh pieces; an empty shelf where there are neither.
Shelf filled(std::size_t size) {
  const std::lock_guard lock(store.mutex);
  if (!store.asked) reserve_regions();
  if (Piece* const known = store.batches[size]) {
    store.batches[size] = known->next_batch;
    std::uint32_t count = 0;
    for (const Piece* p = known; p != nullptr; p = p->next) ++count;
    return {known, count};
  }
  const std::size_t each = size * step, count = new_pieces / each;
  std::size_t& used = store.used[size];
  if (reserved == 0 || used + count * each > std::size_t{1} << region_bits) return {};
  const std::uintptr_t begin = regions + (size << region_bits) + used;
  used += count * each;
  Shelf shelf{nullptr, static_cast<std::uint32_t>(count)};
  for (std::size_t i = count; i-- > 0;)
    shelf.first = new (reinterpret_cast<void*>(begin + i * each)) Piece{shelf.first, nullptr};
  return shelf;
}

void* from_malloc(std::size_t bytes) {
  for (;;) {
    if (void* const at = std::malloc(bytes == 0 ? 1 : bytes)) return at;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

[[gnu::noinline]] void* from_store(std::size_t size, std::size_t bytes) {
  leaver.watches = true;  // its first use in this thread has it destroyed at the end
  Shelf& shelf = shelves[size];
  shelf = filled(size);
  if (shelf.first == nullptr) return from_malloc(bytes);
  Piece* const piece = shelf.first;
  shelf.first = piece->next;
  --shelf.count;
  return piece;
}

// Keeps the latest pieces, which are near in the cache.
[[gnu::noinline]] void to_store(std::size_t size) {
  leaver.watches = true;
  Shelf& shelf = shelves[size];
  Piece* last = shelf.first;
  for (std::uint32_t i = 1; i < batch; ++i) last = last->next;
  Shelf older{last->next, shelf.count - batch};
  last->next = nullptr;
  shelf.count = batch;
  const std::lock_guard lock(store.mutex);
  put_back(size, older);
}

}  // namespace

void* operator new(std::size_t bytes) {
  const std::size_t size = (bytes + step - 1) / step;
  if (size - 1 >= sizes - 1) return from_malloc(bytes);
  Shelf& shelf = shelves[size];
  Piece* const piece = shelf.first;
  if (piece == nullptr) return from_store(size, bytes);
  shelf.first = piece->next;
  --shelf.count;
  return piece;
}

void operator delete(void* at) noexcept {
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) - regions;
  if (offset >= reserved) return std::free(at);
  const std::size_t size = offset >> region_bits;
  Shelf& shelf = shelves[size];
  shelf.first = new (at) Piece{shelf.first, nullptr};
  if (++shelf.count >= 2 * batch) to_store(size);
}

void operator delete(void* at, std::size_t) noexcept { operator delete(at); }
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete[](void* at) noexcept { operator delete(at); }
void operator delete[](void* at, std::size_t) noexcept { operator delete(at); }
#endif
