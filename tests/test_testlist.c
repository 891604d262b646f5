/* Test lists: the file, its lines, quoting, and what may stand beside and inside a list. */
#include "tests/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/testlist.h"
#include "core/text.h"

static struct fib_plan *plan_bytes(const char *bytes, size_t length)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (fib_testlist_plan(toy_registry(), "t.txt", bytes, length, &plan, &err) != FIB_OK)
        fail_msg("%s", err.text);
    return plan;
}

static struct fib_plan *plan_text(const char *text)
{
    return plan_bytes(text, strlen(text));
}

/* The one line must become one bad item with this sentence. */
static void assert_bad_line(const char *line, const char *sentence)
{
    struct fib_plan *plan = plan_text(line);
    assert_int_equal(plan->count, 1);
    assert_int_equal(plan->bad_line_count, 1);
    assert_null(plan->items[0].kase);
    assert_string_equal(plan->items[0].error, sentence);
    assert_string_equal(plan->items[0].line_text, line);
    fib_plan_free(&plan);
}

/* A list on disk; `beside` are the other words. */
static enum fib_status plan_file(const char *text, const char *beside, struct fib_plan **plan,
                                 struct fib_error *err, char path[64])
{
    strcpy(path, "/tmp/fib_testlist_XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    struct fib_text line = {0};
    fib_text_addf(&line, "--testlist %s %s", path, beside);
    const enum fib_status st = toy_parse(fib_text_chars(&line), plan, err);
    fib_text_free(&line);
    unlink(path);
    return st;
}

static struct fib_plan *good_file(const char *text, const char *beside)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    char path[64];
    if (plan_file(text, beside, &plan, &err, path) != FIB_OK)
        fail_msg("%s", err.text);
    return plan;
}

static void assert_beside_fails(const char *beside, const char *sentence)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    char path[64];
    assert_int_equal(plan_file("--routine scale --rows 1 --cols 1\n", beside, &plan, &err, path),
                     FIB_ERR_USAGE);
    assert_string_equal(err.text, sentence);
}

/* ---- words ---- */

static void assert_words(const char *line, const char *expected)
{
    struct fib_arena *arena = fib_arena_create();
    const char *const *words = NULL;
    size_t count = 0;
    struct fib_error err = {0};
    if (fib_split_words(line, strlen(line), arena, &words, &count, &err) != FIB_OK)
        fail_msg("%s: %s", line, err.text);
    const char *joined = "";
    for (size_t i = 0; i < count; i++)
        joined = fib_arena_printf(arena, "%s[%s]", joined, words[i]);
    assert_string_equal(joined, expected);
    fib_arena_free(&arena);
}

static void assert_unsplittable(const char *line, size_t length, const char *sentence)
{
    struct fib_arena *arena = fib_arena_create();
    const char *const *words = NULL;
    size_t count = 0;
    struct fib_error err = {0};
    assert_int_equal(fib_split_words(line, length, arena, &words, &count, &err), FIB_ERR_USAGE);
    assert_string_equal(err.text, sentence);
    fib_arena_free(&arena);
}

static void splits_like_a_shell(void **state)
{
    (void)state;
    assert_words("", "");
    assert_words("  \t ", "");
    assert_words("a  b\tc\r", "[a][b][c]");
    assert_words("a'b c'd \"e  f\"", "[ab cd][e  f]");
    assert_words("'' \"\"", "[][]");
    assert_words("a\\ b \\\\ \\' \\\"", "[a b][\\]['][\"]");
    assert_words("\"a\\\"b\\\\c\\d\\$e\"", "[a\"b\\c\\d$e]");
    assert_words("'a\\b' '\"'", "[a\\b][\"]");
    assert_words("a\\\nb \"c\\\nd\" 'e\nf'", "[ab][cd][e\nf]");
    assert_words("a#b #c", "[a#b][#c]");
    assert_words("$HOME `x` *", "[$HOME][`x`][*]");
}

static void names_the_column(void **state)
{
    (void)state;
    assert_unsplittable("ab 'c", 5, "quote ' is not closed; it opens at column 4");
    assert_unsplittable("\"c\\\"", 4, "quote \" is not closed; it opens at column 1");
    assert_unsplittable("ab\\", 3, "nothing follows the backslash at column 3");
    assert_unsplittable("ab\0c", 4, "NUL byte at column 3");
}

/* ---- lines ---- */

static void case_54_failing_line_in_order(void **state)
{
    (void)state;
    struct fib_plan *plan =
        plan_text("# comment\r\n"
                  "\r\n"
                  "--routine scale --rows 1 --cols 2 --case_tag 'a b'\r\n"
                  "\t--routine scale --rows x\t--cols 4096\r\n"
                  "   # another\n"
                  "--routine nothing_here\n"
                  "--help\n"
                  "--routine scale --rows 3\t--cols 4"); /* no newline at the end */
    assert_int_equal(plan->count, 5);
    assert_int_equal(plan->bad_line_count, 3);
    assert_int_equal(plan->items[0].line, 3);
    assert_string_equal(toy_text(plan, 0, "case_tag"), "a b");
    assert_string_equal(plan->items[0].kase->source, "t.txt");
    assert_int_equal(plan->items[0].kase->line, 3);
    assert_string_equal(plan->items[0].line_text,
                        "--routine scale --rows 1 --cols 2 --case_tag 'a b'");
    assert_null(plan->items[1].kase);
    assert_string_equal(plan->items[1].error,
                        "t.txt:4: --rows x: must be an integer, 1 .. 1048576");
    assert_string_equal(plan->items[1].routine_name, "scale");
    assert_string_equal(plan->items[1].line_text, "--routine scale --rows x\t--cols 4096");
    assert_string_equal(plan->items[2].error,
                        "t.txt:6: unknown routine nothing_here; `fib-bench list` shows all");
    assert_string_equal(plan->items[2].routine_name, "nothing_here");
    assert_string_equal(plan->items[3].error, "t.txt:7: --help cannot stand inside a test list");
    assert_null(plan->items[3].routine_name);
    assert_int_equal(toy_params_of(plan, 4)->rows, 3);
    fib_plan_free(&plan);
}

static void bad_lines_are_explained(void **state)
{
    (void)state;
    assert_bad_line("--rows 1", "t.txt:1: --routine is missing; `fib-bench list` shows the "
                                "routines");
    assert_bad_line("--routine scale --rows 1 --cols 1 -h",
                    "t.txt:1: --help cannot stand inside a test list");
    assert_bad_line("--routine scale --rows 1 --cols 1 --testlist x",
                    "t.txt:1: --testlist cannot stand inside a test list");
    assert_bad_line("--routine scale --note 'x",
                    "t.txt:1: quote ' is not closed; it opens at column 24");
    assert_bad_line("--routine scale --rows 1", "t.txt:1: --cols is required for scale");
    assert_bad_line("--routine blend --rows 1 --cols 12",
                    "t.txt:1: --cols 12: must be a multiple of 8");
    assert_bad_line("--routine scale --rows 1 --cols 1 --backends fa9",
                    "t.txt:1: --backends: unknown backend fa9, nearest is fa2; `fib-bench list` "
                    "shows all");
    assert_bad_line("words", "t.txt:1: --routine is missing; `fib-bench list` shows the routines");
}

static void odd_bytes(void **state)
{
    (void)state;
    static const char bytes[] = "\xef\xbb\xbf--routine scale --rows 1 --cols 1\n"
                                "--routine scale --rows 1\0 --cols 1\n"
                                "\xff\xfe\x80\n"
                                "--routine scale --note caf\xc3\xa9 --rows 2 --cols 1\n";
    struct fib_plan *plan = plan_bytes(bytes, sizeof(bytes) - 1);
    assert_int_equal(plan->count, 4);
    assert_int_equal(toy_params_of(plan, 0)->rows, 1);
    assert_string_equal(plan->items[1].error, "t.txt:2: line holds a NUL byte");
    assert_non_null(plan->items[2].error);
    assert_string_equal(toy_params_of(plan, 3)->note, "caf\xc3\xa9");
    fib_plan_free(&plan);
}

static void long_lines(void **state)
{
    (void)state;
    const size_t size = FIB_TESTLIST_LINE_BYTES + 100;
    char *bytes = malloc(size);
    memset(bytes, 'a', size);
    static const char start[] = "--routine scale --rows 1 --cols 1 --note ";
    memcpy(bytes, start, sizeof(start) - 1);
    bytes[FIB_TESTLIST_LINE_BYTES] = '\n'; /* just fits */
    struct fib_plan *plan = plan_bytes(bytes, FIB_TESTLIST_LINE_BYTES + 1);
    assert_non_null(plan->items[0].kase);
    fib_plan_free(&plan);
    bytes[FIB_TESTLIST_LINE_BYTES] = 'a';
    plan = plan_bytes(bytes, size);
    assert_string_equal(plan->items[0].error, "t.txt:1: the line is longer than 1 MiB");
    assert_int_equal(strlen(plan->items[0].line_text), 256);
    fib_plan_free(&plan);
    free(bytes);
}

static void empty_lists_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# only\n  \n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < 4; i++) {
        struct fib_plan *plan = NULL;
        struct fib_error err = {0};
        assert_int_equal(
            fib_testlist_plan(toy_registry(), "t.txt", texts[i], strlen(texts[i]), &plan, &err),
            FIB_ERR_USAGE);
        assert_string_equal(err.text, "t.txt: the test list holds no line to run");
        assert_null(plan);
    }
}

static void swept_lines(void **state)
{
    (void)state;
    struct fib_plan *plan = plan_text("--routine scale --rows 1 --cols 1\n"
                                      "--routine blend --rows 1 --cols 8,12,13,16\n"
                                      "--routine scale --rows 2 --cols 1\n");
    assert_int_equal(plan->count, 6);
    assert_int_equal(plan->bad_line_count, 1); /* one line, two of its cases */
    assert_int_equal(toy_params_of(plan, 1)->cols, 8);
    assert_string_equal(plan->items[2].error, "t.txt:2: --cols 12: must be a multiple of 8");
    assert_string_equal(plan->items[3].error, "t.txt:2: --cols 13: must be a multiple of 8");
    assert_int_equal(toy_params_of(plan, 4)->cols, 16);
    assert_int_equal(plan->items[4].line, 2);
    assert_int_equal(toy_params_of(plan, 5)->rows, 2);
    fib_plan_free(&plan);
}

static void total_is_limited(void **state)
{
    (void)state;
    struct fib_plan *plan = plan_text("--routine scale --rows 1 --cols 1\n"
                                      "--routine scale --rows 1:100000 --cols 1\n");
    assert_int_equal(plan->count, 2);
    assert_string_equal(plan->items[1].error,
                        "t.txt:2: with this line the run has more than 100000 cases");
    fib_plan_free(&plan);
}

/* ---- beside a list ---- */

static void run_flags_inside_are_ignored(void **state)
{
    (void)state;
    struct fib_plan *plan =
        good_file("--routine scale --rows 1 --cols 1 --output_path mine.csv --force\n",
                  "--output_path run.csv --samples");
    assert_int_equal(plan->count, 1);
    assert_int_equal(plan->warning_count, 2);
    assert_contains(plan->warnings[0],
                    ":1: --output_path is ignored inside a test list; it belongs to the run");
    assert_contains(plan->warnings[1],
                    ":1: --force is ignored inside a test list; it belongs to the run");
    const struct fib_settings *settings = &plan->items[0].kase->settings;
    assert_string_equal(settings->output_path, "run.csv");
    assert_true(settings->samples);
    assert_false(settings->force);
    assert_string_equal(plan->settings.output_path, "run.csv");
    assert_null(plan->settings.routine);
    fib_plan_free(&plan);
}

static void shared_flags_are_defaults(void **state)
{
    (void)state;
    struct fib_plan *plan =
        good_file("--routine scale --rows 1 --cols 1\n"
                  "--routine scale --rows 1 --cols 1 -n 7 --cache cold --precise -v\n"
                  "--routine scale --rows 1 --cols 1 --use_cuda_events\n",
                  "--num_iters 3 --cache hot,cold --quick -vv --backends trtllm-gen-native "
                  "--timer wall");
    assert_int_equal(plan->count, 5);
    assert_int_equal(plan->warning_count, 1); /* of the run, once, not of every line */
    assert_string_equal(plan->warnings[0], "backend trtllm-gen-native is now called trtllm-native");
    const struct fib_settings *first = &plan->items[0].kase->settings;
    const struct fib_settings *line = &plan->items[2].kase->settings;
    const struct fib_settings *events = &plan->items[3].kase->settings;
    assert_int_equal(first->num_iters, 3);
    assert_string_equal(first->cache, "hot");
    assert_string_equal(plan->items[1].kase->settings.cache, "cold");
    assert_true(first->quick);
    assert_int_equal(first->verbose, 2);
    assert_string_equal(first->backends, "trtllm-native");
    assert_int_equal(line->num_iters, 7);
    assert_true(line->precise && !line->quick); /* the line's word replaces its opposite */
    assert_int_equal(line->verbose, 1);
    assert_true(events->use_cuda_events);
    assert_null(events->timer);
    assert_string_equal(line->timer, "wall");
    fib_plan_free(&plan);
}

static void model_and_zip_as_defaults(void **state)
{
    (void)state;
    struct fib_plan *plan = good_file("--routine scale --rows 1\n"
                                      "--routine absent\n",
                                      "--model tiny-1b");
    assert_int_equal(plan->count, 2);
    assert_int_equal(toy_params_of(plan, 0)->cols, 64);
    assert_contains(plan->items[1].error, ":2: --model tiny-1b: no shapes for absent");
    fib_plan_free(&plan);
    plan = good_file("--routine scale --rows 1,2 --cols 3,4\n", "--zip rows,cols");
    assert_int_equal(plan->count, 2);
    fib_plan_free(&plan);
}

static void only_applies_to_all_lines(void **state)
{
    (void)state;
    struct fib_plan *plan = good_file("--routine scale --rows 1 --cols 1\n"
                                      "--routine absent --rows 1\n"
                                      "--routine scale --rows 9 --cols x\n",
                                      "--only 'routine == absent'");
    assert_int_equal(plan->count, 2);
    assert_int_equal(plan->filtered_count, 1);
    assert_string_equal(plan->items[0].kase->routine->name, "absent");
    assert_non_null(plan->items[1].error); /* bad lines stay visible */
    fib_plan_free(&plan);
}

static void what_cannot_stand_beside_a_list(void **state)
{
    (void)state;
    assert_beside_fails("--rows 5", "--rows belongs to a routine and cannot stand beside "
                                    "--testlist");
    assert_beside_fails("--routing_method=a",
                        "--routing_method belongs to a routine and cannot stand beside --testlist");
    assert_beside_fails("--routine scale --rows 1 --cols 1",
                        "--routine belongs to a case and cannot stand beside --testlist");
    assert_beside_fails("--output_pth x", "unknown flag --output_pth for --testlist; did you mean "
                                          "--output_path?");
    assert_beside_fails("--random_seed x", "--random_seed x: must be an integer, >= 0");
    assert_beside_fails("--quick --precise", "--quick and --precise exclude each other");
    assert_beside_fails("--backends fa9", "--backends: unknown backend fa9, nearest is fa2; "
                                          "`fib-bench list` shows all");
    assert_beside_fails("--model zzz",
                        "--model zzz: unknown model; `fib-bench list --models` shows all");
    assert_beside_fails("--only 'rws == 1'",
                        "--only: no routine has a flag rws; did you mean rows?");
    assert_beside_fails("stray", "unexpected word 'stray'; flags start with --");
}

static void unreadable_lists(void **state)
{
    (void)state;
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    assert_int_equal(toy_parse("--testlist /nowhere/x.txt", &plan, &err), FIB_ERR_IO);
    assert_string_equal(err.text,
                        "cannot read test list /nowhere/x.txt: No such file or directory");
    err = (struct fib_error){0};
    assert_int_equal(toy_parse("--testlist /tmp", &plan, &err), FIB_ERR_IO);
    assert_string_equal(err.text, "cannot read test list /tmp: Is a directory");
    err = (struct fib_error){0};
    assert_int_equal(toy_parse("--testlist /dev/zero", &plan, &err), FIB_ERR_IO);
    assert_string_equal(err.text, "/dev/zero: a test list may have at most 64 MiB");
    toy_fails("--testlist", "--testlist needs a value: any text");
    toy_fails("--testlist ''", "--testlist '': the path of a file is needed");
}

/* The reference's own list parses without a bad line. */
static void sample_list_of_the_reference(void **state)
{
    (void)state;
    const char *root = getenv("FIB_SOURCE_ROOT");
    const char *shared = getenv("FIB_SHARED");
    struct fib_text line = {0};
    if (shared)
        fib_text_addf(&line, "--testlist %s/testlists/flashinfer_0.6.18_sample.txt", shared);
    else
        fib_text_addf(&line, "--testlist %s/../shared/testlists/flashinfer_0.6.18_sample.txt",
                      root ? root : ".");
    if (access(line.chars + strlen("--testlist "), R_OK) != 0) {
        print_message("skipped: %s is not there\n", line.chars + strlen("--testlist "));
        fib_text_free(&line);
        skip();
    }
    struct fib_plan *plan = test_plan(line.chars);
    fib_text_free(&line);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].error)
            fail_msg("%s", plan->items[i].error);
    assert_true(plan->count >= 139);
    fib_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_like_a_shell),
        cmocka_unit_test(names_the_column),
        cmocka_unit_test(case_54_failing_line_in_order),
        cmocka_unit_test(bad_lines_are_explained),
        cmocka_unit_test(odd_bytes),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(empty_lists_are_refused),
        cmocka_unit_test(swept_lines),
        cmocka_unit_test(total_is_limited),
        cmocka_unit_test(run_flags_inside_are_ignored),
        cmocka_unit_test(shared_flags_are_defaults),
        cmocka_unit_test(model_and_zip_as_defaults),
        cmocka_unit_test(only_applies_to_all_lines),
        cmocka_unit_test(what_cannot_stand_beside_a_list),
        cmocka_unit_test(unreadable_lists),
        cmocka_unit_test(sample_list_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
