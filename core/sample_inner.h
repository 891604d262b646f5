/* Inside of the sampler, shared by sample.c, sample_plan.c and sample_warmup.c. */
#ifndef FIB_CORE_SAMPLE_INNER_H
#define FIB_CORE_SAMPLE_INNER_H

#include "core/sample.h"

/* Most windows in a row that may give no usable time before the clock is called broken. */
enum { FIB_MAX_BAD_IN_A_ROW = 100 };
/* Most calls in one window. */
enum { FIB_MAX_WINDOW_CALLS = 1 << 20 };

struct fib_sampler {
    struct fib_device *device;
    const struct fib_arm *arms;
    size_t arm_count;
    const struct fib_sample_rules *rules;
    enum fib_timer timer;
    struct fib_samples *samples;
    uint32_t *slots; /* [slot_count] seeded permutation: the order of all windows */
    uint32_t slot_count;
    double start_ms;                  /* when the timeout began to run */
    int bad_in_a_row;                 /* windows without a usable time */
    bool warmed;                      /* one of the arms has had a complete warm-up */
};

/* What warming up told about an arm. */
struct fib_warmth {
    double call_ms; /* net time of a call; 0 when no call was made or none gave a time */
    double cost_ms; /* wall time a call costs with its share of the restoring */
};

/* One run of a window. */
struct fib_run {
    double raw_ms;  /* whole window */
    double net_ms;  /* without the window's overhead */
    double wall_ms; /* with restoring */
    double busy_ms; /* time the device was at work: of isolated calls mostly flushing */
    double mhz;     /* clock during the window; NaN when unknown */
    bool usable;    /* net_ms is finite and positive */
};

uint64_t fib_sample_mix(uint64_t value);
/* Writes a seeded permutation of 0 .. count - 1. */
void fib_sample_permute(uint32_t count, uint64_t seed, uint32_t *order);
/* Windows of N different slots that together visit the ring: 1 when N covers it. */
uint32_t fib_sample_part_count(uint32_t slot_count, uint32_t calls);

/* FIB_ERR_TIMEOUT when the limit has passed or somebody interrupts. */
enum fib_status fib_sampler_check(const struct fib_sampler *sampler, struct fib_error *err);
/* A window of `calls` calls that starts at place `first` of the permutation and goes round. */
enum fib_status fib_sampler_window(const struct fib_sampler *sampler, size_t arm, uint32_t first,
                                   uint32_t calls, struct fib_window **window,
                                   struct fib_error *err);
/* Runs a window; FIB_ERR_DEVICE after too many in a row without a usable time. */
enum fib_status fib_sampler_run(struct fib_sampler *sampler, size_t arm, struct fib_window *window,
                                struct fib_run *run, struct fib_error *err);

enum fib_status fib_sampler_warm_up(struct fib_sampler *sampler, size_t arm,
                                    struct fib_warmth *warmth, struct fib_error *err);

#endif
