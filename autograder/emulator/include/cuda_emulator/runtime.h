// The part of the runtime's host API that launchers use. There is one device, and everything is done when a call returns.
#pragma once

#include <cstdlib>
#include <cstring>

#include "cuda_emulator/memory.h"

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
constexpr int cudaSharedmemCarveoutMaxShared = 100;

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin;
  int multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, major, minor;
};

namespace cuda_emulator {
constexpr int multiprocessors = 8;  // Few, so that persistent kernels meet several tiles per block.

inline cudaError_t state() { return machine.failed ? machine.trouble.error : cudaSuccess; }
}  // namespace cuda_emulator

inline cudaError_t cudaGetLastError() { return cuda_emulator::state(); }
inline cudaError_t cudaPeekAtLastError() { return cuda_emulator::state(); }
inline cudaError_t cudaDeviceSynchronize() { return cuda_emulator::state(); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cuda_emulator::state(); }
inline const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  return error == cuda_emulator::state() ? cuda_emulator::machine.trouble.text.c_str() : "an error";
}
inline const char* cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }

namespace cuda_emulator {
inline cudaError_t allocate(void** address, size_t bytes) {
  if (posix_memalign(address, 256, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*address, poison, bytes);
  exists_from_now({"", reinterpret_cast<std::uintptr_t>(*address), 1, bytes, bytes, bytes});
  return cudaSuccess;
}
// The host may not touch device memory, and a copy of a few bytes that is inlined becomes a store like any other: so these
// two stay calls of functions that the compiler does not look into.
__attribute__((noinline)) inline void move_bytes(void* to, const void* from, size_t bytes) { std::memmove(to, from, bytes); }
__attribute__((noinline)) inline void set_bytes(void* address, int value, size_t bytes) { std::memset(address, value, bytes); }

// What of a copy is on the device has to be device memory; with cudaMemcpyDefault its address says so.
inline cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyDefault ? is_device_memory(to) : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDefault ? is_device_memory(from) : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (machine.failed || (to_device && !copies_device_memory(to, bytes, "a cudaMemcpy to the device")) ||
      (from_device && !copies_device_memory(from, bytes, "a cudaMemcpy from the device"))) {
    return cudaErrorInvalidValue;
  }
  move_bytes(to, from, bytes);
  return cudaSuccess;
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
inline cudaError_t cudaFree(void* address) {
  cuda_emulator::exists_no_more(reinterpret_cast<std::uintptr_t>(address));
  return std::free(address), cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }
inline cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  if (cuda_emulator::machine.failed || !cuda_emulator::copies_device_memory(address, bytes, "a cudaMemset")) return cudaErrorInvalidValue;
  return cuda_emulator::set_bytes(address, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(address, value, bytes);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cuda_emulator::copy(to, from, bytes, kind);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
  std::memcpy(reinterpret_cast<char*>(&symbol) + offset, from, bytes);
  return cuda_emulator::state();
}

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > cuda_emulator::max_shared_bytes) return cudaErrorInvalidValue;
  return cuda_emulator::may_share(reinterpret_cast<const void*>(kernel), static_cast<size_t>(value)), cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
  return *blocks = 1, cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return *value = 1024, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock: return *value = 48 * 1024, cudaSuccess;
    case cudaDevAttrWarpSize: return *value = 32, cudaSuccess;
    case cudaDevAttrMultiProcessorCount: return *value = cuda_emulator::multiprocessors, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: return *value = 9, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: return *value = 0, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return *value = 227 * 1024, cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"SIMT emulator", size_t{1} << 30, 48 * 1024, 227 * 1024, cuda_emulator::multiprocessors, 32, 1024, 2048, 9, 0};
  return cudaSuccess;
}
