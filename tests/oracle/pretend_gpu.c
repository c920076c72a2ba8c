#define cudaStreamGetCaptureInfo declared_stream_capture_info
#include <cuda_runtime_api.h>
#undef cudaStreamGetCaptureInfo
#include <stdlib.h>
#include <string.h>

#define OK(name, ...) \
  cudaError_t name(__VA_ARGS__) { return cudaSuccess; }

#undef cudaGetDeviceProperties
static struct cudaDeviceProp h100(void) {
  struct cudaDeviceProp p;
  memset(&p, 0, sizeof p);
  strcpy(p.name, "pretended H100");
  p.totalGlobalMem = 80ull << 30;
  p.sharedMemPerBlock = 49152;
  p.regsPerBlock = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.major = 9;
  p.minor = 0;
  p.multiProcessorCount = 132;
  p.l2CacheSize = 50 << 20;
  p.maxThreadsPerMultiProcessor = 2048;
  p.sharedMemPerMultiprocessor = 233472;
  p.sharedMemPerBlockOptin = 232448;
  p.regsPerMultiprocessor = 65536;
  p.textureAlignment = 512;
  p.unifiedAddressing = 1;
  return p;
}
cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
OK(cudaSetDevice, int d)
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int d) { *p = h100(); return cudaSuccess; }
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp* p, int d) { *p = h100(); return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* v) { *v = 13020; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { *v = 13020; return cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* v, enum cudaDeviceAttr a, int d) {
  struct cudaDeviceProp p = h100();
  switch (a) {
    case cudaDevAttrComputeCapabilityMajor: *v = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *v = 0; break;
    case cudaDevAttrMultiProcessorCount: *v = 132; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = (int)p.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxThreadsPerBlock: *v = 1024; break;
    case cudaDevAttrWarpSize: *v = 32; break;
    default: *v = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lo, int* hi) { *lo = 0; *hi = -5; return cudaSuccess; }
OK(cudaDeviceSynchronize, void)
static size_t next_handle = 1;
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned f, int p) { *s = (cudaStream_t)(++next_handle << 8); return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned f) { *s = (cudaStream_t)(++next_handle << 8); return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = (cudaStream_t)(++next_handle << 8); return cudaSuccess; }
OK(cudaStreamDestroy, cudaStream_t s)
OK(cudaStreamSynchronize, cudaStream_t s)
OK(cudaStreamQuery, cudaStream_t s)
OK(cudaStreamWaitEvent, cudaStream_t s, cudaEvent_t e, unsigned f)
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus* c) { *c = cudaStreamCaptureStatusNone; return cudaSuccess; }
OK(cudaThreadExchangeStreamCaptureMode, enum cudaStreamCaptureMode* m)
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned f) { *e = (cudaEvent_t)(++next_handle << 8); return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = (cudaEvent_t)(++next_handle << 8); return cudaSuccess; }
OK(cudaEventDestroy, cudaEvent_t e)
OK(cudaEventRecord, cudaEvent_t e, cudaStream_t s)
OK(cudaEventRecordWithFlags, cudaEvent_t e, cudaStream_t s, unsigned f)
OK(cudaEventQuery, cudaEvent_t e)
OK(cudaEventSynchronize, cudaEvent_t e)
cudaError_t cudaEventElapsedTime(float* t, cudaEvent_t a, cudaEvent_t b) { *t = 0; return cudaSuccess; }
#ifndef PRETEND_CARD  // pretend_card.c has a card of its own
cudaError_t cudaMalloc(void** p, size_t n) { *p = aligned_alloc(512, (n + 511) / 512 * 512); return cudaSuccess; }
cudaError_t cudaFree(void* p) { free(p); return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) { *f = *t = 80ull << 30; return cudaSuccess; }
#endif
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus* c, ...) {
  *c = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* found) {
  *f = 0;
  if (found) *found = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// The driver's part, found because this library calls itself libcuda.so.1.
int cuInit(unsigned flags) { return 0; }
int cuDevicePrimaryCtxGetState(int d, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}
int cuGetErrorString(int e, const char** s) {
  *s = "pretended";
  return 0;
}
int cuDriverGetVersion(int* v) {
  *v = 13020;
  return 0;
}
#ifndef PRETEND_CARD
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned f) { return cudaMalloc(p, n); }
cudaError_t cudaMallocHost(void** p, size_t n) { return cudaMalloc(p, n); }
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, enum cudaMemcpyKind k,
                            cudaStream_t s) {
  memcpy(to, from, n);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* a, const void* p) {
  memset(a, 0, sizeof *a);
  a->type = cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
#endif
