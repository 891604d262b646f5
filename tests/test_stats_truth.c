/* Intervals and verdicts against simulations whose truth is known. Seeds are fixed; the bounds are
 * several standard errors of the number of trials away from what the methods are meant to do.
 * What was found is printed, for docs/metrics.md. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/stats.h"
#include "tests/simulate.h"

static const double margin = 0.005;
/* Drift of the noise model that docs/metrics.md speaks of, and a tenth of a per cent. */
static const double usual_drift = 0.003, small_drift = 0.001;

static void expect_share(const char *what, double found, double low, double high)
{
    print_message("%s: %.2f %%\n", what, 100 * found);
    if (!(found >= low && found <= high))
        fail_msg("%s: %.2f %%, expected %.2f .. %.2f", what, 100 * found, 100 * low, 100 * high);
}

/* ---- the median of one series ---- */

enum noise { NORMAL, LOGNORMAL, EXPONENTIAL, SPIKES, SMALL_DRIFT, USUAL_DRIFT };

static double truth_of(enum noise noise)
{
    switch (noise) {
    case NORMAL:
        return 100.0;
    case LOGNORMAL:
        return 1.0;
    case EXPONENTIAL:
        return log(2.0);
    default:
        return sim_window_median();
    }
}

static double draw(struct sim *sim, enum noise noise)
{
    switch (noise) {
    case NORMAL:
        return 100.0 + sim_normal(sim);
    case LOGNORMAL:
        return exp(0.5 * sim_normal(sim));
    case EXPONENTIAL:
        return sim_exponential(sim);
    case SPIKES:
        return sim_window(sim, 0.0);
    case SMALL_DRIFT:
        return sim_window(sim, small_drift);
    case USUAL_DRIFT:
        break;
    }
    return sim_window(sim, usual_drift);
}

/* Shares of trials whose interval holds the true median. */
struct coverage {
    double shown; /* ci_low .. ci_high */
    double order; /* order_low .. order_high */
    double naive; /* mean +- 1.96 standard errors: a wrong method, for the teeth */
};

static bool holds(double low, double high, double truth)
{
    return low <= truth && truth <= high;
}

static struct coverage cover(enum noise noise, size_t count, int trials)
{
    struct sim sim = {.state = 1000 * noise + count};
    const double truth = truth_of(noise);
    int shown = 0, order = 0, naive = 0;
    double *const samples = malloc(count * sizeof(*samples));
    assert_non_null(samples);
    for (int trial = 0; trial < trials; trial++) {
        struct fib_stats stats;
        sim.drift = sim_normal(&sim);
        for (size_t i = 0; i < count; i++)
            samples[i] = draw(&sim, noise);
        fib_stats_compute(samples, NULL, count, &stats);
        const double half = 1.96 * stats.std / sqrt((double)count);
        shown += holds(stats.ci_low, stats.ci_high, truth);
        order += holds(stats.order_low, stats.order_high, truth);
        naive += holds(stats.mean - half, stats.mean + half, truth);
    }
    free(samples);
    return (struct coverage){.shown = shown / (double)trials,
                             .order = order / (double)trials,
                             .naive = naive / (double)trials};
}

/* What the ranks' exact interval of `count` independent samples covers. */
static double exact_coverage(size_t count)
{
    const size_t rank = fib_stats_sign_rank(count, 0.05);
    double below = 0;
    for (size_t i = 0; i < rank; i++)
        below += exp(lgamma((double)count + 1) - lgamma((double)i + 1) -
                     lgamma((double)(count - i) + 1) - (double)count * log(2.0));
    return 1 - 2 * below;
}

/* Both intervals of the median, 93 .. 97 %, whatever the distribution. */
static void cover_independent(enum noise noise, const char *name)
{
    static const size_t counts[] = {20, 50, 100, 400, 1000};
    static const int trials[] = {6000, 8000, 6000, 2000, 1000};
    int naive_right = 0;
    for (int c = 0; c < 5; c++) {
        const struct coverage covered = cover(noise, counts[c], trials[c]);
        char what[64];
        snprintf(what, sizeof(what), "%s, n = %zu, shown", name, counts[c]);
        expect_share(what, covered.shown, 0.93, 0.97);
        snprintf(what, sizeof(what), "%s, n = %zu, order statistics", name, counts[c]);
        expect_share(what, covered.order, 0.93, 0.97);
        assert_true(exact_coverage(counts[c]) >= 0.95 && exact_coverage(counts[c]) < 0.97);
        naive_right += covered.naive >= 0.93 && covered.naive <= 0.97;
    }
    /* Teeth: the mean and its normal approximation pass only where the mean is the median. */
    if (noise == NORMAL)
        assert_int_equal(naive_right, 5);
    else
        assert_true(naive_right < 5);
}

static void median_of_normal(void **state)
{
    (void)state;
    cover_independent(NORMAL, "normal");
}

static void median_of_lognormal(void **state)
{
    (void)state;
    cover_independent(LOGNORMAL, "lognormal");
}

static void median_of_exponential(void **state)
{
    (void)state;
    cover_independent(EXPONENTIAL, "exponential");
}

static void median_of_spikes(void **state)
{
    (void)state;
    cover_independent(SPIKES, "1 % spikes");
}

/* The ranks are whole numbers, so few samples are covered more often than 95 %: by how much is
 * known exactly. */
static void few_samples_are_on_the_safe_side(void **state)
{
    (void)state;
    for (size_t count = 6; count < 30; count++) {
        const double exact = exact_coverage(count);
        assert_true(exact >= 0.95 && exact < (count < 20 ? 0.9925 : 0.9835));
        const double slack = 5 * sqrt(exact * (1 - exact) / 1500);
        const struct coverage covered = cover(EXPONENTIAL, count, 1500);
        char what[64];
        snprintf(what, sizeof(what), "n = %zu, exactly %.2f", count, 100 * exact);
        expect_share(what, covered.shown, exact - slack, exact + slack);
    }
}

/* The length of a batch must not matter, nor what the last one takes over. */
static void batches_of_any_length(void **state)
{
    (void)state;
    static const size_t counts[] = {30, 36, 40, 50, 59, 60, 80, 160};
    for (int c = 0; c < 8; c++) {
        char what[64];
        snprintf(what, sizeof(what), "normal, n = %zu", counts[c]);
        expect_share(what, cover(NORMAL, counts[c], 3000).shown, 0.93, 0.97);
    }
}

/* Slow drift: no interval of one run holds the long-run median as often as it says. The figures of
 * docs/metrics.md. */
static void drift_breaks_single_series(void **state)
{
    (void)state;
    static const struct {
        enum noise noise;
        size_t count;
        int trials;
        double low, high;
    } rows[] = {{SMALL_DRIFT, 20, 2000, 0.80, 0.89},  {SMALL_DRIFT, 100, 2000, 0.68, 0.78},
                {SMALL_DRIFT, 400, 1000, 0.76, 0.86}, {USUAL_DRIFT, 20, 2000, 0.43, 0.53},
                {USUAL_DRIFT, 100, 2000, 0.45, 0.55}, {USUAL_DRIFT, 400, 1000, 0.67, 0.77}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct coverage covered = cover(rows[i].noise, rows[i].count, rows[i].trials);
        char what[64];
        snprintf(what, sizeof(what), "drift %.1f %%, n = %zu",
                 rows[i].noise == SMALL_DRIFT ? 0.1 : 0.3, rows[i].count);
        expect_share(what, covered.shown, rows[i].low, rows[i].high);
        if (rows[i].count >= 100) /* why batch medians are shown and not order statistics */
            assert_true(covered.order < covered.shown);
    }
}

/* ---- pairs under drift ---- */

/* How many of the trials ended with each verdict, and how many intervals held the effect. */
struct tally {
    double share[4]; /* by fib_verdict */
    double covered;
};

/* How the windows of two arms are laid out in time. */
enum layout { PAIRED, SEPARATE_RUNS };

static struct tally verdicts(enum layout layout, double effect, size_t count, int trials)
{
    struct sim sim = {.state = 7 * count + (uint64_t)(1e6 * effect)};
    int found[4] = {0}, covered = 0;
    double a[400], b[400];
    for (int trial = 0; trial < trials; trial++) {
        struct fib_paired paired;
        sim.drift = sim_normal(&sim);
        if (layout == PAIRED) {
            sim_rounds(&sim, usual_drift, effect, count, a, b);
        } else {
            for (size_t i = 0; i < count; i++)
                a[i] = sim_window(&sim, usual_drift);
            sim.drift = sim_normal(&sim);
            for (size_t i = 0; i < count; i++)
                b[i] = (1 + effect) * sim_window(&sim, usual_drift);
        }
        fib_stats_paired(a, b, count, margin, &paired);
        found[paired.verdict]++;
        covered += holds(paired.ratio_low, paired.ratio_high, 1 + effect);
    }
    struct tally tally = {.covered = covered / (double)trials};
    for (int verdict = 0; verdict < 4; verdict++)
        tally.share[verdict] = found[verdict] / (double)trials;
    return tally;
}

static void paired_interval_covers(void **state)
{
    (void)state;
    static const size_t counts[] = {20, 30, 52, 100, 400};
    for (size_t c = 0; c < 5; c++) {
        const int trials = counts[c] < 400 ? 4000 : 1000;
        const struct tally tally = verdicts(PAIRED, 0.01, counts[c], trials);
        char what[64];
        snprintf(what, sizeof(what), "ratio under drift, %zu rounds", counts[c]);
        expect_share(what, tally.covered, 0.94, 0.98);
    }
    /* Teeth: the same noise in two runs, one for each arm. */
    expect_share("the same unpaired", verdicts(SEPARATE_RUNS, 0.01, 100, 2000).covered, 0.0, 0.6);
}

static void equal_arms_are_not_told_apart(void **state)
{
    (void)state;
    static const size_t counts[] = {20, 30, 60, 100};
    for (size_t c = 0; c < 4; c++) {
        const struct tally tally = verdicts(PAIRED, 0.0, counts[c], 4000);
        char what[64];
        snprintf(what, sizeof(what), "false verdicts, %zu rounds", counts[c]);
        expect_share(what, tally.share[FIB_FASTER] + tally.share[FIB_SLOWER], 0.0, 0.01);
        if (counts[c] >= 60)
            expect_share("SAME", tally.share[FIB_SAME], 0.95, 1.0);
    }
    /* Teeth: measured in two runs, they are told apart more often than 1 %. */
    const struct tally tally = verdicts(SEPARATE_RUNS, 0.0, 30, 2000);
    expect_share("false verdicts unpaired", tally.share[FIB_FASTER] + tally.share[FIB_SLOWER], 0.02,
                 1.0);
}

static void differences_are_found(void **state)
{
    (void)state;
    expect_share("+1 % found in 100 rounds", verdicts(PAIRED, 0.01, 100, 2000).share[FIB_SLOWER],
                 0.95, 1.0);
    expect_share("+1 % found in 60 rounds", verdicts(PAIRED, 0.01, 60, 2000).share[FIB_SLOWER],
                 0.95, 1.0);
    expect_share("-1 % found in 100 rounds", verdicts(PAIRED, -0.01, 100, 2000).share[FIB_FASTER],
                 0.95, 1.0);
    expect_share("+2 % found in 100 rounds", verdicts(PAIRED, 0.02, 100, 2000).share[FIB_SLOWER],
                 0.999, 1.0);
    const struct tally quarter = verdicts(PAIRED, 0.0025, 100, 4000);
    expect_share("+0.25 % called SLOWER", quarter.share[FIB_SLOWER] + quarter.share[FIB_FASTER],
                 0.0, 0.0);
    /* at the margin itself: at most half of the 5 % that the interval misses */
    const struct tally edge = verdicts(PAIRED, margin, 100, 4000);
    expect_share("+0.5 % called SLOWER", edge.share[FIB_SLOWER], 0.0, 0.035);
    expect_share("+0.5 % open", edge.share[FIB_UNRESOLVED], 0.9, 1.0);
}

/* An effect so far beyond the margin as `mde` says is found four times out of five. */
static void detectable_effects_are_found(void **state)
{
    (void)state;
    static const size_t counts[] = {30, 100};
    double a[100], b[100];
    for (size_t c = 0; c < 2; c++) {
        struct sim sim = {.state = counts[c]};
        double mde = 0;
        for (int trial = 0; trial < 500; trial++) {
            struct fib_paired paired;
            sim_rounds(&sim, usual_drift, 0.0, counts[c], a, b);
            fib_stats_paired(a, b, counts[c], margin, &paired);
            mde += paired.mde / 500;
        }
        const double effect = (1 + margin) * (1 + mde) - 1;
        const struct tally tally = verdicts(PAIRED, effect, counts[c], 2000);
        char what[64];
        snprintf(what, sizeof(what), "mde %.3f %% in %zu rounds found", 100 * mde, counts[c]);
        expect_share(what, tally.share[FIB_SLOWER], 0.72, 0.92);
    }
}

/* Looks at the growing series each 10 rounds from 30 to 400 and ends at the first word. */
static bool ends_with_a_difference(const double *a, const double *b, double wanted_margin)
{
    for (size_t count = 30; count <= 400; count += 10) {
        struct fib_paired paired;
        fib_stats_paired(a, b, count, wanted_margin, &paired);
        if (paired.verdict == FIB_SLOWER || paired.verdict == FIB_FASTER)
            return true;
        if (paired.verdict == FIB_SAME)
            return false;
    }
    return false;
}

/* Ending at a verdict with a margin does no harm; ending as soon as 0 is outside the interval makes
 * a difference out of nothing in every fourth run. */
static void looking_often_is_safe_with_a_margin(void **state)
{
    (void)state;
    enum { TRIALS = 500 };
    struct sim sim = {.state = 12};
    int with = 0, without = 0;
    double a[400], b[400];
    for (int trial = 0; trial < TRIALS; trial++) {
        sim_rounds(&sim, usual_drift, 0.0, 400, a, b);
        with += ends_with_a_difference(a, b, margin);
        without += ends_with_a_difference(a, b, 0.0);
    }
    expect_share("false verdicts, ending at the first", with / (double)TRIALS, 0.0, 0.01);
    expect_share("the same without a margin", without / (double)TRIALS, 0.15, 0.35);
}

/* `rounds_needed` is advice: of the runs left open, most are decided with that many rounds. */
static void advised_rounds_decide(void **state)
{
    (void)state;
    struct sim sim = {.state = 21};
    double a[400], b[400];
    int open = 0, decided = 0, asked = 0;
    for (int trial = 0; trial < 3000; trial++) {
        struct fib_paired paired;
        sim_rounds(&sim, usual_drift, 0.003, 20, a, b);
        fib_stats_paired(a, b, 20, margin, &paired);
        if (paired.verdict != FIB_UNRESOLVED)
            continue;
        open++;
        if (paired.rounds_needed > 400)
            continue;
        const size_t count = (size_t)paired.rounds_needed;
        asked++;
        sim_rounds(&sim, usual_drift, 0.003, count, a, b);
        fib_stats_paired(a, b, count, margin, &paired);
        decided += paired.verdict != FIB_UNRESOLVED;
    }
    assert_true(open > 300 && asked > open / 2);
    expect_share("decided with the rounds advised", decided / (double)asked, 0.4, 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_of_normal),
        cmocka_unit_test(median_of_lognormal),
        cmocka_unit_test(median_of_exponential),
        cmocka_unit_test(median_of_spikes),
        cmocka_unit_test(few_samples_are_on_the_safe_side),
        cmocka_unit_test(batches_of_any_length),
        cmocka_unit_test(drift_breaks_single_series),
        cmocka_unit_test(paired_interval_covers),
        cmocka_unit_test(equal_arms_are_not_told_apart),
        cmocka_unit_test(differences_are_found),
        cmocka_unit_test(detectable_effects_are_found),
        cmocka_unit_test(looking_often_is_safe_with_a_margin),
        cmocka_unit_test(advised_rounds_decide),
    };
    return cmocka_run_group_tests_name("stats_truth", tests, NULL, NULL);
}
