// Stands in for CUDA's runtime where there is no device: host code runs as it would, and its launches are written down.
//
// A file that nvcc compiled without a runtime asks this library for everything. It answers for one target: properties,
// occupancy, and what the device would refuse. Device memory is addresses that nothing stands behind; what is copied from
// there is zeros, and it is kept in mind that somebody looked. What is not here, the host code cannot be followed with.
//
// Numbers: CUDA C++ programming guide, compute capabilities, technical specifications of 9.0 and 10.0.
#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr size_t USUAL_SHARED = 48 * 1024;  // Of a block that has not asked for more.
constexpr size_t PAGE = 2 << 20;
constexpr unsigned MOST_GRID_YZ = 65535, MOST_BLOCK_Z = 64, MOST_LAUNCHES = 4096;
constexpr int BLOCKS_AT_ONCE = 32, REGISTERS_AT_ONCE = 256, MOST_CLUSTER = 8, RESERVED_SHARED = 1024;

struct Device {
  int64_t major, minor, multiprocessors, l2, memory, shared, shared_per_multiprocessor, registers, threads, warp;
  char name[64];
};

struct Kernel {
  std::string name;
  int registers = 0, shared = 0, local = 0;
  int64_t dynamic = -1;  // What it was allowed to ask for; -1 where nobody said.
};

struct Launch {
  const char* kernel;
  unsigned grid[3], block[3], cluster[3];
  uint64_t bytes;
  const char* kind;     // Of the refusal; empty where there is none.
  const char* refusal;
};

struct Configuration {
  dim3 grid, block;
  size_t bytes;
  cudaStream_t stream;
};

Device device;
std::map<const void*, Kernel> kernels;
std::map<std::string, Kernel> known;  // By name, as the machine code says.
std::map<const void*, size_t> symbols;
std::vector<Launch> launches;
std::vector<Configuration> configurations;
std::vector<std::string> texts(MOST_LAUNCHES);
cudaError_t last = cudaSuccess;
bool looked = false;
uintptr_t next_address = uintptr_t{1} << 45;

cudaError_t said(cudaError_t status) {
  if (status != cudaSuccess) last = status;
  return status;
}

uintptr_t room(size_t bytes) {
  const uintptr_t begin = next_address;
  next_address += (bytes / PAGE + 1) * PAGE;
  return begin;
}

bool on_device(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= uintptr_t{1} << 45 && at < uintptr_t{1} << 46;
}

Kernel* kernel_of(const void* function) {
  const auto found = kernels.find(function);
  return found == kernels.end() ? nullptr : &found->second;
}

// What comes to the host from the device: nothing is there.
cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool to_host = kind == cudaMemcpyDeviceToHost || (kind == cudaMemcpyDefault && on_device(from) && !on_device(to));
  if (kind == cudaMemcpyHostToHost || (kind == cudaMemcpyDefault && !on_device(from) && !on_device(to))) {
    std::memcpy(to, from, bytes);
  } else if (to_host) {
    std::memset(to, 0, bytes);
    looked = true;
  }
  return cudaSuccess;
}

int64_t registers_of_block(const Kernel& kernel, int64_t threads) {
  const int64_t warps = (threads + device.warp - 1) / device.warp;
  const int64_t of_warp = (kernel.registers * device.warp + REGISTERS_AT_ONCE - 1) / REGISTERS_AT_ONCE * REGISTERS_AT_ONCE;
  return warps * of_warp;
}

int blocks_at_once(const Kernel& kernel, int64_t threads, int64_t dynamic) {
  if (threads < 1 || threads > device.threads) return 0;
  int64_t blocks = std::min<int64_t>(BLOCKS_AT_ONCE, 2 * device.threads / ((threads + device.warp - 1) / device.warp * device.warp));
  if (const int64_t used = registers_of_block(kernel, threads)) blocks = std::min(blocks, device.registers / used);
  return static_cast<int>(std::min(blocks, device.shared_per_multiprocessor / (kernel.shared + dynamic + RESERVED_SHARED)));
}

// Why the device would not take a launch; the status that it would give.
cudaError_t refused(const Kernel& kernel, dim3 grid, dim3 block, size_t bytes, const char*& kind, std::string& why) {
  char text[200] = "";
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t shared = kernel.shared + bytes;
  const uint64_t allowed = kernel.dynamic >= 0 ? std::max<uint64_t>(kernel.dynamic, USUAL_SHARED - std::min<uint64_t>(kernel.shared, USUAL_SHARED))
                                               : USUAL_SHARED - std::min<uint64_t>(kernel.shared, USUAL_SHARED);
  cudaError_t status = cudaErrorInvalidValue;
  kind = "LaunchError";
  if (threads == 0 || threads > uint64_t(device.threads) || block.z > MOST_BLOCK_Z) {
    std::snprintf(text, sizeof text, "a block of %u x %u x %u threads; 1 to %d fit, at most %u of them in z", block.x, block.y, block.z,
                  int(device.threads), MOST_BLOCK_Z);
  } else if (!grid.x || !grid.y || !grid.z || grid.x > INT32_MAX || grid.y > MOST_GRID_YZ || grid.z > MOST_GRID_YZ) {
    std::snprintf(text, sizeof text, "a grid of %u x %u x %u blocks; at least 1 each, at most 2147483647 x %u x %u", grid.x, grid.y, grid.z,
                  MOST_GRID_YZ, MOST_GRID_YZ);
  } else if (shared > uint64_t(device.shared)) {
    kind = "OutOfResources";
    std::snprintf(text, sizeof text, "%llu bytes of shared memory are asked for; a block has at most %d", (unsigned long long)shared,
                  int(device.shared));
  } else if (bytes > allowed) {
    kind = "OutOfResources";
    std::snprintf(text, sizeof text, "%zu bytes of dynamic shared memory are asked for, of %llu; cudaFuncSetAttribute may allow more", bytes,
                  (unsigned long long)allowed);
  } else if (registers_of_block(kernel, threads) > device.registers) {
    kind = "OutOfResources", status = cudaErrorLaunchOutOfResources;
    std::snprintf(text, sizeof text, "%llu threads with %d registers each; a block has %d registers", (unsigned long long)threads,
                  kernel.registers, int(device.registers));
  } else {
    kind = "";
    return cudaSuccess;
  }
  why = text;
  return status;
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, size_t bytes, dim3 cluster = dim3(0, 0, 0)) {
  const Kernel* kernel = kernel_of(function);
  if (kernel == nullptr) return said(cudaErrorInvalidDeviceFunction);
  if (launches.size() >= MOST_LAUNCHES) return cudaSuccess;
  std::string& why = texts[launches.size()];
  why.clear();
  const char* kind = "";
  const cudaError_t status = refused(*kernel, grid, block, bytes, kind, why);
  launches.push_back({kernel->name.c_str(), {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, {cluster.x, cluster.y, cluster.z},
                      bytes, kind, why.c_str()});
  return said(status);
}

}  // namespace

// --- for the harness ------------------------------------------------------------------------------------------------------

extern "C" {

void dry_device(const Device* given) { device = *given; }

void dry_kernel(const char* name, int registers, int shared, int local) {
  Kernel kernel;
  kernel.name = name, kernel.registers = registers, kernel.shared = shared, kernel.local = local;
  known[name] = kernel;
}

void dry_begin() { launches.clear(), last = cudaSuccess, looked = false; }

unsigned dry_launches() { return static_cast<unsigned>(launches.size()); }

const Launch* dry_launch(unsigned number) { return &launches[number]; }

bool dry_looked() { return looked; }

// A name as it was written, or the name itself; `into` gets it.
void dry_plain(const char* mangled, char* into, size_t room_for) {
  int status = 0;
  char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::snprintf(into, room_for, "%s", plain && status == 0 ? plain : mangled);
  std::free(plain);
}

// --- what nvcc's own code calls -------------------------------------------------------------------------------------------

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  const auto found = known.find(name);
  Kernel kernel = found == known.end() ? Kernel() : found->second;
  kernel.name = name;
  kernels[function] = kernel;
}
void __cudaRegisterVar(void**, char* variable, char*, const char*, int, size_t bytes, int, int) { symbols[variable] = bytes; }
void __cudaRegisterManagedVar(void**, void** variable, char*, const char*, int, size_t bytes, int, int) {
  *variable = std::calloc(1, bytes);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t bytes, CUstream_st* stream) {
  configurations.push_back({grid, block, bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* bytes, void* stream) {
  if (configurations.empty()) return said(cudaErrorMissingConfiguration);
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid, *block = top.block, *bytes = top.bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**, size_t bytes, cudaStream_t) {
  return launch(kernel, grid, block, bytes);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void**, size_t bytes, cudaStream_t) {
  return launch(kernel, grid, block, bytes);
}

// --- launches and kernels -------------------------------------------------------------------------------------------------

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void**, size_t bytes, cudaStream_t) {
  return launch(function, grid, block, bytes);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void**, size_t bytes, cudaStream_t) {
  return launch(function, grid, block, bytes);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void**) {
  dim3 cluster(0, 0, 0);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& one = config->attrs[i];
    if (one.id == cudaLaunchAttributeClusterDimension) cluster = dim3(one.val.clusterDim.x, one.val.clusterDim.y, one.val.clusterDim.z);
  }
  return launch(function, config->gridDim, config->blockDim, config->dynamicSmemBytes, cluster);
}
cudaError_t cudaFuncGetName(const char** name, const void* function) {
  const Kernel* kernel = kernel_of(function);
  *name = kernel ? kernel->name.c_str() : "";
  return kernel ? cudaSuccess : said(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Kernel* kernel = kernel_of(function);
  if (kernel == nullptr) return said(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || kernel->shared + int64_t{value} > device.shared) return said(cudaErrorInvalidValue);
  kernel->dynamic = value;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const Kernel* kernel = kernel_of(function);
  if (kernel == nullptr) return said(cudaErrorInvalidDeviceFunction);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->sharedSizeBytes = kernel->shared;
  attributes->localSizeBytes = kernel->local;
  attributes->numRegs = kernel->registers;
  const int64_t of_warp = std::max<int64_t>(1, registers_of_block(*kernel, 1));
  attributes->maxThreadsPerBlock = static_cast<int>(std::min(device.threads, device.registers / of_warp * device.warp));
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel->dynamic >= 0 ? kernel->dynamic : USUAL_SHARED);
  attributes->binaryVersion = attributes->ptxVersion = static_cast<int>(10 * device.major + device.minor);
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads, size_t bytes, unsigned) {
  const Kernel* kernel = kernel_of(function);
  if (kernel == nullptr) return said(cudaErrorInvalidDeviceFunction);
  *blocks = blocks_at_once(*kernel, threads, static_cast<int64_t>(bytes));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads, size_t bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, bytes, 0);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void*, const cudaLaunchConfig_t*) {
  *size = MOST_CLUSTER;
  return cudaSuccess;
}

// --- the device -----------------------------------------------------------------------------------------------------------

cudaError_t cudaGetDevice(int* number) { return *number = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int number) { return number == 0 ? cudaSuccess : said(cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* unused, size_t* all) { return *unused = *all = device.memory, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const std::map<int, int64_t> values = {
      {cudaDevAttrMaxThreadsPerBlock, device.threads},
      {cudaDevAttrMaxBlockDimX, device.threads},
      {cudaDevAttrMaxBlockDimY, device.threads},
      {cudaDevAttrMaxBlockDimZ, MOST_BLOCK_Z},
      {cudaDevAttrMaxGridDimX, INT32_MAX},
      {cudaDevAttrMaxGridDimY, MOST_GRID_YZ},
      {cudaDevAttrMaxGridDimZ, MOST_GRID_YZ},
      {cudaDevAttrMaxSharedMemoryPerBlock, USUAL_SHARED},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, device.shared},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, device.shared_per_multiprocessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, RESERVED_SHARED},
      {cudaDevAttrWarpSize, device.warp},
      {cudaDevAttrMaxRegistersPerBlock, device.registers},
      {cudaDevAttrMaxRegistersPerMultiprocessor, device.registers},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 2 * device.threads},
      {cudaDevAttrMaxBlocksPerMultiprocessor, BLOCKS_AT_ONCE},
      {cudaDevAttrMultiProcessorCount, device.multiprocessors},
      {cudaDevAttrL2CacheSize, device.l2},
      {cudaDevAttrComputeCapabilityMajor, device.major},
      {cudaDevAttrComputeCapabilityMinor, device.minor},
      {cudaDevAttrCooperativeLaunch, 1},
      {cudaDevAttrClusterLaunch, 1},
      {cudaDevAttrMemoryPoolsSupported, 1},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrUnifiedAddressing, 1},
  };
  const auto found = values.find(attribute);
  *value = found == values.end() ? 0 : static_cast<int>(found->second);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  if (number != 0) return said(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "%s", device.name);
  properties->totalGlobalMem = device.memory;
  properties->sharedMemPerBlock = USUAL_SHARED;
  properties->sharedMemPerBlockOptin = device.shared;
  properties->sharedMemPerMultiprocessor = device.shared_per_multiprocessor;
  properties->reservedSharedMemPerBlock = RESERVED_SHARED;
  properties->regsPerBlock = properties->regsPerMultiprocessor = static_cast<int>(device.registers);
  properties->warpSize = static_cast<int>(device.warp);
  properties->maxThreadsPerBlock = properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = static_cast<int>(device.threads);
  properties->maxThreadsDim[2] = MOST_BLOCK_Z;
  properties->maxGridSize[0] = INT32_MAX;
  properties->maxGridSize[1] = properties->maxGridSize[2] = MOST_GRID_YZ;
  properties->major = static_cast<int>(device.major), properties->minor = static_cast<int>(device.minor);
  properties->multiProcessorCount = static_cast<int>(device.multiprocessors);
  properties->l2CacheSize = static_cast<int>(device.l2);
  properties->maxThreadsPerMultiProcessor = static_cast<int>(2 * device.threads);
  properties->maxBlocksPerMultiProcessor = BLOCKS_AT_ONCE;
  properties->cooperativeLaunch = properties->clusterLaunch = properties->memoryPoolsSupported = 1;
  properties->managedMemory = properties->unifiedAddressing = properties->concurrentKernels = 1;
  return cudaSuccess;
}

// --- errors ---------------------------------------------------------------------------------------------------------------

cudaError_t cudaGetLastError() {
  const cudaError_t status = last;
  last = cudaSuccess;
  return status;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    default: return "an error of CUDA's runtime";
  }
}
const char* cudaGetErrorName(cudaError_t status) { return cudaGetErrorString(status); }

// --- memory ---------------------------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** address, size_t bytes) {
  *address = nullptr;
  if (bytes > size_t(device.memory)) return said(cudaErrorMemoryAllocation);
  *address = reinterpret_cast<void*>(room(bytes));
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t) { return cudaMalloc(address, bytes); }
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned) {
  *address = std::calloc(1, bytes);
  return *address ? cudaSuccess : said(cudaErrorMemoryAllocation);
}
cudaError_t cudaMallocHost(void** address, size_t bytes) { return cudaMallocManaged(address, bytes, 0); }
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) { return cudaMallocManaged(address, bytes, 0); }
cudaError_t cudaFreeHost(void* address) { return std::free(address), cudaSuccess; }
cudaError_t cudaMemset(void*, int, size_t) { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemset2D(void*, size_t, int, size_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemset2DAsync(void*, size_t, int, size_t, size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) { return copy(to, from, bytes, kind); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t) {
  for (size_t row = 0; row < height; ++row) {
    copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width, kind);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) { return cudaSuccess; }
cudaError_t cudaMemcpyToSymbolAsync(const void*, const void*, size_t, size_t, cudaMemcpyKind, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemcpyFromSymbol(void* to, const void*, size_t bytes, size_t, cudaMemcpyKind kind) {
  return copy(to, reinterpret_cast<void*>(uintptr_t{1} << 45), bytes, kind);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void*, size_t bytes, size_t, cudaMemcpyKind kind, cudaStream_t) {
  return copy(to, reinterpret_cast<void*>(uintptr_t{1} << 45), bytes, kind);
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  static std::map<const void*, uintptr_t> places;
  if (places.find(symbol) == places.end()) places[symbol] = room(symbols[symbol]);
  *address = reinterpret_cast<void*>(places[symbol]);
  return cudaSuccess;
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) { return *bytes = symbols[symbol], cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = on_device(address) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  attributes->devicePointer = on_device(address) ? const_cast<void*>(address) : nullptr;
  return cudaSuccess;
}

// --- streams and events ---------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return *stream = nullptr, cudaSuccess; }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return *stream = nullptr, cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) { return *milliseconds = 1.0f, cudaSuccess; }

// --- the driver's functions, by name: how a tensor map for TMA is made -----------------------------------------------------

static int described(void* map, ...) { return std::memset(map, 0, 128), 0; }

static cudaError_t entry_point(const char* symbol, void** function, cudaDriverEntryPointQueryResult* status) {
  const bool makes_a_map = std::strncmp(symbol, "cuTensorMapEncode", 17) == 0;
  *function = makes_a_map ? reinterpret_cast<void*>(&described) : nullptr;
  if (status) *status = makes_a_map ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return makes_a_map ? cudaSuccess : said(cudaErrorNotSupported);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, status);
}
#if CUDART_VERSION < 14000
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long, cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, status);
}
#endif
}
