/* What this process must know about its timers: the step of the event clock, and how much of a
 * window is the window's own. Measured anew in each process, because clocks, drivers and virtual
 * machines differ. */
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/stats.h"
#include "gpu/cuda_inner.h"

enum {
    TICK_PAIRS = 64,
    NULL_CALLS = 256,  /* and twice as many */
    NULL_WINDOWS = 21, /* of each kind, after the clock has settled */
    EMPTY_WINDOWS = 33,
    WARM_WINDOWS = 4
};
/* For the clock to come up from idle. */
static const double warm_limit_ms = 15;

static enum fib_status call_null(void *context, struct fib_stream *stream, uint32_t slot,
                                 struct fib_error *err)
{
    struct cuda_device *const device = context;
    (void)slot;
    return CUDA_TRY(device, fib_gpu_null(stream->handle, 1, 32), err);
}

static enum fib_status null_window(struct cuda_device *device, uint32_t calls,
                                   struct fib_window **window, struct fib_error *err)
{
    uint32_t *slots = fib_zalloc_array(calls, sizeof(*slots));
    const struct fib_window_spec spec = {.timer = FIB_TIMER_GRAPH,
                                         .call_count = calls,
                                         .slots = slots,
                                         .call = call_null,
                                         .call_context = device};
    const enum fib_status st = fib_cuda_window_create(&device->base, &spec, window, err);
    free(slots);
    return st;
}

/* ---- tick ---- */

/* Distances between events are multiples of the clock's step. Spins of different length between
 * them make the distances different. */
static enum fib_status spin_between(struct cuda_device *device, cudaEvent_t *events,
                                    struct fib_error *err)
{
    const cudaStream_t stream = device->stream.handle;
    enum fib_status st = CUDA_TRY(device, cudaEventRecord(events[0], stream), err);
    for (int i = 1; i <= TICK_PAIRS && st == FIB_OK; i++) {
        st = CUDA_TRY(device, fib_gpu_spin(stream, 500 + 37 * (uint64_t)i), err);
        if (st == FIB_OK)
            st = CUDA_TRY(device, cudaEventRecord(events[i], stream), err);
    }
    return st == FIB_OK ? CUDA_TRY(device, cudaStreamSynchronize(stream), err) : st;
}

static enum fib_status measure_tick(struct cuda_device *device, struct fib_error *err)
{
    cudaEvent_t events[TICK_PAIRS + 1] = {0};
    uint64_t tick_ns = 0;
    enum fib_status st = FIB_OK;
    for (int i = 0; i <= TICK_PAIRS && st == FIB_OK; i++)
        st = CUDA_TRY(device, cudaEventCreate(&events[i]), err);
    if (st == FIB_OK)
        st = spin_between(device, events, err);
    for (int i = 1; i <= TICK_PAIRS && st == FIB_OK; i++) {
        float step_ms = 0;
        st = CUDA_TRY(device, cudaEventElapsedTime(&step_ms, events[i - 1], events[i]), err);
        tick_ns = fib_stats_gcd((uint64_t)llround((double)step_ms * 1e6), tick_ns);
    }
    for (int i = 0; i <= TICK_PAIRS; i++)
        if (events[i])
            (void)CUDA_TRY(device, cudaEventDestroy(events[i]), NULL);
    device->base.facts.tick_ms = (double)(tick_ns > 0 ? tick_ns : 1) * 1e-6;
    return st;
}

/* ---- graph windows ---- */

static enum fib_status run_ms(struct fib_window *window, double *time_ms, struct fib_error *err)
{
    struct fib_window_sample sample;
    const enum fib_status st = fib_cuda_window_run(window, &sample, err);
    *time_ms = sample.window_ms;
    return st;
}

/* Until the same window takes the same time, or time is up. */
static enum fib_status warm(struct fib_window *window, struct fib_error *err)
{
    const double start_ms = fib_cuda_host_ms();
    double last_ms = 0;
    int steady = 0;
    while (steady < WARM_WINDOWS && fib_cuda_host_ms() - start_ms < warm_limit_ms) {
        double time_ms;
        const enum fib_status st = run_ms(window, &time_ms, err);
        if (st != FIB_OK)
            return st;
        steady = fabs(time_ms - last_ms) <= 0.005 * time_ms ? steady + 1 : 0;
        last_ms = time_ms;
    }
    return FIB_OK;
}

/* Median times of the two windows, taken in turn, so that drift meets both alike. */
static enum fib_status time_pair(struct fib_window *const windows[2], double median_ms[2],
                                 struct fib_error *err)
{
    double time_ms[2][NULL_WINDOWS];
    enum fib_status st = FIB_OK;
    for (int i = 0; i < NULL_WINDOWS && st == FIB_OK; i++)
        for (int k = 0; k < 2 && st == FIB_OK; k++)
            st = run_ms(windows[k], &time_ms[k][i], err);
    for (int k = 0; k < 2 && st == FIB_OK; k++)
        median_ms[k] = fib_stats_percentile(time_ms[k], NULL_WINDOWS, 0.5);
    return st;
}

static enum fib_status measure_graph(struct cuda_device *device, struct fib_error *err)
{
    struct fib_window *windows[2] = {0};
    double median_ms[2] = {0};
    enum fib_status st = null_window(device, NULL_CALLS, &windows[0], err);
    if (st == FIB_OK)
        st = null_window(device, 2 * NULL_CALLS, &windows[1], err);
    if (st == FIB_OK)
        st = warm(windows[1], err);
    if (st == FIB_OK)
        st = time_pair(windows, median_ms, err);
    for (int k = 0; k < 2; k++)
        fib_cuda_window_destroy(&windows[k]);
    if (st != FIB_OK)
        return st;
    const double overhead_ms = 2 * median_ms[0] - median_ms[1];
    device->base.facts.call_gap_ms = (median_ms[1] - median_ms[0]) / NULL_CALLS;
    device->overhead[FIB_TIMER_GRAPH] =
        (struct cuda_overhead){.known = true,
                               .window_ms = overhead_ms > 0 ? overhead_ms : 0,
                               .method = "null-kernel intercept"};
    return FIB_OK;
}

enum fib_status fib_cuda_calibrate(struct cuda_device *device, struct fib_error *err)
{
    struct fib_device_facts *const facts = &device->base.facts;
    enum fib_status st = measure_tick(device, err);
    if (st == FIB_OK)
        st = measure_graph(device, err);
    if (st != FIB_OK)
        return st;
    facts->window_overhead_ms = device->overhead[FIB_TIMER_GRAPH].window_ms;
    facts->overhead_method = device->overhead[FIB_TIMER_GRAPH].method;
    facts->window_min_ms = fmax(0.2, 300 * facts->tick_ms);
    return FIB_OK;
}

enum fib_status fib_cuda_need_overhead(struct cuda_device *device, enum fib_timer timer,
                                       struct fib_error *err)
{
    struct cuda_overhead *const overhead = &device->overhead[timer];
    double time_ms[EMPTY_WINDOWS];
    if (overhead->known)
        return FIB_OK;
    for (int i = 0; i < EMPTY_WINDOWS; i++) {
        const enum fib_status st = fib_cuda_empty_window(device, timer, &time_ms[i], err);
        if (st != FIB_OK)
            return st;
    }
    *overhead = (struct cuda_overhead){
        .known = true,
        .window_ms = fib_stats_percentile(time_ms, EMPTY_WINDOWS, 0.5),
        .method = timer == FIB_TIMER_WALL ? "empty window" : "empty event pair"};
    return FIB_OK;
}
