#pragma once
// cuBLAS by its types and names, so that a file which also measures the library compiles: whoever reaches one of its functions
// is told that it runs on a GPU only.
#include "cuda_bf16.h"
#include "cuda_emulator/library.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2, CUBLAS_OP_CONJG = 3 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72,
};

CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasCreate)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasDestroy)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSetStream)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasGetStream)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSetMathMode)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSetPointerMode)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSetWorkspace)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasGetVersion)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSgemm)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasDgemm)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasHgemm)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasGemmEx)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSgemmEx)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSgemmBatched)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSgemmStridedBatched)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasHgemmStridedBatched)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasGemmBatchedEx)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasGemmStridedBatchedEx)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSgemv)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasDgemv)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSger)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSgeam)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasDgeam)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSaxpy)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasDaxpy)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSdot)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasDdot)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSscal)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSnrm2)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasSasum)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasIsamax)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasScopy)

inline const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "an error of cuBLAS";
}
