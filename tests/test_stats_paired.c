/* core/stats_paired.c: ranks, intervals of a ratio, verdicts, the sign-flip test. */
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

/* ---- ranks ---- */

static void sign_ranks(void **state)
{
    (void)state;
    static const size_t table[][2] = {{1, 0},   {5, 0},    {6, 1},   {8, 1},   {12, 3},
                                      {16, 4},  {20, 6},   {30, 10}, {40, 14}, {52, 19},
                                      {64, 24}, {100, 40}, {200, 86}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(fib_stats_sign_rank(table[i][0], 0.05), table[i][1]);
    assert_int_equal(fib_stats_sign_rank(0, 0.05), 0);
    /* 2 * 2^-5 is alpha exactly: still inside */
    assert_int_equal(fib_stats_sign_rank(5, 0.0625), 1);
    assert_int_equal(fib_stats_sign_rank(8, 0.005), 0);
    assert_int_equal(fib_stats_sign_rank(9, 0.005), 1);
    /* worked with whole numbers up to 20000, with 40 digits above */
    static const size_t large[][2] = {{1000, 469},      {1001, 470},      {4096, 1985},
                                      {10000, 4902},    {20000, 9861},    {100000, 49690},
                                      {262144, 130570}, {1000000, 499020}};
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        assert_int_equal(fib_stats_sign_rank(large[i][0], 0.05), large[i][1]);
}

/* Binomial tails from Pascal's triangle: additions and halves only. */
static void ranks_against_pascal(void **state)
{
    (void)state;
    enum { MOST = 600 };
    static const double alphas[] = {0.05, 0.01, 0.32};
    double row[MOST + 1] = {1.0};
    for (size_t n = 1; n <= MOST; n++) {
        for (size_t i = n; i > 0; i--)
            row[i] = (row[i] + row[i - 1]) / 2.0;
        row[0] /= 2.0;
        for (size_t a = 0; a < 3; a++) {
            size_t rank = 0;
            for (double tail = row[0]; 2.0 * tail <= alphas[a]; tail += row[rank])
                rank++;
            assert_int_equal(fib_stats_sign_rank(n, alphas[a]), rank);
        }
    }
}

/* ---- pairs ---- */

/* b = a * (1 + effect), both with noise and a common drift. */
static struct fib_paired synthetic(size_t count, double effect, double noise)
{
    double a[200], b[200];
    struct sim sim = {.state = 17};
    for (size_t i = 0; i < count; i++) {
        const double drift = 1.0 + 0.02 * sin(0.3 * (double)i);
        a[i] = 0.5 * drift * (1.0 + noise * sim_normal(&sim));
        b[i] = 0.5 * drift * (1.0 + effect) * (1.0 + noise * sim_normal(&sim));
    }
    struct fib_paired paired;
    fib_stats_paired(a, b, count, 0.005, &paired);
    return paired;
}

static void paired_verdicts(void **state)
{
    (void)state;
    struct fib_paired paired = synthetic(60, 0.0, 0.003);
    assert_int_equal(paired.verdict, FIB_SAME);
    assert_int_equal(paired.round_count, 60);
    assert_near(paired.ratio, 1.0, 0.003);
    paired = synthetic(60, 0.01, 0.003);
    assert_int_equal(paired.verdict, FIB_SLOWER);
    assert_true(paired.ratio_low > 1.005 && paired.ratio_low <= paired.ratio &&
                paired.ratio <= paired.ratio_high);
    assert_int_equal(synthetic(60, -0.01, 0.003).verdict, FIB_FASTER);
    assert_int_equal(synthetic(30, 0.0, 0.05).verdict, FIB_UNRESOLVED);
    assert_int_equal(synthetic(5, 0.5, 0.001).verdict, FIB_UNRESOLVED); /* too few rounds */
    assert_true(isnan(synthetic(5, 0.5, 0.001).ratio_low));
    assert_near(synthetic(5, 0.5, 0.001).ratio, 1.5, 0.01);
}

static void paired_by_hand(void **state)
{
    (void)state;
    static const double a[] = {1, 1, 1, 1, 1, 1, NAN, 0, 1};
    static const double b[] = {2, 2, 4, 2, 2, 1, 1, 1, -1};
    struct fib_paired paired;
    fib_stats_paired(a, b, 9, 0.01, &paired);
    assert_int_equal(paired.round_count, 6); /* three rounds lack a usable sample */
    assert_near(paired.ratio, 2.0, 1e-12);
    assert_near(paired.ratio_low, 1.0, 1e-12);
    assert_near(paired.ratio_high, 4.0, 1e-12);
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
    struct fib_paired mirrored;
    fib_stats_paired(b, a, 6, 0.01, &mirrored);
    assert_near(mirrored.ratio, 0.5, 1e-12);
    assert_near(mirrored.ratio_low, 0.25, 1e-12);
    fib_stats_paired(a, a, 6, 0.0, &paired); /* ties: no margin needed to call them the same */
    assert_int_equal(paired.verdict, FIB_SAME);
    fib_stats_paired(a, b, 0, 0.01, &paired);
    assert_true(paired.round_count == 0 && isnan(paired.ratio));
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
}

static void verdict_names(void **state)
{
    (void)state;
    assert_string_equal(fib_verdict_name(FIB_SAME), "SAME");
    assert_string_equal(fib_verdict_name(FIB_FASTER), "FASTER");
    assert_string_equal(fib_verdict_name(FIB_SLOWER), "SLOWER");
    assert_string_equal(fib_verdict_name(FIB_UNRESOLVED), "UNRESOLVED");
}

/* ---- what more rounds would tell ---- */

/* Nine rounds with d = 0, 1, .. 8 in units of `step`: ranks 2 and 8, d = 4, half-width 3. */
static struct fib_paired staircase(double step, double margin)
{
    double a[9], b[9];
    for (int i = 0; i < 9; i++) {
        a[i] = 0.25;
        b[i] = 0.25 * exp(step * i);
    }
    struct fib_paired paired;
    fib_stats_paired(a, b, 9, margin, &paired);
    assert_near(paired.ratio, exp(4 * step), 1e-12);
    assert_near(paired.ratio_low, exp(step > 0 ? step : 7 * step), 1e-12);
    assert_near(paired.ratio_high, exp(step > 0 ? 7 * step : step), 1e-12);
    return paired;
}

static void rounds_needed_by_hand(void **state)
{
    (void)state;
    /* half-width 3, distance |4 - 2|: 9 x (3 / 2)^2 = 20.25 */
    struct fib_paired paired = staircase(0.001, expm1(0.002));
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
    assert_near(paired.rounds_needed, 21, 0);
    /* from below: |4 - 6.5| = 2.5; 9 x 1.44 = 12.96 */
    paired = staircase(-0.001, expm1(0.0065));
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
    assert_near(paired.rounds_needed, 13, 0);
    /* on the edge no number helps */
    paired = staircase(0.001, expm1(0.004));
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
    assert_near(paired.rounds_needed, FIB_MAX_ROUNDS_NEEDED, 0);
    /* decided */
    assert_true(isnan(staircase(0.001, expm1(0.0005)).rounds_needed));
    assert_true(isnan(staircase(0.001, expm1(0.008)).rounds_needed));
}

/* The formula would be content with fewer rounds than there were: one more is the least. */
static void rounds_needed_exceed_those_at_hand(void **state)
{
    (void)state;
    static const double a[] = {1, 1, 1, 1, 1, 1};
    static const double b[] = {1.001, 1.02, 1.02, 1.02, 1.02, 1.021}; /* d 2 %, half-width 1 % */
    struct fib_paired paired;
    fib_stats_paired(a, b, 6, 0.005, &paired);
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
    assert_near(paired.rounds_needed, 7, 0);
    fib_stats_paired(a, b, 5, 0.005, &paired); /* no interval */
    assert_true(isnan(paired.rounds_needed) && isnan(paired.mde));
}

/* 3.5 sd / sqrt(n) for normal noise: 0.15 % for 100 rounds with sd 0.42 %; spikes change little. */
static void detectable_effect(void **state)
{
    (void)state;
    enum { COUNT = 100, TRIALS = 200 };
    struct sim sim = {.state = 8};
    double a[COUNT], b[COUNT], mean[2] = {0, 0};
    for (int spikes = 0; spikes < 2; spikes++)
        for (int trial = 0; trial < TRIALS; trial++) {
            struct fib_paired paired;
            for (int i = 0; i < COUNT; i++) {
                a[i] = exp(0.003 * sim_normal(&sim));
                b[i] = exp(0.003 * sim_normal(&sim) + (spikes && i % 50 == 0 ? 0.02 : 0.0));
            }
            fib_stats_paired(a, b, COUNT, 0.005, &paired);
            mean[spikes] += paired.mde / TRIALS;
        }
    assert_near(mean[0], 3.5 * 0.003 * sqrt(2.0) / sqrt(COUNT), 0.0002);
    assert_near(mean[1], mean[0], 0.0002);
}

static void ties_are_counted(void **state)
{
    (void)state;
    static const double a[] = {3.2e-3, 3.2e-3, 3.232e-3, 3.2e-3, 3.2e-3, 3.2e-3, NAN, 0};
    static const double b[] = {3.2e-3, 3.2e-3, 3.2e-3, 3.232e-3, 3.2e-3, 3.2e-3, NAN, 0};
    struct fib_paired paired;
    fib_stats_paired(a, b, 8, 0.02, &paired);
    assert_int_equal(paired.round_count, 6);
    assert_int_equal(paired.tie_count, 4);
    assert_true(paired.ratio == 1.0);
    assert_int_equal(paired.verdict, FIB_SAME);
    assert_near(paired.margin, 0.02, 0);
}

static void infinite_and_missing_samples(void **state)
{
    (void)state;
    static const double a[] = {NAN, 1, INFINITY, 1, -1, 0, 1e-308, -INFINITY};
    static const double b[] = {1, NAN, 1, INFINITY, -1, 0, 1e308, -INFINITY};
    struct fib_paired paired;
    fib_stats_paired(a, b, 8, 0.005, &paired);
    fib_stats_paired_test(a, b, 8, &paired);
    assert_int_equal(paired.round_count, 0); /* the last ratio but one overflows */
    assert_true(isnan(paired.ratio) && isnan(paired.p) && isnan(paired.ratio_low));
    assert_int_equal(paired.verdict, FIB_UNRESOLVED);
    fib_stats_paired(a + 1, a + 3, 1, 0.005, &paired);
    fib_stats_paired_test(a + 1, a + 3, 1, &paired);
    assert_true(paired.round_count == 1 && paired.ratio == 1.0 && paired.p == 1.0);
    assert_true(isnan(paired.mde));
    fib_stats_paired(NULL, NULL, 0, 0.005, &paired);
    fib_stats_paired_test(NULL, NULL, 0, &paired);
    assert_true(isnan(paired.p));
}

/* ---- sign-flip test ---- */

static void sign_flip_by_hand(void **state)
{
    (void)state;
    /* all one way: of the 2^n patterns only this one and its mirror image go as far */
    assert_near(fib_stats_sign_flip((const double[]){1, 2, 3}, 3), 2.0 / 8, 1e-15);
    assert_near(fib_stats_sign_flip((const double[]){-1, -1, -1, -1, -1, -1}, 6), 2.0 / 64, 1e-15);
    assert_near(fib_stats_sign_flip((const double[]){1, -1}, 2), 1.0, 0);
    /* |4 - 1| = 3: reached by 4 - 1, 4 + 1 and their mirror images, that is by all */
    assert_near(fib_stats_sign_flip((const double[]){4, -1}, 2), 1.0, 0);
    /* 5 + 2 - 1 = 6: 5 + 2 - 1 and 5 + 2 + 1 of four */
    assert_near(fib_stats_sign_flip((const double[]){5, 2, -1}, 3), 0.5, 1e-15);
    assert_near(fib_stats_sign_flip((const double[]){0, 0, 0}, 3), 1.0, 0);
    assert_true(isnan(fib_stats_sign_flip(NULL, 0)));
}

static size_t count_as_far(const double *d, size_t count, double sum, double limit)
{
    if (count == 0)
        return fabs(sum) >= limit - 1e-9;
    return count_as_far(d + 1, count - 1, sum + d[0], limit) +
           count_as_far(d + 1, count - 1, sum - d[0], limit);
}

static void sign_flip_against_all_patterns(void **state)
{
    (void)state;
    struct sim sim = {.state = 4};
    double d[17];
    for (size_t count = 1; count <= 17; count++)
        for (int trial = 0; trial < 8; trial++) {
            double sum = 0;
            for (size_t i = 0; i < count; i++) {
                d[i] = 0.4 + sim_normal(&sim);
                sum += d[i];
            }
            const double share =
                (double)count_as_far(d, count, 0, fabs(sum)) / (double)((size_t)1 << count);
            /* 17 are drawn: four standard errors of 10000 draws */
            const double slack = count <= 16 ? 1e-12 : 4 * sqrt(share * (1 - share) / 1e4) + 1e-4;
            assert_near(fib_stats_sign_flip(d, count), share, slack);
            assert_near(fib_stats_sign_flip(d, count), fib_stats_sign_flip(d, count), 0);
        }
}

/* Without a difference p is as likely small as its value says, also where signs are drawn, and
 * where rounds flip in runs; with a clear one it is as small as 10000 draws can say. */
static void sign_flip_keeps_its_level(void **state)
{
    (void)state;
    static const size_t counts[] = {12, 50, 3000};
    static const int trials[] = {2000, 1000, 300};
    struct sim sim = {.state = 6};
    double *const d = malloc(3000 * sizeof(*d));
    assert_non_null(d);
    for (size_t c = 0; c < 3; c++) {
        int below = 0;
        for (int trial = 0; trial < trials[c]; trial++) {
            for (size_t i = 0; i < counts[c]; i++)
                d[i] = sim_normal(&sim);
            below += fib_stats_sign_flip(d, counts[c]) <= 0.05;
        }
        assert_near((double)below / trials[c], 0.05, 4 * sqrt(0.05 * 0.95 / trials[c]));
        for (size_t i = 0; i < counts[c]; i++)
            d[i] = 5 + sim_normal(&sim);
        const double p = fib_stats_sign_flip(d, counts[c]);
        assert_near(p, counts[c] <= 16 ? 2.0 / 4096 : 1.0 / 10001, 1e-12);
    }
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sign_ranks),
        cmocka_unit_test(ranks_against_pascal),
        cmocka_unit_test(paired_verdicts),
        cmocka_unit_test(paired_by_hand),
        cmocka_unit_test(verdict_names),
        cmocka_unit_test(rounds_needed_by_hand),
        cmocka_unit_test(rounds_needed_exceed_those_at_hand),
        cmocka_unit_test(detectable_effect),
        cmocka_unit_test(ties_are_counted),
        cmocka_unit_test(infinite_and_missing_samples),
        cmocka_unit_test(sign_flip_by_hand),
        cmocka_unit_test(sign_flip_against_all_patterns),
        cmocka_unit_test(sign_flip_keeps_its_level),
    };
    return cmocka_run_group_tests_name("stats_paired", tests, NULL, NULL);
}
