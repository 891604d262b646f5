/* A run: a plan of cases, executed from the first to the last, reported as it goes. */
#ifndef FIB_CORE_RUN_H
#define FIB_CORE_RUN_H

#include "core/app.h"
#include "core/plan.h"

/* Opens the device, runs every item of the plan (or only lists them with --plan), writes all
 * outputs, prints the summary of a run with several cases. Returns the exit status. */
enum fib_exit fib_run_plan(const struct fib_app *app, const struct fib_plan *plan, int argc,
                           const char *const *argv);

#endif
