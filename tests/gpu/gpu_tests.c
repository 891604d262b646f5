/* Main of the GPU tests: gpu-tests [--list] [--small] [NAME...], NAME a suite or a test. Exit 0 all
 * passed, 1 some failed, 77 no GPU here. */
#include "gpu_tests.h"

#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device_cuda.h"

static const struct gpu_suite *const suites[] = {
    &gpu_suite_memory, &gpu_suite_timing, &gpu_suite_fault, &gpu_suite_norm,
#if FIB_HAVE_CUBLAS
    &gpu_suite_cublas,
#endif
};
enum { SUITE_COUNT = sizeof(suites) / sizeof(suites[0]), SKIPPED = 77 };

void gpu_test_fail(struct gpu_test *test, const char *file, int line, const char *format, ...)
{
    const char *const slash = strrchr(file, '/');
    va_list args;
    test->failure_count++;
    if (test->failure_count > 20)
        return;
    printf("  %s:%d: %s: ", slash ? slash + 1 : file, line, test->name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void gpu_test_note(const struct gpu_test *test, const char *format, ...)
{
    va_list args;
    printf("  %s: ", test->name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void exec_child(const struct gpu_test *test, const char *name, const char *visible_devices,
                       int output)
{
    if (visible_devices)
        setenv("CUDA_VISIBLE_DEVICES", visible_devices, 1);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execl(test->program, test->program, "--child", name, (char *)NULL);
    _exit(126);
}

int gpu_test_child(const struct gpu_test *test, const char *name, const char *visible_devices,
                   char *output, size_t output_size)
{
    int pipe_ends[2], status = 0;
    size_t length = 0;
    fflush(NULL);
    if (pipe(pipe_ends) != 0)
        return 125;
    const pid_t child = fork();
    if (child == 0)
        exec_child(test, name, visible_devices, pipe_ends[1]);
    close(pipe_ends[1]);
    for (;;) {
        char piece[512];
        const ssize_t got = read(pipe_ends[0], piece, sizeof(piece));
        if (got <= 0)
            break;
        const size_t room = output_size - 1 - length;
        const size_t kept = (size_t)got < room ? (size_t)got : room;
        memcpy(output + length, piece, kept);
        length += kept;
    }
    output[length] = '\0';
    close(pipe_ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 125;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_wanted(const char *suite, const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], suite) == 0 || strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

static bool run_test(struct gpu_test *test, const struct gpu_test_row *row)
{
    const double start_s = now_s();
    test->name = row->name;
    test->failure_count = 0;
    row->run(test);
    printf("%s %s (%.2f s)\n", test->failure_count == 0 ? "ok  " : "FAIL", row->name,
           now_s() - start_s);
    fflush(stdout);
    return test->failure_count == 0;
}

static int run_all(struct gpu_test *test, int count, char **names)
{
    int passed = 0, failed = 0;
    for (int s = 0; s < SUITE_COUNT; s++)
        for (size_t i = 0; i < suites[s]->count; i++) {
            const struct gpu_test_row *const row = &suites[s]->rows[i];
            if (!is_wanted(suites[s]->name, row->name, count, names) || (test->small && row->timed))
                continue;
            const bool good = run_test(test, row);
            passed += good;
            failed += !good;
            if (test->device->lost) {
                printf("the device is lost, the tests end here\n");
                return 1;
            }
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0 || passed == 0;
}

static void list_tests(void)
{
    for (int s = 0; s < SUITE_COUNT; s++)
        for (size_t i = 0; i < suites[s]->count; i++)
            printf("%s %s\n", suites[s]->name, suites[s]->rows[i].name);
}

int main(int argc, char **argv)
{
    struct fib_error err = {0};
    struct gpu_test test = {.program = "/proc/self/exe"};
    int first = 1;
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return gpu_test_child_main(argv[2]);
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        list_tests();
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--small") == 0) {
        test.small = true;
        first = 2;
    }
    test.pool = fib_pool_create(0);
    const double start_s = now_s();
    const enum fib_status st = fib_device_cuda_open(test.pool, 0, &test.device, &err);
    int exit_status = 1;
    if (st == FIB_OK) {
        printf("%s, %s, opened in %.0f ms\n", test.device->facts.name, test.device->facts.note,
               (now_s() - start_s) * 1e3);
        exit_status = run_all(&test, argc - first, argv + first);
    } else {
        printf("%s: %s\n", st == FIB_ERR_UNSUPPORTED ? "skipped" : "FAIL", err.text);
        exit_status = st == FIB_ERR_UNSUPPORTED ? SKIPPED : 1;
    }
    fib_device_close(&test.device);
    fib_pool_free(&test.pool);
    return exit_status;
}
