/* A routine: one row of a table in routines/<family>.c. */
#ifndef FIB_CORE_ROUTINE_H
#define FIB_CORE_ROUTINE_H

#include <stddef.h>
#include <stdint.h>

#include "core/case.h"
#include "core/option.h"
#include "core/problem.h"
#include "core/status.h"

struct fib_routine {
    const char *name;
    const char *family;
    const char *summary;   /* the mathematics in half a line */
    const char *unavailable; /* NULL when built; else the end of "<name> is ...": why its cases
                                become UNSUPPORTED rows */
    size_t params_size;    /* of the family's params struct; 0 when rows are unbound */
    const struct fib_option *options;           /* family rows, ends with name NULL */
    const struct fib_option_override *overrides; /* ends with name NULL; may be NULL */
    const char *default_backends; /* on a CUDA device; elsewhere the device's default backend */

    /* Shapes and dtypes legal? Sentence names flag, value, rule. */
    enum fib_status (*check)(const struct fib_case *kase, struct fib_error *err);
    /* Fills tensors, row_count, row_flops, accumulate_roundoff and cost. Called after check. Sizes
     * are products of checked flags; the caller has made sure that they fit 63 bits. */
    void (*describe)(const struct fib_case *kase, struct fib_problem *problem);
    /* Rows [first, last) of every checked tensor on the host, in float64; ranges are independent
     * and may run on several threads at once. */
    void (*reference)(const struct fib_case *kase, const struct fib_problem *problem,
                      const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                      const struct fib_oracle_rows *rows);
    /* Set instead of `check` and `describe` for routines from outside the program, whose code may
     * fail or crash: does the work of both, and only in the process that runs cases. Such a routine
     * may lack a reference: then nothing is held against one and rows are UNCHECKED. */
    enum fib_status (*outline)(const struct fib_case *kase, struct fib_problem *problem,
                               struct fib_error *err);
    const void *context; /* of whoever made the row at run time; NULL */
    const char *layout_note; /* prose for `describe`: tensors and formula, one paragraph */
    const char *cost_note;   /* prose: flops and bytes formulas */
};

/* A family's rows. */
struct fib_family {
    const char *name;
    const char *summary;
    const struct fib_routine *routines;
    size_t routine_count;
};

/* Published model shapes for --model: `words` are flags for routines of `family` ("--hidden_size
 * 4096"); sweeps and --zip allowed. */
struct fib_model {
    const char *name, *family, *words, *source;
};

#endif
