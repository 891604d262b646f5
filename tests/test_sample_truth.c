/* The sampler and the statistics together on a device whose troubles are scripted: drift, spikes, a
 * throttled clock, a coarse one. What is true is known, so it can be asked for. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>

#include "core/option.h"
#include "core/sample.h"
#include "core/stats.h"
#include "tests/simulate.h"

static const double margin = 0.005;

/* An arm that takes base_ms x (1 + noise x normal) of the fake clock. */
struct model {
    struct fib_device *device;
    struct sim *sim;
    double base_ms, noise;
};

static enum fib_status take_time(void *context, struct fib_stream *stream, uint32_t slot,
                                 struct fib_error *err)
{
    const struct model *model = context;
    (void)stream;
    (void)slot;
    (void)err;
    fib_device_fake_advance(model->device,
                            model->base_ms * (1.0 + model->noise * sim_normal(model->sim)));
    return FIB_OK;
}

/* Calls that follow the script. */
static enum fib_status take_scripted_time(void *context, struct fib_stream *stream, uint32_t slot,
                                          struct fib_error *err)
{
    (void)context;
    (void)stream;
    (void)slot;
    (void)err;
    return FIB_OK;
}

static struct fib_sample_rules usual_rules(void)
{
    return (struct fib_sample_rules){.timer = FIB_TIMER_DEFAULT,
                                     .slot_count = 1,
                                     .warmup_calls = 1,
                                     .window_count = FIB_UNSET_I64,
                                     .budget_ms = 200,
                                     .precision = 0.005,
                                     .margin = margin,
                                     .seed = 42};
}

static void open_script(const struct fib_fake_script *script, struct fib_device **device)
{
    struct fib_error err = {0};
    assert_int_equal(fib_device_fake_open(NULL, script, device, &err), FIB_OK);
}

static struct fib_samples sample(struct fib_device *device, const struct fib_arm *arms,
                                 size_t arm_count, const struct fib_sample_rules *rules)
{
    struct fib_samples samples;
    struct fib_error err = {0};
    if (fib_sample_run(device, arms, arm_count, rules, &samples, &err) != FIB_OK)
        fail_msg("%s", err.text);
    return samples;
}

/* Two arms of 0.2 ms a call, one or two calls to a window. */
static struct fib_samples sample_two(const struct fib_fake_script *script, double effect,
                                     double noise, const struct fib_sample_rules *rules,
                                     uint64_t seed)
{
    struct fib_device *device = NULL;
    open_script(script, &device);
    struct sim sim = {.state = seed};
    struct model models[2] = {
        {.device = device, .sim = &sim, .base_ms = 0.2, .noise = noise},
        {.device = device, .sim = &sim, .base_ms = 0.2 * (1.0 + effect), .noise = noise}};
    const struct fib_arm arms[2] = {{.label = "a", .call = take_time, .context = &models[0]},
                                    {.label = "b", .call = take_time, .context = &models[1]}};
    const struct fib_samples samples = sample(device, arms, 2, rules);
    fib_device_close(&device);
    return samples;
}

/* Calls of one arm as the script has them. */
static struct fib_samples sample_script(const struct fib_fake_script *script,
                                        const struct fib_sample_rules *rules)
{
    struct fib_device *device = NULL;
    open_script(script, &device);
    const struct fib_arm arm = {.label = "a", .call = take_scripted_time};
    const struct fib_samples samples = sample(device, &arm, 1, rules);
    fib_device_close(&device);
    return samples;
}

static struct fib_paired compare(const struct fib_samples *samples)
{
    struct fib_paired paired;
    fib_stats_paired(samples->series[0].call_ms, samples->series[1].call_ms,
                     samples->series[0].count, margin, &paired);
    fib_stats_paired_test(samples->series[0].call_ms, samples->series[1].call_ms,
                          samples->series[0].count, &paired);
    return paired;
}

static struct fib_stats describe(const struct fib_series *series)
{
    struct fib_stats stats;
    fib_stats_compute(series->call_ms, series->at_s, series->count, &stats);
    return stats;
}

/* Of a series of at least 299 windows nothing may be missing. */
static void assert_complete(const struct fib_stats *stats)
{
    const double numbers[] = {stats->median,
                              stats->mean,
                              stats->std,
                              stats->mad,
                              stats->min,
                              stats->max,
                              stats->p5,
                              stats->p25,
                              stats->p75,
                              stats->p95,
                              stats->p99,
                              stats->ci_low,
                              stats->ci_high,
                              stats->order_low,
                              stats->order_high,
                              stats->autocorrelation,
                              stats->drift_pct_per_s};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_true(isfinite(numbers[i]));
}

/* ---- drift ---- */

/* Calls get 50 % slower per second: 4 % within 200 rounds of 0.4 ms. */
static const struct fib_fake_script steep = {.drift_per_s = 0.5};

static void abba_cancels_drift(void **state)
{
    (void)state;
    enum { ROUNDS = 200, HALF = ROUNDS / 2 };
    struct fib_sample_rules rules = usual_rules();
    rules.window_count = ROUNDS;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fib_samples samples = sample_two(&steep, 0.0, 0.003, &rules, seed);
        const struct fib_series *a = &samples.series[0], *b = &samples.series[1];
        assert_string_equal(samples.interleave, "abba");
        const struct fib_paired paired = compare(&samples);
        assert_int_equal(paired.verdict, FIB_SAME);
        assert_true(fabs(paired.ratio - 1.0) <= 0.001);
        /* Teeth: a from the first half, b from the second, as if one had run after the other. */
        struct fib_paired unpaired;
        fib_stats_paired(a->call_ms, b->call_ms + HALF, HALF, margin, &unpaired);
        assert_true(unpaired.ratio - 1.0 > 0.003);
        assert_int_equal(unpaired.verdict, FIB_SLOWER);
        fib_samples_free(&samples);
    }
}

/* Half a per cent from each window to the next, no noise: only the order can save the ratio. */
static void order_cancels_steps(void **state)
{
    (void)state;
    static const struct fib_fake_script cliff = {.drift_per_s = 25.0};
    struct fib_sample_rules rules = usual_rules();
    rules.window_count = 8;
    struct fib_samples samples = sample_two(&cliff, 0.0, 0.0, &rules, 1);
    const struct fib_series *a = &samples.series[0], *b = &samples.series[1];
    assert_true(fabs(compare(&samples).ratio - 1.0) <= 0.001);
    for (size_t i = 0; i < a->count; i++) /* b is later, then earlier */
        assert_true(i % 2 == 0 ? b->call_ms[i] > 1.003 * a->call_ms[i]
                               : a->call_ms[i] > 1.003 * b->call_ms[i]);
    fib_samples_free(&samples);
}

static void drift_is_reported(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    struct fib_sample_rules rules = usual_rules();
    rules.window_count = COUNT;
    struct fib_samples samples = sample_two(&steep, 0.01, 0.003, &rules, 3);
    for (int arm = 0; arm < 2; arm++) {
        const struct fib_stats stats = describe(&samples.series[arm]);
        const double middle_s = samples.series[arm].at_s[COUNT / 2];
        const double truth = 100.0 * 0.5 / (1.0 + 0.5 * middle_s);
        assert_complete(&stats);
        assert_true(fabs(stats.drift_pct_per_s - truth) < 2.0);
        assert_true(stats.autocorrelation > 0.8);
        assert_int_equal(stats.outlier_count, 0);
    }
    const struct fib_paired paired = compare(&samples);
    assert_true(fabs(paired.ratio - 1.01) <= 0.001);
    assert_int_equal(paired.verdict, FIB_SLOWER);
    assert_true(paired.p <= 0.001);
    fib_samples_free(&samples);
}

/* ---- spikes ---- */

static void spikes_are_counted_and_kept(void **state)
{
    (void)state;
    enum { COUNT = 400, EVERY = 50 };
    struct sim sim = {.state = 9};
    double call_ms[EVERY];
    for (int i = 0; i < EVERY; i++)
        call_ms[i] = 0.25 * (1.0 + 0.004 * (sim_uniform(&sim) - 0.5));
    call_ms[17] = 0.75;
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = EVERY};
    struct fib_sample_rules rules = usual_rules();
    rules.window_count = COUNT;
    struct fib_samples samples = sample_script(&script, &rules);
    const struct fib_series *series = &samples.series[0];
    const struct fib_stats stats = describe(series);
    assert_int_equal(samples.calls_per_window, 1);
    assert_int_equal(series->count, COUNT);
    assert_int_equal(series->rejected_count, 0);
    assert_complete(&stats);
    assert_int_equal(stats.outlier_count, COUNT / EVERY);
    assert_true(stats.max == 0.75 && stats.count == COUNT);
    assert_true(fabs(stats.median - 0.25) < 0.0005);
    assert_true(fabs(stats.mean - 0.26) < 0.0005); /* one in 50 is 0.5 above */
    assert_true(stats.p95 < 0.251 && stats.p99 == 0.75);
    fib_samples_free(&samples);
}

/* ---- clock ---- */

/* One call of 0.5 ms at 1000 MHz in each window, whose clock is mhz[i % period]. */
static struct fib_samples sample_clock(const double *mhz, size_t period, int64_t count)
{
    static const double call_ms[] = {0.5};
    const struct fib_fake_script script = {
        .call_ms = call_ms, .call_count = 1, .mhz = mhz, .mhz_count = period};
    struct fib_sample_rules rules = usual_rules();
    rules.window_count = count;
    struct fib_samples samples = sample_script(&script, &rules);
    assert_int_equal(samples.calls_per_window, 1);
    assert_int_equal(samples.series[0].count, count);
    assert_int_equal(samples.series[0].rejected_count, 0);
    return samples;
}

static void throttled_windows_are_counted_and_kept(void **state)
{
    (void)state;
    enum { COUNT = 400, PERIOD = 20 };
    double mhz[PERIOD];
    for (int i = 0; i < PERIOD; i++)
        mhz[i] = i < 3 ? 1400 : 1980;
    mhz[10] = NAN; /* stamps that do not belong together */
    struct fib_samples samples = sample_clock(mhz, PERIOD, COUNT);
    const struct fib_series *series = &samples.series[0];
    size_t slow_count = 0, unknown_count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const bool unknown = isnan(series->mhz[i]);
        const double clock_mhz = unknown ? 1000 : series->mhz[i];
        slow_count += series->mhz[i] == 1400;
        unknown_count += unknown;
        assert_true(fabs(series->call_ms[i] * clock_mhz - 500.0) < 1e-9);
    }
    struct fib_clock clock;
    assert_true(fib_stats_clock(series->mhz, COUNT, &clock));
    assert_true(clock.unstable);
    assert_int_equal(clock.slow_count, slow_count);
    assert_int_equal(slow_count, COUNT * 3 / PERIOD);
    assert_int_equal(unknown_count, COUNT / PERIOD);
    assert_true(clock.min_mhz == 1400 && clock.max_mhz == 1980 && clock.median_mhz == 1980);
    const struct fib_stats stats = describe(series);
    assert_complete(&stats);
    assert_true(stats.count == COUNT && fabs(stats.median - 500.0 / 1980) < 1e-9);
    assert_int_equal(stats.outlier_count, slow_count + unknown_count); /* by time, not by clock */
    fib_samples_free(&samples);
}

static void even_clocks_are_stable(void **state)
{
    (void)state;
    static const double slow[] = {1400}, wobbling[] = {1980, 1960, 1990};
    struct fib_clock clock;
    struct fib_samples samples = sample_clock(slow, 1, 50);
    assert_true(fib_stats_clock(samples.series[0].mhz, 50, &clock));
    assert_true(!clock.unstable && clock.slow_count == 0);
    fib_samples_free(&samples);
    samples = sample_clock(wobbling, 3, 50);
    assert_true(fib_stats_clock(samples.series[0].mhz, 50, &clock));
    assert_true(!clock.unstable && clock.slow_count == 0);
    fib_samples_free(&samples);
}

/* ---- tick ---- */

/* Windows of 6.49 steps of the clock: 6 or 7, about equally often. */
static void coarse_tick_ends_the_run(void **state)
{
    (void)state;
    static const double call_ms[] = {0.25}, tick_ms = 0.0385;
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = 1, .tick_ms = tick_ms};
    const struct fib_sample_rules rules = usual_rules();
    struct fib_samples samples = sample_script(&script, &rules);
    const struct fib_series *series = &samples.series[0];
    const double calls = samples.calls_per_window;
    assert_int_equal(series->stop, FIB_STOP_TICK);
    assert_true(series->count >= 20);
    size_t six = 0, seven = 0;
    for (size_t i = 0; i < series->count; i++) {
        const double ticks = series->call_ms[i] * calls / tick_ms;
        six += fabs(ticks - 6) < 1e-9;
        seven += fabs(ticks - 7) < 1e-9;
    }
    assert_true(six > 0 && seven > 0 && six + seven == series->count);
    const struct fib_stats stats = describe(series);
    /* nothing passes between the windows, so that the steps add up */
    assert_true(fabs(stats.mean - 0.25) <= tick_ms / calls / (double)series->count);
    assert_true(isfinite(stats.ci_low) && isfinite(stats.std) && stats.std > 0);
    fib_samples_free(&samples);
}

static void equal_ticks_are_ties(void **state)
{
    (void)state;
    /* 12.1 steps to a window; of 12.5 the two arms would take turns with 12 and 13 */
    static const struct fib_fake_script script = {.tick_ms = 0.033};
    struct fib_sample_rules rules = usual_rules();
    rules.window_count = 100;
    struct fib_samples samples = sample_two(&script, 0.0, 0.003, &rules, 5);
    struct fib_paired paired = compare(&samples);
    assert_true(paired.tie_count >= 40 && paired.tie_count < 100);
    assert_int_equal(paired.verdict, FIB_SAME);
    assert_true(paired.ratio == 1.0 && paired.p > 0.01);
    fib_samples_free(&samples);
    /* three steps more are seen for what they are */
    samples = sample_two(&script, 0.25, 0.003, &rules, 5);
    paired = compare(&samples);
    assert_int_equal(paired.verdict, FIB_SLOWER);
    assert_true(fabs(paired.ratio - 1.25) < 0.01 && paired.tie_count == 0);
    fib_samples_free(&samples);
}

/* ---- waiting for a verdict ---- */

/* Calls of an arm until the sampler is content. */
static size_t calls_of(double effect, double wanted_margin, uint64_t seed, enum fib_stop *stop,
                       enum fib_verdict *verdict)
{
    static const struct fib_fake_script plain = {.call_ms = NULL};
    struct fib_sample_rules rules = usual_rules();
    rules.margin = wanted_margin;
    struct fib_samples samples = sample_two(&plain, effect, 0.01, &rules, seed);
    const size_t count = samples.series[0].count * samples.calls_per_window;
    assert_int_equal(samples.series[0].count, samples.series[1].count);
    *stop = samples.series[1].stop;
    *verdict = compare(&samples).verdict;
    fib_samples_free(&samples);
    return count;
}

static void sampling_waits_for_a_verdict(void **state)
{
    (void)state;
    enum fib_stop stop;
    enum fib_verdict verdict;
    const size_t alone = calls_of(0.0, 0.0, 2, &stop, &verdict);
    assert_int_equal(stop, FIB_STOP_PRECISION);
    assert_int_equal(verdict, FIB_UNRESOLVED);
    const size_t patient = calls_of(0.0, margin, 2, &stop, &verdict);
    assert_true(patient > alone);
    assert_int_equal(stop, FIB_STOP_PRECISION);
    assert_int_equal(verdict, FIB_SAME);
    /* a clear difference costs nothing */
    assert_true(calls_of(0.1, margin, 2, &stop, &verdict) < patient);
    assert_int_equal(verdict, FIB_SLOWER);
    /* one at the margin ends with the budget as a rule, and the reason says so */
    int open_count = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const size_t count = calls_of(margin, margin, seed, &stop, &verdict);
        assert_true(stop == FIB_STOP_BUDGET ? 0.2 * (double)count >= 199
                                            : verdict != FIB_UNRESOLVED);
        open_count += verdict == FIB_UNRESOLVED;
    }
    assert_true(open_count >= 12);
}

static double warmup_on(struct fib_device *device, const struct fib_sample_rules *rules)
{
    struct fib_samples samples;
    struct fib_error err = {0};
    const struct fib_arm arm = {.label = "a", .call = take_scripted_time};
    assert_int_equal(fib_sample_run(device, &arm, 1, rules, &samples, &err), FIB_OK);
    const double warmup_ms = samples.series[0].warmup_ms;
    assert_true(samples.series[0].settled);
    fib_samples_free(&samples);
    return warmup_ms;
}

/* The device's clocks are up when it has just worked for another case, not after a pause. */
static void the_next_case_finds_a_warm_device(void **state)
{
    (void)state;
    const double call_ms = 0.01;
    const struct fib_fake_script script = {.call_ms = &call_ms, .call_count = 1};
    struct fib_device *device = NULL;
    open_script(&script, &device);
    struct fib_sample_rules rules = usual_rules();
    rules.warmup_calls = FIB_UNSET_I64;
    assert_true(warmup_on(device, &rules) > 20);
    assert_true(warmup_on(device, &rules) < 5);
    fib_device_fake_advance(device, 60);
    assert_true(warmup_on(device, &rules) < 5);
    fib_device_fake_advance(device, 101);
    assert_true(warmup_on(device, &rules) > 20);
    rules.sustained = true;
    assert_true(warmup_on(device, &rules) >= 2000);
    fib_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(abba_cancels_drift),
        cmocka_unit_test(order_cancels_steps),
        cmocka_unit_test(drift_is_reported),
        cmocka_unit_test(spikes_are_counted_and_kept),
        cmocka_unit_test(throttled_windows_are_counted_and_kept),
        cmocka_unit_test(even_clocks_are_stable),
        cmocka_unit_test(coarse_tick_ends_the_run),
        cmocka_unit_test(equal_ticks_are_ties),
        cmocka_unit_test(sampling_waits_for_a_verdict),
        cmocka_unit_test(the_next_case_finds_a_warm_device),
    };
    return cmocka_run_group_tests_name("sample_truth", tests, NULL, NULL);
}
