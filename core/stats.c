/* Statistics of one measured series: order statistics, intervals of the median, the clock. */
#include "core/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum {
    BATCH_COUNT = 10, /* batches of the within-run interval */
    /* Two would be used as one, and order statistics do better with so few. */
    LEAST_BATCH = 3
};
/* What the printed tails and intervals are held to. */
static const double confidence = 0.95;

static int compare_f64(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

void fib_stats_sort(double *samples, size_t count)
{
    if (count > 1)
        qsort(samples, count, sizeof(*samples), compare_f64);
}

static double *sorted_copy(const double *samples, size_t count)
{
    double *const sorted = fib_zalloc_array(count, sizeof(*sorted));
    if (count > 0)
        memcpy(sorted, samples, count * sizeof(*sorted));
    fib_stats_sort(sorted, count);
    return sorted;
}

static double percentile_of_sorted(const double *sorted, size_t count, double p)
{
    if (count == 0)
        return NAN;
    const double position = p * (double)(count - 1);
    const size_t below = (size_t)position;
    if (below + 1 >= count)
        return sorted[count - 1];
    const double part = position - (double)below;
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

double fib_stats_percentile(const double *samples, size_t count, double p)
{
    if (count == 0)
        return NAN;
    double *const sorted = sorted_copy(samples, count);
    const double value = percentile_of_sorted(sorted, count, p);
    free(sorted);
    return value;
}

static double median_of(const double *samples, size_t count)
{
    return fib_stats_percentile(samples, count, 0.5);
}

uint64_t fib_stats_gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

size_t fib_stats_least_count(double p, double wanted)
{
    /* The largest of n independent samples misses the percentile when all n lie below it: p^n.
     * Conover, Practical Nonparametric Statistics, on tolerance limits. The slack keeps a quotient
     * that is a whole number from being rounded past it. */
    return (size_t)ceil(log(1.0 - wanted) / log(p) - 1e-9);
}

/* ---- intervals ---- */

double fib_stats_t95(size_t degrees)
{
    static const double small[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582,
                                   2.446912,  2.364624, 2.306004, 2.262157, 2.228139,
                                   2.200985,  2.178813, 2.160369, 2.144787, 2.131450,
                                   2.119905,  2.109816, 2.100922, 2.093024, 2.085963};
    const size_t small_count = sizeof(small) / sizeof(small[0]);
    if (degrees == 0)
        return NAN;
    if (degrees <= small_count)
        return small[degrees - 1];
    /* Expansion of the t quantile in 1 / degrees around the normal quantile z; its error is below
     * 1e-6 where the table ends. */
    const double z = 1.959963984540054, z2 = z * z, inverse = 1.0 / (double)degrees;
    const double g1 = z * (z2 + 1.0) / 4.0;
    const double g2 = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    const double g3 = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    const double g4 =
        z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0;
    return z + inverse * (g1 + inverse * (g2 + inverse * (g3 + inverse * g4)));
}

double fib_stats_batch_half_width(const double *samples, size_t count, size_t batch_count)
{
    if (batch_count < 2 || count < 2 * batch_count)
        return NAN;
    const size_t length = count / batch_count;
    double *const medians = fib_zalloc_array(batch_count, sizeof(*medians));
    double mean = 0.0;
    for (size_t i = 0; i < batch_count; i++) {
        const size_t first = i * length;
        const size_t own = i + 1 < batch_count ? length : count - first;
        /* The last of an even number is left out. The median of a short even batch is nearly its
         * mean, steadier than the median of all around which the interval is put: that came out
         * too narrow (for normal noise 91 % with two to a batch, 92.6 % with four). */
        medians[i] = median_of(samples + first, (own - 1) | 1);
        mean += (medians[i] - medians[0]) / (double)batch_count;
    }
    double sum_sq = 0.0;
    for (size_t i = 0; i < batch_count; i++) {
        const double d = medians[i] - medians[0] - mean;
        sum_sq += d * d;
    }
    free(medians);
    const double variance = sum_sq / (double)(batch_count - 1);
    return fib_stats_t95(batch_count - 1) * sqrt(variance / (double)batch_count);
}

size_t fib_stats_sign_rank(size_t count, double alpha)
{
    /* Largest k with 2 P(Binomial(count, 1/2) <= k - 1) <= alpha. The probabilities are stepped in
     * log space, where 2^-count does not underflow; the slack covers its rounding, so that a tail
     * equal to alpha counts as inside. */
    double log_mass = -(double)count * log(2.0);
    double tail = 0.0;
    size_t rank = 0;
    while (rank < count) {
        tail += exp(log_mass);
        if (2.0 * tail > alpha * (1.0 + 1e-12))
            break;
        log_mass += log((double)(count - rank)) - log((double)(rank + 1));
        rank++;
    }
    return rank;
}

/* The order-statistic interval (Conover, as above, on quantiles; the sign test turned round) is
 * exact whatever the distribution, but takes samples to be independent. Batch medians, made as
 * batch means are (Schmeiser, Oper. Res. 30, 1982: 10 to 30 of them), feel how neighbours resemble
 * each other, and so are preferred where there are enough. */
static const char *interval_of(const double *samples, const double *sorted, size_t count,
                               double *low, double *high)
{
    *low = *high = NAN;
    if (count >= BATCH_COUNT * LEAST_BATCH) {
        const double median = percentile_of_sorted(sorted, count, 0.5);
        const double half = fib_stats_batch_half_width(samples, count, BATCH_COUNT);
        *low = median - half;
        *high = median + half;
        return "batch-median-t";
    }
    const size_t rank = fib_stats_sign_rank(count, 1.0 - confidence);
    if (rank == 0)
        return NULL;
    *low = sorted[rank - 1];
    *high = sorted[count - rank];
    return "order-statistic";
}

const char *fib_stats_interval(const double *samples, size_t count, double *low, double *high)
{
    double *const sorted = sorted_copy(samples, count);
    const char *method = interval_of(samples, sorted, count, low, high);
    free(sorted);
    return method;
}

/* ---- one series ---- */

static void set_all_nan(struct fib_stats *stats)
{
    *stats = (struct fib_stats){
        .median = NAN,
        .mean = NAN,
        .std = NAN,
        .mad = NAN,
        .min = NAN,
        .max = NAN,
        .p25 = NAN,
        .p75 = NAN,
        .p5 = NAN,
        .p95 = NAN,
        .p99 = NAN,
        .ci_low = NAN,
        .ci_high = NAN,
        .order_low = NAN,
        .order_high = NAN,
        .autocorrelation = NAN,
        .drift_pct_per_s = NAN,
    };
}

static void set_quantiles(const double *sorted, size_t count, struct fib_stats *stats)
{
    stats->median = percentile_of_sorted(sorted, count, 0.5);
    stats->min = sorted[0];
    stats->max = sorted[count - 1];
    stats->p25 = percentile_of_sorted(sorted, count, 0.25);
    stats->p75 = percentile_of_sorted(sorted, count, 0.75);
    if (count >= fib_stats_least_count(0.95, confidence)) {
        stats->p5 = percentile_of_sorted(sorted, count, 0.05);
        stats->p95 = percentile_of_sorted(sorted, count, 0.95);
    }
    if (count >= fib_stats_least_count(0.99, confidence))
        stats->p99 = percentile_of_sorted(sorted, count, 0.99);
    const double fence = 3.0 * (stats->p75 - stats->p25);
    for (size_t i = 0; i < count; i++)
        if (sorted[i] < stats->p25 - fence || sorted[i] > stats->p75 + fence)
            stats->outlier_count++;
}

/* Mean, spread and lag-1 autocorrelation. Sums run over distances from the median: equal samples
 * give exactly zero spread, and nothing cancels. */
static void set_moments(const double *samples, size_t count, struct fib_stats *stats)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += samples[i] - stats->median;
    const double shift = sum / (double)count;
    stats->mean = stats->median + shift;
    double sum_sq = 0.0, sum_lag = 0.0, previous = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double d = samples[i] - stats->median - shift;
        sum_sq += d * d;
        sum_lag += i > 0 ? d * previous : 0.0;
        previous = d;
    }
    if (count >= 2)
        stats->std = sqrt(sum_sq / (double)count);
    if (count >= 3 && stats->max > stats->min)
        stats->autocorrelation = sum_lag / sum_sq;
}

static double mad_of(const double *samples, size_t count, double median)
{
    double *const distances = fib_zalloc_array(count, sizeof(*distances));
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(samples[i] - median);
    const double mad = median_of(distances, count);
    free(distances);
    return mad;
}

static double drift_of(const double *samples, const double *times_s, size_t count, double median)
{
    if (!times_s || count < 3 || !(median > 0.0))
        return NAN;
    double mean_t = 0.0, mean_x = 0.0;
    for (size_t i = 0; i < count; i++) {
        mean_t += (times_s[i] - times_s[0]) / (double)count;
        mean_x += (samples[i] - median) / (double)count;
    }
    double sum_tt = 0.0, sum_tx = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double t = times_s[i] - times_s[0] - mean_t;
        sum_tt += t * t;
        sum_tx += t * (samples[i] - median - mean_x);
    }
    return sum_tt > 0.0 ? 100.0 * sum_tx / sum_tt / median : NAN;
}

/* samples[count], all of them times; count > 0. */
static void describe_series(const double *samples, const double *times_s, size_t count,
                            struct fib_stats *stats)
{
    stats->count = count;
    double *const sorted = sorted_copy(samples, count);
    set_quantiles(sorted, count, stats);
    stats->ci_method = interval_of(samples, sorted, count, &stats->ci_low, &stats->ci_high);
    const size_t rank = fib_stats_sign_rank(count, 1.0 - confidence);
    if (rank > 0) {
        stats->order_low = sorted[rank - 1];
        stats->order_high = sorted[count - rank];
    }
    free(sorted);
    set_moments(samples, count, stats);
    stats->mad = mad_of(samples, count, stats->median);
    stats->drift_pct_per_s = drift_of(samples, times_s, count, stats->median);
}

void fib_stats_compute(const double *samples, const double *times_s, size_t count,
                       struct fib_stats *stats)
{
    set_all_nan(stats);
    /* What is no time should have been removed. One that slipped through must not turn the order
     * of a sort, and with it every quantile, into chance. */
    double *const kept = fib_zalloc_array(2 * count, sizeof(*kept));
    double *const kept_s = kept + count;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(samples[i] >= 0.0) || isinf(samples[i]))
            continue;
        kept[used] = samples[i];
        kept_s[used++] = times_s ? times_s[i] : 0.0;
    }
    if (used > 0)
        describe_series(kept, times_s ? kept_s : NULL, used, stats);
    free(kept);
}

/* ---- clock ---- */

bool fib_stats_clock(const double *mhz, size_t count, struct fib_clock *clock)
{
    static const double slow_share = 0.95, most_slow = 0.1, most_range = 0.03;
    double *const known = fib_zalloc_array(count > 0 ? count : 1, sizeof(*known));
    size_t known_count = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(mhz[i]))
            known[known_count++] = mhz[i];
    *clock = (struct fib_clock){
        .median_mhz = fib_stats_percentile(known, known_count, 0.5),
        .min_mhz = fib_stats_percentile(known, known_count, 0),
        .max_mhz = fib_stats_percentile(known, known_count, 1),
    };
    const double fast = fib_stats_percentile(known, known_count, 0.9);
    for (size_t i = 0; i < known_count; i++)
        clock->slow_count += known[i] < slow_share * fast;
    clock->unstable =
        known_count > 0 && ((double)clock->slow_count > most_slow * (double)known_count ||
                            clock->max_mhz - clock->min_mhz > most_range * clock->median_mhz);
    free(known);
    return known_count > 0;
}
