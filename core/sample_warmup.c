/* Warm-up of one arm: brings clocks, caches and pages into their working state and finds out how
 * long a call takes. */
#include <math.h>

#include "core/option.h"
#include "core/sample_inner.h"

enum { MIN_CALLS = 5, AGREEING_BLOCKS = 3, MAX_CALLS = 1 << 22 };

static const double agreement = 0.005;
static const double longest_block_ms = 10;
/* A budget that does not hold this many calls leaves no time for a proper warm-up. */
static const double planned_calls = 25;
/* Work of the last 100 ms, of other arms and other cases too, after which clocks are still up. */
static const double busy_enough_ms = 25;
/* Sustained power mode: long enough for a power limit to act, and how long to wait for agreement.
 */
static const double sustained_min_ms = 2000, sustained_cap_ms = 3000;

struct warmup {
    struct fib_sampler *sampler;
    size_t arm;
    struct fib_window *window;
    uint32_t window_calls, window_first; /* what `window` was built for; 0 calls: none */
    uint32_t cursor;                     /* place in the permutation where the next one starts */
    int64_t calls;
    double busy_ms, start_ms, block_ms;
    struct fib_warmth *warmth;
};

static double wall_ms(const struct warmup *warmup)
{
    struct fib_device *device = warmup->sampler->device;
    return device->ops->now_ms(device) - warmup->start_ms;
}

static enum fib_status need_window(struct warmup *warmup, uint32_t calls, struct fib_error *err)
{
    const struct fib_sampler *sampler = warmup->sampler;
    if (warmup->window && warmup->window_calls == calls && warmup->window_first == warmup->cursor)
        return FIB_OK;
    if (warmup->window)
        sampler->device->ops->window_destroy(&warmup->window);
    warmup->window_calls = calls;
    warmup->window_first = warmup->cursor;
    return fib_sampler_window(sampler, warmup->arm, warmup->cursor, calls, &warmup->window, err);
}

/* Makes `calls` calls (fewer where a slot may be used once only) and takes note of their time. */
static enum fib_status make_calls(struct warmup *warmup, int64_t calls, struct fib_run *run,
                                  struct fib_error *err)
{
    struct fib_sampler *sampler = warmup->sampler;
    if (sampler->rules->in_place && calls > sampler->slot_count)
        calls = sampler->slot_count;
    if (calls > FIB_MAX_WINDOW_CALLS)
        calls = FIB_MAX_WINDOW_CALLS;
    enum fib_status st = fib_sampler_check(sampler, err);
    if (st == FIB_OK)
        st = need_window(warmup, (uint32_t)calls, err);
    if (st == FIB_OK)
        st = fib_sampler_run(sampler, warmup->arm, warmup->window, run, err);
    if (st != FIB_OK)
        return st;
    warmup->cursor = (uint32_t)((warmup->cursor + (uint64_t)calls) % sampler->slot_count);
    warmup->calls += calls;
    if (run->usable) {
        warmup->busy_ms += run->busy_ms;
        warmup->warmth->call_ms = run->net_ms / (double)calls;
        warmup->warmth->cost_ms = fmax(run->wall_ms / (double)calls, warmup->warmth->call_ms);
    }
    return FIB_OK;
}

/* Calls for a window of about a tenth of a block: whole rings where that is not far more. The jump
 * is limited because the first calls say little about the following ones. */
static int64_t next_calls(const struct warmup *warmup)
{
    const bool isolated = warmup->sampler->timer == FIB_TIMER_ISOLATED;
    const double ring = warmup->sampler->slot_count;
    const double call_ms = isolated ? warmup->warmth->cost_ms : warmup->warmth->call_ms;
    const double target_ms =
        fmax(warmup->block_ms / 10, warmup->sampler->device->facts.window_min_ms);
    if (!(call_ms > 0))
        return 1;
    double calls = fmax(1, ceil(target_ms / call_ms));
    if (ring * call_ms <= 4 * target_ms)
        calls = ceil(calls / ring) * ring;
    calls = fmin(calls, 16.0 * (double)warmup->calls);
    return (int64_t)fmin(calls, FIB_MAX_WINDOW_CALLS);
}

static bool agree(const double *blocks, int count)
{
    if (count < AGREEING_BLOCKS)
        return false;
    double low = INFINITY, high = 0;
    for (int i = 0; i < AGREEING_BLOCKS; i++) {
        low = fmin(low, blocks[i]);
        high = fmax(high, blocks[i]);
    }
    return high - low <= agreement * low;
}

/* One block: windows until they add up to block_ms. *mean_ms: time of a call over the block. */
static enum fib_status run_block(struct warmup *warmup, double cap_ms, double *mean_ms,
                                 struct fib_error *err)
{
    double net_ms = 0, busy_ms = 0;
    int64_t calls = 0;
    while (busy_ms < warmup->block_ms && warmup->calls < MAX_CALLS &&
           (calls == 0 || wall_ms(warmup) < cap_ms)) {
        struct fib_run run;
        const int64_t before = warmup->calls;
        const enum fib_status st = make_calls(warmup, next_calls(warmup), &run, err);
        if (st != FIB_OK)
            return st;
        if (run.usable) {
            net_ms += run.net_ms;
            busy_ms += run.busy_ms;
            calls += warmup->calls - before;
        }
    }
    if (calls > 0)
        *mean_ms = warmup->warmth->call_ms = net_ms / (double)calls;
    return FIB_OK;
}

/* Blocks until the last three agree; quick runs take the shortest time that makes sense. */
static enum fib_status settle(struct warmup *warmup, bool *settled, struct fib_error *err)
{
    const struct fib_device_facts *facts = &warmup->sampler->device->facts;
    const bool sustained = warmup->sampler->rules->sustained;
    const bool quick = warmup->sampler->rules->quick && !sustained;
    const double cap_ms = sustained ? sustained_cap_ms : facts->warmup_cap_ms;
    const double least_ms = sustained ? sustained_min_ms
                            : quick   ? facts->warmup_quick_ms
                                      : facts->warmup_min_ms;
    double blocks[AGREEING_BLOCKS] = {0};
    int count = 0;
    while (warmup->calls < MAX_CALLS && wall_ms(warmup) < cap_ms) {
        double *const block = &blocks[count % AGREEING_BLOCKS];
        const enum fib_status st = run_block(warmup, cap_ms, block, err);
        if (st != FIB_OK)
            return st;
        count++;
        *settled = !quick && agree(blocks, count);
        if (warmup->busy_ms >= least_ms && (quick || *settled))
            return FIB_OK;
    }
    return FIB_OK;
}

/* The device is warm already: just enough to know the call, and every slot once if that is cheap,
 * so that no arm pays for first touches in its samples. */
static enum fib_status glance(struct warmup *warmup, struct fib_error *err)
{
    const double ring = warmup->sampler->slot_count;
    const double enough_ms = warmup->sampler->device->facts.window_min_ms;
    const double begin_ms = warmup->busy_ms;
    double calls = 0;
    enum fib_status st = FIB_OK;
    while (st == FIB_OK && warmup->calls < MAX_CALLS) {
        const bool ring_is_dear = ring * warmup->warmth->call_ms > warmup->block_ms;
        if (warmup->busy_ms - begin_ms >= enough_ms && (calls >= ring || ring_is_dear))
            return FIB_OK;
        if (wall_ms(warmup) >= warmup->sampler->device->facts.warmup_cap_ms)
            return FIB_OK;
        struct fib_run run;
        const int64_t before = warmup->calls;
        st = make_calls(warmup, next_calls(warmup), &run, err);
        calls += (double)(warmup->calls - before);
    }
    return st;
}

/* Sustained mode takes nothing over from the case before. */
static bool is_warm(const struct fib_sampler *sampler)
{
    return (!sampler->rules->sustained || sampler->warmed) &&
           fib_device_recent_work_ms(sampler->device) >= busy_enough_ms;
}

static enum fib_status warm_adaptive(struct warmup *warmup, bool *settled, struct fib_error *err)
{
    struct fib_sampler *sampler = warmup->sampler;
    const bool warm = is_warm(sampler);
    struct fib_run run;
    enum fib_status st = make_calls(warmup, 1, &run, err);
    if (st != FIB_OK || planned_calls * warmup->warmth->cost_ms > sampler->rules->budget_ms)
        return st;
    while (st == FIB_OK && warmup->calls < MIN_CALLS)
        st = make_calls(warmup, MIN_CALLS - warmup->calls, &run, err);
    if (st != FIB_OK)
        return st;
    if (warm) {
        *settled = sampler->device->busy.settled;
        return glance(warmup, err);
    }
    st = settle(warmup, settled, err);
    sampler->device->busy.settled = *settled;
    sampler->warmed = true;
    return st;
}

/* Exactly so many calls: one alone, then windows of at most a block. */
static enum fib_status warm_exactly(struct warmup *warmup, int64_t wanted, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    while (st == FIB_OK && warmup->calls < wanted) {
        struct fib_run run;
        const int64_t left = wanted - warmup->calls;
        const double call_ms = warmup->warmth->call_ms;
        double calls = 1;
        if (call_ms > 0)
            calls = fmax(1, fmin((double)left, floor(warmup->block_ms / call_ms)));
        st = make_calls(warmup, (int64_t)calls, &run, err);
    }
    return st;
}

enum fib_status fib_sampler_warm_up(struct fib_sampler *sampler, size_t arm,
                                    struct fib_warmth *warmth, struct fib_error *err)
{
    struct fib_device *device = sampler->device;
    struct fib_series *series = &sampler->samples->series[arm];
    *warmth = (struct fib_warmth){0};
    struct warmup warmup = {
        .sampler = sampler,
        .arm = arm,
        .start_ms = device->ops->now_ms(device),
        .block_ms = fmin(longest_block_ms, device->facts.warmup_cap_ms / 6),
        .warmth = warmth,
    };
    const enum fib_status st = sampler->rules->warmup_calls == FIB_UNSET_I64
                                   ? warm_adaptive(&warmup, &series->settled, err)
                                   : warm_exactly(&warmup, sampler->rules->warmup_calls, err);
    if (warmup.window)
        device->ops->window_destroy(&warmup.window);
    series->warmup_ms = wall_ms(&warmup);
    return st;
}
