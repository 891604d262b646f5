/* Parameters and tensors of the gemm family, for its adapters. */
#ifndef FIB_ROUTINES_GEMM_H
#define FIB_ROUTINES_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/problem.h"

/* One field per flag of the family; a routine reads those that its rows' `uses` names. Adapters
 * read struct gemm_shape instead, which is made from what the routine really uses. */
struct gemm_params {
    int64_t batch_size, m, n, k;
    int64_t tile_size, group_size, mma_sm;
    const char *scale_major_mode;
    const char *input_dtype, *mat2_dtype; /* names: nvfp4 is no element type */
    enum fib_dtype out_dtype;
    bool use_128x4_sf_layout, use_nvfp4, autotune, bias;
};

/* Places of the tensors in a problem of mm_bf16, bmm_bf16 and bmm_fp8. The bf16 routines may have
 * a bias, bmm_fp8 has the two scales. */
enum gemm_tensor {
    GEMM_A = 0,       /* [batch, m, k], rows contiguous */
    GEMM_B = 1,       /* [batch, n, k]: stored so that k is contiguous for every output column */
    GEMM_OUT = 2,     /* [batch, m, n] */
    GEMM_BIAS = 3,    /* [n], bf16 */
    GEMM_A_SCALE = 3, /* [1], f32 */
    GEMM_B_SCALE = 4  /* [1], f32 */
};

/* out[b][i][j] = round(scale * sum_k A[b][i][k] * B[b][j][k] + bias[j]), scale = a_scale * b_scale
 * when `scaled`, else 1. The mm_ routines have batch 1 and tensors of rank 2. */
struct gemm_shape {
    int64_t batch, m, n, k;
    enum fib_dtype a, b, out;
    bool bias, scaled;
};

/* Reads the shape back from the tensors of a described problem. */
void fib_gemm_shape(const struct fib_problem *problem, struct gemm_shape *shape);

/* The float64 reference of mm_bf16, bmm_bf16 and bmm_fp8 (gemm_reference.c); the contract is
 * struct fib_routine.reference. */
struct fib_case;
void fib_gemm_reference(const struct fib_case *kase, const struct fib_problem *problem,
                        const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                        const struct fib_oracle_rows *rows);

#endif
