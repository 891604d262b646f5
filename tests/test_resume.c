/* Journals of runs that ended badly: what counts as finished, and what is mended. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/report.h"
#include "core/resume.h"
#include "core/text.h"

struct place {
    char folder[64], csv[96], journal[96];
};

static int make_place(void **state)
{
    struct place *const place = calloc(1, sizeof(*place));
    snprintf(place->folder, sizeof(place->folder), "/tmp/fib_resume_XXXXXX");
    if (!mkdtemp(place->folder))
        return -1;
    snprintf(place->csv, sizeof(place->csv), "%s/o.csv", place->folder);
    snprintf(place->journal, sizeof(place->journal), "%s/o.jsonl", place->folder);
    *state = place;
    return 0;
}

static int remove_place(void **state)
{
    struct place *const place = *state;
    unlink(place->csv);
    unlink(place->journal);
    rmdir(place->folder);
    free(place);
    return 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *const file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void read_text(const char *path, struct fib_text *text)
{
    FILE *const file = fopen(path, "re");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        fib_text_add_char(text, (char)c);
    fclose(file);
}

#define ENVIRONMENT "{\"schema_version\":1,\"kind\":\"environment\"}\n"

static void add_row(struct fib_text *text, const char *key, const char *backend, const char *status)
{
    fib_text_addf(text,
                  "{\"schema_version\":1,\"kind\":\"result\",\"case_key\":\"%s\",\"routine\":\"r\","
                  "\"backend\":\"%s\",\"status\":\"%s\",\"params\":{},"
                  "\"device\":{\"uuid\":\"cpu-1\"},\"build_id\":\"b1\"}\n",
                  key, backend, status);
}

static struct fib_resume *open_journal(const struct place *place, const char *text)
{
    struct fib_resume *resume = NULL;
    struct fib_error err = {0};
    if (text)
        write_text(place->journal, text);
    if (fib_resume_open(place->csv, NULL, &resume, &err) != FIB_OK)
        fail_msg("%s", err.text);
    return resume;
}

static void expect_refusal(const struct place *place, const char *sentence)
{
    struct fib_resume *resume = NULL;
    struct fib_error err = {0};
    assert_int_not_equal(fib_resume_open(place->csv, NULL, &resume, &err), FIB_OK);
    assert_null(resume);
    assert_contains(err.text, sentence);
}

static bool takes(struct fib_resume *resume, const char *key, const char *backend)
{
    return fib_resume_take(resume, key, backend, "cpu-1", "b1") != NULL;
}

static void nothing_yet_is_nothing_finished(void **state)
{
    const struct place *const place = *state;
    struct fib_resume *resume = open_journal(place, NULL);
    assert_int_equal(fib_resume_count(resume), 0);
    assert_false(takes(resume, "k1", "cpu"));
    assert_int_not_equal(access(place->csv, F_OK), 0); /* and nothing is made */
    fib_resume_free(&resume);
    assert_null(resume);
    fib_resume_free(&resume);
}

/* Every status but two is finished. */
static void crashed_and_timed_out_rows_are_not_finished(void **state)
{
    static const char *const statuses[] = {"PASSED",      "INCORRECT", "INVALID", "UNCHECKED",
                                           "UNSUPPORTED", "TOO_SLOW",  "OOM",     "ERROR",
                                           "TIMEOUT",     "CRASHED"};
    const struct place *const place = *state;
    struct fib_text text = {0};
    fib_text_add(&text, ENVIRONMENT);
    for (size_t i = 0; i < 10; i++)
        add_row(&text, "k1", statuses[i], statuses[i]);
    struct fib_resume *resume = open_journal(place, text.chars);
    assert_int_equal(fib_resume_count(resume), 10);
    assert_int_equal(fib_resume_finished(resume), 8);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(takes(resume, "k1", statuses[i]), i < 8);
    assert_int_equal(fib_resume_untaken(resume), 0);
    fib_resume_free(&resume);
    fib_text_free(&text);
}

static void a_row_counts_once_and_only_for_its_like(void **state)
{
    const struct place *const place = *state;
    struct fib_text text = {0};
    fib_text_add(&text, ENVIRONMENT);
    add_row(&text, "k1", "cpu", "PASSED");
    add_row(&text, "k2", "cpu", "CRASHED");
    add_row(&text, "k2", "cpu", "PASSED");
    add_row(&text, "k1", "cpu", "PASSED");
    struct fib_resume *resume = open_journal(place, text.chars);
    assert_null(fib_resume_take(resume, "k1", "cpu", "cpu-2", "b1"));
    assert_null(fib_resume_take(resume, "k1", "cpu", "cpu-1", "b2"));
    assert_false(takes(resume, "k1", "openblas"));
    assert_int_equal(fib_resume_untaken(resume), 3);
    const struct fib_json *const first = fib_resume_take(resume, "k1", "cpu", "cpu-1", "b1");
    assert_ptr_equal(first, fib_resume_record(resume, 0));
    assert_true(takes(resume, "k1", "cpu"));
    assert_false(takes(resume, "k1", "cpu"));
    assert_true(takes(resume, "k2", "cpu"));
    assert_false(takes(resume, "k2", "cpu"));
    fib_resume_free(&resume);
    fib_text_free(&text);
}

static void bad_lines_count_by_line_and_text(void **state)
{
    const struct place *const place = *state;
    struct fib_resume *resume = open_journal(
        place, ENVIRONMENT "{\"schema_version\":1,\"kind\":\"result\",\"case_key\":null,\"line\":7,"
                           "\"title\":\"--routine x\",\"status\":\"ERROR\"}\n");
    assert_null(fib_resume_take_line(resume, 8, "--routine x"));
    assert_null(fib_resume_take_line(resume, 7, "--routine y"));
    assert_non_null(fib_resume_take_line(resume, 7, "--routine x"));
    assert_null(fib_resume_take_line(resume, 7, "--routine x"));
    fib_resume_free(&resume);
}

static void half_a_line_is_cut_off(void **state)
{
    const struct place *const place = *state;
    struct fib_text text = {0}, torn = {0}, found = {0};
    fib_text_add(&text, ENVIRONMENT);
    add_row(&text, "k1", "cpu", "PASSED");
    fib_text_addf(&torn, "%s{\"schema_version\":1,\"kind\":\"resu", text.chars);
    struct fib_resume *resume = open_journal(place, torn.chars);
    assert_int_equal(fib_resume_count(resume), 1);
    read_text(place->journal, &found);
    assert_string_equal(found.chars, text.chars);
    fib_resume_free(&resume);
    /* A whole record that lacks only its newline stays. */
    text.chars[--text.length] = '\0';
    resume = open_journal(place, text.chars);
    assert_int_equal(fib_resume_count(resume), 1);
    fib_text_clear(&found);
    read_text(place->journal, &found);
    assert_string_equal(found.chars, text.chars);
    fib_resume_free(&resume);
    unlink(place->csv);
    /* Killed while the very first line was written. */
    resume = open_journal(place, "{\"schema_ver");
    fib_text_clear(&found);
    read_text(place->journal, &found);
    assert_string_equal(fib_text_chars(&found), "");
    fib_resume_free(&resume);
    fib_text_free(&text);
    fib_text_free(&torn);
    fib_text_free(&found);
}

static void strange_lines_are_passed_over(void **state)
{
    const struct place *const place = *state;
    struct fib_text text = {0};
    fib_text_add(&text,
                 ENVIRONMENT "rubbish\n{\"kind\":\"result\"}\n\n[1]\n"
                             "{\"schema_version\":99,\"kind\":\"result\",\"status\":\"X\"}\n");
    add_row(&text, "k1", "cpu", "PASSED");
    struct fib_resume *resume = open_journal(place, text.chars);
    assert_int_equal(fib_resume_count(resume), 1);
    assert_int_equal(fib_resume_strange(resume), 5);
    fib_resume_free(&resume);
    fib_text_free(&text);
}

static void a_csv_file_is_written_anew_from_the_journal(void **state)
{
    const struct place *const place = *state;
    struct fib_text text = {0}, wanted = {0}, found = {0};
    fib_text_add(&text, ENVIRONMENT);
    add_row(&text, "k1", "cpu", "PASSED");
    add_row(&text, "k2", "a,b", "OOM");
    struct fib_resume *resume = open_journal(place, text.chars);
    fib_csv_header(NULL, &wanted);
    fib_text_add(&wanted, "\n");
    for (size_t i = 0; i < 2; i++) {
        fib_csv_row(fib_resume_record(resume, i), NULL, &wanted);
        fib_text_add(&wanted, "\n");
    }
    fib_resume_free(&resume);
    for (size_t length = 0; length <= wanted.length; length += 1 + wanted.length / 7) {
        char *const start = strndup(wanted.chars, length);
        write_text(place->csv, start);
        free(start);
        resume = open_journal(place, NULL);
        fib_text_clear(&found);
        read_text(place->csv, &found);
        assert_string_equal(found.chars, wanted.chars);
        fib_resume_free(&resume);
    }
    fib_text_free(&text);
    fib_text_free(&wanted);
    fib_text_free(&found);
}

static void files_that_cannot_belong_together_are_refused(void **state)
{
    const struct place *const place = *state;
    struct fib_text text = {0};
    struct fib_resume *resume = NULL;
    struct fib_error err = {0};
    write_text(place->csv, "a,b\n1,\"two\nlines\"\n3,4\n5,hal");
    expect_refusal(place, "o.csv has 2 rows and its journal only 0");
    fib_text_add(&text, ENVIRONMENT);
    add_row(&text, "k1", "cpu", "PASSED");
    write_text(place->journal, text.chars);
    expect_refusal(place, "has 2 rows and its journal only 1");
    read_text(place->csv, (fib_text_clear(&text), &text));
    assert_string_equal(text.chars, "a,b\n1,\"two\nlines\"\n3,4\n5,hal");
    write_text(place->journal, "some text");
    expect_refusal(place, "o.jsonl is no journal");
    read_text(place->journal, (fib_text_clear(&text), &text));
    assert_string_equal(text.chars, "some text");
    assert_int_equal(fib_resume_open(NULL, NULL, &resume, &err), FIB_ERR_USAGE);
    assert_contains(err.text, "--resume needs --output_path");
    err = (struct fib_error){0};
    assert_int_equal(fib_resume_open("/dev/null", NULL, &resume, &err), FIB_ERR_USAGE);
    assert_contains(err.text, "/dev/null keeps no journal");
    fib_text_free(&text);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_yet_is_nothing_finished),
        TEST(crashed_and_timed_out_rows_are_not_finished),
        TEST(a_row_counts_once_and_only_for_its_like),
        TEST(bad_lines_count_by_line_and_text),
        TEST(half_a_line_is_cut_off),
        TEST(strange_lines_are_passed_over),
        TEST(a_csv_file_is_written_anew_from_the_journal),
        TEST(files_that_cannot_belong_together_are_refused),
    };
    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
