/* Decisions of the sampler that need no device: orders of arms and slots, calls per window. */
#include <math.h>
#include <stdlib.h>

#include "core/element.h"
#include "core/memory.h"
#include "core/sample_inner.h"

/* Windows that the budget of an arm should hold: 20 are needed, 5 are reserve. */
static const double planned_windows = 25;
/* So that a sum of times that misses a round figure by rounding does not cost a whole ring more. */
static const double just_short = 1 - 1e-9;

const char *fib_stop_name(enum fib_stop stop)
{
    switch (stop) {
    case FIB_STOP_NONE:
        return "none";
    case FIB_STOP_PRECISION:
        return "precision";
    case FIB_STOP_TICK:
        return "tick";
    case FIB_STOP_BUDGET:
        return "budget";
    case FIB_STOP_COUNT:
        return "count";
    case FIB_STOP_TIMEOUT:
        return "timeout";
    }
    return "unknown";
}

/* splitmix64 step: neighbouring inputs give unrelated outputs. */
uint64_t fib_sample_mix(uint64_t value)
{
    return fib_mix64(value + fib_weyl_step);
}

void fib_sample_permute(uint32_t count, uint64_t seed, uint32_t *order)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t pick = (uint32_t)(fib_sample_mix(seed + i) % i);
        const uint32_t swap = order[i - 1];
        order[i - 1] = order[pick];
        order[pick] = swap;
    }
}

/* Row `row` of a Williams square: 0, 1, k-1, 2, k-2, ... shifted by the row. For an odd k the
 * second k rows are the first ones backwards; only together are they balanced. */
static void williams_row(size_t arm_count, size_t row, size_t *order)
{
    const size_t shift = row % arm_count;
    for (size_t i = 0; i < arm_count; i++) {
        const size_t step = i % 2 == 1 ? (i + 1) / 2 : (arm_count - i / 2) % arm_count;
        order[row < arm_count ? i : arm_count - 1 - i] = (step + shift) % arm_count;
    }
}

void fib_sample_order(size_t arm_count, size_t round, uint64_t seed, size_t *order)
{
    if (arm_count <= 2) {
        /* A B, B A: read in a row this is A B B A. */
        for (size_t i = 0; i < arm_count; i++)
            order[i] = round % 2 == 0 ? i : arm_count - 1 - i;
        return;
    }
    const size_t row_count = arm_count % 2 == 0 ? arm_count : 2 * arm_count;
    uint32_t *rows = fib_zalloc_array(row_count, sizeof(*rows));
    fib_sample_permute((uint32_t)row_count, fib_sample_mix(seed ^ (round / row_count)), rows);
    williams_row(arm_count, rows[round % row_count], order);
    free(rows);
}

/* Cuts the ring into equal windows of at most `most` slots. */
static uint32_t even_part(uint32_t slot_count, uint32_t most)
{
    const uint32_t parts = (slot_count + most - 1) / most;
    return slot_count / parts;
}

uint32_t fib_sample_part_count(uint32_t slot_count, uint32_t calls)
{
    return calls >= slot_count ? 1 : slot_count / calls;
}

uint32_t fib_sample_calls(double call_ms, double window_min_ms, uint32_t slot_count, bool in_place,
                          double budget_ms)
{
    if (!(call_ms > 0))
        call_ms = 1e-6;
    if (slot_count == 0)
        slot_count = 1;
    const double ring = slot_count;
    double calls = ring;
    if (!in_place)
        calls = fmax(1, ceil(just_short * window_min_ms / call_ms / ring)) * ring;
    const double affordable = fmin(budget_ms / (planned_windows * call_ms), FIB_MAX_WINDOW_CALLS);
    if (calls > affordable) {
        if (affordable < ring)
            return even_part(slot_count, affordable > 1 ? (uint32_t)affordable : 1);
        calls = floor(affordable / ring) * ring;
    }
    return (uint32_t)calls;
}
