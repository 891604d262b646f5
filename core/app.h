/* The program behind main: verbs, runs, exit status. */
#ifndef FIB_CORE_APP_H
#define FIB_CORE_APP_H

#include <stdint.h>
#include <stdio.h>

#include "core/device.h"
#include "core/registry.h"

/* What main hands over. */
struct fib_app {
    const struct fib_registry *registry;
    /* Opens the device of this process (real clock, or a test's fake). Called only when a case is
     * about to run, so that help and lists stay instant. */
    enum fib_status (*open_device)(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err);
    void *open_context;
    int64_t device_index; /* which device to open (--devices) */
    FILE *out, *err;   /* stdout, stderr */
};

/* Returns the exit status (enum fib_exit). */
int fib_app_main(const struct fib_app *app, int argc, const char *const *argv);

#endif
