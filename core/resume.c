/* Reads a journal back: what is finished, and what the CSV file beside it should hold. */
#include "core/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/outfile.h"
#include "core/report.h"
#include "core/result.h"
#include "core/text.h"

/* A finished row by what it is the result of. */
struct entry {
    char *key;
    size_t record;
    bool taken;
};

struct fib_resume {
    struct fib_json **records;
    size_t count, capacity;
    struct entry *entries; /* sorted by key, then by record */
    size_t entry_count, taken_count;
    size_t strange_count;
};

/* ---- keys ---- */

static char *make_key(const char *const *parts, size_t count)
{
    struct fib_text key = {0};
    for (size_t i = 0; i < count; i++) {
        fib_text_add(&key, parts[i] ? parts[i] : "");
        fib_text_add_char(&key, '\n'); /* in none of the parts */
    }
    return key.chars;
}

static char *result_key(const char *case_key, const char *backend, const char *uuid,
                        const char *build_id)
{
    const char *const parts[] = {case_key, backend, uuid, build_id};
    return make_key(parts, sizeof(parts) / sizeof(parts[0]));
}

static char *line_key(int64_t line, const char *line_text)
{
    char number[32];
    snprintf(number, sizeof(number), "line %" PRId64, line);
    const char *const parts[] = {number, line_text};
    return make_key(parts, sizeof(parts) / sizeof(parts[0]));
}

static char *key_of(const struct fib_json *record)
{
    const char *const case_key = fib_json_text(record, "case_key");
    if (!case_key)
        return line_key((int64_t)fib_json_f64(record, "line"), fib_json_text(record, "title"));
    return result_key(case_key, fib_json_text(record, "backend"),
                      fib_json_text(record, "device.uuid"), fib_json_text(record, "build_id"));
}

static bool is_finished(const struct fib_json *record)
{
    const char *const status = fib_json_text(record, "status");
    return strcmp(status, fib_result_status_name(FIB_RESULT_CRASHED)) != 0 &&
           strcmp(status, fib_result_status_name(FIB_RESULT_TIMEOUT)) != 0;
}

static int by_key(const void *a, const void *b)
{
    const struct entry *const left = a, *const right = b;
    const int order = strcmp(left->key, right->key);
    if (order != 0)
        return order;
    return left->record < right->record ? -1 : left->record > right->record;
}

static void index_records(struct fib_resume *resume)
{
    resume->entries = fib_zalloc_array(resume->count, sizeof(resume->entries[0]));
    for (size_t i = 0; i < resume->count; i++)
        if (is_finished(resume->records[i]))
            resume->entries[resume->entry_count++] =
                (struct entry){.key = key_of(resume->records[i]), .record = i};
    if (resume->entry_count > 1)
        qsort(resume->entries, resume->entry_count, sizeof(resume->entries[0]), by_key);
}

/* Takes the first row with this key that is left. Owns the key. */
static const struct fib_json *take(struct fib_resume *resume, char *key)
{
    size_t low = 0, high = resume->entry_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(resume->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct fib_json *found = NULL;
    for (; !found && low < resume->entry_count && strcmp(resume->entries[low].key, key) == 0;
         low++) {
        if (resume->entries[low].taken)
            continue;
        resume->entries[low].taken = true;
        resume->taken_count++;
        found = resume->records[resume->entries[low].record];
    }
    free(key);
    return found;
}

const struct fib_json *fib_resume_take(struct fib_resume *resume, const char *case_key,
                                       const char *backend, const char *device_uuid,
                                       const char *build_id)
{
    return take(resume, result_key(case_key, backend, device_uuid, build_id));
}

const struct fib_json *fib_resume_take_line(struct fib_resume *resume, int64_t line,
                                            const char *line_text)
{
    return take(resume, line_key(line, line_text));
}

/* ---- journal ---- */

enum line_kind { RESULT, ENVIRONMENT, STRANGE };

static enum line_kind read_line(const char *chars, size_t length, struct fib_json **record)
{
    struct fib_json *value = fib_json_parse(chars, length, NULL);
    const char *const kind = fib_json_text(value, "kind");
    enum line_kind found = STRANGE;
    if (kind && fib_json_f64(value, "schema_version") == FIB_SCHEMA_VERSION) {
        if (strcmp(kind, "environment") == 0)
            found = ENVIRONMENT;
        else if (strcmp(kind, "result") == 0 && fib_json_text(value, "status"))
            found = RESULT;
    }
    if (found == RESULT)
        *record = value;
    else
        fib_json_free(&value);
    return found;
}

static void keep(struct fib_resume *resume, struct fib_json *record)
{
    if (resume->count == resume->capacity) {
        resume->capacity = resume->capacity ? 2 * resume->capacity : 64;
        resume->records =
            fib_realloc(resume->records, resume->capacity * sizeof(resume->records[0]));
    }
    resume->records[resume->count++] = record;
}

/* Half of the very first line: what there is of it must look like one. */
static bool may_be_ours(const char *line, size_t length)
{
    static const char start[] = "{\"schema_version\":";
    const size_t most = sizeof(start) - 1;
    return memcmp(line, start, length < most ? length : most) == 0;
}

/* Reads all lines. *torn_at becomes the place of a last line that has no end and is no record, or
 * stays -1. False when no line is one of ours. */
static bool read_lines(struct fib_resume *resume, FILE *file, long *torn_at)
{
    char *line = NULL;
    size_t capacity = 0, good_count = 0;
    bool ours = true;
    long start = 0;
    for (ssize_t length; (length = getline(&line, &capacity, file)) >= 0; start += length) {
        const bool whole = length > 0 && line[length - 1] == '\n';
        struct fib_json *record = NULL;
        const enum line_kind kind = read_line(line, (size_t)length - whole, &record);
        if (kind == RESULT)
            keep(resume, record);
        else if (kind == STRANGE && !whole)
            *torn_at = start;
        else if (kind == STRANGE)
            resume->strange_count++;
        good_count += kind != STRANGE;
        ours = good_count > 0 || (!whole && start == 0 && may_be_ours(line, (size_t)length));
    }
    free(line);
    return ours;
}

static enum fib_status read_journal(struct fib_resume *resume, const char *path,
                                    struct fib_error *err)
{
    FILE *file = fopen(path, "re");
    long torn_at = -1;
    if (!file)
        return errno == ENOENT
                   ? FIB_OK
                   : fib_fail(err, FIB_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    const bool ours = read_lines(resume, file, &torn_at);
    const bool failed = ferror(file) != 0;
    fclose(file);
    if (failed)
        return fib_fail(err, FIB_ERR_IO, "cannot read %s", path);
    if (!ours)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--resume: %s is no journal: none of its lines is a record", path);
    if (torn_at >= 0 && truncate(path, torn_at) != 0)
        return fib_fail(err, FIB_ERR_IO, "cannot cut half a line off %s: %s", path,
                        strerror(errno));
    return FIB_OK;
}

/* ---- CSV ---- */

/* Complete rows behind the header. */
static size_t count_rows(const char *chars, size_t length)
{
    size_t lines = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        quoted ^= chars[i] == '"';
        lines += chars[i] == '\n' && !quoted;
    }
    return lines > 0 ? lines - 1 : 0;
}

static enum fib_status read_csv(const char *path, struct fib_text *text, struct fib_error *err)
{
    FILE *file = fopen(path, "re");
    char part[1 << 14];
    if (!file)
        return errno == ENOENT
                   ? FIB_OK
                   : fib_fail(err, FIB_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    for (size_t got; (got = fread(part, 1, sizeof(part), file)) > 0;)
        fib_text_add_n(text, part, got);
    fclose(file);
    return FIB_OK;
}

static void render(const struct fib_resume *resume, const char *const *flag_columns,
                   struct fib_text *text)
{
    fib_csv_header(flag_columns, text);
    fib_text_add_char(text, '\n');
    for (size_t i = 0; i < resume->count; i++) {
        fib_csv_row(resume->records[i], flag_columns, text);
        fib_text_add_char(text, '\n');
    }
}

/* Not beside it and renamed: the journal has all of it, and the next --resume would do it again. */
static enum fib_status write_csv(const char *path, const struct fib_text *text,
                                 struct fib_error *err)
{
    struct fib_outfile file;
    enum fib_status st = fib_outfile_open(&file, path, FIB_OUTFILE_FORCE, err);
    if (st != FIB_OK)
        return st;
    st = fib_outfile_write(&file, text->chars, text->length, err);
    if (st == FIB_OK)
        st = fib_outfile_sync(&file, err);
    const enum fib_status closed = fib_outfile_close(&file, err);
    return st == FIB_OK ? closed : st;
}

static enum fib_status mend_csv(const struct fib_resume *resume, const char *path,
                                const char *const *flag_columns, struct fib_error *err)
{
    struct fib_text found = {0}, wanted = {0};
    enum fib_status st = read_csv(path, &found, err);
    const size_t rows = count_rows(fib_text_chars(&found), found.length);
    if (st == FIB_OK && rows > resume->count)
        st = fib_fail(err, FIB_ERR_USAGE,
                      "--resume: %s has %zu rows and its journal only %zu, so it was not made from "
                      "it",
                      path, rows, resume->count);
    if (st == FIB_OK && (found.length > 0 || resume->count > 0)) {
        render(resume, flag_columns, &wanted);
        if (found.length != wanted.length || memcmp(found.chars, wanted.chars, wanted.length) != 0)
            st = write_csv(path, &wanted, err);
    }
    fib_text_free(&found);
    fib_text_free(&wanted);
    return st;
}

/* ---- the whole ---- */

enum fib_status fib_resume_open(const char *csv_path, const char *const *flag_columns,
                                struct fib_resume **resume_out, struct fib_error *err)
{
    struct fib_text journal = {0};
    if (!csv_path)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--resume needs --output_path: the journal beside it tells what is done");
    fib_journal_path(csv_path, &journal);
    if (journal.length == 0)
        return fib_fail(err, FIB_ERR_USAGE, "--resume: %s keeps no journal", csv_path);
    struct fib_resume *const resume = fib_zalloc(sizeof(*resume));
    *resume_out = resume;
    enum fib_status st = read_journal(resume, journal.chars, err);
    if (st == FIB_OK)
        st = mend_csv(resume, csv_path, flag_columns, err);
    if (st == FIB_OK)
        index_records(resume);
    else
        fib_resume_free(resume_out);
    fib_text_free(&journal);
    return st;
}

void fib_resume_free(struct fib_resume **resume_out)
{
    struct fib_resume *const resume = *resume_out;
    if (!resume)
        return;
    for (size_t i = 0; i < resume->count; i++)
        fib_json_free(&resume->records[i]);
    for (size_t i = 0; i < resume->entry_count; i++)
        free(resume->entries[i].key);
    free(resume->records);
    free(resume->entries);
    free(resume);
    *resume_out = NULL;
}

size_t fib_resume_count(const struct fib_resume *resume)
{
    return resume->count;
}

const struct fib_json *fib_resume_record(const struct fib_resume *resume, size_t index)
{
    return resume->records[index];
}

size_t fib_resume_finished(const struct fib_resume *resume)
{
    return resume->entry_count;
}

size_t fib_resume_untaken(const struct fib_resume *resume)
{
    return resume->entry_count - resume->taken_count;
}

size_t fib_resume_strange(const struct fib_resume *resume)
{
    return resume->strange_count;
}
