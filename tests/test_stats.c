/* core/stats.c: percentiles, moments, intervals, the clock. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "tests/simulate.h"

static void assert_near(double found, double expected, double slack)
{
    if (!(fabs(found - expected) <= slack))
        fail_msg("%.9g, expected %.9g +- %.3g", found, expected, slack);
}

/* ---- percentiles ---- */

static void case_48_percentiles(void **state)
{
    (void)state;
    double samples[30];
    for (int i = 0; i < 30; i++)
        samples[i] = i + 1;
    assert_near(fib_stats_percentile(samples, 15, 0.95), 14.3, 1e-12);
    assert_near(fib_stats_percentile(samples, 30, 0.99), 29.71, 1e-12);
    struct fib_stats stats;
    fib_stats_compute((const double[]){1, 2, 3, 10}, NULL, 4, &stats);
    assert_near(stats.median, 2.5, 0.0);
    assert_near(stats.std, 3.535534, 5e-7);
    assert_near(stats.mean, 4.0, 0.0);
    assert_true(isnan(stats.p95) && isnan(stats.p99) && isnan(stats.p5));
}

/* The least n whose largest sample lies beyond p with the confidence: counted up. */
static void least_counts(void **state)
{
    (void)state;
    static const double confidences[] = {0.5, 0.9, 0.95, 0.99};
    for (size_t c = 0; c < 4; c++)
        for (int percent = 1; percent < 100; percent++) {
            const double p = percent / 100.0;
            size_t n = 1;
            for (double all_below = p; all_below > (1 - confidences[c]) * (1 + 1e-9);
                 all_below *= p)
                n++;
            assert_int_equal(fib_stats_least_count(p, confidences[c]), n);
        }
    assert_int_equal(fib_stats_least_count(0.95, 0.95), 59);
    assert_int_equal(fib_stats_least_count(0.99, 0.95), 299);
    assert_int_equal(fib_stats_least_count(0.99, 0.99), 459);
    assert_int_equal(fib_stats_least_count(0.5, 0.875), 3); /* a quotient without rest */
}

static void tails_need_enough_samples(void **state)
{
    (void)state;
    double samples[299];
    for (int i = 0; i < 299; i++)
        samples[i] = 299 - i;
    struct fib_stats stats;
    fib_stats_compute(samples, NULL, 58, &stats);
    assert_true(isnan(stats.p5) && isnan(stats.p95));
    fib_stats_compute(samples, NULL, 59, &stats); /* 241 .. 299 */
    assert_near(stats.p95, 241 + 0.95 * 58, 1e-9);
    assert_near(stats.p5, 241 + 0.05 * 58, 1e-9);
    fib_stats_compute(samples, NULL, 298, &stats);
    assert_true(isnan(stats.p99));
    fib_stats_compute(samples, NULL, 299, &stats);
    assert_near(stats.p99, 1 + 0.99 * 298, 1e-9);
}

/* Position by counting instead of sorting. */
static double nth_smallest(const double *samples, size_t count, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        size_t below = 0, equal = 0;
        for (size_t j = 0; j < count; j++) {
            below += samples[j] < samples[i];
            equal += samples[j] == samples[i];
        }
        if (below <= n && n < below + equal)
            return samples[i];
    }
    return NAN;
}

static void percentiles_against_counting(void **state)
{
    (void)state;
    struct sim sim = {.state = 3};
    double samples[40];
    for (size_t count = 1; count <= 40; count++) {
        for (size_t i = 0; i < count; i++)
            samples[i] = floor(10.0 * sim_uniform(&sim)); /* many ties */
        for (int step = 0; step <= 20; step++) {
            const double position = step / 20.0 * (double)(count - 1);
            const size_t low = (size_t)position;
            const size_t high = low + 1 < count ? low + 1 : low;
            const double a = nth_smallest(samples, count, low);
            const double b = nth_smallest(samples, count, high);
            assert_near(fib_stats_percentile(samples, count, step / 20.0),
                        a + (position - (double)low) * (b - a), 1e-9);
        }
    }
    assert_true(isnan(fib_stats_percentile(samples, 0, 0.5)));
}

/* The ends of the order-statistic interval are samples with so many below and above, and the ranks
 * are the narrowest with 95 %: a step further in would lose too much. */
static void order_interval_against_counting(void **state)
{
    (void)state;
    struct sim sim = {.state = 5};
    double samples[40];
    for (size_t count = 1; count <= 40; count++) {
        for (size_t i = 0; i < count; i++)
            samples[i] = floor(20.0 * sim_uniform(&sim));
        double choose = 1, below = 0; /* of 2^count halves: those with fewer than `rank` low */
        size_t rank = 0;
        while (40 * (below + choose) <= exp2((double)count)) {
            below += choose;
            choose *= (double)(count - rank) / (double)(rank + 1);
            rank++;
        }
        struct fib_stats stats;
        fib_stats_compute(samples, NULL, count, &stats);
        assert_int_equal(isnan(stats.order_low), rank == 0);
        assert_int_equal(rank == 0, count < 6);
        if (rank == 0)
            continue;
        assert_true(stats.order_low == nth_smallest(samples, count, rank - 1));
        assert_true(stats.order_high == nth_smallest(samples, count, count - rank));
    }
}

/* ---- one series ---- */

static void no_samples(void **state)
{
    (void)state;
    struct fib_stats stats;
    fib_stats_compute(NULL, NULL, 0, &stats);
    assert_int_equal(stats.count, 0);
    assert_true(isnan(stats.median) && isnan(stats.mean) && isnan(stats.std) && isnan(stats.mad));
    assert_true(isnan(stats.min) && isnan(stats.max) && isnan(stats.p25) && isnan(stats.p75));
    assert_true(isnan(stats.ci_low) && isnan(stats.ci_high) && !stats.ci_method);
    assert_true(isnan(stats.autocorrelation) && isnan(stats.drift_pct_per_s));
    assert_int_equal(stats.outlier_count, 0);
}

static void one_and_two_samples(void **state)
{
    (void)state;
    struct fib_stats stats;
    fib_stats_compute((const double[]){0.7}, (const double[]){1.0}, 1, &stats);
    assert_true(stats.median == 0.7 && stats.mean == 0.7 && stats.min == 0.7 && stats.max == 0.7);
    assert_true(stats.mad == 0.0 && isnan(stats.std) && isnan(stats.drift_pct_per_s));
    fib_stats_compute((const double[]){3.0, 1.0}, (const double[]){0.0, 1.0}, 2, &stats);
    assert_true(stats.median == 2.0 && stats.std == 1.0 && stats.mad == 1.0);
    assert_true(stats.min == 1.0 && stats.max == 3.0 && stats.p25 == 1.5 && stats.p75 == 2.5);
    assert_true(isnan(stats.autocorrelation) && isnan(stats.drift_pct_per_s));
    assert_true(isnan(stats.ci_low) && !stats.ci_method);
}

static void nan_never_reaches_the_extremes(void **state)
{
    (void)state;
    static const double samples[] = {NAN, 2.0, INFINITY, 1.0, NAN, -4.0, 3.0, -INFINITY};
    static const double times_s[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct fib_stats stats;
    fib_stats_compute(samples, times_s, 8, &stats);
    assert_int_equal(stats.count, 3);
    assert_true(stats.min == 1.0 && stats.max == 3.0 && stats.median == 2.0 && stats.mean == 2.0);
    static const double none[] = {NAN, NAN};
    fib_stats_compute(none, NULL, 2, &stats);
    assert_true(stats.count == 0 && isnan(stats.min));
}

static void equal_samples_have_no_spread(void **state)
{
    (void)state;
    double samples[64], times_s[64];
    for (int i = 0; i < 64; i++) {
        samples[i] = 0.1;
        times_s[i] = 0.01 * i;
    }
    struct fib_stats stats;
    fib_stats_compute(samples, times_s, 64, &stats);
    assert_true(stats.std == 0.0 && stats.mad == 0.0 && stats.mean == 0.1);
    assert_true(stats.ci_low == 0.1 && stats.ci_high == 0.1);
    assert_true(isnan(stats.autocorrelation));
    assert_true(stats.drift_pct_per_s == 0.0);
    fib_stats_compute(samples, samples, 64, &stats); /* all at the same time */
    assert_true(isnan(stats.drift_pct_per_s));
}

static void drift_autocorrelation_outliers(void **state)
{
    (void)state;
    double samples[101], times_s[101];
    for (int i = 0; i < 101; i++) {
        times_s[i] = 5.0 + 0.1 * i;
        samples[i] = 2.0 + 0.02 * (times_s[i] - 10.0); /* median 2, 1 % of it per second */
    }
    struct fib_stats stats;
    fib_stats_compute(samples, times_s, 101, &stats);
    assert_near(stats.drift_pct_per_s, 1.0, 1e-9);
    assert_true(stats.autocorrelation > 0.9);
    for (int i = 0; i < 101; i++)
        samples[i] = i % 2 ? 1.0 : 2.0;
    fib_stats_compute(samples, times_s, 101, &stats);
    assert_true(stats.autocorrelation < -0.9);
    for (int i = 0; i < 100; i++)
        samples[i] = 10.0 + i;
    samples[99] = 1000.0;
    samples[0] = 233.75; /* quartiles 35.75 and 85.25: exactly on the upper fence */
    fib_stats_compute(samples, NULL, 100, &stats);
    assert_int_equal(stats.outlier_count, 1);
    samples[0] = 233.8;
    fib_stats_compute(samples, NULL, 100, &stats);
    assert_int_equal(stats.outlier_count, 2);
    assert_true(stats.max == 1000.0);
}

/* ---- intervals ---- */

static void t_quantiles(void **state)
{
    (void)state;
    assert_true(isnan(fib_stats_t95(0)));
    assert_near(fib_stats_t95(1), 12.7062, 5e-5);
    assert_near(fib_stats_t95(4), 2.7764, 5e-5);
    assert_near(fib_stats_t95(9), 2.2622, 5e-5);
    assert_near(fib_stats_t95(20), 2.085963, 5e-6);
    assert_near(fib_stats_t95(21), 2.079614, 5e-6);
    assert_near(fib_stats_t95(30), 2.042272, 2e-6);
    assert_near(fib_stats_t95(100), 1.983972, 2e-6);
    assert_near(fib_stats_t95(1000000), 1.959966, 2e-6);
    for (size_t degrees = 1; degrees < 200; degrees++)
        assert_true(fib_stats_t95(degrees) > fib_stats_t95(degrees + 1));
}

static void batch_half_width_by_hand(void **state)
{
    (void)state;
    /* Two batches with medians 2 and 6: sd sqrt(8), half-width t(1) * sqrt(8 / 2). The remainder
     * joins the second batch, whose last one is then left out. */
    static const double samples[] = {1, 2, 3, 6, 5, 9, 7};
    assert_near(fib_stats_batch_half_width(samples, 7, 2), 12.706205 * 2.0, 1e-6);
    assert_true(isnan(fib_stats_batch_half_width(samples, 3, 2)));
    assert_true(isnan(fib_stats_batch_half_width(samples, 7, 4)));
    assert_true(isnan(fib_stats_batch_half_width(samples, 7, 1)));
}

static void interval_of_few_and_of_many(void **state)
{
    (void)state;
    struct fib_stats stats;
    double many[30];
    for (int i = 0; i < 30; i++)
        many[i] = 1.0 + i % 5;
    fib_stats_compute(many, NULL, 5, &stats);
    assert_true(!stats.ci_method && isnan(stats.ci_high) && isnan(stats.order_low));
    fib_stats_compute(many, NULL, 6, &stats); /* the first rank: all of them */
    assert_true(stats.ci_low == 1.0 && stats.ci_high == 5.0);
    fib_stats_compute(many, NULL, 19, &stats); /* ranks 5 and 15 of four 1 .. 4 and three 5 */
    assert_string_equal(stats.ci_method, "order-statistic");
    assert_true(stats.ci_low == 2.0 && stats.ci_high == 4.0);
    fib_stats_compute(many, NULL, 29, &stats);
    assert_string_equal(stats.ci_method, "order-statistic");
    fib_stats_compute(many, NULL, 30, &stats);
    assert_string_equal(stats.ci_method, "batch-median-t");
    assert_near((stats.ci_low + stats.ci_high) / 2, stats.median, 1e-12);
    assert_near(stats.ci_high - stats.median, fib_stats_batch_half_width(many, 30, 10), 1e-12);
    assert_true(stats.order_low == 2.0 && stats.order_high == 4.0); /* ranks 10 and 21 */
    double low, high;
    assert_null(fib_stats_interval(NULL, 0, &low, &high));
    assert_true(isnan(low) && isnan(high));
}

/* ---- clock ---- */

static void clocks(void **state)
{
    struct fib_clock clock;
    double mhz[20];
    (void)state;
    for (int i = 0; i < 20; i++)
        mhz[i] = i < 3 ? NAN : 1980;
    assert_true(fib_stats_clock(mhz, 20, &clock));
    assert_float_equal(clock.median_mhz, 1980, 0);
    assert_float_equal(clock.min_mhz, 1980, 0);
    assert_float_equal(clock.max_mhz, 1980, 0);
    assert_false(clock.unstable);
    mhz[5] = 1930; /* a range of 50 is 2.5 % */
    assert_true(fib_stats_clock(mhz, 20, &clock));
    assert_false(clock.unstable);
    mhz[6] = 1910; /* 3.5 % */
    assert_true(fib_stats_clock(mhz, 20, &clock));
    assert_true(clock.unstable);
    assert_int_equal(clock.slow_count, 0); /* both above 0.95 x 1980 = 1881 */
    mhz[6] = 1881;
    mhz[7] = 1880;
    mhz[8] = -INFINITY; /* no clock */
    assert_true(fib_stats_clock(mhz, 20, &clock));
    assert_int_equal(clock.slow_count, 1);
    assert_float_equal(clock.min_mhz, 1880, 0);
    /* case 45: throttled for ever, but evenly */
    for (int i = 0; i < 20; i++)
        mhz[i] = 1170 + i % 2;
    assert_true(fib_stats_clock(mhz, 20, &clock));
    assert_false(clock.unstable);
    for (int i = 0; i < 20; i++)
        mhz[i] = NAN;
    assert_false(fib_stats_clock(mhz, 20, &clock));
    assert_false(fib_stats_clock(mhz, 0, &clock));
    assert_false(clock.unstable);
}

static void gcd_of_clock_steps(void **state)
{
    (void)state;
    assert_int_equal(fib_stats_gcd(12, 18), 6);
    assert_int_equal(fib_stats_gcd(18, 12), 6);
    assert_int_equal(fib_stats_gcd(7, 0), 7);
    assert_int_equal(fib_stats_gcd(0, 0), 0);
    assert_int_equal(fib_stats_gcd(UINT64_MAX, 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gcd_of_clock_steps),
        cmocka_unit_test(clocks),
        cmocka_unit_test(case_48_percentiles),
        cmocka_unit_test(least_counts),
        cmocka_unit_test(tails_need_enough_samples),
        cmocka_unit_test(percentiles_against_counting),
        cmocka_unit_test(order_interval_against_counting),
        cmocka_unit_test(no_samples),
        cmocka_unit_test(one_and_two_samples),
        cmocka_unit_test(nan_never_reaches_the_extremes),
        cmocka_unit_test(equal_samples_have_no_spread),
        cmocka_unit_test(drift_autocorrelation_outliers),
        cmocka_unit_test(t_quantiles),
        cmocka_unit_test(batch_half_width_by_hand),
        cmocka_unit_test(interval_of_few_and_of_many),
    };
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
