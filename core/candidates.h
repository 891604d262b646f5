/* Which implementations a case will run, and why the others will not. */
#ifndef FIB_CORE_CANDIDATES_H
#define FIB_CORE_CANDIDATES_H

#include "core/device.h"
#include "core/registry.h"
#include "core/result.h"

struct fib_candidate {
    const char *label;               /* as asked for, aliases resolved */
    const struct fib_impl *impl;     /* NULL when refused */
    enum fib_result_status status;   /* FIB_RESULT_PASSED while it may run */
    char reason[FIB_ERROR_CHARS];    /* of a refusal */
};

struct fib_candidates {
    struct fib_candidate *items; /* in the order of --backends, then --also, then the default */
    size_t count;
    size_t runnable_count;
    struct fib_arena *arena; /* owns the labels */
};

/* Fills *candidates for the case's named backends (else the routine's default on this device),
 * then --also. When none of them can run, the device's default backend is added unless --also is
 * none. `problem` may be NULL for a routine that is not built: then every candidate is
 * refused with the routine's reason. Free with fib_candidates_free(). */
void fib_candidates_pick(const struct fib_registry *registry, const struct fib_case *kase,
                         const struct fib_problem *problem, const struct fib_device *device,
                         struct fib_candidates *candidates);
/* Only the labels that the case names or gets by default, nothing resolved and nothing loaded. Of
 * the device the kind and the default backend are read. Free with fib_candidates_free(). */
void fib_candidates_name(const struct fib_registry *registry, const struct fib_case *kase,
                         const struct fib_device *device, struct fib_candidates *candidates);
void fib_candidates_free(struct fib_candidates *candidates);

#endif
