/* Layer norm, bf16 in, FP8 out.
 *
 * Mathematics, mapping, limits: rows.cuh. Traffic: 3 bytes an element, 8 a column.
 * Bound: memory bandwidth; for few rows the latency of one load, one sum and the launch.
 * Measured: docs/kernels/norm.md
 */
#include "kernels/norm/forms.h"
#include "kernels/norm/launch.cuh"

extern "C" int fib_norm_layer_bf16_fp8(const fib_norm_args *args, const fib_norm_plan *plan,
                                       CUstream_st *stream, bool load_only)
{
    return fib::run<fib::norm_op<fib::BF16, false, true, true>>(args, plan, stream, load_only);
}
