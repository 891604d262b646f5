/* Swept values: "1,2,4", "1:64:*2", "1:9:2" become value lists; lists become combinations. */
#ifndef FIB_CORE_SWEEP_H
#define FIB_CORE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/option.h"
#include "core/status.h"

struct fib_arena;

/* Integers, numbers, choices and dtypes can be swept. */
bool fib_sweep_allowed(const struct fib_option *option);

/* All values of a text, at least one. A text without ',' and ':' is one value. Commas separate
 * values and ranges ("1,2,8:64:*2"). Ranges first:last[:step] and first:last:*factor are for
 * integers and numbers; `last` is included when a step lands on it. More than `limit` values are
 * refused before any is made. */
enum fib_status fib_sweep_parse(const struct fib_option *option, const char *text, size_t limit,
                                struct fib_arena *arena, struct fib_value **values, size_t *count,
                                struct fib_error *err);

/* Values of one row that has several. */
struct fib_sweep {
    size_t row;
    struct fib_value *values;
    size_t count;
};

/* Sweeps that advance together: one in general, several when zipped. */
struct fib_axis {
    struct fib_sweep *sweeps;
    size_t sweep_count;
    size_t count; /* the same for each sweep */
};

/* Product of the axes' counts; `limit` + 1 as soon as it is larger than `limit`. */
size_t fib_axes_count(const struct fib_axis *axes, size_t axis_count, size_t limit);
/* Writes combination `index` into values[row]; the last axis is the fastest. */
void fib_axes_pick(const struct fib_axis *axes, size_t axis_count, size_t index,
                   struct fib_value *values);

#endif
