/* Sinks: where records go. Each is a row of functions; none computes anything. */
#ifndef FIB_CORE_REPORT_H
#define FIB_CORE_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/json.h"
#include "core/outfile.h"
#include "core/status.h"

struct fib_text;
struct fib_sink; /* an open sink */

struct fib_sink_settings {
    const char *csv_path;   /* NULL: none; the journal goes beside it */
    const char *json_path;  /* NULL: none */
    bool force, append;     /* what to do with existing files; neither: refuse */
    bool resume;            /* add to the CSV file and its journal, replace the JSON document */
    bool samples;
    bool table;             /* console tables although stdout is no terminal */
    bool tables_off;        /* never */
    FILE *out;              /* stdout */
    /* Flags of routines that have no CSV column among fib_csv_columns: appended as columns, so that
     * a flag added to an option table is in the CSV too. NULL-terminated, may be NULL, borrowed. */
    const char *const *flag_columns;
};

struct fib_sink_ops {
    const char *name;
    /* *sink stays NULL when the settings do not ask for this sink. `environment` is the environment
     * block (borrowed). Refuses existing files (FIB_ERR_IO, names the file and the flags). */
    enum fib_status (*open)(const struct fib_sink_settings *settings,
                            const struct fib_json *environment, struct fib_sink **sink,
                            struct fib_error *err);
    /* One finished result. Errors name the file and the system's reason. */
    enum fib_status (*row)(struct fib_sink *sink, const struct fib_json *record,
                           struct fib_error *err);
    /* The last record of a case has been given (comparison tables). May be NULL. */
    enum fib_status (*end_case)(struct fib_sink *sink, struct fib_error *err);
    /* Flushes, closes, frees; accepts NULL; resets the handle. */
    enum fib_status (*close)(struct fib_sink **sink, struct fib_error *err);
};

/* Journal first, so that nothing is shown that is not on disk; NULL-terminated. */
extern const struct fib_sink_ops *const fib_sinks[];
extern const struct fib_sink_ops fib_sink_journal, fib_sink_csv, fib_sink_json, fib_sink_console;

/* Where the journal of a CSV file lies: X.csv -> X.jsonl, else ".jsonl" appended. Adds nothing when
 * the path is a device or a pipe, which has no place beside it. */
void fib_journal_path(const char *csv_path, struct fib_text *out);

/* What the settings mean for the CSV file and its journal. */
enum fib_outfile_mode fib_report_mode(const struct fib_sink_settings *settings);

/* What can be said of the paths before anything is opened or changed. */
enum fib_status fib_report_check(const struct fib_sink_settings *settings, struct fib_error *err);

/* All sinks as one. */
struct fib_report;
enum fib_status fib_report_open(const struct fib_sink_settings *settings,
                                const struct fib_json *environment, struct fib_report **report,
                                struct fib_error *err);
/* Takes ownership of the record (kept until the end for the summary). */
enum fib_status fib_report_row(struct fib_report *report, struct fib_json *record,
                               struct fib_error *err);
/* A row of an earlier run that is in journal and CSV file already: only documents that are written
 * whole get it (borrowed). Before the first row. */
enum fib_status fib_report_replay(struct fib_report *report, const struct fib_json *record,
                                  struct fib_error *err);
enum fib_status fib_report_end_case(struct fib_report *report, struct fib_error *err);
enum fib_status fib_report_close(struct fib_report **report, struct fib_error *err);

/* Records so far, in order (borrowed). */
size_t fib_report_count(const struct fib_report *report);
const struct fib_json *fib_report_record(const struct fib_report *report, size_t index);

/* Names of the CSV columns in order: the reference's, each once, then ours; NULL-terminated. */
extern const char *const fib_csv_columns[];
/* One CSV line (CRLF-free, '\n' at the end is the caller's) for a record, or the header. */
void fib_csv_header(const char *const *flag_columns, struct fib_text *out);
void fib_csv_row(const struct fib_json *record, const char *const *flag_columns,
                 struct fib_text *out);
bool fib_csv_has_column(const char *name);

/* The reference's line: "[PERF] cuda           :: median time 0.018 ms; std 0.000 ms; achieved ..."
 */
void fib_perf_line(const struct fib_json *record, struct fib_text *out);
/* Table of one case for people (records of the case, any order; fastest first, refused last). */
void fib_case_table(const struct fib_json *const *records, size_t count,
                    const struct fib_json *environment, struct fib_text *out);
/* End of a run: counts by status, failures with their lines (at most 20), files written. */
void fib_run_summary(const struct fib_json *const *records, size_t count, double elapsed_s,
                     const struct fib_sink_settings *settings, struct fib_text *out);

#endif
