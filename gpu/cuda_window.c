/* Timed windows on the GPU: a graph of calls between two event nodes, one call after a cache flush,
 * events around plain launches, and the host's clock. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/memory.h"
#include "gpu/cuda_inner.h"

struct fib_window {
    struct cuda_device *device;
    struct fib_window_spec spec; /* slots belongs to the window */
    cudaGraphExec_t exec;        /* of the graph timer */
    uint32_t slots[];
};

/* A hold that nobody releases ends by itself: a call that waits for the stream costs a wrong
 * sample, not a deadlock. */
static const uint64_t hold_limit_ns = UINT64_C(2000000000);

double fib_cuda_host_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* ---- clock stamps ---- */

/* Mean clock over the stamps that met on the same SM; NaN when none did. */
static double clock_mhz(const struct cuda_page *page)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < FIB_GPU_STAMPS; i++) {
        for (int k = 0; k < FIB_GPU_STAMPS; k++) {
            const struct fib_gpu_stamp *const a = &page->before[i], *const b = &page->after[k];
            if (a->sm != b->sm || b->time_ns <= a->time_ns || b->cycles <= a->cycles)
                continue;
            sum += (double)(b->cycles - a->cycles) * 1e3 / (double)(b->time_ns - a->time_ns);
            count++;
            break;
        }
    }
    return count > 0 ? sum / count : NAN;
}

static enum fib_status stamp(struct cuda_device *device, bool after, struct fib_error *err)
{
    struct cuda_page *const page = device->page_on_device;
    return CUDA_TRY(device,
                    fib_gpu_stamp(device->stream.handle, after ? page->after : page->before), err);
}

/* ---- capture ---- */

static enum fib_status call_all(const struct fib_window *window, struct fib_stream *stream,
                                struct fib_error *err)
{
    const struct fib_window_spec *const spec = &window->spec;
    enum fib_status st = FIB_OK;
    for (uint32_t i = 0; i < spec->call_count && st == FIB_OK; i++)
        st = spec->call(spec->call_context, stream, spec->slots[i], err);
    return st;
}

/* What lies between BeginCapture and EndCapture. The stamps are outside the timed interval. */
static enum fib_status record(const struct fib_window *window, struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    const cudaStream_t stream = device->stream.handle;
    enum fib_status st = stamp(device, false, err);
    if (st == FIB_OK)
        st = CUDA_TRY(
            device, cudaEventRecordWithFlags(device->begin, stream, cudaEventRecordExternal), err);
    if (st == FIB_OK)
        st = call_all(window, &device->stream, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device,
                      cudaEventRecordWithFlags(device->end, stream, cudaEventRecordExternal), err);
    return st == FIB_OK ? stamp(device, true, err) : st;
}

/* A call that fails while it is captured may work outside: the reason is passed on. */
static enum fib_status refuse_capture(const struct cuda_device *device,
                                      const struct fib_error *inner, struct fib_error *err)
{
    if (device->base.lost)
        return fib_fail(err, FIB_ERR_DEVICE, "%s", inner->text);
    return fib_fail(err, FIB_ERR_UNSUPPORTED, "the call cannot be captured into a CUDA graph: %s",
                    inner->text);
}

static enum fib_status capture(struct fib_window *window, struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    struct fib_error inner = {0};
    cudaGraph_t graph = NULL;
    enum fib_status st = CUDA_TRY(
        device, cudaStreamBeginCapture(device->stream.handle, cudaStreamCaptureModeThreadLocal),
        err);
    if (st != FIB_OK)
        return st;
    st = record(window, &inner);
    const cudaError_t end = cudaStreamEndCapture(device->stream.handle, &graph);
    if (st == FIB_OK)
        st = CUDA_TRY(device, end, &inner);
    (void)cudaGetLastError(); /* of a capture that was given up */
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaGraphInstantiate(&window->exec, graph, 0), &inner);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaGraphUpload(window->exec, device->stream.handle), &inner);
    if (graph)
        (void)CUDA_TRY(device, cudaGraphDestroy(graph), NULL);
    if (st == FIB_OK)
        return FIB_OK;
    /* A graph too big for the memory that is left is no matter of capturing. */
    return st == FIB_ERR_OOM ? fib_fail(err, st, "%s", inner.text)
                             : refuse_capture(device, &inner, err);
}

/* ---- running ---- */

static enum fib_status elapsed(struct cuda_device *device, double *time_ms, struct fib_error *err)
{
    float found_ms = 0;
    const enum fib_status st =
        CUDA_TRY(device, cudaEventElapsedTime(&found_ms, device->begin, device->end), err);
    *time_ms = (double)found_ms;
    return st;
}

static enum fib_status restore(const struct fib_window *window, const uint32_t *slots,
                               uint32_t count, struct fib_error *err)
{
    const struct fib_window_spec *const spec = &window->spec;
    return spec->reset
               ? spec->reset(spec->reset_context, &window->device->stream, slots, count, err)
               : FIB_OK;
}

static enum fib_status run_graph(const struct fib_window *window, struct fib_window_sample *sample,
                                 struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    enum fib_status st = restore(window, window->slots, window->spec.call_count, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaGraphLaunch(window->exec, device->stream.handle), err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaStreamSynchronize(device->stream.handle), err);
    if (st == FIB_OK)
        st = elapsed(device, &sample->window_ms, err);
    sample->mhz = clock_mhz(device->page);
    return st;
}

static enum fib_status run_events(const struct fib_window *window, struct fib_window_sample *sample,
                                  struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    const cudaStream_t stream = device->stream.handle;
    enum fib_status st = restore(window, window->slots, window->spec.call_count, err);
    if (st == FIB_OK)
        st = stamp(device, false, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaEventRecord(device->begin, stream), err);
    if (st == FIB_OK)
        st = call_all(window, &device->stream, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaEventRecord(device->end, stream), err);
    if (st == FIB_OK)
        st = stamp(device, true, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaStreamSynchronize(stream), err);
    if (st == FIB_OK)
        st = elapsed(device, &sample->window_ms, err);
    sample->mhz = clock_mhz(device->page);
    return st;
}

static enum fib_status run_wall(const struct fib_window *window, struct fib_window_sample *sample,
                                struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    const cudaStream_t stream = device->stream.handle;
    enum fib_status st = restore(window, window->slots, window->spec.call_count, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaStreamSynchronize(stream), err);
    const double start_ms = fib_cuda_host_ms();
    if (st == FIB_OK)
        st = call_all(window, &device->stream, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaStreamSynchronize(stream), err);
    sample->window_ms = fib_cuda_host_ms() - start_ms;
    return st;
}

/* ---- isolated calls ---- */

/* Empties the cache: lines that a kernel made persistent become normal, then twice the cache is
 * written and as much as the cache holds is read, so that no written line waits to be evicted while
 * a call is timed. */
static enum fib_status flush(struct cuda_device *device, struct fib_error *err)
{
    const uint64_t l2_bytes = device->base.facts.cache_bytes / 16 * 16;
    enum fib_status st = FIB_OK;
    if (!device->flush)
        st = CUDA_TRY(device, cudaMalloc(&device->flush, 3 * l2_bytes), err);
    if (st == FIB_OK) {
        /* Part of a shared GPU has no persistent lines to reset. */
        const cudaError_t code = cudaCtxResetPersistingL2Cache();
        if (code != cudaErrorNotSupported)
            st = CUDA_TRY(device, code, err);
    }
    if (st == FIB_OK)
        st = CUDA_TRY(device,
                      fib_gpu_flush(device->stream.handle, device->flush, 2 * l2_bytes, l2_bytes,
                                    &device->scratch->sink),
                      err);
    return st;
}

/* Opens the gate for the hold kernel of this ticket. */
static void release_hold(struct cuda_device *device)
{
    __atomic_store_n(&device->page->released, device->ticket, __ATOMIC_SEQ_CST);
}

/* One call (or none, window NULL) between two events, behind a hold: all is enqueued before the GPU
 * starts, so that no launch of the host falls between the events. The hold is released whatever
 * happens. */
static enum fib_status run_held(struct cuda_device *device, const struct fib_window *window,
                                uint32_t slot, double *time_ms, struct fib_error *err)
{
    const cudaStream_t stream = device->stream.handle;
    device->ticket++;
    enum fib_status st = stamp(device, false, err);
    if (st == FIB_OK)
        st = CUDA_TRY(
            device,
            fib_gpu_hold(stream, &device->page_on_device->released, device->ticket, hold_limit_ns),
            err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaEventRecord(device->begin, stream), err);
    if (st == FIB_OK && window)
        st = window->spec.call(window->spec.call_context, &device->stream, slot, err);
    if (st == FIB_OK)
        st = CUDA_TRY(device, cudaEventRecord(device->end, stream), err);
    if (st == FIB_OK)
        st = stamp(device, true, err);
    release_hold(device);
    const enum fib_status done = CUDA_TRY(device, cudaStreamSynchronize(stream), err);
    if (st == FIB_OK)
        st = done;
    return st == FIB_OK ? elapsed(device, time_ms, err) : st;
}

static enum fib_status run_isolated(const struct fib_window *window,
                                    struct fib_window_sample *sample, struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    enum fib_status st = FIB_OK;
    sample->window_ms = 0;
    for (uint32_t i = 0; i < window->spec.call_count && st == FIB_OK; i++) {
        double call_ms = 0;
        st = restore(window, &window->slots[i], 1, err);
        if (st == FIB_OK)
            st = flush(device, err);
        if (st == FIB_OK)
            st = run_held(device, window, window->slots[i], &call_ms, err);
        sample->window_ms += call_ms;
    }
    sample->overhead_ms *= window->spec.call_count;
    sample->mhz = clock_mhz(device->page);
    return st;
}

enum fib_status fib_cuda_empty_window(struct cuda_device *device, enum fib_timer timer,
                                      double *window_ms, struct fib_error *err)
{
    const struct fib_window empty = {.device = device};
    struct fib_window_sample sample = {0};
    enum fib_status st = FIB_OK;
    if (timer == FIB_TIMER_ISOLATED) {
        st = flush(device, err);
        return st == FIB_OK ? run_held(device, NULL, 0, window_ms, err) : st;
    }
    st = timer == FIB_TIMER_EVENTS ? run_events(&empty, &sample, err)
                                   : run_wall(&empty, &sample, err);
    *window_ms = sample.window_ms;
    return st;
}

/* ---- the device's operations ---- */

enum fib_status fib_cuda_window_create(struct fib_device *device,
                                       const struct fib_window_spec *spec,
                                       struct fib_window **window, struct fib_error *err)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    *window = NULL;
    const char *const refusal = fib_device_timer_refusal(device, spec->timer);
    if (refusal)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "--timer %s: %s", fib_timer_name(spec->timer),
                        refusal);
    enum fib_status st = fib_cuda_alive(cuda, err);
    if (st == FIB_OK && spec->timer != FIB_TIMER_GRAPH)
        st = fib_cuda_need_overhead(cuda, spec->timer, err);
    if (st != FIB_OK)
        return st;
    const size_t slot_bytes = spec->call_count * sizeof(*spec->slots);
    struct fib_window *made = fib_zalloc(sizeof(*made) + slot_bytes);
    made->device = cuda;
    made->spec = *spec;
    memcpy(made->slots, spec->slots, slot_bytes);
    made->spec.slots = made->slots;
    if (spec->timer == FIB_TIMER_GRAPH)
        st = capture(made, err);
    if (st != FIB_OK)
        fib_cuda_window_destroy(&made);
    *window = made;
    return st;
}

enum fib_status fib_cuda_window_run(struct fib_window *window, struct fib_window_sample *sample,
                                    struct fib_error *err)
{
    struct cuda_device *const device = window->device;
    const struct cuda_overhead *const overhead = &device->overhead[window->spec.timer];
    *sample = (struct fib_window_sample){.window_ms = NAN,
                                         .mhz = NAN,
                                         .overhead_ms = overhead->window_ms,
                                         .overhead_method = overhead->method};
    const enum fib_status st = fib_cuda_alive(device, err);
    if (st != FIB_OK)
        return st;
    switch (window->spec.timer) {
    case FIB_TIMER_GRAPH:
        return run_graph(window, sample, err);
    case FIB_TIMER_ISOLATED:
        return run_isolated(window, sample, err);
    case FIB_TIMER_EVENTS:
        return run_events(window, sample, err);
    default:
        return run_wall(window, sample, err);
    }
}

void fib_cuda_window_destroy(struct fib_window **window)
{
    struct fib_window *const old = *window;
    *window = NULL;
    if (!old)
        return;
    if (old->exec && !old->device->base.lost)
        (void)CUDA_TRY(old->device, cudaGraphExecDestroy(old->exec), NULL);
    free(old);
}
