/* Memory and time of a case before it runs. */
#ifndef FIB_CORE_ESTIMATE_H
#define FIB_CORE_ESTIMATE_H

#include "core/device.h"
#include "core/problem.h"
#include "core/sample.h"

struct fib_estimate_parts {
    double fill_s, warmup_s, sample_s, oracle_s;
};

/* Cautious seconds of one case with `arm_count` backends: fill of all slots, warm-up and samples of
 * each arm, checking. Uses the device's guesses of its rates; `oracle_rows` rows are checked twice.
 */
struct fib_estimate_parts fib_estimate_case(const struct fib_problem *problem,
                                            const struct fib_device_facts *facts,
                                            uint32_t slot_count, size_t arm_count,
                                            double budget_ms, int64_t oracle_rows);
double fib_estimate_total_s(const struct fib_estimate_parts *parts);

#endif
