/* The reference's bracketed lines about a case: [INFO], [VVERBOSE], the repro command. */
#ifndef FIB_CORE_NARRATE_H
#define FIB_CORE_NARRATE_H

#include "core/problem.h"
#include "core/runner.h"

/* What --verbose and --generate_repro_command ask for, through runner->say. `problem` NULL for a
 * routine that is not built. */
void fib_narrate_case(const struct fib_runner *runner, const struct fib_case *kase,
                      const struct fib_problem *problem);

#endif
