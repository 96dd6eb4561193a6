// The part of the runtime's host API that launchers use. There is one device, and everything is done when a call returns:
// streams have nothing to wait for, and events tell the host's time.
#pragma once

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "cuda_emulator/memory.h"

#define CUDART_VERSION 13000
#define CUDA_VERSION CUDART_VERSION
#define CUDART_CB

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxL1 = 0,
  cudaSharedmemCarveoutMaxShared = 100
};
enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount,
  cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};
enum cudaMemLocationType {
  cudaMemLocationTypeInvalid,
  cudaMemLocationTypeDevice,
  cudaMemLocationTypeHost,
  cudaMemLocationTypeHostNuma,
  cudaMemLocationTypeHostNumaCurrent
};
enum : unsigned {
  cudaStreamDefault = 0, cudaStreamNonBlocking = 1,
  cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaEventInterprocess = 4,
  cudaEventRecordDefault = 0, cudaEventWaitDefault = 0,
  cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4,
  cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2, cudaHostRegisterReadOnly = 8,
  cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4,
  cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4,
  cudaDeviceMapHost = 8, cudaOccupancyDefault = 0, cudaOccupancyDisableCachingOverride = 1
};
constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaHostFn_t = void (*)(void*);
using cudaStreamCallback_t = void (*)(cudaStream_t, cudaError_t, void*);
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

// A compiler for a GPU knows it too.
struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
};
struct CUevent_st {
  double ms = -1.0;  // When it was recorded; before that negative.
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, reservedSharedMemPerBlock;
  size_t totalConstMem, memPitch, textureAlignment, texturePitchAlignment;
  int major, minor, multiProcessorCount, warpSize, regsPerBlock, regsPerMultiprocessor;
  int maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, maxThreadsDim[3], maxGridSize[3];
  int l2CacheSize, persistingL2CacheMaxSize, memoryBusWidth, asyncEngineCount, accessPolicyMaxWindowSize;
  int integrated, canMapHostMemory, concurrentKernels, ECCEnabled, tccDriver, unifiedAddressing, managedMemory;
  int pageableMemoryAccess, concurrentManagedAccess, hostNativeAtomicSupported, computePreemptionSupported;
  int cooperativeLaunch, clusterLaunch, memoryPoolsSupported, streamPrioritiesSupported, globalL1CacheSupported;
  int localL1CacheSupported, isMultiGpuBoard, pciBusID, pciDeviceID, pciDomainID;
};

namespace cuda_emulator {
constexpr int multiprocessors = 8;  // Few, so that persistent kernels meet several tiles per block.
constexpr int max_multiprocessor_threads = 2048, max_multiprocessor_blocks = 32, registers = 65536;
constexpr size_t global_bytes = size_t{1} << 30, constant_bytes = 64 * 1024;

inline cudaError_t state() { return machine.failed ? machine.trouble.error : cudaSuccess; }

// The host's clock.
double now_ms();
int attribute_of_the_device(cudaDeviceAttr attribute);
}  // namespace cuda_emulator

// --- errors and the device -------------------------------------------------------------------------------------------

inline cudaError_t cudaGetLastError() { return cuda_emulator::state(); }
inline cudaError_t cudaPeekAtLastError() { return cuda_emulator::state(); }
inline cudaError_t cudaDeviceSynchronize() { return cuda_emulator::state(); }
inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CUDA_EMULATOR_NAME(name, number) \
  case name: return #name;
    CUDA_EMULATOR_ERRORS(CUDA_EMULATOR_NAME)
#undef CUDA_EMULATOR_NAME
  }
  return "unrecognized error code";
}
inline const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  return error == cuda_emulator::state() ? cuda_emulator::machine.trouble.text.c_str() : cudaGetErrorName(error);
}

inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
inline cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError_t cudaDeviceReset() { return cuda_emulator::state(); }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t bytes) {
  if (limit == cudaLimitMallocHeapSize) cuda_emulator::kernel_heap_bytes() = bytes;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetLimit(size_t* bytes, cudaLimit limit) {
  *bytes = limit == cudaLimitMallocHeapSize ? cuda_emulator::kernel_heap_bytes()
           : limit == cudaLimitStackSize    ? cuda_emulator::stack_bytes
                                            : 0;
  return cudaSuccess;
}
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return *free = *total = cuda_emulator::global_bytes, cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return *value = cuda_emulator::attribute_of_the_device(attribute), cudaSetDevice(device);
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  using namespace cuda_emulator;
  *properties = {};
  std::strcpy(properties->name, "SIMT emulator");
  properties->totalGlobalMem = global_bytes;
  properties->totalConstMem = constant_bytes;
  properties->sharedMemPerBlock = max_static_shared_bytes;
  properties->sharedMemPerBlockOptin = max_shared_bytes;
  properties->sharedMemPerMultiprocessor = max_shared_bytes + 1024;
  properties->reservedSharedMemPerBlock = 1024;
  properties->memPitch = 2147483647;
  properties->textureAlignment = properties->texturePitchAlignment = 512;
  properties->major = 9;
  properties->multiProcessorCount = multiprocessors;
  properties->warpSize = warp_size;
  properties->regsPerBlock = properties->regsPerMultiprocessor = registers;
  properties->maxThreadsPerBlock = max_block_threads;
  properties->maxThreadsPerMultiProcessor = max_multiprocessor_threads;
  properties->maxBlocksPerMultiProcessor = max_multiprocessor_blocks;
  const int most_threads[3] = {1024, 1024, 64}, most_blocks[3] = {2147483647, 65535, 65535};
  std::memcpy(properties->maxThreadsDim, most_threads, sizeof most_threads);
  std::memcpy(properties->maxGridSize, most_blocks, sizeof most_blocks);
  properties->l2CacheSize = 50 << 20;
  properties->memoryBusWidth = 5120;
  properties->asyncEngineCount = 1;
  properties->canMapHostMemory = properties->unifiedAddressing = properties->managedMemory = 1;
  properties->concurrentKernels = properties->concurrentManagedAccess = properties->streamPrioritiesSupported = 1;
  properties->globalL1CacheSupported = properties->localL1CacheSupported = properties->memoryPoolsSupported = 1;
  return cudaSetDevice(device);
}

// --- streams and events ----------------------------------------------------------------------------------------------

inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return *stream = new CUstream_st{flags, priority}, cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cuda_emulator::state(); }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cuda_emulator::state(); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cuda_emulator::state(); }
inline cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) { return *flags = stream->flags, cudaSuccess; }
inline cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return *priority = stream->priority, cudaSuccess;
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  return callback(stream, cuda_emulator::state(), data), cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  return function(data), cudaSuccess;
}
template <class T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T*, size_t = 0, unsigned = cudaMemAttachSingle) {
  return cudaSuccess;
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned = 0) { return *event = new CUevent_st, cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) { return cudaEventCreate(event, flags); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  return event->ms = cuda_emulator::now_ms(), cuda_emulator::state();
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned = 0) {
  return cudaEventRecord(event, stream);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cuda_emulator::state(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cuda_emulator::state(); }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  if (begin->ms < 0 || end->ms < 0) return cudaErrorInvalidResourceHandle;
  return *ms = static_cast<float>(end->ms - begin->ms), cuda_emulator::state();
}

// --- memory ----------------------------------------------------------------------------------------------------------

namespace cuda_emulator {
inline cudaError_t allocate(void** address, size_t bytes, bool host_too = false) {
  if (posix_memalign(address, 256, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*address, poison, bytes);
  exists_from_now({"", reinterpret_cast<std::uintptr_t>(*address), 1, bytes, bytes, bytes, host_too});
  return cudaSuccess;
}
// The host may not touch device memory, and a copy of a few bytes that is inlined becomes a store like any other: so these
// two stay calls of functions that the compiler does not look into.
__attribute__((noinline)) inline void move_bytes(void* to, const void* from, size_t bytes) { std::memmove(to, from, bytes); }
__attribute__((noinline)) inline void set_bytes(void* address, int value, size_t bytes) { std::memset(address, value, bytes); }

// What of a copy is on the device has to be device memory; with cudaMemcpyDefault its address says so.
inline cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, int line) {
  const bool to_device = kind == cudaMemcpyDefault ? is_device_memory(to) : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDefault ? is_device_memory(from) : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (machine.failed || (to_device && !copies_device_memory(to, bytes, "a cudaMemcpy to the device")) ||
      (from_device && !copies_device_memory(from, bytes, "a cudaMemcpy from the device"))) {
    return cudaErrorInvalidValue;
  }
  if (!to_device) notice_of_direction(to, "to", line);
  if (!from_device) notice_of_direction(from, "from", line);
  move_bytes(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                             cudaMemcpyKind kind, int line) {
  cudaError_t error = width > to_pitch || width > from_pitch ? cudaErrorInvalidPitchValue : cudaSuccess;
  for (size_t row = 0; row < height && error == cudaSuccess; ++row) {
    error = copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width, kind, line);
  }
  return error;
}
}  // namespace cuda_emulator

template <class T>
cudaError_t cudaMalloc(T** address, size_t bytes) {
  return cuda_emulator::allocate(reinterpret_cast<void**>(address), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T** address, size_t bytes, cudaStream_t) {
  return cudaMalloc(address, bytes);
}
template <class T>
cudaError_t cudaMallocPitch(T** address, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(address, *pitch * height);
}
// The host may touch them, and so may kernels.
template <class T>
cudaError_t cudaMallocManaged(T** address, size_t bytes, unsigned = cudaMemAttachGlobal) {
  return cuda_emulator::allocate(reinterpret_cast<void**>(address), bytes, true);
}
template <class T>
cudaError_t cudaMallocHost(T** address, size_t bytes, unsigned = 0) {
  return cudaMallocManaged(address, bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** address, size_t bytes, unsigned) {
  return cudaMallocManaged(address, bytes);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  if (!cuda_emulator::is_device_memory(host)) return cudaErrorInvalidValue;
  return *device = static_cast<T*>(host), cudaSuccess;
}
inline cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned) {
  if (cuda_emulator::is_device_memory(address)) return cudaErrorHostMemoryAlreadyRegistered;
  cuda_emulator::exists_from_now({"", reinterpret_cast<std::uintptr_t>(address), 1, bytes, bytes, bytes, true});
  return cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* address) {
  return cuda_emulator::exists_no_more(reinterpret_cast<std::uintptr_t>(address)), cudaSuccess;
}
inline cudaError_t cudaFree(void* address) {
  cuda_emulator::exists_no_more(reinterpret_cast<std::uintptr_t>(address));
  return std::free(address), cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }
inline cudaError_t cudaFreeHost(void* address) { return cudaFree(address); }

inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const bool device = cuda_emulator::is_device_memory(address), both = device && !cuda_emulator::is_device_only(address);
  void* const pointer = const_cast<void*>(address);
  *attributes = {both ? cudaMemoryTypeManaged : device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered, device ? 0 : -2,
                 device ? pointer : nullptr, device && !both ? nullptr : pointer};
  return cudaSuccess;
}

inline cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  if (cuda_emulator::machine.failed || !cuda_emulator::copies_device_memory(address, bytes, "a cudaMemset")) return cudaErrorInvalidValue;
  return cuda_emulator::set_bytes(address, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(address, value, bytes);
}
inline cudaError_t cudaMemset2D(void* address, size_t pitch, int value, size_t width, size_t height) {
  cudaError_t error = cudaSuccess;
  for (size_t row = 0; row < height && error == cudaSuccess; ++row) {
    error = cudaMemset(static_cast<char*>(address) + row * pitch, value, width);
  }
  return error;
}
inline cudaError_t cudaMemset2DAsync(void* address, size_t pitch, int value, size_t width, size_t height, cudaStream_t = nullptr) {
  return cudaMemset2D(address, pitch, value, width, height);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUDA_EMULATOR_LINE) {
  return cuda_emulator::copy(to, from, bytes, kind, line_);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t = nullptr,
                                   CUDA_EMULATOR_LINE) {
  return cuda_emulator::copy(to, from, bytes, kind, line_);
}
inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                cudaMemcpyKind kind, CUDA_EMULATOR_LINE) {
  return cuda_emulator::copy_rows(to, to_pitch, from, from_pitch, width, height, kind, line_);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t = nullptr, CUDA_EMULATOR_LINE) {
  return cuda_emulator::copy_rows(to, to_pitch, from, from_pitch, width, height, kind, line_);
}

// A variable of the file's own, which kernels may touch as it is.
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  std::memcpy(reinterpret_cast<char*>(const_cast<std::remove_cv_t<T>*>(&symbol)) + offset, from, bytes);
  return cuda_emulator::state();
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  cuda_emulator::move_bytes(to, reinterpret_cast<const char*>(const_cast<const std::remove_cv_t<T>*>(&symbol)) + offset, bytes);
  return cuda_emulator::state();
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, T& symbol, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <class P, class T>
cudaError_t cudaGetSymbolAddress(P** address, T& symbol) {
  void* const memory = const_cast<std::remove_cv_t<T>*>(&symbol);
  if (!cuda_emulator::is_device_memory(memory)) {
    cuda_emulator::exists_from_now({"", reinterpret_cast<std::uintptr_t>(memory), 1, sizeof(T), sizeof(T), sizeof(T), true});
  }
  return *address = static_cast<P*>(memory), cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* bytes, T&) {
  return *bytes = sizeof(T), cudaSuccess;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > cuda_emulator::max_shared_bytes) return cudaErrorInvalidValue;
  return cuda_emulator::may_share(reinterpret_cast<const void*>(kernel), static_cast<size_t>(value)), cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetSharedMemConfig(Kernel*, cudaSharedMemConfig) {
  return cudaSuccess;
}
// Registers and the code's own shared memory are a compiler's for a GPU to know: of them it says that there are some, and none.
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel* kernel) {
  const void* const code = reinterpret_cast<const void*>(kernel);
  *attributes = {};
  attributes->maxThreadsPerBlock = cuda_emulator::most_threads_of(code);
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(cuda_emulator::shared_limit_of(code));
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
  return *blocks = 1, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel kernel, int threads, size_t bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, bytes);
}
// As many threads as the kernel's __launch_bounds__ let a block have, on as many blocks as run at once.
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* blocks, int* threads, Kernel* kernel, size_t = 0, int most = 0) {
  const int bound = cuda_emulator::most_threads_of(reinterpret_cast<const void*>(kernel));
  *threads = most > 0 && most < bound ? most : bound;
  return *blocks = cuda_emulator::multiprocessors, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, Kernel* kernel, size_t bytes = 0, int most = 0,
                                                        unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSize(blocks, threads, kernel, bytes, most);
}
template <class Kernel, class Bytes>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* blocks, int* threads, Kernel* kernel, Bytes, int most = 0) {
  return cudaOccupancyMaxPotentialBlockSize(blocks, threads, kernel, 0, most);
}

// Launches without <<<>>>: which arguments a kernel takes is known by its type.
namespace cuda_emulator {
template <class... Parameters, size_t... Numbers>
void launch_with(void (*kernel)(Parameters...), const Configuration& configuration, void** arguments, int line,
                 std::index_sequence<Numbers...>) {
  const std::string name = name_of(reinterpret_cast<const void*>(kernel));
  launch(name.c_str(), line, configuration, kernel, *static_cast<std::decay_t<Parameters>*>(arguments[Numbers])...);
}
}  // namespace cuda_emulator

template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr, CUDA_EMULATOR_LINE) {
  cuda_emulator::launch_with(kernel, {grid, block, shared_bytes, stream}, arguments, line_, std::index_sequence_for<Parameters...>());
  return cuda_emulator::state();
}
inline cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr, CUDA_EMULATOR_LINE) {
  cuda_emulator::gpu_only("cudaLaunchKernel of a kernel whose type is not known", line_);
}

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative, priority, programmaticStreamSerializationAllowed;
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  const int line = 0;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    const auto cluster = attribute.val.clusterDim;
    if (attribute.id == cudaLaunchAttributeCooperative && attribute.val.cooperative) {
      cuda_emulator::gpu_only("A cooperative launch", line);
    }
    if (attribute.id == cudaLaunchAttributeClusterDimension && cluster.x * cluster.y * cluster.z != 1) {
      cuda_emulator::gpu_only("A thread-block cluster", line);
    }
  }
  const std::string name = cuda_emulator::name_of(reinterpret_cast<const void*>(kernel));
  const cuda_emulator::Configuration configuration(config->gridDim, config->blockDim, config->dynamicSmemBytes);
  cuda_emulator::launch(name.c_str(), line, configuration, kernel, static_cast<std::decay_t<Parameters>>(arguments)...);
  return cuda_emulator::state();
}
