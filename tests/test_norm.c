/* The norm family's rows: flags, errors, tensors, costs, and oracles against hand-worked values. */
#include "tests/support.h"
#include "tests/host_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/routine.h"
#include "routines/routines.h"

static const struct fib_case *only_case(const struct fib_plan *plan)
{
    assert_int_equal(plan->count, 1);
    assert_non_null(plan->items[0].kase);
    return plan->items[0].kase;
}

/* A parsed line with its tensors on the host. */
struct bench {
    struct fib_plan *plan;
    struct host_run *run;
};

static struct bench open_bench(const char *line)
{
    struct bench b = {.plan = test_plan(line)};
    b.run = host_run_create(only_case(b.plan), 0);
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
    assert_true(t >= 0);
    return &problem->tensors[t];
}

/* Writes values[0 .. period) over and over into a tensor. */
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

static void assert_repeats(const double *values, size_t count, const double *wanted, size_t period,
                           double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(values[i] - wanted[i % period]) <= tolerance))
            fail_msg("element %zu is %.17g, not %.17g", i, values[i], wanted[i % period]);
}

static void test_costs(void **state)
{
    (void)state;
    static const struct {
        const char *routine;
        double bytes, flops;
    } rows[] = {
        {"rmsnorm", 532480, 655360},
        {"gemma_rmsnorm", 532480, 655360},
        {"fused_add_rmsnorm", 1056768, 786432},
        {"gemma_fused_add_rmsnorm", 1056768, 786432},
        {"rmsnorm_quant", 401408, 655360},
        {"fused_add_rmsnorm_quant", 925696, 786432},
        {"layernorm_quant", 425984, 917504},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "--routine %s --batch_size 32 --hidden_size 4096",
                 rows[i].routine);
        struct bench b = open_bench(line);
        const struct fib_cost *const cost = &host_run_problem(b.run)->cost;
        assert_true(cost->traffic_bytes == rows[i].bytes);
        assert_true(cost->flops == rows[i].flops);
        close_bench(&b);
    }
}

static void test_cost_of_float32_is_twice_as_many_bytes(void **state)
{
    (void)state;
    struct bench b =
        open_bench("--routine rmsnorm --batch_size 32 --hidden_size 4096 --input_dtype float32");
    assert_true(host_run_problem(b.run)->cost.traffic_bytes == 2 * 532480.0);
    assert_true(host_run_problem(b.run)->cost.flops == 655360.0);
    close_bench(&b);
}

static void test_heads_make_rows(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine rmsnorm --batch_size 3 --num_heads 5 --hidden_size 64");
    const struct fib_problem *const problem = host_run_problem(b.run);
    assert_int_equal(problem->row_count, 15);
    assert_int_equal(problem->boundary_row, 5);
    const struct fib_tensor *const x = tensor_of(&b, "x");
    assert_int_equal(x->rank, 3);
    assert_int_equal(x->shape[0], 3);
    assert_int_equal(x->shape[1], 5);
    assert_int_equal(x->shape[2], 64);
    assert_int_equal(tensor_of(&b, "w")->shape[0], 64);
    assert_int_equal(tensor_of(&b, "y")->row_elems, 64);
    close_bench(&b);
}

static void test_heads_are_ignored_where_not_used(void **state)
{
    (void)state;
    struct bench b =
        open_bench("--routine fused_add_rmsnorm --batch_size 3 --num_heads 5 --hidden_size 64");
    assert_int_equal(host_run_problem(b.run)->row_count, 3);
    assert_int_equal(tensor_of(&b, "x")->rank, 2);
    close_bench(&b);
}

static void test_roles(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine fused_add_rmsnorm_quant --batch_size 2 --hidden_size 8");
    assert_int_equal(tensor_of(&b, "x")->role, FIB_INPUT);
    assert_int_equal(tensor_of(&b, "residual")->role, FIB_INOUT);
    assert_int_equal(tensor_of(&b, "residual")->check, FIB_CHECK_FLOAT);
    assert_int_equal(tensor_of(&b, "scale")->role, FIB_SCALAR);
    assert_int_equal(tensor_of(&b, "out")->role, FIB_OUTPUT);
    assert_int_equal(tensor_of(&b, "out")->check, FIB_CHECK_CODES);
    assert_int_equal(tensor_of(&b, "out")->dtype, FIB_FP8_E4M3);
    close_bench(&b);
    b = open_bench("--routine fused_add_rmsnorm --batch_size 2 --hidden_size 8");
    assert_int_equal(tensor_of(&b, "x")->role, FIB_INOUT);
    assert_int_equal(tensor_of(&b, "x")->check, FIB_CHECK_FLOAT);
    assert_int_equal(tensor_of(&b, "residual")->role, FIB_INOUT);
    close_bench(&b);
}

static void test_every_row_is_built_or_says_why_not(void **state)
{
    (void)state;
    static const char *const built[] = {
        "rmsnorm",       "fused_add_rmsnorm",       "gemma_rmsnorm",  "gemma_fused_add_rmsnorm",
        "rmsnorm_quant", "fused_add_rmsnorm_quant", "layernorm_quant"};
    for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++)
        assert_null(fib_registry_routine(test_registry(), built[i])->unavailable);
    for (size_t i = 0; i < fib_family_norm.routine_count; i++) {
        const struct fib_routine *const r = &fib_family_norm.routines[i];
        assert_non_null(r->check);
        if (r->unavailable) {
            assert_contains(r->unavailable, "not built");
            continue;
        }
        assert_non_null(r->describe);
        assert_non_null(r->reference);
        assert_non_null(r->layout_note);
        assert_non_null(r->cost_note);
        assert_non_null(fib_registry_impl(test_registry(), r->name, "cpu", FIB_DEVICE_CPU));
    }
}

/* A sum of squares kept in bfloat16 sticks at 256, in float16 at 2048: the result would be 4. */
static void test_case_21_ones_stay_one(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"bfloat16", "float16", "float32"};
    static const int sizes[] = {4096, 8192, 16384};
    for (size_t d = 0; d < 3; d++)
        for (size_t s = 0; s < 3; s++) {
            char line[160];
            snprintf(line, sizeof line,
                     "--routine rmsnorm --batch_size 2 --hidden_size %d --input_dtype %s", sizes[s],
                     dtypes[d]);
            struct bench b = open_bench(line);
            put_constant(&b, "x", 1.0);
            put_constant(&b, "w", 1.0);
            host_run_oracle(b.run);
            const double wanted = 1.0 / sqrt(1.0 + (double)1e-6f);
            assert_repeats(host_run_value(b.run, "y"), 2 * (size_t)sizes[s], &wanted, 1, 1e-14);
            host_run_store_oracle(b.run);
            if (d < 2)
                assert_true(
                    fib_dtype_load(tensor_of(&b, "y")->dtype, host_run_data(b.run, "y"), 7) == 1.0);
            close_bench(&b);
        }
}

static void check_quant_codes(const char *routine, const char *flags, const double wanted[4])
{
    static const double ramp[] = {1, 2, 3, 4};
    char line[256];
    snprintf(line, sizeof line, "--routine %s --batch_size 2 --hidden_size 4096 %s", routine,
             flags);
    struct bench b = open_bench(line);
    put(&b, "x", ramp, 4);
    put_constant(&b, "w", 1.0);
    if (fib_problem_find(host_run_problem(b.run), "residual") >= 0)
        put_constant(&b, "residual", 0.0);
    host_run_oracle(b.run);
    assert_repeats(host_run_value(b.run, "out"), 8192, wanted, 4, 0.0);
    close_bench(&b);
}

/* rms of 1 2 3 4 is 2.738613. */
static void test_case_23_clamp_and_direction_of_scale(void **state)
{
    (void)state;
    static const double e5m2[] = {384, 768, 1024, 1536};
    static const double e4m3[] = {352, 448, 448, 448};
    static const double halves[] = {0.75, 1.5, 2.25, 3.0};
    static const char *const routines[] = {"rmsnorm_quant", "fused_add_rmsnorm_quant"};
    for (size_t i = 0; i < 2; i++) {
        check_quant_codes(routines[i], "--out_dtype fp8_e5m2 --scale 0.001", e5m2);
        check_quant_codes(routines[i], "--out_dtype fp8_e4m3 --scale 0.001", e4m3);
        check_quant_codes(routines[i], "--scale 0.5", halves);
    }
}

/* x = 3 4 with eps 0: rms = sqrt(12.5) = 3.535534, so x / rms = 0.848528 1.131371. */
static void test_gemma_adds_one_to_the_weight(void **state)
{
    (void)state;
    static const double x[] = {3, 4}, w[] = {0.5, -1};
    static const double plain[] = {0.42426406871192851, -1.1313708498984760};
    static const double gemma[] = {1.2727922061357855, 0.0};
    struct bench b = open_bench("--routine rmsnorm --batch_size 2 --hidden_size 2 --eps 0");
    put(&b, "x", x, 2);
    put(&b, "w", w, 2);
    host_run_oracle(b.run);
    assert_repeats(host_run_value(b.run, "y"), 4, plain, 2, 1e-15);
    close_bench(&b);
    b = open_bench("--routine gemma_rmsnorm --batch_size 2 --hidden_size 2 --eps 0");
    put(&b, "x", x, 2);
    put(&b, "w", w, 2);
    host_run_oracle(b.run);
    assert_repeats(host_run_value(b.run, "y"), 4, gemma, 2, 1e-15);
    close_bench(&b);
}

/* 256 + 1.5 is no bfloat16 (neighbours 256, 258): the norm must see 257.5, the residual 258. */
static void test_residual_is_unrounded_for_the_norm(void **state)
{
    (void)state;
    static const double x[] = {256, 0}, r[] = {1.5, 3}, w[] = {1, 1};
    const double rms = sqrt((257.5 * 257.5 + 9.0) / 2.0);
    const double wanted_x[] = {257.5 / rms, 3.0 / rms}, wanted_residual[] = {257.5, 3};
    struct bench b =
        open_bench("--routine fused_add_rmsnorm --batch_size 1 --hidden_size 2 --eps 0");
    put(&b, "x", x, 2);
    put(&b, "residual", r, 2);
    put(&b, "w", w, 2);
    host_run_oracle(b.run);
    assert_repeats(host_run_value(b.run, "x"), 2, wanted_x, 2, 1e-15);
    assert_repeats(host_run_value(b.run, "residual"), 2, wanted_residual, 2, 0.0);
    host_run_store_oracle(b.run);
    assert_true(fib_dtype_load(FIB_BF16, host_run_data(b.run, "residual"), 0) == 258.0);
    close_bench(&b);
}

/* x = 1 2 3 4: mean 2.5, var 1.25. With gamma 2, beta 1: -1.683282 0.105573 1.894427 3.683282; to
 * bfloat16: -1.6796875 0.10546875 1.890625 3.6875; halved; the second is a tie between the e4m3
 * codes 13 and 14 * 2^-8, which goes to the even one. */
static void test_layernorm_by_hand(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4};
    static const double wanted[] = {-0.8125, 0.0546875, 0.9375, 1.875};
    struct bench b =
        open_bench("--routine layernorm_quant --batch_size 3 --hidden_size 4 --eps 0 --scale 2");
    put(&b, "x", x, 4);
    put_constant(&b, "gamma", 2.0);
    put_constant(&b, "beta", 1.0);
    host_run_oracle(b.run);
    assert_repeats(host_run_value(b.run, "out"), 12, wanted, 4, 0.0);
    close_bench(&b);
}

/* A constant row leaves beta. 1.0627 is above the middle of the e4m3 neighbours 1 and 1.125;
 * rounded to bfloat16 first it is that middle, 1.0625, and goes to the even code. */
static void test_layernorm_rounds_through_bf16(void **state)
{
    (void)state;
    static const double wanted = 1.0;
    struct bench b = open_bench("--routine layernorm_quant --batch_size 1 --hidden_size 16");
    put_constant(&b, "x", 3.0);
    put_constant(&b, "gamma", 5.0);
    put_constant(&b, "beta", 1.0627);
    host_run_oracle(b.run);
    assert_repeats(host_run_value(b.run, "out"), 16, &wanted, 1, 0.0);
    close_bench(&b);
}

static void test_oracle_rows_are_independent(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine fused_add_rmsnorm --batch_size 7 --hidden_size 300");
    const struct fib_problem *const problem = host_run_problem(b.run);
    const int x = fib_problem_find(problem, "x"), r = fib_problem_find(problem, "residual");
    struct fib_oracle_inputs inputs = {{0}};
    struct fib_oracle_rows rows = {{0}, {0}};
    double *const space = fib_zalloc_array(4 * 600, sizeof(double));
    for (int t = 0; t < problem->tensor_count; t++)
        inputs.data[t] = host_run_data(b.run, problem->tensors[t].name);
    rows.value[x] = space;
    rows.terms[x] = space + 600;
    rows.value[r] = space + 1200;
    rows.terms[r] = space + 1800;
    host_run_oracle(b.run);
    const struct fib_case *const kase = only_case(b.plan);
    kase->routine->reference(kase, problem, &inputs, 4, 6, &rows);
    assert_memory_equal(space, host_run_value(b.run, "x") + 1200, 600 * sizeof(double));
    assert_memory_equal(space + 600, host_run_terms(b.run, "x") + 1200, 600 * sizeof(double));
    assert_memory_equal(space + 1200, host_run_value(b.run, "residual") + 1200,
                        600 * sizeof(double));
    free(space);
    close_bench(&b);
}

static void assert_refused(const char *line, const char *part, const char *other_part)
{
    struct fib_error err = {0};
    assert_int_equal(test_plan_fails(line, &err), FIB_ERR_USAGE);
    assert_contains(err.text, part);
    assert_contains(err.text, other_part);
}

static void test_flags_out_of_range(void **state)
{
    (void)state;
    assert_refused("--routine rmsnorm --batch_size 0 --hidden_size 4096", "--batch_size", "0");
    assert_refused("--routine rmsnorm --batch_size 4 --hidden_size 0", "--hidden_size", "0");
    assert_refused("--routine rmsnorm --batch_size 4 --hidden_size 1048577", "--hidden_size",
                   "1048576");
    assert_refused("--routine rmsnorm --batch_size 4 --hidden_size 8 --num_heads 0", "--num_heads",
                   "65536");
    assert_refused("--routine rmsnorm --batch_size 4 --hidden_size 8 --eps -1", "--eps", "-1");
    assert_refused("--routine rmsnorm --batch_size 4 --hidden_size 8 --eps nan", "--eps", "nan");
    assert_refused("--routine rmsnorm_quant --batch_size 4 --hidden_size 8 --scale 0", "--scale",
                   "0");
    assert_refused("--routine rmsnorm --hidden_size 8", "batch_size", "required");
    assert_refused("--routine fused_qk_rmsnorm_rope --batch_size 1 --hidden_size 128", "num_heads",
                   "required");
}

static void test_dtypes_not_allowed(void **state)
{
    (void)state;
    assert_refused("--routine layernorm_quant --batch_size 4 --hidden_size 8 --input_dtype float16",
                   "float16", "bfloat16");
    assert_refused("--routine rmsnorm_quant --batch_size 4 --hidden_size 8 --input_dtype float32",
                   "float32", "float16");
    assert_refused("--routine rmsnorm_quant --batch_size 4 --hidden_size 8 --out_dtype nvfp4",
                   "nvfp4", "fp8_e5m2");
    assert_refused("--routine rmsnorm --batch_size 4 --hidden_size 8 --input_dtype fp16", "fp16",
                   "float16");
    assert_refused("--routine fused_dit_layernorm --batch_size 4 --hidden_size 8 --dit_mode x",
                   "dit_mode", "residual_scale_shift");
}

static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    assert_refused("--routine rmsnorm --batch_size 67108864 --hidden_size 1048576",
                   "--batch_size 67108864 --hidden_size 1048576", "2^42");
    assert_refused("--routine rmsnorm --batch_size 67108864 --hidden_size 65536 --num_heads 2",
                   "--num_heads 2", "2^42");
    assert_refused("--routine rmsnorm_fp4quant --batch_size 1 --hidden_size 72", "--hidden_size 72",
                   "multiple of 16");
    assert_refused("--routine rmsnorm_fp4quant --batch_size 1 --hidden_size 48", "--hidden_size 48",
                   "at least 64");
    assert_refused(
        "--routine add_rmsnorm_fp4quant --batch_size 1 --hidden_size 80 --out_dtype mxfp4", "mxfp4",
        "multiple of 32");
    assert_refused("--routine fused_dit_layernorm --batch_size 67108864 --hidden_size 1048576",
                   "rows of 3072", "2^42");
    assert_refused(
        "--routine fused_qk_rmsnorm_rope --batch_size 1 --hidden_size 4224 --num_heads 33",
        "--num_heads 33", "32");
    assert_refused("--routine fused_qk_rmsnorm_rope --batch_size 1 --hidden_size 100 --num_heads 2",
                   "--hidden_size 100", "--num_heads 2");
    assert_refused("--routine fused_qk_rmsnorm_rope --batch_size 1 --hidden_size 128 "
                   "--num_heads 1 --ppf 65536 --pph 65536 --ppw 65536",
                   "--ppf 65536", "2^42");
}

/* Every line of the family's lists is a good case; the list for comparisons stays short. */
static void test_lists_parse(void **state)
{
    (void)state;
    static const char *const names[] = {"norm.txt", "norm_models.txt"};
    const char *const root = getenv("FIB_SOURCE_ROOT");
    for (size_t i = 0; i < 2; i++) {
        char line[1024];
        snprintf(line, sizeof line, "%s/testlists/%s", root ? root : ".", names[i]);
        FILE *const file = fopen(line, "r");
        if (!file) {
            print_message("%s: not there\n", line);
            skip();
        }
        fclose(file);
        snprintf(line, sizeof line, "--testlist '%s/testlists/%s'", root ? root : ".", names[i]);
        struct fib_plan *plan = test_plan(line);
        assert_int_equal(plan->bad_line_count, 0);
        assert_int_equal(plan->warning_count, 0);
        assert_in_range(plan->count, 30, 300);
        fib_plan_free(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_cost_of_float32_is_twice_as_many_bytes),
        cmocka_unit_test(test_heads_make_rows),
        cmocka_unit_test(test_heads_are_ignored_where_not_used),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_every_row_is_built_or_says_why_not),
        cmocka_unit_test(test_case_21_ones_stay_one),
        cmocka_unit_test(test_case_23_clamp_and_direction_of_scale),
        cmocka_unit_test(test_gemma_adds_one_to_the_weight),
        cmocka_unit_test(test_residual_is_unrounded_for_the_norm),
        cmocka_unit_test(test_layernorm_by_hand),
        cmocka_unit_test(test_layernorm_rounds_through_bf16),
        cmocka_unit_test(test_oracle_rows_are_independent),
        cmocka_unit_test(test_flags_out_of_range),
        cmocka_unit_test(test_dtypes_not_allowed),
        cmocka_unit_test(test_shapes_that_do_not_fit),
        cmocka_unit_test(test_lists_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
