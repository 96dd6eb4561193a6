// What the runtime answers, and what can be asked of a device, by CUDA's own names and numbers.
#pragma once

#define CUDA_EMULATOR_ERRORS(X) \
  X(cudaSuccess, 0) X(cudaErrorInvalidValue, 1) X(cudaErrorMemoryAllocation, 2) X(cudaErrorInitializationError, 3) \
  X(cudaErrorCudartUnloading, 4) X(cudaErrorProfilerDisabled, 5) X(cudaErrorProfilerNotInitialized, 6) \
  X(cudaErrorProfilerAlreadyStarted, 7) X(cudaErrorProfilerAlreadyStopped, 8) X(cudaErrorInvalidConfiguration, 9) \
  X(cudaErrorInvalidPitchValue, 12) X(cudaErrorInvalidSymbol, 13) X(cudaErrorInvalidHostPointer, 16) \
  X(cudaErrorInvalidDevicePointer, 17) X(cudaErrorInvalidTexture, 18) X(cudaErrorInvalidTextureBinding, 19) \
  X(cudaErrorInvalidChannelDescriptor, 20) X(cudaErrorInvalidMemcpyDirection, 21) X(cudaErrorAddressOfConstant, 22) \
  X(cudaErrorTextureFetchFailed, 23) X(cudaErrorTextureNotBound, 24) X(cudaErrorSynchronizationError, 25) \
  X(cudaErrorInvalidFilterSetting, 26) X(cudaErrorInvalidNormSetting, 27) X(cudaErrorMixedDeviceExecution, 28) \
  X(cudaErrorNotYetImplemented, 31) X(cudaErrorMemoryValueTooLarge, 32) X(cudaErrorStubLibrary, 34) \
  X(cudaErrorInsufficientDriver, 35) X(cudaErrorCallRequiresNewerDriver, 36) X(cudaErrorInvalidSurface, 37) \
  X(cudaErrorDuplicateVariableName, 43) X(cudaErrorDuplicateTextureName, 44) X(cudaErrorDuplicateSurfaceName, 45) \
  X(cudaErrorDevicesUnavailable, 46) X(cudaErrorIncompatibleDriverContext, 49) X(cudaErrorMissingConfiguration, 52) \
  X(cudaErrorPriorLaunchFailure, 53) X(cudaErrorLaunchMaxDepthExceeded, 65) X(cudaErrorLaunchFileScopedTex, 66) \
  X(cudaErrorLaunchFileScopedSurf, 67) X(cudaErrorSyncDepthExceeded, 68) X(cudaErrorLaunchPendingCountExceeded, 69) \
  X(cudaErrorInvalidDeviceFunction, 98) X(cudaErrorNoDevice, 100) X(cudaErrorInvalidDevice, 101) \
  X(cudaErrorDeviceNotLicensed, 102) X(cudaErrorSoftwareValidityNotEstablished, 103) X(cudaErrorStartupFailure, 127) \
  X(cudaErrorInvalidKernelImage, 200) X(cudaErrorDeviceUninitialized, 201) X(cudaErrorMapBufferObjectFailed, 205) \
  X(cudaErrorUnmapBufferObjectFailed, 206) X(cudaErrorArrayIsMapped, 207) X(cudaErrorAlreadyMapped, 208) \
  X(cudaErrorNoKernelImageForDevice, 209) X(cudaErrorAlreadyAcquired, 210) X(cudaErrorNotMapped, 211) \
  X(cudaErrorNotMappedAsArray, 212) X(cudaErrorNotMappedAsPointer, 213) X(cudaErrorECCUncorrectable, 214) \
  X(cudaErrorUnsupportedLimit, 215) X(cudaErrorDeviceAlreadyInUse, 216) X(cudaErrorPeerAccessUnsupported, 217) \
  X(cudaErrorInvalidPtx, 218) X(cudaErrorInvalidGraphicsContext, 219) X(cudaErrorNvlinkUncorrectable, 220) \
  X(cudaErrorJitCompilerNotFound, 221) X(cudaErrorUnsupportedPtxVersion, 222) \
  X(cudaErrorJitCompilationDisabled, 223) X(cudaErrorUnsupportedExecAffinity, 224) \
  X(cudaErrorUnsupportedDevSideSync, 225) X(cudaErrorContained, 226) X(cudaErrorInvalidSource, 300) \
  X(cudaErrorFileNotFound, 301) X(cudaErrorSharedObjectSymbolNotFound, 302) X(cudaErrorSharedObjectInitFailed, 303) \
  X(cudaErrorOperatingSystem, 304) X(cudaErrorInvalidResourceHandle, 400) X(cudaErrorIllegalState, 401) \
  X(cudaErrorLossyQuery, 402) X(cudaErrorSymbolNotFound, 500) X(cudaErrorNotReady, 600) \
  X(cudaErrorIllegalAddress, 700) X(cudaErrorLaunchOutOfResources, 701) X(cudaErrorLaunchTimeout, 702) \
  X(cudaErrorLaunchIncompatibleTexturing, 703) X(cudaErrorPeerAccessAlreadyEnabled, 704) \
  X(cudaErrorPeerAccessNotEnabled, 705) X(cudaErrorSetOnActiveProcess, 708) X(cudaErrorContextIsDestroyed, 709) \
  X(cudaErrorAssert, 710) X(cudaErrorTooManyPeers, 711) X(cudaErrorHostMemoryAlreadyRegistered, 712) \
  X(cudaErrorHostMemoryNotRegistered, 713) X(cudaErrorHardwareStackError, 714) X(cudaErrorIllegalInstruction, 715) \
  X(cudaErrorMisalignedAddress, 716) X(cudaErrorInvalidAddressSpace, 717) X(cudaErrorInvalidPc, 718) \
  X(cudaErrorLaunchFailure, 719) X(cudaErrorCooperativeLaunchTooLarge, 720) X(cudaErrorTensorMemoryLeak, 721) \
  X(cudaErrorNotPermitted, 800) X(cudaErrorNotSupported, 801) X(cudaErrorSystemNotReady, 802) \
  X(cudaErrorSystemDriverMismatch, 803) X(cudaErrorCompatNotSupportedOnDevice, 804) \
  X(cudaErrorMpsConnectionFailed, 805) X(cudaErrorMpsRpcFailure, 806) X(cudaErrorMpsServerNotReady, 807) \
  X(cudaErrorMpsMaxClientsReached, 808) X(cudaErrorMpsMaxConnectionsReached, 809) \
  X(cudaErrorMpsClientTerminated, 810) X(cudaErrorCdpNotSupported, 811) X(cudaErrorCdpVersionMismatch, 812) \
  X(cudaErrorStreamCaptureUnsupported, 900) X(cudaErrorStreamCaptureInvalidated, 901) \
  X(cudaErrorStreamCaptureMerge, 902) X(cudaErrorStreamCaptureUnmatched, 903) X(cudaErrorStreamCaptureUnjoined, 904) \
  X(cudaErrorStreamCaptureIsolation, 905) X(cudaErrorStreamCaptureImplicit, 906) X(cudaErrorCapturedEvent, 907) \
  X(cudaErrorStreamCaptureWrongThread, 908) X(cudaErrorTimeout, 909) X(cudaErrorGraphExecUpdateFailure, 910) \
  X(cudaErrorExternalDevice, 911) X(cudaErrorInvalidClusterSize, 912) X(cudaErrorFunctionNotLoaded, 913) \
  X(cudaErrorInvalidResourceType, 914) X(cudaErrorInvalidResourceConfiguration, 915) X(cudaErrorUnknown, 999) \
  X(cudaErrorApiFailureBase, 10000)

#define CUDA_EMULATOR_ERROR(name, number) name = number,
enum cudaError { CUDA_EMULATOR_ERRORS(CUDA_EMULATOR_ERROR) };
#undef CUDA_EMULATOR_ERROR
using cudaError_t = cudaError;

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxBlockDimX = 2, cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4, cudaDevAttrMaxGridDimX = 5, cudaDevAttrMaxGridDimY = 6, cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrTotalConstantMemory = 9, cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxPitch = 11, cudaDevAttrMaxRegistersPerBlock = 12, cudaDevAttrClockRate = 13,
  cudaDevAttrTextureAlignment = 14, cudaDevAttrGpuOverlap = 15, cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrKernelExecTimeout = 17, cudaDevAttrIntegrated = 18, cudaDevAttrCanMapHostMemory = 19,
  cudaDevAttrComputeMode = 20, cudaDevAttrMaxTexture1DWidth = 21, cudaDevAttrMaxTexture2DWidth = 22,
  cudaDevAttrMaxTexture2DHeight = 23, cudaDevAttrMaxTexture3DWidth = 24, cudaDevAttrMaxTexture3DHeight = 25,
  cudaDevAttrMaxTexture3DDepth = 26, cudaDevAttrMaxTexture2DLayeredWidth = 27,
  cudaDevAttrMaxTexture2DLayeredHeight = 28, cudaDevAttrMaxTexture2DLayeredLayers = 29,
  cudaDevAttrSurfaceAlignment = 30, cudaDevAttrConcurrentKernels = 31, cudaDevAttrEccEnabled = 32,
  cudaDevAttrPciBusId = 33, cudaDevAttrPciDeviceId = 34, cudaDevAttrTccDriver = 35, cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrGlobalMemoryBusWidth = 37, cudaDevAttrL2CacheSize = 38, cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrAsyncEngineCount = 40, cudaDevAttrUnifiedAddressing = 41, cudaDevAttrMaxTexture1DLayeredWidth = 42,
  cudaDevAttrMaxTexture1DLayeredLayers = 43, cudaDevAttrMaxTexture2DGatherWidth = 45,
  cudaDevAttrMaxTexture2DGatherHeight = 46, cudaDevAttrMaxTexture3DWidthAlt = 47, cudaDevAttrMaxTexture3DHeightAlt = 48,
  cudaDevAttrMaxTexture3DDepthAlt = 49, cudaDevAttrPciDomainId = 50, cudaDevAttrTexturePitchAlignment = 51,
  cudaDevAttrMaxTextureCubemapWidth = 52, cudaDevAttrMaxTextureCubemapLayeredWidth = 53,
  cudaDevAttrMaxTextureCubemapLayeredLayers = 54, cudaDevAttrMaxSurface1DWidth = 55, cudaDevAttrMaxSurface2DWidth = 56,
  cudaDevAttrMaxSurface2DHeight = 57, cudaDevAttrMaxSurface3DWidth = 58, cudaDevAttrMaxSurface3DHeight = 59,
  cudaDevAttrMaxSurface3DDepth = 60, cudaDevAttrMaxSurface1DLayeredWidth = 61,
  cudaDevAttrMaxSurface1DLayeredLayers = 62, cudaDevAttrMaxSurface2DLayeredWidth = 63,
  cudaDevAttrMaxSurface2DLayeredHeight = 64, cudaDevAttrMaxSurface2DLayeredLayers = 65,
  cudaDevAttrMaxSurfaceCubemapWidth = 66, cudaDevAttrMaxSurfaceCubemapLayeredWidth = 67,
  cudaDevAttrMaxSurfaceCubemapLayeredLayers = 68, cudaDevAttrMaxTexture1DLinearWidth = 69,
  cudaDevAttrMaxTexture2DLinearWidth = 70, cudaDevAttrMaxTexture2DLinearHeight = 71,
  cudaDevAttrMaxTexture2DLinearPitch = 72, cudaDevAttrMaxTexture2DMipmappedWidth = 73,
  cudaDevAttrMaxTexture2DMipmappedHeight = 74, cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxTexture1DMipmappedWidth = 77,
  cudaDevAttrStreamPrioritiesSupported = 78, cudaDevAttrGlobalL1CacheSupported = 79,
  cudaDevAttrLocalL1CacheSupported = 80, cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxRegistersPerMultiprocessor = 82, cudaDevAttrManagedMemory = 83, cudaDevAttrIsMultiGpuBoard = 84,
  cudaDevAttrMultiGpuBoardGroupID = 85, cudaDevAttrHostNativeAtomicSupported = 86,
  cudaDevAttrSingleToDoublePrecisionPerfRatio = 87, cudaDevAttrPageableMemoryAccess = 88,
  cudaDevAttrConcurrentManagedAccess = 89, cudaDevAttrComputePreemptionSupported = 90,
  cudaDevAttrCanUseHostPointerForRegisteredMem = 91, cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrCanFlushRemoteWrites = 98,
  cudaDevAttrHostRegisterSupported = 99, cudaDevAttrPageableMemoryAccessUsesHostPageTables = 100,
  cudaDevAttrDirectManagedMemAccessFromHost = 101, cudaDevAttrMaxBlocksPerMultiprocessor = 106,
  cudaDevAttrMaxPersistingL2CacheSize = 108, cudaDevAttrMaxAccessPolicyWindowSize = 109,
  cudaDevAttrReservedSharedMemoryPerBlock = 111, cudaDevAttrSparseCudaArraySupported = 112,
  cudaDevAttrHostRegisterReadOnlySupported = 113, cudaDevAttrTimelineSemaphoreInteropSupported = 114,
  cudaDevAttrMemoryPoolsSupported = 115, cudaDevAttrGPUDirectRDMASupported = 116,
  cudaDevAttrGPUDirectRDMAFlushWritesOptions = 117, cudaDevAttrGPUDirectRDMAWritesOrdering = 118,
  cudaDevAttrMemoryPoolSupportedHandleTypes = 119, cudaDevAttrClusterLaunch = 120,
  cudaDevAttrDeferredMappingCudaArraySupported = 121, cudaDevAttrIpcEventSupport = 125,
  cudaDevAttrMemSyncDomainCount = 126, cudaDevAttrNumaConfig = 130, cudaDevAttrNumaId = 131,
  cudaDevAttrMpsEnabled = 133, cudaDevAttrHostNumaId = 134, cudaDevAttrD3D12CigSupported = 135,
  cudaDevAttrVulkanCigSupported = 138, cudaDevAttrGpuPciDeviceId = 139, cudaDevAttrGpuPciSubsystemId = 140,
  cudaDevAttrHostNumaMemoryPoolsSupported = 142, cudaDevAttrHostNumaMultinodeIpcSupported = 143,
  cudaDevAttrHostMemoryPoolsSupported = 144, cudaDevAttrOnlyPartialHostNativeAtomicSupported = 147,
};
