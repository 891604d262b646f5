#include "tests/simulate.h"

#include <math.h>

#include "core/element.h"

static const double white_sd = 0.003, spike_share = 0.01, spike_mean = 0.02, memory = 0.98;

/* splitmix64 */
double sim_uniform(struct sim *sim)
{
    return ((double)(fib_mix64(sim->state += fib_weyl_step) >> 12) + 0.5) * 0x1p-52;
}

double sim_normal(struct sim *sim)
{
    const double radius = sqrt(-2.0 * log(sim_uniform(sim)));
    return radius * cos(2.0 * 3.14159265358979323846 * sim_uniform(sim));
}

double sim_exponential(struct sim *sim)
{
    return -log(sim_uniform(sim));
}

double sim_window(struct sim *sim, double drift_sd)
{
    double time = 1.0 + white_sd * sim_normal(sim);
    if (sim_uniform(sim) < spike_share)
        time += spike_mean * sim_exponential(sim);
    sim->drift = memory * sim->drift + sqrt(1.0 - memory * memory) * sim_normal(sim);
    return time * exp(drift_sd * sim->drift);
}

static double normal_below(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* Share of windows below 1 + x: normal ones, and normal plus exponential ones. */
static double window_below(double x)
{
    const double z = x / white_sd, ratio = white_sd / spike_mean;
    const double spiked =
        normal_below(z) - exp(ratio * ratio / 2.0 - x / spike_mean) * normal_below(z - ratio);
    return (1.0 - spike_share) * normal_below(z) + spike_share * spiked;
}

double sim_window_median(void)
{
    double low = -white_sd, high = white_sd;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2.0;
        if (window_below(middle) < 0.5)
            low = middle;
        else
            high = middle;
    }
    return 1.0 + low;
}

void sim_rounds(struct sim *sim, double drift_sd, double effect, size_t count, double *a, double *b)
{
    for (size_t i = 0; i < count; i++) {
        double *const first = i % 2 == 0 ? &a[i] : &b[i];
        double *const second = i % 2 == 0 ? &b[i] : &a[i];
        *first = sim_window(sim, drift_sd);
        *second = sim_window(sim, drift_sd);
        b[i] *= 1.0 + effect;
    }
}
