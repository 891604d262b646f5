/* Float64 oracles of the norm family; internal to routines/norm*.c. */
#ifndef FIB_ROUTINES_NORM_REFERENCE_H
#define FIB_ROUTINES_NORM_REFERENCE_H

#include <stdint.h>

#include "core/case.h"
#include "core/problem.h"

/* Same contract as fib_routine.reference. */
#define FIB_NORM_REFERENCE(name)                                                                   \
    void name(const struct fib_case *kase, const struct fib_problem *problem,                      \
              const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,                 \
              const struct fib_oracle_rows *rows)

/* y = x / sqrt(mean(x^2) + eps) * w: one rounding, at the end. */
FIB_NORM_REFERENCE(fib_rmsnorm_reference);
/* The same with w + 1. */
FIB_NORM_REFERENCE(fib_gemma_rmsnorm_reference);
/* h = x + residual, not rounded for the norm; x := norm of h, residual := h. */
FIB_NORM_REFERENCE(fib_fused_add_rmsnorm_reference);
FIB_NORM_REFERENCE(fib_gemma_fused_add_rmsnorm_reference);
/* out = fp8(clamp(y / scale)): y is not rounded before the division. */
FIB_NORM_REFERENCE(fib_rmsnorm_quant_reference);
FIB_NORM_REFERENCE(fib_fused_add_rmsnorm_quant_reference);
/* out = fp8(clamp(bf16(bf16((x - mean) / sqrt(var + eps) * gamma + beta) / scale))), var biased. */
FIB_NORM_REFERENCE(fib_layernorm_quant_reference);

#endif
