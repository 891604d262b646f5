/* Parameters of the norm family: RMSNorm and LayerNorm, with and without residual and quantised
 * output. */
#ifndef FIB_ROUTINES_NORM_H
#define FIB_ROUTINES_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"

struct norm_params {
    int64_t batch_size;
    int64_t hidden_size; /* elements that are normalised together; fused_dit_layernorm: rows */
    int64_t num_heads;   /* FIB_UNSET_I64: input is [batch_size, hidden_size] */
    enum fib_dtype input_dtype;
    double eps;            /* means the float32 nearest to it */
    double scale;          /* quantised value = result / scale */
    const char *out_dtype; /* a name: nvfp4 and mxfp4 are no element types */
    bool use_global_scale, is_sf_swizzled_layout, output_both_sf_layouts;
    const char *dit_mode;
    int64_t ppf, pph, ppw; /* frames, rows and columns of patches */
};

#endif
