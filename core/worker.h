/* The process that runs cases: forked by the supervisor, told what to run, heard through a socket.
 * What it breaks is its own memory and its own device context; the parent books the damage. */
#ifndef FIB_CORE_WORKER_H
#define FIB_CORE_WORKER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/app.h"
#include "core/plan.h"

/* In memory shared with the parent, written by the worker: what it is doing right now. It outlives
 * the worker, so it tells whose fault an end was. A store costs next to nothing, and is made before
 * a window rather than in its timed part. A stray write may leave anything here. */
struct fib_mark {
    atomic_llong item; /* index of the item that was begun; -1: none */
    atomic_int arm;    /* place among the labels of the group; -1: no backend's code runs */
    atomic_int step;   /* enum fib_step */
};

struct fib_worker_spec {
    const struct fib_app *app;
    const struct fib_plan *plan;
    int argc;
    const char *const *argv; /* for the environment block */
    int socket;
    struct fib_mark *mark;
    pid_t parent;
};

/* To be called in the new process: serves the parent until the socket ends, then ends the process.
 */
_Noreturn void fib_worker_run(const struct fib_worker_spec *spec);

/* Opens the device that app->device_index names, here or in a worker. */
enum fib_status fib_worker_open_device(const struct fib_app *app, struct fib_pool *pool,
                                       struct fib_device **device, struct fib_error *err);

#endif
