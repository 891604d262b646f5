/* All sinks as one, and the end of a run in words. */
#include "core/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/outfile.h"
#include "core/result.h"
#include "core/text.h"

const struct fib_sink_ops *const fib_sinks[] = {&fib_sink_journal, &fib_sink_csv, &fib_sink_json,
                                                &fib_sink_console, NULL};

enum { SINK_JSON = 2 }; /* place in fib_sinks */
enum { SINK_COUNT = sizeof(fib_sinks) / sizeof(fib_sinks[0]) - 1 };

struct fib_report {
    struct fib_sink *sinks[SINK_COUNT];
    struct fib_json **records;
    size_t count, capacity;
};

enum fib_outfile_mode fib_report_mode(const struct fib_sink_settings *settings)
{
    return fib_outfile_mode(settings->force, settings->append || settings->resume);
}

/* Everything is looked at before anything is created: a refused CSV file leaves no journal. */
enum fib_status fib_report_check(const struct fib_sink_settings *settings, struct fib_error *err)
{
    if (settings->force + settings->append + settings->resume > 1)
        return fib_fail(err, FIB_ERR_USAGE, "%s and %s exclude each other",
                        settings->force ? "--force" : "--append",
                        settings->resume ? "--resume" : "--append");
    const enum fib_outfile_mode mode = fib_report_mode(settings);
    enum fib_status st = FIB_OK;
    if (settings->csv_path)
        st = fib_outfile_check(settings->csv_path, mode, err);
    if (st == FIB_OK && settings->csv_path) {
        struct fib_text journal = {0};
        fib_journal_path(settings->csv_path, &journal);
        if (journal.length > 0)
            st = fib_outfile_check(journal.chars, mode, err);
        fib_text_free(&journal);
    }
    if (st == FIB_OK && settings->json_path)
        st = fib_outfile_check(settings->json_path, mode, err);
    return st;
}

enum fib_status fib_report_open(const struct fib_sink_settings *settings,
                                const struct fib_json *environment, struct fib_report **report,
                                struct fib_error *err)
{
    /* The CSV file may still refuse because of its columns; then no journal must be touched. */
    static const size_t open_order[SINK_COUNT] = {1, 0, 2, 3};
    enum fib_status st = fib_report_check(settings, err);
    if (st != FIB_OK)
        return st;
    *report = fib_zalloc(sizeof(**report));
    for (size_t n = 0; n < SINK_COUNT && st == FIB_OK; n++) {
        const size_t i = open_order[n];
        st = fib_sinks[i]->open(settings, environment, &(*report)->sinks[i], err);
    }
    if (st != FIB_OK)
        fib_report_close(report, NULL);
    return st;
}

enum fib_status fib_report_row(struct fib_report *report, struct fib_json *record,
                               struct fib_error *err)
{
    if (report->count == report->capacity) {
        report->capacity = report->capacity ? 2 * report->capacity : 64;
        report->records =
            fib_realloc(report->records, report->capacity * sizeof(report->records[0]));
    }
    report->records[report->count++] = record;
    enum fib_status st = FIB_OK;
    for (size_t i = 0; i < SINK_COUNT && st == FIB_OK; i++) {
        if (report->sinks[i])
            st = fib_sinks[i]->row(report->sinks[i], record, err);
    }
    return st;
}

enum fib_status fib_report_replay(struct fib_report *report, const struct fib_json *record,
                                  struct fib_error *err)
{
    struct fib_sink *const document = report->sinks[SINK_JSON];
    return document ? fib_sink_json.row(document, record, err) : FIB_OK;
}

enum fib_status fib_report_end_case(struct fib_report *report, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (size_t i = 0; i < SINK_COUNT && st == FIB_OK; i++) {
        if (report->sinks[i] && fib_sinks[i]->end_case)
            st = fib_sinks[i]->end_case(report->sinks[i], err);
    }
    return st;
}

enum fib_status fib_report_close(struct fib_report **report, struct fib_error *err)
{
    if (!*report)
        return FIB_OK;
    enum fib_status st = FIB_OK;
    for (size_t i = 0; i < SINK_COUNT; i++) {
        const enum fib_status closed = fib_sinks[i]->close(&(*report)->sinks[i], err);
        st = st == FIB_OK ? closed : st;
    }
    for (size_t i = 0; i < (*report)->count; i++)
        fib_json_free(&(*report)->records[i]);
    free((*report)->records);
    free(*report);
    *report = NULL;
    return st;
}

size_t fib_report_count(const struct fib_report *report)
{
    return report->count;
}

const struct fib_json *fib_report_record(const struct fib_report *report, size_t index)
{
    return index < report->count ? report->records[index] : NULL;
}

/* ---- summary ---- */

enum { MOST_FAILURES = 20, MOST_REASONS = 8, TRACKED_REASONS = 64 };

static const char *text_or(const struct fib_json *record, const char *path, const char *otherwise)
{
    const char *text = fib_json_text(record, path);
    return text ? text : otherwise;
}

static bool has_status(const struct fib_json *record, enum fib_result_status status)
{
    return strcmp(text_or(record, "status", ""), fib_result_status_name(status)) == 0;
}

static bool is_failure(const struct fib_json *record)
{
    return has_status(record, FIB_RESULT_INCORRECT) || has_status(record, FIB_RESULT_INVALID) ||
           has_status(record, FIB_RESULT_CRASHED) || has_status(record, FIB_RESULT_TIMEOUT) ||
           has_status(record, FIB_RESULT_ERROR);
}

static void add_plural(struct fib_text *out, size_t count, const char *noun)
{
    fib_text_addf(out, "%zu %s%s", count, noun, count == 1 ? "" : "s");
}

/* Records of one case follow each other. */
static size_t count_cases(const struct fib_json *const *records, size_t count)
{
    size_t cases = 0;
    double last = NAN;
    for (size_t i = 0; i < count; i++) {
        const double index = fib_json_f64(records[i], "case_index");
        if (index != last)
            cases++;
        last = index;
    }
    return cases;
}

static void add_elapsed(struct fib_text *out, double elapsed_s)
{
    if (elapsed_s < 10)
        fib_text_addf(out, "%.1f s", elapsed_s);
    else if (elapsed_s < 600)
        fib_text_addf(out, "%.0f s", elapsed_s);
    else
        fib_text_addf(out, "%d min %d s", (int)(elapsed_s / 60), (int)fmod(elapsed_s, 60));
}

static void add_counts(struct fib_text *out, const struct fib_json *const *records, size_t count)
{
    const char *before = ": ";
    for (int status = 0; status <= FIB_RESULT_ERROR; status++) {
        size_t rows = 0;
        for (size_t i = 0; i < count; i++)
            rows += has_status(records[i], (enum fib_result_status)status);
        if (rows == 0)
            continue;
        fib_text_addf(out, "%s%zu %s", before, rows,
                      fib_result_status_name((enum fib_result_status)status));
        before = ", ";
    }
}

static void add_failure(struct fib_text *out, const struct fib_json *record)
{
    const double line = fib_json_f64(record, "line");
    const char *routine = fib_json_text(record, "routine");
    const char *backend = fib_json_text(record, "backend");
    const char *reason = text_or(record, "reason", "no reason recorded");
    fib_text_addf(out, "  %-9s", text_or(record, "status", "ERROR"));
    if (!backend) { /* a bad line: its sentence starts with its place */
        fib_text_addf(out, "  %s\n", reason);
        return;
    }
    if (!isnan(line))
        fib_text_addf(out, "  line %.0f", line);
    if (routine)
        fib_text_addf(out, "  %s", routine);
    fib_text_addf(out, "  %s: %s\n", backend, reason);
}

static void add_failures(struct fib_text *out, const struct fib_json *const *records, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_failure(records[i]) && found++ < MOST_FAILURES)
            add_failure(out, records[i]);
    }
    if (found > MOST_FAILURES)
        fib_text_addf(out, "  ... and %zu more\n", found - MOST_FAILURES);
}

struct refusal {
    const char *backend, *reason;
    size_t count;
};

/* Counts a refusal; false when the table is full, which only case-specific reasons can bring. */
static bool count_refusal(struct refusal *table, size_t *used, const struct fib_json *record)
{
    const char *backend = text_or(record, "backend", "-");
    const char *reason = text_or(record, "reason", "no reason recorded");
    for (size_t i = 0; i < *used; i++) {
        if (strcmp(table[i].backend, backend) == 0 && strcmp(table[i].reason, reason) == 0) {
            table[i].count++;
            return true;
        }
    }
    if (*used == TRACKED_REASONS)
        return false;
    table[(*used)++] = (struct refusal){.backend = backend, .reason = reason, .count = 1};
    return true;
}

static int most_first(const void *a, const void *b)
{
    const struct refusal *left = a, *right = b;
    if (left->count != right->count)
        return left->count > right->count ? -1 : 1;
    const int order = strcmp(left->backend, right->backend);
    return order ? order : strcmp(left->reason, right->reason);
}

static void add_refusals(struct fib_text *out, const struct fib_json *const *records, size_t count)
{
    struct refusal table[TRACKED_REASONS];
    size_t used = 0, hidden = 0;
    for (size_t i = 0; i < count; i++) {
        if (has_status(records[i], FIB_RESULT_UNSUPPORTED) &&
            !count_refusal(table, &used, records[i]))
            hidden++;
    }
    qsort(table, used, sizeof(table[0]), most_first);
    for (size_t i = 0; i < used; i++) {
        if (i < MOST_REASONS)
            fib_text_addf(out, "  UNSUPPORTED  %zu x %s: %s\n", table[i].count, table[i].backend,
                          table[i].reason);
        else
            hidden += table[i].count;
    }
    if (hidden > 0) {
        fib_text_add(out, "  UNSUPPORTED  ... and ");
        add_plural(out, hidden, "row");
        fib_text_add(out, " for other reasons\n");
    }
}

static void add_files(struct fib_text *out, const struct fib_sink_settings *settings)
{
    if (!settings->csv_path && !settings->json_path)
        return;
    fib_text_add(out, "written:");
    if (settings->csv_path) {
        struct fib_text journal = {0};
        fib_journal_path(settings->csv_path, &journal);
        fib_text_addf(out, " %s", settings->csv_path);
        if (journal.length > 0)
            fib_text_addf(out, "  %s", journal.chars);
        fib_text_free(&journal);
    }
    if (settings->json_path)
        fib_text_addf(out, "%s%s", settings->csv_path ? "  " : " ", settings->json_path);
    fib_text_add_char(out, '\n');
}

void fib_run_summary(const struct fib_json *const *records, size_t count, double elapsed_s,
                     const struct fib_sink_settings *settings, struct fib_text *out)
{
    add_plural(out, count_cases(records, count), "case");
    fib_text_add(out, ", ");
    add_plural(out, count, "row");
    fib_text_add(out, " in ");
    add_elapsed(out, elapsed_s);
    add_counts(out, records, count);
    fib_text_add_char(out, '\n');
    add_failures(out, records, count);
    add_refusals(out, records, count);
    add_files(out, settings);
}
