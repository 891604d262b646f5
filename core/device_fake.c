/* A device for tests: real host memory, a clock that follows a script, facts that never change. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device_host.h"
#include "core/memory.h"

static const double usual_mhz = 1000.0;

struct fake {
    struct fib_device base; /* first: the device handle points here */
    double *call_ms, *mhz;
    size_t call_count, next;
    size_t mhz_count, next_mhz;
    double drift_per_s, tick_ms;
    double window_mhz; /* of the window under way; 1000 outside */
    double now_ms;
    int64_t utc_s;
    uint64_t taken_bytes; /* of its memory */
    bool broken;          /* to be noticed by whoever waits next */
    bool stepped;      /* the call under way has moved the clock itself ... */
    double stepped_ms; /* ... by so much */
};

static void fake_close(struct fib_device *device)
{
    struct fake *fake = (struct fake *)device;
    free(fake->call_ms);
    free(fake->mhz);
    free(fake);
}

static uint64_t fake_free_bytes(struct fib_device *device)
{
    const uint64_t taken_bytes = ((const struct fake *)device)->taken_bytes;
    return device->facts.memory_bytes > taken_bytes ? device->facts.memory_bytes - taken_bytes : 0;
}

static enum fib_status fake_alloc(struct fib_device *device, size_t bytes, void **address,
                                  struct fib_error *err)
{
    *address = NULL;
    if (bytes > fake_free_bytes(device))
        return fib_fail(err, FIB_ERR_OOM, "no %zu bytes are left", bytes);
    const enum fib_status st = fib_host_alloc(device, bytes, address, err);
    if (st == FIB_OK)
        ((struct fake *)device)->taken_bytes += bytes;
    return st;
}

static void fake_release(struct fib_device *device, void *address, size_t bytes)
{
    if (address)
        ((struct fake *)device)->taken_bytes -= bytes;
    fib_host_release(device, address, bytes);
}

static enum fib_status fake_synchronize(struct fib_device *device, struct fib_stream *stream,
                                        struct fib_error *err)
{
    (void)stream;
    device->lost = device->lost || ((const struct fake *)device)->broken;
    return device->lost
               ? fib_fail(err, FIB_ERR_DEVICE, "an illegal memory access was encountered")
               : FIB_OK;
}

/* What drift and the window's clock make of a time at 1000 MHz. */
static double slowed_ms(const struct fake *fake, double time_ms)
{
    return time_ms * (1 + fake->drift_per_s * fake->now_ms / 1e3) * (usual_mhz / fake->window_mhz);
}

/* Time of the call that just ended: its own word, else the script's next entry. A script may hold
 * what a broken timer gives (0, negative, NaN): that shows in the window's time, but the clock
 * itself never runs backwards. */
static double call_time_ms(struct fake *fake)
{
    if (fake->stepped)
        return fake->stepped_ms;
    if (fake->call_count == 0)
        return slowed_ms(fake, 1e-3);
    const double call_ms = fake->call_ms[fake->next];
    fake->next = (fake->next + 1) % fake->call_count;
    return slowed_ms(fake, call_ms);
}

/* What stamps beside the window say about the clock; NAN when they say nothing. */
static double read_mhz(struct fake *fake)
{
    if (fake->mhz_count == 0)
        return usual_mhz;
    const double mhz = fake->mhz[fake->next_mhz];
    fake->next_mhz = (fake->next_mhz + 1) % fake->mhz_count;
    return mhz;
}

/* The window's time between two readings of a clock that moves in steps: where it starts within a
 * step decides on which side a time is rounded. What is no time has no step either. */
static double in_ticks(const struct fake *fake, double start_ms, double window_ms)
{
    const double tick_ms = fake->tick_ms;
    if (!(tick_ms > 0) || !isfinite(window_ms))
        return window_ms;
    return tick_ms * (floor((start_ms + window_ms) / tick_ms) - floor(start_ms / tick_ms));
}

static enum fib_status fake_window_run(struct fib_window *window, struct fib_window_sample *sample,
                                       struct fib_error *err)
{
    struct fake *fake = (struct fake *)window->device;
    const struct fib_window_spec *spec = &window->spec;
    enum fib_status st = FIB_OK;
    if (spec->reset)
        st = spec->reset(spec->reset_context, NULL, spec->slots, spec->call_count, err);
    const double mhz = read_mhz(fake), start_ms = fake->now_ms;
    double window_ms = 0;
    fake->window_mhz = isfinite(mhz) ? mhz : usual_mhz;
    for (uint32_t i = 0; i < spec->call_count && st == FIB_OK; i++) {
        fake->stepped = false;
        fake->stepped_ms = 0;
        st = spec->call(spec->call_context, NULL, spec->slots[i], err);
        const double call_ms = call_time_ms(fake);
        window_ms += call_ms;
        if (!fake->stepped && isfinite(call_ms) && call_ms > 0)
            fake->now_ms += call_ms;
    }
    fake->window_mhz = usual_mhz;
    *sample = (struct fib_window_sample){.window_ms = in_ticks(fake, start_ms, window_ms),
                                         .mhz = mhz,
                                         .overhead_ms = fake->base.facts.window_overhead_ms};
    return st;
}

static const char *fake_timer_refusal(const struct fib_device *device, enum fib_timer timer)
{
    (void)device;
    (void)timer;
    return NULL;
}

static double fake_now_ms(struct fib_device *device)
{
    return ((const struct fake *)device)->now_ms;
}

static int64_t fake_utc_s(struct fib_device *device)
{
    return ((const struct fake *)device)->utc_s;
}

static const struct fib_device_ops fake_ops = {
    .close = fake_close,
    .free_bytes = fake_free_bytes,
    .alloc = fake_alloc,
    .release = fake_release,
    .fill = fib_host_fill,
    .set_bytes = fib_host_set_bytes,
    .copy = fib_host_copy,
    .read = fib_host_read,
    .write = fib_host_write,
    .checksum = fib_host_checksum,
    .stream_create = fib_host_stream_create,
    .stream_destroy = fib_host_stream_destroy,
    .synchronize = fake_synchronize,
    .window_create = fib_host_window_create,
    .window_run = fake_window_run,
    .window_destroy = fib_host_window_destroy,
    .timer_refusal = fake_timer_refusal,
    .now_ms = fake_now_ms,
    .utc_s = fake_utc_s,
};

static const struct fib_device_facts fake_facts = {
    .kind = FIB_DEVICE_CPU,
    .name = "Fake device",
    .uuid = "fake-0",
    .unit_count = 1,
    .memory_bytes = UINT64_C(1) << 30,
    .cache_bytes = UINT64_C(1) << 20,
    .ring_bytes = UINT64_C(64) << 10,
    .ring_limit_bytes = UINT64_C(16) << 20,
    .default_timer = FIB_TIMER_WALL,
    .tick_ms = 1e-6,
    .window_overhead_ms = 0,
    .overhead_method = "none",
    .window_min_ms = 0.2,
    .warmup_min_ms = 10,
    .warmup_cap_ms = 60,
    .warmup_quick_ms = 5,
    .flops_per_s = 1e10,
    .bytes_per_s = 1e10,
    .default_backend = "cpu",
};

void fib_device_fake_advance(struct fib_device *device, double time_ms)
{
    struct fake *fake = (struct fake *)device;
    const double slow_ms = slowed_ms(fake, time_ms);
    fake->stepped = true;
    fake->stepped_ms += slow_ms;
    fake->now_ms += slow_ms;
}

void fib_device_fake_break(struct fib_device *device)
{
    ((struct fake *)device)->broken = true;
}

static double *copy_of(const double *values, size_t count)
{
    double *const copy = fib_zalloc_array(count, sizeof(*copy));
    if (count > 0)
        memcpy(copy, values, count * sizeof(*copy));
    return copy;
}

enum fib_status fib_device_fake_open(struct fib_pool *pool, const struct fib_fake_script *script,
                                     struct fib_device **device, struct fib_error *err)
{
    (void)err;
    struct fake *fake = fib_zalloc(sizeof(*fake));
    fake->base = (struct fib_device){
        .ops = &fake_ops, .facts = fake_facts, .host_memory = true, .pool = pool};
    fake->call_count = script->call_count;
    fake->call_ms = copy_of(script->call_ms, script->call_count);
    fake->mhz_count = script->mhz_count;
    fake->mhz = copy_of(script->mhz, script->mhz_count);
    fake->utc_s = script->utc_s;
    fake->drift_per_s = script->drift_per_s;
    fake->tick_ms = script->tick_ms;
    fake->window_mhz = usual_mhz;
    if (script->tick_ms > 0)
        fake->base.facts.tick_ms = script->tick_ms;
    *device = &fake->base;
    return FIB_OK;
}
