/* The console sink: the reference's tagged lines as rows come in, a table at the end of a case. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/report.h"
#include "core/result.h"
#include "core/text.h"

static void add_fixed(struct fib_text *out, double number)
{
    /* printf may write the sign of a NaN */
    if (isnan(number))
        fib_text_add(out, "nan");
    else
        fib_text_addf(out, "%.3f", number);
}

void fib_perf_line(const struct fib_json *record, struct fib_text *out)
{
    const char *backend = fib_json_text(record, "backend");
    fib_text_add(out, "[PERF] ");
    const size_t name_start = out->length;
    fib_text_add(out, backend ? backend : "-");
    while (out->length - name_start < 15)
        fib_text_add_char(out, ' ');
    fib_text_add(out, ":: median time ");
    add_fixed(out, fib_json_f64(record, "time.median") / 1e9);
    fib_text_add(out, " ms; std ");
    add_fixed(out, fib_json_f64(record, "time.std") / 1e9);
    fib_text_add(out, " ms; achieved tflops ");
    add_fixed(out, fib_json_f64(record, "rate.tflops"));
    fib_text_add(out, " TFLOPs/sec; achieved tb_per_sec ");
    add_fixed(out, fib_json_f64(record, "rate.tb_per_sec"));
    fib_text_add(out, " TB/sec");
}

struct fib_sink {
    FILE *out;
    bool table, terminal, tables_off;
    struct fib_json *environment;
    struct fib_json **records; /* of the case that is running */
    size_t count, capacity;
};

static enum fib_status put(struct fib_sink *sink, struct fib_text *text, struct fib_error *err)
{
    fputs(fib_text_chars(text), sink->out);
    fib_text_free(text);
    if (fflush(sink->out) == 0 && !ferror(sink->out))
        return FIB_OK;
    return fib_fail(err, FIB_ERR_IO, "cannot write standard output: %s", strerror(errno));
}

static bool is_one_of(const char *word, const char *list)
{
    return word && fib_words_contain(list, word);
}

/* "[WARNING] backend cutlass: reason", or for a bad list line the line and the sentence. */
static void add_notice(struct fib_text *out, const struct fib_json *record)
{
    const char *status = fib_json_text(record, "status");
    const char *backend = fib_json_text(record, "backend");
    const char *reason = fib_json_text(record, "reason");
    const char *title = fib_json_text(record, "title");
    reason = reason ? reason : status;
    if (is_one_of(status, "UNSUPPORTED TOO_SLOW OOM"))
        fib_text_addf(out, "[WARNING] backend %s: %s\n", backend ? backend : "-", reason);
    else if (is_one_of(status, "INCORRECT INVALID TIMEOUT CRASHED ERROR") && backend)
        fib_text_addf(out, "[ERROR] backend %s: %s: %s\n", backend, status, reason);
    else if (is_one_of(status, "ERROR"))
        fib_text_addf(out, "[ERROR] %s\n[ERROR] %s\n", title ? title : "-", reason);
}

static void drop_records(struct fib_sink *sink)
{
    for (size_t i = 0; i < sink->count; i++)
        fib_json_free(&sink->records[i]);
    sink->count = 0;
}

static enum fib_status console_open(const struct fib_sink_settings *settings,
                                    const struct fib_json *environment, struct fib_sink **sink,
                                    struct fib_error *err)
{
    (void)err;
    if (!settings->out)
        return FIB_OK;
    *sink = fib_zalloc(sizeof(**sink));
    const int fd = fileno(settings->out);
    **sink = (struct fib_sink){
        .out = settings->out,
        .table = settings->table,
        .terminal = fd >= 0 && isatty(fd),
        .tables_off = settings->tables_off,
        .environment = fib_json_clone(environment),
    };
    return FIB_OK;
}

static enum fib_status console_row(struct fib_sink *sink, const struct fib_json *record,
                                   struct fib_error *err)
{
    if (sink->count == sink->capacity) {
        sink->capacity = sink->capacity ? 2 * sink->capacity : 8;
        sink->records = fib_realloc(sink->records, sink->capacity * sizeof(sink->records[0]));
    }
    sink->records[sink->count++] = fib_json_clone(record);

    struct fib_text text = {0};
    add_notice(&text, record);
    if (fib_result_measured(record)) {
        fib_perf_line(record, &text);
        fib_text_add_char(&text, '\n');
    }
    return put(sink, &text, err);
}

static enum fib_status console_end_case(struct fib_sink *sink, struct fib_error *err)
{
    size_t timed = 0;
    for (size_t i = 0; i < sink->count; i++)
        timed += fib_result_measured(sink->records[i]);
    const bool wanted = sink->table || timed >= 2 || (sink->terminal && timed > 0);
    enum fib_status st = FIB_OK;
    if (wanted && !sink->tables_off && sink->count > 0) {
        struct fib_text text = {0};
        fib_text_add_char(&text, '\n');
        fib_case_table((const struct fib_json *const *)sink->records, sink->count,
                       sink->environment, &text);
        fib_text_add_char(&text, '\n');
        st = put(sink, &text, err);
    }
    drop_records(sink);
    return st;
}

static enum fib_status console_close(struct fib_sink **sink, struct fib_error *err)
{
    (void)err;
    if (!*sink)
        return FIB_OK;
    drop_records(*sink);
    free((*sink)->records);
    fib_json_free(&(*sink)->environment);
    free(*sink);
    *sink = NULL;
    return FIB_OK;
}

const struct fib_sink_ops fib_sink_console = {.name = "console",
                                              .open = console_open,
                                              .row = console_row,
                                              .end_case = console_end_case,
                                              .close = console_close};
