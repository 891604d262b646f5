/* Statistics of one series of samples and of paired series. All of it works on plain arrays.
 *
 * Percentiles interpolate linearly between order statistics (position p * (n - 1)). std is the
 * population form (divisor n). NaN marks what a series is too short for; callers print that as an
 * empty cell or null. */
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
    const char *ci_method;               /* "batch-median-t", or NULL */
    double autocorrelation;              /* lag 1; NaN when count < 3 or no spread */
    double drift_pct_per_s;              /* least-squares slope against sample time, % of median */
    size_t outlier_count;                /* outside 3 x IQR of the quartiles; kept in everything */
};

/* samples[count] in order of time; times_s[count] when each was taken (NULL: drift NaN). Non-finite
 * or negative samples must have been removed. count 0 gives NaN everywhere. */
void fib_stats_compute(const double *samples, const double *times_s, size_t count,
                       struct fib_stats *stats);

/* Linear-interpolation percentile, p in [0, 1], of an unsorted array. NaN when count is 0. */
double fib_stats_percentile(const double *samples, size_t count, double p);

/* Half-width of the 95 % t interval of the median from `batch_count` batch medians (consecutive
 * batches, equal sizes, remainder to the last). NaN when count < 2 * batch_count. */
double fib_stats_batch_half_width(const double *samples, size_t count, size_t batch_count);
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
    bool unstable;
};
/* False when no window's clock is known (all NaN). */
bool fib_stats_clock(const double *mhz, size_t count, struct fib_clock *clock);

enum fib_verdict { FIB_SAME = 0, FIB_FASTER, FIB_SLOWER, FIB_UNRESOLVED };
const char *fib_verdict_name(enum fib_verdict verdict);

/* b against a, sample i of each taken in the same round. */
struct fib_paired {
    size_t round_count;
    double ratio;              /* exp(median ln(b/a)): > 1 means b takes longer */
    double ratio_low, ratio_high; /* exact sign interval, 95 %; NaN when too few rounds */
    enum fib_verdict verdict;  /* of b: SLOWER / FASTER outside +-margin, SAME inside, else open */
};
void fib_stats_paired(const double *a, const double *b, size_t count, double margin,
                      struct fib_paired *paired);

#endif
