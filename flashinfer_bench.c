/* fib-bench: builds the tables of all folders and hands the command line to core. */
#include <stdio.h>

#include "backends/backends.h"
#include "build_id.h"
#include "core/app.h"
#include "routines/routines.h"

static enum fib_status open_device(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err)
{
    (void)app;
    return fib_device_cpu_open(pool, device, err);
}

int main(int argc, char **argv)
{
    const struct fib_registry registry = {
        .families = fib_families,
        .family_count = fib_family_count,
        .backends = fib_backends,
        .backend_count = fib_backend_count,
        .labels = fib_labels,
        .label_count = fib_label_count,
        .models = fib_models,
        .model_count = fib_model_count,
        .program = "fib-bench",
        .version = FIB_VERSION,
        .build_id = FIB_BUILD_COMMIT,
    };
    const struct fib_app app = {
        .registry = &registry, .open_device = open_device, .out = stdout, .err = stderr};
    return fib_app_main(&app, argc, (const char *const *)argv);
}
