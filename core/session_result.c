/* Turns what became of each backend of a case into records. */
#include "core/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const double fib_verdict_margin = 0.005;

/* A series without samples, or with samples that no clock can give, is no measurement. */
static bool has_time(const struct fib_session *s, const struct fib_run_arm *arm)
{
    return arm->timed && s->samples.series[arm->series_index].count > 0 &&
           (fib_run_arm_is_sound(arm) || arm->status == FIB_RESULT_UNCHECKED ||
            (arm->status == FIB_RESULT_INCORRECT && s->kase->settings.allow_output_mismatch));
}

static const struct fib_series *series_of(const struct fib_session *s,
                                          const struct fib_run_arm *arm)
{
    return &s->samples.series[arm->series_index];
}

static double median_of(const struct fib_session *s, const struct fib_run_arm *arm)
{
    const struct fib_series *const series = series_of(s, arm);
    return fib_stats_percentile(series->call_ms, series->count, 0.5);
}

void fib_session_medians(const struct fib_session *s, double *median_ms)
{
    for (size_t i = 0; i < s->candidates.count; i++)
        median_ms[i] = has_time(s, &s->arms[i]) ? median_of(s, &s->arms[i]) : NAN;
}

static size_t round_count(const struct fib_series *a, const struct fib_series *b)
{
    return a->count < b->count ? a->count : b->count;
}

static void compare(const struct fib_session *s, const struct fib_run_arm *a,
                    const struct fib_run_arm *b, struct fib_paired *paired)
{
    const struct fib_series *const first = series_of(s, a), *const second = series_of(s, b);
    const size_t count = round_count(first, second);
    fib_stats_paired(first->call_ms, second->call_ms, count, fib_verdict_margin, paired);
}

/* The fastest by paired rounds: under drift the plain medians can order two backends the other way
 * round than their rounds do. */
static const struct fib_run_arm *fastest(const struct fib_session *s)
{
    const struct fib_run_arm *best = NULL;
    for (size_t i = 0; i < s->candidates.count; i++) {
        const struct fib_run_arm *const arm = &s->arms[i];
        struct fib_paired paired;
        if (!has_time(s, arm))
            continue;
        if (best)
            compare(s, best, arm, &paired);
        if (!best || paired.ratio < 1.0)
            best = arm;
    }
    return best;
}

static void add_time(const struct fib_session *s, const struct fib_run_arm *arm,
                     struct fib_result *result)
{
    const struct fib_series *const series = series_of(s, arm);
    result->has_time = true;
    result->series = series;
    result->samples = &s->samples;
    fib_stats_compute(series->call_ms, series->at_s, series->count, &result->time_ms);
    result->raw_median_ms = fib_stats_percentile(series->raw_ms, series->count, 0.5);
    if (s->samples.timer == s->runner->device->facts.default_timer)
        result->gap_ms = s->runner->device->facts.call_gap_ms;
    result->rates = fib_metrics_rates(&s->problem.cost, result->time_ms.median);
    if (s->cold_ms)
        result->cold_over_hot = s->cold_ms[arm - s->arms] / result->time_ms.median;
    struct fib_clock clock;
    if (fib_stats_clock(series->mhz, series->count, &clock) && clock.unstable)
        result->flags[result->flag_count++] = "CLOCK_UNSTABLE";
    if (s->samples.capture_note[0])
        result->flags[result->flag_count++] = "CAPTURE_FAILED";
    if (series->rejected_count > 0)
        result->flags[result->flag_count++] = "WINDOWS_REJECTED";
    /* Quick runs and runs with their own count do not wait for agreement. */
    if (!series->settled && !s->kase->settings.quick &&
        s->kase->settings.dry_run_iters == FIB_UNSET_I64)
        result->flags[result->flag_count++] = "NOT_SETTLED";
}

static struct fib_result make_result(const struct fib_session *s, const struct fib_run_arm *arm)
{
    struct fib_result result = {
        .kase = s->kase,
        .backend = arm->candidate->label,
        .status = arm->status,
        .has_cost = !s->kase->routine->unavailable && !s->undescribed,
        .cost = s->problem.cost,
        .has_check = arm->checked,
        .check = arm->check,
        .total_rows = s->problem.row_count,
        .output_checksum = arm->output_checksum,
        .ring_slots = s->slot_count,
        .cache = s->hot ? "hot" : "cold",
        .init = s->kase->settings.init,
        .utc_s = s->runner->device->ops->utc_s(s->runner->device),
        .run = 1,
        .case_index = s->case_index,
        .cold_over_hot = NAN,
        .spent_ms = s->spent_ms,
    };
    memcpy(result.resolved_backend, arm->resolved, sizeof(result.resolved_backend));
    memcpy(result.reason, arm->reason, sizeof(result.reason));
    if (s->slots_capped && arm->timed)
        result.flags[result.flag_count++] = "RING_CAPPED";
    if (has_time(s, arm))
        add_time(s, arm, &result);
    else if (fib_run_arm_is_sound(arm)) {
        result.status = FIB_RESULT_ERROR;
        memcpy(result.reason, "no usable window was measured",
               sizeof("no usable window was measured"));
    }
    if (result.status == FIB_RESULT_PASSED && !arm->checked)
        result.status = FIB_RESULT_UNCHECKED;
    if (result.status == FIB_RESULT_PASSED && !s->kase->routine->reference) {
        result.status = FIB_RESULT_UNCHECKED;
        snprintf(result.reason, sizeof(result.reason),
                 "the routine has no reference: values were not compared, only that outputs are "
                 "written, inputs unchanged and guards intact");
    }
    return result;
}

static enum fib_status emit_arm(const struct fib_session *s, const struct fib_run_arm *arm,
                                const struct fib_run_arm *best, struct fib_error *err)
{
    struct fib_result result = make_result(s, arm);
    struct fib_paired paired;
    if (best && best != arm && result.has_time) {
        const struct fib_series *const a = series_of(s, best), *const b = series_of(s, arm);
        compare(s, best, arm, &paired);
        fib_stats_paired_test(a->call_ms, b->call_ms, round_count(a, b), &paired);
        result.versus_best = &paired;
        result.best_backend = best->candidate->label;
    }
    const struct fib_registry *const registry = s->runner->registry;
    struct fib_json *const record =
        fib_result_record(&result, s->runner->device, registry->program, registry->build_id);
    return s->runner->emit(s->runner->context, record, err);
}

/* False for a backend that has its row, or will run again in a process with a sound device. */
static bool is_due(const struct fib_session *s, const struct fib_run_arm *arm)
{
    const bool waits = s->runner->device->lost && s->runner->replaceable;
    return !arm->skipped && !(waits && fib_run_arm_is_sound(arm));
}

/* Without a process to replace, what another backend destroyed cannot be measured. */
static void give_up_unjudged(const struct fib_session *s)
{
    for (size_t i = 0; i < s->candidates.count; i++)
        if (is_due(s, &s->arms[i]))
            fib_run_arm_fail(&s->arms[i], FIB_RESULT_CRASHED,
                             "the device was lost by another backend of the case");
}

enum fib_status fib_session_emit(const struct fib_session *s, struct fib_error *err)
{
    const struct fib_run_arm *const best = s->samples.series ? fastest(s) : NULL;
    enum fib_status st = FIB_OK;
    if (s->runner->device->lost)
        give_up_unjudged(s);
    for (size_t i = 0; st == FIB_OK && i < s->candidates.count; i++)
        if (is_due(s, &s->arms[i]))
            st = emit_arm(s, &s->arms[i], best, err);
    return st;
}
