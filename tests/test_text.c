/* Numbers to and from text, quoting, padding, word lists. */
#include "tests/support.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

static void expect_f64(double value, const char *wanted)
{
    struct fib_text text = {0};
    fib_text_add_f64(&text, value);
    assert_string_equal(fib_text_chars(&text), wanted);
    fib_text_free(&text);
}

static void test_shortest_numbers(void **state)
{
    (void)state;
    expect_f64(1.0, "1.0");
    expect_f64(0.1, "0.1");
    expect_f64(-2.5, "-2.5");
    expect_f64(1e-6, "1e-06");
    expect_f64(1.5e-7, "1.5e-07");
    expect_f64(0.0001, "0.0001");
    expect_f64(0.0034567, "0.0034567");
    expect_f64(1e15, "1000000000000000.0");
    expect_f64(1e16, "1e+16");
    expect_f64(1.0 / 3.0, "0.3333333333333333");
    expect_f64(0.1 + 0.2, "0.30000000000000004");
    expect_f64(123456.789, "123456.789");
    expect_f64(5e-324, "5e-324");
    expect_f64(1.7976931348623157e308, "1.7976931348623157e+308");
    expect_f64(0.0, "0.0");
    expect_f64(-0.0, "-0.0");
    expect_f64(INFINITY, "inf");
    expect_f64(-INFINITY, "-inf");
    expect_f64(NAN, "nan");
}

static void test_numbers_survive_the_trip(void **state)
{
    (void)state;
    uint64_t bits = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double value, back = 0.0;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        struct fib_text text = {0};
        fib_text_add_f64(&text, value);
        assert_true(fib_parse_f64(text.chars, &back));
        assert_memory_equal(&value, &back, sizeof(value));
        fib_text_free(&text);
    }
}

static void test_locale_is_ignored(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
        found = setlocale(LC_ALL, names[i]);
    if (!found) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    double value = 0.0;
    struct fib_text text = {0};
    fib_text_addf(&text, "%.2f", 1.25);
    assert_string_equal(text.chars, "1.25");
    expect_f64(0.0034567, "0.0034567");
    assert_true(fib_parse_f64("2.5", &value));
    assert_true(value == 2.5);
    assert_false(fib_parse_f64("2,5", &value));
    setlocale(LC_ALL, "C");
    fib_text_free(&text);
}

static void test_parse_i64(void **state)
{
    (void)state;
    int64_t value = 77;
    assert_true(fib_parse_i64("-12", &value));
    assert_int_equal(value, -12);
    assert_true(fib_parse_i64("+5", &value));
    assert_int_equal(value, 5);
    assert_true(fib_parse_i64("-9223372036854775808", &value));
    assert_true(value == INT64_MIN);
    value = 77;
    static const char *const bad[] = {"",    "-",    " 1",  "1 ",  "1e3",
                                      "1.0", "0x10", "--1", "1_0", "9223372036854775808"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(fib_parse_i64(bad[i], &value));
    assert_int_equal(value, 77);
}

static void test_parse_f64(void **state)
{
    (void)state;
    double value = 77.0;
    assert_true(fib_parse_f64("1e-6", &value));
    assert_true(value == 1e-6);
    assert_true(fib_parse_f64(".5", &value));
    assert_true(value == 0.5);
    assert_true(fib_parse_f64("-3.", &value));
    assert_true(value == -3.0);
    assert_true(fib_parse_f64("-inf", &value));
    assert_true(isinf(value));
    assert_true(fib_parse_f64("NaN", &value));
    assert_true(isnan(value));
    assert_true(fib_parse_f64("1e-999", &value));
    assert_true(value == 0.0);
    value = 77.0;
    static const char *const bad[] = {"",   ".",     " 1",  "1 ", "1e",     "1e+", "0x1p3",  "0x10",
                                      "1f", "1e999", "1,5", "e5", "nan(1)", "+-1", "infinit"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(fib_parse_f64(bad[i], &value));
    assert_true(value == 77.0);
}

static void expect_added(void (*add)(struct fib_text *, const char *), const char *given,
                         const char *wanted)
{
    struct fib_text text = {0};
    add(&text, given);
    assert_string_equal(fib_text_chars(&text), wanted);
    fib_text_free(&text);
}

static void test_shell_words(void **state)
{
    (void)state;
    expect_added(fib_text_add_shell_word, "bfloat16", "bfloat16");
    expect_added(fib_text_add_shell_word, "", "''");
    expect_added(fib_text_add_shell_word, "R1, \"causal\" run", "'R1, \"causal\" run'");
    expect_added(fib_text_add_shell_word, "it's", "'it'\\''s'");
    expect_added(fib_text_add_shell_word, "a\nb", "'a\nb'");
    expect_added(fib_text_add_shell_word, "$HOME", "'$HOME'");
    expect_added(fib_text_add_shell_word, "a*b", "'a*b'");
}

static void test_csv_cells(void **state)
{
    (void)state;
    expect_added(fib_text_add_csv_cell, "plain text", "plain text");
    expect_added(fib_text_add_csv_cell, "", "");
    expect_added(fib_text_add_csv_cell, "R1, \"causal\" run", "\"R1, \"\"causal\"\" run\"");
    expect_added(fib_text_add_csv_cell, "a\r\nb", "\"a\r\nb\"");
    expect_added(fib_text_add_csv_cell, " lead", "\" lead\"");
    expect_added(fib_text_add_csv_cell, "trail ", "\"trail \"");
}

static void test_growing_and_padding(void **state)
{
    (void)state;
    struct fib_text text = {0};
    assert_string_equal(fib_text_chars(&text), "");
    fib_text_clear(&text);
    fib_text_add(&text, "first\n\xc3\xa9");
    fib_text_pad(&text, 4);
    fib_text_add_char(&text, '|');
    fib_text_pad(&text, 2);
    assert_string_equal(text.chars, "first\n\xc3\xa9   |");
    for (int i = 0; i < 1000; i++)
        fib_text_addf(&text, "%d,", i);
    assert_int_equal(text.length, strlen(text.chars));
    assert_true(text.length < text.capacity);
    fib_text_clear(&text);
    fib_text_addf(&text, "%s", "");
    assert_string_equal(text.chars, "");
    fib_text_free(&text);
    assert_null(text.chars);
}

static void test_edit_distance(void **state)
{
    (void)state;
    assert_int_equal(fib_edit_distance("", ""), 0);
    assert_int_equal(fib_edit_distance("", "abc"), 3);
    assert_int_equal(fib_edit_distance("hiden_size", "hidden_size"), 1);
    assert_int_equal(fib_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(fib_edit_distance("bacth", "batch"), 1);
    assert_int_equal(fib_edit_distance("ca", "abc"), 3);
    char longer[4096];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(fib_edit_distance(longer, "m"), 4095);
}

static void test_word_lists(void **state)
{
    (void)state;
    assert_true(fib_words_contain("fa2 fa2_tc cudnn", "fa2_tc"));
    assert_true(fib_words_contain("fa2", "fa2"));
    assert_false(fib_words_contain("fa2_tc cudnn", "fa2"));
    assert_false(fib_words_contain(NULL, "fa2"));
    assert_false(fib_words_contain("", "fa2"));
    size_t length = 0;
    const char *word = fib_words_next("  one two", &length);
    assert_int_equal(length, 3);
    assert_memory_equal(word, "one", 3);
    word = fib_words_next(word + length, &length);
    assert_memory_equal(word, "two", 3);
    assert_null(fib_words_next(word + length, &length));
    assert_null(fib_words_next(NULL, &length));
}

static void expect_duration(double time_ms, int digits, const char *wanted)
{
    struct fib_text text = {0};
    fib_text_add_duration(&text, time_ms, digits);
    assert_string_equal(text.chars, wanted);
    fib_text_free(&text);
}

static void test_durations(void **state)
{
    (void)state;
    expect_duration(0.01831, 4, "18.31 us");
    expect_duration(0.0034567, 3, "3.46 us");
    expect_duration(1.5e-5, 2, "15 ns");
    expect_duration(12.0, 3, "12.0 ms");
    expect_duration(0.99996, 4, "1.000 ms");
    expect_duration(0.9994, 3, "999 us");
    expect_duration(61000.0, 3, "61.0 s");
    expect_duration(1234567.0, 3, "1235 s");
    expect_duration(NAN, 3, "-");
}

static void expect_bytes(double bytes, const char *wanted)
{
    struct fib_text text = {0};
    fib_text_add_bytes(&text, bytes);
    assert_string_equal(text.chars, wanted);
    fib_text_free(&text);
}

static void test_bytes(void **state)
{
    (void)state;
    expect_bytes(0, "0 B");
    expect_bytes(512, "512 B");
    expect_bytes(1536, "1.5 KiB");
    expect_bytes(64.0 * 1024 * 1024, "64 MiB");
    expect_bytes(1.5 * 1024 * 1024 * 1024, "1.5 GiB");
    expect_bytes(1023.9 * 1024, "1 MiB");
    expect_bytes(NAN, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortest_numbers),  cmocka_unit_test(test_numbers_survive_the_trip),
        cmocka_unit_test(test_locale_is_ignored), cmocka_unit_test(test_parse_i64),
        cmocka_unit_test(test_parse_f64),         cmocka_unit_test(test_shell_words),
        cmocka_unit_test(test_csv_cells),         cmocka_unit_test(test_growing_and_padding),
        cmocka_unit_test(test_edit_distance),     cmocka_unit_test(test_word_lists),
        cmocka_unit_test(test_durations),         cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
