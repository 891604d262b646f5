/* One result: a case on one backend. The struct is filled by the runner; the record made from it is
 * what travels to journal, CSV, JSON and console, and the only thing they see. */
#ifndef FIB_CORE_RESULT_H
#define FIB_CORE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/case.h"
#include "core/check.h"
#include "core/device.h"
#include "core/json.h"
#include "core/metrics.h"
#include "core/sample.h"
#include "core/stats.h"

enum { FIB_SCHEMA_VERSION = 1 };

enum fib_result_status {
    FIB_RESULT_PASSED = 0,
    FIB_RESULT_INCORRECT,   /* wrong values, guards, unwritten elements, changed inputs */
    FIB_RESULT_INVALID,     /* a number that cannot be true (above a physical limit) */
    FIB_RESULT_UNCHECKED,   /* --no_check */
    FIB_RESULT_UNSUPPORTED, /* refused with a reason */
    FIB_RESULT_TOO_SLOW,    /* estimate above --max_case_s */
    FIB_RESULT_OOM,
    FIB_RESULT_TIMEOUT,
    FIB_RESULT_CRASHED,
    FIB_RESULT_ERROR        /* bad list line, or a library error */
};
const char *fib_result_status_name(enum fib_result_status status); /* "PASSED", ... */

enum { FIB_MAX_RESULT_FLAGS = 8 };

struct fib_result {
    const struct fib_case *kase;
    const char *backend;             /* label as asked for, aliases resolved */
    char resolved_backend[96];       /* what ran; "" when nothing did */
    enum fib_result_status status;
    char reason[FIB_ERROR_CHARS];
    const char *flags[FIB_MAX_RESULT_FLAGS]; /* "RING_CAPPED", ... */
    int flag_count;

    bool has_time;                   /* the fields up to `rates` are valid */
    struct fib_stats time_ms;        /* per call */
    double raw_median_ms;            /* window / N, overhead included */
    double gap_ms;                   /* time of an empty call in such a window; 0: not known */
    const struct fib_series *series; /* samples, for --samples and stop reason; may be NULL */
    const struct fib_samples *samples;
    struct fib_rates rates;

    bool has_cost;
    struct fib_cost cost;
    bool has_check;
    struct fib_verification check;
    int64_t total_rows;
    uint64_t output_checksum;        /* of the first checked run, all outputs */

    const double *spent_ms;          /* [FIB_STEP_COUNT] wall time of the case so far; or NULL */
    double cold_over_hot;            /* of a hot row whose cold twin was measured; else NaN */
    uint32_t ring_slots;
    const char *cache;               /* "cold" or "hot": the state really used */
    const char *init;
    int64_t utc_s;
    int64_t run;                     /* 1-based run number */
    int64_t case_index;              /* 0-based position in the plan */
    const struct fib_paired *versus_best; /* against the fastest arm; NULL when alone or fastest */
    const char *best_backend;
};

/* The record (schema: docs/schema/result.schema.json). Numbers that do not exist are null.
 *   schema_version, kind "result", case_key, case_index, run, line, source, title, time_utc,
 *   routine, family, backend, resolved_backend, status, reason, flags [..],
 *   params { every flag of scope ROUTINE and SHARED that this routine uses: number, text, bool,
 *            null },
 *   time { unit "ps": median mean std mad min max p5 p25 p75 p95 p99 ci_low ci_high
 *          order_low order_high raw net (integer picoseconds), ci_method, outliers,
 *          autocorrelation, drift_pct_per_s, samples [..] } or null,
 *   rate { tflops tb_per_sec bound roof_pct } or null,
 *   cost { flops bytes } or null,
 *   measure { timer cache power_mode init interleave ring_slots calls_per_window windows
 *             rejected_windows stop_reason warmup_ms settled overhead_us overhead_method gap_us
 *             tick_ps mhz { median min max slow_windows } cold_over_hot
 *             spent_ms { fill prepare check time check_again } } or null,
 *   check { verdict "passed" | "failed" | "not run", checked_rows total_rows compared mismatches
 *           max_abs_err max_rel_err rel_l2 output_checksum message } or null,
 *   versus { best_backend ratio ratio_low ratio_high rounds ties verdict margin_pct mde_pct
 *            rounds_needed p } or null,
 *   device { name uuid kind },
 *   build_id, repro_command */
struct fib_json *fib_result_record(const struct fib_result *result,
                                   const struct fib_device *device, const char *program,
                                   const char *build_id);

/* Record of a test-list line that could not be understood: status ERROR, reason the sentence. */
struct fib_json *fib_result_bad_line_record(const char *routine_name, const char *source,
                                            int64_t line, const char *line_text,
                                            const char *sentence, int64_t case_index,
                                            const struct fib_device *device);

/* Exit status one record asks for: INCORRECT and INVALID 4 (unless allowed), CRASHED and TIMEOUT 5,
 * ERROR on a list line 8, else 0. */
enum fib_exit fib_result_exit(const struct fib_json *record);
/* True when the record carries a time. */
bool fib_result_measured(const struct fib_json *record);

#endif
