/* Inside the norm kernels: one launcher for each group of forms, each in a file of its own so that
 * they compile side by side. */
#ifndef FIB_KERNELS_NORM_FORMS_H
#define FIB_KERNELS_NORM_FORMS_H

#include "kernels/norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most shared memory of a block for the rows of FIB_NORM_STREAM. */
enum { FIB_NORM_RING_BYTES = 225 * 1024 };
/* Shared memory of one row: x and, for forms that add, the residual. */
size_t fib_norm_stage_bytes(const struct fib_norm_args *args);

/* Launches one form, or with `load_only` prepares for it. 0 or the runtime's error number. */
typedef int fib_norm_form_fn(const struct fib_norm_args *args, const struct fib_norm_plan *plan,
                             struct CUstream_st *stream, bool load_only);

fib_norm_form_fn fib_norm_rms_bf16, fib_norm_rms_f16, fib_norm_rms_f32, fib_norm_rms_bf16_fp8,
    fib_norm_rms_f16_fp8, fib_norm_layer_bf16_fp8;

#ifdef __cplusplus
}
#endif

#endif
