/* The GPU test program: one executable, many tests, no test framework, so that it runs on a bare
 * machine. A test is a function; its checks print what went wrong and count. */
#ifndef FIB_TESTS_GPU_TESTS_H
#define FIB_TESTS_GPU_TESTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "core/pool.h"

struct gpu_test {
    struct fib_device *device;
    struct fib_pool *pool;
    const char *program; /* path of this executable, for tests in a process of their own */
    const char *name;
    bool small; /* under a checking tool: few and short launches */
    int failure_count;
};

struct gpu_test_row {
    const char *name;
    void (*run)(struct gpu_test *test);
    bool timed; /* means nothing under a checking tool */
};

struct gpu_suite {
    const char *name;
    const struct gpu_test_row *rows;
    size_t count;
};

extern const struct gpu_suite gpu_suite_memory, gpu_suite_timing, gpu_suite_fault, gpu_suite_cublas,
    gpu_suite_norm;

/* Counts a failure and prints where and what. */
void gpu_test_fail(struct gpu_test *test, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A line of measured values, for the log. */
void gpu_test_note(const struct gpu_test *test, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define GPU_CHECK(test, condition, ...)                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            gpu_test_fail((test), __FILE__, __LINE__, __VA_ARGS__);                                \
    } while (0)

/* Ends the test when a call of the device fails. */
#define GPU_OK(test, call, err)                                                                    \
    do {                                                                                           \
        if ((call) != FIB_OK) {                                                                    \
            gpu_test_fail((test), __FILE__, __LINE__, "%s: %s", #call, (err)->text);               \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* Runs this program again with `--child NAME`, returns its exit status (128 + signal when it was
 * killed) and the end of what it printed. */
int gpu_test_child(const struct gpu_test *test, const char *name, const char *visible_devices,
                   char *output, size_t output_size);
/* What a child does; returns its exit status. In gpu_fault.c. */
int gpu_test_child_main(const char *name);

#endif
