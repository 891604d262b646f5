/* The oracle's side of a case: which rows are checked, what they should hold, and the verdict on a
 * backend's outputs. One judge serves all backends of a case: the oracle runs once per draw. */
#ifndef FIB_CORE_JUDGE_H
#define FIB_CORE_JUDGE_H

#include "core/check.h"
#include "core/routine.h"
#include "core/tensors.h"

struct fib_judge;

/* float64 operations one oracle pass may take: about `seconds` on this many threads. A problem that
 * takes more than a tenth of that is not checked whole, so that a large case costs no more than its
 * sample of rows needs: the result is then below the work of all rows. */
double fib_judge_flops_budget(const struct fib_problem *problem, double seconds,
                              unsigned thread_count);

/* Picks the rows and runs the reference on the content of slot 0. `flops_budget` limits the pass.
 * The case and problem are borrowed. */
enum fib_status fib_judge_create(const struct fib_case *kase, const struct fib_problem *problem,
                                 struct fib_tensors *tensors, struct fib_pool *pool,
                                 double flops_budget, uint64_t seed, struct fib_judge **judge,
                                 struct fib_error *err);
void fib_judge_free(struct fib_judge **judge);

/* Calls `run` on slot 0 twice over two poison patterns and checks guards, inputs, unwritten
 * elements and values. *output_checksum: over all written tensors of the first run. Verdict in
 * *verification; an error status only when the call or a copy failed. */
struct fib_judge_call {
    fib_call_fn *call;
    void *context;
    uint32_t slot;              /* 0 for fib_judge_full */
    double accumulate_roundoff; /* the implementation's u_acc if it is larger than the problem's */
};
enum fib_status fib_judge_full(struct fib_judge *judge, const struct fib_judge_call *call,
                               struct fib_verification *verification, uint64_t *output_checksum,
                               struct fib_error *err);
/* One call, values, guards and inputs only: the check on re-drawn inputs after timing. Any slot
 * that holds the draw of slot 0 will do. */
enum fib_status fib_judge_again(struct fib_judge *judge, const struct fib_judge_call *call,
                                struct fib_verification *verification, struct fib_error *err);

#endif
