/* fib-bench: builds the tables of all folders and hands the command line to core. */
#include <stdio.h>

#include "backends/backends.h"
#include "build_id.h"
#include "core/app.h"
#include "core/memory.h"
#include "gpu/device_cuda.h"
#include "routines/routines.h"

#if FIB_HAVE_CUDA
static enum fib_status open_gpu(const struct fib_app *app, struct fib_pool *pool,
                                struct fib_device **device, struct fib_error *err)
{
    return fib_device_cuda_open(pool, (int)app->device_index, device, err);
}
#else
static enum fib_status open_gpu(const struct fib_app *app, struct fib_pool *pool,
                                struct fib_device **device, struct fib_error *err)
{
    (void)app, (void)pool, (void)device;
    return fib_fail(err, FIB_ERR_UNSUPPORTED, "built without CUDA");
}
#endif

/* A GPU where there is one and its driver works, else the CPU. A GPU that was asked for by number
 * and is not there, or a driver that fails, is an error: measuring something else would mislead. */
static enum fib_status open_device(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err)
{
    struct fib_error why = {0};
    enum fib_status st = open_gpu(app, pool, device, &why);
    if (st == FIB_OK)
        return st;
    if (st != FIB_ERR_UNSUPPORTED || app->device_index > 0)
        return fib_fail(err, FIB_ERR_DEVICE, "%s", why.text);
    st = fib_device_cpu_open(pool, device, err);
    if (st == FIB_OK)
        snprintf((*device)->facts.note, sizeof((*device)->facts.note), "%.159s", why.text);
    return st;
}

int main(int argc, char **argv)
{
    struct fib_registry registry = {
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
    struct fib_arena *arena = fib_arena_create();
    fib_registry_add_labels(&registry, arena);
    const int exit_status = fib_app_main(&app, argc, (const char *const *)argv);
    fib_arena_free(&arena);
    return exit_status;
}
