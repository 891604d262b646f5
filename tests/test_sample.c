/* The sampler on the scripted clock: warm-up, calls per window, orders, every way to stop. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "core/sample.h"

enum { MAX_LOG = 1 << 16 };

/* What an arm was asked to do. */
struct probe {
    struct log *log;
    int arm;
    int64_t calls, resets;
    bool used[64];   /* slots used since the last reset */
    int repeated;    /* calls on a slot already used since then */
    int64_t fail_at; /* 1-based call that fails; 0 never */
};

/* All calls of all arms in order. */
struct log {
    int64_t count;
    unsigned char arm[MAX_LOG];
    uint32_t slot[MAX_LOG];
};

static enum fib_status probe_call(void *context, struct fib_stream *stream, uint32_t slot,
                                  struct fib_error *err)
{
    struct probe *probe = context;
    (void)stream;
    probe->calls++;
    if (probe->log && probe->log->count < MAX_LOG) {
        probe->log->arm[probe->log->count] = (unsigned char)probe->arm;
        probe->log->slot[probe->log->count] = slot;
        probe->log->count++;
    }
    probe->repeated += probe->used[slot % 64];
    probe->used[slot % 64] = true;
    if (probe->calls == probe->fail_at)
        return fib_fail(err, FIB_ERR_DEVICE, "call %lld broke", (long long)probe->calls);
    return FIB_OK;
}

static enum fib_status probe_reset(void *context, struct fib_stream *stream, const uint32_t *slots,
                                   uint32_t slot_count, struct fib_error *err)
{
    struct probe *probe = context;
    (void)stream;
    (void)slots;
    (void)slot_count;
    (void)err;
    probe->resets++;
    memset(probe->used, 0, sizeof(probe->used));
    return FIB_OK;
}

static struct fib_device *open_fake(const double *call_ms, size_t call_count)
{
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = call_count};
    assert_int_equal(fib_device_fake_open(NULL, &script, &device, &err), FIB_OK);
    return device;
}

static struct fib_sample_rules usual_rules(void)
{
    return (struct fib_sample_rules){.timer = FIB_TIMER_DEFAULT,
                                     .slot_count = 4,
                                     .warmup_calls = FIB_UNSET_I64,
                                     .window_count = FIB_UNSET_I64,
                                     .budget_ms = 200,
                                     .precision = 0.005,
                                     .seed = 42};
}

static void make_arms(size_t count, struct fib_arm *arms, struct probe *probes, struct log *log)
{
    static const char *const labels[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < count; i++) {
        probes[i] = (struct probe){.log = log, .arm = (int)i};
        arms[i] = (struct fib_arm){.label = labels[i], .call = probe_call, .context = &probes[i]};
    }
}

/* One arm, one script of call times. */
struct outcome {
    struct probe probe;
    struct fib_samples samples;
    struct fib_error err;
    enum fib_status status;
    double end_ms; /* of the scripted clock */
};

static struct fib_series *first(struct outcome *outcome)
{
    return &outcome->samples.series[0];
}

static void run_script(const double *call_ms, size_t call_count,
                       const struct fib_sample_rules *rules, struct outcome *outcome)
{
    struct fib_device *device = open_fake(call_ms, call_count);
    struct fib_arm arm;
    memset(outcome, 0, sizeof(*outcome));
    make_arms(1, &arm, &outcome->probe, NULL);
    if (rules->in_place)
        arm.reset = probe_reset;
    outcome->status = fib_sample_run(device, &arm, 1, rules, &outcome->samples, &outcome->err);
    outcome->end_ms = device->ops->now_ms(device);
    fib_device_close(&device);
}

static void run_constant(double call_ms, const struct fib_sample_rules *rules,
                         struct outcome *outcome)
{
    run_script(&call_ms, 1, rules, outcome);
}

/* Each call takes a little longer than the last one: batches never agree. */
enum { DRIFT_COUNT = 100000 };
static double *drifting(double first_ms, double growth)
{
    double *script = malloc(DRIFT_COUNT * sizeof(*script));
    assert_non_null(script);
    for (int i = 0; i < DRIFT_COUNT; i++)
        script[i] = first_ms * (1 + growth * i);
    return script;
}

static void stop_names(void **state)
{
    (void)state;
    static const char *const names[] = {"none", "precision", "tick", "budget", "count", "timeout"};
    for (int stop = FIB_STOP_NONE; stop <= FIB_STOP_TIMEOUT; stop++)
        assert_string_equal(fib_stop_name((enum fib_stop)stop), names[stop]);
    assert_string_equal(fib_stop_name((enum fib_stop)77), "unknown");
}

static void calls_per_window(void **state)
{
    (void)state;
    /* 0.2 / 0.01 = 20 calls, to a multiple of the ring */
    assert_int_equal(fib_sample_calls(0.01, 0.2, 1, false, 200), 20);
    assert_int_equal(fib_sample_calls(0.01, 0.2, 7, false, 200), 21);
    assert_int_equal(fib_sample_calls(0.01, 0.2, 20, false, 200), 20);
    assert_int_equal(fib_sample_calls(0.01, 0.2, 21, false, 200), 21);
    assert_int_equal(fib_sample_calls(0.5, 0.2, 1, false, 200), 1);
    assert_int_equal(fib_sample_calls(0.5, 0.2, 3, false, 200), 3);
    assert_int_equal(fib_sample_calls(0.01, 0.2, 7, true, 200), 7);
    /* 8 calls of 1 ms in a 25th of 200 ms: 100 slots in 13 windows of 7 */
    assert_int_equal(fib_sample_calls(1.0, 0.2, 100, false, 200), 7);
    assert_int_equal(fib_sample_calls(1.0, 0.2, 100, true, 200), 7);
    assert_int_equal(fib_sample_calls(8.0, 0.2, 3, false, 200), 1);
    assert_int_equal(fib_sample_calls(5000.0, 0.2, 3, false, 200), 1);
    assert_int_equal(fib_sample_calls(5000.0, 0.2, 3, true, 200), 1);
    /* 0.2 ms windows do not fit a budget of 2 ms 25 times: 8 calls, two rings of 4 */
    assert_int_equal(fib_sample_calls(0.01, 0.2, 4, false, 2), 8);
    /* limits; a broken time counts as one nanosecond */
    assert_int_equal(fib_sample_calls(1e-9, 0.2, 1, false, 200), 1 << 20);
    assert_int_equal(fib_sample_calls(0, 0.2, 1, false, 200), 200000);
    assert_int_equal(fib_sample_calls(-1.78, 0.2, 1, false, 200), 200000);
    assert_int_equal(fib_sample_calls(NAN, 0.2, 1, false, 200), 200000);
    assert_int_equal(fib_sample_calls(INFINITY, 0.2, 1, false, 200), 1);
    assert_int_equal(fib_sample_calls(0.01, 0.2, 0, false, 200), 20);
    assert_int_equal(fib_sample_calls(0.01, 0.2, 1, false, 0), 1);
}

static void stops_by_precision(void **state)
{
    (void)state;
    const struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    run_constant(0.01, &rules, &o);
    assert_int_equal(o.status, FIB_OK);
    assert_int_equal(o.samples.calls_per_window, 20);
    assert_int_equal(first(&o)->stop, FIB_STOP_PRECISION);
    assert_in_range(first(&o)->count, 50, 51); /* 10 ms of 0.2 ms windows */
    assert_true(first(&o)->settled);
    assert_in_range((int)first(&o)->warmup_ms, 29, 33); /* three blocks of 10 ms */
    assert_string_equal(o.samples.interleave, "none");
    assert_int_equal(o.samples.timer, FIB_TIMER_WALL);
    assert_int_equal(o.probe.resets, 0);
    for (size_t i = 0; i < first(&o)->count; i++) {
        assert_float_equal(first(&o)->call_ms[i], 0.01, 1e-12);
        assert_float_equal(first(&o)->raw_ms[i], 0.01, 1e-12);
        assert_float_equal(first(&o)->at_s[i], 0.0002 * (double)(i + 1), 1e-9);
    }
    fib_samples_free(&o.samples);
    assert_null(o.samples.series);
}

static void overhead_comes_off_once_per_window(void **state)
{
    (void)state;
    const double call_ms = 0.01;
    struct fib_sample_rules rules = usual_rules();
    struct fib_device *device = open_fake(&call_ms, 1);
    struct fib_arm arm;
    struct probe probe;
    struct fib_samples samples;
    struct fib_error err = {0};
    device->facts.window_overhead_ms = 0.002;
    rules.window_count = 3;
    make_arms(1, &arm, &probe, NULL);
    assert_int_equal(fib_sample_run(device, &arm, 1, &rules, &samples, &err), FIB_OK);
    const double calls = samples.calls_per_window;
    for (size_t i = 0; i < 3; i++) {
        assert_float_equal(samples.series[0].raw_ms[i], 0.01, 1e-12);
        assert_float_equal(samples.series[0].call_ms[i], 0.01 - 0.002 / calls, 1e-12);
    }
    fib_samples_free(&samples);
    fib_device_close(&device);
}

static void stops_by_budget(void **state)
{
    (void)state;
    double *script = drifting(0.01, 1e-4);
    const struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    run_script(script, DRIFT_COUNT, &rules, &o);
    assert_int_equal(first(&o)->stop, FIB_STOP_BUDGET);
    assert_true(o.end_ms >= 200 + 60 && o.end_ms < 200 + 60 + 5);
    assert_true(first(&o)->at_s[first(&o)->count - 1] >= 0.2 - 1e-9);
    fib_samples_free(&o.samples);
    free(script);
}

static void stops_by_tick(void **state)
{
    (void)state;
    double *script = drifting(0.01, 1e-4);
    struct fib_device *device = open_fake(script, DRIFT_COUNT);
    const struct fib_sample_rules rules = usual_rules();
    struct fib_arm arm;
    struct probe probe;
    struct fib_samples samples;
    struct fib_error err = {0};
    make_arms(1, &arm, &probe, NULL);
    device->facts.tick_ms = 1; /* half a tick per call is more than the calls differ */
    assert_int_equal(fib_sample_run(device, &arm, 1, &rules, &samples, &err), FIB_OK);
    assert_int_equal(samples.series[0].stop, FIB_STOP_TICK);
    assert_true(samples.series[0].count >= 20);
    fib_samples_free(&samples);
    fib_device_close(&device);
    free(script);
}

static void stops_by_count(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 7, 300};
    for (size_t i = 0; i < 3; i++) {
        struct fib_sample_rules rules = usual_rules();
        struct outcome o;
        rules.window_count = counts[i];
        rules.budget_ms = 5; /* the count alone decides */
        run_constant(0.01, &rules, &o);
        assert_int_equal(first(&o)->count, counts[i]);
        assert_int_equal(first(&o)->stop, FIB_STOP_COUNT);
        fib_samples_free(&o.samples);
    }
}

static void stops_by_timeout(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    rules.timeout_ms = 15; /* while warming up */
    run_constant(0.01, &rules, &o);
    assert_int_equal(o.status, FIB_ERR_TIMEOUT);
    assert_int_equal(first(&o)->stop, FIB_STOP_TIMEOUT);
    assert_int_equal(first(&o)->count, 0);
    assert_string_equal(o.err.text, "not done after 0.015 s (--timeout_s)");
    fib_samples_free(&o.samples);
    rules.timeout_ms = 100;
    rules.window_count = 100000;
    run_constant(0.01, &rules, &o);
    assert_int_equal(o.status, FIB_ERR_TIMEOUT);
    assert_int_equal(first(&o)->stop, FIB_STOP_TIMEOUT);
    assert_in_range(first(&o)->count, 300, 360); /* 65-70 ms of 0.2 ms windows */
    assert_true(o.end_ms < 101);
    fib_samples_free(&o.samples);
}

static bool interrupt_soon(void *context)
{
    int *polls = context;
    return --*polls < 0;
}

static void stops_when_interrupted(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    int polls = 100;
    rules.interrupted = interrupt_soon;
    rules.interrupted_context = &polls;
    rules.window_count = 100000;
    run_constant(0.01, &rules, &o);
    assert_int_equal(o.status, FIB_ERR_TIMEOUT);
    assert_string_equal(o.err.text, "interrupted while it was timed");
    assert_true(first(&o)->count > 0 && first(&o)->count < 100);
    fib_samples_free(&o.samples);
}

static void exact_warm_up(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 7, 5000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct fib_sample_rules rules = usual_rules();
        struct outcome o;
        rules.warmup_calls = counts[i];
        rules.window_count = 3;
        run_constant(0.01, &rules, &o);
        assert_int_equal(o.status, FIB_OK);
        assert_int_equal(o.samples.calls_per_window, counts[i] == 0 ? 4 : 20);
        assert_int_equal(o.probe.calls, counts[i] + 3 * (int64_t)o.samples.calls_per_window);
        assert_float_equal(first(&o)->warmup_ms, 0.01 * (double)counts[i], 1e-9);
        assert_false(first(&o)->settled);
        fib_samples_free(&o.samples);
    }
}

/* Each call faster than the one before: warm-up goes on to its cap. */
static void warm_up_goes_on_until_it_settles(void **state)
{
    (void)state;
    enum { COUNT = 30000 };
    double *script = malloc(COUNT * sizeof(*script));
    struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    assert_non_null(script);
    for (int i = 0; i < COUNT; i++)
        script[i] = 0.01 * (1 - 0.00002 * i);
    rules.window_count = 3;
    run_script(script, COUNT, &rules, &o);
    assert_false(first(&o)->settled);
    assert_true(first(&o)->warmup_ms >= 60 && first(&o)->warmup_ms < 62);
    fib_samples_free(&o.samples);
    for (int i = 0; i < COUNT; i++) /* agrees from 20 ms on */
        script[i] = i < 1000 ? 0.02 : 0.01;
    run_script(script, COUNT, &rules, &o);
    assert_true(first(&o)->settled);
    assert_true(first(&o)->warmup_ms >= 48 && first(&o)->warmup_ms < 60);
    fib_samples_free(&o.samples);
    free(script);
}

static void quick_warms_up_for_five_ms(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    rules.quick = true;
    rules.budget_ms = 30;
    run_constant(0.01, &rules, &o);
    assert_true(first(&o)->warmup_ms >= 5 && first(&o)->warmup_ms < 12);
    assert_int_equal(first(&o)->stop, FIB_STOP_PRECISION);
    fib_samples_free(&o.samples);
}

static void slow_calls_get_few_windows(void **state)
{
    (void)state;
    const struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    run_constant(1.0, &rules, &o);
    assert_int_equal(o.samples.calls_per_window, 4);
    assert_int_equal(first(&o)->count, 20); /* long enough at once, but 20 windows are the least */
    assert_int_equal(first(&o)->stop, FIB_STOP_PRECISION);
    fib_samples_free(&o.samples);
    run_constant(30.0, &rules, &o); /* 25 * 30 > 200 */
    assert_int_equal(o.samples.calls_per_window, 1);
    assert_int_equal(first(&o)->count, 7); /* the first to pass 200 ms */
    assert_int_equal(first(&o)->stop, FIB_STOP_BUDGET);
    assert_int_equal(o.probe.calls, 1 + 7);
    assert_false(first(&o)->settled);
    fib_samples_free(&o.samples);
    run_constant(500.0, &rules, &o);
    assert_int_equal(first(&o)->count, 3);
    assert_int_equal(first(&o)->stop, FIB_STOP_BUDGET);
    assert_int_equal(o.probe.calls, 1 + 3);
    fib_samples_free(&o.samples);
}

static void in_place_restores_before_each_window(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    rules.in_place = true;
    rules.slot_count = 5;
    run_constant(0.01, &rules, &o);
    assert_int_equal(o.samples.calls_per_window, 5);
    assert_int_equal(o.probe.repeated, 0);
    assert_true(o.probe.resets > (int64_t)first(&o)->count);
    assert_int_equal(first(&o)->stop, FIB_STOP_PRECISION);
    fib_samples_free(&o.samples);
    rules.slot_count = 60; /* 60 calls of 1 ms do not fit: 8 -> 8 windows of 7 */
    run_constant(1.0, &rules, &o);
    assert_int_equal(o.samples.calls_per_window, 7);
    assert_int_equal(o.probe.repeated, 0);
    assert_true(first(&o)->count >= 20);
    fib_samples_free(&o.samples);
    rules.slot_count = 5;
    rules.warmup_calls = 12; /* exact also when it takes several windows */
    rules.window_count = 2;
    run_constant(0.01, &rules, &o);
    assert_int_equal(o.probe.calls, 12 + 2 * 5);
    assert_int_equal(o.probe.repeated, 0);
    fib_samples_free(&o.samples);
}

/* Runs several arms on a constant clock with a log of all calls. */
static struct log *run_arms(size_t arm_count, double call_ms, const struct fib_sample_rules *rules,
                            struct fib_samples *samples)
{
    struct fib_device *device = open_fake(&call_ms, 1);
    struct fib_arm arms[5];
    struct probe probes[5];
    struct fib_error err = {0};
    struct log *log = calloc(1, sizeof(*log));
    assert_non_null(log);
    make_arms(arm_count, arms, probes, log);
    assert_int_equal(fib_sample_run(device, arms, arm_count, rules, samples, &err), FIB_OK);
    fib_device_close(&device);
    return log;
}

static void every_slot_equally_often(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct fib_samples samples;
    rules.slot_count = 7;
    rules.warmup_calls = 3;
    rules.window_count = 4;
    struct log *log = run_arms(2, 0.01, &rules, &samples);
    assert_int_equal(samples.calls_per_window, 21);
    int uses[2][7] = {{0}};
    for (int64_t i = 6; i < log->count; i++) {
        uses[log->arm[i]][log->slot[i]]++;
        /* one permutation throughout: a slot comes back after exactly 7 calls */
        if (i >= 6 + 7)
            assert_int_equal(log->slot[i], log->slot[i - 7]);
    }
    for (int slot = 0; slot < 7; slot++) {
        assert_int_equal(uses[0][slot], 12);
        assert_int_equal(uses[1][slot], 12);
    }
    free(log);
    fib_samples_free(&samples);
    rules.seed = 43; /* another seed, another order */
    struct log *other = run_arms(2, 0.01, &rules, &samples);
    fib_samples_free(&samples);
    rules.seed = 42;
    log = run_arms(2, 0.01, &rules, &samples);
    assert_memory_not_equal(&log->slot[6], &other->slot[6], 7 * sizeof(log->slot[0]));
    free(other);
    free(log);
    fib_samples_free(&samples);
}

/* A window too short for the ring must not run on the same few slots again, nor hand them to the
 * next arm while they are in the cache. */
static void short_windows_walk_through_the_ring(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct fib_samples samples;
    rules.slot_count = 100;
    rules.warmup_calls = 1;
    for (size_t arms = 1; arms <= 3; arms++) {
        struct log *log = run_arms(arms, 1.0, &rules, &samples);
        assert_int_equal(samples.calls_per_window, 7);
        int64_t last[100], shortest = INT64_MAX;
        for (int slot = 0; slot < 100; slot++)
            last[slot] = INT64_MIN / 2;
        for (int64_t i = (int64_t)arms; i < log->count; i++) {
            const int64_t distance = i - last[log->slot[i]];
            shortest = distance < shortest ? distance : shortest;
            last[log->slot[i]] = i;
        }
        assert_true(shortest >= 91);
        free(log);
        fib_samples_free(&samples);
    }
}

static void two_arms_run_a_b_b_a(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct fib_samples samples;
    rules.slot_count = 1;
    rules.warmup_calls = 1;
    rules.window_count = 4;
    struct log *log = run_arms(2, 1.0, &rules, &samples);
    assert_string_equal(samples.interleave, "abba");
    assert_int_equal(samples.calls_per_window, 1);
    static const unsigned char expected[] = {0, 1, /* warm-up */ 0, 1, 1, 0, 0, 1, 1, 0};
    assert_int_equal(log->count, 10);
    assert_memory_equal(log->arm, expected, sizeof(expected));
    free(log);
    fib_samples_free(&samples);
}

static void arms_keep_equal_counts(void **state)
{
    (void)state;
    struct fib_samples samples;
    for (size_t arms = 2; arms <= 5; arms++) {
        const struct fib_sample_rules rules = usual_rules();
        struct log *log = run_arms(arms, 0.01, &rules, &samples);
        assert_int_equal(samples.arm_count, arms);
        assert_string_equal(samples.interleave, arms == 2 ? "abba" : "williams");
        for (size_t a = 0; a < arms; a++) {
            assert_int_equal(samples.series[a].count, samples.series[0].count);
            assert_int_equal(samples.series[a].stop, FIB_STOP_PRECISION);
            assert_true(samples.series[a].settled);
            if (a > 0) /* the device was warm: no second full warm-up */
                assert_true(samples.series[a].warmup_ms < 5);
        }
        if (arms == 2)
            assert_int_equal(samples.series[0].count % 2, 0);
        free(log);
        fib_samples_free(&samples);
    }
}

/* Over one block of rows each arm follows each other arm equally often and stands at each place
 * equally often; blocks differ in the order of their rows. */
static void case_49_orders_are_balanced(void **state)
{
    (void)state;
    for (size_t k = 3; k <= 5; k++) {
        const size_t rows = k % 2 == 0 ? k : 2 * k;
        size_t shuffled = 0;
        for (size_t block = 0; block < 5; block++) {
            size_t follows[5][5] = {{0}}, place[5][5] = {{0}};
            for (size_t row = 0; row < rows; row++) {
                size_t order[5], before[5];
                bool seen[5] = {false};
                fib_sample_order(k, block * rows + row, 42, order);
                fib_sample_order(k, row, 42, before);
                shuffled += memcmp(order, before, k * sizeof(*order)) != 0;
                for (size_t i = 0; i < k; i++) {
                    assert_true(order[i] < k && !seen[order[i]]);
                    seen[order[i]] = true;
                    place[order[i]][i]++;
                    if (i > 0)
                        follows[order[i]][order[i - 1]]++;
                }
            }
            for (size_t a = 0; a < k; a++)
                for (size_t b = 0; b < k; b++) {
                    assert_int_equal(place[a][b], rows / k);
                    assert_int_equal(follows[a][b], a == b ? 0 : rows / k);
                }
        }
        assert_true(shuffled > 0);
    }
    for (size_t round = 0; round < 4; round++) {
        size_t order[2];
        fib_sample_order(2, round, 7, order);
        assert_int_equal(order[0], round % 2);
        assert_int_equal(order[1], 1 - round % 2);
        fib_sample_order(1, round, 7, order);
        assert_int_equal(order[0], 0);
    }
}

/* A clock that is slow for ever, with spikes: nothing is thrown away, and it ends. */
static void case_45_slow_samples_are_kept(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    double *script = malloc(COUNT * sizeof(*script));
    struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    assert_non_null(script);
    for (int i = 0; i < COUNT; i++)
        script[i] = (i < 3500 ? 0.01 : 0.017) * (i % 997 == 0 ? 100 : 1);
    rules.warmup_calls = 1000;
    run_script(script, COUNT, &rules, &o);
    assert_int_equal(o.status, FIB_OK);
    assert_int_equal(first(&o)->rejected_count, 0);
    assert_int_equal(o.probe.calls, 1000 + (int64_t)first(&o)->count * o.samples.calls_per_window);
    assert_true(o.end_ms < 400);
    double largest = 0;
    for (size_t i = 0; i < first(&o)->count; i++) {
        assert_true(isfinite(first(&o)->call_ms[i]) && first(&o)->call_ms[i] > 0);
        largest = fmax(largest, first(&o)->call_ms[i]);
    }
    assert_true(largest > 0.05); /* the spike is in a window of 20 calls */
    fib_samples_free(&o.samples);
    free(script);
}

static void case_47_times_that_cannot_be(void **state)
{
    (void)state;
    static const double broken[] = {0, -1.78, NAN, INFINITY, -INFINITY};
    const struct fib_sample_rules rules = usual_rules();
    struct outcome o;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        run_constant(broken[i], &rules, &o);
        assert_int_equal(o.status, FIB_ERR_DEVICE);
        assert_contains(o.err.text, "timer wall gave no positive time for a in 100 windows in a "
                                    "row, the last one ");
        assert_int_equal(first(&o)->count, 0);
        assert_true(o.probe.calls <= 100 * 5);
        fib_samples_free(&o.samples);
    }
    run_constant(1e-9, &rules, &o);
    assert_int_equal(o.status, FIB_OK);
    assert_int_equal(o.samples.calls_per_window, 1 << 20);
    assert_int_equal(first(&o)->stop, FIB_STOP_BUDGET);
    assert_true(first(&o)->count >= 3);
    for (size_t i = 0; i < first(&o)->count; i++)
        assert_float_equal(first(&o)->call_ms[i], 1e-9, 1e-15);
    fib_samples_free(&o.samples);
}

/* Now and then a bad window: rejected with its whole round, counted, and never among the samples.
 */
static void case_47_bad_windows_take_their_round_along(void **state)
{
    (void)state;
    const double script[] = {1.0, 1.0, 1.0, 1.0, -9.0, 1.0, 1.0, 1.0, NAN, 1.0, 1.0};
    struct fib_sample_rules rules = usual_rules();
    struct fib_device *device = open_fake(script, 11);
    struct fib_arm arms[5];
    struct probe probes[5];
    struct fib_samples samples;
    struct fib_error err = {0};
    make_arms(3, arms, probes, NULL);
    rules.slot_count = 1;
    rules.warmup_calls = 1;
    rules.window_count = 30;
    assert_int_equal(fib_sample_run(device, arms, 3, &rules, &samples, &err), FIB_OK);
    assert_int_equal(samples.calls_per_window, 1);
    for (size_t a = 0; a < 3; a++) {
        const struct fib_series *series = &samples.series[a];
        assert_int_equal(series->count, 30);
        assert_true(series->rejected_count > 0);
        assert_int_equal(series->rejected_count, samples.series[0].rejected_count);
        assert_int_equal(probes[a].calls, 1 + 30 + (int64_t)series->rejected_count);
        for (size_t i = 0; i < series->count; i++)
            assert_float_equal(series->call_ms[i], 1.0, 0);
    }
    fib_samples_free(&samples);
    fib_device_close(&device);
}

/* One of two arms never gets a time: the run ends and names it. */
static void case_47_one_broken_arm_ends_the_run(void **state)
{
    (void)state;
    enum { WARM = 2, ROUNDS = 200 };
    double script[WARM + 2 * ROUNDS];
    struct fib_sample_rules rules = usual_rules();
    struct fib_arm arms[5];
    struct probe probes[5];
    struct fib_samples samples;
    struct fib_error err = {0};
    script[0] = script[1] = 1.0;
    for (int r = 0; r < ROUNDS; r++) { /* A B, B A: b is bad */
        script[WARM + 2 * r] = r % 2 == 0 ? 1.0 : 0.0;
        script[WARM + 2 * r + 1] = r % 2 == 0 ? 0.0 : 1.0;
    }
    struct fib_device *device = open_fake(script, WARM + 2 * ROUNDS);
    make_arms(2, arms, probes, NULL);
    rules.slot_count = 1;
    rules.warmup_calls = 1;
    assert_int_equal(fib_sample_run(device, arms, 2, &rules, &samples, &err), FIB_ERR_DEVICE);
    assert_string_equal(err.text, "timer wall gave no positive time for b in 100 windows in a row, "
                                  "the last one 0 ms");
    assert_int_equal(samples.series[0].count, 0);
    assert_int_equal(samples.series[0].rejected_count, 100);
    fib_samples_free(&samples);
    fib_device_close(&device);
}

static void failing_call_ends_the_run(void **state)
{
    (void)state;
    static const int64_t when[] = {1, 3, 4000};
    for (size_t i = 0; i < 3; i++) {
        const double call_ms = 0.01;
        struct fib_sample_rules rules = usual_rules();
        struct fib_device *device = open_fake(&call_ms, 1);
        struct fib_arm arm;
        struct probe probe;
        struct fib_samples samples;
        struct fib_error err = {0};
        make_arms(1, &arm, &probe, NULL);
        probe.fail_at = when[i];
        rules.window_count = 1000;
        assert_int_equal(fib_sample_run(device, &arm, 1, &rules, &samples, &err), FIB_ERR_DEVICE);
        assert_contains(err.text, " broke");
        fib_samples_free(&samples);
        fib_device_close(&device);
    }
}

static void timer_that_is_not_there(void **state)
{
    (void)state;
    struct fib_sample_rules rules = usual_rules();
    struct fib_device *device = NULL;
    struct fib_arm arm;
    struct probe probe;
    struct fib_samples samples;
    struct fib_error err = {0};
    assert_int_equal(fib_device_cpu_open(NULL, &device, &err), FIB_OK);
    make_arms(1, &arm, &probe, NULL);
    rules.timer = FIB_TIMER_GRAPH;
    assert_int_equal(fib_sample_run(device, &arm, 1, &rules, &samples, &err), FIB_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "--timer graph: needs a CUDA device");
    assert_int_equal(probe.calls, 0);
    fib_samples_free(&samples);
    rules = usual_rules();
    rules.window_count = 5;
    err = (struct fib_error){0};
    assert_int_equal(fib_sample_run(device, &arm, 1, &rules, &samples, &err), FIB_OK);
    assert_int_equal(samples.series[0].count, 5);
    fib_samples_free(&samples);
    fib_device_close(&device);
}

/* A slow arm must not be dragged along by a noisy one: all stop when all budgets are spent. */
static void budgets_are_shared(void **state)
{
    (void)state;
    double *script = drifting(0.01, 1e-4);
    struct fib_sample_rules rules = usual_rules();
    struct fib_device *device = open_fake(script, DRIFT_COUNT);
    struct fib_arm arms[5];
    struct probe probes[5];
    struct fib_samples samples;
    struct fib_error err = {0};
    make_arms(2, arms, probes, NULL);
    rules.precision = 1e-9;
    rules.budget_ms = 100;
    assert_int_equal(fib_sample_run(device, arms, 2, &rules, &samples, &err), FIB_OK);
    assert_int_equal(samples.series[0].stop, FIB_STOP_BUDGET);
    assert_int_equal(samples.series[1].stop, FIB_STOP_BUDGET);
    assert_true(device->ops->now_ms(device) < 200 + 60 + 60 + 5);
    fib_samples_free(&samples);
    fib_device_close(&device);
    free(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_names),
        cmocka_unit_test(calls_per_window),
        cmocka_unit_test(stops_by_precision),
        cmocka_unit_test(overhead_comes_off_once_per_window),
        cmocka_unit_test(stops_by_budget),
        cmocka_unit_test(stops_by_tick),
        cmocka_unit_test(stops_by_count),
        cmocka_unit_test(stops_by_timeout),
        cmocka_unit_test(stops_when_interrupted),
        cmocka_unit_test(exact_warm_up),
        cmocka_unit_test(warm_up_goes_on_until_it_settles),
        cmocka_unit_test(quick_warms_up_for_five_ms),
        cmocka_unit_test(slow_calls_get_few_windows),
        cmocka_unit_test(in_place_restores_before_each_window),
        cmocka_unit_test(every_slot_equally_often),
        cmocka_unit_test(short_windows_walk_through_the_ring),
        cmocka_unit_test(two_arms_run_a_b_b_a),
        cmocka_unit_test(arms_keep_equal_counts),
        cmocka_unit_test(case_49_orders_are_balanced),
        cmocka_unit_test(case_45_slow_samples_are_kept),
        cmocka_unit_test(case_47_times_that_cannot_be),
        cmocka_unit_test(case_47_bad_windows_take_their_round_along),
        cmocka_unit_test(case_47_one_broken_arm_ends_the_run),
        cmocka_unit_test(failing_call_ends_the_run),
        cmocka_unit_test(timer_that_is_not_there),
        cmocka_unit_test(budgets_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
