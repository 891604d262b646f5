/* Texts made from the tables: they name everything, fit the screen, and the committed page is the
 * one that the tables make. FIB_UPDATE_DOCS=1 rewrites docs/options.md. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/help.h"
#include "core/help_rows.h"
#include "core/memory.h"
#include "core/text.h"

static void measure(const char *text, size_t *line_count, size_t *longest)
{
    *line_count = 0;
    *longest = 0;
    while (*text) {
        const size_t length = strcspn(text, "\n");
        if (length > *longest)
            *longest = length;
        (*line_count)++;
        text += length + (text[length] == '\n');
    }
}

static void test_global_help_fits_a_screen(void **state)
{
    (void)state;
    struct fib_text text = {0};
    fib_help_global(test_registry(), &text);
    size_t line_count, longest;
    measure(fib_text_chars(&text), &line_count, &longest);
    assert_true(line_count <= 60);
    assert_true(longest <= 100);
    assert_contains(fib_text_chars(&text), "fib-bench --testlist F");
    assert_contains(fib_text_chars(&text), "fib-bench describe R");
    assert_contains(fib_text_chars(&text), "--num_iters, -n N");
    assert_contains(fib_text_chars(&text), "cold | hot | both [cold]");
    for (const struct fib_option *row = fib_shared_options; row->name; row++) {
        struct fib_text flag = {0};
        fib_text_addf(&flag, "--%s", row->name);
        if (strcmp(row->name, "repro_command") != 0)
            assert_contains(fib_text_chars(&text), fib_text_chars(&flag));
        fib_text_free(&flag);
    }
    fib_text_free(&text);
}

static void test_every_routine_is_described(void **state)
{
    (void)state;
    const struct fib_registry *registry = test_registry();
    size_t count = 0;
    for (size_t f = 0; f < registry->family_count; f++) {
        const struct fib_family *family = registry->families[f];
        assert_true(family->summary && *family->summary);
        for (size_t i = 0; i < family->routine_count; i++, count++) {
            const struct fib_routine *routine = &family->routines[i];
            assert_true(routine->summary && *routine->summary);
            assert_string_equal(routine->family, family->name);
            assert_ptr_equal(fib_registry_routine(registry, routine->name), routine);
        }
    }
    /* the reference has 4 + 4 + 11 + 8 + 1 + 1 + 1 + 12 + 4 + 15 + 1 + 8 + 1 + 3 + 1 */
    assert_true(count >= 75);
}

static void test_routine_texts_fit_the_screen(void **state)
{
    (void)state;
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(test_registry(), n)); n++) {
        struct fib_text text = {0};
        size_t line_count, longest;
        fib_help_routine(test_registry(), routine, &text);
        fib_help_describe(test_registry(), routine, &text);
        measure(fib_text_chars(&text), &line_count, &longest);
        if (longest > 100)
            fail_msg("%s: a line of %zu columns", routine->name, longest);
        assert_contains(fib_text_chars(&text), "\nFlags\n");
        assert_contains(fib_text_chars(&text), "\nBackends\n");
        fib_text_free(&text);
    }
}

static void test_describe_of_a_built_routine(void **state)
{
    (void)state;
    struct fib_text text = {0};
    fib_help_describe(test_registry(), fib_registry_routine(test_registry(), "rmsnorm"), &text);
    assert_contains(fib_text_chars(&text), "rmsnorm  (norm)");
    assert_contains(fib_text_chars(&text), "\nTensors\n");
    assert_contains(fib_text_chars(&text), "\nCost\n");
    assert_contains(fib_text_chars(&text), "float64");
    assert_contains(fib_text_chars(&text), "--hidden_size N");
    assert_contains(fib_text_chars(&text), "(required; 1 .. ");
    assert_contains(fib_text_chars(&text), "accepted without effect: --scale");
    assert_contains(fib_text_chars(&text), "cpu         runs here");
    assert_contains(fib_text_chars(&text), "\n  cuda        ");
    fib_text_free(&text);
}

static void test_describe_of_a_planned_routine(void **state)
{
    (void)state;
    struct fib_text text = {0};
    fib_help_describe(test_registry(),
                      fib_registry_routine(test_registry(), "selective_state_update"), &text);
    assert_contains(fib_text_chars(&text), "not implemented in this version");
    assert_contains(fib_text_chars(&text), "(bfloat16 | float16 | float32; default bfloat16)");
    assert_contains(fib_text_chars(&text), "cuda        not built");
    assert_null(strstr(fib_text_chars(&text), "runs here"));
    fib_text_free(&text);
}

static void test_routine_help_shows_what_is_required(void **state)
{
    (void)state;
    struct fib_text text = {0};
    fib_help_routine(test_registry(), fib_registry_routine(test_registry(), "gated_delta_rule_mtp"),
                     &text);
    assert_contains(fib_text_chars(&text),
                    "fib-bench --routine gated_delta_rule_mtp --batch_size N [flags]");
    assert_contains(fib_text_chars(&text), "default 2)");
    assert_contains(fib_text_chars(&text), "accepted without effect: --s_qo");
    fib_text_clear(&text);
    fib_help_routine(test_registry(), fib_registry_routine(test_registry(), "MSAProxyScore"),
                     &text);
    assert_contains(fib_text_chars(&text), "--causal, --no_causal");
    assert_contains(fib_text_chars(&text), "(default on)");
    fib_text_free(&text);
}

static void test_list(void **state)
{
    (void)state;
    struct fib_error err = {0};
    struct fib_text text = {0};
    assert_int_equal(fib_help_list(test_registry(), NULL, false, &text, &err), FIB_OK);
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(test_registry(), n)); n++)
        assert_contains(fib_text_chars(&text), routine->name);
    assert_contains(fib_text_chars(&text), "apply_rope                                not built");
    assert_contains(fib_text_chars(&text), "rmsnorm                                   cpu");
    fib_text_clear(&text);
    assert_int_equal(fib_help_list(test_registry(), "mamba", false, &text, &err), FIB_OK);
    assert_string_equal(fib_text_chars(&text),
                        "mamba: selective state-space update\n"
                        "  selective_state_update                    not built\n");
    fib_text_free(&text);
}

static void test_list_of_unknown_family(void **state)
{
    (void)state;
    struct fib_error err = {0};
    struct fib_text text = {0};
    assert_int_equal(fib_help_list(test_registry(), "nrom", false, &text, &err), FIB_ERR_USAGE);
    assert_string_equal(err.text, "--family nrom: unknown; did you mean norm?");
    err = (struct fib_error){0};
    assert_int_equal(fib_help_list(test_registry(), "zzzzzzzzzz", false, &text, &err),
                     FIB_ERR_USAGE);
    assert_contains(err.text, "--family zzzzzzzzzz: unknown; there are attention sparse_attention");
    assert_string_equal(fib_text_chars(&text), "");
    fib_text_free(&text);
}

static void test_markdown_list(void **state)
{
    (void)state;
    struct fib_error err = {0};
    struct fib_text text = {0};
    assert_int_equal(fib_help_list(test_registry(), NULL, true, &text, &err), FIB_OK);
    assert_contains(fib_text_chars(&text), "| Family | Routine | Backends |\n|---|---|---|\n");
    assert_contains(fib_text_chars(&text), "| mamba | `selective_state_update` | planned |\n");
    assert_contains(fib_text_chars(&text), "| norm | `rmsnorm` | cpu");
    fib_text_free(&text);
}

static void test_models(void **state)
{
    (void)state;
    struct fib_text text = {0};
    fib_help_models(test_registry(), &text);
    assert_contains(fib_text_chars(&text), "llama-3.1-8b: meta-llama/Llama-3.1-8B config.json\n"
                                           "  norm            --hidden_size 4096\n");
    size_t line_count, longest;
    measure(fib_text_chars(&text), &line_count, &longest);
    assert_true(longest <= 100);
    fib_text_free(&text);
}

static void test_wrap(void **state)
{
    (void)state;
    struct fib_text text = {0};
    fib_text_add(&text, "name");
    fib_help_wrap(&text, 8, "a b");
    assert_string_equal(fib_text_chars(&text), "name    a b\n");
    fib_text_clear(&text);
    char word[61];
    memset(word, 'w', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    struct fib_text two = {0};
    fib_text_addf(&two, "%s %s", word, word);
    fib_help_wrap(&text, 2, fib_text_chars(&two));
    size_t line_count, longest;
    measure(fib_text_chars(&text), &line_count, &longest);
    assert_int_equal(line_count, 2);
    assert_int_equal(longest, 62);
    fib_text_free(&two);
    fib_text_free(&text);
}

/* Whole file, or NULL. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    struct fib_text text = {0};
    char block[4096];
    size_t got;
    while ((got = fread(block, 1, sizeof(block), file)) > 0)
        fib_text_add_n(&text, block, got);
    fclose(file);
    char *copy = fib_strdup(fib_text_chars(&text));
    fib_text_free(&text);
    return copy;
}

static void write_file(const char *path, const char *chars)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(chars, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_options_page_is_committed(void **state)
{
    (void)state;
    const char *root = getenv("FIB_SOURCE_ROOT");
    if (!root) {
        print_message("[  SKIP   ] FIB_SOURCE_ROOT is not set\n");
        skip();
    }
    struct fib_text path = {0}, page = {0};
    fib_text_addf(&path, "%s/docs/options.md", root);
    fib_help_options_page(test_registry(), &page);
    if (getenv("FIB_UPDATE_DOCS"))
        write_file(fib_text_chars(&path), fib_text_chars(&page));
    char *committed = read_file(fib_text_chars(&path));
    if (!committed || strcmp(committed, fib_text_chars(&page)) != 0)
        fail_msg("%s is not what the tables make; run `fib-bench list --flags > docs/options.md`",
                 fib_text_chars(&path));
    free(committed);
    fib_text_free(&path);
    fib_text_free(&page);
}

static void test_options_page_tables(void **state)
{
    (void)state;
    struct fib_text page = {0};
    fib_help_options_page(test_registry(), &page);
    const char *chars = fib_text_chars(&page);
    assert_contains(chars, "| `--num_iters`, `-n` | integer | unset | 1 .. ");
    assert_contains(chars, "| `--causal`, `--no_causal` | switch | on |");
    assert_contains(chars, "| `--cache` | choice | cold | cold, hot, both | ours |");
    assert_contains(chars, "| `--seq_len` | integer | unset; 2 for `gated_delta_rule_mtp` |");
    assert_contains(chars, "| `--num_kv_heads` | integer | required | 1 .. 65536 | all but "
                           "`BatchMLAPagedAttentionWrapper` |");
    assert_contains(chars, "| `--local_bs_list` | integers | required | 1 .. ");
    assert_contains(chars, "| `trtllm-gen-native` | old name of trtllm-native, with a warning |");
    fib_text_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_help_fits_a_screen),
        cmocka_unit_test(test_every_routine_is_described),
        cmocka_unit_test(test_routine_texts_fit_the_screen),
        cmocka_unit_test(test_describe_of_a_built_routine),
        cmocka_unit_test(test_describe_of_a_planned_routine),
        cmocka_unit_test(test_routine_help_shows_what_is_required),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_of_unknown_family),
        cmocka_unit_test(test_markdown_list),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_options_page_is_committed),
        cmocka_unit_test(test_options_page_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
