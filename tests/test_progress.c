/* The progress line: when it is written, what it holds, the estimate of the time left. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/progress.h"

struct output {
    FILE *file;
    char *chars;
    size_t length;
};

static void open_output(struct output *output)
{
    output->file = open_memstream(&output->chars, &output->length);
    assert_non_null(output->file);
}

static const char *written(struct output *output)
{
    fflush(output->file);
    return output->chars;
}

static void close_output(struct output *output)
{
    fclose(output->file);
    free(output->chars);
}

static void terminal_line_is_rewritten(void **state)
{
    (void)state;
    struct output out;
    open_output(&out);
    struct fib_progress *progress = fib_progress_create(out.file, true, false, 180, 1000);
    fib_progress_tick(progress, 1000);
    fib_progress_update(progress, 0, "rmsnorm batch_size=64", "cuda flashinfer");
    assert_string_equal(
        written(&out), "\r 0/180  rmsnorm batch_size=64  cuda | flashinfer  0:00:00 elapsed\x1b[K");
    fib_progress_clear(progress);
    assert_contains(written(&out), "elapsed\x1b[K\r\x1b[K");
    const size_t length = strlen(written(&out));
    fib_progress_clear(progress); /* nothing more to clear */
    assert_int_equal(strlen(written(&out)), length);
    fib_progress_tick(progress, 3000);
    fib_progress_update(progress, 1, "rmsnorm", NULL);
    /* 2 s for one case, 179 to come */
    assert_string_equal(written(&out) + length,
                        "\r 1/180  rmsnorm  0:00:02 elapsed, about 0:05:58 left\x1b[K");
    fib_progress_finish(&progress);
    assert_null(progress);
    assert_string_equal(written(&out) + strlen(written(&out)) - 4, "\r\x1b[K");
    close_output(&out);
}

static void plain_line_every_ten_seconds(void **state)
{
    (void)state;
    struct output out;
    open_output(&out);
    struct fib_progress *progress = fib_progress_create(out.file, false, false, 40, 0);
    for (size_t i = 0; i < 40; i++) {
        fib_progress_tick(progress, 1000.0 * (double)i);
        fib_progress_update(progress, i, "case", "cpu");
        fib_progress_clear(progress);
    }
    fib_progress_finish(&progress);
    assert_string_equal(written(&out), " 10/40  case  cpu  0:00:10 elapsed, about 0:00:30 left\n"
                                       " 20/40  case  cpu  0:00:20 elapsed, about 0:00:20 left\n"
                                       " 30/40  case  cpu  0:00:30 elapsed, about 0:00:10 left\n");
    assert_null(strchr(written(&out), '\r'));
    assert_null(strchr(written(&out), '\x1b'));
    close_output(&out);
}

static void quiet_writes_nothing(void **state)
{
    (void)state;
    struct output out;
    open_output(&out);
    struct fib_progress *progress = fib_progress_create(out.file, true, true, 3, 0);
    for (size_t i = 0; i < 3; i++) {
        fib_progress_tick(progress, 20000.0 * (double)i);
        fib_progress_update(progress, i, "case", "cpu");
        fib_progress_clear(progress);
    }
    fib_progress_finish(&progress);
    assert_int_equal(strlen(written(&out)), 0);
    close_output(&out);
}

static void estimate_goes_by_routine(void **state)
{
    (void)state;
    static const char *const routines[] = {"a", "b", "a", "b", "b", NULL};
    struct output out;
    open_output(&out);
    struct fib_progress *progress = fib_progress_create(out.file, false, true, 6, 0);
    fib_progress_plan(progress, routines);
    fib_progress_tick(progress, 0);
    assert_true(isnan(fib_progress_left_ms(progress)));
    fib_progress_update(progress, 0, "a", NULL);
    fib_progress_tick(progress, 100); /* a costs 100 */
    assert_float_equal(fib_progress_left_ms(progress), 500, 1e-9);
    fib_progress_update(progress, 1, "b", NULL);
    fib_progress_tick(progress, 1100); /* b costs 1000: left a, b, b and one unknown of 550 */
    assert_float_equal(fib_progress_left_ms(progress), 100 + 2000 + 550, 1e-9);
    fib_progress_tick(progress, 5000); /* no case in between: nothing is booked */
    assert_float_equal(fib_progress_left_ms(progress), 2650, 1e-9);
    fib_progress_update(progress, 2, "a", NULL);
    fib_progress_tick(progress, 5300); /* a: 100 and 300 */
    assert_float_equal(fib_progress_left_ms(progress), 2000 + 1400.0 / 3, 1e-9);
    fib_progress_finish(&progress);
    close_output(&out);
}

static void long_and_odd_titles_stay_one_line(void **state)
{
    (void)state;
    struct output out;
    char title[400];
    open_output(&out);
    memset(title, 'x', sizeof(title));
    memcpy(title, "start\nof\x1b[2J", 12);
    title[sizeof(title) - 1] = '\0';
    struct fib_progress *progress = fib_progress_create(out.file, true, false, 2, 0);
    fib_progress_tick(progress, 0);
    fib_progress_update(progress, 0, title, "cpu");
    const char *line = written(&out);
    assert_contains(line, " 0/2  start?of?[2J");
    assert_contains(line, "..");
    assert_contains(line, "x  cpu  0:00:00 elapsed");
    assert_int_equal(strlen(line), 1 + 100 + 3); /* \r, the line, \x1b[K */
    fib_progress_finish(&progress);
    fib_progress_finish(&progress);
    fib_progress_clear(NULL);
    close_output(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terminal_line_is_rewritten),
        cmocka_unit_test(plain_line_every_ten_seconds),
        cmocka_unit_test(quiet_writes_nothing),
        cmocka_unit_test(estimate_goes_by_routine),
        cmocka_unit_test(long_and_odd_titles_stay_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
