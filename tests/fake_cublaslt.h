/* A cuBLASLt that computes nothing and remembers what it was told. Built as a module under the
 * library's file name, so that a test reaches it through --lib_path as the program would the real
 * one. */
#ifndef FIB_TESTS_FAKE_CUBLASLT_H
#define FIB_TESTS_FAKE_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include <cublasLt.h>

struct fake_layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t batch;
};

struct fake_desc {
    cublasComputeType_t compute;
    cudaDataType_t scale_type;
    int32_t transa, transb, bias_type;
    uint32_t epilogue;
    const void *bias, *a_scale, *b_scale;
    int8_t fast_accumulation; /* -1: never set */
};

/* Arguments of the last cublasLtMatmul. */
struct fake_call {
    struct fake_desc desc;
    struct fake_layout left_layout, right_layout, out_layout;
    const void *left, *right, *c;
    void *out;
    float alpha, beta;
    uint64_t algo_id;
    void *workspace;
    size_t workspace_bytes;
};

struct fake_cublaslt {
    /* what it answers */
    size_t version;
    cublasStatus_t desc_status, heuristic_status, matmul_status;
    int offered;         /* candidates; candidate i has algorithm 60 + i */
    uint32_t bad_states; /* bit i: candidate i says of itself that it does not run */
    void (*on_matmul)(void *context, uint64_t algo_id);
    void *context;
    /* what it was told */
    int live; /* objects not destroyed yet */
    int matmul_count;
    struct fake_call call;
    struct fake_desc desc; /* of the last search */
    uint64_t workspace_limit;
    uint32_t schemes;
    int requested;
};

/* Symbol of the module: address of its state. */
#define FAKE_CUBLASLT_STATE "fake_cublaslt_state"
typedef struct fake_cublaslt *fake_cublaslt_state_fn(void);
struct fake_cublaslt *fake_cublaslt_state(void);

#endif
