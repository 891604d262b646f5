/* Statistics of paired series: interval of the ratio, verdict, what more rounds would tell. */
#include <math.h>
#include <stdlib.h>

#include "core/element.h"
#include "core/memory.h"
#include "core/stats.h"

const char *fib_verdict_name(enum fib_verdict verdict)
{
    switch (verdict) {
    case FIB_SAME:
        return "SAME";
    case FIB_FASTER:
        return "FASTER";
    case FIB_SLOWER:
        return "SLOWER";
    case FIB_UNRESOLVED:
        break;
    }
    return "UNRESOLVED";
}

/* On logarithms, so that swapping the two sides mirrors the verdict exactly. */
static enum fib_verdict judge(double log_low, double log_high, double margin)
{
    const double bound = log1p(margin);
    if (log_low > bound)
        return FIB_SLOWER;
    if (log_high < -bound)
        return FIB_FASTER;
    if (log_low >= -bound && log_high <= bound)
        return FIB_SAME;
    return FIB_UNRESOLVED; /* also when the bounds are NaN */
}

/* ---- sign-flip test ---- */

/* Fisher, The Design of Experiments, section 21: if both sides are alike, each d might as well have
 * had the other sign. Counting the observed pattern among the draws keeps p above 0 and the test at
 * its level (Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010). */
enum {
    EXACT_COUNT = 16,
    DRAW_COUNT = 10000,
    CHUNK = 8,           /* signs that one table look-up stands for */
    MOST_FLIPPED = 1024, /* more rounds flip in runs of neighbours, so that time stays bounded */
    WORD_CHUNKS = 64 / CHUNK
};

/* splitmix64: neighbouring states give unrelated words. */
static uint64_t next_word(uint64_t *state)
{
    return fib_mix64(*state += fib_weyl_step);
}

/* sums[c << CHUNK | bits]: sum of chunk c with the signs that are set in bits turned round. */
static double *signed_sums(const double *d, size_t count, size_t chunk_count)
{
    double *const sums = fib_zalloc_array(chunk_count << CHUNK, sizeof(*sums));
    for (size_t i = 0; i < count; i++) {
        double *const chunk = sums + ((i / CHUNK) << CHUNK);
        for (size_t bits = 0; bits < (size_t)1 << CHUNK; bits++)
            chunk[bits] += bits >> (i % CHUNK) & 1 ? -d[i] : d[i];
    }
    return sums;
}

static double share_as_far(const double *d, size_t count, double limit)
{
    const size_t chunk_count = (count + CHUNK - 1) / CHUNK;
    const size_t byte = ((size_t)1 << CHUNK) - 1;
    double *const sums = signed_sums(d, count, chunk_count);
    const bool all = count <= EXACT_COUNT;
    const size_t pattern_count = all ? (size_t)1 << count : DRAW_COUNT;
    size_t far_count = all ? 0 : 1;
    uint64_t state = count, word = 0;
    for (size_t i = 0; i < pattern_count; i++) {
        double sum = 0;
        word = i;
        for (size_t c = 0; c < chunk_count; c++, word >>= CHUNK) {
            if (!all && c % WORD_CHUNKS == 0)
                word = next_word(&state);
            sum += sums[c << CHUNK | (word & byte)];
        }
        far_count += fabs(sum) >= limit;
    }
    free(sums);
    return (double)far_count / (double)(pattern_count + !all);
}

double fib_stats_sign_flip(const double *d, size_t count)
{
    if (count == 0)
        return NAN;
    /* Flipping runs of rounds together is a subgroup of all flips: the test keeps its level. */
    const size_t unit_count = count < MOST_FLIPPED ? count : MOST_FLIPPED;
    double *const units = fib_zalloc_array(unit_count, sizeof(*units));
    double sum = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        units[i * unit_count / count] += d[i];
        sum += d[i];
        size += fabs(d[i]);
    }
    /* The slack makes sums of the same values in another order count as equal. */
    const double p = share_as_far(units, unit_count, fabs(sum) - 1e-12 * size);
    free(units);
    return p;
}

/* ---- pairs ---- */

/* The half-width shrinks with 1 / sqrt(n) and has to come below the distance of d from the nearer
 * edge of the margin: n x (half-width / distance)^2. */
static double rounds_needed(size_t count, double log_ratio, double half_width, double margin)
{
    const double distance = fabs(fabs(log_ratio) - log1p(margin));
    const double share = half_width / distance;
    const double wanted = ceil((double)count * share * share); /* infinite at the edge itself */
    /* The interval need not lie evenly around d: the rounds at hand were too few in any case. */
    return fmin(fmax(wanted, (double)count + 1), FIB_MAX_ROUNDS_NEEDED);
}

/* sorted[count] of d: where the rank allows an interval, what follows from it. */
static void set_interval(const double *sorted, size_t count, struct fib_paired *paired)
{
    /* An effect found with 80 % lies 0.84 standard errors beyond the interval's 1.96. For normal
     * noise this comes to 3.5 sd(d) / sqrt(n), but a few spikes, which hardly move the interval,
     * do not move it either. */
    static const double z95 = 1.959964, z80 = 0.841621;
    const size_t rank = fib_stats_sign_rank(count, 0.05);
    if (rank == 0)
        return;
    const double low = sorted[rank - 1], high = sorted[count - rank];
    const double half_width = (high - low) / 2;
    paired->ratio_low = exp(low);
    paired->ratio_high = exp(high);
    paired->verdict = judge(low, high, paired->margin);
    paired->mde = expm1(half_width * (z95 + z80) / z95);
    if (paired->verdict == FIB_UNRESOLVED)
        paired->rounds_needed =
            rounds_needed(count, log(paired->ratio), half_width, paired->margin);
}

/* ln(b/a) of the rounds with two usable samples, in order; a round with a rejected sample on one
 * side is no pair. Returns their number. */
static size_t log_ratios(const double *a, const double *b, size_t count, double *logs)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const double d = a[i] > 0.0 && b[i] > 0.0 ? log(b[i] / a[i]) : NAN;
        if (isfinite(d))
            logs[used++] = d;
    }
    return used;
}

void fib_stats_paired(const double *a, const double *b, size_t count, double margin,
                      struct fib_paired *paired)
{
    *paired = (struct fib_paired){.ratio = NAN,
                                  .ratio_low = NAN,
                                  .ratio_high = NAN,
                                  .verdict = FIB_UNRESOLVED,
                                  .margin = margin,
                                  .mde = NAN,
                                  .rounds_needed = NAN,
                                  .p = NAN};
    double *const logs = fib_zalloc_array(count, sizeof(*logs));
    const size_t used = paired->round_count = log_ratios(a, b, count, logs);
    for (size_t i = 0; i < used; i++)
        paired->tie_count += logs[i] == 0.0;
    if (used > 0) {
        fib_stats_sort(logs, used);
        paired->ratio = exp((logs[(used - 1) / 2] + logs[used / 2]) / 2);
        set_interval(logs, used, paired);
    }
    free(logs);
}

void fib_stats_paired_test(const double *a, const double *b, size_t count,
                           struct fib_paired *paired)
{
    double *const logs = fib_zalloc_array(count, sizeof(*logs));
    paired->p = fib_stats_sign_flip(logs, log_ratios(a, b, count, logs));
    free(logs);
}
