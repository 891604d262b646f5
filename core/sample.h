/* Warm-up, windows, stopping, interleaving: turns prepared calls ("arms") into samples.
 *
 * One arm: windows one after the other. Two arms: rounds in the order A B B A. More: rows of a
 * Williams square, so that each arm follows each other arm equally often. All arms use the same
 * number of calls per window and the same slots. Sampling of a case ends when every arm has >= 20
 * windows and >= 10 ms and an interval whose half-width is <= 0.5 % of its median (or <= half a
 * clock tick per call), or when its budget is spent. With several arms and a margin it goes on,
 * within the budget, until the rounds tell of each arm whether it differs from the fastest. With an
 * exact count (-n) the count decides alone. */
#ifndef FIB_CORE_SAMPLE_H
#define FIB_CORE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/device.h"

enum fib_stop {
    FIB_STOP_NONE = 0,
    FIB_STOP_PRECISION, /* half-width small enough */
    FIB_STOP_TICK,      /* the clock's step is the limit */
    FIB_STOP_BUDGET,    /* time for this arm is spent */
    FIB_STOP_COUNT,     /* -n windows taken */
    FIB_STOP_TIMEOUT    /* wall limit of the case */
};
const char *fib_stop_name(enum fib_stop stop); /* "precision", "tick", ... */

/* What to call and how to restore; `context` goes to all three. */
struct fib_arm {
    const char *label;
    fib_call_fn *call;
    fib_reset_fn *reset; /* NULL when nothing is updated in place */
    /* Told before a window of this arm is made and before it runs, outside the timed part; NULL:
     * nobody wants to know. */
    void (*enter)(void *context);
    void *context;
};

struct fib_sample_rules {
    enum fib_timer timer;
    uint32_t slot_count;
    bool in_place;          /* at most one call per slot and window */
    int64_t warmup_calls;   /* exact count (-d), or FIB_UNSET_I64: adaptive */
    int64_t window_count;   /* exact count (-n), or FIB_UNSET_I64: adaptive */
    double budget_ms;       /* per arm */
    double precision;       /* relative half-width that ends sampling: 0.005 */
    double margin;          /* of the verdict between arms, a share; 0: no verdict is waited for */
    bool quick;
    bool sustained;         /* at least 2 s of back-to-back calls before the first sample */
    double timeout_ms;      /* wall limit from now; <= 0: none */
    uint64_t seed;          /* of the slot permutation and the order of rows */
    bool (*interrupted)(void *context); /* polled between windows; NULL never */
    void *interrupted_context;
};

struct fib_series {
    double *call_ms;      /* [count] net time per call: (window - overhead) / N */
    double *raw_ms;       /* [count] window / N */
    double *at_s;         /* [count] when the window ended, from the start of sampling */
    double *mhz;          /* [count] the device's clock during the window; NaN when unknown */
    size_t count, capacity;
    size_t rejected_count;  /* non-positive or non-finite windows, not in the arrays */
    double warmup_ms;       /* time spent warming up */
    bool settled;           /* warm-up ended because windows agreed, not at its cap */
    enum fib_stop stop;
};

/* Result for all arms. series[i] belongs to arms[i]. */
struct fib_samples {
    struct fib_series *series;
    size_t arm_count;
    uint32_t calls_per_window;
    const char *interleave;  /* "none", "abba", "williams" */
    enum fib_timer timer;    /* what ran */
    double overhead_ms;      /* subtracted from each window ... */
    const char *overhead_method; /* ... and how it was found; NULL: as the device's facts say */
    char capture_note[256];  /* why the calls ran without a graph although one was asked for; ""
                                when they did not */
    size_t failed_arm;       /* whose windows gave no usable time; arm_count: nobody's */
};

/* Error: the first failing call's. On FIB_ERR_TIMEOUT the samples so far are kept. */
enum fib_status fib_sample_run(struct fib_device *device, const struct fib_arm *arms,
                               size_t arm_count, const struct fib_sample_rules *rules,
                               struct fib_samples *samples, struct fib_error *err);
void fib_samples_free(struct fib_samples *samples);

/* Order of `arm_count` arms in round `round` (0-based): writes arm indices to order[]. */
void fib_sample_order(size_t arm_count, size_t round, uint64_t seed, size_t *order);

/* Calls per window: the smallest N with N * call_ms >= window_min_ms, rounded up to a multiple of
 * slot_count (each slot equally often); exactly slot_count when in_place. At least 1, at most
 * 2^20; a call time that is not positive counts as one nanosecond. */
uint32_t fib_sample_calls(double call_ms, double window_min_ms, uint32_t slot_count, bool in_place,
                          double budget_ms);

#endif
