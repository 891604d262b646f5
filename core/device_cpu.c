/* The host as a device: its memory, its threads, its monotonic clock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/device_host.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/stats.h"

enum { CLOCK_READS = 1001 };

static const uint64_t ring_cap_bytes = UINT64_C(64) << 20;
static const uint64_t limit_cap_bytes = UINT64_C(8) << 30;

/* What plain, vectorised code reaches on an old server processor. */
static const double thread_flops_per_s = 4e9;
static const double host_bytes_per_s = 4e9;

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void cpu_close(struct fib_device *device)
{
    free(device);
}

static uint64_t cpu_free_bytes(struct fib_device *device)
{
    (void)device;
    return fib_host_free_bytes();
}

static enum fib_status cpu_window_run(struct fib_window *window, struct fib_window_sample *sample,
                                      struct fib_error *err)
{
    const struct fib_window_spec *spec = &window->spec;
    enum fib_status st = FIB_OK;
    if (spec->reset)
        st = spec->reset(spec->reset_context, NULL, spec->slots, spec->call_count, err);
    const uint64_t start_ns = fib_host_now_ns();
    for (uint32_t i = 0; i < spec->call_count && st == FIB_OK; i++)
        st = spec->call(spec->call_context, NULL, spec->slots[i], err);
    const uint64_t end_ns = fib_host_now_ns();
    *sample = (struct fib_window_sample){.window_ms = (double)(end_ns - start_ns) * 1e-6,
                                         .mhz = __builtin_nan(""),
                                         .overhead_ms = window->device->facts.window_overhead_ms};
    return st;
}

static const char *cpu_timer_refusal(const struct fib_device *device, enum fib_timer timer)
{
    (void)device;
    return timer == FIB_TIMER_WALL ? NULL : "needs a CUDA device";
}

static double cpu_now_ms(struct fib_device *device)
{
    (void)device;
    return (double)fib_host_now_ns() * 1e-6;
}

static int64_t cpu_utc_s(struct fib_device *device)
{
    (void)device;
    return (int64_t)time(NULL);
}

static const struct fib_device_ops cpu_ops = {
    .close = cpu_close,
    .free_bytes = cpu_free_bytes,
    .alloc = fib_host_alloc,
    .release = fib_host_release,
    .fill = fib_host_fill,
    .set_bytes = fib_host_set_bytes,
    .copy = fib_host_copy,
    .read = fib_host_read,
    .write = fib_host_write,
    .checksum = fib_host_checksum,
    .stream_create = fib_host_stream_create,
    .stream_destroy = fib_host_stream_destroy,
    .synchronize = fib_host_synchronize,
    .window_create = fib_host_window_create,
    .window_run = cpu_window_run,
    .window_destroy = fib_host_window_destroy,
    .timer_refusal = cpu_timer_refusal,
    .now_ms = cpu_now_ms,
    .utc_s = cpu_utc_s,
};

static void name_cpu(struct fib_device_facts *facts)
{
    static const char *const keys[] = {"model name", "Model", "cpu model", "cpu", "uarch"};
    char name[sizeof(facts->name)] = "unknown CPU";
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (fib_host_proc_value("/proc/cpuinfo", keys[i], name, sizeof(name)))
            break;
    snprintf(facts->name, sizeof(facts->name), "%s", name);
}

/* Identity that survives a reboot and does not depend on how many processors this process got. */
static void identify_cpu(struct fib_device_facts *facts)
{
    char text[256];
    snprintf(text, sizeof(text), "%s|%u|%ld", facts->name,
             fib_host_proc_distinct("/proc/cpuinfo", "physical id"), sysconf(_SC_NPROCESSORS_CONF));
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    snprintf(facts->uuid, sizeof(facts->uuid), "cpu-%016" PRIx64, hash);
}

static void size_memory(struct fib_device_facts *facts)
{
    struct fib_host_memory memory;
    fib_host_memory(&memory);
    const uint64_t free_bytes = min_u64(memory.available_bytes, memory.cgroup_free_bytes);
    facts->memory_bytes = min_u64(memory.installed_bytes, memory.cgroup_limit_bytes);
    facts->cache_bytes = fib_host_cache_bytes();
    facts->ring_bytes = min_u64(3 * facts->cache_bytes, ring_cap_bytes);
    facts->ring_limit_bytes = max_u64(facts->ring_bytes, min_u64(free_bytes / 4, limit_cap_bytes));
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* An empty window is two readings of the clock: their difference is the window's own time, and all
 * differences are multiples of the clock's step. Takes about 0.1 ms. */
static void measure_clock(struct fib_device_facts *facts)
{
    enum { MIDDLE = CLOCK_READS / 2 };
    uint64_t step_ns[CLOCK_READS], tick_ns = 0;
    for (int i = 0; i < CLOCK_READS; i++) {
        const uint64_t start_ns = fib_host_now_ns();
        step_ns[i] = fib_host_now_ns() - start_ns;
        tick_ns = fib_stats_gcd(step_ns[i], tick_ns);
    }
    qsort(step_ns, CLOCK_READS, sizeof(step_ns[0]), by_value);
    facts->tick_ms = (double)(tick_ns > 0 ? tick_ns : 1) * 1e-6;
    facts->window_overhead_ms = (double)step_ns[MIDDLE] * 1e-6;
    facts->overhead_method = "empty window";
    facts->window_min_ms = 300 * facts->tick_ms > 0.2 ? 300 * facts->tick_ms : 0.2;
}

enum fib_status fib_device_cpu_open(struct fib_pool *pool, struct fib_device **device,
                                    struct fib_error *err)
{
    (void)err;
    struct fib_device *made = fib_zalloc(sizeof(*made));
    made->ops = &cpu_ops;
    made->host_memory = true;
    made->pool = pool;
    made->facts = (struct fib_device_facts){
        .kind = FIB_DEVICE_CPU,
        .unit_count = (int)fib_pool_thread_count(pool),
        .default_timer = FIB_TIMER_WALL,
        .warmup_min_ms = 10,
        .warmup_cap_ms = 36,
        .warmup_quick_ms = 5,
        .flops_per_s = thread_flops_per_s * fib_pool_thread_count(pool),
        .bytes_per_s = host_bytes_per_s,
        .default_backend = "cpu",
    };
    name_cpu(&made->facts);
    identify_cpu(&made->facts);
    size_memory(&made->facts);
    measure_clock(&made->facts);
    *device = made;
    return FIB_OK;
}
