/* Sinks: CSV, journal, document, console; the table and the summary. Records are written down as
 * JSON, so that nothing here depends on who made them. */
#include "tests/support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "core/report.h"
#include "core/result.h"
#include "core/text.h"

/* ---- helpers ---- */

static struct fib_json *parse(const char *chars)
{
    struct fib_error err = {0};
    struct fib_json *value = fib_json_parse(chars, strlen(chars), &err);
    if (!value)
        fail_msg("%s: %s", chars, err.text);
    return value;
}

/* A passed result of 3.4567 us; the test changes what it is about. */
static struct fib_json *passed_record(void)
{
    return parse(
        "{\"schema_version\":1,\"kind\":\"result\",\"case_key\":\"00112233aabbccdd\","
        "\"case_index\":0,\"run\":1,\"line\":null,\"source\":null,"
        "\"title\":\"rmsnorm batch_size=4 hidden_size=4096\","
        "\"time_utc\":\"2026-12-01T10:00:00Z\",\"routine\":\"rmsnorm\",\"family\":\"norm\","
        "\"backend\":\"cuda\",\"resolved_backend\":\"cuda/rmsnorm_row_per_warp\","
        "\"status\":\"PASSED\",\"reason\":null,\"flags\":[\"RING_CAPPED\",\"DRIFT\"],"
        "\"params\":{\"batch_size\":4,\"hidden_size\":4096,\"input_dtype\":\"bfloat16\","
        "\"eps\":0.000001,\"scale\":1,\"num_heads\":null,\"refcheck\":true,\"use_cupti\":false,"
        "\"random_seed\":42,\"case_tag\":\"R1, \\\"causal\\\" run\",\"cache\":\"both\"},"
        "\"time\":{\"unit\":\"ps\",\"median\":3456700,\"mean\":3460000,\"std\":12000,\"mad\":8000,"
        "\"min\":3440000,\"max\":3500000,\"p5\":null,\"p25\":3450000,\"p75\":3465000,"
        "\"p95\":null,\"p99\":null,\"ci_low\":3452000,\"ci_high\":3461000,\"raw\":3457000,"
        "\"ci_method\":\"batch-median-t\",\"outliers\":0,\"autocorrelation\":0.1,"
        "\"drift_pct_per_s\":null},"
        "\"rate\":{\"tflops\":0,\"tb_per_sec\":4.5678,\"bound\":null,\"roof_pct\":null},"
        "\"cost\":{\"flops\":65536,\"bytes\":73728},"
        "\"measure\":{\"timer\":\"wall\",\"cache\":\"cold\",\"power_mode\":\"burst\","
        "\"init\":\"normal\",\"interleave\":\"abba\",\"ring_slots\":3,\"calls_per_window\":30,"
        "\"windows\":24,\"rejected_windows\":0,\"stop_reason\":\"precision\",\"warmup_ms\":10.5,"
        "\"settled\":true,\"overhead_us\":0.05,\"overhead_method\":\"empty window\","
        "\"tick_ps\":1000,\"mhz\":null},"
        "\"check\":{\"verdict\":\"passed\",\"checked_rows\":4,\"total_rows\":4,"
        "\"compared\":16384,\"mismatches\":0,\"max_abs_err\":0.0078125,\"max_rel_err\":0.003,"
        "\"rel_l2\":0.0012,\"output_checksum\":\"0123456789abcdef\",\"message\":null},"
        "\"versus\":null,"
        "\"device\":{\"name\":\"Test Device\",\"uuid\":\"cpu-1\",\"kind\":\"cpu\"},"
        "\"build_id\":\"test\","
        "\"repro_command\":\"fib-bench --routine rmsnorm --case_tag 'R1, \\\"causal\\\" run'\"}");
}

/* A record of another backend; `reason` NULL: it passed in `median_ps`. */
static struct fib_json *record_of(const char *backend, const char *status, const char *reason,
                                  double median_ps)
{
    struct fib_json *record = passed_record();
    fib_json_set_text(record, "backend", backend);
    fib_json_set_text(record, "status", status);
    fib_json_set_text(record, "reason", reason);
    if (isnan(median_ps)) {
        static const char *const absent[] = {"time", "rate",   "measure",         "check",
                                             "cost", "versus", "resolved_backend"};
        for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
            fib_json_set_null(record, absent[i]);
        fib_json_set(record, "flags", fib_json_array());
        return record;
    }
    struct fib_json *time = fib_json_clone(fib_json_get(record, "time"));
    fib_json_set_f64(time, "median", median_ps);
    fib_json_set(record, "time", time);
    return record;
}

static void set_interval(struct fib_json *record, double low_ps, double high_ps)
{
    struct fib_json *time = fib_json_clone(fib_json_get(record, "time"));
    fib_json_set_f64(time, "ci_low", low_ps);
    fib_json_set_f64(time, "ci_high", high_ps);
    fib_json_set(record, "time", time);
}

/* RFC 4180: splits one record into cells and returns the start of the next; NULL cells past the
 * end. The cells are freed by the caller. */
enum { MOST_CELLS = 256 };
static const char *read_csv_record(const char *chars, char *cells[MOST_CELLS], size_t *count)
{
    *count = 0;
    for (;;) {
        struct fib_text cell = {0};
        fib_text_add(&cell, "");
        if (*chars == '"') {
            for (chars++; *chars && !(chars[0] == '"' && chars[1] != '"'); chars++) {
                chars += *chars == '"';
                fib_text_add_char(&cell, *chars);
            }
            assert_int_equal(*chars, '"');
            chars++;
        } else {
            for (; *chars && !strchr(",\n", *chars); chars++) {
                assert_int_not_equal(*chars, '"');
                fib_text_add_char(&cell, *chars);
            }
        }
        assert_true(*count < MOST_CELLS);
        cells[(*count)++] = cell.chars;
        if (*chars != ',')
            break;
        chars++;
    }
    assert_int_equal(*chars, '\n');
    return chars + 1;
}

static void free_cells(char *cells[MOST_CELLS], size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(cells[i]);
}

static size_t column_index(const char *name)
{
    size_t i = 0;
    while (fib_csv_columns[i] && strcmp(fib_csv_columns[i], name) != 0)
        i++;
    if (!fib_csv_columns[i])
        fail_msg("no column %s", name);
    return i;
}

static size_t column_count(void)
{
    size_t count = 0;
    while (fib_csv_columns[count])
        count++;
    return count;
}

/* The cell of a record's row, checked for the header's width; freed by the caller. */
static char *csv_cell(const struct fib_json *record, const char *column)
{
    struct fib_text line = {0};
    char *cells[MOST_CELLS];
    size_t count = 0;
    fib_csv_row(record, NULL, &line);
    fib_text_add_char(&line, '\n');
    assert_string_equal(read_csv_record(line.chars, cells, &count), "");
    assert_int_equal(count, column_count());
    char *cell = cells[column_index(column)];
    cells[column_index(column)] = NULL;
    free_cells(cells, count);
    fib_text_free(&line);
    return cell;
}

static void expect_cell(const struct fib_json *record, const char *column, const char *wanted)
{
    char *cell = csv_cell(record, column);
    if (strcmp(cell, wanted) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", column, cell, wanted);
    free(cell);
}

/* A folder of its own for each test that writes files. */
struct folder {
    char path[64];
};

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    strcpy(folder->path, "/tmp/fib_report_XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) ? 0 : -1;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    static const char *const names[] = {"o.csv", "o.jsonl", "o.json", "p.csv", "p.jsonl"};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder->path, names[i]);
        unlink(path);
    }
    const int left = rmdir(folder->path); /* fails when a file was left behind */
    free(folder);
    return left;
}

static const char *in_folder(void **state, const char *name, char path[128])
{
    const struct folder *folder = *state;
    snprintf(path, 128, "%s/%s", folder->path, name);
    return path;
}

static char *read_file(const char *path)
{
    struct fib_text text = {0};
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    for (int c; (c = fgetc(file)) != EOF;)
        fib_text_add_char(&text, (char)c);
    fclose(file);
    fib_text_add(&text, "");
    return text.chars;
}

static void write_file(const char *path, const char *chars)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(chars, file);
    fclose(file);
}

/* Opens a report, gives it the records, ends the case, closes it. */
static enum fib_status run_report(const struct fib_sink_settings *settings,
                                  struct fib_json **records, size_t count, struct fib_error *err)
{
    struct fib_json *environment =
        parse("{\"schema_version\":1,\"kind\":\"environment\",\"device\":null}");
    struct fib_report *report = NULL;
    enum fib_status st = fib_report_open(settings, environment, &report, err);
    for (size_t i = 0; i < count; i++) {
        if (st == FIB_OK)
            st = fib_report_row(report, records[i], err);
        else
            fib_json_free(&records[i]);
    }
    if (st == FIB_OK) {
        assert_int_equal(fib_report_count(report), count);
        assert_null(fib_report_record(report, count));
        st = fib_report_end_case(report, err);
    }
    const enum fib_status closed = fib_report_close(&report, err);
    fib_json_free(&environment);
    return st == FIB_OK ? closed : st;
}

static void expect_refused(const struct fib_sink_settings *settings, const char *wanted)
{
    struct fib_error err = {0};
    assert_int_not_equal(run_report(settings, NULL, 0, &err), FIB_OK);
    assert_contains(err.text, wanted);
}

/* ---- CSV ---- */

static void test_columns(void **state)
{
    (void)state;
    assert_int_equal(column_index("routine"), 0);
    assert_int_equal(column_index("median_time"), 1);
    assert_int_equal(column_index("resolved_backend"), 6);
    assert_int_equal(column_index("num_tokens"), 28);
    assert_int_equal(column_index("repro_command"), 137);
    assert_int_equal(column_index("status"), 138);
    assert_int_equal(column_count(), 138 + 31);
    for (size_t i = 0; i < column_count(); i++)
        assert_int_equal(column_index(fib_csv_columns[i]), i);
}

static void test_cells(void **state)
{
    (void)state;
    struct fib_json *record = passed_record();
    expect_cell(record, "routine", "rmsnorm");
    expect_cell(record, "median_time", "0.0034567");
    expect_cell(record, "std_time", "1.2e-05");
    expect_cell(record, "tflops", "0.0");
    expect_cell(record, "tb_per_sec", "4.5678");
    expect_cell(record, "batch_size", "4");
    expect_cell(record, "eps", "1e-06");
    expect_cell(record, "scale", "1.0");
    expect_cell(record, "num_heads", "");
    expect_cell(record, "s_qo", "");
    expect_cell(record, "refcheck", "True");
    expect_cell(record, "use_cupti", "False");
    expect_cell(record, "input_dtype", "bfloat16");
    expect_cell(record, "flags", "RING_CAPPED;DRIFT");
    expect_cell(record, "cache", "cold");
    expect_cell(record, "arm_order", "abba");
    expect_cell(record, "device_uuid", "cpu-1");
    expect_cell(record, "ci_low_ms", "0.003452");
    expect_cell(record, "mhz", "");
    expect_cell(record, "checked_rows", "4");
    expect_cell(record, "max_abs_err", "0.0078125");
    expect_cell(record, "time_utc", "2026-12-01T10:00:00Z");
    fib_json_free(&record);
}

static void test_flag_of_the_reference_keeps_its_cell(void **state)
{
    (void)state;
    struct fib_json *record = passed_record();
    struct fib_json *params = fib_json_clone(fib_json_get(record, "params"));
    fib_json_set_bool(params, "interleave", true);
    fib_json_set(record, "params", params);
    expect_cell(record, "interleave", "True");
    expect_cell(record, "arm_order", "abba");
    fib_json_free(&record);
}

static void test_case_56_commas_and_quotes(void **state)
{
    (void)state;
    struct fib_json *record = passed_record();
    struct fib_text line = {0};
    fib_csv_row(record, NULL, &line);
    assert_contains(line.chars, ",\"R1, \"\"causal\"\" run\",");
    expect_cell(record, "case_tag", "R1, \"causal\" run");
    expect_cell(record, "repro_command",
                "fib-bench --routine rmsnorm --case_tag 'R1, \"causal\" run'");
    fib_json_set_text(record, "reason", "two\nlines");
    expect_cell(record, "reason", "two\nlines");
    fib_text_free(&line);
    fib_json_free(&record);
}

static void test_case_57_missing_numbers(void **state)
{
    (void)state;
    struct fib_json *refused = record_of("cutlass", "UNSUPPORTED", "no module", NAN);
    expect_cell(refused, "median_time", "");
    expect_cell(refused, "tflops", "");
    expect_cell(refused, "cache", "");
    expect_cell(refused, "status", "UNSUPPORTED");
    expect_cell(refused, "reason", "no module");
    struct fib_json *single = passed_record();
    struct fib_json *time = fib_json_clone(fib_json_get(single, "time"));
    fib_json_set_f64(time, "std", NAN);
    fib_json_set(single, "time", time);
    expect_cell(single, "std_time", "");
    expect_cell(single, "median_time", "0.0034567");
    char *chars = fib_json_print(single, false);
    assert_contains(chars, "\"std\":null");
    assert_null(strstr(chars, "nan"));
    free(chars);
    fib_json_free(&single);
    fib_json_free(&refused);
}

static void check_digits(void)
{
    struct fib_json *record = record_of("cuda", "PASSED", NULL, 3456789123.0);
    expect_cell(record, "median_time", "3.456789123");
    fib_json_free(&record);
    record = passed_record();
    expect_cell(record, "median_time", "0.0034567");
    expect_cell(record, "overhead_us", "0.05");
    fib_json_free(&record);
}

static void test_case_58_digits_and_locale(void **state)
{
    (void)state;
    check_digits();
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "de_DE.utf8")) {
        print_message("locale de_DE.UTF-8 is not installed\n");
        skip();
    }
    check_digits();
    setlocale(LC_ALL, "C");
}

/* ---- files ---- */

static void test_files_hold_all_records(void **state)
{
    char csv[128], journal[128], json[128];
    const struct fib_sink_settings settings = {.csv_path = in_folder(state, "o.csv", csv),
                                               .json_path = in_folder(state, "o.json", json)};
    struct fib_json *records[] = {passed_record(),
                                  record_of("cutlass", "UNSUPPORTED", "no module", NAN)};
    struct fib_error err = {0};
    assert_int_equal(run_report(&settings, records, 2, &err), FIB_OK);

    char *text = read_file(csv);
    const char *next = text;
    size_t rows = 0;
    for (; *next; rows++) {
        char *cells[MOST_CELLS];
        size_t count = 0;
        next = read_csv_record(next, cells, &count);
        assert_int_equal(count, column_count());
        free_cells(cells, count);
    }
    assert_int_equal(rows, 3);
    free(text);

    text = read_file(in_folder(state, "o.jsonl", journal));
    rows = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, rows++) {
        struct fib_json *value = fib_json_parse(line, (size_t)(end - line), &err);
        assert_non_null(value);
        assert_string_equal(fib_json_text(value, "kind"), rows == 0 ? "environment" : "result");
        fib_json_free(&value);
    }
    assert_int_equal(rows, 3);
    free(text);

    text = read_file(json);
    struct fib_json *document = parse(text);
    assert_true(fib_json_f64(document, "schema_version") == FIB_SCHEMA_VERSION);
    assert_int_equal(fib_json_count(fib_json_get(document, "results")), 2);
    assert_true(fib_json_f64(document, "summary.PASSED") == 1.0);
    assert_true(fib_json_f64(document, "summary.UNSUPPORTED") == 1.0);
    assert_true(fib_json_f64(document, "summary.CRASHED") == 0.0);
    fib_json_free(&document);
    free(text);
}

static void test_existing_files_are_kept(void **state)
{
    char csv[128], journal[128], json[128];
    struct fib_sink_settings settings = {.csv_path = in_folder(state, "o.csv", csv)};
    in_folder(state, "o.jsonl", journal);
    write_file(csv, "mine\n");
    expect_refused(&settings, "o.csv exists: use --force to replace it or --append to add to it");
    assert_int_not_equal(access(journal, F_OK), 0);
    settings.append = true;
    expect_refused(&settings, "o.csv: its columns are not those of this version");
    assert_int_not_equal(access(journal, F_OK), 0);
    settings.force = true;
    expect_refused(&settings, "--force and --append exclude each other");
    settings.append = false;
    struct fib_error err = {0};
    assert_int_equal(run_report(&settings, NULL, 0, &err), FIB_OK);
    unlink(csv);
    settings.force = false;
    expect_refused(&settings, "o.jsonl exists");
    assert_int_not_equal(access(csv, F_OK), 0);

    settings = (struct fib_sink_settings){.json_path = in_folder(state, "o.json", json)};
    write_file(json, "{}");
    expect_refused(&settings, "o.json exists");
    settings.append = true;
    expect_refused(&settings, "o.json exists: use --force to replace it (a JSON document cannot");
    char *text = read_file(json);
    assert_string_equal(text, "{}");
    free(text);
}

static void test_append_completes_a_torn_line(void **state)
{
    char csv[128], journal[128];
    struct fib_sink_settings settings = {.csv_path = in_folder(state, "o.csv", csv)};
    struct fib_error err = {0};
    assert_int_equal(run_report(&settings, NULL, 0, &err), FIB_OK);
    FILE *file = fopen(in_folder(state, "o.jsonl", journal), "a");
    fputs("{\"kind\":\"resu", file);
    fclose(file);
    settings.append = true;
    struct fib_json *records[] = {passed_record()};
    assert_int_equal(run_report(&settings, records, 1, &err), FIB_OK);

    char *text = read_file(journal);
    assert_contains(text, "{\"kind\":\"resu\n{\"schema_version\":1,\"kind\":\"environment\"");
    free(text);
    text = read_file(csv);
    assert_null(strstr(text + 1, "\nroutine,median_time")); /* one header only */
    assert_contains(text, "\nrmsnorm,0.0034567,");
    free(text);
}

static void test_paths_that_cannot_be_written(void **state)
{
    char path[128];
    struct fib_sink_settings settings = {.csv_path = "/dev/full"};
    expect_refused(&settings, "cannot write /dev/full: No space left on device");
    settings.csv_path = in_folder(state, "none/o.csv", path);
    expect_refused(&settings, "none/o.csv: the folder ");
    expect_refused(&settings, "/none does not exist");
    settings.csv_path = in_folder(state, "o.jsonl", path);
    expect_refused(&settings, "o.jsonl: names the CSV file");
    settings.csv_path = ((const struct folder *)*state)->path;
    expect_refused(&settings, "for writing: Is a directory");
    settings = (struct fib_sink_settings){.json_path = "/dev/full"};
    expect_refused(&settings, "cannot write /dev/full: No space left on device");
    settings.json_path = "/dev/null/o.json";
    expect_refused(&settings, "/dev/null/o.json");
}

static void test_pipes_get_no_journal(void **state)
{
    (void)state;
    const struct fib_sink_settings settings = {.csv_path = "/dev/null", .json_path = "/dev/null"};
    struct fib_json *records[] = {passed_record()};
    struct fib_error err = {0};
    assert_int_equal(run_report(&settings, records, 1, &err), FIB_OK);
    assert_int_not_equal(access("/dev/null.jsonl", F_OK), 0);
    struct fib_text path = {0};
    fib_journal_path("/dev/stdout", &path);
    assert_int_equal(path.length, 0);
    fib_journal_path("a.b/x.csv", &path);
    assert_string_equal(path.chars, "a.b/x.jsonl");
    fib_text_clear(&path);
    fib_journal_path("x.txt", &path);
    assert_string_equal(path.chars, "x.txt.jsonl");
    fib_text_free(&path);
}

/* ---- console ---- */

static char *console_text(struct fib_json **records, size_t count, bool table)
{
    char *chars = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&chars, &length);
    const struct fib_sink_settings settings = {.out = out, .table = table};
    struct fib_error err = {0};
    assert_int_equal(run_report(&settings, records, count, &err), FIB_OK);
    fclose(out);
    return chars;
}

static void test_perf_line(void **state)
{
    (void)state;
    struct fib_json *records[] = {record_of("cuda", "PASSED", NULL, 18312000.0)};
    char *text = console_text(records, 1, false);
    assert_string_equal(text, "[PERF] cuda           :: median time 0.018 ms; std 0.000 ms; "
                              "achieved tflops 0.000 TFLOPs/sec; achieved tb_per_sec 4.568 "
                              "TB/sec\n");
    free(text);

    struct fib_json *record = record_of("flashinfer-fa2-paged", "PASSED", NULL, 18312000.0);
    struct fib_json *time = fib_json_clone(fib_json_get(record, "time"));
    fib_json_set_null(time, "std");
    fib_json_set(record, "time", time);
    struct fib_text line = {0};
    fib_perf_line(record, &line);
    assert_contains(line.chars, "[PERF] flashinfer-fa2-paged:: median time 0.018 ms; std nan ms;");
    fib_text_free(&line);
    fib_json_free(&record);
}

static void test_notices(void **state)
{
    (void)state;
    struct fib_json *bad = record_of(NULL, "ERROR", "list.txt:7: unknown routine", NAN);
    fib_json_set_text(bad, "title", "--routine rmsnom");
    struct fib_json *records[] = {
        record_of("cutlass", "UNSUPPORTED", "needs compute capability >= 10.0", NAN),
        record_of("cuda", "INCORRECT", "3 of 16 differ", NAN), bad};
    char *text = console_text(records, 3, false);
    assert_string_equal(text, "[WARNING] backend cutlass: needs compute capability >= 10.0\n"
                              "[ERROR] backend cuda: INCORRECT: 3 of 16 differ\n"
                              "[ERROR] --routine rmsnom\n"
                              "[ERROR] list.txt:7: unknown routine\n");
    free(text);
}

static void test_failing_stdout_is_reported(void **state)
{
    (void)state;
    FILE *out = fopen("/dev/full", "w");
    assert_non_null(out);
    const struct fib_sink_settings settings = {.out = out};
    struct fib_json *records[] = {passed_record()};
    struct fib_error err = {0};
    assert_int_equal(run_report(&settings, records, 1, &err), FIB_ERR_IO);
    assert_string_equal(err.text, "cannot write standard output: No space left on device");
    fclose(out);
}

static void set_versus(struct fib_json *record, double ratio, const char *verdict)
{
    struct fib_json *versus = fib_json_object();
    fib_json_set_f64(versus, "ratio", ratio);
    fib_json_set_f64(versus, "ratio_low", ratio - 0.002);
    fib_json_set_f64(versus, "ratio_high", ratio + 0.002);
    fib_json_set_text(versus, "verdict", verdict);
    fib_json_set(record, "versus", versus);
}

static void expect_table(struct fib_json **records, size_t count, const char *wanted)
{
    struct fib_text out = {0};
    fib_case_table((const struct fib_json *const *)records, count, NULL, &out);
    assert_string_equal(fib_text_chars(&out), wanted);
    fib_text_free(&out);
    for (size_t i = 0; i < count; i++)
        fib_json_free(&records[i]);
}

static void test_table(void **state)
{
    (void)state;
    struct fib_json *records[] = {
        record_of("cublaslt", "PASSED", NULL, 33754000.0),
        record_of("cutlass", "UNSUPPORTED", "no module named cutlass_mm found", NAN),
        record_of("cuda", "PASSED", NULL, 32103000.0),
        record_of("cudnn", "PASSED", NULL, 32200000.0)};
    set_interval(records[0], 33300000, 34200000); /* half-width 0.45 us: one decimal */
    set_interval(records[2], 32060000, 32140000); /* 0.04 us: two */
    set_interval(records[3], NAN, NAN);           /* none: three digits */
    fib_json_set_text(records[3], "resolved_backend", "engine 12");
    set_versus(records[0], 1.0512, "SLOWER");
    set_versus(records[3], 1.003, "SAME");
    fib_json_set(records[0], "flags", fib_json_array());
    fib_json_set(records[3], "flags", fib_json_array());
    expect_table(records, 4,
                 "  rmsnorm batch_size=4 hidden_size=4096           "
                 "Test Device, cold cache, wall, interleaved x 24 rounds\n"
                 "  backend   ran                            time      95 % interval  TB/s  "
                 "vs best        check\n"
                 "  cuda      cuda/rmsnorm_row_per_warp  32.10 us  32.06 .. 32.14 us  4.57  "
                 "fastest        PASSED (4 rows)\n"
                 "  cudnn     engine 12                  32.2  us                  -  4.57  "
                 "same           PASSED (4 rows)\n"
                 "  cublaslt  cuda/rmsnorm_row_per_warp  33.8  us  33.3  .. 34.2  us  4.57  "
                 "1.051x slower  PASSED (4 rows)\n"
                 "  cutlass   UNSUPPORTED: no module named cutlass_mm found\n"
                 "  cuda: RING_CAPPED DRIFT\n");
}

static void test_table_stays_narrow(void **state)
{
    (void)state;
    struct fib_json *records[] = {
        record_of("flashinfer-with-a-very-long-label", "PASSED", NULL, 33754000.0),
        record_of("cuda", "PASSED", NULL, 32103000.0)};
    fib_json_set_text(records[0], "resolved_backend",
                      "flashinfer/batch_prefill_with_paged_kv_cache_sm90_dtype_bf16_head_dim_128");
    fib_json_set_text(records[1], "title",
                      "rmsnorm batch_size=4 hidden_size=4096 and many more flags of which each "
                      "has a rather long name=and_a_rather_long_value");
    struct fib_text out = {0};
    fib_case_table((const struct fib_json *const *)records, 2, NULL, &out);
    for (const char *line = out.chars; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 120);
    assert_contains(out.chars, "flashin");
    assert_contains(out.chars, "..");
    assert_contains(out.chars, "dim_128");
    fib_text_free(&out);
    fib_json_free(&records[0]);
    fib_json_free(&records[1]);
}

static void test_table_appears_when_it_compares(void **state)
{
    (void)state;
    struct fib_json *one[] = {passed_record()};
    char *text = console_text(one, 1, false);
    assert_null(strstr(text, "95 % interval"));
    free(text);
    struct fib_json *asked[] = {passed_record()};
    text = console_text(asked, 1, true);
    assert_contains(text, "\n\n  rmsnorm batch_size=4 hidden_size=4096");
    assert_contains(text, "3.457 us  3.452 .. 3.461 us");
    assert_null(strstr(text, "vs best"));
    free(text);
    struct fib_json *two[] = {passed_record(), record_of("cpu", "PASSED", NULL, 4e6)};
    text = console_text(two, 2, false);
    assert_contains(text, "1.16x slower"); /* no interval, three digits */
    free(text);
}

static void test_compute_case_shows_flops(void **state)
{
    (void)state;
    struct fib_json *record = passed_record();
    struct fib_json *cost = fib_json_object();
    fib_json_set_f64(cost, "flops", 1e9);
    fib_json_set_f64(cost, "bytes", 1e6);
    fib_json_set(record, "cost", cost);
    struct fib_json *rate = fib_json_clone(fib_json_get(record, "rate"));
    fib_json_set_f64(rate, "tflops", 711.4);
    fib_json_set(record, "rate", rate);
    struct fib_text out = {0};
    fib_case_table((const struct fib_json *const[]){record}, 1, NULL, &out);
    assert_contains(out.chars, "TFLOP/s");
    assert_contains(out.chars, "  711  ");
    fib_text_free(&out);
    fib_json_free(&record);
}

/* ---- summary ---- */

static void test_summary(void **state)
{
    (void)state;
    struct fib_json *records[6];
    records[0] = passed_record();
    records[1] = record_of("cutlass", "UNSUPPORTED", "no module", NAN);
    records[2] = record_of("cutlass", "UNSUPPORTED", "no module", NAN);
    records[3] = record_of("flashinfer", "INCORRECT", "3 of 16 codes differ", NAN);
    records[4] = record_of("plugin:mine", "TIMEOUT", "no answer in 300 s", NAN);
    records[5] = record_of(NULL, "ERROR", "a.txt:9: unknown routine", NAN);
    fib_json_set_null(records[5], "routine");
    for (int i = 3; i < 6; i++) {
        fib_json_set_i64(records[i], "case_index", i);
        fib_json_set_i64(records[i], "line", 40 + i);
    }
    const struct fib_sink_settings settings = {.csv_path = "norm.csv", .json_path = "n.json"};
    struct fib_text out = {0};
    fib_run_summary((const struct fib_json *const *)records, 6, 28.4, &settings, &out);
    assert_string_equal(
        out.chars,
        "4 cases, 6 rows in 28 s: 1 PASSED, 1 INCORRECT, 2 UNSUPPORTED, 1 TIMEOUT, 1 ERROR\n"
        "  INCORRECT  line 43  rmsnorm  flashinfer: 3 of 16 codes differ\n"
        "  TIMEOUT    line 44  rmsnorm  plugin:mine: no answer in 300 s\n"
        "  ERROR      a.txt:9: unknown routine\n"
        "  UNSUPPORTED  2 x cutlass: no module\n"
        "written: norm.csv  norm.jsonl  n.json\n");
    fib_text_free(&out);
    for (int i = 0; i < 6; i++)
        fib_json_free(&records[i]);
}

static void test_summary_is_bounded(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    struct fib_json *records[2 * COUNT];
    char reason[32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(reason, sizeof(reason), "reason %d", i);
        records[i] = record_of("cuda", "CRASHED", "signal 11", NAN);
        records[COUNT + i] = record_of("fa3", "UNSUPPORTED", reason, NAN);
    }
    struct fib_text out = {0};
    const struct fib_sink_settings settings = {.csv_path = NULL};
    fib_run_summary((const struct fib_json *const *)records, 2 * COUNT, 1234.0, &settings, &out);
    assert_contains(out.chars, "1 case, 200 rows in 20 min 34 s: 100 UNSUPPORTED, 100 CRASHED\n");
    assert_contains(out.chars, "  ... and 80 more\n");
    assert_contains(out.chars, "  UNSUPPORTED  ... and 92 rows for other reasons\n");
    size_t lines = 0;
    for (const char *c = out.chars; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 1 + 20 + 1 + 8 + 1);
    fib_text_free(&out);
    for (int i = 0; i < 2 * COUNT; i++)
        fib_json_free(&records[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_flag_of_the_reference_keeps_its_cell),
        cmocka_unit_test(test_case_56_commas_and_quotes),
        cmocka_unit_test(test_case_57_missing_numbers),
        cmocka_unit_test(test_case_58_digits_and_locale),
        cmocka_unit_test_setup_teardown(test_files_hold_all_records, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_existing_files_are_kept, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_append_completes_a_torn_line, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_paths_that_cannot_be_written, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_pipes_get_no_journal),
        cmocka_unit_test(test_perf_line),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_failing_stdout_is_reported),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_stays_narrow),
        cmocka_unit_test(test_table_appears_when_it_compares),
        cmocka_unit_test(test_compute_case_shows_flops),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_summary_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
