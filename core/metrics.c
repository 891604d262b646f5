/* Rates of one call from its work and its time. */
#include "core/metrics.h"

#include <math.h>

struct fib_rates fib_metrics_rates(const struct fib_cost *cost, double time_ms)
{
    /* A time of zero, below zero or not a number is no measurement: no rate follows from it. */
    if (!(time_ms > 0.0) || !isfinite(time_ms))
        return (struct fib_rates){.tflops = NAN, .tb_per_sec = NAN};
    const double scale = 1e9 * time_ms;
    return (struct fib_rates){.tflops = cost->flops / scale,
                              .tb_per_sec = cost->traffic_bytes / scale};
}
