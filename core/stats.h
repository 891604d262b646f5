/* Statistics of one series of samples and of paired series. All of it works on plain arrays.
 *
 * Percentiles interpolate linearly between order statistics (position p * (n - 1)). std is the
 * population form (divisor n). NaN marks what a series is too short for; callers print that as an
 * empty cell or null. stats.c has the single series, stats_paired.c the pairs. */
#ifndef FIB_CORE_STATS_H
#define FIB_CORE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fib_stats {
    size_t count;
    double median, mean, std, mad;       /* std NaN when count < 2; mad: median |x - median| */
    double min, max, p25, p75;
    double p5, p95;                      /* NaN when count < 59 */
    double p99;                          /* NaN when count < 299 */
    double ci_low, ci_high;              /* 95 % of the median; NaN when no interval is possible */
    const char *ci_method;               /* as fib_stats_interval() says */
    double order_low, order_high;        /* two samples with the median between them at >= 95 %,
                                            exact for independent ones; NaN when count < 6 */
    double autocorrelation;              /* lag 1; NaN when count < 3 or no spread */
    double drift_pct_per_s;              /* least-squares slope against sample time, % of median */
    size_t outlier_count;                /* outside 3 x IQR of the quartiles; kept in everything */
};

/* samples[count] in order of time; times_s[count] when each was taken (NULL: drift NaN). Non-finite
 * or negative samples must have been removed. count 0 gives NaN everywhere. */
void fib_stats_compute(const double *samples, const double *times_s, size_t count,
                       struct fib_stats *stats);

/* Ascending, in place. */
void fib_stats_sort(double *samples, size_t count);
/* Linear-interpolation percentile, p in [0, 1], of an unsorted array. NaN when count is 0. */
double fib_stats_percentile(const double *samples, size_t count, double p);

/* Samples from which the largest one reaches the percentile p (0 < p < 1) with `confidence`: the
 * least n with 1 - p^n >= confidence. 59 for 0.95 and 299 for 0.99 at 0.95. */
size_t fib_stats_least_count(double p, double confidence);

/* Half-width of the 95 % t interval of the median from `batch_count` batch medians (consecutive
 * batches, equal sizes, remainder to the last; of an even number the last is left out). NaN when
 * count < 2 * batch_count. */
double fib_stats_batch_half_width(const double *samples, size_t count, size_t batch_count);
/* 95 % interval of the median: "order-statistic" (two of the samples, exact for independent ones)
 * from 6 samples on, "batch-median-t" (10 batches) from 30 on; returns that name, or NULL and
 * NaN. */
const char *fib_stats_interval(const double *samples, size_t count, double *low, double *high);
/* Greatest common divisor: of differences between readings of a clock, its tick. gcd(a, 0) = a. */
uint64_t fib_stats_gcd(uint64_t a, uint64_t b);
/* Two-sided 95 % quantile of Student's t. */
double fib_stats_t95(size_t degrees);

/* Rank k (1-based) so that [x(k), x(n+1-k)] covers the median with >= 1 - alpha, exact binomial;
 * 0 when n is too small. n = 6 gives 1, 30 gives 10, 100 gives 40, 200 gives 86 at alpha 0.05. */
size_t fib_stats_sign_rank(size_t count, double alpha);

/* The device's clock over a series. Unstable: more than a tenth of the windows ran below 0.95 of
 * the series' own 90th percentile, or the range is above 3 % of the median. */
struct fib_clock {
    double median_mhz, min_mhz, max_mhz;
    size_t slow_count; /* windows below 0.95 of that percentile; they stay in the series */
    bool unstable;
};
/* False when no window's clock is known (all NaN). */
bool fib_stats_clock(const double *mhz, size_t count, struct fib_clock *clock);

enum fib_verdict { FIB_SAME = 0, FIB_FASTER, FIB_SLOWER, FIB_UNRESOLVED };
const char *fib_verdict_name(enum fib_verdict verdict);

/* b against a, sample i of each taken in the same round. d is ln(b/a) of a round. */
struct fib_paired {
    size_t round_count;        /* rounds with two usable samples: all below is of these */
    double ratio;              /* exp(median d): > 1 means b takes longer */
    double ratio_low, ratio_high; /* exact sign interval, 95 %; NaN when too few rounds */
    enum fib_verdict verdict;  /* of b: SLOWER / FASTER outside +-margin, SAME inside, else open */
    double margin;             /* as it was given: 0.005 is 0.5 % */
    size_t tie_count;          /* rounds whose two times are equal: the clock tells no difference */
    double mde;                /* minimum detectable effect, a share: a difference so far beyond the
                                  margin is found in 4 of 5 such runs; NaN without an interval */
    double rounds_needed;      /* of an UNRESOLVED one with an interval: rounds likely to decide it,
                                  at most FIB_MAX_ROUNDS_NEEDED; else NaN */
    double p;                  /* of no difference at all: fib_stats_paired_test(); else NaN. It
                                  never decides the verdict */
};
/* As many windows as an adaptive run takes at most: beyond it more rounds are no advice. */
enum { FIB_MAX_ROUNDS_NEEDED = 1 << 18 };
void fib_stats_paired(const double *a, const double *b, size_t count, double margin,
                      struct fib_paired *paired);
/* Adds p, fib_stats_sign_flip() of d. Apart because it takes up to some milliseconds, which nothing
 * should wait for between two windows. */
void fib_stats_paired_test(const double *a, const double *b, size_t count,
                           struct fib_paired *paired);

/* Two-sided p of the sign-flip test: how often a sum as far from 0 as that of d[count] comes about
 * when each sign is a coin's. All 2^count patterns up to 16, else 10000 drawn ones, the same in
 * each process. Finite values. NaN when count is 0. */
double fib_stats_sign_flip(const double *d, size_t count);

#endif
