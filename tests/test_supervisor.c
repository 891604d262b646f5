/* Worker processes: the same records as without them, one row for a worker that does not come back,
 * and what happens when no worker can be had. */
#include "tests/support.h"
#include "tests/program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/blame.h"
#include "core/supervisor.h"
#include "core/text.h"
#include "tests/fake_backends.h"

enum { MAX_RECORDS = 64 };

struct bench {
    struct fake_registry fakes;
    struct fib_app app;
    pid_t test;
    struct fib_plan *plan;
    struct fib_interrupt *interrupt;
    struct fib_supervisor *supervisor;
    struct fib_json *records[MAX_RECORDS];
    size_t record_count, group_count, asked_count;
    const char *skipped; /* label that has its row from elsewhere */
    struct fib_text said;
};

/* The worker must die of a fault, not report it to the copy of the test runner that it carries. */
static void forget_handlers(const struct fib_app *app)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const pid_t *const test = app->open_context;
    for (size_t i = 0; *test != getpid() && i < sizeof(faults) / sizeof(faults[0]); i++)
        signal(faults[i], SIG_DFL);
}

static enum fib_status open_fake(const struct fib_app *app, struct fib_pool *pool,
                                 struct fib_device **device, struct fib_error *err)
{
    static const double call_ms[] = {0.5};
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = 1, .utc_s = 1000};
    forget_handlers(app);
    return fib_device_fake_open(pool, &script, device, err);
}

/* With so little memory that a test can use it up. */
static enum fib_status open_small(const struct fib_app *app, struct fib_pool *pool,
                                  struct fib_device **device, struct fib_error *err)
{
    const enum fib_status st = open_fake(app, pool, device, err);
    if (st == FIB_OK)
        (*device)->facts.memory_bytes = UINT64_C(64) << 20;
    return st;
}

static enum fib_status open_never(const struct fib_app *app, struct fib_pool *pool,
                                  struct fib_device **device, struct fib_error *err)
{
    (void)app, (void)pool, (void)device;
    return fib_fail(err, FIB_ERR_DEVICE, "the driver is asleep");
}

static enum fib_status open_and_die(const struct fib_app *app, struct fib_pool *pool,
                                    struct fib_device **device, struct fib_error *err)
{
    (void)app, (void)pool, (void)device, (void)err;
    raise(SIGKILL);
    return FIB_OK;
}

static enum fib_status emit(void *context, struct fib_json *record, struct fib_error *err)
{
    struct bench *const b = context;
    (void)err;
    assert_true(b->record_count < MAX_RECORDS);
    b->records[b->record_count++] = record;
    return FIB_OK;
}

static enum fib_status end_group(void *context, struct fib_error *err)
{
    struct bench *const b = context;
    (void)err;
    b->group_count++;
    return FIB_OK;
}

static void begin_group(void *context, const struct fib_group *group, bool *skip)
{
    struct bench *const b = context;
    b->asked_count++;
    assert_int_equal(strlen(group->key), 16);
    for (size_t i = 0; i < group->count; i++)
        skip[i] = b->skipped && strcmp(group->labels[i], b->skipped) == 0;
}

static void say(void *context, const char *line)
{
    struct bench *const b = context;
    fib_text_addf(&b->said, "%s\n", line);
}

static struct fib_runner runner_of(struct bench *b, struct fib_device *device)
{
    return (struct fib_runner){.registry = &b->fakes.registry,
                               .device = device,
                               .emit = emit,
                               .end_group = end_group,
                               .begin_group = begin_group,
                               .say = say,
                               .context = b};
}

static void open_bench(struct bench *b, const char *line)
{
    struct fib_error err = {0};
    memset(b, 0, sizeof(*b));
    fake_registry_init(&b->fakes, test_registry());
    b->test = getpid();
    b->app = (struct fib_app){.registry = &b->fakes.registry,
                              .open_device = open_fake,
                              .open_context = &b->test,
                              .out = stdout,
                              .err = stderr};
    if (program_parse(&b->fakes.registry, line, &b->plan, &err) != FIB_OK)
        fail_msg("%s", err.text);
    b->interrupt = fib_interrupt_create(false);
}

static void drop_records(struct bench *b)
{
    for (size_t i = 0; i < b->record_count; i++)
        fib_json_free(&b->records[i]);
    b->record_count = b->group_count = 0;
    fib_text_clear(&b->said);
}

static void close_bench(struct bench *b)
{
    drop_records(b);
    fib_text_free(&b->said);
    fib_supervisor_close(&b->supervisor);
    assert_null(b->supervisor);
    fib_plan_free(&b->plan);
    fib_interrupt_free(&b->interrupt);
}

static enum fib_status open_supervisor(struct bench *b, struct fib_error *err)
{
    static const char *const argv[] = {"fib-bench"};
    const struct fib_supervisor_spec spec = {
        .app = &b->app, .plan = b->plan, .argc = 1, .argv = argv, .interrupt = b->interrupt};
    return fib_supervisor_open(&spec, &b->supervisor, err);
}

static void run_isolated(struct bench *b)
{
    struct fib_error err = {0};
    if (!b->supervisor && open_supervisor(b, &err) != FIB_OK)
        fail_msg("%s", err.text);
    const struct fib_runner runner = runner_of(b, fib_supervisor_device(b->supervisor));
    for (size_t i = 0; i < b->plan->count; i++)
        if (fib_supervisor_case(b->supervisor, &runner, i, &err) != FIB_OK)
            fail_msg("%s", err.text);
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
                   const char *reason)
{
    const struct fib_json *const record = record_of(b, backend);
    assert_string_equal(fib_json_text(record, "status"), status);
    if (reason)
        assert_contains(fib_json_text(record, "reason"), reason);
}

#define SMALL "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 20 -d 0 "

static void records_are_those_of_the_process_itself(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    struct fib_device *device = NULL;
    char *lines[2][MAX_RECORDS];
    size_t counts[2];
    (void)state;
    open_bench(&b, SMALL "--cache both --samples -vv --backends fake-good fake-slow fake-wrong "
                         "fake-refuse fake-oom");
    for (int isolated = 0; isolated < 2; isolated++) {
        if (isolated) {
            run_isolated(&b);
        } else {
            assert_int_equal(open_fake(&b.app, NULL, &device, &err), FIB_OK);
            const struct fib_runner runner = runner_of(&b, device);
            assert_int_equal(fib_runner_case(&runner, b.plan->items[0].kase, 0, &err), FIB_OK);
            fib_device_close(&device);
        }
        counts[isolated] = b.record_count;
        assert_int_equal(b.group_count, 2);
        for (size_t i = 0; i < b.record_count; i++)
            lines[isolated][i] = fib_json_print(b.records[i], false);
        assert_contains(fib_text_chars(&b.said), "[INFO] args = Namespace(");
        drop_records(&b);
    }
    assert_int_equal(counts[0], 10);
    assert_int_equal(counts[1], 10);
    for (size_t i = 0; i < 10; i++) {
        assert_string_equal(lines[0][i], lines[1][i]);
        free(lines[0][i]);
        free(lines[1][i]);
    }
    close_bench(&b);
}

static void the_device_is_known_from_afar(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    (void)state;
    open_bench(&b, SMALL "--backends fake-good");
    assert_int_equal(open_supervisor(&b, &err), FIB_OK);
    struct fib_device *const device = fib_supervisor_device(b.supervisor);
    const struct fib_json *const block = fib_supervisor_environment(b.supervisor);
    assert_string_equal(device->facts.uuid, "fake-0");
    assert_string_equal(device->facts.name, "Fake device");
    assert_string_equal(device->facts.default_backend, "cpu");
    assert_int_equal(device->facts.kind, FIB_DEVICE_CPU);
    assert_int_equal(device->ops->utc_s(device), 1000);
    assert_true(device->ops->now_ms(device) == 0.0);
    assert_string_equal(fib_json_text(block, "kind"), "environment");
    assert_true(fib_json_f64(block, "process_id") == (double)getpid());
    run_isolated(&b);
    assert_true(device->ops->now_ms(device) >= 20.0); /* 20 windows of 1 ms calls */
    close_bench(&b);
}

static void a_crash_costs_one_row(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, SMALL "--backends fake-late-segv fake-good fake-early-segv fake-wrong");
    run_isolated(&b);
    assert_int_equal(b.record_count, 4);
    assert_int_equal(b.group_count, 1);
    expect(&b, "fake-late-segv", "CRASHED", "in fake-late-segv, while it was timed");
    expect(&b, "fake-early-segv", "CRASHED", "in fake-early-segv, while it was prepared");
    expect(&b, "fake-good", "PASSED", NULL);
    expect(&b, "fake-wrong", "INCORRECT", NULL);
    const struct fib_json *const record = record_of(&b, "fake-late-segv");
    assert_int_equal(fib_result_exit(record), FIB_EXIT_CRASH);
    assert_false(fib_result_measured(record));
    assert_true(fib_json_f64(record, "cost.flops") > 0);
    assert_string_equal(fib_json_text(record, "device.uuid"), "fake-0");
    assert_string_equal(fib_json_text(record, "case_key"),
                        fib_json_text(record_of(&b, "fake-good"), "case_key"));
    drop_records(&b);
    run_isolated(&b); /* and again, with the worker that was left */
    assert_int_equal(b.record_count, 4);
    close_bench(&b);
}

static void a_hung_backend_is_ended(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, SMALL "--cache hot --timeout_s 0.3 --backends fake-sleep fake-good");
    run_isolated(&b);
    expect(&b, "fake-sleep", "TIMEOUT",
           "still running after 0.3 s (--timeout_s) in fake-sleep, in its first calls");
    expect(&b, "fake-good", "PASSED", NULL);
    assert_int_equal(fib_result_exit(record_of(&b, "fake-sleep")), FIB_EXIT_CRASH);
    close_bench(&b);
}

static void a_lost_device_is_replaced(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, SMALL "--backends fake-wrong fake-good fake-lose fake-early-lose");
    run_isolated(&b);
    assert_int_equal(b.record_count, 4);
    assert_int_equal(b.group_count, 1);
    expect(&b, "fake-lose", "CRASHED", "illegal memory access");
    expect(&b, "fake-early-lose", "CRASHED", "illegal memory access");
    expect(&b, "fake-good", "PASSED", NULL);
    expect(&b, "fake-wrong", "INCORRECT", NULL);
    close_bench(&b);
}

/* Errors that the device reports when somebody waits, which need not be whoever caused them. */
static void an_error_that_shows_late_is_its_owners(void **state)
{
    static const char *const orders[] = {"fake-good fake-break fake-wrong",
                                         "fake-good fake-early-break fake-wrong",
                                         "fake-good fake-late-break fake-wrong"};
    static const char *const faulty[] = {"fake-break", "fake-early-break", "fake-late-break"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bench b;
        char line[256];
        snprintf(line, sizeof(line), SMALL "--backends %s", orders[i]);
        open_bench(&b, line);
        run_isolated(&b);
        assert_int_equal(b.record_count, 3);
        assert_int_equal(b.group_count, 1);
        expect(&b, faulty[i], "CRASHED", "illegal memory access");
        expect(&b, "fake-good", "PASSED", NULL);
        expect(&b, "fake-wrong", "INCORRECT", NULL);
        close_bench(&b);
    }
}

static void an_error_after_the_results_spares_the_next_case(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "--routine rmsnorm --batch_size 4,8 --hidden_size 64 -n 20 -d 0 --backends "
                   "fake-parting-break fake-good");
    run_isolated(&b);
    assert_int_equal(b.record_count, 4);
    assert_int_equal(b.group_count, 2);
    for (size_t i = 0; i < b.record_count; i++)
        assert_string_equal(fib_json_text(b.records[i], "status"), "PASSED");
    close_bench(&b);
}

static void memory_that_a_backend_keeps_is_missed_by_nobody(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, SMALL "--backends fake-good fake-hog fake-needy");
    b.app.open_device = open_small;
    run_isolated(&b);
    assert_int_equal(b.record_count, 3);
    expect(&b, "fake-hog", "OOM", "no 33554432 bytes are left");
    expect(&b, "fake-needy", "PASSED", NULL);
    expect(&b, "fake-good", "PASSED", NULL);
    close_bench(&b);
}

static void finished_rows_are_left_out(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, SMALL "--backends fake-good fake-segv fake-slow");
    b.skipped = "fake-slow";
    run_isolated(&b);
    assert_int_equal(b.record_count, 2);
    assert_int_equal(b.asked_count, 1); /* a row of the journal is taken once, not by each worker */
    expect(&b, "fake-good", "PASSED", NULL);
    expect(&b, "fake-segv", "CRASHED", NULL);
    close_bench(&b);
    open_bench(&b, SMALL "-vv --backends fake-good");
    b.skipped = "fake-good";
    run_isolated(&b);
    assert_int_equal(b.record_count, 0);
    assert_string_equal(fib_text_chars(&b.said), ""); /* no introduction either */
    close_bench(&b);
}

/* The one child of this process; 0 when the system does not tell. */
static pid_t find_worker(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *const file = fopen(path, "re");
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

static void a_worker_that_dies_idle_costs_nothing(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, SMALL "--backends fake-good");
    run_isolated(&b);
    drop_records(&b);
    const pid_t worker = find_worker();
    siginfo_t info;
    if (worker == 0) {
        close_bench(&b);
        skip();
    }
    assert_int_equal(kill(worker, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT), 0);
    run_isolated(&b);
    assert_int_equal(b.record_count, 1);
    expect(&b, "fake-good", "PASSED", NULL);
    assert_string_equal(fib_text_chars(&b.said), "");
    assert_int_not_equal(find_worker(), worker);
    close_bench(&b);
}

static void without_a_device_there_is_a_sentence(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    (void)state;
    open_bench(&b, SMALL "--backends fake-good");
    b.app.open_device = open_never;
    assert_int_equal(open_supervisor(&b, &err), FIB_ERR_DEVICE);
    assert_string_equal(err.text, "the driver is asleep");
    close_bench(&b);
}

static void workers_that_never_begin_are_not_started_for_ever(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    (void)state;
    open_bench(&b, SMALL "--backends fake-good");
    b.app.open_device = open_and_die;
    assert_int_equal(open_supervisor(&b, &err), FIB_ERR_DEVICE);
    assert_string_equal(err.text, "5 worker processes in a row ended by signal 9 (killed from "
                                  "outside) before they began a case");
    close_bench(&b);
}

/* ---- who is to blame ---- */

static enum fib_status fail_emit(void *context, struct fib_json *record, struct fib_error *err)
{
    (void)context;
    fib_json_free(&record);
    return fib_fail(err, FIB_ERR_IO, "disk full");
}

static void a_worker_without_a_culprit_costs_all_rows(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    struct fib_blame blame;
    struct fib_device *device = NULL;
    static const char *const labels[] = {"fake-good", "cpu", "fake-slow"};
    const struct fib_group group = {.key = "0123456789abcdef", .labels = labels, .count = 3};
    (void)state;
    open_bench(&b, SMALL "--backends fake-good cpu fake-slow");
    assert_int_equal(open_fake(&b.app, NULL, &device, &err), FIB_OK);
    const struct fib_runner runner = runner_of(&b, device);
    fib_blame_begin(&blame, &runner, b.plan->items[0].kase, 0);
    assert_false(fib_blame_note(&blame, "cpu")); /* no group has begun */
    fib_blame_group(&blame, &group);
    assert_false(fib_blame_note(&blame, "nobody"));
    assert_false(fib_blame_note(&blame, NULL));
    assert_true(fib_blame_note(&blame, "cpu"));
    assert_false(fib_blame_note(&blame, "cpu")); /* one row each */
    assert_true(fib_blame_is_done(&blame, 1));
    /* A mark that a stray write has hit names nobody. */
    const struct fib_blame_end end = {
        .status = FIB_RESULT_CRASHED, .arm = 77, .step = FIB_STEP_FILL, .what = "worker fell"};
    assert_int_equal(fib_blame_book(&blame, &end, &err), FIB_OK);
    assert_int_equal(b.record_count, 2);
    expect(&b, "fake-good", "CRASHED", "worker fell while inputs were filled");
    expect(&b, "fake-slow", "CRASHED", "worker fell while inputs were filled");
    assert_true(fib_blame_is_complete(&blame));
    fib_blame_free(&blame);
    fib_device_close(&device);
    close_bench(&b);
}

static void a_worker_that_ends_before_it_names_backends(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    struct fib_blame blame;
    struct fib_device *device = NULL;
    (void)state;
    open_bench(&b, SMALL "--backends fake-good cutlass --also cpu");
    assert_int_equal(open_fake(&b.app, NULL, &device, &err), FIB_OK);
    struct fib_runner runner = runner_of(&b, device);
    const struct fib_blame_end end = {
        .status = FIB_RESULT_CRASHED, .arm = -1, .step = FIB_STEP_BEGIN, .what = "worker fell"};
    fib_blame_begin(&blame, &runner, b.plan->items[0].kase, 0);
    assert_false(fib_blame_is_complete(&blame));
    assert_int_equal(fib_blame_book(&blame, &end, &err), FIB_OK);
    assert_int_equal(b.record_count, 3);
    expect(&b, "cutlass", "CRASHED", "worker fell before any backend ran");
    assert_true(fib_blame_is_complete(&blame));
    fib_blame_free(&blame);
    runner.emit = fail_emit;
    fib_blame_begin(&blame, &runner, b.plan->items[0].kase, 0);
    assert_int_equal(fib_blame_book(&blame, &end, &err), FIB_ERR_IO);
    fib_blame_free(&blame);
    fib_device_close(&device);
    close_bench(&b);
}

static void an_end_after_the_results_is_a_warning(void **state)
{
    struct bench b;
    struct fib_error err = {0};
    struct fib_blame blame;
    struct fib_device *device = NULL;
    static const char *const labels[] = {"fake-good"};
    const struct fib_group group = {.key = "0123456789abcdef", .labels = labels, .count = 1};
    (void)state;
    open_bench(&b, SMALL "--cache both --backends fake-good");
    assert_int_equal(open_fake(&b.app, NULL, &device, &err), FIB_OK);
    const struct fib_runner runner = runner_of(&b, device);
    const struct fib_blame_end end = {
        .status = FIB_RESULT_CRASHED, .arm = 0, .step = FIB_STEP_RELEASE, .what = "worker fell"};
    fib_blame_begin(&blame, &runner, b.plan->items[0].kase, 0);
    fib_blame_group(&blame, &group);
    assert_true(fib_blame_note(&blame, "fake-good"));
    assert_int_equal(fib_blame_end_group(&blame, &err), FIB_OK);
    assert_int_equal(fib_blame_book(&blame, &end, &err), FIB_OK);
    assert_int_equal(b.record_count, 0);
    assert_contains(fib_text_chars(&b.said),
                    "[WARNING] worker fell after its results had been reported, while it was "
                    "released");
    assert_false(fib_blame_is_complete(&blame)); /* the hot state is still to come */
    fib_blame_free(&blame);
    fib_device_close(&device);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_those_of_the_process_itself),
        cmocka_unit_test(the_device_is_known_from_afar),
        cmocka_unit_test(a_crash_costs_one_row),
        cmocka_unit_test(a_hung_backend_is_ended),
        cmocka_unit_test(a_lost_device_is_replaced),
        cmocka_unit_test(an_error_that_shows_late_is_its_owners),
        cmocka_unit_test(an_error_after_the_results_spares_the_next_case),
        cmocka_unit_test(memory_that_a_backend_keeps_is_missed_by_nobody),
        cmocka_unit_test(finished_rows_are_left_out),
        cmocka_unit_test(a_worker_that_dies_idle_costs_nothing),
        cmocka_unit_test(without_a_device_there_is_a_sentence),
        cmocka_unit_test(workers_that_never_begin_are_not_started_for_ever),
        cmocka_unit_test(a_worker_without_a_culprit_costs_all_rows),
        cmocka_unit_test(a_worker_that_ends_before_it_names_backends),
        cmocka_unit_test(an_end_after_the_results_is_a_warning),
    };
    return cmocka_run_group_tests_name("supervisor", tests, NULL, NULL);
}
