/* Error sentences, exit precedence, bookkeeping memory. */
#include "tests/support.h"

#include <stdalign.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"

static void test_first_error_is_kept(void **state)
{
    (void)state;
    struct fib_error err = {0};
    assert_int_equal(fib_fail(&err, FIB_ERR_IO, "file %s", "a"), FIB_ERR_IO);
    assert_int_equal(fib_fail(&err, FIB_ERR_OOM, "later"), FIB_ERR_OOM);
    assert_int_equal(err.status, FIB_ERR_IO);
    assert_string_equal(err.text, "file a");
    assert_int_equal(fib_fail(NULL, FIB_ERR_USAGE, "nobody listens"), FIB_ERR_USAGE);
}

static void test_error_stays_one_line(void **state)
{
    (void)state;
    struct fib_error err = {0};
    fib_fail(&err, FIB_ERR_USAGE, "--x %s: bad", "a\nb\tc\x7f\xc3\xa9");
    assert_string_equal(err.text, "--x a?b?c?\xc3\xa9: bad");
}

static void test_long_error_is_cut_between_characters(void **state)
{
    (void)state;
    char text[FIB_ERROR_CHARS + 8];
    memset(text, 'a', sizeof(text));
    text[FIB_ERROR_CHARS - 2] = '\xc3'; /* the second byte of this character does not fit */
    text[FIB_ERROR_CHARS - 1] = '\xa9';
    text[FIB_ERROR_CHARS] = '\0';
    struct fib_error err = {0};
    fib_fail(&err, FIB_ERR_USAGE, "%s", text);
    assert_int_equal(strlen(err.text), FIB_ERROR_CHARS - 2);
    assert_int_equal(err.text[FIB_ERROR_CHARS - 3], 'a');
}

static void test_exit_precedence(void **state)
{
    (void)state;
    static const enum fib_exit order[] = {
        FIB_EXIT_INTERRUPTED, FIB_EXIT_ENVIRONMENT, FIB_EXIT_CRASH,      FIB_EXIT_WRONG,
        FIB_EXIT_REGRESSION,  FIB_EXIT_BAD_LINES,   FIB_EXIT_UNRESOLVED, FIB_EXIT_NOTHING,
        FIB_EXIT_USAGE,       FIB_EXIT_OK};
    const size_t count = sizeof(order) / sizeof(order[0]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++) {
            assert_int_equal(fib_exit_worse(order[i], order[j]), order[i]);
            assert_int_equal(fib_exit_worse(order[j], order[i]), order[i]);
        }
    }
}

static void test_status_texts_differ(void **state)
{
    (void)state;
    for (int i = FIB_OK; i <= FIB_ERR_INTERNAL; i++) {
        assert_non_null(fib_status_text((enum fib_status)i));
        for (int j = FIB_OK; j < i; j++)
            assert_string_not_equal(fib_status_text((enum fib_status)i),
                                    fib_status_text((enum fib_status)j));
    }
    assert_string_equal(fib_status_text(FIB_ERR_OOM), "out of memory");
}

static void test_arena(void **state)
{
    (void)state;
    struct fib_arena *arena = fib_arena_create();
    for (size_t bytes = 0; bytes < 20000; bytes += 997) {
        unsigned char *chunk = fib_arena_alloc(arena, bytes);
        assert_int_equal((uintptr_t)chunk % alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(chunk[i], 0);
        memset(chunk, 0xab, bytes);
    }
    assert_ptr_not_equal(fib_arena_alloc(arena, 0), fib_arena_alloc(arena, 0));
    assert_string_equal(fib_arena_strndup(arena, "abcdef", 3), "abc");
    assert_string_equal(fib_arena_strdup(arena, ""), "");
    assert_string_equal(fib_arena_printf(arena, "%d-%s", 7, "x"), "7-x");
    const int64_t *numbers = fib_arena_array(arena, 3, sizeof(int64_t));
    assert_int_equal(numbers[0] + numbers[1] + numbers[2], 0);
    fib_arena_free(&arena);
    assert_null(arena);
    fib_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_error_is_kept),
        cmocka_unit_test(test_error_stays_one_line),
        cmocka_unit_test(test_long_error_is_cut_between_characters),
        cmocka_unit_test(test_exit_precedence),
        cmocka_unit_test(test_status_texts_differ),
        cmocka_unit_test(test_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
