/* A cuBLAS that computes nothing and remembers what it was told; a module under the library's file
 * name, reached through --lib_path. */
#ifndef FIB_TESTS_FAKE_CUBLAS_H
#define FIB_TESTS_FAKE_CUBLAS_H

#include <cublas_v2.h>

struct fake_cublas {
    /* what it answers */
    int major;
    cublasStatus_t gemm_status;
    /* what it was told */
    int live; /* handles not destroyed yet */
    int gemm_count, batched_count;
    int math_mode;
    void *workspace; /* NULL again after a stream is set, as the library's own becomes current */
    size_t workspace_bytes;
    /* arguments of the last product */
    int transa, transb, m, n, k, lda, ldb, ldc, batch;
    const void *a, *b;
    void *c;
    cudaDataType a_type, b_type, c_type;
    cublasComputeType_t compute;
    long long stride_a, stride_b, stride_c;
    float alpha, beta;
    void *workspace_at_call;
};

/* Symbol of the module: address of its state. */
#define FAKE_CUBLAS_STATE "fake_cublas_state"
typedef struct fake_cublas *fake_cublas_state_fn(void);
struct fake_cublas *fake_cublas_state(void);

#endif
