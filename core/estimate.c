/* Guesses made from work and rates, so that a case that would take minutes is refused before it
 * starts. */
#include "core/estimate.h"

#include <math.h>

#include "core/tensors.h"

/* Generator speed per thread, and calls of a case that are not samples (checks, first call). */
static const double fill_elems_per_s = 2.0e8;
static const double extra_calls = 4.0;

static double fill_seconds(const struct fib_problem *problem, const struct fib_device_facts *facts,
                           uint32_t slot_count)
{
    double elems = 0.0;
    for (int t = 0; t < problem->tensor_count; t++)
        if (problem->tensors[t].role != FIB_OUTPUT)
            elems += (double)fib_tensor_elems(&problem->tensors[t]);
    const double threads = facts->unit_count > 0 ? facts->unit_count : 1;
    /* Generated three times (draw 0, and the re-drawn content of two slots), and copied into the
     * other slots. */
    return 3.0 * elems / (fill_elems_per_s * threads) +
           fib_tensors_footprint(problem) * slot_count / facts->bytes_per_s;
}

struct fib_estimate_parts fib_estimate_case(const struct fib_problem *problem,
                                            const struct fib_device_facts *facts,
                                            uint32_t slot_count, size_t arm_count, double budget_ms,
                                            int64_t oracle_rows)
{
    const double call_s = fmax(problem->cost.flops / facts->flops_per_s,
                               problem->cost.traffic_bytes / facts->bytes_per_s);
    const double arms = (double)arm_count;
    const double threads = facts->host_threads > 0 ? facts->host_threads
                           : facts->unit_count > 0 ? facts->unit_count
                                                   : 1;
    const double cap_s = facts->warmup_cap_ms / 1e3;
    const double budget_s = budget_ms / 1e3;
    const bool slow = 25.0 * call_s > budget_s;
    return (struct fib_estimate_parts){
        .fill_s = fill_seconds(problem, facts, slot_count),
        .warmup_s = arms * (slow ? call_s : fmax(cap_s, 5.0 * call_s)),
        .sample_s = arms * (fmax(budget_s, 3.0 * call_s) + extra_calls * call_s),
        .oracle_s = 2.0 * (double)oracle_rows * problem->row_flops / (1.2e9 * threads),
    };
}

double fib_estimate_total_s(const struct fib_estimate_parts *parts)
{
    return parts->fill_s + parts->warmup_s + parts->sample_s + parts->oracle_s;
}
