/* All families and model shapes, for main and the tests. */
#ifndef FIB_ROUTINES_ROUTINES_H
#define FIB_ROUTINES_ROUTINES_H

#include <stddef.h>

#include "core/routine.h"

extern const struct fib_family *const fib_families[];
extern const size_t fib_family_count;

/* Rows of --model, see routines/models.c for their sources. */
extern const struct fib_model fib_models[];
extern const size_t fib_model_count;

/* One per routines/<family>.c. */
extern const struct fib_family fib_family_attention, fib_family_sparse_attention;
extern const struct fib_family fib_family_gemm;
extern const struct fib_family fib_family_moe;
extern const struct fib_family fib_family_moe_comm, fib_family_allreduce_comm;
extern const struct fib_family fib_family_mixed_comm;
extern const struct fib_family fib_family_norm;
extern const struct fib_family fib_family_quantization;
extern const struct fib_family fib_family_sampling, fib_family_topk_varlen;
extern const struct fib_family fib_family_rope;
extern const struct fib_family fib_family_mamba;
extern const struct fib_family fib_family_gdn, fib_family_kda;

#endif
