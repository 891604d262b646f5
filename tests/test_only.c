/* --only: grammar, comparisons, names, and what is said about mistakes. */
#include "tests/toy.h"

#include "core/only.h"

/* True when the expression keeps the one case of `line`. */
static bool keeps(const char *line, const char *expression)
{
    struct fib_plan *plan = toy_plan(line);
    struct fib_error err = {0};
    const struct fib_only *only = NULL;
    if (fib_only_parse(expression, toy_registry(), plan->arena, &only, &err) != FIB_OK)
        fail_msg("%s: %s", expression, err.text);
    const bool holds = fib_only_holds(only, plan->items[0].kase);
    fib_plan_free(&plan);
    return holds;
}

static const char line[] =
    "--routine blend --rows 32 --cols 64 --mode twisted --flip --note 'R1 run' --alpha 0.5";

static void assert_refused(const char *expression, const char *sentence)
{
    struct fib_arena *arena = fib_arena_create();
    struct fib_error err = {0};
    const struct fib_only *only = NULL;
    assert_int_equal(fib_only_parse(expression, toy_registry(), arena, &only, &err), FIB_ERR_USAGE);
    assert_string_equal(err.text, sentence);
    fib_arena_free(&arena);
}

static void compares_numbers(void **state)
{
    (void)state;
    assert_true(keeps(line, "rows == 32"));
    assert_true(keeps(line, "rows==32.0"));
    assert_true(keeps(line, "rows < 33 and rows > 31"));
    assert_true(keeps(line, "rows <= 32 and rows >= 32"));
    assert_false(keeps(line, "rows != 32"));
    assert_false(keeps(line, "rows < 32"));
    assert_true(keeps(line, "64 >= cols"));
    assert_true(keeps(line, "alpha == 5e-1"));
    assert_true(keeps(line, "rows < cols"));
    assert_true(keeps(line, "random_seed == 42"));
    assert_true(keeps(line, "rows == '32'"));
    assert_false(keeps(line, "rows == abc"));
    assert_true(keeps(line, "rows =~ 3"));
}

static void compares_texts(void **state)
{
    (void)state;
    assert_true(keeps(line, "routine == blend"));
    assert_true(keeps(line, "routine =~ len"));
    assert_false(keeps(line, "routine =~ scale"));
    assert_true(keeps(line, "mode == TWISTED"));
    assert_true(keeps(line, "mode != plain"));
    assert_true(keeps(line, "input-dtype == bfloat16"));
    assert_true(keeps(line, "note == 'R1 run'"));
    assert_true(keeps(line, "note =~ \"r1\""));
    assert_true(keeps(line, "'cold' == cache"));
}

static void logic_and_precedence(void **state)
{
    (void)state;
    assert_true(keeps(line, "rows == 1 and cols == 1 or rows == 32"));
    assert_false(keeps(line, "rows == 1 and (cols == 1 or rows == 32)"));
    assert_true(keeps(line, "not rows == 1 and cols == 64"));
    assert_false(keeps(line, "not (rows == 1 or cols == 64)"));
    assert_true(keeps(line, "not not cols == 64"));
    assert_true(keeps(line, "((rows == 32))"));
}

static void names_alone(void **state)
{
    (void)state;
    assert_true(keeps(line, "flip"));
    assert_true(keeps(line, "not refcheck"));
    assert_true(keeps(line, "flip == true and refcheck == False"));
    assert_true(keeps(line, "keep"));
    assert_false(keeps("--routine blend --rows 1 --cols 8 --no_keep", "keep"));
    assert_true(keeps(line, "note"));
    assert_false(keeps(line, "depth"));
}

static void absent_and_unset_never_hold(void **state)
{
    (void)state;
    assert_false(keeps(line, "depth == 1"));
    assert_false(keeps(line, "depth != 1"));
    assert_false(keeps(line, "routing_method == a")); /* another family's */
    assert_true(keeps(line, "not routing_method == a"));
    assert_true(keeps("--routine absent", "routing_method == a"));
}

static void refuses(void **state)
{
    (void)state;
    assert_refused("", "--only needs an expression, e.g. \"batch_size >= 8\"");
    assert_refused("  ", "--only needs an expression, e.g. \"batch_size >= 8\"");
    assert_refused("rows = 3", "--only: one of == != < <= > >= =~ is expected at column 6");
    assert_refused("rows ==", "--only: a flag, number or text is expected at column 8");
    assert_refused("(rows == 3", "--only: a ) is missing at column 11");
    assert_refused("rows == 3 cols", "--only: `and`, `or` or the end is expected at column 11");
    assert_refused("rows == 3 and", "--only: a flag, number or text is expected at column 14");
    assert_refused("3", "--only: one of == != < <= > >= =~ is expected at column 2");
    assert_refused("3 == 4", "--only: a comparison needs a flag on one side; it ends at column 7");
    assert_refused("rws > 3", "--only: no routine has a flag rws; did you mean rows?");
    assert_refused("3 > rws", "--only: no routine has a flag rws; did you mean rows?");
    assert_refused("flp", "--only: no routine has a flag flp; did you mean flip?");
    assert_refused("mode < plain", "--only: mode is not a number; compare it with ==, != or =~");
    assert_refused("note == 'open", "--only: a flag, number or text is expected at column 9");
    assert_refused("rows == 3 $", "--only: `and`, `or` or the end is expected at column 11");
}

static void deep_and_long_expressions(void **state)
{
    (void)state;
    char deep[3001];
    memset(deep, '(', 3000);
    deep[3000] = '\0';
    assert_refused(deep, "--only: nested too deeply at column 65");
    struct fib_arena *arena = fib_arena_create();
    char *chain = fib_arena_alloc(arena, 12 * 20000 + 16);
    char *end = chain;
    for (int i = 0; i < 20000; i++)
        end = stpcpy(end, "rows==1 or ");
    stpcpy(end, "rows==32");
    assert_true(keeps(line, chain));
    fib_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_numbers),
        cmocka_unit_test(compares_texts),
        cmocka_unit_test(logic_and_precedence),
        cmocka_unit_test(names_alone),
        cmocka_unit_test(absent_and_unset_never_hold),
        cmocka_unit_test(refuses),
        cmocka_unit_test(deep_and_long_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
