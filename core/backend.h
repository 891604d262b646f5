/* A backend: implementations of routines by one library or by our own code. One adapter file
 * exports one struct fib_backend; the Meson list registers it. */
#ifndef FIB_CORE_BACKEND_H
#define FIB_CORE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/case.h"
#include "core/device.h"
#include "core/problem.h"
#include "core/status.h"

struct fib_text;

/* State of one implementation for one ring slot: plan, workspace, addresses. */
struct fib_prepared;

struct fib_prepare_args {
    const struct fib_impl *impl; /* whose row this is */
    const struct fib_case *kase;
    const struct fib_problem *problem;
    struct fib_device *device;
    struct fib_pool *pool;             /* for host implementations */
    void *data[FIB_MAX_TENSORS];       /* device address of each tensor in this slot */
    uint32_t slot;
    struct fib_prepared *first;        /* slot 0's state, to share plans and workspace; NULL for
                                          slot 0 itself. Slot 0 is released last */
};

struct fib_impl {
    const char *routine, *label;
    enum fib_device_kind device_kind;
    const void *context; /* of whoever made the row at run time; NULL */
    int min_cc;  /* least compute capability; 0 = none */
    int auto_rank; /* `auto` takes the highest that can run; equal: first in the registry */
    double accumulate_roundoff; /* u_acc of the tolerance where this hardware or library adds with
                                   fewer bits than the problem's row assumes; 0 = as the problem */
    /* NULL = can run this problem on this device, else the reason in one clause a person can act
     * on; may use the caller's buffer. May be NULL (never refuses). */
    const char *(*refuse)(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_device *device, char *buffer, size_t buffer_bytes);
    /* Workspace, repacked weights, plan; not timed. Once per ring slot. */
    enum fib_status (*prepare)(const struct fib_prepare_args *args, struct fib_prepared **prepared,
                               struct fib_error *err);
    /* Launches one call into the stream (never NULL on a device that has streams) and returns; this
     * alone is timed. */
    enum fib_status (*run)(struct fib_prepared *prepared, struct fib_stream *stream,
                           struct fib_error *err);
    /* Accepts NULL; resets the handle. */
    void (*release)(struct fib_prepared **prepared);
    /* What really runs, "cpu/rmsnorm_rows", "openblas/sgemm". May use the buffer. After prepare. */
    const char *(*resolved)(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes);
};

struct fib_backend {
    const char *id;    /* file stem: "cpu_norm" */
    const struct fib_impl *impls;
    size_t impl_count;
    const char *meaning; /* half a line on what its labels stand for: given for labels that
                            backends/labels.c does not list, else NULL */
    const char *origin; /* path of the plug-in it comes from; NULL: built in */
    const char *absent; /* built without its library: the reason every case is refused with */
    /* One line for `doctor`: what was found and where, or what is missing. Returns true when
     * usable. NULL for backends that need nothing. */
    bool (*probe)(struct fib_text *out);
};

#define FIB_IMPLS(impls_) .impls = (impls_), .impl_count = sizeof(impls_) / sizeof((impls_)[0])
#define FIB_BACKEND(id_, impls_) {.id = (id_), FIB_IMPLS(impls_)}

/* A known backend label: what it means, and old spellings that map to it. */
struct fib_label {
    const char *name;
    const char *meaning;
    const char *alias_of;  /* non-NULL: an old or alternative spelling of that label */
    bool alias_warns;      /* the mapping is announced with a [WARNING] */
};

#endif
