/* The entry points of cuBLAS that the adapter uses, each noting what it was given. */
#include "tests/fake_cublas.h"

#include <stdlib.h>

static struct fake_cublas state;

struct fake_cublas *fake_cublas_state(void)
{
    return &state;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? state.major : 0;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_OTHER";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    state.live++;
    *handle = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    state.live--;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    (void)handle;
    (void)stream;
    state.workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle;
    state.workspace = workspace;
    state.workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    (void)handle;
    state.math_mode = (int)mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long int stride_a, const void *b,
                                          cudaDataType b_type, int ldb, long long int stride_b,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long int stride_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    (void)handle;
    (void)algo;
    state.batched_count++;
    state.transa = transa;
    state.transb = transb;
    state.m = m;
    state.n = n;
    state.k = k;
    state.alpha = *(const float *)alpha;
    state.beta = *(const float *)beta;
    state.a = a;
    state.b = b;
    state.c = c;
    state.a_type = a_type;
    state.b_type = b_type;
    state.c_type = c_type;
    state.lda = lda;
    state.ldb = ldb;
    state.ldc = ldc;
    state.stride_a = stride_a;
    state.stride_b = stride_b;
    state.stride_c = stride_c;
    state.batch = batch;
    state.compute = compute;
    state.workspace_at_call = state.workspace;
    return state.gemm_status;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo)
{
    state.gemm_count++;
    state.batched_count--;
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b,
                                      b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algo);
}
