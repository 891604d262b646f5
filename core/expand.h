/* Second step from words to cases: the given flags of one line become values and sweeps.
 *
 * Here --model is spelled out, --zip is applied, backend names are checked and mapped, required
 * flags are demanded, and flags without effect are announced. */
#ifndef FIB_CORE_EXPAND_H
#define FIB_CORE_EXPAND_H

#include <stddef.h>

#include "core/assign.h"
#include "core/registry.h"
#include "core/status.h"
#include "core/sweep.h"

struct fib_arena;

/* Texts of "[WARNING]" lines, in order. */
struct fib_warnings {
    struct fib_arena *arena; /* owns the texts */
    const char **texts;      /* free() when done */
    size_t count, capacity;
    const char *prefix; /* "list.txt:7: " or "" */
};
void fib_warn(struct fib_warnings *warnings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A routine with its rows and their defaults; NULL routine: the shared rows alone. */
struct fib_context {
    const struct fib_routine *routine;
    struct fib_option_set options;
    struct fib_value *defaults;
};
/* FIB_ERR_INTERNAL when a row's default does not parse. */
enum fib_status fib_context_create(const struct fib_routine *routine, struct fib_arena *arena,
                                   struct fib_context **context, struct fib_error *err);

struct fib_expansion {
    struct fib_value *values; /* one per row; swept rows hold their first value */
    struct fib_axis *axes;
    size_t axis_count, case_count;
};

/* `given` is completed by the flags of the model. `own_origin` is the origin that warnings are
 * about: flags from elsewhere were announced where they were given. Values stay valid with `arena`,
 * the axes with `scratch`. */
enum fib_status fib_expand(const struct fib_registry *registry, const struct fib_context *context,
                           enum fib_origin own_origin, struct fib_given *given,
                           struct fib_arena *arena, struct fib_arena *scratch,
                           struct fib_warnings *warnings, struct fib_expansion *expansion,
                           struct fib_error *err);

/* Flags given for the run become defaults of a line that does not give them; a line's flag also
 * drops a default that contradicts it. */
void fib_given_inherit(const struct fib_option_set *set, const struct fib_given *defaults,
                       size_t default_count, struct fib_given *given);

#endif
