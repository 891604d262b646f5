/* Worker threads: coverage of ranges, split rule, order of memory, shutdown. */
#include "tests/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/host.h"
#include "core/pool.h"

enum { COUNT = 10007 };

struct marks {
    unsigned char seen[COUNT];
    atomic_int range_count;
    int64_t shortest;
    pthread_mutex_t mutex;
};

static void mark(void *context, int64_t first, int64_t last)
{
    struct marks *marks = context;
    atomic_fetch_add(&marks->range_count, 1);
    for (int64_t i = first; i < last; i++)
        marks->seen[i]++;
    pthread_mutex_lock(&marks->mutex);
    if (last != COUNT && last - first < marks->shortest)
        marks->shortest = last - first;
    pthread_mutex_unlock(&marks->mutex);
}

static int run_marked(struct fib_pool *pool, int64_t count, int64_t grain, int64_t *shortest)
{
    struct marks *marks = calloc(1, sizeof(*marks));
    assert_non_null(marks);
    marks->shortest = COUNT;
    pthread_mutex_init(&marks->mutex, NULL);
    fib_pool_for(pool, count, grain, mark, marks);
    for (int64_t i = 0; i < COUNT; i++)
        assert_int_equal(marks->seen[i], i < count);
    const int ranges = atomic_load(&marks->range_count);
    if (shortest)
        *shortest = marks->shortest;
    pthread_mutex_destroy(&marks->mutex);
    free(marks);
    return ranges;
}

static void covers_every_index_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 63, 1000, COUNT};
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct fib_pool *pool = fib_pool_create(threads);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            for (int64_t grain = 0; grain <= 64; grain = grain * 3 + 1)
                run_marked(pool, counts[i], grain, NULL);
        fib_pool_free(&pool);
        assert_null(pool);
    }
}

static void splits_by_grain_and_threads(void **state)
{
    (void)state;
    struct fib_pool *pool = fib_pool_create(4);
    int64_t shortest = 0;
    assert_int_equal(fib_pool_thread_count(pool), 4);
    assert_int_equal(run_marked(pool, 100, 100, NULL), 1);
    assert_int_equal(run_marked(pool, 101, 100, &shortest), 2);
    assert_int_equal(shortest, 1); /* [100, 101) is the last one */
    assert_int_equal(run_marked(pool, 1000, 1, &shortest), 4);
    assert_int_equal(shortest, 250);
    assert_int_equal(run_marked(pool, COUNT, 5000, &shortest), 3);
    assert_int_equal(shortest, 5000);
    assert_int_equal(run_marked(pool, 0, 1, NULL), 0);
    fib_pool_free(&pool);
}

static void null_pool_runs_alone(void **state)
{
    (void)state;
    struct fib_pool *none = NULL;
    assert_int_equal(fib_pool_thread_count(NULL), 1);
    assert_int_equal(run_marked(NULL, COUNT, 1, NULL), 1);
    fib_pool_free(&none);
}

static void unused_pool_ends(void **state)
{
    (void)state;
    struct fib_pool *pool = fib_pool_create(0);
    assert_int_equal(fib_pool_thread_count(pool), fib_host_cpu_count());
    fib_pool_free(&pool);
}

struct sums {
    const int64_t *in;
    int64_t *out;
};

static void add_one(void *context, int64_t first, int64_t last)
{
    const struct sums *sums = context;
    for (int64_t i = first; i < last; i++)
        sums->out[i] = sums->in[COUNT - 1 - i] + 1;
}

/* Each call reads what other threads wrote in the call before: results must be visible. */
static void results_are_visible_to_the_next_call(void **state)
{
    (void)state;
    int64_t *a = calloc(COUNT, sizeof(*a)), *b = calloc(COUNT, sizeof(*b));
    assert_non_null(a);
    assert_non_null(b);
    struct fib_pool *pool = fib_pool_create(3);
    for (int round = 0; round < 300; round++) {
        struct sums forth = {.in = a, .out = b}, back = {.in = b, .out = a};
        fib_pool_for(pool, COUNT, 1, add_one, &forth);
        fib_pool_for(pool, COUNT, 1, add_one, &back);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(a[i], 600);
    fib_pool_free(&pool);
    free(a);
    free(b);
}

/* Pauses longer than the spinning time make all threads sleep between calls. */
static void wakes_after_a_pause(void **state)
{
    (void)state;
    struct fib_pool *pool = fib_pool_create(4);
    for (int i = 0; i < 20; i++) {
        run_marked(pool, COUNT, 1, NULL);
        const struct timespec pause = {.tv_nsec = 300000};
        nanosleep(&pause, NULL);
    }
    fib_pool_free(&pool);
}

static void host_facts_are_sane(void **state)
{
    (void)state;
    struct fib_host_memory memory;
    char value[64];
    fib_host_memory(&memory);
    assert_true(fib_host_cpu_count() >= 1);
    assert_true(memory.installed_bytes > (1u << 20));
    assert_true(memory.available_bytes <= memory.installed_bytes);
    assert_true(memory.cgroup_free_bytes <= memory.cgroup_limit_bytes);
    assert_true(fib_host_free_bytes() <= memory.installed_bytes);
    assert_true(fib_host_cache_bytes() >= 4096);
    assert_true(fib_host_proc_value("/proc/meminfo", "MemTotal", value, sizeof(value)));
    assert_contains(value, "kB");
    assert_false(fib_host_proc_value("/proc/meminfo", "Mem", value, sizeof(value)));
    assert_false(fib_host_proc_value("/nonexistent", "MemTotal", value, sizeof(value)));
    assert_int_equal(fib_host_proc_distinct("/proc/meminfo", "MemTotal"), 1);
    assert_int_equal(fib_host_proc_distinct("/proc/meminfo", "no such key"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_every_index_once),
        cmocka_unit_test(splits_by_grain_and_threads),
        cmocka_unit_test(null_pool_runs_alone),
        cmocka_unit_test(unused_pool_ends),
        cmocka_unit_test(results_are_visible_to_the_next_call),
        cmocka_unit_test(wakes_after_a_pause),
        cmocka_unit_test(host_facts_are_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
