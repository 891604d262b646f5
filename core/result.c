/* The record of one result: every number that any report shows is computed or converted here. */
#include "core/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/routine.h"
#include "core/step.h"
#include "core/text.h"

const char *fib_result_status_name(enum fib_result_status status)
{
    static const char *const names[] = {
        [FIB_RESULT_PASSED] = "PASSED",
        [FIB_RESULT_INCORRECT] = "INCORRECT",
        [FIB_RESULT_INVALID] = "INVALID",
        [FIB_RESULT_UNCHECKED] = "UNCHECKED",
        [FIB_RESULT_UNSUPPORTED] = "UNSUPPORTED",
        [FIB_RESULT_TOO_SLOW] = "TOO_SLOW",
        [FIB_RESULT_OOM] = "OOM",
        [FIB_RESULT_TIMEOUT] = "TIMEOUT",
        [FIB_RESULT_CRASHED] = "CRASHED",
        [FIB_RESULT_ERROR] = "ERROR",
    };
    const size_t count = sizeof(names) / sizeof(names[0]);
    return (size_t)status < count ? names[status] : "ERROR";
}

static void set_ps(struct fib_json *object, const char *name, double time_ms)
{
    fib_json_set_f64(object, name, isfinite(time_ms) ? round(time_ms * 1e9) : NAN);
}

static void set_utc(struct fib_json *record, int64_t utc_s)
{
    const time_t seconds = (time_t)utc_s;
    struct tm parts;
    char text[32];
    if (gmtime_r(&seconds, &parts) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts))
        fib_json_set_text(record, "time_utc", text);
    else
        fib_json_set_null(record, "time_utc");
}

static void set_value(struct fib_json *params, const struct fib_option *option,
                      const struct fib_value *value)
{
    if (option->kind == FIB_OPT_SWITCH) {
        fib_json_set_bool(params, option->name, value->text && strcmp(value->text, "True") == 0);
        return;
    }
    if (!value->set) {
        fib_json_set_null(params, option->name);
        return;
    }
    switch (option->kind) {
    case FIB_OPT_I64:
    case FIB_OPT_COUNT:
        fib_json_set_i64(params, option->name, value->i64);
        break;
    case FIB_OPT_F64:
        fib_json_set_f64(params, option->name, value->f64);
        break;
    default:
        fib_json_set_text(params, option->name, value->text);
    }
}

static struct fib_json *params_of(const struct fib_case *kase)
{
    struct fib_json *params = fib_json_object();
    for (size_t i = 0; i < kase->options->count; i++) {
        const struct fib_option *option = &kase->options->rows[i];
        if (option->scope != FIB_SCOPE_RUN && fib_case_uses(kase, option))
            set_value(params, option, &kase->values[i]);
    }
    return params;
}

/* A wrong, impossible or unfinished measurement has no time, unless the user asked to see it. */
static bool time_counts(const struct fib_result *result)
{
    if (!result->has_time)
        return false;
    switch (result->status) {
    case FIB_RESULT_PASSED:
    case FIB_RESULT_UNCHECKED:
        return true;
    case FIB_RESULT_INCORRECT:
    case FIB_RESULT_INVALID:
        return result->kase->settings.allow_output_mismatch;
    default:
        return false;
    }
}

static void add_samples(struct fib_json *time, const struct fib_series *series)
{
    struct fib_json *samples = fib_json_set(time, "samples", fib_json_array());
    for (size_t i = 0; i < series->count; i++)
        fib_json_add_f64(samples, round(series->call_ms[i] * 1e9));
}

static struct fib_json *time_of(const struct fib_result *result)
{
    const struct fib_stats *stats = &result->time_ms;
    struct fib_json *time = fib_json_object();
    fib_json_set_text(time, "unit", "ps");
    set_ps(time, "median", stats->median);
    set_ps(time, "mean", stats->mean);
    set_ps(time, "std", stats->std);
    set_ps(time, "mad", stats->mad);
    set_ps(time, "min", stats->min);
    set_ps(time, "max", stats->max);
    set_ps(time, "p5", stats->p5);
    set_ps(time, "p25", stats->p25);
    set_ps(time, "p75", stats->p75);
    set_ps(time, "p95", stats->p95);
    set_ps(time, "p99", stats->p99);
    set_ps(time, "ci_low", stats->ci_low);
    set_ps(time, "ci_high", stats->ci_high);
    set_ps(time, "order_low", stats->order_low);
    set_ps(time, "order_high", stats->order_high);
    set_ps(time, "raw", result->raw_median_ms);
    set_ps(time, "net", result->gap_ms > 0 ? stats->median - result->gap_ms : NAN);
    fib_json_set_text(time, "ci_method", stats->ci_method);
    fib_json_set_i64(time, "outliers", (int64_t)stats->outlier_count);
    fib_json_set_f64(time, "autocorrelation", stats->autocorrelation);
    fib_json_set_f64(time, "drift_pct_per_s", stats->drift_pct_per_s);
    if (result->kase->settings.samples && result->series)
        add_samples(time, result->series);
    return time;
}

static struct fib_json *rate_of(const struct fib_result *result)
{
    struct fib_json *rate = fib_json_object();
    fib_json_set_f64(rate, "tflops", result->rates.tflops);
    fib_json_set_f64(rate, "tb_per_sec", result->rates.tb_per_sec);
    /* The ceiling that binds is known only after a calibration. */
    fib_json_set_null(rate, "bound");
    fib_json_set_null(rate, "roof_pct");
    return rate;
}

static struct fib_json *cost_of(const struct fib_cost *cost)
{
    struct fib_json *object = fib_json_object();
    fib_json_set_f64(object, "flops", cost->flops);
    fib_json_set_f64(object, "bytes", cost->traffic_bytes);
    return object;
}

static void add_series(struct fib_json *measure, const struct fib_series *series)
{
    if (!series) {
        static const char *const absent[] = {"windows", "rejected_windows", "stop_reason",
                                             "warmup_ms", "settled"};
        for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
            fib_json_set_null(measure, absent[i]);
        return;
    }
    fib_json_set_i64(measure, "windows", (int64_t)series->count);
    fib_json_set_i64(measure, "rejected_windows", (int64_t)series->rejected_count);
    fib_json_set_text(measure, "stop_reason", fib_stop_name(series->stop));
    fib_json_set_f64(measure, "warmup_ms", series->warmup_ms);
    fib_json_set_bool(measure, "settled", series->settled);
}

/* Clock of the device over the windows whose clock is known. */
static struct fib_json *mhz_of(const struct fib_series *series)
{
    struct fib_clock clock;
    if (!series || !series->mhz || !fib_stats_clock(series->mhz, series->count, &clock))
        return NULL;
    struct fib_json *object = fib_json_object();
    fib_json_set_f64(object, "median", clock.median_mhz);
    fib_json_set_f64(object, "min", clock.min_mhz);
    fib_json_set_f64(object, "max", clock.max_mhz);
    fib_json_set_i64(object, "slow_windows", (int64_t)clock.slow_count);
    return object;
}

static void add_overhead(struct fib_json *measure, const struct fib_samples *samples,
                         const struct fib_device_facts *facts, double gap_ms)
{
    const bool own = samples && samples->overhead_method;
    const double overhead_ms = own ? samples->overhead_ms : facts->window_overhead_ms;
    fib_json_set_f64(measure, "overhead_us", round(overhead_ms * 1e9) / 1e6);
    fib_json_set_text(measure, "overhead_method",
                      own ? samples->overhead_method : facts->overhead_method);
    fib_json_set_f64(measure, "gap_us", gap_ms > 0 ? round(gap_ms * 1e9) / 1e6 : NAN);
}

/* Where the wall time of the case went, all its backends together. */
static struct fib_json *spent_of(const double *spent_ms)
{
    static const struct {
        const char *name;
        enum fib_step step;
    } steps[] = {{"fill", FIB_STEP_FILL},
                 {"prepare", FIB_STEP_PREPARE},
                 {"check", FIB_STEP_CHECK},
                 {"time", FIB_STEP_TIME},
                 {"check_again", FIB_STEP_CHECK_AGAIN}};
    if (!spent_ms)
        return NULL;
    struct fib_json *object = fib_json_object();
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        fib_json_set_f64(object, steps[i].name, round(spent_ms[steps[i].step] * 1e3) / 1e3);
    return object;
}

static struct fib_json *measure_of(const struct fib_result *result, const struct fib_device *device)
{
    const struct fib_samples *samples = result->samples;
    struct fib_json *measure = fib_json_object();
    fib_json_set_text(measure, "timer", samples ? fib_timer_name(samples->timer) : NULL);
    fib_json_set_text(measure, "cache", result->cache);
    fib_json_set_text(measure, "power_mode", result->kase->settings.power_mode);
    fib_json_set_text(measure, "init", result->init);
    fib_json_set_text(measure, "interleave", samples ? samples->interleave : NULL);
    fib_json_set_i64(measure, "ring_slots", result->ring_slots);
    fib_json_set_f64(measure, "calls_per_window", samples ? samples->calls_per_window : NAN);
    add_series(measure, result->series);
    add_overhead(measure, samples, &device->facts, result->gap_ms);
    set_ps(measure, "tick_ps", device->facts.tick_ms);
    fib_json_set(measure, "mhz", mhz_of(result->series));
    fib_json_set_f64(measure, "cold_over_hot", result->cold_over_hot);
    fib_json_set(measure, "spent_ms", spent_of(result->spent_ms));
    return measure;
}

static struct fib_json *unchecked(void)
{
    static const char *const numbers[] = {"checked_rows", "total_rows",      "compared",
                                          "mismatches",   "max_abs_err",     "max_rel_err",
                                          "rel_l2",       "output_checksum", "message"};
    struct fib_json *check = fib_json_object();
    fib_json_set_text(check, "verdict", "not run");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        fib_json_set_null(check, numbers[i]);
    return check;
}

static struct fib_json *check_of(const struct fib_result *result)
{
    const struct fib_verification *found = &result->check;
    char checksum[17];
    snprintf(checksum, sizeof(checksum), "%016" PRIx64, result->output_checksum);
    struct fib_json *check = fib_json_object();
    fib_json_set_text(check, "verdict", found->failed ? "failed" : "passed");
    fib_json_set_i64(check, "checked_rows", found->checked_rows);
    fib_json_set_i64(check, "total_rows", result->total_rows);
    fib_json_set_i64(check, "compared", found->compared_count);
    fib_json_set_i64(check, "mismatches", found->mismatch_count);
    fib_json_set_f64(check, "max_abs_err", found->max_abs_err);
    fib_json_set_f64(check, "max_rel_err", found->max_rel_err);
    fib_json_set_f64(check, "rel_l2", fib_verification_rel_l2(found));
    fib_json_set_text(check, "output_checksum", checksum);
    fib_json_set_text(check, "message", found->failed ? found->message : NULL);
    return check;
}

static struct fib_json *versus_of(const struct fib_result *result)
{
    const struct fib_paired *paired = result->versus_best;
    struct fib_json *versus = fib_json_object();
    fib_json_set_text(versus, "best_backend", result->best_backend);
    fib_json_set_f64(versus, "ratio", paired->ratio);
    fib_json_set_f64(versus, "ratio_low", paired->ratio_low);
    fib_json_set_f64(versus, "ratio_high", paired->ratio_high);
    fib_json_set_i64(versus, "rounds", (int64_t)paired->round_count);
    fib_json_set_i64(versus, "ties", (int64_t)paired->tie_count);
    fib_json_set_text(versus, "verdict", fib_verdict_name(paired->verdict));
    fib_json_set_f64(versus, "margin_pct", 100 * paired->margin);
    fib_json_set_f64(versus, "mde_pct", 100 * paired->mde);
    fib_json_set_f64(versus, "rounds_needed", paired->rounds_needed);
    fib_json_set_f64(versus, "p", paired->p);
    return versus;
}

static struct fib_json *device_of(const struct fib_device *device)
{
    if (!device)
        return NULL;
    struct fib_json *object = fib_json_object();
    fib_json_set_text(object, "name", device->facts.name);
    fib_json_set_text(object, "uuid", device->facts.uuid);
    fib_json_set_text(object, "kind", device->facts.kind == FIB_DEVICE_CUDA ? "cuda" : "cpu");
    return object;
}

/* Members up to time_utc, the same for all records. `line` 0 and NULL texts become null. */
static struct fib_json *new_record(const char *case_key, int64_t case_index, int64_t run,
                                   int64_t line, const char *source)
{
    struct fib_json *record = fib_json_object();
    fib_json_set_i64(record, "schema_version", FIB_SCHEMA_VERSION);
    fib_json_set_text(record, "kind", "result");
    fib_json_set_text(record, "case_key", case_key);
    fib_json_set_i64(record, "case_index", case_index);
    fib_json_set_i64(record, "run", run);
    fib_json_set_f64(record, "line", line > 0 ? (double)line : NAN);
    fib_json_set_text(record, "source", source);
    return record;
}

static void add_identity(struct fib_json *record, const struct fib_result *result)
{
    const struct fib_case *kase = result->kase;
    struct fib_text title = {0};
    fib_case_title(kase, &title);
    fib_json_set_text(record, "title", fib_text_chars(&title));
    fib_text_free(&title);
    set_utc(record, result->utc_s);
    fib_json_set_text(record, "routine", kase->routine->name);
    fib_json_set_text(record, "family", kase->routine->family);
    fib_json_set_text(record, "backend", result->backend);
    fib_json_set_text(record, "resolved_backend",
                      result->resolved_backend[0] ? result->resolved_backend : NULL);
    fib_json_set_text(record, "status", fib_result_status_name(result->status));
    fib_json_set_text(record, "reason", result->reason[0] ? result->reason : NULL);
    struct fib_json *flags = fib_json_set(record, "flags", fib_json_array());
    for (int i = 0; i < result->flag_count; i++)
        fib_json_add_text(flags, result->flags[i]);
}

struct fib_json *fib_result_record(const struct fib_result *result, const struct fib_device *device,
                                   const char *program, const char *build_id)
{
    const struct fib_case *kase = result->kase;
    const bool timed = time_counts(result);
    const bool not_checked = result->status == FIB_RESULT_UNCHECKED;
    char key[17];
    fib_case_key(kase, key);

    struct fib_json *record =
        new_record(key, result->case_index, result->run, kase->line, kase->source);
    add_identity(record, result);
    fib_json_set(record, "params", params_of(kase));
    fib_json_set(record, "time", timed ? time_of(result) : NULL);
    fib_json_set(record, "rate", timed ? rate_of(result) : NULL);
    fib_json_set(record, "cost", result->has_cost ? cost_of(&result->cost) : NULL);
    fib_json_set(record, "measure", result->has_time ? measure_of(result, device) : NULL);
    fib_json_set(record, "check",
                 result->has_check ? check_of(result) : (not_checked ? unchecked() : NULL));
    fib_json_set(record, "versus", timed && result->versus_best ? versus_of(result) : NULL);
    fib_json_set(record, "device", device_of(device));
    fib_json_set_text(record, "build_id", build_id);

    struct fib_text repro = {0};
    fib_case_repro(kase, program, &repro);
    fib_json_set_text(record, "repro_command", fib_text_chars(&repro));
    fib_text_free(&repro);
    return record;
}

struct fib_json *fib_result_bad_line_record(const char *routine_name, const char *source,
                                            int64_t line, const char *line_text,
                                            const char *sentence, int64_t case_index,
                                            const struct fib_device *device)
{
    static const char *const absent[] = {"time", "rate", "cost", "measure", "check", "versus"};
    struct fib_json *record = new_record(NULL, case_index, 1, line, source);
    fib_json_set_text(record, "title", line_text);
    if (device)
        set_utc(record, device->ops->utc_s((struct fib_device *)(uintptr_t)device));
    else
        fib_json_set_null(record, "time_utc");
    fib_json_set_text(record, "routine", routine_name);
    fib_json_set_null(record, "family");
    fib_json_set_null(record, "backend");
    fib_json_set_null(record, "resolved_backend");
    fib_json_set_text(record, "status", fib_result_status_name(FIB_RESULT_ERROR));
    fib_json_set_text(record, "reason", sentence);
    fib_json_set(record, "flags", fib_json_array());
    fib_json_set(record, "params", fib_json_object());
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        fib_json_set_null(record, absent[i]);
    fib_json_set(record, "device", device_of(device));
    fib_json_set_null(record, "build_id");
    fib_json_set_null(record, "repro_command");
    return record;
}

enum fib_exit fib_result_exit(const struct fib_json *record)
{
    const char *status = fib_json_text(record, "status");
    if (!status)
        return FIB_EXIT_OK;
    if (strcmp(status, "INCORRECT") == 0 || strcmp(status, "INVALID") == 0) {
        const bool allowed = fib_json_bool(record, "params.allow_output_mismatch");
        return allowed ? FIB_EXIT_OK : FIB_EXIT_WRONG;
    }
    if (strcmp(status, "CRASHED") == 0 || strcmp(status, "TIMEOUT") == 0)
        return FIB_EXIT_CRASH;
    if (strcmp(status, "ERROR") == 0 && fib_json_is_number(fib_json_get(record, "line")))
        return FIB_EXIT_BAD_LINES;
    return FIB_EXIT_OK;
}

bool fib_result_measured(const struct fib_json *record)
{
    return fib_json_is_number(fib_json_get(record, "time.median"));
}
