/* Random series whose truth is known, the same on every machine. */
#ifndef FIB_TESTS_SIMULATE_H
#define FIB_TESTS_SIMULATE_H

#include <stddef.h>
#include <stdint.h>

struct sim {
    uint64_t state; /* the seed */
    double drift;   /* present value of the slow part, in its standard deviations */
};

double sim_uniform(struct sim *sim); /* inside (0, 1) */
double sim_normal(struct sim *sim);
double sim_exponential(struct sim *sim);

/* A window's time on a device whose true time is 1: white noise of 0.3 %, one window in 100 longer
 * by an exponential with mean 2 %, and a slow factor exp(drift_sd x AR(1)), correlation 0.98 from
 * one window to the next. */
double sim_window(struct sim *sim, double drift_sd);
/* Median of that without drift, by bisection of its distribution function. */
double sim_window_median(void);

/* `count` rounds of two arms in the order A B, B A, ...: b is `effect` (a share) slower. */
void sim_rounds(struct sim *sim, double drift_sd, double effect, size_t count, double *a,
                double *b);

#endif
