/* Value lists and ranges, their limits, and the order of combinations. */
#include "tests/toy.h"

#include "core/sweep.h"

enum { LIMIT = 1000 };

static const struct fib_option i64_row = {
    .name = "m", .kind = FIB_OPT_I64, .min = -100, .max = 1000000};
static const struct fib_option any_i64_row = {.name = "m", .kind = FIB_OPT_I64};
static const struct fib_option f64_row = {.name = "x", .kind = FIB_OPT_F64};
static const struct fib_option choice_row = {
    .name = "mode", .kind = FIB_OPT_CHOICE, .choices = "a b c"};
static const struct fib_option text_row = {.name = "note", .kind = FIB_OPT_TEXT};

/* Values joined by blanks. */
static void assert_sweep(const struct fib_option *option, const char *text, const char *expected)
{
    struct fib_arena *arena = fib_arena_create();
    struct fib_value *values = NULL;
    struct fib_error err = {0};
    size_t count = 0;
    if (fib_sweep_parse(option, text, LIMIT, arena, &values, &count, &err) != FIB_OK)
        fail_msg("%s: %s", text, err.text);
    const char *joined = "";
    for (size_t i = 0; i < count; i++) {
        assert_true(values[i].set && values[i].given);
        joined = fib_arena_printf(arena, "%s%s%s", joined, i ? " " : "", values[i].text);
    }
    assert_string_equal(joined, expected);
    fib_arena_free(&arena);
}

static void assert_refused(const struct fib_option *option, const char *text, const char *sentence)
{
    struct fib_arena *arena = fib_arena_create();
    struct fib_value *values = NULL;
    struct fib_error err = {0};
    size_t count = 0;
    assert_int_equal(fib_sweep_parse(option, text, LIMIT, arena, &values, &count, &err),
                     FIB_ERR_USAGE);
    assert_string_equal(err.text, sentence);
    fib_arena_free(&arena);
}

static void integer_lists_and_ranges(void **state)
{
    (void)state;
    assert_sweep(&i64_row, "7", "7");
    assert_sweep(&i64_row, "1,2,4", "1 2 4");
    assert_sweep(&i64_row, "1:64:*2", "1 2 4 8 16 32 64");
    assert_sweep(&i64_row, "1:63:*2", "1 2 4 8 16 32");
    assert_sweep(&i64_row, "1:9:2", "1 3 5 7 9");
    assert_sweep(&i64_row, "1:8:2", "1 3 5 7");
    assert_sweep(&i64_row, "1:4", "1 2 3 4");
    assert_sweep(&i64_row, "5:5", "5");
    assert_sweep(&i64_row, "-2:1", "-2 -1 0 1");
    assert_sweep(&i64_row, "3:2000:*10", "3 30 300");
    assert_sweep(&i64_row, "1,8:32:*2,7", "1 8 16 32 7");
    assert_sweep(&i64_row, "4,4", "4 4");
    assert_sweep(&any_i64_row, "9223372036854775806:9223372036854775807",
                 "9223372036854775806 9223372036854775807");
    assert_sweep(&any_i64_row, "4611686018427387904:9223372036854775807:*2", "4611686018427387904");
}

static void number_ranges_have_no_noise(void **state)
{
    (void)state;
    assert_sweep(&f64_row, "0.1:0.5:0.1", "0.1 0.2 0.3 0.4 0.5");
    assert_sweep(&f64_row, "1:2:0.25", "1.0 1.25 1.5 1.75 2.0");
    assert_sweep(&f64_row, "0.5:4:*2", "0.5 1.0 2.0 4.0");
    assert_sweep(&f64_row, "1e-6,2", "1e-06 2.0");
    assert_sweep(&f64_row, "-1:0:0.5", "-1.0 -0.5 0.0");
}

static void choices_take_commas_only(void **state)
{
    (void)state;
    assert_sweep(&choice_row, "a,c", "a c");
    assert_refused(&choice_row, "a:c", "--mode a:c: must be a | b | c");
    assert_refused(&choice_row, "a,d", "--mode d: must be a | b | c");
    assert_sweep(&text_row, "a,b:c", "a,b:c"); /* texts are never swept */
}

static void refuses_malformed_ranges(void **state)
{
    (void)state;
    assert_refused(&i64_row, "1,,2", "--m 1,,2: a value is missing beside a comma");
    assert_refused(&i64_row, "1,", "--m 1,: a value is missing beside a comma");
    assert_refused(&i64_row, "1:x", "--m 1:x: the parts of a range must be integers");
    assert_refused(&i64_row, ":", "--m :: the parts of a range must be integers");
    assert_refused(&i64_row, "1:9:", "--m 1:9:: the parts of a range must be integers");
    assert_refused(&i64_row, "1:2:3:4",
                   "--m 1:2:3:4: a range is first:last, first:last:step or first:last:*factor");
    assert_refused(&i64_row, "9:1", "--m 9:1: the range ends before it starts");
    assert_refused(&i64_row, "1:9:0", "--m 1:9:0: the step must be at least 1");
    assert_refused(&i64_row, "1:9:-1", "--m 1:9:-1: the step must be at least 1");
    assert_refused(&i64_row, "1:9:*1", "--m 1:9:*1: the factor must be at least 2");
    assert_refused(&i64_row, "0:9:*2", "--m 0:9:*2: a range with a factor must start at 1 or more");
    assert_refused(&f64_row, "1:2:x", "--x 1:2:x: the parts of a range must be numbers");
    assert_refused(&f64_row, "1:inf:1", "--x 1:inf:1: the parts of a range must be finite");
    assert_refused(&f64_row, "2:1", "--x 2:1: the range ends before it starts");
    assert_refused(&f64_row, "1:2:0", "--x 1:2:0: the step must be more than 0");
    assert_refused(&f64_row, "1:2:*1", "--x 1:2:*1: the factor must be more than 1");
    assert_refused(&f64_row, "0:2:*2", "--x 0:2:*2: a range with a factor must start above 0");
    assert_refused(&i64_row, "999999:1000001", "--m 1000001: must be -100 .. 1000000");
}

static void refuses_too_many_before_making_them(void **state)
{
    (void)state;
    assert_refused(&i64_row, "1:1000000000", "--m 1:1000000000: more than 1000 values");
    assert_refused(&any_i64_row, "-9223372036854775808:9223372036854775807",
                   "--m -9223372036854775808:9223372036854775807: more than 1000 values");
    assert_refused(&any_i64_row, "0:9223372036854775807",
                   "--m 0:9223372036854775807: more than 1000 values");
    assert_refused(&f64_row, "0:1:1e-300", "--x 0:1:1e-300: more than 1000 values");
    assert_refused(&f64_row, "-1e308:1e308", "--x -1e308:1e308: more than 1000 values");
    assert_refused(&f64_row, "1:2:*1.0000000000000002",
                   "--x 1:2:*1.0000000000000002: more than 1000 values");
    assert_sweep(&i64_row, "1:1000:999", "1 1000");
    assert_refused(&i64_row, "1:1000,5", "--m 1:1000,5: more than 1000 values");
}

static void combinations_run_last_axis_fastest(void **state)
{
    (void)state;
    struct fib_value a[] = {{.i64 = 1}, {.i64 = 2}};
    struct fib_value b[] = {{.i64 = 10}, {.i64 = 20}, {.i64 = 30}};
    struct fib_value c[] = {{.i64 = 7}, {.i64 = 8}, {.i64 = 9}};
    struct fib_sweep first = {.row = 0, .values = a, .count = 2};
    struct fib_sweep zipped[] = {{.row = 2, .values = b, .count = 3},
                                 {.row = 1, .values = c, .count = 3}};
    const struct fib_axis axes[] = {{.sweeps = &first, .sweep_count = 1, .count = 2},
                                    {.sweeps = zipped, .sweep_count = 2, .count = 3}};
    assert_int_equal(fib_axes_count(axes, 2, 100), 6);
    assert_int_equal(fib_axes_count(axes, 2, 6), 6);
    assert_int_equal(fib_axes_count(axes, 2, 5), 6); /* limit + 1 */
    assert_int_equal(fib_axes_count(axes, 0, 5), 1);
    struct fib_value row[3] = {{0}};
    fib_axes_pick(axes, 2, 0, row);
    assert_true(row[0].i64 == 1 && row[1].i64 == 7 && row[2].i64 == 10);
    fib_axes_pick(axes, 2, 2, row);
    assert_true(row[0].i64 == 1 && row[1].i64 == 9 && row[2].i64 == 30);
    fib_axes_pick(axes, 2, 3, row);
    assert_true(row[0].i64 == 2 && row[1].i64 == 7 && row[2].i64 == 10);
}

static void product_never_overflows(void **state)
{
    (void)state;
    struct fib_axis axes[40];
    for (size_t i = 0; i < 40; i++)
        axes[i] = (struct fib_axis){.count = 1000};
    assert_int_equal(fib_axes_count(axes, 40, 100000), 100001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_lists_and_ranges),
        cmocka_unit_test(number_ranges_have_no_noise),
        cmocka_unit_test(choices_take_commas_only),
        cmocka_unit_test(refuses_malformed_ranges),
        cmocka_unit_test(refuses_too_many_before_making_them),
        cmocka_unit_test(combinations_run_last_axis_fastest),
        cmocka_unit_test(product_never_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
