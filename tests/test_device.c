/* The host device and the scripted one: facts, memory, copies, windows, refusals. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "core/pool.h"

static struct fib_device *open_cpu(struct fib_pool *pool)
{
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    assert_int_equal(fib_device_cpu_open(pool, &device, &err), FIB_OK);
    return device;
}

static struct fib_device *open_fake(const double *call_ms, size_t call_count)
{
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    const struct fib_fake_script script = {
        .call_ms = call_ms, .call_count = call_count, .utc_s = 1700000000};
    assert_int_equal(fib_device_fake_open(NULL, &script, &device, &err), FIB_OK);
    return device;
}

static void timer_names(void **state)
{
    (void)state;
    assert_string_equal(fib_timer_name(FIB_TIMER_DEFAULT), "default");
    assert_string_equal(fib_timer_name(FIB_TIMER_GRAPH), "graph");
    assert_string_equal(fib_timer_name(FIB_TIMER_ISOLATED), "isolated");
    assert_string_equal(fib_timer_name(FIB_TIMER_CUPTI), "cupti");
    assert_string_equal(fib_timer_name(FIB_TIMER_EVENTS), "events");
    assert_string_equal(fib_timer_name(FIB_TIMER_WALL), "wall");
    assert_string_equal(fib_timer_name((enum fib_timer)99), "unknown");
}

static void cpu_facts(void **state)
{
    (void)state;
    struct fib_pool *pool = fib_pool_create(3);
    struct fib_device *device = open_cpu(pool), *again = open_cpu(NULL);
    const struct fib_device_facts *facts = &device->facts;
    assert_int_equal(facts->kind, FIB_DEVICE_CPU);
    assert_true(device->host_memory);
    assert_true(facts->name[0] != '\0');
    assert_int_equal(strlen(facts->uuid), 4 + 16);
    assert_memory_equal(facts->uuid, "cpu-", 4);
    assert_string_equal(facts->uuid, again->facts.uuid);
    assert_int_equal(facts->compute_capability, 0);
    assert_int_equal(facts->unit_count, 3);
    assert_int_equal(again->facts.unit_count, 1);
    const uint64_t cap = UINT64_C(64) << 20, ring = 3 * facts->cache_bytes;
    assert_true(facts->ring_bytes == (ring < cap ? ring : cap));
    assert_true(facts->ring_limit_bytes >= facts->ring_bytes);
    assert_true(facts->ring_limit_bytes <= UINT64_C(8) << 30);
    assert_int_equal(facts->default_timer, FIB_TIMER_WALL);
    assert_true(facts->tick_ms > 0 && facts->tick_ms < 1);
    assert_true(facts->window_overhead_ms > 0 && facts->window_overhead_ms < 1);
    assert_string_equal(facts->overhead_method, "empty window");
    assert_true(facts->window_min_ms >= 0.2);
    assert_string_equal(facts->default_backend, "cpu");
    assert_true(facts->flops_per_s > 0 && facts->bytes_per_s > 0);
    assert_true(device->ops->free_bytes(device) > 0);
    assert_true(device->ops->utc_s(device) > 1600000000);
    const double before_ms = device->ops->now_ms(device);
    assert_true(device->ops->now_ms(device) >= before_ms);
    fib_device_close(&again);
    fib_device_close(&device);
    assert_null(device);
    fib_device_close(&device);
    fib_pool_free(&pool);
}

static void cpu_refuses_device_timers(void **state)
{
    (void)state;
    struct fib_device *device = open_cpu(NULL);
    assert_null(fib_device_timer_refusal(device, FIB_TIMER_DEFAULT));
    assert_null(fib_device_timer_refusal(device, FIB_TIMER_WALL));
    for (int timer = FIB_TIMER_GRAPH; timer <= FIB_TIMER_EVENTS; timer++)
        assert_string_equal(fib_device_timer_refusal(device, (enum fib_timer)timer),
                            "needs a CUDA device");
    const uint32_t slot = 0;
    const struct fib_window_spec spec = {.timer = FIB_TIMER_GRAPH, .call_count = 1, .slots = &slot};
    struct fib_window *window = NULL;
    struct fib_error err = {0};
    assert_int_equal(device->ops->window_create(device, &spec, &window, &err), FIB_ERR_UNSUPPORTED);
    assert_null(window);
    assert_string_equal(err.text, "--timer graph: needs a CUDA device");
    fib_device_close(&device);
}

/* Blocks from malloc and blocks that are mapped. */
static void memory_round_trip(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 257, 300000, (4u << 20) - 1, 4u << 20, (5u << 20) + 13};
    struct fib_pool *pool = fib_pool_create(2);
    struct fib_device *device = open_cpu(pool);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const size_t bytes = sizes[i];
        struct fib_error err = {0};
        void *a = NULL, *b = NULL;
        unsigned char *host = malloc(bytes + 1);
        assert_int_equal(device->ops->alloc(device, bytes, &a, &err), FIB_OK);
        assert_int_equal(device->ops->alloc(device, bytes, &b, &err), FIB_OK);
        assert_int_equal((uintptr_t)a % 256, 0);
        assert_int_equal((uintptr_t)b % 256, 0);
        for (size_t j = 0; j < bytes; j++)
            host[j] = (unsigned char)(j * 7 + j / 255);
        uint64_t sum_a = 0, sum_b = 1;
        assert_int_equal(device->ops->write(device, a, host, bytes, &err), FIB_OK);
        assert_int_equal(device->ops->copy(device, NULL, b, a, bytes, &err), FIB_OK);
        assert_int_equal(device->ops->checksum(device, a, bytes, &sum_a, &err), FIB_OK);
        assert_int_equal(device->ops->checksum(device, b, bytes, &sum_b, &err), FIB_OK);
        assert_true(sum_a == sum_b);
        assert_int_equal(device->ops->set_bytes(device, a, 0x5a, bytes, &err), FIB_OK);
        assert_int_equal(device->ops->read(device, host, a, bytes, &err), FIB_OK);
        for (size_t j = 0; j < bytes; j++)
            if (host[j] != 0x5a)
                fail_msg("byte %zu of %zu is %d", j, bytes, host[j]);
        device->ops->release(device, a, bytes);
        device->ops->release(device, b, bytes);
        free(host);
    }
    fib_device_close(&device);
    fib_pool_free(&pool);
}

static void alloc_that_cannot_be(void **state)
{
    (void)state;
    struct fib_device *device = open_cpu(NULL);
    struct fib_error err = {0};
    void *address = NULL;
    assert_int_equal(device->ops->alloc(device, SIZE_MAX / 2 - 4096, &address, &err), FIB_ERR_OOM);
    assert_contains(err.text, "the system refuses a block of 92233720368547");
    device->ops->release(device, NULL, 10);
    fib_device_close(&device);
}

static void fill_is_the_same_with_threads(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    const struct fib_fill fill = FIB_FILL_DATA;
    struct fib_pool *pool = fib_pool_create(4);
    struct fib_device *one = open_cpu(NULL), *four = open_cpu(pool);
    struct fib_error err = {0};
    float *a = malloc(COUNT * sizeof(*a)), *b = malloc(COUNT * sizeof(*b));
    const uint64_t key = fib_fill_key(42, "input", 0);
    assert_int_equal(one->ops->fill(one, &fill, FIB_F32, key, 0, COUNT, a, &err), FIB_OK);
    assert_int_equal(four->ops->fill(four, &fill, FIB_F32, key, 0, COUNT, b, &err), FIB_OK);
    assert_memory_equal(a, b, COUNT * sizeof(*a));
    assert_int_equal(four->ops->fill(four, &fill, FIB_F32, key, 1000, COUNT - 1000, b, &err),
                     FIB_OK);
    assert_memory_equal(a + 1000, b, (COUNT - 1000) * sizeof(*a));
    free(a);
    free(b);
    fib_device_close(&one);
    fib_device_close(&four);
    fib_pool_free(&pool);
}

struct trace {
    char text[128];
    int fail_at;
};

static enum fib_status trace_call(void *context, struct fib_stream *stream, uint32_t slot,
                                  struct fib_error *err)
{
    struct trace *trace = context;
    const size_t length = strlen(trace->text);
    assert_null(stream);
    snprintf(trace->text + length, sizeof(trace->text) - length, "%u", (unsigned)slot);
    if (trace->fail_at == (int)slot)
        return fib_fail(err, FIB_ERR_DEVICE, "slot %u broke", (unsigned)slot);
    return FIB_OK;
}

static enum fib_status trace_reset(void *context, struct fib_stream *stream, const uint32_t *slots,
                                   uint32_t slot_count, struct fib_error *err)
{
    struct trace *trace = context;
    (void)stream;
    (void)err;
    strcat(trace->text, "[");
    for (uint32_t i = 0; i < slot_count; i++)
        snprintf(trace->text + strlen(trace->text), 8, "%u", (unsigned)slots[i]);
    strcat(trace->text, "]");
    return FIB_OK;
}

static void check_window(struct fib_device *device)
{
    uint32_t slots[] = {2, 0, 1};
    struct trace trace = {.fail_at = -1};
    struct fib_window_spec spec = {.timer = FIB_TIMER_WALL,
                                   .call_count = 3,
                                   .slots = slots,
                                   .call = trace_call,
                                   .call_context = &trace,
                                   .reset = trace_reset,
                                   .reset_context = &trace};
    struct fib_window *window = NULL;
    struct fib_window_sample sample;
    struct fib_error err = {0};
    assert_int_equal(device->ops->window_create(device, &spec, &window, &err), FIB_OK);
    slots[0] = 9; /* the window has its own copy */
    assert_int_equal(device->ops->window_run(window, &sample, &err), FIB_OK);
    assert_int_equal(device->ops->window_run(window, &sample, &err), FIB_OK);
    assert_string_equal(trace.text, "[201]201[201]201");
    assert_true(sample.window_ms >= 0);
    trace.fail_at = 0;
    trace.text[0] = '\0';
    assert_int_equal(device->ops->window_run(window, &sample, &err), FIB_ERR_DEVICE);
    assert_string_equal(trace.text, "[201]20");
    assert_string_equal(err.text, "slot 0 broke");
    device->ops->window_destroy(&window);
    assert_null(window);
}

static void windows_call_in_order(void **state)
{
    (void)state;
    struct fib_device *cpu = open_cpu(NULL), *fake = open_fake(NULL, 0);
    check_window(cpu);
    check_window(fake);
    fib_device_close(&cpu);
    fib_device_close(&fake);
}

static void streams_are_nothing_on_a_host(void **state)
{
    (void)state;
    struct fib_device *device = open_cpu(NULL);
    struct fib_stream *stream = NULL;
    struct fib_error err = {0};
    assert_int_equal(device->ops->stream_create(device, &stream, &err), FIB_OK);
    assert_int_equal(device->ops->synchronize(device, stream, &err), FIB_OK);
    device->ops->stream_destroy(device, &stream);
    assert_null(stream);
    fib_device_close(&device);
}

static void fake_clock_follows_the_script(void **state)
{
    (void)state;
    const double script[] = {1.0, 2.0, -5.0, NAN};
    struct fib_device *device = open_fake(script, 4);
    struct trace trace = {.fail_at = -1};
    const uint32_t slots[] = {0, 0, 0};
    const struct fib_window_spec spec = {.timer = FIB_TIMER_GRAPH,
                                         .call_count = 3,
                                         .slots = slots,
                                         .call = trace_call,
                                         .call_context = &trace};
    struct fib_window *window = NULL;
    struct fib_window_sample sample;
    struct fib_error err = {0};
    assert_null(fib_device_timer_refusal(device, FIB_TIMER_CUPTI));
    assert_int_equal(device->ops->window_create(device, &spec, &window, &err), FIB_OK);
    assert_int_equal(device->ops->window_run(window, &sample, &err), FIB_OK);
    assert_float_equal(sample.window_ms, -2.0, 0);
    assert_float_equal(device->ops->now_ms(device), 3.0, 0);
    assert_int_equal(device->ops->window_run(window, &sample, &err), FIB_OK);
    assert_true(isnan(sample.window_ms));
    assert_float_equal(device->ops->now_ms(device), 6.0, 0);
    device->ops->window_destroy(&window);
    assert_int_equal(device->ops->utc_s(device), 1700000000);
    assert_string_equal(device->facts.name, "Fake device");
    assert_string_equal(device->facts.uuid, "fake-0");
    assert_int_equal(device->facts.cache_bytes, 1 << 20);
    assert_int_equal(device->ops->free_bytes(device), 1 << 30);
    fib_device_close(&device);
}

/* Only the last 100 ms count, to a piece of 10 ms. */
static void work_is_forgotten(void **state)
{
    (void)state;
    const double call_ms[] = {1.0};
    const struct fib_fake_script script = {.call_ms = call_ms, .call_count = 1};
    struct fib_error err = {0};
    struct fib_device *device = NULL;
    assert_int_equal(fib_device_fake_open(NULL, &script, &device, &err), FIB_OK);
    assert_float_equal(fib_device_recent_work_ms(device), 0, 0);
    fib_device_fake_advance(device, 5);
    fib_device_note_work(device, 3);
    fib_device_note_work(device, -1);
    fib_device_fake_advance(device, 40);
    fib_device_note_work(device, 7);
    assert_float_equal(fib_device_recent_work_ms(device), 10, 0);
    fib_device_fake_advance(device, 54);
    assert_float_equal(fib_device_recent_work_ms(device), 10, 0);
    fib_device_fake_advance(device, 2);
    assert_float_equal(fib_device_recent_work_ms(device), 7, 0);
    fib_device_fake_advance(device, 1e9);
    assert_float_equal(fib_device_recent_work_ms(device), 0, 0);
    fib_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timer_names),
        cmocka_unit_test(cpu_facts),
        cmocka_unit_test(cpu_refuses_device_timers),
        cmocka_unit_test(memory_round_trip),
        cmocka_unit_test(alloc_that_cannot_be),
        cmocka_unit_test(fill_is_the_same_with_threads),
        cmocka_unit_test(windows_call_in_order),
        cmocka_unit_test(streams_are_nothing_on_a_host),
        cmocka_unit_test(fake_clock_follows_the_script),
        cmocka_unit_test(work_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
