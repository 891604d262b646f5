/* Runs cases in a worker process and books what a worker could not report itself.
 *
 * The parent parses, plans, supervises and writes; it opens no device and starts no pool, so it may
 * fork at any time and nothing a backend does can reach the results. A worker runs case after case.
 * It is replaced when it ended, hung, lost its device or ran out of memory. What it had reported of
 * a case stays; the backend that was at work gets a row (CRASHED, TIMEOUT or OOM), and the others
 * run again without it. */
#ifndef FIB_CORE_SUPERVISOR_H
#define FIB_CORE_SUPERVISOR_H

#include "core/app.h"
#include "core/interrupt.h"
#include "core/plan.h"
#include "core/runner.h"

struct fib_supervisor;

struct fib_supervisor_spec {
    const struct fib_app *app;
    const struct fib_plan *plan;
    int argc;
    const char *const *argv;
    struct fib_interrupt *interrupt; /* without a thread */
};

/* Starts the first worker, which opens the device. Everything in *spec is borrowed. */
enum fib_status fib_supervisor_open(const struct fib_supervisor_spec *spec,
                                    struct fib_supervisor **supervisor, struct fib_error *err);
/* Ends the worker. Accepts NULL; resets the handle. */
void fib_supervisor_close(struct fib_supervisor **supervisor);

/* Environment block made by the first worker. */
const struct fib_json *fib_supervisor_environment(const struct fib_supervisor *supervisor);
/* The worker's device from afar: name, uuid, kind, default backend; now_ms and utc_s as the worker
 * told them last. Nothing else of it may be used. */
struct fib_device *fib_supervisor_device(struct fib_supervisor *supervisor);

/* As fib_runner_case() for item `index` of the plan. Of *runner the callbacks emit, end_group,
 * begin_group and say are called, here in the parent. Comes back early, with FIB_OK, when the run
 * is interrupted. An error is one of emit or end_group, or says that no worker can be had. */
enum fib_status fib_supervisor_case(struct fib_supervisor *supervisor,
                                    const struct fib_runner *runner, size_t index,
                                    struct fib_error *err);

#endif
