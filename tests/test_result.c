/* The record of a result: groups, units, what stays null, exit statuses. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "core/env.h"
#include "core/report.h"
#include "core/result.h"
#include "core/routine.h"
#include "core/text.h"

/* A routine of our own with one flag of each kind, and a case of it. */
enum { RUN_PATH, TAG, MISMATCH, ROWS, EPS, TYPE, CAUSAL, SCALE, OTHER, VERBOSE, OPTION_COUNT };

static struct fib_option options[OPTION_COUNT] = {
    [RUN_PATH] = {.name = "output_path", .kind = FIB_OPT_TEXT, .scope = FIB_SCOPE_RUN},
    [TAG] = {.name = "case_tag", .kind = FIB_OPT_TEXT, .scope = FIB_SCOPE_SHARED},
    [MISMATCH] = {.name = "allow_output_mismatch",
                  .kind = FIB_OPT_SWITCH,
                  .scope = FIB_SCOPE_SHARED},
    [ROWS] = {.name = "rows", .kind = FIB_OPT_I64, .required = true},
    [EPS] = {.name = "eps", .kind = FIB_OPT_F64},
    [TYPE] = {.name = "input_dtype", .kind = FIB_OPT_DTYPE},
    [CAUSAL] = {.name = "causal", .kind = FIB_OPT_SWITCH},
    [SCALE] = {.name = "scale", .kind = FIB_OPT_F64},
    [OTHER] = {.name = "elsewhere", .kind = FIB_OPT_I64, .uses = "another_routine"},
    [VERBOSE] = {.name = "verbose", .kind = FIB_OPT_COUNT, .scope = FIB_SCOPE_SHARED},
};

struct fixture {
    struct fib_value values[OPTION_COUNT];
    struct fib_case kase;
    struct fib_result result;
    struct fib_device *device;
    struct fib_series series;
    struct fib_samples samples;
    double call_ms[3];
};

static const struct fib_routine routine = {.name = "probe", .family = "norm"};
static const struct fib_option_set option_set = {.rows = options, .count = OPTION_COUNT};

static void fill_case(struct fixture *f)
{
    f->values[RUN_PATH] = (struct fib_value){.given = true, .set = true, .text = "x.csv"};
    f->values[TAG] = (struct fib_value){.given = true, .set = true, .text = "a \"tag\""};
    f->values[MISMATCH] = (struct fib_value){.set = true, .text = "False"};
    f->values[ROWS] = (struct fib_value){.given = true, .set = true, .i64 = 32, .text = "32"};
    f->values[EPS] = (struct fib_value){.set = true, .f64 = 1e-6, .text = "1e-06"};
    f->values[TYPE] = (struct fib_value){.set = true, .text = "bfloat16"};
    f->values[CAUSAL] = (struct fib_value){.given = true, .set = true, .i64 = 1, .text = "True"};
    f->values[OTHER] = (struct fib_value){.set = true, .i64 = 1, .text = "1"};
    f->values[VERBOSE] = (struct fib_value){.set = true, .i64 = 2, .text = "2"};
    f->kase = (struct fib_case){.routine = &routine, .options = &option_set, .values = f->values};
    f->kase.settings.power_mode = "burst";
}

static void fill_result(struct fixture *f)
{
    static const double call_ms[] = {0.0034567, 0.0034570, 0.0034560};
    memcpy(f->call_ms, call_ms, sizeof(call_ms));
    f->series = (struct fib_series){
        .call_ms = f->call_ms, .count = 3, .stop = FIB_STOP_COUNT, .warmup_ms = 1.5};
    f->samples = (struct fib_samples){.series = &f->series,
                                      .arm_count = 1,
                                      .calls_per_window = 30,
                                      .interleave = "none",
                                      .timer = FIB_TIMER_WALL};
    f->result = (struct fib_result){.kase = &f->kase,
                                    .backend = "cpu",
                                    .resolved_backend = "cpu/probe",
                                    .flags = {"RING_CAPPED"},
                                    .flag_count = 1,
                                    .has_time = true,
                                    .raw_median_ms = 0.0035,
                                    .series = &f->series,
                                    .samples = &f->samples,
                                    .rates = {.tflops = 0.5, .tb_per_sec = 1.25},
                                    .has_cost = true,
                                    .cost = {.flops = 100, .traffic_bytes = 200},
                                    .has_check = true,
                                    .check = {.checked_rows = 16, .compared_count = 64},
                                    .total_rows = 32,
                                    .output_checksum = 0xfedcba9876543210u,
                                    .ring_slots = 3,
                                    .cache = "cold",
                                    .init = "normal",
                                    .utc_s = 1764583200,
                                    .run = 1,
                                    .case_index = 4};
    fib_stats_compute(f->call_ms, NULL, 3, &f->result.time_ms);
}

static int set_up(void **state)
{
    static const double call_ms[] = {0.001};
    static const struct fib_fake_script script = {
        .call_ms = call_ms, .call_count = 1, .utc_s = 1764583200};
    struct fixture *f = calloc(1, sizeof(*f));
    struct fib_error err = {0};
    fill_case(f);
    fill_result(f);
    *state = f;
    return fib_device_fake_open(NULL, &script, &f->device, &err) == FIB_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    fib_device_close(&f->device);
    free(f);
    return 0;
}

static struct fib_json *record_of(const struct fixture *f)
{
    return fib_result_record(&f->result, f->device, "fib-bench", "v1");
}

static void expect_text(const struct fib_json *record, const char *path, const char *wanted)
{
    const char *text = fib_json_text(record, path);
    if (!text || strcmp(text, wanted) != 0)
        fail_msg("%s: %s, expected %s", path, text ? text : "(no text)", wanted);
}

static void expect_number(const struct fib_json *record, const char *path, double wanted)
{
    const double number = fib_json_f64(record, path);
    if (!(number == wanted))
        fail_msg("%s: %.17g, expected %.17g", path, number, wanted);
}

static void expect_null(const struct fib_json *record, const char *path)
{
    const struct fib_json *value = fib_json_get(record, path);
    if (!value || !fib_json_is_null(value))
        fail_msg("%s is absent or not null", path);
}

static void test_passed(void **state)
{
    struct fib_json *record = record_of(*state);
    expect_number(record, "schema_version", FIB_SCHEMA_VERSION);
    expect_text(record, "kind", "result");
    expect_text(record, "status", "PASSED");
    expect_null(record, "reason");
    expect_null(record, "line");
    expect_null(record, "source");
    expect_number(record, "case_index", 4);
    expect_text(record, "time_utc", "2025-12-01T10:00:00Z");
    expect_text(record, "title", "probe rows=32 causal");
    expect_text(record, "time.unit", "ps");
    expect_number(record, "time.median", 3456700);
    expect_number(record, "time.min", 3456000);
    expect_number(record, "time.raw", 3500000);
    expect_null(record, "time.p5");
    expect_null(record, "time.ci_low");
    expect_null(record, "time.ci_method");
    expect_null(record, "time.order_high");
    expect_number(record, "rate.tb_per_sec", 1.25);
    expect_null(record, "rate.bound");
    expect_number(record, "cost.bytes", 200);
    expect_text(record, "measure.timer", "wall");
    expect_text(record, "measure.stop_reason", "count");
    expect_number(record, "measure.calls_per_window", 30);
    expect_number(record, "measure.windows", 3);
    expect_null(record, "measure.mhz");
    expect_text(record, "check.verdict", "passed");
    expect_number(record, "check.total_rows", 32);
    expect_text(record, "check.output_checksum", "fedcba9876543210");
    expect_null(record, "versus");
    expect_text(record, "device.kind", "cpu");
    expect_text(record, "build_id", "v1");
    assert_int_equal(strlen(fib_json_text(record, "case_key")), 16);
    assert_true(fib_result_measured(record));
    assert_null(fib_json_get(record, "time.samples"));
    fib_json_free(&record);
}

static void test_params(void **state)
{
    struct fib_json *record = record_of(*state);
    char *params = fib_json_print(fib_json_get(record, "params"), false);
    assert_string_equal(params, "{\"case_tag\":\"a \\\"tag\\\"\",\"allow_output_mismatch\":false,"
                                "\"rows\":32,\"eps\":1e-06,\"input_dtype\":\"bfloat16\","
                                "\"causal\":true,\"scale\":null,\"verbose\":2}");
    free(params);
    expect_text(record, "repro_command",
                "fib-bench --routine probe --case_tag 'a \"tag\"' --rows 32 --causal");
    fib_json_free(&record);
}

static void test_samples_on_request(void **state)
{
    struct fixture *f = *state;
    f->kase.settings.samples = true;
    struct fib_json *record = record_of(f);
    char *samples = fib_json_print(fib_json_get(record, "time.samples"), false);
    assert_string_equal(samples, "[3456700,3457000,3456000]");
    free(samples);
    fib_json_free(&record);
}

static void test_one_sample_has_no_spread(void **state)
{
    struct fixture *f = *state;
    fib_stats_compute(f->call_ms, NULL, 1, &f->result.time_ms);
    struct fib_json *record = record_of(f);
    expect_number(record, "time.median", 3456700);
    expect_null(record, "time.std");
    fib_json_free(&record);
}

static void test_wrong_result_has_no_time(void **state)
{
    struct fixture *f = *state;
    f->result.status = FIB_RESULT_INCORRECT;
    strcpy(f->result.reason, "3 of 64 differ");
    f->result.check.failed = true;
    strcpy(f->result.check.message, "at [0, 1]");
    struct fib_json *record = record_of(f);
    expect_text(record, "status", "INCORRECT");
    expect_text(record, "reason", "3 of 64 differ");
    expect_null(record, "time");
    expect_null(record, "rate");
    expect_text(record, "check.verdict", "failed");
    expect_text(record, "check.message", "at [0, 1]");
    assert_false(fib_result_measured(record));
    assert_int_equal(fib_result_exit(record), FIB_EXIT_WRONG);
    fib_json_free(&record);

    f->kase.settings.allow_output_mismatch = true;
    f->values[MISMATCH] = (struct fib_value){.set = true, .i64 = 1, .text = "True"};
    record = record_of(f);
    expect_number(record, "time.median", 3456700);
    assert_int_equal(fib_result_exit(record), FIB_EXIT_OK);
    fib_json_free(&record);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    f->result = (struct fib_result){.kase = &f->kase,
                                    .backend = "cutlass",
                                    .status = FIB_RESULT_UNSUPPORTED,
                                    .reason = "no module",
                                    .run = 1};
    f->kase.line = 7;
    f->kase.source = "list.txt";
    struct fib_json *record = record_of(f);
    static const char *const nulls[] = {"resolved_backend", "time",  "rate",  "cost",
                                        "measure",          "check", "versus"};
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
        expect_null(record, nulls[i]);
    expect_number(record, "line", 7);
    expect_text(record, "source", "list.txt");
    assert_int_equal(fib_result_exit(record), FIB_EXIT_OK);
    fib_json_free(&record);
}

static void test_unchecked(void **state)
{
    struct fixture *f = *state;
    f->result.status = FIB_RESULT_UNCHECKED;
    f->result.has_check = false;
    struct fib_json *record = record_of(f);
    expect_text(record, "check.verdict", "not run");
    expect_null(record, "check.checked_rows");
    assert_true(fib_result_measured(record));
    fib_json_free(&record);
}

static struct fib_paired usual_paired(void)
{
    return (struct fib_paired){.round_count = 24,
                               .ratio = 1.25,
                               .ratio_low = 1.2,
                               .ratio_high = NAN,
                               .verdict = FIB_SLOWER,
                               .margin = 0.005,
                               .tie_count = 3,
                               .mde = 0.002,
                               .rounds_needed = NAN,
                               .p = 0.0001};
}

static void test_versus(void **state)
{
    struct fixture *f = *state;
    const struct fib_paired paired = usual_paired();
    f->result.versus_best = &paired;
    f->result.best_backend = "openblas";
    struct fib_json *record = record_of(f);
    expect_text(record, "versus.best_backend", "openblas");
    expect_number(record, "versus.ratio", 1.25);
    expect_null(record, "versus.ratio_high");
    expect_number(record, "versus.rounds", 24);
    expect_number(record, "versus.ties", 3);
    expect_text(record, "versus.verdict", "SLOWER");
    expect_number(record, "versus.margin_pct", 0.5);
    expect_number(record, "versus.mde_pct", 0.2);
    expect_null(record, "versus.rounds_needed");
    expect_number(record, "versus.p", 0.0001);
    fib_json_free(&record);
}

/* The table of a case whose second backend compares as `paired` says has this text in it. */
static void expect_in_table(struct fixture *f, const struct fib_paired *paired, const char *wanted)
{
    struct fib_text out = {0};
    f->result.versus_best = NULL;
    struct fib_json *best = record_of(f);
    f->result.versus_best = paired;
    f->result.best_backend = "cpu";
    struct fib_json *other = record_of(f);
    fib_json_set_text(other, "backend", "other");
    fib_case_table((const struct fib_json *const[]){other, best}, 2, NULL, &out);
    assert_contains(fib_text_chars(&out), wanted);
    fib_text_free(&out);
    fib_json_free(&best);
    fib_json_free(&other);
}

static void test_table_says_what_would_decide(void **state)
{
    struct fixture *f = *state;
    struct fib_paired paired = usual_paired();
    paired.ratio = 1.0034;
    paired.ratio_low = 0.999;
    paired.ratio_high = 1.008;
    paired.verdict = FIB_UNRESOLVED;
    paired.rounds_needed = 190;
    expect_in_table(f, &paired, "  1.003x, open  ");
    expect_in_table(f, &paired,
                    "\n  other: open after 24 rounds, about 190 would decide: -n 190\n");
    paired.rounds_needed = FIB_MAX_ROUNDS_NEEDED;
    expect_in_table(
        f, &paired,
        "  other: open after 24 rounds, too near to the margin of 0.5 % to be decided\n");
    paired.round_count = 1;
    paired.ratio_low = paired.ratio_high = paired.rounds_needed = NAN;
    expect_in_table(f, &paired, "  1.00x, open  ");
    expect_in_table(f, &paired, "  other: open after 1 round, fewer than 6 decide nothing\n");
}

/* No digit of the ratio beyond the first one of its interval. */
static void test_table_rounds_ratios(void **state)
{
    static const struct {
        double ratio, half_width;
        const char *wanted;
    } rows[] = {{1.23456, 0.0001, "  1.235x slower"}, {1.23456, 0.002, "  1.235x slower"},
                {1.23456, 0.02, "  1.23x slower"},    {1.23456, 0.2, "  1.2x slower"},
                {12.3456, 3.0, "  12x slower"},       {1.23456, 0.0, "  1.235x slower"},
                {0.8, 0.02, "  1.25x faster"},        {1.23456, NAN, "  1.23x slower"}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fib_paired paired = usual_paired();
        paired.ratio = rows[i].ratio;
        paired.ratio_low = rows[i].ratio - rows[i].half_width;
        paired.ratio_high = rows[i].ratio + rows[i].half_width;
        expect_in_table(f, &paired, rows[i].wanted);
    }
}

static void test_bad_line(void **state)
{
    const struct fixture *f = *state;
    struct fib_json *record = fib_result_bad_line_record(
        NULL, "a.txt", 9, "--routine x", "a.txt:9: unknown routine x", 2, f->device);
    expect_text(record, "status", "ERROR");
    expect_text(record, "title", "--routine x");
    expect_text(record, "reason", "a.txt:9: unknown routine x");
    expect_number(record, "line", 9);
    expect_text(record, "time_utc", "2025-12-01T10:00:00Z");
    expect_null(record, "routine");
    expect_null(record, "time");
    assert_int_equal(fib_result_exit(record), FIB_EXIT_BAD_LINES);

    /* the same members in the same order as any other record */
    struct fib_json *other = record_of(f);
    assert_int_equal(fib_json_count(record), fib_json_count(other));
    for (size_t i = 0; i < fib_json_count(record); i++)
        assert_string_equal(fib_json_name_at(record, i), fib_json_name_at(other, i));
    fib_json_free(&other);
    fib_json_free(&record);

    record = fib_result_bad_line_record("rmsnorm", "a.txt", 9, "x", "y", 2, NULL);
    expect_null(record, "device");
    expect_null(record, "time_utc");
    fib_json_free(&record);
}

static void test_exit_statuses(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        enum fib_exit wanted;
    } rows[] = {{"PASSED", FIB_EXIT_OK},     {"INVALID", FIB_EXIT_WRONG},
                {"CRASHED", FIB_EXIT_CRASH}, {"TIMEOUT", FIB_EXIT_CRASH},
                {"ERROR", FIB_EXIT_OK},      {"OOM", FIB_EXIT_OK},
                {"TOO_SLOW", FIB_EXIT_OK},   {"UNCHECKED", FIB_EXIT_OK}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fib_json *record = fib_json_object();
        fib_json_set_text(record, "status", rows[i].status);
        fib_json_set_null(record, "line");
        assert_int_equal(fib_result_exit(record), rows[i].wanted);
        fib_json_free(&record);
    }
    assert_string_equal(fib_result_status_name(FIB_RESULT_TOO_SLOW), "TOO_SLOW");
}

static size_t leaf_count(const struct fib_json *value)
{
    size_t leaves = 0;
    for (size_t i = 0; i < fib_json_count(value); i++) {
        const struct fib_json *child = fib_json_at(value, i);
        leaves += fib_json_count(child) > 0 ? leaf_count(child) : 1;
    }
    return leaves;
}

static void test_environment(void **state)
{
    const struct fixture *f = *state;
    const char *const argv[] = {"fib-bench", "--routine", "a b"};
    const struct fib_registry registry = {
        .program = "fib-bench", .version = "1.2.3", .build_id = "abc"};
    struct fib_json *block = fib_env_block(&registry, f->device, 3, argv);
    assert_true(leaf_count(block) >= 30);
    expect_text(block, "kind", "environment");
    expect_text(block, "version", "1.2.3");
    expect_text(block, "time_utc", "2025-12-01T10:00:00Z");
    assert_int_equal(fib_json_count(fib_json_get(block, "argv")), 3);
    assert_true(fib_json_f64(block, "cpu.affinity") >= 1);
    assert_true(fib_json_f64(block, "memory.total_bytes") > 0);
    assert_true(fib_json_f64(block, "memory.page_bytes") >= 4096);
    assert_non_null(fib_json_text(block, "kernel"));
    expect_text(block, "device.kind", "cpu");

    struct fib_text text = {0};
    fib_env_print(block, &text);
    assert_contains(text.chars, "\nversion ");
    assert_contains(text.chars, "\ncpu.affinity ");
    assert_contains(text.chars, "[\"fib-bench\",\"--routine\",\"a b\"]\n");
    fib_text_free(&text);
    fib_json_free(&block);

    block = fib_env_block(&registry, NULL, 0, NULL);
    expect_null(block, "device");
    fib_json_free(&block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_passed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_params, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_samples_on_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_sample_has_no_spread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_result_has_no_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unchecked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_versus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_table_says_what_would_decide, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_table_rounds_ratios, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_line, set_up, tear_down),
        cmocka_unit_test(test_exit_statuses),
        cmocka_unit_test_setup_teardown(test_environment, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
