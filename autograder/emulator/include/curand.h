#pragma once
// cuRAND's host library by its types and names, so that a file which draws its inputs by it compiles: whoever reaches one of
// its functions is told that it runs on a GPU only.
#include "cuda_emulator/library.h"
#include "cuda_runtime.h"

typedef struct curandGenerator_st* curandGenerator_t;
typedef enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202,
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999,
} curandStatus_t;
typedef enum curandRngType {
  CURAND_RNG_TEST = 0,
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
  CURAND_RNG_QUASI_DEFAULT = 200,
  CURAND_RNG_QUASI_SOBOL32 = 201,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
  CURAND_RNG_QUASI_SOBOL64 = 203,
  CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204,
} curandRngType_t;
typedef enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
  CURAND_ORDERING_QUASI_DEFAULT = 201,
} curandOrdering_t;

CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandCreateGenerator)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandCreateGeneratorHost)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandDestroyGenerator)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGetVersion)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandSetStream)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandSetPseudoRandomGeneratorSeed)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandSetGeneratorOffset)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandSetGeneratorOrdering)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandSetQuasiRandomGeneratorDimensions)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerate)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateLongLong)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateUniform)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateUniformDouble)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateNormal)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateNormalDouble)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateLogNormal)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateLogNormalDouble)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGeneratePoisson)
CUDA_EMULATOR_ABSENT("cuRAND", curandStatus_t, curandGenerateSeeds)
