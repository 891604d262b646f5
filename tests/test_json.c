/* JSON: building, reading, printing, strict parsing. */
#include "tests/support.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"

static struct fib_json *parse(const char *chars)
{
    struct fib_error err = {0};
    struct fib_json *value = fib_json_parse(chars, strlen(chars), &err);
    if (!value)
        fail_msg("%s: %s", chars, err.text);
    return value;
}

static void expect_print(const struct fib_json *value, const char *wanted)
{
    char *chars = fib_json_print(value, false);
    assert_string_equal(chars, wanted);
    free(chars);
}

static void expect_error_n(const char *chars, size_t length, const char *wanted)
{
    struct fib_error err = {0};
    struct fib_json *value = fib_json_parse(chars, length, &err);
    assert_null(value);
    assert_int_equal(err.status, FIB_ERR_USAGE);
    assert_string_equal(err.text, wanted);
}

static void expect_error(const char *chars, const char *wanted)
{
    expect_error_n(chars, strlen(chars), wanted);
}

static void test_setters_replace_in_place(void **state)
{
    (void)state;
    struct fib_json *object = fib_json_object();
    fib_json_set_text(object, "a", "x");
    fib_json_set_i64(object, "b", 2);
    fib_json_set_bool(object, "c", true);
    fib_json_set_f64(object, "a", 0.5);
    fib_json_set_null(object, "c");
    fib_json_set_text(object, "d", NULL);
    expect_print(object, "{\"a\":0.5,\"b\":2,\"c\":null,\"d\":null}");
    assert_int_equal(fib_json_count(object), 4);
    assert_string_equal(fib_json_name_at(object, 1), "b");
    assert_null(fib_json_name_at(object, 4));
    fib_json_free(&object);
    assert_null(object);
    fib_json_free(&object);
}

static void test_names_differ_by_case(void **state)
{
    (void)state;
    struct fib_json *object = fib_json_object();
    fib_json_set_i64(object, "m", 1);
    fib_json_set_i64(object, "M", 2);
    expect_print(object, "{\"m\":1,\"M\":2}");
    fib_json_free(&object);
}

static void test_numbers(void **state)
{
    (void)state;
    struct fib_json *array = fib_json_array();
    static const double numbers[] = {0,    2147483648.0, 1e15,     9007199254740992.0,
                                     -5,   0.1,          1e-6,     0.0034567,
                                     1e16, NAN,          INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        fib_json_add_f64(array, numbers[i]);
    expect_print(array, "[0,2147483648,1000000000000000,9007199254740992,-5,0.1,1e-06,0.0034567,"
                        "1e+16,null,null,null]");
    char *chars = fib_json_print(array, false);
    struct fib_json *back = parse(chars);
    assert_true(fib_json_f64(fib_json_at(back, 7), "") == 0.0034567);
    assert_true(fib_json_f64(fib_json_at(back, 3), "") == 9007199254740992.0);
    free(chars);
    fib_json_free(&back);
    fib_json_free(&array);
}

static void test_texts(void **state)
{
    (void)state;
    struct fib_json *object = fib_json_object();
    fib_json_set_text(object, "quote", "a\"b\\c\n\t\x01/");
    fib_json_set_text(object, "utf8", "\xc3\xa9\xf0\x9f\x98\x80");
    fib_json_set_text(object, "bad", "x\xff\xc3y\xed\xa0\x80");
    expect_print(object, "{\"quote\":\"a\\\"b\\\\c\\n\\t\\u0001/\","
                         "\"utf8\":\"\xc3\xa9\xf0\x9f\x98\x80\","
                         "\"bad\":\"x\xef\xbf\xbd\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                         "\"}");
    char *chars = fib_json_print(object, false);
    struct fib_json *back = parse(chars);
    assert_string_equal(fib_json_text(back, "quote"), "a\"b\\c\n\t\x01/");
    free(chars);
    fib_json_free(&back);
    fib_json_free(&object);
}

static void test_paths(void **state)
{
    (void)state;
    struct fib_json *value =
        parse("{\"time\":{\"median\":3,\"unit\":\"ps\"},\"ok\":true,\"none\":null,\"l\":[1,2]}");
    assert_true(fib_json_f64(value, "time.median") == 3.0);
    assert_string_equal(fib_json_text(value, "time.unit"), "ps");
    assert_null(fib_json_text(value, "time.median"));
    assert_null(fib_json_get(value, "time.median.x"));
    assert_null(fib_json_get(value, "tim"));
    assert_true(isnan(fib_json_f64(value, "time.unit")));
    assert_true(isnan(fib_json_f64(NULL, "a")));
    assert_true(fib_json_bool(value, "ok"));
    assert_false(fib_json_bool(value, "missing"));
    assert_true(fib_json_is_bool(fib_json_get(value, "ok")));
    assert_true(fib_json_is_null(fib_json_get(value, "none")));
    assert_true(fib_json_is_null(NULL));
    assert_false(fib_json_is_text(NULL));
    assert_false(fib_json_is_number(NULL));
    assert_int_equal(fib_json_count(fib_json_get(value, "l")), 2);
    assert_int_equal(fib_json_count(fib_json_get(value, "ok")), 0);
    assert_ptr_equal(fib_json_get(value, ""), value);
    struct fib_json *copy = fib_json_clone(fib_json_get(value, "time"));
    fib_json_free(&value);
    expect_print(copy, "{\"median\":3,\"unit\":\"ps\"}");
    fib_json_free(&copy);
}

static void test_indented(void **state)
{
    (void)state;
    struct fib_json *value = parse("{\"a\":[1,{}],\"b\":[]}");
    char *chars = fib_json_print(value, true);
    assert_string_equal(chars, "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    free(chars);
    fib_json_free(&value);
}

static void test_errors_name_the_place(void **state)
{
    (void)state;
    expect_error("", "not valid JSON: unexpected end at byte 0");
    expect_error("{} x", "not valid JSON: text after the value at byte 2");
    expect_error("{}{}", "not valid JSON: text after the value at byte 2");
    expect_error("[1,]", "not valid JSON: unexpected text at byte 3");
    expect_error("nul", "not valid JSON: unexpected text at byte 0");
    expect_error("[NaN]", "not valid JSON: unexpected text at byte 1");
    expect_error("[01]", "not valid JSON: a malformed number at byte 3");
    expect_error("[1.]", "not valid JSON: a malformed number at byte 3");
    expect_error("[1e]", "not valid JSON: a malformed number at byte 3");
    expect_error("{\"a\":\"b", "not valid JSON: a text that does not end at byte 5");
    expect_error("\"a\nb\"", "not valid JSON: a control character in a text at byte 2");
    expect_error("\"a\xff\"", "not valid JSON: invalid UTF-8 at byte 2");
    expect_error("\"\\u0000\"", "not valid JSON: the character U+0000 at byte 1");
    expect_error("[\x01]", "not valid JSON: a control character at byte 1");
    expect_error_n("[1\0]", 4, "not valid JSON: a control character at byte 2");
    char digits[80] = "[";
    memset(digits + 1, '7', 70);
    expect_error(digits, "not valid JSON: a number of more than 63 characters at byte 71");
}

static void test_depth(void **state)
{
    (void)state;
    char nested[200];
    memset(nested, '[', 64);
    memset(nested + 64, ']', 64);
    struct fib_error err = {0};
    struct fib_json *value = fib_json_parse(nested, 128, &err);
    assert_non_null(value);
    fib_json_free(&value);
    memset(nested, '[', 65);
    memset(nested + 65, ']', 65);
    expect_error_n(nested, 130, "not valid JSON: more than 64 levels of nesting at byte 64");
}

static void test_length_bounds_the_text(void **state)
{
    (void)state;
    struct fib_error err = {0};
    struct fib_json *value = fib_json_parse("12345", 2, &err);
    assert_true(fib_json_f64(value, "") == 12.0);
    fib_json_free(&value);
    /* legal JSON that no double holds */
    value = parse("[1e999, 1]\n");
    expect_print(value, "[null,1]");
    fib_json_free(&value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_setters_replace_in_place),
        cmocka_unit_test(test_names_differ_by_case),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_indented),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_length_bounds_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
