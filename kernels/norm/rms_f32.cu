/* RMS norm and residual add + RMS norm, float32 in and out.
 *
 * Mathematics, mapping, limits: rows.cuh. Traffic: 8 bytes an element, with residual 16.
 * Bound: memory bandwidth; for few rows the latency of one load, one sum and the launch.
 * Measured: docs/kernels/norm.md
 */
#include "kernels/norm/forms.h"
#include "kernels/norm/launch.cuh"

extern "C" int fib_norm_rms_f32(const fib_norm_args *args, const fib_norm_plan *plan,
                                CUstream_st *stream, bool load_only)
{
    return fib::run_rms<fib::F32, false>(args, plan, stream, load_only);
}
