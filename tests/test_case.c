/* Cases: repro commands that parse back, keys, titles. */
#include "tests/toy.h"

#include "core/text.h"

/* Quick helper: repro command of the first case. Free with fib_text_free(). */
static struct fib_text repro_of(const struct fib_plan *plan)
{
    struct fib_text text = {0};
    fib_case_repro(plan->items[0].kase, "fib-bench", &text);
    return text;
}

static void assert_repro(const char *line, const char *expected)
{
    struct fib_plan *plan = toy_plan(line);
    struct fib_text text = repro_of(plan);
    assert_string_equal(text.chars, expected);
    fib_text_free(&text);
    fib_plan_free(&plan);
}

static void assert_key(const char *line, char key[17])
{
    struct fib_plan *plan = toy_plan(line);
    fib_case_key(plan->items[0].kase, key);
    assert_int_equal(strlen(key), 16);
    assert_int_equal(strspn(key, "0123456789abcdef"), 16);
    fib_plan_free(&plan);
}

static void assert_same_key(const char *a, const char *b)
{
    char key_a[17], key_b[17];
    assert_key(a, key_a);
    assert_key(b, key_b);
    if (strcmp(key_a, key_b) != 0)
        fail_msg("keys differ: %s / %s", a, b);
}

static void assert_other_key(const char *a, const char *b)
{
    char key_a[17], key_b[17];
    assert_key(a, key_a);
    assert_key(b, key_b);
    if (strcmp(key_a, key_b) == 0)
        fail_msg("keys are equal: %s / %s", a, b);
}

static void values_by_name(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine scale --rows 5 --cols 6");
    const struct fib_case *kase = plan->items[0].kase;
    assert_int_equal(fib_case_value(kase, "rows")->i64, 5);
    assert_true(fib_case_value(kase, "rows")->given);
    assert_false(fib_case_value(kase, "mode")->given);
    assert_true(fib_case_value(kase, "mode")->set);
    assert_false(fib_case_value(kase, "depth")->set);
    assert_null(fib_case_value(kase, "routing_method"));
    const int alpha = fib_option_index(kase->options, "alpha");
    const int rows = fib_option_index(kase->options, "rows");
    assert_false(fib_case_uses(kase, &kase->options->rows[alpha]));
    assert_true(fib_case_uses(kase, &kase->options->rows[rows]));
    fib_plan_free(&plan);
}

static void repro_spells_what_was_given(void **state)
{
    (void)state;
    assert_repro("-R scale --cols=6 --row 05 -vv --no_keep --flip -n 3 --backends prims_ts,cpu",
                 "fib-bench --routine scale --num_iters 3 --verbose --verbose --backends prims-ts "
                 "cpu --rows 5 --cols 6 --flip --no_keep");
    assert_repro("--routine scale --rows 1 --cols 1 --parts -1 5 --names a b --note=-x --depth -3",
                 "fib-bench --routine scale --rows 1 --cols 1 --depth -3 --parts -1 5 --names a b "
                 "--note=-x");
    assert_repro("--routine scale --rows 1 --cols 1 --names=-a,b",
                 "fib-bench --routine scale --rows 1 --cols 1 --names=-a,b");
    assert_repro("--routine scale --rows 1 --cols 1 --output_path x.csv --plan --case_tag ''",
                 "fib-bench --routine scale --case_tag '' --rows 1 --cols 1");
    assert_repro("--routine scale --rows 7 --model pair-7b --zip rows",
                 "fib-bench --routine scale --rows 7 --cols 64 --depth 2");
    assert_repro("--routine scale --rows 4:8:*2 --cols 1 --keep",
                 "fib-bench --routine scale --rows 4 --cols 1 --keep");
}

/* The command, split as a shell would and parsed again, is the same case. */
static void assert_repro_repeats(const struct fib_registry *registry, const struct fib_case *kase)
{
    struct fib_arena *arena = fib_arena_create();
    struct fib_text text = {0}, again = {0};
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    const char *const *words = NULL;
    size_t count = 0;
    fib_case_repro(kase, "fib-bench", &text);
    assert_int_equal(fib_split_words(text.chars, text.length, arena, &words, &count, &err), FIB_OK);
    assert_string_equal(words[0], "fib-bench");
    if (fib_plan_parse(registry, count - 1, words + 1, &plan, &err) != FIB_OK)
        fail_msg("%s: %s", text.chars, err.text);
    assert_int_equal(plan->count, 1);
    char key[17], key_again[17];
    fib_case_key(kase, key);
    fib_case_key(plan->items[0].kase, key_again);
    assert_string_equal(key, key_again);
    fib_case_repro(plan->items[0].kase, "fib-bench", &again);
    assert_string_equal(text.chars, again.chars);
    fib_plan_free(&plan);
    fib_text_free(&text);
    fib_text_free(&again);
    fib_arena_free(&arena);
}

static void repro_round_trip(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--routine scale --rows 1:64:*2 --cols 1,3 --cache cold,hot --random_seed 7",
        "--routine blend --rows 1 --cols 8 --alpha 0:2:0.3 --mode plain,twisted",
        "--routine deep --rows 1 --model pair-7b --input_dtype float16,float32",
        "--routine blend --rows 1 --cols 64 --no-keep --flip --parts -1,-2 --names a,b",
        "--routine scale --rows 1 --cols 1 --budget_ms 12.5 --timer isolated --enable_pdl -vvv",
        "--routine scale --rows 1 --cols 1 --also none --backends cpu cuda --no_check --quick",
        "--routine absent --rows 1,2,3 --routing_method b",
        "--routine scale --rows 1 --cols 1 --note 'it'\\''s \"1, 2\" $x \\y' --note=--rows",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct fib_plan *plan = toy_plan(lines[i]);
        for (size_t j = 0; j < plan->count; j++)
            assert_repro_repeats(toy_registry(), plan->items[j].kase);
        fib_plan_free(&plan);
    }
}

static void repro_round_trip_real(void **state)
{
    (void)state;
    struct fib_plan *plan = test_plan("--routine rmsnorm --batch_size 1,32 --hidden_size 4096,8192 "
                                      "--input_dtype bfloat16,float16 "
                                      "--eps 1e-5 --case_tag 'a,b' --backends cpu --refcheck");
    assert_int_equal(plan->count, 8);
    for (size_t i = 0; i < plan->count; i++)
        assert_repro_repeats(test_registry(), plan->items[i].kase);
    fib_plan_free(&plan);
}

static void case_56_repro_quoting(void **state)
{
    (void)state;
    static const char *const tags[] = {
        "R1, \"causal\" run",
        "it's",
        "two\nlines",
        "tab\there",
        "\xc3\xa9\xe2\x82\xac \xf0\x9f\x9a\x80",
        "",
        " lead",
        "-5",
        "--rows",
        "$(rm) `x` \\ * ? ~ #!",
    };
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        struct fib_arena *arena = fib_arena_create();
        const char *tied = fib_arena_printf(arena, "--case_tag=%s", tags[i]);
        const char *const given[] = {"--routine", "scale", "--rows", "1", "--cols", "1", tied};
        struct fib_plan *plan = NULL;
        struct fib_error err = {0};
        assert_int_equal(fib_plan_parse(toy_registry(), 7, given, &plan, &err), FIB_OK);
        assert_string_equal(plan->items[0].kase->settings.case_tag, tags[i]);
        struct fib_text text = repro_of(plan);
        const char *const *words = NULL;
        size_t count = 0;
        assert_int_equal(fib_split_words(text.chars, text.length, arena, &words, &count, &err),
                         FIB_OK);
        struct fib_plan *again = NULL;
        assert_int_equal(fib_plan_parse(toy_registry(), count - 1, words + 1, &again, &err),
                         FIB_OK);
        assert_string_equal(again->items[0].kase->settings.case_tag, tags[i]);
        fib_text_free(&text);
        fib_plan_free(&again);
        fib_plan_free(&plan);
        fib_arena_free(&arena);
    }
}

#define BASE "--routine blend --rows 2 --cols 8 "

static void key_ignores_spelling(void **state)
{
    (void)state;
    assert_same_key(BASE, "-R=blend --col 008 --row=2");
    assert_same_key(BASE, BASE "--mode PLAIN --alpha 0.000001 --keep --random_seed 42");
    assert_same_key(BASE, BASE "--cache cold --backends cpu --case_tag x -v --refcheck -n 5 -d 2");
    assert_same_key(BASE, BASE "--output_path x --quick --timeout_s 5 --also cuda --no_check");
    assert_same_key(BASE "--timer events", BASE "--use_cuda_events");
    assert_same_key("--routine scale --rows 2 --cols 8",
                    "--routine scale --rows 2 --cols 8 --alpha 1"); /* not read by scale */
    assert_same_key("--routine scale --rows 2 --model tiny-1b",
                    "--routine scale --rows 2 --cols 64");
}

static void key_tells_cases_apart(void **state)
{
    (void)state;
    static const char *const lines[] = {
        BASE,
        BASE "--rows 3",
        BASE "--cols 16",
        "--routine scale --rows 2 --cols 8",
        "--routine blend --rows 8 --cols 16",
        BASE "--alpha 1",
        BASE "--flip",
        BASE "--no_keep",
        BASE "--depth 0",
        BASE "--random_seed 43",
        BASE "--cache hot",
        BASE "--timer wall",
        BASE "--timer events",
        BASE "--init ints",
        BASE "--power_mode sustained",
        BASE "--enable_pdl",
        BASE "--no_cuda_graph",
        BASE "--note a",
        BASE "--names a",
        "--routine blend --rows 16 --cols 8",
    };
    const size_t count = sizeof(lines) / sizeof(lines[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            assert_other_key(lines[i], lines[j]);
}

static void titles(void **state)
{
    (void)state;
    static const struct {
        const char *line, *title;
    } rows[] = {
        {BASE, "blend rows=2 cols=8"},
        {BASE "--mode twisted --alpha 1 --flip --no_keep -v --cache hot",
         "blend rows=2 cols=8 alpha=1.0 mode=Twisted flip no keep"},
        {"--routine scale --rows 2 --cols 8 --alpha 1", "scale rows=2 cols=8"},
        {"--routine absent", "absent"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fib_plan *plan = toy_plan(rows[i].line);
        struct fib_text text = {0};
        fib_case_title(plan->items[0].kase, &text);
        assert_string_equal(text.chars, rows[i].title);
        fib_text_free(&text);
        fib_plan_free(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_by_name),        cmocka_unit_test(repro_spells_what_was_given),
        cmocka_unit_test(repro_round_trip),      cmocka_unit_test(repro_round_trip_real),
        cmocka_unit_test(case_56_repro_quoting), cmocka_unit_test(key_ignores_spelling),
        cmocka_unit_test(key_tells_cases_apart), cmocka_unit_test(titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
