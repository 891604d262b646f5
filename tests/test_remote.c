/* The paths for devices whose memory the host cannot see, with a device that only pretends: every
 * verdict must be the one of a device in host memory. */
#include "tests/support.h"
#include "tests/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/judge.h"
#include "core/option.h"
#include "core/result.h"
#include "core/runner.h"
#include "core/sample.h"
#include "core/text.h"
#include "tests/fake_backends.h"

/* ---- a device that hides its memory ---- */

static struct fib_device_ops remote_ops;
static size_t read_bytes; /* by the host, in all */
static int spread_count, scan_count, compare_count;

static enum fib_status remote_read(struct fib_device *device, void *host, const void *src,
                                   size_t bytes, struct fib_error *err)
{
    (void)device, (void)err;
    read_bytes += bytes;
    memcpy(host, src, bytes);
    return FIB_OK;
}

static enum fib_status remote_spread(struct fib_device *device, struct fib_stream *stream,
                                     void *dst, uint64_t stride_bytes, const uint32_t *slots,
                                     uint32_t slot_count, const void *src, size_t bytes,
                                     struct fib_error *err)
{
    (void)device, (void)stream, (void)err;
    spread_count++;
    for (uint32_t i = 0; i < slot_count; i++)
        memcpy((char *)dst + slots[i] * stride_bytes, src, bytes);
    return FIB_OK;
}

static enum fib_status remote_scan(struct fib_device *device, const void *src, size_t elem_bytes,
                                   uint64_t count, uint64_t mask, uint64_t pattern,
                                   struct fib_scan_hits *hits, struct fib_error *err)
{
    (void)device, (void)err;
    scan_count++;
    *hits = (struct fib_scan_hits){.first = -1};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)src + i * elem_bytes, elem_bytes);
        if ((bits & mask) != pattern)
            continue;
        hits->first = hits->count++ == 0 ? (int64_t)i : hits->first;
    }
    return FIB_OK;
}

static bool is_skipped(const struct fib_span *skipped, int count, uint64_t offset)
{
    for (int k = 0; k < count; k++)
        if (offset >= skipped[k].first && offset < skipped[k].last)
            return true;
    return false;
}

static enum fib_status remote_compare(struct fib_device *device, const void *base,
                                      uint64_t stride_bytes, uint32_t slot_count,
                                      const struct fib_span *skipped, int skipped_count,
                                      uint32_t *first_slot, struct fib_error *err)
{
    const char *const first = base;
    (void)device, (void)err;
    compare_count++;
    for (uint32_t slot = 1; slot < slot_count; slot++)
        for (uint64_t i = 0; i < stride_bytes; i++)
            if (first[slot * stride_bytes + i] != first[i] &&
                !is_skipped(skipped, skipped_count, i)) {
                *first_slot = slot;
                return FIB_OK;
            }
    *first_slot = UINT32_MAX;
    return FIB_OK;
}

static struct fib_device *open_device(bool remote)
{
    static const double call_ms[] = {0.5};
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = 1, .utc_s = 1000};
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    assert_int_equal(fib_device_fake_open(NULL, &script, &device, &err), FIB_OK);
    read_bytes = 0;
    spread_count = scan_count = compare_count = 0;
    if (!remote)
        return device;
    remote_ops = *device->ops;
    remote_ops.read = remote_read;
    remote_ops.spread = remote_spread;
    remote_ops.scan = remote_scan;
    remote_ops.compare_slots = remote_compare;
    device->ops = &remote_ops;
    device->host_memory = false;
    return device;
}

/* ---- whole cases ---- */

struct bench {
    struct fake_registry fakes;
    struct fib_text verdicts; /* what does not depend on the device, a line a record */
};

static enum fib_status emit(void *context, struct fib_json *record, struct fib_error *err)
{
    struct bench *const b = context;
    (void)err;
    char *const check = fib_json_print(fib_json_get(record, "check"), false);
    char *const flags = fib_json_print(fib_json_get(record, "flags"), false);
    const char *const reason = fib_json_text(record, "reason");
    fib_text_addf(&b->verdicts, "%s %s %s %s %s\n", fib_json_text(record, "backend"),
                  fib_json_text(record, "status"), reason ? reason : "-", check, flags);
    free(check);
    free(flags);
    fib_json_free(&record);
    return FIB_OK;
}

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof(*b));
    fake_registry_init(&b->fakes, test_registry());
}

static void run_line(struct bench *b, bool remote, const char *line)
{
    struct fib_device *device = open_device(remote);
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    const struct fib_runner runner = {
        .registry = &b->fakes.registry, .device = device, .emit = emit, .context = b};
    if (program_parse(&b->fakes.registry, line, &plan, &err) != FIB_OK)
        fail_msg("%s: %s", line, err.text);
    for (size_t i = 0; i < plan->count; i++)
        assert_int_equal(fib_runner_case(&runner, plan->items[i].kase, (int64_t)i, &err), FIB_OK);
    fib_plan_free(&plan);
    fib_device_close(&device);
}

static void verdicts_are_the_same(void **state)
{
    static const char *const backends[] = {
        "fake-good",  "fake-slow",  "fake-wrong", "fake-zeros", "fake-unwritten",
        "fake-guard", "fake-input", "fake-later", "fake-stale", "fake-late-error"};
    static const char *const cases[] = {
        "--routine rmsnorm --batch_size 4 --hidden_size 64 -n 20",
        "--routine fused_add_rmsnorm --batch_size 3 --hidden_size 72 -n 20",
        "--routine rmsnorm_quant --batch_size 5 --hidden_size 64 -n 20",
        "--routine mm_bf16 --m 5 --n 16 --k 32 -n 20"};
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
            struct bench host, remote;
            char line[256];
            snprintf(line, sizeof(line), "%s --backends %s", cases[c], backends[i]);
            open_bench(&host);
            open_bench(&remote);
            run_line(&host, false, line);
            run_line(&remote, true, line);
            assert_string_equal(fib_text_chars(&host.verdicts), fib_text_chars(&remote.verdicts));
            assert_int_equal(scan_count > 0, c != 1); /* in-place tensors only */
            if (i == 0) {
                assert_contains(fib_text_chars(&remote.verdicts), "PASSED");
                assert_int_equal(compare_count, 1);
                assert_int_equal(spread_count > 0, c == 1);
            }
            fib_text_free(&host.verdicts);
            fib_text_free(&remote.verdicts);
        }
}

/* ---- the judge on a sample of the rows ---- */

/* Large enough that copying single rows pays. */
enum { ROWS = 1000, COLS = 4096 };

struct writer {
    struct fib_tensors *tensors;
    int64_t nan_row; /* -1: none */
    bool writes;
};

static enum fib_status write_output(void *context, struct fib_stream *stream, uint32_t slot,
                                    struct fib_error *err)
{
    const struct writer *const w = context;
    (void)stream, (void)err;
    uint16_t *const y = fib_tensors_address(w->tensors, slot, 2);
    if (w->writes)
        memset(y, 0, (size_t)ROWS * COLS * sizeof(*y));
    if (w->nan_row >= 0)
        y[w->nan_row * COLS] = 0x7fc0;
    return FIB_OK;
}

static void judge(bool remote, const struct writer *how, double flops_budget, bool full,
                  struct fib_verification *found, uint64_t *checksum)
{
    struct fib_plan *plan = test_plan("--routine rmsnorm --batch_size 1000 --hidden_size 4096");
    const struct fib_case *kase = plan->items[0].kase;
    struct fib_device *device = open_device(remote);
    struct fib_problem problem = {.accumulate_roundoff = 0x1p-24};
    struct fib_tensors *tensors = NULL;
    struct fib_judge *made = NULL;
    struct fib_error err = {0};
    kase->routine->describe(kase, &problem);
    assert_string_equal(problem.tensors[2].name, "y");
    assert_int_equal(fib_tensors_create(device, &problem, 42, 2, &tensors, &err), FIB_OK);
    assert_int_equal(fib_judge_create(kase, &problem, tensors, NULL, flops_budget, 42, &made, &err),
                     FIB_OK);
    struct writer writer = *how;
    writer.tensors = tensors;
    const struct fib_judge_call call = {.call = write_output, .context = &writer};
    const size_t weight_bytes = (size_t)COLS * 2, whole_bytes = (size_t)ROWS * COLS * 2;
    assert_true(!remote || read_bytes >= weight_bytes);
    if (remote && flops_budget < 1e6) /* of x only the rows that are looked at */
        assert_true(read_bytes < whole_bytes / 2);
    read_bytes = 0;
    *found = (struct fib_verification){0};
    assert_int_equal(full ? fib_judge_full(made, &call, found, checksum, &err)
                          : fib_judge_again(made, &call, found, &err),
                     FIB_OK);
    fib_judge_free(&made);
    fib_tensors_free(&tensors);
    fib_device_close(&device);
    fib_plan_free(&plan);
}

static void compare(const struct writer *how, double flops_budget, bool full, const char *message)
{
    struct fib_verification host, remote;
    uint64_t host_sum = 0, remote_sum = 0;
    judge(false, how, flops_budget, full, &host, &host_sum);
    judge(true, how, flops_budget, full, &remote, &remote_sum);
    assert_string_equal(host.message, remote.message);
    assert_int_equal(host.failed, remote.failed);
    assert_int_equal(host.checked_rows, remote.checked_rows);
    assert_int_equal(host.compared_count, remote.compared_count);
    assert_int_equal(host.mismatch_count, remote.mismatch_count);
    assert_true(host_sum == remote_sum);
    assert_contains(remote.message, message);
}

static void sampled_rows_and_scans(void **state)
{
    const double few = 1, all = 1e12;
    (void)state;
    for (int full = 0; full < 2; full++) {
        compare(&(struct writer){.writes = true, .nan_row = -1}, few, full, "y");
        /* Few rows were copied, not the tensor. */
        assert_true(read_bytes > 0 && read_bytes < (size_t)ROWS * COLS);
        compare(&(struct writer){.writes = true, .nan_row = 500}, few, full, "y");
        compare(&(struct writer){.writes = true, .nan_row = 500}, all, full, "y");
        compare(&(struct writer){.writes = true, .nan_row = 0}, few, full, "y");
    }
    compare(&(struct writer){.writes = false, .nan_row = -1}, few, true, "never written");
    compare(&(struct writer){.writes = false, .nan_row = 3}, all, true, "never written");
}

/* ---- calls that cannot be captured ---- */

static int refused_count;

static const struct fib_device_ops *plain_ops;

static enum fib_status refuse_graph(struct fib_device *device, const struct fib_window_spec *spec,
                                    struct fib_window **window, struct fib_error *err)
{
    if (spec->timer != FIB_TIMER_GRAPH)
        return plain_ops->window_create(device, spec, window, err);
    refused_count++;
    *window = NULL;
    return fib_fail(err, FIB_ERR_UNSUPPORTED, "the call cannot be captured: it synchronizes");
}

static enum fib_status call_nothing(void *context, struct fib_stream *stream, uint32_t slot,
                                    struct fib_error *err)
{
    (void)context, (void)stream, (void)slot, (void)err;
    return FIB_OK;
}

static void without_capture_events_take_over(void **state)
{
    struct fib_device *device = open_device(false);
    struct fib_samples samples;
    struct fib_error err = {0};
    const struct fib_arm arms[2] = {{.label = "a", .call = call_nothing},
                                    {.label = "b", .call = call_nothing}};
    const struct fib_sample_rules rules = {.timer = FIB_TIMER_GRAPH,
                                           .slot_count = 4,
                                           .warmup_calls = FIB_UNSET_I64,
                                           .window_count = 5,
                                           .budget_ms = 200,
                                           .precision = 0.005,
                                           .seed = 42};
    (void)state;
    refused_count = 0;
    plain_ops = device->ops;
    remote_ops = *plain_ops;
    remote_ops.window_create = refuse_graph;
    device->ops = &remote_ops;
    assert_int_equal(fib_sample_run(device, arms, 2, &rules, &samples, &err), FIB_OK);
    assert_int_equal(err.status, FIB_OK);
    assert_int_equal(refused_count, 1);
    assert_int_equal(samples.timer, FIB_TIMER_EVENTS);
    assert_string_equal(samples.capture_note, "the call cannot be captured: it synchronizes");
    assert_int_equal(samples.series[0].count, 5);
    assert_int_equal(samples.series[1].count, 5);
    assert_float_equal(samples.series[1].mhz[4], 1000, 0);
    fib_samples_free(&samples);
    fib_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_the_same),
        cmocka_unit_test(sampled_rows_and_scans),
        cmocka_unit_test(without_capture_events_take_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
