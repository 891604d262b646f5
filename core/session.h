/* One case in one cache state while it runs: the runner fills it, the results are made from it. */
#ifndef FIB_CORE_SESSION_H
#define FIB_CORE_SESSION_H

#include "core/arm.h"
#include "core/result.h"
#include "core/runner.h"

struct fib_session {
    const struct fib_runner *runner;
    const struct fib_case *kase; /* with the cache state decided */
    int64_t case_index;
    struct fib_problem problem;
    bool undescribed; /* the routine's own code could not say what the problem is */
    struct fib_candidates candidates;
    struct fib_run_arm *arms; /* one per candidate, refused ones included */
    struct fib_tensors *tensors;
    struct fib_samples samples;
    uint32_t slot_count;
    bool slots_capped;
    bool hot;
    const double *cold_ms; /* [candidate] cold medians of the same case, or NULL */
    const struct fib_run_arm *entered; /* whose code runs now, or NULL */
    enum fib_step step;                /* under way since step_begin_ms */
    double step_begin_ms;
    double spent_ms[FIB_STEP_COUNT]; /* wall time of all backends in the steps that are over */
};

/* Differences below this share of the time are "the same". */
extern const double fib_verdict_margin;

/* Median time per call of each candidate, NaN where there is none. */
void fib_session_medians(const struct fib_session *session, double *median_ms);

/* Makes the record of every candidate that is not skipped and hands it on, in the order of the
 * candidates. When the device was lost, backends without a verdict get no record where a new worker
 * will run them, else CRASHED. The error is one of emit. */
enum fib_status fib_session_emit(const struct fib_session *session, struct fib_error *err);

#endif
