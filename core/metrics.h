/* Rates from work and time. The only place where they are computed. */
#ifndef FIB_CORE_METRICS_H
#define FIB_CORE_METRICS_H

#include "core/problem.h"

struct fib_rates {
    double tflops;     /* flops / (1e9 * time_ms); NaN when the time is not positive */
    double tb_per_sec; /* traffic_bytes / (1e9 * time_ms); NaN likewise */
};

struct fib_rates fib_metrics_rates(const struct fib_cost *cost, double time_ms);

#endif
