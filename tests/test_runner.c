/* The loop with the fake device and test-only backends: every fault gets its status, every
 * invariant of docs/architecture.md that lives in the runner. */
#include "tests/support.h"
#include "tests/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/result.h"
#include "core/runner.h"
#include "core/text.h"
#include "tests/fake_backends.h"

enum { MAX_RECORDS = 64 };

/* The program's tables plus the test's backend and labels. */
struct bench {
    struct fake_registry fakes;
    struct fib_device *device;
    struct fib_json *records[MAX_RECORDS];
    size_t record_count;
    struct fib_text said;
};

static enum fib_status emit(void *context, struct fib_json *record, struct fib_error *err)
{
    struct bench *const b = context;
    (void)err;
    assert_true(b->record_count < MAX_RECORDS);
    b->records[b->record_count++] = record;
    return FIB_OK;
}

static void say(void *context, const char *line)
{
    struct bench *const b = context;
    fib_text_add(&b->said, line);
    fib_text_add(&b->said, "\n");
}

static void open_scripted_bench(struct bench *b, const struct fib_fake_script *script)
{
    struct fib_error err = {0};
    memset(b, 0, sizeof(*b));
    fake_registry_init(&b->fakes, test_registry());
    assert_int_equal(fib_device_fake_open(NULL, script, &b->device, &err), FIB_OK);
}

static void open_bench(struct bench *b)
{
    static const double call_ms[] = {0.5};
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = 1, .utc_s = 1000};
    open_scripted_bench(b, &script);
}

static void drop_records(struct bench *b)
{
    for (size_t i = 0; i < b->record_count; i++)
        fib_json_free(&b->records[i]);
    b->record_count = 0;
    fib_text_clear(&b->said);
}

static void close_bench(struct bench *b)
{
    drop_records(b);
    fib_text_free(&b->said);
    fib_device_close(&b->device);
}

/* Runs every case of one command line. */
static void run_line(struct bench *b, const char *line)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    const struct fib_runner runner = {.registry = &b->fakes.registry,
                                      .device = b->device,
                                      .emit = emit,
                                      .say = say,
                                      .context = b};
    if (program_parse(&b->fakes.registry, line, &plan, &err) != FIB_OK)
        fail_msg("%s: %s", line, err.text);
    for (size_t i = 0; i < plan->count; i++)
        assert_int_equal(fib_runner_case(&runner, plan->items[i].kase, (int64_t)i, &err), FIB_OK);
    fib_plan_free(&plan);
}

static const struct fib_json *record_of(const struct bench *b, const char *backend)
{
    for (size_t i = 0; i < b->record_count; i++)
        if (strcmp(fib_json_text(b->records[i], "backend"), backend) == 0)
            return b->records[i];
    fail_msg("no record of %s", backend);
    return NULL;
}

static void expect(const struct bench *b, const char *backend, const char *status,
                   const char *reason_part, bool timed)
{
    const struct fib_json *const record = record_of(b, backend);
    assert_string_equal(fib_json_text(record, "status"), status);
    assert_int_equal(fib_result_measured(record), timed);
    assert_int_equal(fib_json_is_null(fib_json_get(record, "time")), !timed);
    if (reason_part)
        assert_contains(fib_json_text(record, "reason"), reason_part);
}

/* The second backend that is prepared is caught with its hand in the device. */
static const char *second_meddles(struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    device->facts.tick_ms += 1.0; /* serves as a counter */
    if (device->facts.tick_ms < 2.0 || device->facts.tick_ms >= 3.0)
        return NULL;
    snprintf(buffer, buffer_bytes, "it turned a knob");
    return buffer;
}

static void meddling_with_the_device(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct fib_device_ops ops = *b.device->ops;
    ops.meddled = second_meddles;
    b.device->ops = &ops;
    b.device->facts.tick_ms = 0.0;
    run_line(&b, "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 20 --backends fake-good "
                 "fake-slow cpu");
    expect(&b, "fake-good", "PASSED", NULL, true);
    expect(&b, "fake-slow", "INVALID", "it turned a knob", false);
    expect(&b, "cpu", "PASSED", NULL, true);
    close_bench(&b);
}

static void every_fault_has_its_status(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 20 --backends fake-good "
                 "fake-wrong fake-zeros fake-unwritten fake-guard fake-input fake-later "
                 "fake-stale fake-error fake-late-error fake-oom fake-refuse fake-zero-time "
                 "fake-slow cutlass");
    assert_int_equal(b.record_count, 15);
    expect(&b, "fake-wrong", "INCORRECT", "y:", false);
    expect(&b, "fake-zeros", "INCORRECT", "y:", false);
    expect(&b, "fake-unwritten", "INCORRECT", "never written", false);
    expect(&b, "fake-guard", "INCORRECT", "y", false);
    expect(&b, "fake-input", "INCORRECT", "x", false);
    expect(&b, "fake-error", "ERROR", "illegal address", false);
    expect(&b, "fake-late-error", "ERROR", "illegal address", false);
    expect(&b, "fake-oom", "OOM", "99 GiB", false);
    expect(&b, "fake-refuse", "UNSUPPORTED", "moon phase of 3", false);
    expect(&b, "cutlass", "UNSUPPORTED", "cutlass", false);
    expect(&b, "fake-later", "INCORRECT", "y:", false);
    expect(&b, "fake-stale", "INCORRECT", "y:", false);
    expect(&b, "fake-good", "PASSED", NULL, true);
    expect(&b, "fake-slow", "PASSED", NULL, true);
    close_bench(&b);
}

static void zero_time_is_no_measurement(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 4 --hidden_size 64 --backends fake-zero-time");
    expect(&b, "fake-zero-time", "ERROR", NULL, false);
    close_bench(&b);
}

static void an_input_changed_by_one_backend_does_not_hurt_the_next(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine fused_add_rmsnorm --batch_size 3 --hidden_size 40 -n 20 --backends "
                 "fake-input fake-guard fake-wrong fake-good");
    expect(&b, "fake-input", "INCORRECT", NULL, false);
    expect(&b, "fake-guard", "INCORRECT", NULL, false);
    expect(&b, "fake-wrong", "INCORRECT", NULL, false);
    expect(&b, "fake-good", "PASSED", NULL, true);
    close_bench(&b);
}

static void work_is_the_routines_whatever_the_backend(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 32 --hidden_size 4096 -n 20 --backends fake-good "
                 "fake-slow fake-refuse");
    for (size_t i = 0; i < b.record_count; i++) {
        assert_true(fib_json_f64(b.records[i], "cost.bytes") == 532480.0);
        assert_true(fib_json_f64(b.records[i], "cost.flops") == 655360.0);
    }
    const struct fib_json *const good = record_of(&b, "fake-good");
    assert_true(fib_json_f64(good, "time.median") == 1e9);
    assert_true(fib_json_f64(good, "rate.tb_per_sec") == 532480.0 / 1e9);
    const struct fib_json *const slow = record_of(&b, "fake-slow");
    assert_string_equal(fib_json_text(slow, "versus.verdict"), "SLOWER");
    assert_true(fib_json_f64(slow, "versus.ratio") > 1.0999 &&
                fib_json_f64(slow, "versus.ratio") < 1.1001);
    assert_string_equal(fib_json_text(slow, "measure.interleave"), "abba");
    close_bench(&b);
}

/* case 28 and 51 in the whole path: zeros and NaN never pass; the flag shows their time. */
static void case_28_zero_output_fails(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine mm_bf16 --m 3 --n 40 --k 64 -n 20 --backends fake-zeros fake-good");
    expect(&b, "fake-zeros", "INCORRECT", "out", false);
    expect(&b, "fake-good", "PASSED", NULL, true);
    assert_int_equal(fib_result_exit(record_of(&b, "fake-zeros")), FIB_EXIT_WRONG);
    drop_records(&b);
    run_line(&b, "--routine mm_bf16 --m 3 --n 40 --k 64 -n 20 --backends fake-zeros "
                 "--allow_output_mismatch");
    expect(&b, "fake-zeros", "INCORRECT", "out", true);
    assert_int_equal(fib_result_exit(record_of(&b, "fake-zeros")), FIB_EXIT_OK);
    close_bench(&b);
}

static void case_52_checked_without_refcheck(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 20 --backends fake-good");
    assert_string_equal(fib_json_text(record_of(&b, "fake-good"), "check.verdict"), "passed");
    assert_false(fib_json_bool(record_of(&b, "fake-good"), "params.refcheck"));
    drop_records(&b);
    run_line(&b, "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 20 --backends fake-wrong "
                 "--no_check");
    expect(&b, "fake-wrong", "UNCHECKED", NULL, true);
    drop_records(&b);
    run_line(&b, "--routine apply_rope --batch_size 4 --seq_len 64 --num_qo_heads 8 --num_kv_heads "
                 "2 --head_dim 128 --refcheck");
    assert_string_equal(fib_json_text(b.records[0], "status"), "UNSUPPORTED");
    assert_true(fib_json_is_null(fib_json_get(b.records[0], "check")));
    close_bench(&b);
}

/* The same case gives the same bytes whatever ran before it, in either order. */
static void case_55_no_case_contaminates_the_next(void **state)
{
    static const char line[] =
        "--routine rmsnorm --batch_size 5 --hidden_size 64 -n 20 --backends fake-good";
    struct bench b;
    char first[64], second[64];
    (void)state;
    open_bench(&b);
    run_line(&b, line);
    snprintf(first, sizeof(first), "%s",
             fib_json_text(record_of(&b, "fake-good"), "check.output_checksum"));
    drop_records(&b);
    run_line(&b, "--routine rmsnorm --batch_size 50 --hidden_size 640 -n 20 --backends fake-input");
    run_line(&b,
             "--routine fused_add_rmsnorm --batch_size 5 --hidden_size 64 --backends fake-error");
    drop_records(&b);
    run_line(&b, line);
    snprintf(second, sizeof(second), "%s",
             fib_json_text(record_of(&b, "fake-good"), "check.output_checksum"));
    assert_string_equal(first, second);
    close_bench(&b);
}

/* A refused list of backends: the device's default runs beside them, under its own name. */
static void case_59_fallback_runs_under_its_own_label(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 2 --hidden_size 64 -n 20 --backends cutlass "
                 "cute-dsl");
    assert_int_equal(b.record_count, 3);
    expect(&b, "cutlass", "UNSUPPORTED", NULL, false);
    expect(&b, "cute-dsl", "UNSUPPORTED", NULL, false);
    assert_string_equal(fib_json_text(b.records[2], "backend"), "cpu");
    assert_contains(fib_json_text(b.records[2], "resolved_backend"), "cpu/");
    drop_records(&b);
    run_line(&b,
             "--routine rmsnorm --batch_size 2 --hidden_size 64 --backends cutlass --also none");
    assert_int_equal(b.record_count, 1);
    expect(&b, "cutlass", "UNSUPPORTED", NULL, false);
    drop_records(&b);
    run_line(&b, "--routine rmsnorm --batch_size 2 --hidden_size 64 -n 20 --backends auto");
    assert_int_equal(b.record_count, 1);
    assert_string_equal(fib_json_text(b.records[0], "backend"), "auto");
    assert_contains(fib_json_text(b.records[0], "resolved_backend"), "/");
    close_bench(&b);
}

static void cache_both_gives_two_rows(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 2 --hidden_size 64 -n 20 --backends fake-good "
                 "--cache both");
    assert_int_equal(b.record_count, 2);
    assert_string_equal(fib_json_text(b.records[0], "measure.cache"), "cold");
    assert_string_equal(fib_json_text(b.records[1], "measure.cache"), "hot");
    assert_true(fib_json_f64(b.records[1], "measure.ring_slots") == 1.0);
    close_bench(&b);
}

static void too_slow_and_too_large_are_rows(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine mm_bf16 --m 16384 --n 16384 --k 16384 --backends fake-good "
                 "--max_case_s 1");
    expect(&b, "fake-good", "TOO_SLOW", "--max_case_s", false);
    drop_records(&b);
    run_line(&b, "--routine rmsnorm --batch_size 1048576 --hidden_size 65536 --backends fake-good "
                 "--max_case_s 1000000");
    expect(&b, "fake-good", "OOM", "free", false);
    assert_int_equal(fib_result_exit(b.records[0]), FIB_EXIT_OK);
    close_bench(&b);
}

static void reference_lines_are_said(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    run_line(&b, "--routine rmsnorm --batch_size 2 --hidden_size 64 -n 20 --backends fake-good "
                 "-vv --generate_repro_command --case_tag 'a b'");
    const char *const said = fib_text_chars(&b.said);
    assert_contains(said, "[INFO] args = Namespace(");
    assert_contains(said, "batch_size=2");
    assert_contains(said, "case_tag='a b'");
    assert_contains(said, "[VVERBOSE] x.shape = (2, 64)");
    assert_contains(said, "[VVERBOSE] x.dtype = bfloat16");
    assert_contains(said, "--case_tag 'a b'");
    close_bench(&b);
}

static void timers_that_the_device_lacks_are_refused(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    struct fib_pool *pool = NULL;
    (void)state;
    open_bench(&b);
    fib_device_close(&b.device);
    assert_int_equal(fib_device_cpu_open(pool, &b.device, &err), FIB_OK);
    run_line(&b, "--routine rmsnorm --batch_size 2 --hidden_size 64 --backends cpu --timer cupti");
    expect(&b, "cpu", "UNSUPPORTED", "CUDA", false);
    close_bench(&b);
}

/* A device that throttles and drifts: told by a flag and by numbers, no window dropped, and the
 * comparison does not see it. */
static void troubles_of_the_device_reach_the_record(void **state)
{
    (void)state;
    enum { PERIOD = 20 };
    double mhz[PERIOD];
    for (int i = 0; i < PERIOD; i++)
        mhz[i] = i < 3 ? 1400 : 1980;
    const struct fib_fake_script script = {.mhz = mhz, .mhz_count = PERIOD, .drift_per_s = 0.05};
    struct bench b;
    open_scripted_bench(&b, &script);
    run_line(&b, "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 60 --backends fake-good "
                 "fake-slow");
    static const char *const labels[] = {"fake-good", "fake-slow"};
    for (int i = 0; i < 2; i++) {
        const struct fib_json *const record = record_of(&b, labels[i]);
        char *const flags = fib_json_print(fib_json_get(record, "flags"), false);
        assert_contains(flags, "\"CLOCK_UNSTABLE\"");
        free(flags);
        assert_float_equal(fib_json_f64(record, "measure.windows"), 60, 0);
        assert_float_equal(fib_json_f64(record, "measure.rejected_windows"), 0, 0);
        const double slow_count = fib_json_f64(record, "measure.mhz.slow_windows");
        assert_true(slow_count >= 6 && slow_count <= 12);
        assert_true(fib_json_is_number(fib_json_get(record, "time.drift_pct_per_s")));
        assert_true(fib_json_is_number(fib_json_get(record, "time.p95")));
        assert_true(fib_json_is_number(fib_json_get(record, "time.order_low")));
    }
    const struct fib_json *const slow = record_of(&b, "fake-slow");
    assert_true(fabs(fib_json_f64(slow, "versus.ratio") - 1.1) < 0.0011);
    assert_string_equal(fib_json_text(slow, "versus.verdict"), "SLOWER");
    assert_true(fib_json_is_null(fib_json_get(slow, "versus.rounds_needed")));
    assert_true(fib_json_f64(slow, "versus.p") <= 0.001);
    assert_float_equal(fib_json_f64(slow, "versus.margin_pct"), 0.5, 0);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meddling_with_the_device),
        cmocka_unit_test(every_fault_has_its_status),
        cmocka_unit_test(zero_time_is_no_measurement),
        cmocka_unit_test(an_input_changed_by_one_backend_does_not_hurt_the_next),
        cmocka_unit_test(work_is_the_routines_whatever_the_backend),
        cmocka_unit_test(case_28_zero_output_fails),
        cmocka_unit_test(case_52_checked_without_refcheck),
        cmocka_unit_test(case_55_no_case_contaminates_the_next),
        cmocka_unit_test(case_59_fallback_runs_under_its_own_label),
        cmocka_unit_test(cache_both_gives_two_rows),
        cmocka_unit_test(too_slow_and_too_large_are_rows),
        cmocka_unit_test(reference_lines_are_said),
        cmocka_unit_test(timers_that_the_device_lacks_are_refused),
        cmocka_unit_test(troubles_of_the_device_reach_the_record),
    };
    return cmocka_run_group_tests_name("runner", tests, NULL, NULL);
}
