#pragma once
// cuBLASLt as cublas_v2.h has cuBLAS; its attributes are refused by name where they stand.
#include "cublas_v2.h"

typedef struct cublasLtContext* cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque* cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque* cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque* cublasLtMatmulPreference_t;

CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtCreate)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtDestroy)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmul)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulAlgoGetHeuristic)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulDescCreate)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulDescDestroy)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulDescSetAttribute)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulPreferenceCreate)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulPreferenceDestroy)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatmulPreferenceSetAttribute)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatrixLayoutCreate)
CUDA_EMULATOR_ABSENT("cuBLAS", cublasStatus_t, cublasLtMatrixLayoutDestroy)
