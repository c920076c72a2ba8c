// The same runtime with a card behind it: address space that nothing is ever written to, as large
// as CARD_GIB says, so that PyTorch's own caching allocator serves real tensors and says what it
// reserves. Kernels, cuBLAS and copies to the card do nothing; what is copied back is zero.
#define PRETEND_CARD
#include "pretend_gpu.c"

#include <sys/mman.h>

static const size_t address_space = 1ull << 44, page = 2 << 20;
static char* card;
static size_t used, held;  // addresses are not used again, bytes are
static struct {
  char* begin;
  size_t bytes;
} segments[1 << 16];

static size_t capacity(void) {
  const char* gib = getenv("CARD_GIB");
  return (size_t)((gib ? atof(gib) : 79.1) * (1ull << 30));
}
static int on_card(const void* p) {
  return card && (char*)p >= card && (char*)p < card + address_space;
}

cudaError_t cudaMalloc(void** p, size_t n) {
  if (!card)
    card = mmap(0, address_space, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  n = (n + page - 1) / page * page;
  if (held + n > capacity()) return cudaErrorMemoryAllocation;
  int i = 0;
  while (segments[i].begin) ++i;
  *p = segments[i].begin = card + used;
  segments[i].bytes = n;
  used += n;
  held += n;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  for (int i = 0; p && i < 1 << 16; ++i)
    if (segments[i].begin == p) {
      held -= segments[i].bytes;
      segments[i].begin = 0;
      break;
    }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *total = capacity();
  *free_bytes = *total - held;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** p, size_t n, unsigned f) {
  *p = aligned_alloc(512, (n + 511) / 512 * 512);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** p, size_t n) { return cudaHostAlloc(p, n, 0); }
cudaError_t cudaFreeHost(void* p) { free(p); return cudaSuccess; }
OK(cudaHostRegister, void* p, size_t n, unsigned f)
OK(cudaHostUnregister, void* p)
static cudaError_t copied(void* to, const void* from, size_t n) {
  if (!on_card(to)) on_card(from) ? memset(to, 0, n) : memcpy(to, from, n);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, enum cudaMemcpyKind k,
                            cudaStream_t s) {
  return copied(to, from, n);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, enum cudaMemcpyKind k) {
  return copied(to, from, n);
}
OK(cudaMemsetAsync, void* p, int v, size_t n, cudaStream_t s)
OK(cudaMemset, void* p, int v, size_t n)
OK(cudaMemcpyToSymbol, const void* s, const void* from, size_t n, size_t o, enum cudaMemcpyKind k)
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* a, const void* p) {
  memset(a, 0, sizeof *a);
  a->type = on_card(p) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  a->devicePointer = (void*)p;
  return cudaSuccess;
}

// Kernels.
OK(cudaLaunchKernel, const void* f, dim3 g, dim3 b, void** a, size_t m, cudaStream_t s)
OK(__cudaLaunchKernel, void* f, dim3 g, dim3 b, void** a, size_t m, cudaStream_t s)
OK(cudaLaunchKernelExC, const cudaLaunchConfig_t* c, const void* f, void** a)
OK(__cudaGetKernel, void** k, const void* f)
OK(cudaFuncSetAttribute, const void* f, enum cudaFuncAttribute a, int v)
OK(cudaKernelSetAttributeForDevice, cudaKernel_t f, enum cudaFuncAttribute a, int v, int d)
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void* f) {
  memset(a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024;
  a->numRegs = 32;
  a->binaryVersion = a->ptxVersion = 90;
  a->maxDynamicSharedSizeBytes = 232448;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int b, size_t m) {
  *n = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void* f, int b,
                                                                   size_t m, unsigned x) {
  *n = 2;
  return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void** p, const void* s) { return cudaMalloc(p, 4096); }
cudaError_t cudaDeviceGetPCIBusId(char* s, int n, int d) {
  strncpy(s, "0000:01:00.0", n);
  return cudaSuccess;
}

// cuBLAS and what PyTorch looks up in the driver. Handles are numbers, calls succeed.
#define NOTHING(name) \
  int name(void) { return 0; }
#define HANDLE(name) \
  int name(void** h) { *h = (void*)(++next_handle << 8); return 0; }
HANDLE(cublasCreate_v2) HANDLE(cublasLtMatmulDescCreate) HANDLE(cublasLtMatmulPreferenceCreate)
HANDLE(cublasLtMatrixLayoutCreate) HANDLE(cuCtxGetCurrent)
NOTHING(cublasDestroy_v2) NOTHING(cublasSetStream_v2) NOTHING(cublasSetWorkspace_v2)
NOTHING(cublasSetMathMode) NOTHING(cublasSetPointerMode_v2) NOTHING(cublasSetSmCountTarget)
NOTHING(cublasGemmEx) NOTHING(cublasGemmStridedBatchedEx) NOTHING(cublasSgemm_v2)
NOTHING(cublasSgemmEx) NOTHING(cublasLtMatmul) NOTHING(cublasLtMatmulAlgoCheck)
NOTHING(cublasLtMatmulDescDestroy) NOTHING(cublasLtMatmulDescSetAttribute)
NOTHING(cublasLtMatmulPreferenceDestroy) NOTHING(cublasLtMatmulPreferenceSetAttribute)
NOTHING(cublasLtMatrixLayoutDestroy) NOTHING(cublasLtMatrixLayoutSetAttribute)
NOTHING(cuCtxSetCurrent) NOTHING(cuLaunchKernel) NOTHING(cuModuleLoadData)
NOTHING(cuModuleGetFunction) NOTHING(cuFuncSetAttribute)
int cublasGetMathMode(void* h, int* mode) { *mode = 0; return 0; }
int cublasGetPointerMode_v2(void* h, int* mode) { *mode = 0; return 0; }
size_t cublasLtGetVersion(void) { return 130200; }
int cublasLtMatmulAlgoGetHeuristic(void* h, void* d, void* a, void* b, void* c, void* e, void* p,
                                   int wanted, void* results, int* found) {
  memset(results, 0, 96);  // one cublasLtMatmulHeuristicResult_t
  *found = 1;
  return 0;
}
