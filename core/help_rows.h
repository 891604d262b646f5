/* Pieces of help texts: flags, their defaults and ranges, wrapped prose. */
#ifndef FIB_CORE_HELP_ROWS_H
#define FIB_CORE_HELP_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/option.h"
#include "core/registry.h"

struct fib_arena;
struct fib_text;

enum { FIB_HELP_COLUMNS = 100 };

/* Adds words of `text` from column `indent` on, breaking lines before column 100; ends the line. */
void fib_help_wrap(struct fib_text *out, size_t indent, const char *text);

/* "--num_iters, -n N", "--causal, --no_causal". */
void fib_help_spelling(const struct fib_option *option, struct fib_text *out);
/* "required", "on", "off", the default in flag spelling, or NULL when the flag is just unset. */
const char *fib_help_default(const struct fib_option *option);
/* Values with " | " between choices; NULL when the kind says it all. In arena. */
const char *fib_help_values(const struct fib_option *option, struct fib_arena *arena);
/* True when the routine reads this row (of its effective set). */
bool fib_help_is_used(const struct fib_routine *routine, const struct fib_option *option);

/* Labels under which the routine can run, in the order of the label table, on CPU (`cuda` false)
 * or on a CUDA device; joined by ", ", "" when there are none. In arena. */
const char *fib_help_labels(const struct fib_registry *registry, const struct fib_routine *routine,
                            bool cuda, struct fib_arena *arena);

#endif
