/* Windows against known truths: nothing, known cycles, known bytes. */
#include "gpu_tests.h"

#include "core/option.h"
#include "core/sample.h"
#include "core/stats.h"
#include "gpu/device_kernels.h"
#include "gpu/stream.h"

enum { MAX_CALLS = 4096 };

/* What a test's call does. */
struct work {
    struct fib_device *device;
    uint64_t spin_cycles;     /* > 0: spin */
    unsigned blocks, threads; /* > 0: a null kernel of this shape */
    unsigned char *src, *dst; /* copy of slot i at i * stride */
    size_t bytes, stride;
    bool synchronizes; /* cannot be captured */
};

static enum fib_status call_work(void *context, struct fib_stream *stream, uint32_t slot,
                                 struct fib_error *err)
{
    const struct work *const work = context;
    struct CUstream_st *const cuda = fib_cuda_stream(stream);
    enum fib_status st = FIB_OK;
    if (work->synchronizes)
        st = work->device->ops->synchronize(work->device, stream, err);
    if (st == FIB_OK && work->spin_cycles > 0)
        st = fib_cuda_launched(fib_gpu_spin(cuda, work->spin_cycles), "spin", err);
    if (st == FIB_OK && work->blocks > 0)
        st = fib_cuda_launched(fib_gpu_null(cuda, work->blocks, work->threads), "null", err);
    if (st == FIB_OK && work->bytes > 0)
        st = work->device->ops->copy(work->device, stream, work->dst + slot * work->stride,
                                     work->src + slot * work->stride, work->bytes, err);
    return st;
}

struct timed {
    double net_ms, raw_ms, mhz; /* medians; net and raw per call */
    int mhz_count;              /* windows whose clock is known */
};

/* Median of `windows` windows of `calls` calls that walk over `ring` slots. */
static enum fib_status time_calls(const struct work *work, enum fib_timer timer, uint32_t calls,
                                  uint32_t ring, int windows, struct timed *timed,
                                  struct fib_error *err)
{
    struct fib_device *const device = work->device;
    static uint32_t slots[MAX_CALLS];
    double net[256], raw[256], mhz[256];
    struct fib_window *window = NULL;
    *timed = (struct timed){.mhz = NAN};
    for (uint32_t i = 0; i < calls; i++)
        slots[i] = i % ring;
    const struct fib_window_spec spec = {.timer = timer,
                                         .call_count = calls,
                                         .slots = slots,
                                         .call = call_work,
                                         .call_context = (void *)(uintptr_t)work};
    enum fib_status st = device->ops->window_create(device, &spec, &window, err);
    for (int i = -3; i < windows && st == FIB_OK; i++) {
        struct fib_window_sample sample;
        st = device->ops->window_run(window, &sample, err);
        if (i < 0)
            continue;
        raw[i] = sample.window_ms / calls;
        net[i] = (sample.window_ms - sample.overhead_ms) / calls;
        if (isfinite(sample.mhz))
            mhz[timed->mhz_count++] = sample.mhz;
    }
    if (window)
        device->ops->window_destroy(&window);
    if (st != FIB_OK)
        return st;
    timed->net_ms = fib_stats_percentile(net, (size_t)windows, 0.5);
    timed->raw_ms = fib_stats_percentile(raw, (size_t)windows, 0.5);
    if (timed->mhz_count > 0)
        timed->mhz = fib_stats_percentile(mhz, (size_t)timed->mhz_count, 0.5);
    return FIB_OK;
}

/* Brings the clock up and keeps it there for what follows. */
static void heat(struct gpu_test *t)
{
    struct fib_error err = {0};
    struct timed timed;
    const struct work work = {.device = t->device, .spin_cycles = 1000000};
    GPU_OK(t, time_calls(&work, FIB_TIMER_GRAPH, 10, 1, 10, &timed, &err), &err);
}

static void test_facts(struct gpu_test *t)
{
    const struct fib_device_facts *const facts = &t->device->facts;
    const double tick_ns = facts->tick_ms * 1e6, overhead_us = facts->window_overhead_ms * 1e3,
                 gap_us = facts->call_gap_ms * 1e3;
    gpu_test_note(t,
                  "tick %.0f ns, window overhead %.3f us, gap %.3f us, %d SMs, L2 %.0f MB, uuid %s",
                  tick_ns, overhead_us, gap_us, facts->unit_count, (double)facts->cache_bytes / 1e6,
                  facts->uuid);
    GPU_CHECK(t, tick_ns >= 1 && tick_ns <= 2048, "tick %g ns", tick_ns);
    GPU_CHECK(t, overhead_us >= 0.2 && overhead_us <= 20, "window overhead %g us", overhead_us);
    GPU_CHECK(t, gap_us >= 0.1 && gap_us <= 5, "gap %g us", gap_us);
    GPU_CHECK(t, strncmp(facts->uuid, "GPU-", 4) == 0 && strlen(facts->uuid) == 40, "uuid '%s'",
              facts->uuid);
    GPU_CHECK(t, facts->ring_bytes == 3 * facts->cache_bytes, "ring bytes");
    GPU_CHECK(t, facts->ring_limit_bytes > 0 && facts->ring_limit_bytes <= UINT64_C(8) << 30,
              "ring limit %llu", (unsigned long long)facts->ring_limit_bytes);
    GPU_CHECK(t, facts->compute_capability >= 75, "compute capability %d",
              facts->compute_capability);
}

/* With the overhead taken off, the time of a call does not depend on how many share a window. */
static void test_null_calls(struct gpu_test *t)
{
    static const uint32_t counts[] = {50, 100, 200, 400, 1600};
    struct fib_error err = {0};
    const struct work work = {.device = t->device, .blocks = 1, .threads = 32};
    const double gap_us = t->device->facts.call_gap_ms * 1e3;
    double shortest_us = INFINITY, longest_us = 0;
    heat(t);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct timed timed;
        GPU_OK(t, time_calls(&work, FIB_TIMER_GRAPH, counts[i], 1, 41, &timed, &err), &err);
        const double net_us = timed.net_ms * 1e3;
        shortest_us = fmin(shortest_us, net_us);
        longest_us = fmax(longest_us, net_us);
        gpu_test_note(t, "N %u: raw %.4f us, net %.4f us, %.1f MHz", counts[i], timed.raw_ms * 1e3,
                      net_us, timed.mhz);
    }
    GPU_CHECK(t, longest_us - shortest_us <= 0.03 * shortest_us, "%.4f to %.4f us a call",
              shortest_us, longest_us);
    /* An idle process launches null kernels 0.50 us apart, a busy one up to 0.68 us (H200). */
    GPU_CHECK(t, shortest_us >= 0.9 * gap_us && longest_us <= 1.6 * gap_us,
              "%.4f to %.4f us a call, gap %.4f us", shortest_us, longest_us, gap_us);
}

/* Spins of k cycles against k / MHz: a straight line of slope one. */
static void test_spin_slope(struct gpu_test *t)
{
    static const uint64_t cycles[] = {2000, 5000, 20000, 100000, 400000, 1000000};
    enum { COUNT = sizeof(cycles) / sizeof(cycles[0]) };
    struct fib_error err = {0};
    double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
    heat(t);
    for (int i = 0; i < COUNT; i++) {
        struct timed timed;
        const struct work work = {.device = t->device, .spin_cycles = cycles[i]};
        const uint32_t calls = cycles[i] < 400000 ? (uint32_t)(800000 / cycles[i]) : 2;
        GPU_OK(t, time_calls(&work, FIB_TIMER_GRAPH, calls, 1, 31, &timed, &err), &err);
        const double want_us = (double)cycles[i] / timed.mhz, have_us = timed.net_ms * 1e3;
        gpu_test_note(t, "%llu cycles: %.3f us of cycles at %.1f MHz, measured %.3f us",
                      (unsigned long long)cycles[i], want_us, timed.mhz, have_us);
        sum_x += want_us;
        sum_y += have_us;
        sum_xx += want_us * want_us;
        sum_xy += want_us * have_us;
    }
    const double slope = (COUNT * sum_xy - sum_x * sum_y) / (COUNT * sum_xx - sum_x * sum_x);
    const double intercept_us = (sum_y - slope * sum_x) / COUNT;
    gpu_test_note(t, "slope %.5f, intercept %.3f us", slope, intercept_us);
    GPU_CHECK(t, fabs(slope - 1) <= 0.003, "slope %.5f", slope);
    GPU_CHECK(t, fabs(intercept_us) <= 2, "intercept %.3f us", intercept_us);
}

/* Long calls take the same time by every timer. */
static void test_timers_agree(struct gpu_test *t)
{
    static const enum fib_timer timers[] = {FIB_TIMER_EVENTS, FIB_TIMER_WALL, FIB_TIMER_ISOLATED};
    struct fib_error err = {0};
    struct timed graph;
    const struct work work = {.device = t->device, .spin_cycles = 1000000};
    heat(t);
    GPU_OK(t, time_calls(&work, FIB_TIMER_GRAPH, 4, 1, 15, &graph, &err), &err);
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
        struct timed other;
        GPU_OK(t,
               time_calls(&work, timers[i], timers[i] == FIB_TIMER_ISOLATED ? 1 : 4, 1, 15, &other,
                          &err),
               &err);
        gpu_test_note(t, "graph %.2f us, %s %.2f us (%.1f and %.1f MHz)", graph.net_ms * 1e3,
                      fib_timer_name(timers[i]), other.net_ms * 1e3, graph.mhz, other.mhz);
        GPU_CHECK(t, fabs(other.net_ms - graph.net_ms) <= 0.02 * graph.net_ms,
                  "%s: %.2f us, graph: %.2f us", fib_timer_name(timers[i]), other.net_ms * 1e3,
                  graph.net_ms * 1e3);
    }
}

/* The flush of an isolated call (180 MB on an H200: 60 us) is not in its time, and what the call
 * itself writes is. */
static void test_flush_is_outside(struct gpu_test *t)
{
    enum { COPY_BYTES = 128 << 20 };
    struct fib_error err = {0};
    struct timed null_call, copy;
    void *block = NULL;
    struct work work = {.device = t->device, .blocks = 1, .threads = 32};
    GPU_OK(t, time_calls(&work, FIB_TIMER_ISOLATED, 1, 1, 41, &null_call, &err), &err);
    gpu_test_note(t, "empty kernel %.2f us, raw %.2f us", null_call.net_ms * 1e3,
                  null_call.raw_ms * 1e3);
    GPU_CHECK(t, null_call.net_ms <= 10e-3 && null_call.net_ms >= -1e-3,
              "an empty kernel takes %.2f us", null_call.net_ms * 1e3);
    GPU_OK(t, t->device->ops->alloc(t->device, 2 * (size_t)COPY_BYTES, &block, &err), &err);
    work.src = block;
    work.dst = work.src + COPY_BYTES;
    work.bytes = COPY_BYTES;
    GPU_OK(t, time_calls(&work, FIB_TIMER_ISOLATED, 1, 1, 11, &copy, &err), &err);
    t->device->ops->release(t->device, block, 2 * (size_t)COPY_BYTES);
    const double least_us = 2.0 * COPY_BYTES / 8e12 * 1e6;
    gpu_test_note(t, "with a copy of its own %.2f us", copy.net_ms * 1e3);
    GPU_CHECK(t, copy.net_ms * 1e3 >= null_call.net_ms * 1e3 + least_us,
              "a call's own copy is missing: %.2f us", copy.net_ms * 1e3);
}

static double copy_tb_per_s(const struct work *work, uint32_t ring, struct gpu_test *t)
{
    struct fib_error err = {0};
    struct timed timed;
    uint32_t calls = ring;
    while (calls < 64 && calls * (double)work->bytes < 1e9)
        calls += ring;
    if (time_calls(work, FIB_TIMER_GRAPH, calls, ring, 15, &timed, &err) != FIB_OK) {
        gpu_test_fail(t, __FILE__, __LINE__, "%s", err.text);
        return NAN;
    }
    return 2.0 * (double)work->bytes / (timed.net_ms * 1e9);
}

/* A working set of a quarter of the L2 is faster hot than over a ring; nothing is faster than the
 * memory can be. */
static void test_copy(struct gpu_test *t)
{
    struct fib_error err = {0};
    const struct fib_device_facts *const facts = &t->device->facts;
    const size_t small = (size_t)facts->cache_bytes / 8 / 4096 * 4096, big = (size_t)1 << 30;
    const uint32_t ring = (uint32_t)(facts->ring_bytes / (2 * small)) + 2;
    void *block = NULL;
    GPU_OK(t, t->device->ops->alloc(t->device, 2 * big, &block, &err), &err);
    GPU_OK(t, t->device->ops->set_bytes(t->device, block, 0x5a, 2 * big, &err), &err);
    struct work work = {.device = t->device, .src = block, .bytes = small, .stride = small};
    work.dst = work.src + big;
    const double hot = copy_tb_per_s(&work, 1, t), cold = copy_tb_per_s(&work, ring, t);
    work.bytes = big;
    const double large = copy_tb_per_s(&work, 1, t);
    gpu_test_note(t,
                  "copy of %zu KB hot %.2f TB/s, cold over %u slots %.2f TB/s, of 1 GiB %.2f TB/s",
                  small >> 10, hot, ring, cold, large);
    GPU_CHECK(t, hot >= 1.2 * cold, "hot %.2f and cold %.2f TB/s do not differ", hot, cold);
    const double peak = strstr(facts->name, "H200") ? 4.8 : 2 * facts->bytes_per_s / 1e12;
    GPU_CHECK(t, cold <= 1.02 * peak && large <= 1.02 * peak, "above the peak of %.2f TB/s", peak);
    if (strstr(facts->name, "H200"))
        /* A copy node of a graph, not a kernel of ours: 2.7 TB/s on driver 580. */
        GPU_CHECK(t, large >= 2.0, "a copy of 1 GiB reaches %.2f TB/s only", large);
    t->device->ops->release(t->device, block, 2 * big);
}

static enum fib_status sample(struct gpu_test *t, const struct work *work, enum fib_timer timer,
                              struct fib_samples *samples, struct fib_error *err)
{
    const struct fib_arm arm = {
        .label = "work", .call = call_work, .context = (void *)(uintptr_t)work};
    const struct fib_sample_rules rules = {.timer = timer,
                                           .slot_count = 4,
                                           .warmup_calls = FIB_UNSET_I64,
                                           .window_count = FIB_UNSET_I64,
                                           .budget_ms = 100,
                                           .precision = 0.005,
                                           .timeout_ms = 20000,
                                           .seed = 42};
    return fib_sample_run(t->device, &arm, 1, &rules, samples, err);
}

/* The sampler on a real clock: positive numbers only, clocks known, the overhead noted. */
static void test_sampling(struct gpu_test *t)
{
    struct fib_error err = {0};
    struct fib_samples samples = {0};
    const struct work work = {.device = t->device, .blocks = 264, .threads = 256};
    GPU_OK(t, sample(t, &work, FIB_TIMER_DEFAULT, &samples, &err), &err);
    const struct fib_series *const series = &samples.series[0];
    size_t clocks = 0;
    for (size_t i = 0; i < series->count; i++) {
        GPU_CHECK(t, series->call_ms[i] > 0 && isfinite(series->call_ms[i]), "sample %zu is %g", i,
                  series->call_ms[i]);
        clocks += series->mhz[i] > 100 && series->mhz[i] < 4000;
    }
    gpu_test_note(t, "%zu windows of %u calls, median %.4f us, %zu clocks, warm-up %.1f ms, %s",
                  series->count, samples.calls_per_window,
                  1e3 * fib_stats_percentile(series->call_ms, series->count, 0.5), clocks,
                  series->warmup_ms, fib_stop_name(series->stop));
    GPU_CHECK(t, series->count >= 20, "%zu windows", series->count);
    GPU_CHECK(t, 10 * clocks >= 9 * series->count, "the clock is known in %zu of %zu windows",
              clocks, series->count);
    GPU_CHECK(t,
              samples.timer == FIB_TIMER_GRAPH && samples.overhead_ms > 0 &&
                  strcmp(samples.overhead_method, "null-kernel intercept") == 0,
              "timer %s, overhead %g ms", fib_timer_name(samples.timer), samples.overhead_ms);
    fib_samples_free(&samples);
}

/* Calls that do nothing give no time: an error after a bounded number of windows, never a zero. */
static void test_no_time(struct gpu_test *t)
{
    struct fib_error err = {0};
    struct fib_samples samples = {0};
    const struct work work = {.device = t->device};
    const enum fib_status st = sample(t, &work, FIB_TIMER_GRAPH, &samples, &err);
    const size_t count = samples.series ? samples.series[0].count : 0;
    for (size_t i = 0; i < count; i++)
        GPU_CHECK(t, samples.series[0].call_ms[i] > 0, "sample %zu is %g", i,
                  samples.series[0].call_ms[i]);
    gpu_test_note(t, "status %d, %zu samples: %s", (int)st, count, err.text);
    GPU_CHECK(t, st == FIB_OK || strstr(err.text, "gave no positive time"), "%s", err.text);
    fib_samples_free(&samples);
}

/* What cannot be captured is refused by the graph timer with the reason, and sampled by events. */
static void test_uncapturable(struct gpu_test *t)
{
    struct fib_error err = {0}, sample_err = {0};
    struct timed timed;
    struct fib_samples samples = {0};
    const struct work work = {.device = t->device, .spin_cycles = 50000, .synchronizes = true};
    const enum fib_status st = time_calls(&work, FIB_TIMER_GRAPH, 3, 1, 1, &timed, &err);
    GPU_CHECK(t, st == FIB_ERR_UNSUPPORTED && strstr(err.text, "cannot be captured"),
              "status %d: %s", (int)st, err.text);
    gpu_test_note(t, "%s", err.text);
    GPU_OK(t, sample(t, &work, FIB_TIMER_GRAPH, &samples, &sample_err), &sample_err);
    GPU_CHECK(t,
              samples.timer == FIB_TIMER_EVENTS && samples.capture_note[0] &&
                  samples.series[0].count > 0,
              "timer %s, note '%s'", fib_timer_name(samples.timer), samples.capture_note);
    fib_samples_free(&samples);
    /* The device captures as before. */
    const struct work good = {.device = t->device, .spin_cycles = 50000};
    struct fib_error later = {0};
    GPU_OK(t, time_calls(&good, FIB_TIMER_GRAPH, 3, 1, 3, &timed, &later), &later);
}

static void test_refusals(struct gpu_test *t)
{
    struct fib_error err = {0};
    struct timed timed;
    const struct work work = {.device = t->device, .spin_cycles = 1000};
    for (int timer = FIB_TIMER_GRAPH; timer <= FIB_TIMER_WALL; timer++) {
        const char *const refusal = fib_device_timer_refusal(t->device, (enum fib_timer)timer);
        GPU_CHECK(t, (timer == FIB_TIMER_CUPTI) == (refusal != NULL), "%s: %s",
                  fib_timer_name((enum fib_timer)timer), refusal ? refusal : "not refused");
    }
    const enum fib_status st = time_calls(&work, FIB_TIMER_CUPTI, 3, 1, 1, &timed, &err);
    GPU_CHECK(t, st == FIB_ERR_UNSUPPORTED && strstr(err.text, "--timer cupti"), "%s", err.text);
}

static const struct gpu_test_row rows[] = {
    {"facts", test_facts, true},
    {"null_calls", test_null_calls, true},
    {"spin_slope", test_spin_slope, true},
    {"timers_agree", test_timers_agree, true},
    {"flush_is_outside", test_flush_is_outside, true},
    {"copy_hot_and_cold", test_copy, true},
    {"sampling", test_sampling, true},
    {"no_time", test_no_time, true},
    {"uncapturable", test_uncapturable, false},
    {"refusals", test_refusals, false},
};
const struct gpu_suite gpu_suite_timing = {"timing", rows, sizeof(rows) / sizeof(rows[0])};
