/* Rounds of windows over all arms, and when to end them. */
#include "core/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/option.h"
#include "core/sample_inner.h"
#include "core/stats.h"

enum {
    MIN_WINDOWS = 20,       /* for a precision that can be trusted */
    FEWEST_WINDOWS = 3,     /* whatever the budget */
    MAX_WINDOWS = 1 << 18,  /* adaptive runs end here: more samples would only fill memory */
    MAX_ARM_CALLS = 1 << 24 /* and here, if the clock hardly moves */
};
static const double min_busy_ms = 10;

/* Progress of one arm. */
struct progress {
    double busy_ms;    /* in windows */
    double spent_ms;   /* with restoring */
    size_t next_check; /* windows at which the precision is looked at again */
};

/* The sampling phase, after warm-up. */
struct rounds {
    struct fib_sampler *sampler;
    uint32_t calls, part_count;
    size_t turn;                 /* windows run so far by all arms */
    struct fib_window **windows; /* [arm * part_count + part], made when first used */
    struct progress *progress;   /* [arm] */
    struct fib_run *runs;        /* [arm] of this round */
    double *end_ms;              /* [arm] of this round */
    size_t *order;               /* [arm] of this round */
    double begin_ms, total_ms;
    size_t next_look;     /* windows at which the verdicts are looked at again */
    int dropped_in_a_row; /* rounds */
};

enum fib_status fib_sampler_check(const struct fib_sampler *sampler, struct fib_error *err)
{
    const struct fib_sample_rules *rules = sampler->rules;
    struct fib_device *device = sampler->device;
    if (rules->interrupted && rules->interrupted(rules->interrupted_context))
        return fib_fail(err, FIB_ERR_TIMEOUT, "interrupted while it was timed");
    if (rules->timeout_ms > 0 &&
        device->ops->now_ms(device) - sampler->start_ms >= rules->timeout_ms)
        return fib_fail(err, FIB_ERR_TIMEOUT, "not done after %.3g s (--timeout_s)",
                        rules->timeout_ms / 1e3);
    return FIB_OK;
}

enum fib_status fib_sampler_window(const struct fib_sampler *sampler, size_t arm, uint32_t first,
                                   uint32_t calls, struct fib_window **window,
                                   struct fib_error *err)
{
    const struct fib_arm *which = &sampler->arms[arm];
    if (which->enter)
        which->enter(which->context);
    uint32_t *slots = fib_zalloc_array(calls, sizeof(*slots));
    for (uint32_t i = 0; i < calls; i++)
        slots[i] = sampler->slots[((uint64_t)first + i) % sampler->slot_count];
    const struct fib_window_spec spec = {
        .timer = sampler->timer,
        .call_count = calls,
        .slots = slots,
        .call = which->call,
        .call_context = which->context,
        .reset = which->reset,
        .reset_context = which->context,
    };
    const enum fib_status st =
        sampler->device->ops->window_create(sampler->device, &spec, window, err);
    free(slots);
    return st;
}

static enum fib_status fail_clock(const struct fib_sampler *sampler, size_t arm, double last_ms,
                                  struct fib_error *err)
{
    sampler->samples->failed_arm = arm;
    return fib_fail(err, FIB_ERR_DEVICE,
                    "timer %s gave no positive time for %s in %d windows in a row, the last one "
                    "%g ms",
                    fib_timer_name(sampler->timer), sampler->arms[arm].label, FIB_MAX_BAD_IN_A_ROW,
                    last_ms);
}

enum fib_status fib_sampler_run(struct fib_sampler *sampler, size_t arm, struct fib_window *window,
                                struct fib_run *run, struct fib_error *err)
{
    struct fib_device *device = sampler->device;
    struct fib_window_sample sample = {0};
    if (sampler->arms[arm].enter)
        sampler->arms[arm].enter(sampler->arms[arm].context);
    const double begin_ms = device->ops->now_ms(device);
    const enum fib_status st = device->ops->window_run(window, &sample, err);
    if (st != FIB_OK)
        return st;
    run->raw_ms = sample.window_ms;
    run->net_ms = sample.window_ms - sample.overhead_ms;
    run->mhz = sample.mhz;
    sampler->samples->overhead_ms = sample.overhead_ms;
    sampler->samples->overhead_method = sample.overhead_method;
    run->wall_ms = device->ops->now_ms(device) - begin_ms;
    run->busy_ms = sampler->timer == FIB_TIMER_ISOLATED ? run->wall_ms : run->net_ms;
    run->usable = isfinite(run->net_ms) && run->net_ms > 0;
    fib_device_note_work(device, fmin(run->usable ? run->busy_ms : 0, run->wall_ms));
    sampler->bad_in_a_row = run->usable ? 0 : sampler->bad_in_a_row + 1;
    return sampler->bad_in_a_row < FIB_MAX_BAD_IN_A_ROW
               ? FIB_OK
               : fail_clock(sampler, arm, sample.window_ms, err);
}

static void keep(struct fib_series *series, const struct fib_run *run, uint32_t calls, double at_s)
{
    if (series->count == series->capacity) {
        series->capacity = series->capacity > 0 ? 2 * series->capacity : 64;
        const size_t bytes = series->capacity * sizeof(double);
        series->call_ms = fib_realloc(series->call_ms, bytes);
        series->raw_ms = fib_realloc(series->raw_ms, bytes);
        series->at_s = fib_realloc(series->at_s, bytes);
        series->mhz = fib_realloc(series->mhz, bytes);
    }
    series->call_ms[series->count] = run->net_ms / calls;
    series->raw_ms[series->count] = run->raw_ms / calls;
    series->at_s[series->count] = at_s;
    series->mhz[series->count] = run->mhz;
    series->count++;
}

/* One window of one arm. Where a window does not cover the ring, each next window goes on where
 * the last one ended, whichever arm ran it: no arm finds slots that another has just warmed. */
static enum fib_status run_arm(struct rounds *rounds, size_t arm, struct fib_error *err)
{
    struct fib_sampler *sampler = rounds->sampler;
    struct fib_device *device = sampler->device;
    const uint32_t part = (uint32_t)(rounds->turn++ % rounds->part_count);
    struct fib_window **window = &rounds->windows[arm * rounds->part_count + part];
    enum fib_status st = fib_sampler_check(sampler, err);
    if (st == FIB_OK && !*window)
        st = fib_sampler_window(sampler, arm, part * rounds->calls, rounds->calls, window, err);
    if (st == FIB_OK)
        st = fib_sampler_run(sampler, arm, *window, &rounds->runs[arm], err);
    if (st == FIB_OK)
        rounds->end_ms[arm] = device->ops->now_ms(device);
    return st;
}

/* Keeps or drops the round as a whole: sample i of all arms comes from the same round. */
static enum fib_status book_round(struct rounds *rounds, struct fib_error *err)
{
    struct fib_samples *samples = rounds->sampler->samples;
    size_t bad = samples->arm_count; /* an arm without a usable time */
    for (size_t a = 0; a < samples->arm_count; a++)
        if (!rounds->runs[a].usable)
            bad = a;
    const bool usable = bad == samples->arm_count;
    rounds->dropped_in_a_row = usable ? 0 : rounds->dropped_in_a_row + 1;
    for (size_t a = 0; a < samples->arm_count; a++) {
        const struct fib_run *run = &rounds->runs[a];
        struct progress *progress = &rounds->progress[a];
        progress->spent_ms += run->wall_ms;
        rounds->total_ms += run->wall_ms;
        if (!usable) {
            samples->series[a].rejected_count++;
            continue;
        }
        progress->busy_ms += fmax(run->raw_ms, run->busy_ms);
        keep(&samples->series[a], run, rounds->calls, (rounds->end_ms[a] - rounds->begin_ms) / 1e3);
    }
    return rounds->dropped_in_a_row < FIB_MAX_BAD_IN_A_ROW
               ? FIB_OK
               : fail_clock(rounds->sampler, bad, rounds->runs[bad].raw_ms, err);
}

/* Looks at the precision at growing distances, so that long series are not sorted each time. Two
 * arms end on a whole A B B A. */
static enum fib_stop precision_stop(const struct rounds *rounds, size_t arm)
{
    const struct fib_sampler *sampler = rounds->sampler;
    const struct fib_series *series = &sampler->samples->series[arm];
    struct progress *progress = &rounds->progress[arm];
    const size_t count = series->count;
    if (count < MIN_WINDOWS || count < progress->next_check || progress->busy_ms < min_busy_ms ||
        (sampler->arm_count == 2 && count % 2 != 0))
        return FIB_STOP_NONE;
    progress->next_check = count + 2 + count / 10;
    double low, high;
    if (!fib_stats_interval(series->call_ms, count, &low, &high))
        return FIB_STOP_NONE;
    const double half = (high - low) / 2.0;
    const double median = fib_stats_percentile(series->call_ms, count, 0.5);
    const double half_tick = sampler->device->facts.tick_ms / (2.0 * rounds->calls);
    const double wanted = sampler->rules->precision * median;
    if (!(half <= fmax(wanted, half_tick)))
        return FIB_STOP_NONE;
    /* Windows that all show the same few steps look more precise than their clock is. */
    return half_tick > wanted ? FIB_STOP_TICK : FIB_STOP_PRECISION;
}

/* An arm's time is spent when its own windows took its budget, or all windows the budget of all
 * arms: a slow arm could otherwise be dragged along by a fast, noisy one for minutes. */
static bool budget_is_spent(const struct rounds *rounds, size_t arm)
{
    const struct fib_sampler *sampler = rounds->sampler;
    const size_t count = sampler->samples->series[arm].count;
    if (count < FEWEST_WINDOWS)
        return false;
    return rounds->progress[arm].spent_ms >= sampler->rules->budget_ms ||
           rounds->total_ms >= sampler->rules->budget_ms * (double)sampler->arm_count ||
           count >= MAX_WINDOWS || (double)count * rounds->calls >= MAX_ARM_CALLS;
}

static enum fib_stop find_stop(const struct rounds *rounds, size_t arm)
{
    const struct fib_sample_rules *rules = rounds->sampler->rules;
    const size_t count = rounds->sampler->samples->series[arm].count;
    if (rules->window_count != FIB_UNSET_I64)
        return (int64_t)count >= rules->window_count && count > 0 ? FIB_STOP_COUNT : FIB_STOP_NONE;
    const enum fib_stop stop = precision_stop(rounds, arm);
    if (stop != FIB_STOP_NONE)
        return stop;
    return budget_is_spent(rounds, arm) ? FIB_STOP_BUDGET : FIB_STOP_NONE;
}

static size_t fastest_arm(const struct fib_samples *samples)
{
    size_t best = 0;
    double best_ms = INFINITY;
    for (size_t a = 0; a < samples->arm_count; a++) {
        const struct fib_series *series = &samples->series[a];
        const double median_ms = fib_stats_percentile(series->call_ms, series->count, 0.5);
        if (median_ms < best_ms) {
            best_ms = median_ms;
            best = a;
        }
    }
    return best;
}

static bool is_told_apart(const struct fib_sampler *sampler, size_t best, size_t arm)
{
    const struct fib_series *a = &sampler->samples->series[best];
    const struct fib_series *b = &sampler->samples->series[arm];
    struct fib_paired paired;
    fib_stats_paired(a->call_ms, b->call_ms, b->count, sampler->rules->margin, &paired);
    return paired.verdict != FIB_UNRESOLVED;
}

/* True while more rounds may tell whether some arm differs from the fastest by more than the
 * margin. To stop at that word is no peeking at significance: the interval has to clear the margin
 * or to lie inside it, and that of two equal arms all but never clears it. An arm that stays open
 * has the budget for its reason. */
static bool verdict_is_open(struct rounds *rounds)
{
    const struct fib_sampler *sampler = rounds->sampler;
    const struct fib_sample_rules *rules = sampler->rules;
    const size_t count = sampler->samples->series[0].count; /* that of all */
    bool spent = false, open = false;
    if (sampler->arm_count < 2 || !(rules->margin > 0) || rules->window_count != FIB_UNSET_I64)
        return false;
    for (size_t a = 0; a < sampler->arm_count; a++)
        spent = spent || budget_is_spent(rounds, a);
    if (!spent && (count < rounds->next_look || (sampler->arm_count == 2 && count % 2 != 0)))
        return true;
    rounds->next_look = count + 2 + count / 10;
    const size_t best = fastest_arm(sampler->samples);
    for (size_t a = 0; a < sampler->arm_count; a++) {
        if (a == best || is_told_apart(sampler, best, a))
            continue;
        if (spent)
            sampler->samples->series[a].stop = FIB_STOP_BUDGET;
        open = !spent;
    }
    return open;
}

/* Notes why arms stop; true when all have a reason and are told apart as far as possible. Arms that
 * are done run on with the others. */
static bool all_done(struct rounds *rounds)
{
    const struct fib_samples *samples = rounds->sampler->samples;
    bool done = true;
    for (size_t a = 0; a < samples->arm_count; a++) {
        struct fib_series *series = &samples->series[a];
        if (series->stop == FIB_STOP_NONE)
            series->stop = find_stop(rounds, a);
        done = done && series->stop != FIB_STOP_NONE;
    }
    return done && !verdict_is_open(rounds);
}

static enum fib_status run_rounds(struct rounds *rounds, struct fib_error *err)
{
    const struct fib_sampler *sampler = rounds->sampler;
    for (size_t round = 0; !all_done(rounds); round++) {
        fib_sample_order(sampler->arm_count, round, sampler->rules->seed, rounds->order);
        for (size_t i = 0; i < sampler->arm_count; i++) {
            const enum fib_status st = run_arm(rounds, rounds->order[i], err);
            if (st != FIB_OK)
                return st;
        }
        const enum fib_status st = book_round(rounds, err);
        if (st != FIB_OK)
            return st;
    }
    return FIB_OK;
}

static enum fib_status take_samples(struct fib_sampler *sampler, struct fib_error *err)
{
    const size_t arms = sampler->arm_count;
    struct rounds rounds = {.sampler = sampler, .calls = sampler->samples->calls_per_window};
    rounds.part_count = fib_sample_part_count(sampler->slot_count, rounds.calls);
    /* A B B A has a period of four: an odd number of parts gives each part to both arms in turn. */
    if (arms == 2 && rounds.part_count > 2 && rounds.part_count % 2 == 0)
        rounds.part_count--;
    const size_t window_count = arms * rounds.part_count;
    rounds.windows = fib_zalloc_array(window_count, sizeof(struct fib_window *));
    rounds.progress = fib_zalloc_array(arms, sizeof(*rounds.progress));
    rounds.runs = fib_zalloc_array(arms, sizeof(*rounds.runs));
    rounds.end_ms = fib_zalloc_array(arms, sizeof(*rounds.end_ms));
    rounds.order = fib_zalloc_array(arms, sizeof(*rounds.order));
    rounds.begin_ms = sampler->device->ops->now_ms(sampler->device);
    const enum fib_status st = run_rounds(&rounds, err);
    for (size_t i = 0; i < window_count; i++)
        if (rounds.windows[i])
            sampler->device->ops->window_destroy(&rounds.windows[i]);
    free(rounds.windows);
    free(rounds.progress);
    free(rounds.runs);
    free(rounds.end_ms);
    free(rounds.order);
    return st;
}

/* The fastest arm needs the most calls for a window that the clock resolves; the one that costs
 * most decides how many the budget can pay for. Without a warm-up nothing is known: every slot
 * once. */
static uint32_t choose_calls(const struct fib_sampler *sampler, const struct fib_warmth *warmth)
{
    double fastest_ms = INFINITY, dearest_ms = 0;
    if (sampler->timer == FIB_TIMER_ISOLATED)
        return 1; /* each call is a sample of its own */
    for (size_t a = 0; a < sampler->arm_count; a++) {
        if (warmth[a].call_ms > 0)
            fastest_ms = fmin(fastest_ms, warmth[a].call_ms);
        dearest_ms = fmax(dearest_ms, warmth[a].cost_ms);
    }
    if (!isfinite(fastest_ms))
        return sampler->slot_count;
    return fib_sample_calls(fastest_ms, sampler->device->facts.window_min_ms, sampler->slot_count,
                            sampler->rules->in_place,
                            sampler->rules->budget_ms * (fastest_ms / dearest_ms));
}

static void clear_series(struct fib_series *series)
{
    free(series->call_ms);
    free(series->raw_ms);
    free(series->at_s);
    free(series->mhz);
    *series = (struct fib_series){0};
}

static enum fib_status run_all(struct fib_sampler *sampler, struct fib_error *err)
{
    const char *refusal = fib_device_timer_refusal(sampler->device, sampler->timer);
    if (refusal)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "--timer %s: %s", fib_timer_name(sampler->timer),
                        refusal);
    struct fib_warmth *warmth = fib_zalloc_array(sampler->arm_count, sizeof(*warmth));
    enum fib_status st = FIB_OK;
    for (size_t a = 0; a < sampler->arm_count && st == FIB_OK; a++)
        st = fib_sampler_warm_up(sampler, a, &warmth[a], err);
    if (st == FIB_OK) {
        sampler->samples->calls_per_window = choose_calls(sampler, warmth);
        st = take_samples(sampler, err);
    }
    free(warmth);
    return st;
}

/* A call that cannot be captured is timed by events around plain launches, and so are the other
 * arms: numbers of one case come from one timer. The samples say why. */
static enum fib_status run_without_graph(struct fib_sampler *sampler, struct fib_error *err)
{
    struct fib_samples *const samples = sampler->samples;
    for (size_t a = 0; a < samples->arm_count; a++)
        clear_series(&samples->series[a]);
    snprintf(samples->capture_note, sizeof(samples->capture_note), "%.255s", err->text);
    *err = (struct fib_error){0};
    sampler->timer = samples->timer = FIB_TIMER_EVENTS;
    sampler->bad_in_a_row = 0;
    return run_all(sampler, err);
}

static const char *interleave_name(size_t arm_count)
{
    return arm_count < 2 ? "none" : arm_count == 2 ? "abba" : "williams";
}

enum fib_status fib_sample_run(struct fib_device *device, const struct fib_arm *arms,
                               size_t arm_count, const struct fib_sample_rules *rules,
                               struct fib_samples *samples, struct fib_error *err)
{
    const enum fib_timer timer =
        rules->timer == FIB_TIMER_DEFAULT ? device->facts.default_timer : rules->timer;
    *samples = (struct fib_samples){
        .series = fib_zalloc_array(arm_count, sizeof(*samples->series)),
        .arm_count = arm_count,
        .interleave = interleave_name(arm_count),
        .timer = timer,
        .failed_arm = arm_count,
    };
    struct fib_sampler sampler = {
        .device = device,
        .arms = arms,
        .arm_count = arm_count,
        .rules = rules,
        .timer = timer,
        .samples = samples,
        .slot_count = rules->slot_count > 0 ? rules->slot_count : 1,
        .start_ms = device->ops->now_ms(device),
    };
    sampler.slots = fib_zalloc_array(sampler.slot_count, sizeof(*sampler.slots));
    fib_sample_permute(sampler.slot_count, rules->seed, sampler.slots);
    struct fib_error first = {0};
    enum fib_status st = arm_count > 0 ? run_all(&sampler, &first) : FIB_OK;
    if (st == FIB_ERR_UNSUPPORTED && timer == FIB_TIMER_GRAPH &&
        !fib_device_timer_refusal(device, FIB_TIMER_EVENTS))
        st = run_without_graph(&sampler, &first);
    if (st != FIB_OK)
        fib_fail(err, st, "%s", first.text);
    for (size_t a = 0; st == FIB_ERR_TIMEOUT && a < arm_count; a++)
        if (samples->series[a].stop == FIB_STOP_NONE)
            samples->series[a].stop = FIB_STOP_TIMEOUT;
    free(sampler.slots);
    return st;
}

void fib_samples_free(struct fib_samples *samples)
{
    for (size_t a = 0; a < samples->arm_count; a++)
        clear_series(&samples->series[a]);
    free(samples->series);
    *samples = (struct fib_samples){0};
}
