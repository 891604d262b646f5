/* The program with a scripted clock, fixed facts and test-only backends: what it prints is the same
 * on every machine. With FIB_REAL_CLOCK ("fault-bench") the host is measured instead. Only tests
 * build and run it. */
#include <stdio.h>
#include <string.h>

#include "backends/backends.h"
#include "core/app.h"
#include "core/memory.h"
#include "tests/fake_backends.h"
#include "tests/program.h"

static enum fib_status open_device(const struct fib_app *app, struct fib_pool *pool,
                                   struct fib_device **device, struct fib_error *err)
{
    (void)app;
#ifdef FIB_REAL_CLOCK
    return fib_device_cpu_open(pool, device, err);
#endif
    /* Of calls that do not advance the clock themselves. */
    static const double call_ms[] = {0.5};
    const struct fib_fake_script script = {
        .call_ms = call_ms, .call_count = 1, .utc_s = 1764590400};
    return fib_device_fake_open(pool, &script, device, err);
}

/* Our own backends of the host: what is printed must not depend on what the build has found. */
static size_t take_host_backends(const struct fib_backend **backends)
{
    size_t count = 0;
    for (size_t b = 0; b < fib_backend_count; b++)
        if (fib_backends[b]->impl_count > 0 && strcmp(fib_backends[b]->impls[0].label, "cpu") == 0)
            backends[count++] = fib_backends[b];
    return count;
}

int main(int argc, char **argv)
{
    struct fib_registry program = program_registry();
    struct fib_arena *arena = fib_arena_create();
    const struct fib_backend **const backends =
        fib_arena_array(arena, program.backend_count, sizeof(backends[0]));
    program.backend_count = take_host_backends(backends);
    program.backends = backends;
    struct fake_registry fakes;
    fake_registry_init(&fakes, &program);
    const struct fib_app app = {
        .registry = &fakes.registry, .open_device = open_device, .out = stdout, .err = stderr};
    const int status = fib_app_main(&app, argc, (const char *const *)argv);
    fib_arena_free(&arena);
    return status;
}
