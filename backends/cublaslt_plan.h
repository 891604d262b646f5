/* A matrix product as cuBLASLt sees it: descriptor, layouts, search for algorithms, launch. Apart
 * from the adapter so that tests can put their own functions behind the entry-point table.
 *
 * The library thinks in columns. Row-major out[m][n] = A[m][k] B[n][k]^T is, column by column,
 * out^T[n][m] = B A^T with B stored [k][n] and to be transposed ("TN", the only form for fp8), so
 * the library's first operand, here `left`, is B and its second one, `right`, is A. */
#ifndef FIB_BACKENDS_CUBLASLT_PLAN_H
#define FIB_BACKENDS_CUBLASLT_PLAN_H

#include <stddef.h>

#include "backends/cublaslt_lib.h"
#include "routines/gemm.h"

/* The search asks for more than any shape was seen to have. */
enum { FIB_CUBLASLT_MAX_CANDIDATES = 32 };

/* Device addresses of one ring slot. `bias` and the scales are NULL where the shape has none. */
struct fib_cublaslt_slot {
    const void *a, *b, *bias, *a_scale, *b_scale;
    void *out;
};

/* Belongs to one slot, since the descriptor holds addresses of bias and scales. */
struct fib_cublaslt_plan {
    struct gemm_shape shape;
    struct fib_cublaslt_slot slot;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t left, right, out;
};

/* Candidates in the library's order, best guess first. */
struct fib_cublaslt_candidates {
    cublasLtMatmulHeuristicResult_t items[FIB_CUBLASLT_MAX_CANDIDATES];
    int count;
};

/* Device memory a kernel may use between its parts. */
struct fib_cublaslt_workspace {
    void *address;
    size_t bytes;
};

/* NULL, or why the library takes no such product, as far as can be told without it. */
const char *fib_cublaslt_refusal(const struct gemm_shape *shape, char *buffer, size_t buffer_bytes);

enum fib_status fib_cublaslt_plan_create(const struct fib_cublaslt *lib,
                                         const struct gemm_shape *shape,
                                         const struct fib_cublaslt_slot *slot,
                                         struct fib_cublaslt_plan *plan, struct fib_error *err);
/* Accepts a zeroed plan; zeroes it. */
void fib_cublaslt_plan_free(const struct fib_cublaslt *lib, struct fib_cublaslt_plan *plan);

/* Asks for algorithms that need at most workspace_bytes. FIB_ERR_UNSUPPORTED with the library's
 * status when it has none. count >= 1 on success. */
enum fib_status fib_cublaslt_plan_search(const struct fib_cublaslt *lib, cublasLtHandle_t handle,
                                         const struct fib_cublaslt_plan *plan,
                                         size_t workspace_bytes,
                                         struct fib_cublaslt_candidates *candidates,
                                         struct fib_error *err);

/* Enqueues one product. */
enum fib_status fib_cublaslt_plan_launch(const struct fib_cublaslt *lib, cublasLtHandle_t handle,
                                         const struct fib_cublaslt_plan *plan,
                                         const cublasLtMatmulAlgo_t *algo,
                                         const struct fib_cublaslt_workspace *workspace,
                                         struct CUstream_st *stream, struct fib_error *err);

/* "algo 66 tile 23 stages 36 splitk 3 cluster 3", parts that are at their default left out. The
 * numbers are those of the library's header. */
const char *fib_cublaslt_algo_text(const struct fib_cublaslt *lib, const cublasLtMatmulAlgo_t *algo,
                                   char *buffer, size_t buffer_bytes);

#endif
