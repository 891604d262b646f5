/* The program with a scripted clock, fixed facts and test-only backends: what it prints is the same
 * on every machine. With FIB_REAL_DEVICE ("fault-bench") a GPU is measured, or without one the
 * host. Only tests build and run it. */
#include <stdio.h>
#include <string.h>

#include "backends/backends.h"
#include "core/app.h"
#include "core/memory.h"
#include "gpu/device_cuda.h"
#include "tests/fake_backends.h"
#include "tests/program.h"

#if FIB_REAL_DEVICE && FIB_HAVE_CUDA
static enum fib_status open_device(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err)
{
    struct fib_error why = {0};
    enum fib_status st = fib_device_cuda_open(pool, (int)app->device_index, device, &why);
    if (st == FIB_OK)
        return st;
    if (st != FIB_ERR_UNSUPPORTED)
        return fib_fail(err, FIB_ERR_DEVICE, "%s", why.text);
    st = fib_device_cpu_open(pool, device, err);
    if (st == FIB_OK)
        snprintf((*device)->facts.note, sizeof((*device)->facts.note), "%.159s", why.text);
    return st;
}
#elif FIB_REAL_DEVICE
static enum fib_status open_device(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err)
{
    (void)app;
    return fib_device_cpu_open(pool, device, err);
}
#else
static enum fib_status open_device(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err)
{
    (void)app;
    /* Of calls that do not advance the clock themselves. */
    static const double call_ms[] = {0.5};
    const struct fib_fake_script script = {
        .call_ms = call_ms, .call_count = 1, .utc_s = 1764590400};
    return fib_device_fake_open(pool, &script, device, err);
}
#endif

/* Our own backends of the host: what is printed must not depend on what the build has found. For a
 * GPU its own too. */
static size_t take_own_backends(const struct fib_backend **backends)
{
    const bool gpu = FIB_REAL_DEVICE && FIB_HAVE_CUDA;
    size_t count = 0;
    for (size_t b = 0; b < fib_backend_count; b++) {
        const char *const label =
            fib_backends[b]->impl_count > 0 ? fib_backends[b]->impls[0].label : "";
        if (strcmp(label, "cpu") == 0 || (gpu && strcmp(label, "cuda") == 0))
            backends[count++] = fib_backends[b];
    }
    return count;
}

int main(int argc, char **argv)
{
    struct fib_registry program = program_registry();
    struct fib_arena *arena = fib_arena_create();
    const struct fib_backend **const backends =
        fib_arena_array(arena, program.backend_count, sizeof(backends[0]));
    program.backend_count = take_own_backends(backends);
    program.backends = backends;
    struct fake_registry fakes;
    fake_registry_init(&fakes, &program);
#if FIB_REAL_DEVICE && FIB_HAVE_CUDA
    fake_registry_add(&fakes, &fib_backend_fake_cuda);
#endif
    const struct fib_app app = {
        .registry = &fakes.registry, .open_device = open_device, .out = stdout, .err = stderr};
    const int status = fib_app_main(&app, argc, (const char *const *)argv);
    fib_arena_free(&arena);
    return status;
}
