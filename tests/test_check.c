/* core/check*.c: what the checker passes, what it must not pass, and which rows it looks at. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/pool.h"

/* ---- a problem of one output, with its reference ---- */

enum { ROWS = 64, COLUMNS = 1024, ELEMS = ROWS * COLUMNS };

struct bench {
    struct fib_problem problem;
    double value[ELEMS], terms[ELEMS];
    int64_t rows[ROWS];
    double output[ELEMS]; /* room for any dtype */
    struct fib_verification verification;
};

static double noise(uint64_t i)
{
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-52 - 1.0;
}

/* Values in (-1, 1) away from 0, output = reference rounded once. */
static struct bench *bench_create(enum fib_dtype dtype, enum fib_check_kind check)
{
    struct bench *const b = calloc(1, sizeof(*b));
    b->problem = (struct fib_problem){.row_count = ROWS, .accumulate_roundoff = 0x1p-24};
    fib_problem_add(&b->problem, &(struct fib_tensor){.name = "y",
                                                      .role = FIB_OUTPUT,
                                                      .dtype = dtype,
                                                      .rank = 2,
                                                      .shape = {ROWS, COLUMNS},
                                                      .check = check,
                                                      .row_elems = COLUMNS});
    for (int i = 0; i < ELEMS; i++) {
        const double x = noise((uint64_t)i);
        b->value[i] = x + copysign(0.1, x);
        b->terms[i] = fabs(b->value[i]);
        if (check == FIB_CHECK_CODES)
            b->value[i] = fib_dtype_round(dtype, b->value[i]);
        fib_dtype_store(dtype, b->output, (size_t)i, b->value[i]);
    }
    for (int i = 0; i < ROWS; i++)
        b->rows[i] = i;
    return b;
}

static enum fib_dtype dtype_of(const struct bench *b)
{
    return b->problem.tensors[0].dtype;
}

static void put(struct bench *b, int64_t element, double value)
{
    fib_dtype_store(dtype_of(b), b->output, (size_t)element, value);
}

static bool passes(struct bench *b)
{
    b->verification = (struct fib_verification){0};
    fib_check_rows(&b->problem, 0, b->output, b->rows, ROWS, b->value, b->terms, &b->verification);
    return !b->verification.failed;
}

static const char *message(const struct bench *b)
{
    return b->verification.message;
}

/* ---- float outputs ---- */

static const enum fib_dtype float_dtypes[] = {FIB_BF16, FIB_F16, FIB_F32, FIB_FP8_E4M3,
                                              FIB_FP8_E5M2};
enum { FLOAT_COUNT = sizeof(float_dtypes) / sizeof(float_dtypes[0]) };

static void rounding_alone_passes(void **state)
{
    (void)state;
    for (int d = 0; d < FLOAT_COUNT; d++) {
        struct bench *const b = bench_create(float_dtypes[d], FIB_CHECK_FLOAT);
        assert_true(passes(b));
        assert_true(b->verification.compared_count == ELEMS);
        assert_true(b->verification.checked_rows == ROWS);
        assert_true(b->verification.mismatch_count == 0);
        const double roundoff = fib_dtype_unit_roundoff(float_dtypes[d]);
        assert_true(b->verification.max_rel_err <= roundoff);
        assert_true(b->verification.max_rel_err > 0.8 * roundoff);
        const double rel_l2 = fib_verification_rel_l2(&b->verification);
        assert_true(rel_l2 > 0.2 * roundoff && rel_l2 < roundoff);
        free(b);
    }
}

/* One element, so that the limit is known by hand: reference 1.375, terms 0.25, u_acc 2^-10. */
static bool one_f32_passes(double out)
{
    const struct fib_problem problem = {
        .tensors = {{.name = "y",
                     .role = FIB_OUTPUT,
                     .dtype = FIB_F32,
                     .rank = 1,
                     .shape = {1},
                     .check = FIB_CHECK_FLOAT,
                     .row_elems = 1}},
        .tensor_count = 1,
        .row_count = 1,
        .accumulate_roundoff = 0x1p-10,
    };
    struct fib_verification found = {0};
    const float stored = (float)out;
    fib_check_rows(&problem, 0, &stored, (const int64_t[]){0}, 1, (const double[]){1.375},
                   (const double[]){0.25}, &found);
    return !found.failed;
}

static void the_limit_by_hand(void **state)
{
    (void)state;
    /* 2^-24 * 1.375 + 4 * 2^-10 * 0.25 = 2^-10 + 1.375 * 2^-24 */
    assert_true(one_f32_passes(1.375));
    assert_true(one_f32_passes(1.375 + 0x1p-10));
    assert_true(one_f32_passes(1.375 - 0x1p-10));
    assert_false(one_f32_passes(1.375 + 0x1p-10 + 0x1p-22));
    assert_false(one_f32_passes(1.375 - 0x1p-10 - 0x1p-22));
}

static void scaled_outputs_fail(void **state)
{
    (void)state;
    for (int d = 0; d < FLOAT_COUNT; d++) {
        struct bench *const b = bench_create(float_dtypes[d], FIB_CHECK_FLOAT);
        for (int i = 0; i < ELEMS; i++)
            put(b, i, b->value[i] * (1.0 + 8.0 * fib_dtype_unit_roundoff(float_dtypes[d])));
        assert_false(passes(b));
        assert_contains(message(b), "elements beyond the limit, first at [0, 0]: ");
        free(b);
    }
}

static void message_names_place_and_values(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_F16, FIB_CHECK_FLOAT);
    b->value[17 * COLUMNS + 1023] = 1.375;
    put(b, 17 * COLUMNS + 1023, 1.5);
    put(b, 20 * COLUMNS, 5.0);
    put(b, 21 * COLUMNS, 5.0);
    assert_false(passes(b));
    assert_contains(message(b), "y: 3 of 65536 elements beyond the limit, first at [17, 1023]: "
                                "0x3e00 (1.5), expected 1.375 (limit 0.000672)");
    assert_true(b->verification.mismatch_count == 3);
    free(b);
    struct bench *const wide = bench_create(FIB_F32, FIB_CHECK_FLOAT);
    put(wide, 5, 3.25);
    wide->value[5] = 2.0;
    assert_false(passes(wide));
    assert_contains(message(wide), "first at [0, 5]: 3.25, expected 2 (limit ");
    free(wide);
}

static void dropped_block_and_zeroed_row_fail(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_BF16, FIB_CHECK_FLOAT);
    for (int i = 0; i < COLUMNS; i++)
        put(b, 40 * COLUMNS + i, 0.0);
    assert_false(passes(b));
    assert_contains(message(b), "y: 1024 of 65536 elements beyond the limit, first at [40, 0]");
    free(b);
}

static void a_little_wrong_everywhere_fails(void **state)
{
    (void)state;
    /* Every element within its own limit of u + 4 u_acc * terms, all of them at its edge. */
    struct bench *const b = bench_create(FIB_F32, FIB_CHECK_FLOAT);
    for (int i = 0; i < ELEMS; i++) {
        b->terms[i] = 16.0 * fabs(b->value[i]);
        put(b, i, b->value[i] * (1.0 + 0.9 * 64.0 * 0x1p-24));
    }
    assert_false(passes(b));
    assert_contains(message(b), "y: distance ");
    assert_contains(message(b), " from the reference as a whole (limit ");
    assert_true(b->verification.mismatch_count == 0);
    free(b);
}

static void case_50_nan_never_passes_by_accident(void **state)
{
    (void)state;
    for (int d = 0; d < FLOAT_COUNT; d++) {
        struct bench *const b = bench_create(float_dtypes[d], FIB_CHECK_FLOAT);
        for (int i = 0; i < ELEMS; i++)
            put(b, i, NAN);
        assert_false(passes(b));
        assert_contains(message(b), "y: 65536 of 65536 elements are NaN or infinite out of place");
        assert_true(b->verification.mismatch_count == ELEMS);
        assert_true(isnan(b->verification.max_abs_err) && isnan(b->verification.max_rel_err));
        assert_true(isnan(fib_verification_rel_l2(&b->verification)));
        free(b);
    }
    struct bench *const b = bench_create(FIB_BF16, FIB_CHECK_FLOAT);
    const int64_t at = 3 * COLUMNS + 7;
    const double good = b->value[at];
    put(b, at, INFINITY); /* out +inf, reference finite */
    assert_false(passes(b));
    assert_contains(message(b), "y: 1 of 65536 elements are NaN or infinite out of place, first at "
                                "[3, 7]: 0x7f80 (inf), expected ");
    assert_true(isinf(b->verification.max_abs_err));
    b->value[at] = NAN; /* reference NaN, out finite */
    put(b, at, good);
    assert_false(passes(b));
    assert_contains(message(b), "expected nan");
    put(b, at, NAN); /* both NaN: declared by the oracle */
    assert_true(passes(b));
    assert_true(isfinite(b->verification.max_abs_err));
    b->value[at] = INFINITY; /* both +inf */
    put(b, at, INFINITY);
    assert_true(passes(b));
    put(b, at, -INFINITY); /* same place, other sign */
    assert_false(passes(b));
    put(b, at, NAN);
    assert_false(passes(b));
    free(b);
}

static void errors_keep_a_nan(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_F32, FIB_CHECK_FLOAT);
    put(b, 0, NAN); /* early, so that every later element could overwrite it */
    assert_false(passes(b));
    assert_true(isnan(b->verification.max_abs_err) && isnan(b->verification.max_rel_err));
    /* A second, good pass into the same verification does not wash it away. */
    put(b, 0, b->value[0]);
    fib_check_rows(&b->problem, 0, b->output, b->rows, ROWS, b->value, b->terms, &b->verification);
    assert_true(b->verification.failed && isnan(b->verification.max_abs_err));
    assert_true(b->verification.compared_count == 2 * ELEMS);
    free(b);
}

static void special_values_come_before_limits(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_BF16, FIB_CHECK_FLOAT);
    put(b, 0, 100.0);
    put(b, 500, NAN);
    assert_false(passes(b));
    assert_contains(message(b), "NaN or infinite out of place, first at [0, 500]");
    assert_true(b->verification.mismatch_count == 2);
    free(b);
}

static void overflow_of_the_format(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_F16, FIB_CHECK_FLOAT);
    b->value[9] = 70000.0;
    put(b, 9, INFINITY);
    assert_true(passes(b));
    put(b, 9, 65504.0); /* a backend that saturates where the format has infinity */
    assert_false(passes(b));
    put(b, 9, -INFINITY);
    assert_false(passes(b));
    b->value[9] = 65519.99; /* rounds to the largest number; a hair more would overflow */
    b->terms[9] = 1e6;
    put(b, 9, 65504.0);
    assert_true(passes(b));
    put(b, 9, INFINITY);
    assert_true(passes(b));
    b->terms[9] = 1.0;
    assert_false(passes(b));
    free(b);
    struct bench *const fp8 = bench_create(FIB_FP8_E4M3, FIB_CHECK_FLOAT);
    fp8->value[9] = 1000.0;
    put(fp8, 9, 448.0);
    assert_true(passes(fp8));
    put(fp8, 9, 352.0);
    assert_false(passes(fp8));
    free(fp8);
}

static void case_51_zeros_against_a_small_reference(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_BF16, FIB_CHECK_FLOAT);
    for (int i = 0; i < ELEMS; i++) {
        b->value[i] *= 0.00326;
        b->terms[i] = 1.0;
        put(b, i, 0.0);
    }
    assert_false(passes(b));
    assert_true(b->verification.mismatch_count == ELEMS);
    assert_true(fabs(fib_verification_rel_l2(&b->verification) - 1.0) < 1e-12);
    free(b);
}

static void near_zero_the_smallest_step_counts(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_F16, FIB_CHECK_FLOAT);
    for (int i = 0; i < ELEMS; i++) {
        b->value[i] *= 0x1p-26; /* all below half of the smallest subnormal or next to it */
        b->terms[i] = 0.0;
        put(b, i, b->value[i]);
    }
    assert_true(passes(b));
    free(b);
}

static void rel_l2_without_a_reference(void **state)
{
    (void)state;
    assert_true(fib_verification_rel_l2(&(struct fib_verification){0}) == 0.0);
    assert_true(isinf(fib_verification_rel_l2(&(struct fib_verification){.diff_sq = 1.0})));
    assert_true(
        fib_verification_rel_l2(&(struct fib_verification){.diff_sq = 9.0, .ref_sq = 4.0}) == 1.5);
}

/* ---- codes ---- */

static void step_code(struct bench *b, int64_t element, int steps)
{
    uint8_t *const codes = (uint8_t *)b->output;
    codes[element] = (uint8_t)(codes[element] + steps); /* magnitude, sign bit untouched */
}

static void codes_may_be_one_step_off_seldom(void **state)
{
    (void)state;
    static const enum fib_dtype dtypes[] = {FIB_FP8_E4M3, FIB_FP8_E5M2};
    for (int d = 0; d < 2; d++) {
        struct bench *b = bench_create(dtypes[d], FIB_CHECK_CODES);
        assert_true(passes(b) && b->verification.max_abs_err == 0.0);
        for (int i = 0; i < 32; i++) /* 0.05 % */
            step_code(b, i * 2000, i % 2 ? 1 : -1);
        assert_true(passes(b));
        assert_true(b->verification.mismatch_count == 0);
        for (int i = 0; i < 100; i++) /* and 0.15 % more */
            step_code(b, i * 600 + 1, 1);
        assert_false(passes(b));
        assert_contains(message(b),
                        "y: 132 of 65536 codes (0.2 %) differ by one step, allowed 0.1 %");
        assert_true(b->verification.mismatch_count == 132);
        free(b);
    }
}

static void one_code_two_steps_off_fails(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_FP8_E4M3, FIB_CHECK_CODES);
    b->value[COLUMNS + 2] = 1.0; /* code 0x38 */
    ((uint8_t *)b->output)[COLUMNS + 2] = 0x3a;
    assert_false(passes(b));
    assert_contains(message(b), "y: 1 of 65536 codes differ by more than one step, first at "
                                "[1, 2]: 0x3a (1.25), expected 0x38 (1)");
    free(b);
}

static void codes_around_zero(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_FP8_E4M3, FIB_CHECK_CODES);
    uint8_t *const codes = (uint8_t *)b->output;
    for (int i = 0; i < ELEMS; i++) {
        b->value[i] = 0.0;
        codes[i] = i % 2 ? 0x80 : 0x00; /* -0 equals +0 */
    }
    assert_true(passes(b));
    codes[77] = 0x81; /* smallest negative number: one step from either zero */
    assert_true(passes(b));
    b->value[77] = 0x1p-9; /* ... and two from the smallest positive one */
    assert_false(passes(b));
    assert_contains(message(b), "differ by more than one step, first at [0, 77]: 0x81");
    free(b);
}

static void codes_and_nan(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_FP8_E4M3, FIB_CHECK_CODES);
    uint8_t *const codes = (uint8_t *)b->output;
    b->value[5] = 448.0;
    codes[5] = 0x7f; /* next to the largest number on paper, but NaN */
    assert_false(passes(b));
    assert_contains(message(b), "NaN or infinite out of place, first at [0, 5]: 0x7f (nan), "
                                "expected 0x7e (448)");
    b->value[5] = NAN;
    assert_true(passes(b));
    codes[5] = 0xff; /* NaN has no sign */
    assert_true(passes(b));
    codes[5] = 0x7e;
    assert_false(passes(b));
    free(b);
    struct bench *const e5m2 = bench_create(FIB_FP8_E5M2, FIB_CHECK_CODES);
    e5m2->value[5] = 57344.0;
    ((uint8_t *)e5m2->output)[5] = 0x7c;
    assert_false(passes(e5m2));
    assert_contains(message(e5m2), "0x7c (inf), expected 0x7b (57344)");
    free(e5m2);
}

static void integer_codes(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_U8, FIB_CHECK_CODES);
    uint8_t *const codes = (uint8_t *)b->output;
    for (int i = 0; i < ELEMS; i++) {
        b->value[i] = i % 256;
        codes[i] = (uint8_t)i;
    }
    assert_true(passes(b));
    codes[300] = 45; /* 44 */
    assert_true(passes(b));
    codes[300] = 46;
    assert_false(passes(b));
    assert_contains(message(b), "[0, 300]: 0x2e (46), expected 0x2c (44)");
    free(b);
}

static void small_outputs_may_have_one_step(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_FP8_E4M3, FIB_CHECK_CODES);
    b->problem.tensors[0].row_elems = 100;
    step_code(b, 3, 1);
    fib_check_rows(&b->problem, 0, b->output, b->rows, 1, b->value, NULL, &b->verification);
    assert_false(b->verification.failed);
    step_code(b, 4, 1);
    fib_check_rows(&b->problem, 0, b->output, b->rows, 1, b->value, NULL, &b->verification);
    assert_true(b->verification.failed);
    free(b);
}

/* ---- sampled rows, first message ---- */

static void only_the_given_rows_count(void **state)
{
    (void)state;
    struct bench *const b = bench_create(FIB_BF16, FIB_CHECK_FLOAT);
    put(b, 10 * COLUMNS, NAN); /* not among the rows */
    put(b, 30 * COLUMNS + 4, 9.0);
    static const int64_t rows[] = {0, 30, 63};
    double value[3 * COLUMNS];
    for (int i = 0; i < 3; i++)
        memcpy(value + i * COLUMNS, b->value + rows[i] * COLUMNS, COLUMNS * sizeof(*value));
    fib_check_rows(&b->problem, 0, b->output, rows, 3, value, NULL, &b->verification);
    assert_contains(message(b), "y: 1 of 3072 elements beyond the limit, first at [30, 4]");
    assert_true(b->verification.checked_rows == 3);
    struct fib_verification none = {0};
    fib_check_rows(&b->problem, 0, b->output, rows, 0, value, NULL, &none);
    assert_true(!none.failed && none.compared_count == 0);
    b->problem.tensors[0].check = FIB_CHECK_NONE;
    fib_check_rows(&b->problem, 0, b->output, rows, 3, value, NULL, &none);
    assert_true(!none.failed && none.compared_count == 0);
    free(b);
}

static void first_failure_is_kept(void **state)
{
    (void)state;
    struct fib_verification v = {0};
    fib_verification_fail(&v, "guard behind %s was overwritten", "y");
    fib_verification_fail(&v, "something later");
    assert_true(v.failed);
    assert_string_equal(v.message, "guard behind y was overwritten");
}

/* ---- full scans ---- */

static struct fib_tensor big_tensor(enum fib_dtype dtype)
{
    return (struct fib_tensor){.name = "y",
                               .role = FIB_OUTPUT,
                               .dtype = dtype,
                               .rank = 2,
                               .shape = {1000, 1000},
                               .check = FIB_CHECK_FLOAT,
                               .row_elems = 1000};
}

static void one_nan_in_a_million(void **state)
{
    (void)state;
    static const enum fib_dtype dtypes[] = {FIB_BF16, FIB_F16,      FIB_F32,
                                            FIB_F64,  FIB_FP8_E4M3, FIB_FP8_E5M2};
    struct fib_pool *pool = fib_pool_create(3);
    double *const output = calloc(1000000, sizeof(*output));
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        const struct fib_tensor tensor = big_tensor(dtypes[d]);
        memset(output, 0, 1000000 * sizeof(*output));
        fib_dtype_store(dtypes[d], output, 1, fib_dtype_max(dtypes[d])); /* largest is finite */
        struct fib_verification v = {0};
        fib_check_finite(pool, &tensor, output, &v);
        assert_true(!v.failed && v.mismatch_count == 0);
        fib_dtype_store(dtypes[d], output, 654321, NAN);
        fib_check_finite(pool, &tensor, output, &v);
        assert_true(v.failed && v.mismatch_count == 1);
        assert_contains(v.message,
                        "y: 1 of 1000000 elements are NaN or infinite, first at [654, 321]: ");
        assert_contains(v.message, "nan");
        fib_dtype_store(dtypes[d], output, 654320, -NAN);
        struct fib_verification alone = {0};
        fib_check_finite(NULL, &tensor, output, &alone);
        assert_contains(alone.message, "y: 2 of 1000000");
        assert_contains(alone.message, "first at [654, 320]");
    }
    free(output);
    fib_pool_free(&pool);
}

static void infinity_is_found_too(void **state)
{
    (void)state;
    const struct fib_tensor tensor = big_tensor(FIB_BF16);
    uint16_t *const output = calloc(1000000, sizeof(*output));
    output[999999] = 0xff80;
    struct fib_verification v = {0};
    fib_check_finite(NULL, &tensor, output, &v);
    assert_contains(v.message, "y: 1 of 1000000 elements are NaN or infinite, first at [999, 999]: "
                               "0xff80 (-inf)");
    struct fib_verification whole = {0};
    const struct fib_tensor numbers = big_tensor(FIB_I32);
    int32_t *const ints = malloc(1000000 * sizeof(*ints));
    memset(ints, 0xff, 1000000 * sizeof(*ints));
    fib_check_finite(NULL, &numbers, ints, &whole);
    assert_false(whole.failed);
    free(ints);
    free(output);
}

/* What a call left to somebody else came after its end: the second run has it, the first did not.
 */
static void late_elements(void **state)
{
    (void)state;
    const struct fib_tensor tensor = big_tensor(FIB_BF16);
    struct fib_pool *pool = fib_pool_create(2);
    unsigned char *const first = malloc(2000000), *const second = malloc(2000000);
    struct fib_verification v = {0};
    memset(first, 3, 2000000);
    memset(second, 3, 2000000);
    memset(first + 2 * 2003, 0xff, 20);
    memset(second + 2 * 2005, 0xff, 2); /* that one is NaN in both */
    fib_check_written(pool, &tensor, first, 0xff, second, 0x55, &v);
    assert_true(v.failed && v.mismatch_count == 9);
    assert_contains(v.message, "9 of 1000000 elements were not written when the call was over");
    free(first);
    free(second);
    fib_pool_free(&pool);
}

static void unwritten_elements(void **state)
{
    (void)state;
    static const enum fib_dtype dtypes[] = {FIB_U8, FIB_BF16, FIB_F32, FIB_I64};
    struct fib_pool *pool = fib_pool_create(2);
    unsigned char *const first = malloc(8000000), *const second = malloc(8000000);
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        const struct fib_tensor tensor = big_tensor(dtypes[d]);
        const size_t size_bytes = fib_dtype_bytes(dtypes[d]);
        memset(first, 3, 8000000);
        memset(second, 3, 8000000);
        struct fib_verification v = {0};
        fib_check_written(pool, &tensor, first, 0xff, second, 0x55, &v);
        assert_false(v.failed);
        /* Poison in one run only is a value that happens to look like it, unless it is a NaN. */
        memset(second + 78 * size_bytes, 0x55, size_bytes);
        if (!fib_dtype_is_float(dtypes[d]))
            memset(first + 77 * size_bytes, 0xff, size_bytes);
        fib_check_written(pool, &tensor, first, 0xff, second, 0x55, &v);
        assert_false(v.failed);
        memset(first + 2003 * size_bytes, 0xff, 2 * size_bytes);
        memset(second + 2003 * size_bytes, 0x55, 2 * size_bytes);
        if (size_bytes > 1) /* the last element was written in part */
            second[2004 * size_bytes + 1] = 0x54;
        fib_check_written(pool, &tensor, first, 0xff, second, 0x55, &v);
        assert_true(v.failed && v.mismatch_count == (size_bytes > 1 ? 1 : 2));
        assert_contains(v.message, "of 1000000 elements were never written, first at [2, 3]");
    }
    free(first);
    free(second);
    fib_pool_free(&pool);
}

/* ---- rows ---- */

enum { ROW_ELEMS = 1000 }; /* with a budget of 1e9, 1736 rows */

static int64_t pick(int64_t row_count, double row_flops, int64_t boundary, double budget,
                    uint64_t seed, int64_t *rows)
{
    const struct fib_problem problem = {
        .row_count = row_count,
        .row_flops = row_flops,
        .boundary_row = boundary,
        .tensor_count = 2,
        .tensors = {{.row_elems = 1 << 20}, /* an input does not count */
                    {.check = FIB_CHECK_FLOAT, .row_elems = ROW_ELEMS}}};
    const int64_t limit = fib_check_row_limit(&problem, budget);
    const int64_t count = fib_check_pick_rows(&problem, budget, seed, rows);
    assert_true(count == limit);
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(rows[i], 0, row_count - 1);
        assert_true(i == 0 || rows[i] > rows[i - 1]);
    }
    return count;
}

static bool holds(const int64_t *rows, int64_t count, int64_t row)
{
    for (int64_t i = 0; i < count; i++)
        if (rows[i] == row)
            return true;
    return false;
}

static void rows_whole_or_sampled(void **state)
{
    (void)state;
    int64_t rows[4200];
    assert_true(pick(0, 1.0, 0, 1e9, 1, rows) == 0);
    assert_true(pick(1, 1e12, 0, 1e9, 1, rows) == 1 && rows[0] == 0);
    assert_true(pick(1000, 1e6, 0, 1e9, 1, rows) == 1000 && rows[999] == 999);
    assert_true(pick(1736, 0.0, 0, 1e9, 1, rows) == 1736);
    assert_true(pick(1738, 1.0, 0, 1e9, 1, rows) == 1736);  /* too many elements */
    assert_true(pick(1736, 1.0, 0, 1e8, 1, rows) == 173);   /* of which a budget holds a share */
    assert_true(pick(5000, 1.0, 0, 1e10, 1, rows) == 4194); /* and never more than 2^22 */
    assert_true(pick(1001, 1e6, 0, 1e9, 1, rows) == 100);   /* a tenth of the time */
    assert_true(pick(1001, 2e6, 0, 1e9, 1, rows) == 64);
    assert_true(pick(1000, 2e7, 0, 1e9, 1, rows) == 50); /* 64 do not fit, 50 do */
    assert_true(pick(1000, 1e9, 0, 1e9, 1, rows) == 16); /* dear, but never fewer */
    assert_true(pick(10, 1e9, 0, 1e9, 1, rows) == 10);
    assert_true(pick(65, 2e7, 0, 1.2e9, 1, rows) == 60);
    assert_true(pick(INT64_C(1) << 40, 10.0, 0, 1e9, 1, rows) == 1736);
}

static void rows_first_last_boundaries(void **state)
{
    (void)state;
    int64_t rows[64];
    for (uint64_t seed = 0; seed < 50; seed++) {
        /* 8 entries of 1250: all boundary rows fit into half the sample */
        int64_t count = pick(10000, 2e6, 1250, 1e9, seed, rows);
        for (int64_t entry = 0; entry < 8; entry++)
            assert_true(holds(rows, count, entry * 1250) &&
                        holds(rows, count, entry * 1250 + 1249));
        /* 1000 entries: those at both ends and some between; the rest of the sample is free */
        count = pick(10000, 2e6, 10, 1e9, seed, rows);
        int64_t boundary = 0;
        for (int64_t i = 0; i < count; i++)
            boundary += rows[i] % 10 == 0 || rows[i] % 10 == 9;
        assert_true(holds(rows, count, 0) && holds(rows, count, 9) && holds(rows, count, 10));
        assert_true(holds(rows, count, 9990) && holds(rows, count, 9999));
        assert_in_range(boundary, 30, 56);
        count = pick(10000, 1e8, 0, 1e9, seed, rows);
        assert_true(rows[0] == 0 && rows[count - 1] == 9999);
        /* a last entry that is not full; an entry longer than the problem */
        count = pick(1003, 1e8, 100, 1e9, seed, rows);
        assert_true(holds(rows, count, 99) && holds(rows, count, 100) && holds(rows, count, 1000));
        count = pick(1003, 1e8, 5000, 1e9, seed, rows);
        assert_true(count == 16 && holds(rows, count, 1002));
        assert_true(pick(1003, 1e8, 1, 1e9, seed, rows) == 16);
    }
}

static void rows_depend_on_the_seed_alone(void **state)
{
    (void)state;
    int64_t a[64], b[64], c[64];
    pick(100000, 2e6, 0, 1e9, 7, a);
    pick(100000, 2e6, 0, 1e9, 7, b);
    pick(100000, 2e6, 0, 1e9, 8, c);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_not_equal(a, c, sizeof(a));
    int upper_half = 0;
    for (int i = 0; i < 64; i++)
        upper_half += a[i] >= 50000;
    assert_in_range(upper_half, 16, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_alone_passes),
        cmocka_unit_test(the_limit_by_hand),
        cmocka_unit_test(scaled_outputs_fail),
        cmocka_unit_test(message_names_place_and_values),
        cmocka_unit_test(dropped_block_and_zeroed_row_fail),
        cmocka_unit_test(a_little_wrong_everywhere_fails),
        cmocka_unit_test(case_50_nan_never_passes_by_accident),
        cmocka_unit_test(errors_keep_a_nan),
        cmocka_unit_test(special_values_come_before_limits),
        cmocka_unit_test(overflow_of_the_format),
        cmocka_unit_test(case_51_zeros_against_a_small_reference),
        cmocka_unit_test(near_zero_the_smallest_step_counts),
        cmocka_unit_test(rel_l2_without_a_reference),
        cmocka_unit_test(codes_may_be_one_step_off_seldom),
        cmocka_unit_test(one_code_two_steps_off_fails),
        cmocka_unit_test(codes_around_zero),
        cmocka_unit_test(codes_and_nan),
        cmocka_unit_test(integer_codes),
        cmocka_unit_test(small_outputs_may_have_one_step),
        cmocka_unit_test(only_the_given_rows_count),
        cmocka_unit_test(first_failure_is_kept),
        cmocka_unit_test(one_nan_in_a_million),
        cmocka_unit_test(infinity_is_found_too),
        cmocka_unit_test(unwritten_elements),
        cmocka_unit_test(late_elements),
        cmocka_unit_test(rows_whole_or_sampled),
        cmocka_unit_test(rows_first_last_boundaries),
        cmocka_unit_test(rows_depend_on_the_seed_alone),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
