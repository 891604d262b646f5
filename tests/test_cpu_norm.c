/* The float32 host norms against the oracle over a grid, and proof that wrong results fail. */
#include "tests/support.h"
#include "tests/host_run.h"
#include "tests/norm_extremes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/routine.h"

struct bench {
    struct fib_plan *plan;
    struct host_run *run;
};

static struct bench open_bench(const char *line)
{
    struct bench b = {.plan = test_plan(line)};
    assert_int_equal(b.plan->count, 1);
    assert_non_null(b.plan->items[0].kase);
    b.run = host_run_create(b.plan->items[0].kase, 0);
    return b;
}

static void close_bench(struct bench *b)
{
    host_run_free(b->run);
    fib_plan_free(&b->plan);
}

static const struct fib_tensor *tensor_of(const struct bench *b, const char *name)
{
    const struct fib_problem *const problem = host_run_problem(b->run);
    const int t = fib_problem_find(problem, name);
    return t < 0 ? NULL : &problem->tensors[t];
}

static void put(struct bench *b, const char *name, const double *values, size_t period)
{
    const struct fib_tensor *const tensor = tensor_of(b, name);
    void *const data = host_run_data(b->run, name);
    for (size_t i = 0; i < (size_t)fib_tensor_elems(tensor); i++)
        fib_dtype_store(tensor->dtype, data, i, values[i % period]);
}

static void put_constant(struct bench *b, const char *name, double value)
{
    put(b, name, &value, 1);
}

static void run_impl(struct bench *b)
{
    struct fib_error err = {0};
    if (host_run_impl(b->run, "cpu", &err) != FIB_OK)
        fail_msg("%s", err.text);
}

static void assert_right(struct bench *b, const char *what)
{
    struct fib_verification v = {0};
    host_run_check(b->run, &v);
    if (v.failed)
        fail_msg("%s: %s", what, v.message);
}

static void assert_wrong(struct bench *b, const char *what)
{
    struct fib_verification v = {0};
    host_run_check(b->run, &v);
    if (!v.failed)
        fail_msg("%s passed the check", what);
    assert_true(v.message[0] != '\0');
}

static void run_line(const char *line)
{
    struct bench b = open_bench(line);
    run_impl(&b);
    assert_right(&b, line);
    close_bench(&b);
}

/* Every legal pair of element types. */
static const struct {
    const char *routine, *flags;
} kinds[] = {
    {"rmsnorm", "--input_dtype bfloat16"},
    {"rmsnorm", "--input_dtype float16"},
    {"rmsnorm", "--input_dtype float32"},
    {"gemma_rmsnorm", "--input_dtype bfloat16"},
    {"gemma_rmsnorm", "--input_dtype float16"},
    {"gemma_rmsnorm", "--input_dtype float32"},
    {"fused_add_rmsnorm", "--input_dtype bfloat16"},
    {"fused_add_rmsnorm", "--input_dtype float16"},
    {"fused_add_rmsnorm", "--input_dtype float32"},
    {"gemma_fused_add_rmsnorm", "--input_dtype bfloat16"},
    {"gemma_fused_add_rmsnorm", "--input_dtype float16"},
    {"gemma_fused_add_rmsnorm", "--input_dtype float32"},
    {"rmsnorm_quant", "--input_dtype bfloat16 --out_dtype fp8_e4m3"},
    {"rmsnorm_quant", "--input_dtype bfloat16 --out_dtype fp8_e5m2 --scale 0.001"},
    {"rmsnorm_quant", "--input_dtype float16 --out_dtype fp8_e4m3 --scale 0.1"},
    {"rmsnorm_quant", "--input_dtype float16 --out_dtype fp8_e5m2"},
    {"fused_add_rmsnorm_quant", "--input_dtype bfloat16 --out_dtype fp8_e4m3 --scale 3"},
    {"fused_add_rmsnorm_quant", "--input_dtype bfloat16 --out_dtype fp8_e5m2"},
    {"fused_add_rmsnorm_quant", "--input_dtype float16 --out_dtype fp8_e4m3"},
    {"fused_add_rmsnorm_quant", "--input_dtype float16 --out_dtype fp8_e5m2"},
    {"layernorm_quant", "--out_dtype fp8_e4m3"},
    {"layernorm_quant", "--out_dtype fp8_e5m2 --scale 0.01"},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static struct bench open_kind(size_t kind, int rows, int cols)
{
    char line[256];
    snprintf(line, sizeof line, "--routine %s --batch_size %d --hidden_size %d %s",
             kinds[kind].routine, rows, cols, kinds[kind].flags);
    return open_bench(line);
}

static void test_grid(void **state)
{
    (void)state;
    static const int cols[] = {1, 3, 7, 8, 64, 127, 128, 1000, 4096, 8200};
    static const int rows[] = {1, 2, 33};
    for (size_t k = 0; k < KIND_COUNT; k++)
        for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++)
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
                struct bench b = open_kind(k, rows[r], cols[c]);
                run_impl(&b);
                assert_right(&b, b.plan->items[0].kase->routine->name);
                close_bench(&b);
            }
}

static void test_heads_and_long_rows(void **state)
{
    (void)state;
    run_line("--routine rmsnorm --batch_size 3 --num_heads 5 --hidden_size 128");
    run_line("--routine gemma_rmsnorm --batch_size 2 --num_heads 33 --hidden_size 64");
    run_line("--routine rmsnorm --batch_size 2 --hidden_size 1048576 --input_dtype float32");
    run_line("--routine fused_add_rmsnorm --batch_size 1 --hidden_size 1048573");
    run_line("--routine layernorm_quant --batch_size 2 --hidden_size 100000");
}

static void test_resolved_names(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine rmsnorm --batch_size 1 --hidden_size 8");
    run_impl(&b);
    assert_string_equal(host_run_resolved(b.run), "cpu/rmsnorm_rows");
    close_bench(&b);
    b = open_bench("--routine gemma_rmsnorm --batch_size 1 --hidden_size 8");
    run_impl(&b);
    assert_string_equal(host_run_resolved(b.run), "cpu/gemma_rmsnorm_rows");
    close_bench(&b);
    b = open_bench("--routine layernorm_quant --batch_size 1 --hidden_size 8");
    run_impl(&b);
    assert_string_equal(host_run_resolved(b.run), "cpu/layernorm_rows");
    close_bench(&b);
}

static void put_extremes(struct bench *b, const char *name)
{
    const struct fib_tensor *const tensor = tensor_of(b, name);
    for (int64_t r = 0; r < 6; r++)
        for (int64_t c = 0; c < 1000; c++)
            fib_dtype_store(tensor->dtype, host_run_data(b->run, name), (size_t)(r * 1000 + c),
                            norm_extreme(r, c));
}

static void test_extreme_values(void **state)
{
    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct bench b = open_kind(k, 6, 1000);
        put_extremes(&b, "x");
        run_impl(&b);
        assert_right(&b, kinds[k].routine);
        close_bench(&b);
    }
}

/* Nothing is left of a constant row but beta, however large the mean is. */
static void test_layernorm_of_a_constant_row(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine layernorm_quant --batch_size 2 --hidden_size 4099");
    put_constant(&b, "x", 30080.0);
    put_constant(&b, "gamma", 1000.0);
    put_constant(&b, "beta", 0.75);
    run_impl(&b);
    for (size_t i = 0; i < 2 * 4099; i++)
        assert_true(fib_dtype_load(FIB_FP8_E4M3, host_run_data(b.run, "out"), i) == 0.75);
    assert_right(&b, "constant row");
    close_bench(&b);
}

/* The update of a large residual must not overflow or drown the input. */
static void test_extreme_residuals(void **state)
{
    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct bench b = open_kind(k, 6, 1000);
        if (tensor_of(&b, "residual")) {
            put_extremes(&b, "residual");
            run_impl(&b);
            assert_right(&b, kinds[k].routine);
        }
        close_bench(&b);
    }
}

/* A row of zeros with eps 0 is 0 / 0 in oracle and implementation alike. */
static void test_nan_is_expected_where_it_is_right(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine rmsnorm --batch_size 2 --hidden_size 40 --eps 0");
    memset(host_run_data(b.run, "x"), 0, 40 * 2);
    run_impl(&b);
    assert_true(isnan(host_run_value(b.run, "y")[39]));
    assert_right(&b, "NaN row");
    put_constant(&b, "y", 0.0);
    assert_wrong(&b, "zero for NaN");
    close_bench(&b);
}

static void test_case_21_ones_stay_one(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"bfloat16", "float16"};
    static const int sizes[] = {4096, 8192, 16384};
    for (size_t i = 0; i < 6; i++) {
        char line[160];
        snprintf(line, sizeof line,
                 "--routine rmsnorm --batch_size 2 --hidden_size %d --input_dtype %s", sizes[i / 2],
                 dtypes[i % 2]);
        struct bench b = open_bench(line);
        put_constant(&b, "x", 1.0);
        put_constant(&b, "w", 1.0);
        run_impl(&b);
        const enum fib_dtype dtype = tensor_of(&b, "y")->dtype;
        for (size_t e = 0; e < 2 * (size_t)sizes[i / 2]; e++)
            assert_true(fib_dtype_load(dtype, host_run_data(b.run, "y"), e) == 1.0);
        put_constant(&b, "y", 4.0);
        assert_wrong(&b, "a sum that stuck at 256");
        close_bench(&b);
    }
}

static void check_quant_codes(const char *flags, const double wanted[4])
{
    static const double ramp[] = {1, 2, 3, 4};
    char line[256];
    snprintf(line, sizeof line, "--routine rmsnorm_quant --batch_size 2 --hidden_size 4096 %s",
             flags);
    struct bench b = open_bench(line);
    put(&b, "x", ramp, 4);
    put_constant(&b, "w", 1.0);
    run_impl(&b);
    const enum fib_dtype dtype = tensor_of(&b, "out")->dtype;
    for (size_t i = 0; i < 8192; i++)
        assert_true(fib_dtype_load(dtype, host_run_data(b.run, "out"), i) == wanted[i % 4]);
    assert_right(&b, flags);
    close_bench(&b);
}

static void test_case_23_clamp_and_direction_of_scale(void **state)
{
    (void)state;
    check_quant_codes("--out_dtype fp8_e5m2 --scale 0.001", (double[]){384, 768, 1024, 1536});
    check_quant_codes("--out_dtype fp8_e4m3 --scale 0.001", (double[]){352, 448, 448, 448});
    check_quant_codes("--out_dtype fp8_e4m3 --scale 0.5", (double[]){0.75, 1.5, 2.25, 3.0});
}

static void for_each_checked(struct bench *b, const char *what,
                             void (*spoil)(struct bench *b, const struct fib_tensor *tensor))
{
    const struct fib_problem *const problem = host_run_problem(b->run);
    for (int t = 0; t < problem->tensor_count; t++) {
        if (problem->tensors[t].check == FIB_CHECK_NONE)
            continue;
        host_run_store_oracle(b->run);
        spoil(b, &problem->tensors[t]);
        assert_wrong(b, what);
    }
}

/* 8 roundings of the output type. In float32 that is the size of honest noise; there the bite is
 * 2^-16, less than any 16-bit step on the way would cost. */
static void spoil_scaled(struct bench *b, const struct fib_tensor *tensor)
{
    const double *const value = host_run_value(b->run, tensor->name);
    const double step =
        tensor->dtype == FIB_F32 ? 0x1p-16 : 8.0 * fib_dtype_unit_roundoff(tensor->dtype);
    for (size_t i = 0; i < (size_t)fib_tensor_elems(tensor); i++)
        fib_dtype_store(tensor->dtype, host_run_data(b->run, tensor->name), i,
                        value[i] * (1.0 + step));
}

static void spoil_row(struct bench *b, const struct fib_tensor *tensor)
{
    const size_t row_bytes = (size_t)tensor->row_elems * fib_dtype_bytes(tensor->dtype);
    memset((char *)host_run_data(b->run, tensor->name) + 2 * row_bytes, 0, row_bytes);
}

static void test_teeth_scaled_and_zeroed(void **state)
{
    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct bench b = open_kind(k, 4, 4096);
        host_run_oracle(b.run);
        host_run_store_oracle(b.run);
        assert_right(&b, "the oracle's own result");
        for_each_checked(&b, "a scaled output", spoil_scaled);
        for_each_checked(&b, "a zeroed row", spoil_row);
        close_bench(&b);
    }
}

/* Element values of one row as float64, residual added. */
static void load_row(struct bench *b, size_t row, size_t cols, double *h)
{
    const struct fib_tensor *const x = tensor_of(b, "x"), *const r = tensor_of(b, "residual");
    for (size_t i = 0; i < cols; i++) {
        h[i] = fib_dtype_load(x->dtype, host_run_data(b->run, "x"), row * cols + i);
        if (r)
            h[i] += fib_dtype_load(r->dtype, host_run_data(b->run, "residual"), row * cols + i);
    }
}

static double weight_at(struct bench *b, const char *name, size_t i)
{
    return fib_dtype_load(tensor_of(b, name)->dtype, host_run_data(b->run, name), i);
}

/* h becomes the routine's result with statistics over the first `summed` columns only. */
static void norm_row(struct bench *b, double *h, size_t cols, size_t summed)
{
    const bool layer = tensor_of(b, "gamma") != NULL;
    const bool gemma = strncmp(b->plan->items[0].kase->routine->name, "gemma", 5) == 0;
    double mean = 0.0, square = 0.0;
    for (size_t i = 0; layer && i < summed; i++)
        mean += h[i] / (double)cols;
    for (size_t i = 0; i < summed; i++)
        square += (h[i] - mean) * (h[i] - mean) / (double)cols;
    const double factor = 1.0 / sqrt(square + 1e-6);
    for (size_t i = 0; i < cols; i++) {
        h[i] = (h[i] - mean) * factor;
        if (layer)
            h[i] = h[i] * weight_at(b, "gamma", i) + weight_at(b, "beta", i);
        else
            h[i] *= weight_at(b, "w", i) + (gemma ? 1.0 : 0.0);
    }
}

/* All rows with the last columns missing from the sums; `results` keeps them until the inputs may
 * be overwritten. */
static void store_partial(struct bench *b, const char *output, size_t summed)
{
    const struct fib_tensor *const out = tensor_of(b, output);
    const size_t rows = (size_t)host_run_problem(b->run)->row_count;
    const size_t cols = (size_t)out->row_elems;
    const double scale = tensor_of(b, "scale") ? weight_at(b, "scale", 0) : 1.0;
    const bool layer = tensor_of(b, "gamma") != NULL;
    double *const results = fib_zalloc_array(rows * cols, sizeof(double));
    for (size_t r = 0; r < rows; r++) {
        load_row(b, r, cols, results + r * cols);
        norm_row(b, results + r * cols, cols, summed);
    }
    host_run_store_oracle(b->run);
    for (size_t i = 0; i < rows * cols; i++) {
        double v = layer ? fib_dtype_round(FIB_BF16, results[i]) : results[i];
        v = layer ? fib_dtype_round(FIB_BF16, v / scale) : v / scale;
        fib_dtype_store(out->dtype, host_run_data(b->run, output), i, v);
    }
    free(results);
}

static const char *output_name(const struct bench *b)
{
    return tensor_of(b, "out") ? "out" : tensor_of(b, "y") ? "y" : "x";
}

static void test_teeth_columns_missing_from_the_sum(void **state)
{
    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct bench b = open_kind(k, 4, 4096);
        host_run_oracle(b.run);
        store_partial(&b, output_name(&b), 4096);
        assert_right(&b, "sums over all columns");
        close_bench(&b);
        b = open_kind(k, 4, 4096);
        host_run_oracle(b.run);
        store_partial(&b, output_name(&b), 4096 - 64);
        assert_wrong(&b, "sums without the last 64 columns");
        close_bench(&b);
    }
}

static void test_teeth_residual_not_updated(void **state)
{
    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct bench b = open_kind(k, 4, 256);
        const struct fib_tensor *const residual = tensor_of(&b, "residual");
        if (residual) {
            const size_t size_bytes = fib_tensor_bytes(residual);
            void *const before = fib_zalloc(size_bytes);
            memcpy(before, host_run_data(b.run, "residual"), size_bytes);
            run_impl(&b);
            assert_right(&b, kinds[k].routine);
            memcpy(host_run_data(b.run, "residual"), before, size_bytes);
            assert_wrong(&b, "a residual that was not updated");
            free(before);
        }
        close_bench(&b);
    }
}

static void test_teeth_wrong_clamp(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine rmsnorm_quant --batch_size 4 --hidden_size 256 "
                                "--out_dtype fp8_e5m2 --scale 0.001");
    host_run_oracle(b.run);
    const double *const value = host_run_value(b.run, "out");
    for (size_t i = 0; i < 4 * 256; i++)
        fib_dtype_store(FIB_FP8_E5M2, host_run_data(b.run, "out"), i,
                        fmin(448.0, fmax(-448.0, value[i])));
    assert_wrong(&b, "e5m2 clamped at 448");
    close_bench(&b);
}

/* Multiplying by the scale instead of dividing. */
static void test_teeth_scale_direction(void **state)
{
    (void)state;
    struct bench b =
        open_bench("--routine rmsnorm_quant --batch_size 4 --hidden_size 256 --scale 0.5");
    host_run_oracle(b.run);
    const double *const value = host_run_value(b.run, "out");
    for (size_t i = 0; i < 4 * 256; i++)
        fib_dtype_store(FIB_FP8_E4M3, host_run_data(b.run, "out"), i, value[i] * 0.25);
    assert_wrong(&b, "multiplied by the scale");
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_heads_and_long_rows),
        cmocka_unit_test(test_resolved_names),
        cmocka_unit_test(test_extreme_values),
        cmocka_unit_test(test_layernorm_of_a_constant_row),
        cmocka_unit_test(test_extreme_residuals),
        cmocka_unit_test(test_nan_is_expected_where_it_is_right),
        cmocka_unit_test(test_case_21_ones_stay_one),
        cmocka_unit_test(test_case_23_clamp_and_direction_of_scale),
        cmocka_unit_test(test_teeth_scaled_and_zeroed),
        cmocka_unit_test(test_teeth_columns_missing_from_the_sum),
        cmocka_unit_test(test_teeth_residual_not_updated),
        cmocka_unit_test(test_teeth_wrong_clamp),
        cmocka_unit_test(test_teeth_scale_direction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
