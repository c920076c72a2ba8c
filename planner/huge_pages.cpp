// The first 32 MiB of tcmalloc's heap lie in huge pages, where the system lends them to those who
// ask (transparent_hugepage: madvise or always); else, and behind them, memory is as usual. Pages
// are filled as they are touched, so a program that needs less takes no more than two MiB too much.
//
// A short question touches some 2,500 pages of 4 KiB for the first time, 512 of them for tcmalloc's
// page map before main() begins; each cost 2 us on the machine of tests/bench/README.md, in a huge
// page a fifth of that. tcmalloc asks for this replacement when it begins (gperftools,
// docs/tcmalloc.html and src/system-alloc.cc).
#include <gperftools/malloc_extension.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t huge_bytes = std::size_t{32} << 20;

std::uintptr_t rounded_up(std::uintptr_t at, std::size_t alignment) {  // a power of two
  return (at + alignment - 1) & ~(alignment - 1);
}

// Called by one thread at a time. No memory is given back to it.
class HugePagesFirst final : public SysAllocator {
 public:
  explicit HugePagesFirst(SysAllocator* otherwise) : otherwise_(otherwise) {
    void* const got = mmap(nullptr, huge_bytes + huge_page_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    next_ = rounded_up(reinterpret_cast<std::uintptr_t>(got), huge_page_bytes);
    end_ = next_ + huge_bytes;
    madvise(reinterpret_cast<void*>(next_), huge_bytes, MADV_HUGEPAGE);  // may be refused
  }

  void* Alloc(std::size_t size, std::size_t* actual, std::size_t alignment) override {
    const std::uintptr_t begin = rounded_up(next_, alignment < page_bytes ? page_bytes : alignment);
    if (begin > end_ || size > end_ - begin) return otherwise_->Alloc(size, actual, alignment);
    next_ = rounded_up(begin + size, page_bytes);
    if (actual != nullptr) *actual = next_ - begin;
    return reinterpret_cast<void*>(begin);
  }

 private:
  SysAllocator* const otherwise_;
  std::uintptr_t next_ = 0;
  std::uintptr_t end_ = 0;
};

alignas(HugePagesFirst) unsigned char place[sizeof(HugePagesFirst)];  // there is no heap yet

}  // namespace

SysAllocator* tc_get_sysalloc_override(SysAllocator* otherwise) {
  return new (place) HugePagesFirst(otherwise);
}
