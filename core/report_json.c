/* The journal (one record a line, on disk before anything is shown) and the JSON document. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/outfile.h"
#include "core/report.h"
#include "core/result.h"
#include "core/text.h"

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

void fib_journal_path(const char *csv_path, struct fib_text *out)
{
    if (fib_outfile_is_special(csv_path))
        return;
    const size_t length = strlen(csv_path);
    fib_text_add_n(out, csv_path, ends_with(csv_path, ".csv") ? length - 4 : length);
    fib_text_add(out, ".jsonl");
}

/* ---- journal ---- */

struct fib_sink {
    struct fib_outfile file;
    char *final_path; /* document: name after the last record; NULL for a device */
    size_t row_count;
    size_t counts[FIB_RESULT_ERROR + 1]; /* document: rows by status */
};

static enum fib_status journal_line(const struct fib_outfile *file, const struct fib_json *value,
                                    struct fib_error *err)
{
    struct fib_text line = {0};
    char *chars = fib_json_print(value, false);
    fib_text_add(&line, chars);
    fib_text_add_char(&line, '\n');
    enum fib_status st = fib_outfile_write(file, line.chars, line.length, err);
    if (st == FIB_OK)
        st = fib_outfile_sync(file, err);
    fib_text_free(&line);
    free(chars);
    return st;
}

static enum fib_status journal_close(struct fib_sink **sink, struct fib_error *err)
{
    if (!*sink)
        return FIB_OK;
    const enum fib_status st = fib_outfile_close(&(*sink)->file, err);
    free(*sink);
    *sink = NULL;
    return st;
}

static enum fib_status journal_open(const struct fib_sink_settings *settings,
                                    const struct fib_json *environment, struct fib_sink **sink,
                                    struct fib_error *err)
{
    const char *csv_path = settings->csv_path;
    if (!csv_path)
        return FIB_OK;
    if (ends_with(csv_path, ".jsonl"))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--output_path %s: names the CSV file; its journal gets the ending .jsonl, "
                        "so use the ending .csv",
                        csv_path);
    struct fib_text path = {0};
    enum fib_status st = FIB_OK;
    fib_journal_path(csv_path, &path);
    if (path.length == 0)
        goto out;
    *sink = fib_zalloc(sizeof(**sink));
    st = fib_outfile_open(&(*sink)->file, path.chars, fib_report_mode(settings), err);
    if (st == FIB_OK)
        st = journal_line(&(*sink)->file, environment, err);
    if (st != FIB_OK)
        journal_close(sink, NULL);
out:
    fib_text_free(&path);
    return st;
}

static enum fib_status journal_row(struct fib_sink *sink, const struct fib_json *record,
                                   struct fib_error *err)
{
    return journal_line(&sink->file, record, err);
}

const struct fib_sink_ops fib_sink_journal = {
    .name = "journal", .open = journal_open, .row = journal_row, .close = journal_close};

/* ---- document ---- */

static enum fib_status document_write(struct fib_sink *sink, const struct fib_json *value,
                                      const char *before, const char *after, struct fib_error *err)
{
    struct fib_text out = {0};
    char *chars = fib_json_print(value, false);
    fib_text_addf(&out, "%s", before);
    fib_text_add(&out, chars);
    fib_text_add(&out, after);
    const enum fib_status st = fib_outfile_write(&sink->file, out.chars, out.length, err);
    fib_text_free(&out);
    free(chars);
    return st;
}

/* A document that did not get its final name is of no use. */
static void document_free(struct fib_sink **sink)
{
    if ((*sink)->final_path && (*sink)->file.fd >= 0)
        unlink((*sink)->file.path);
    fib_outfile_close(&(*sink)->file, NULL);
    free((*sink)->final_path);
    free(*sink);
    *sink = NULL;
}

/* The document grows in a file beside its final name, so that the name never holds half of one. */
static enum fib_status open_document_file(struct fib_sink *sink, const char *path, bool force,
                                          struct fib_error *err)
{
    if (fib_outfile_is_special(path))
        return fib_outfile_open(&sink->file, path, FIB_OUTFILE_FORCE, err);
    const enum fib_status st = fib_outfile_check(path, FIB_OUTFILE_APPEND, err);
    if (st != FIB_OK)
        return st;
    if (!force && access(path, F_OK) == 0)
        return fib_fail(err, FIB_ERR_IO,
                        "%s exists: use --force to replace it (a JSON document cannot be added to)",
                        path);
    sink->final_path = fib_strdup(path);
    struct fib_text part = {0};
    fib_text_addf(&part, "%s.%ld.part", path, (long)getpid());
    const enum fib_status opened =
        fib_outfile_open(&sink->file, part.chars, FIB_OUTFILE_FORCE, err);
    fib_text_free(&part);
    return opened;
}

static enum fib_status document_open(const struct fib_sink_settings *settings,
                                     const struct fib_json *environment, struct fib_sink **sink,
                                     struct fib_error *err)
{
    if (!settings->json_path)
        return FIB_OK;
    *sink = fib_zalloc(sizeof(**sink));
    (*sink)->file.fd = -1;
    struct fib_text head = {0};
    enum fib_status st = open_document_file(*sink, settings->json_path,
                                            settings->force || settings->resume, err);
    if (st != FIB_OK)
        goto out;
    fib_text_addf(&head, "{\"schema_version\":%d,\n\"environment\":", FIB_SCHEMA_VERSION);
    st = document_write(*sink, environment, head.chars, ",\n\"results\":[", err);
out:
    fib_text_free(&head);
    if (st != FIB_OK)
        document_free(sink);
    return st;
}

static enum fib_status document_row(struct fib_sink *sink, const struct fib_json *record,
                                    struct fib_error *err)
{
    const char *status = fib_json_text(record, "status");
    for (int i = 0; status && i <= FIB_RESULT_ERROR; i++) {
        if (strcmp(status, fib_result_status_name((enum fib_result_status)i)) == 0)
            sink->counts[i]++;
    }
    return document_write(sink, record, sink->row_count++ > 0 ? ",\n" : "\n", "", err);
}

static enum fib_status document_finish(struct fib_sink *sink, struct fib_error *err)
{
    struct fib_json *summary = fib_json_object();
    for (int i = 0; i <= FIB_RESULT_ERROR; i++)
        fib_json_set_i64(summary, fib_result_status_name((enum fib_result_status)i),
                         (int64_t)sink->counts[i]);
    enum fib_status st = document_write(sink, summary, "\n],\n\"summary\":", "}\n", err);
    fib_json_free(&summary);
    if (st == FIB_OK)
        st = fib_outfile_sync(&sink->file, err);
    if (st != FIB_OK || !sink->final_path)
        return st;
    if (rename(sink->file.path, sink->final_path) != 0)
        return fib_fail(err, FIB_ERR_IO, "cannot rename %s to %s: %s", sink->file.path,
                        sink->final_path, strerror(errno));
    free(sink->final_path);
    sink->final_path = NULL;
    return FIB_OK;
}

static enum fib_status document_close(struct fib_sink **sink, struct fib_error *err)
{
    if (!*sink)
        return FIB_OK;
    const enum fib_status st = document_finish(*sink, err);
    document_free(sink);
    return st;
}

const struct fib_sink_ops fib_sink_json = {
    .name = "json", .open = document_open, .row = document_row, .close = document_close};
