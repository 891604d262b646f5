/* The gemm family: flags, errors, tensors and costs; the oracle against exact sums; the cpu and
 * openblas implementations against the oracle; what the check must catch. */
#include "tests/support.h"
#include "tests/host_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/backend.h"
#include "core/routine.h"
#include "core/text.h"

static const char *const labels[] = {"cpu", "openblas"};
enum { LABEL_COUNT = sizeof(labels) / sizeof(labels[0]) };

/* A parsed line with its tensors on the host. */
struct bench {
    struct fib_plan *plan;
    struct host_run *run;
};

static const struct fib_case *only_case(const struct fib_plan *plan)
{
    assert_int_equal(plan->count, 1);
    assert_non_null(plan->items[0].kase);
    return plan->items[0].kase;
}

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
    const struct fib_problem *problem = host_run_problem(b->run);
    const int index = fib_problem_find(problem, name);
    assert_true(index >= 0);
    return &problem->tensors[index];
}

static void put(struct bench *b, const char *name, int64_t index, double value)
{
    fib_dtype_store(tensor_of(b, name)->dtype, host_run_data(b->run, name), (size_t)index, value);
}

static double get(struct bench *b, const char *name, int64_t index)
{
    return fib_dtype_load(tensor_of(b, name)->dtype, host_run_data(b->run, name), (size_t)index);
}

static void put_all(struct bench *b, const char *name, double value)
{
    for (int64_t i = 0; i < fib_tensor_elems(tensor_of(b, name)); i++)
        put(b, name, i, value);
}

/* False when the label's library is not there (already said so); fails the test otherwise. */
static bool run_label(struct bench *b, const char *label)
{
    struct fib_error err = {0};
    const enum fib_status st = host_run_impl(b->run, label, &err);
    if (st == FIB_ERR_UNSUPPORTED && strcmp(label, "openblas") == 0) {
        print_message("openblas left out: %s\n", err.text);
        return false;
    }
    if (st != FIB_OK)
        fail_msg("%s: %s", label, err.text);
    return true;
}

static bool passes(struct bench *b)
{
    struct fib_verification verification = {0};
    host_run_check(b->run, &verification);
    return !verification.failed;
}

static void assert_passes(struct bench *b, const char *what)
{
    struct fib_verification verification = {0};
    host_run_check(b->run, &verification);
    if (verification.failed)
        fail_msg("%s: %s", what, verification.message);
}

static void make_positive(struct bench *b, const char *name)
{
    for (int64_t i = 0; i < fib_tensor_elems(tensor_of(b, name)); i++)
        put(b, name, i, fabs(get(b, name, i)));
}

static void check_line(const char *line)
{
    struct bench b = open_bench(line);
    host_run_oracle(b.run);
    for (int i = 0; i < LABEL_COUNT; i++) {
        char what[256];
        snprintf(what, sizeof(what), "%s, %s", line, labels[i]);
        if (run_label(&b, labels[i]))
            assert_passes(&b, what);
    }
    close_bench(&b);
}

static void assert_all_equal(struct bench *b, double wanted, const char *what)
{
    const int64_t count = fib_tensor_elems(tensor_of(b, "out"));
    for (int64_t i = 0; i < count; i++)
        if (get(b, "out", i) != wanted)
            fail_msg("%s: out[%lld] is %g, not %g", what, (long long)i, get(b, "out", i), wanted);
}

/* The oracle and both implementations give exactly this everywhere. */
static void assert_exact(struct bench *b, double wanted)
{
    host_run_oracle(b->run);
    const double *const value = host_run_value(b->run, "out");
    const int64_t count = fib_tensor_elems(tensor_of(b, "out"));
    for (int64_t i = 0; i < count; i++)
        assert_true(value[i] == wanted);
    for (int i = 0; i < LABEL_COUNT; i++)
        if (run_label(b, labels[i]))
            assert_all_equal(b, wanted, labels[i]);
}

/* ---- tensors and costs ---- */

static void assert_cost(const char *line, double flops, double bytes)
{
    struct fib_plan *plan = test_plan(line);
    struct fib_problem problem = {0};
    const struct fib_case *kase = only_case(plan);
    kase->routine->describe(kase, &problem);
    if (problem.cost.flops != flops || problem.cost.traffic_bytes != bytes)
        fail_msg("%s: %.0f flops, %.0f bytes", line, problem.cost.flops,
                 problem.cost.traffic_bytes);
    fib_plan_free(&plan);
}

static void test_case_41_bytes_count_the_batch(void **state)
{
    (void)state;
    assert_cost("--routine bmm_fp8 --batch_size 256 --m 1 --n 1024 --k 7168 --out_dtype bfloat16",
                3758096384.0, 1881407488.0);
    assert_cost("--routine bmm_fp8 --batch_size 512 --m 1 --n 1024 --k 7168 --out_dtype bfloat16",
                2 * 3758096384.0, 2 * 1881407488.0);
    /* 2 x 3 x 5 x 7 x 2 flops; 2 (3 x 7 + 5 x 7) elements of 2 bytes and 2 x 15 of 4 */
    assert_cost("--routine bmm_bf16 --batch_size 2 --m 3 --n 5 --k 7 --out_dtype float32", 420,
                2 * (21 + 35) * 2 + 30 * 4);
    assert_cost("--routine bmm_bf16 --batch_size 4 --m 3 --n 5 --k 7 --out_dtype float32", 840,
                2 * (2 * (21 + 35) * 2 + 30 * 4));
}

static void test_cost_of_the_bias(void **state)
{
    (void)state;
    assert_cost("--routine mm_bf16 --m 3 --n 5 --k 7", 210, 2 * (21 + 35 + 15));
    assert_cost("--routine mm_bf16 --m 3 --n 5 --k 7 --bias", 210 + 15, 2 * (21 + 35 + 15) + 10);
}

static void test_tensors_of_bmm_fp8(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine bmm_fp8 --batch_size 2 --m 3 --n 5 --k 7 "
                                "--input_dtype fp8_e5m2 --out_dtype float16");
    const struct fib_problem *problem = host_run_problem(b.run);
    assert_int_equal(problem->tensor_count, 5);
    assert_int_equal(problem->row_count, 6);
    assert_int_equal(problem->boundary_row, 3);
    assert_true(problem->row_flops == 70.0);
    assert_int_equal(tensor_of(&b, "a")->dtype, FIB_FP8_E5M2);
    assert_int_equal(tensor_of(&b, "b")->dtype, FIB_FP8_E4M3);
    assert_int_equal(tensor_of(&b, "b")->shape[1], 5);
    assert_int_equal(tensor_of(&b, "b")->shape[2], 7);
    assert_int_equal(tensor_of(&b, "out")->dtype, FIB_F16);
    assert_int_equal(tensor_of(&b, "out")->row_elems, 5);
    assert_int_equal(tensor_of(&b, "a_scale")->role, FIB_SCALAR);
    /* bound of the generator / largest value of the format */
    assert_true(get(&b, "a_scale", 0) == (double)(float)(FIB_NORMAL_MAX / 57344));
    assert_true(get(&b, "b_scale", 0) == (double)(float)(FIB_NORMAL_MAX / 448));
    close_bench(&b);
}

static void test_fp8_operands_use_their_range(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine bmm_fp8 --m 64 --n 1 --k 1024");
    double sum_sq = 0, largest = 0;
    for (int64_t i = 0; i < 64 * 1024; i++) {
        const double value = get(&b, "a", i) * get(&b, "a_scale", 0);
        sum_sq += value * value;
        largest = fmax(largest, fabs(get(&b, "a", i)));
    }
    assert_true(fabs(sum_sq / (64 * 1024) - 1.0) < 0.05);
    assert_true(largest > 288.0 && largest <= 448.0);
    close_bench(&b);
}

static void test_flags_that_a_routine_does_not_read(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine mm_bf16 --m 2 --n 3 --k 4 --batch_size 7 "
                                "--input_dtype fp8_e5m2");
    assert_int_equal(host_run_problem(b.run)->row_count, 2);
    assert_int_equal(tensor_of(&b, "a")->dtype, FIB_BF16);
    assert_int_equal(fib_tensor_elems(tensor_of(&b, "a")), 8);
    close_bench(&b);
}

/* ---- exact sums ---- */

static void test_case_27_no_tail_is_lost(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine mm_bf16 --m 16 --n 64 --k 8160");
    put_all(&b, "a", 1.0);
    put_all(&b, "b", 1.0);
    assert_exact(&b, 8160.0);
    close_bench(&b);
}

static void test_case_27_partial_sums_that_cancel(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine mm_bf16 --m 16 --n 64 --k 8160");
    put_all(&b, "a", 1.0);
    for (int64_t i = 0; i < 64 * 8160; i++) {
        const int64_t k = i % 8160;
        put(&b, "b", i, k < 4080 ? 1.0 : k < 4080 + 4079 ? -1.0 : 0.0);
    }
    assert_exact(&b, 1.0);
    close_bench(&b);
}

static void test_case_24_scales_are_one_number_each(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine bmm_fp8 --batch_size 2 --m 4 --n 16 --k 32");
    put_all(&b, "a", 1.0);
    put_all(&b, "b", 1.0);
    put_all(&b, "a_scale", 0.5);
    put_all(&b, "b_scale", 0.25);
    assert_exact(&b, 4.0);
    close_bench(&b);
}

static void test_bias_is_added_before_rounding(void **state)
{
    (void)state;
    /* 256 + 1 + 1: a bf16 sum of 257 would have become 256 before the second 1 came */
    struct bench b = open_bench("--routine mm_bf16 --m 3 --n 18 --k 257 --bias");
    put_all(&b, "a", 1.0);
    put_all(&b, "b", 1.0);
    put_all(&b, "bias", 1.0);
    assert_exact(&b, 258.0);
    close_bench(&b);
}

static void test_every_output_has_its_own_operands(void **state)
{
    (void)state;
    /* a picks element 10 b + i of each column, which names batch entry, row and column */
    struct bench b = open_bench("--routine bmm_bf16 --batch_size 3 --m 5 --n 6 --k 40 "
                                "--out_dtype float32");
    put_all(&b, "a", 0.0);
    for (int64_t e = 0; e < 3; e++) {
        for (int64_t i = 0; i < 5; i++)
            put(&b, "a", (e * 5 + i) * 40 + 10 * e + i, 1.0);
        for (int64_t j = 0; j < 6; j++)
            for (int64_t k = 0; k < 40; k++)
                put(&b, "b", (e * 6 + j) * 40 + k, (double)(j * 40 + k));
    }
    host_run_oracle(b.run);
    for (int l = 0; l < LABEL_COUNT; l++) {
        if (!run_label(&b, labels[l]))
            continue;
        for (int64_t at = 0; at < 3 * 5 * 6; at++) {
            const double wanted = (double)(at % 6 * 40 + at / 30 * 10 + at / 6 % 5);
            assert_true(host_run_value(b.run, "out")[at] == wanted);
            assert_true(host_run_terms(b.run, "out")[at] == wanted);
            assert_true(get(&b, "out", at) == wanted);
        }
    }
    close_bench(&b);
}

static void test_terms_are_magnitudes(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine bmm_fp8 --m 1 --n 1 --k 3");
    const double a[] = {2, -3, 4}, w[] = {1, 1, -0.5};
    for (int i = 0; i < 3; i++) {
        put(&b, "a", i, a[i]);
        put(&b, "b", i, w[i]);
    }
    put(&b, "a_scale", 0, 0.5);
    put(&b, "b_scale", 0, -2);
    host_run_oracle(b.run);
    assert_true(host_run_value(b.run, "out")[0] == 3.0);
    assert_true(host_run_terms(b.run, "out")[0] == 7.0);
    close_bench(&b);
}

static void test_oracle_rows_are_independent(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine bmm_bf16 --batch_size 3 --m 19 --n 5 --k 2100");
    const struct fib_case *kase = only_case(b.plan);
    host_run_oracle(b.run);
    const double *const whole = host_run_value(b.run, "out");
    const struct fib_oracle_inputs inputs = {
        .data = {host_run_data(b.run, "a"), host_run_data(b.run, "b")}};
    const int64_t ranges[][2] = {{0, 1}, {18, 20}, {56, 57}, {10, 50}};
    double value[40 * 5], terms[40 * 5];
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const int64_t first = ranges[i][0], last = ranges[i][1];
        const struct fib_oracle_rows rows = {.value = {NULL, NULL, value},
                                             .terms = {NULL, NULL, terms}};
        kase->routine->reference(kase, host_run_problem(b.run), &inputs, first, last, &rows);
        assert_memory_equal(value, whole + first * 5, (size_t)(last - first) * 5 * sizeof(double));
    }
    close_bench(&b);
}

/* ---- implementations against the oracle ---- */

static void test_case_28_every_m(void **state)
{
    (void)state;
    static const int ms[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129};
    static const char *const routines[] = {"mm_bf16", "bmm_bf16", "bmm_fp8"};
    for (size_t r = 0; r < sizeof(routines) / sizeof(routines[0]); r++)
        for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
            char line[128];
            snprintf(line, sizeof(line), "--routine %s --m %d --n 72 --k 96", routines[r], ms[i]);
            check_line(line);
        }
}

static void test_case_26_odd_shapes_of_bmm_fp8(void **state)
{
    (void)state;
    check_line("--routine bmm_fp8 --batch_size 1 --m 63 --n 1000 --k 7170");
    check_line("--routine bmm_fp8 --batch_size 1 --m 64 --n 1000 --k 7170");
    check_line("--routine bmm_fp8 --batch_size 1 --m 63 --n 1001 --k 7170");
    check_line("--routine bmm_fp8 --batch_size 1 --m 63 --n 1000 --k 7171");
}

static void test_odd_shapes_and_dtypes(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "mm_bf16 --out_dtype bfloat16",
        "mm_bf16 --out_dtype float16 --bias",
        "mm_bf16 --out_dtype float32",
        "mm_bf16 --out_dtype float32 --bias",
        "bmm_bf16 --out_dtype bfloat16 --batch_size 3",
        "bmm_bf16 --out_dtype float16 --batch_size 2",
        "bmm_bf16 --out_dtype float32 --batch_size 5",
        "bmm_fp8 --batch_size 3 --input_dtype fp8_e4m3 --mat2_dtype fp8_e4m3",
        "bmm_fp8 --batch_size 2 --input_dtype fp8_e5m2 --mat2_dtype fp8_e4m3",
        "bmm_fp8 --batch_size 2 --input_dtype fp8_e4m3 --mat2_dtype fp8_e5m2",
        "bmm_fp8 --batch_size 2 --input_dtype fp8_e5m2 --mat2_dtype fp8_e5m2 --out_dtype float16",
    };
    static const int shapes[][3] = {{1, 1, 1},    {1, 3, 17},    {2, 130, 15}, {5, 1, 1025},
                                    {7, 5, 1040}, {33, 129, 65}, {37, 6, 2051}};
    for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++)
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            char line[192];
            snprintf(line, sizeof(line), "--routine %s --m %d --n %d --k %d", heads[h],
                     shapes[i][0], shapes[i][1], shapes[i][2]);
            check_line(line);
        }
}

static void test_extreme_values(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"fp8_e4m3", "fp8_e5m2"};
    for (int d = 0; d < 2; d++) {
        char line[128];
        snprintf(line, sizeof(line), "--routine bmm_fp8 --m 5 --n 9 --k 64 --input_dtype %s",
                 dtypes[d]);
        struct bench b = open_bench(line);
        const double largest = fib_dtype_max(tensor_of(&b, "a")->dtype);
        const double smallest = 2 * fib_dtype_half_tiny(tensor_of(&b, "a")->dtype);
        const double values[] = {largest, -largest, smallest, -smallest, 0.0, 1.0, -0.0};
        for (int64_t i = 0; i < 5 * 64; i++)
            put(&b, "a", i, values[i % 7]);
        host_run_oracle(b.run);
        for (int l = 0; l < LABEL_COUNT; l++)
            if (run_label(&b, labels[l]))
                assert_passes(&b, line);
        close_bench(&b);
    }
}

static void test_infinity_and_nan_reach_their_outputs(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine mm_bf16 --m 4 --n 6 --k 33");
    put_all(&b, "a", 1.0);
    put_all(&b, "b", 1.0);
    put(&b, "a", 1 * 33 + 32, INFINITY);
    put(&b, "a", 3 * 33 + 5, NAN);
    host_run_oracle(b.run);
    for (int l = 0; l < LABEL_COUNT; l++) {
        if (!run_label(&b, labels[l]))
            continue;
        for (int64_t j = 0; j < 6; j++) {
            assert_true(get(&b, "out", j) == 33.0);
            assert_true(get(&b, "out", 6 + j) == INFINITY);
            assert_true(isnan(get(&b, "out", 18 + j)));
        }
    }
    close_bench(&b);
}

/* Sums of numbers of one sign are the hard case of a float32 accumulator. */
static void test_cpu_sums_of_one_sign(void **state)
{
    (void)state;
    static const int ks[] = {16, 32, 256, 512, 1024, 1040, 4096, 20000};
    for (size_t i = 0; i < sizeof(ks) / sizeof(ks[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "--routine mm_bf16 --m 33 --n 65 --k %d --out_dtype float32",
                 ks[i]);
        struct bench b = open_bench(line);
        make_positive(&b, "a");
        make_positive(&b, "b");
        host_run_oracle(b.run);
        assert_true(run_label(&b, "cpu"));
        assert_passes(&b, line);
        close_bench(&b);
    }
}

static void test_resolved_names(void **state)
{
    (void)state;
    struct bench b = open_bench("--routine mm_bf16 --m 4 --n 8 --k 16");
    run_label(&b, "cpu");
    assert_string_equal(host_run_resolved(b.run), "cpu/gemv_rows");
    if (run_label(&b, "openblas"))
        assert_string_equal(host_run_resolved(b.run), "openblas/sgemm");
    close_bench(&b);
    b = open_bench("--routine bmm_fp8 --m 5 --n 8 --k 16");
    run_label(&b, "cpu");
    assert_string_equal(host_run_resolved(b.run), "cpu/gemm_blocked");
    close_bench(&b);
}

/* Ring slots share workspace and library of the first one. */
static void check_slots(const char *label)
{
    struct bench b = open_bench("--routine bmm_fp8 --batch_size 2 --m 9 --n 20 --k 50");
    const struct fib_impl *impl =
        fib_registry_impl(test_registry(), "bmm_fp8", label, FIB_DEVICE_CPU);
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    assert_non_null(impl);
    assert_int_equal(fib_device_cpu_open(NULL, &device, &err), FIB_OK);
    struct fib_prepare_args args = {
        .kase = only_case(b.plan), .problem = host_run_problem(b.run), .device = device};
    for (int t = 0; t < args.problem->tensor_count; t++)
        args.data[t] = host_run_data(b.run, args.problem->tensors[t].name);
    struct fib_prepared *first = NULL, *second = NULL;
    host_run_oracle(b.run);
    if (impl->prepare(&args, &first, &err) == FIB_OK) {
        args.slot = 1;
        args.first = first;
        assert_int_equal(impl->prepare(&args, &second, &err), FIB_OK);
        put_all(&b, "out", NAN);
        assert_int_equal(impl->run(second, NULL, &err), FIB_OK);
        assert_passes(&b, label);
    }
    impl->release(&second);
    put_all(&b, "out", NAN);
    if (first) {
        assert_int_equal(impl->run(first, NULL, &err), FIB_OK);
        assert_passes(&b, label);
    }
    impl->release(&first);
    assert_null(first);
    fib_device_close(&device);
    close_bench(&b);
}

static void test_slots_share_the_first(void **state)
{
    (void)state;
    check_slots("cpu");
    if (fib_registry_impl(test_registry(), "bmm_fp8", "openblas", FIB_DEVICE_CPU))
        check_slots("openblas");
}

static uint64_t no_bytes(struct fib_device *device)
{
    (void)device;
    return 1000;
}

static void test_openblas_says_what_it_lacks(void **state)
{
    (void)state;
    const struct fib_impl *impl =
        fib_registry_impl(test_registry(), "mm_bf16", "openblas", FIB_DEVICE_CPU);
    if (!impl)
        skip(); /* built without its headers */
    struct bench b = open_bench("--routine mm_bf16 --m 16 --n 32 --k 64");
    const struct fib_device_ops ops = {.free_bytes = no_bytes};
    struct fib_device device = {.ops = &ops};
    struct fib_prepare_args args = {
        .kase = only_case(b.plan), .problem = host_run_problem(b.run), .device = &device};
    struct fib_prepared *prepared = NULL;
    struct fib_error err = {0};
    const enum fib_status st = impl->prepare(&args, &prepared, &err);
    assert_null(prepared);
    assert_true(st == FIB_ERR_OOM || st == FIB_ERR_UNSUPPORTED);
    /* 4 bytes for 16 x 64, 32 x 64 and 16 x 32 elements */
    assert_contains(err.text, st == FIB_ERR_OOM ? "needs 14336 bytes" : "OpenBLAS not found");
    close_bench(&b);
}

static void test_openblas_probe(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_registry()->backend_count; i++) {
        const struct fib_backend *backend = test_registry()->backends[i];
        if (strcmp(backend->id, "openblas_gemm") != 0 || backend->absent)
            continue;
        struct fib_text line = {0};
        const bool usable = backend->probe(&line);
        assert_contains(fib_text_chars(&line), usable ? "libopenblas" : "not found");
        fib_text_free(&line);
    }
}

/* ---- what the check must catch ---- */

static void scale_output(struct bench *b, double factor)
{
    const double *const value = host_run_value(b->run, "out");
    for (int64_t i = 0; i < fib_tensor_elems(tensor_of(b, "out")); i++)
        put(b, "out", i, value[i] * factor);
}

/* Replaces the output by the oracle's without elements [first, last) of k. */
static void drop_k(struct bench *b, int64_t first, int64_t last)
{
    const struct fib_tensor *a = tensor_of(b, "a");
    const int64_t k = a->shape[a->rank - 1];
    const size_t a_bytes = fib_tensor_bytes(a);
    unsigned char *kept = test_malloc(a_bytes);
    memcpy(kept, host_run_data(b->run, "a"), a_bytes);
    for (int64_t row = 0; row < fib_tensor_elems(a) / k; row++)
        for (int64_t i = first; i < last; i++)
            put(b, "a", row * k + i, 0.0);
    host_run_oracle(b->run);
    host_run_store_oracle(b->run);
    memcpy(host_run_data(b->run, "a"), kept, a_bytes);
    test_free(kept);
    host_run_oracle(b->run);
}

static void check_teeth(const char *line)
{
    struct bench b = open_bench(line);
    const struct fib_tensor *out = tensor_of(&b, "out");
    const struct fib_tensor *a = tensor_of(&b, "a");
    const int64_t k = a->shape[a->rank - 1], n = out->row_elems;
    /* With signs that cancel, float32 outputs are less exact than 8 units: terms exceed the sum. */
    if (out->dtype == FIB_F32) {
        make_positive(&b, "a");
        make_positive(&b, "b");
    }
    host_run_oracle(b.run);
    host_run_store_oracle(b.run);
    assert_passes(&b, line);
    scale_output(&b, 1.0 + 8.0 * fib_dtype_unit_roundoff(out->dtype));
    assert_false(passes(&b));
    host_run_store_oracle(b.run);
    for (int64_t j = 0; j < n; j++)
        put(&b, "out", n + j, 0.0);
    assert_false(passes(&b));
    put_all(&b, "out", 0.0);
    assert_false(passes(&b));
    host_run_store_oracle(b.run);
    put(&b, "out", n - 1, NAN);
    assert_false(passes(&b));
    drop_k(&b, k - 32, k);
    assert_false(passes(&b));
    close_bench(&b);
}

static void test_teeth(void **state)
{
    (void)state;
    check_teeth("--routine mm_bf16 --m 16 --n 128 --k 4096");
    check_teeth("--routine mm_bf16 --m 16 --n 128 --k 512 --bias --out_dtype float16");
    check_teeth("--routine mm_bf16 --m 16 --n 128 --k 512 --out_dtype float32");
    check_teeth("--routine bmm_bf16 --batch_size 2 --m 16 --n 128 --k 512");
    check_teeth("--routine bmm_fp8 --batch_size 2 --m 4 --n 128 --k 7168");
    check_teeth("--routine bmm_fp8 --m 16 --n 128 --k 512 --input_dtype fp8_e5m2");
}

/* A result computed with another value of one tensor fails. */
static void check_dropped(const char *line, const char *name, double instead)
{
    struct bench b = open_bench(line);
    unsigned char kept[1024];
    const size_t bytes = fib_tensor_bytes(tensor_of(&b, name));
    assert_true(bytes <= sizeof(kept));
    memcpy(kept, host_run_data(b.run, name), bytes);
    put_all(&b, name, instead);
    host_run_oracle(b.run);
    host_run_store_oracle(b.run);
    memcpy(host_run_data(b.run, name), kept, bytes);
    host_run_oracle(b.run);
    assert_false(passes(&b));
    close_bench(&b);
}

static void test_teeth_of_bias_and_scales(void **state)
{
    (void)state;
    check_dropped("--routine mm_bf16 --m 16 --n 64 --k 4096 --bias", "bias", 0.0);
    check_dropped("--routine mm_bf16 --m 1 --n 64 --k 8192 --bias", "bias", 0.0);
    check_dropped("--routine bmm_fp8 --m 16 --n 64 --k 512", "a_scale", 1.0);
    check_dropped("--routine bmm_fp8 --m 16 --n 64 --k 512", "b_scale", 1.0);
}

/* ---- errors ---- */

static void assert_refused(const char *line, const char *part, const char *other_part)
{
    struct fib_error err;
    assert_int_equal(test_plan_fails(line, &err), FIB_ERR_USAGE);
    assert_contains(err.text, part);
    assert_contains(err.text, other_part);
}

static void test_flags_out_of_range(void **state)
{
    (void)state;
    assert_refused("--routine mm_bf16 --m 0 --n 4 --k 4", "--m 0", "1 .. 2147483647");
    assert_refused("--routine mm_bf16 --m 4 --n -3 --k 4", "--n -3", "1 .. 2147483647");
    assert_refused("--routine mm_bf16 --m 4 --n 4 --k 1.5", "--k 1.5", "1 .. 2147483647");
    assert_refused("--routine mm_bf16 --m 4 --n 4 --k 2147483648", "2147483648", "2147483647");
    assert_refused("--routine bmm_fp8 --m 4 --n 4 --k 4 --batch_size 1048577", "--batch_size",
                   "1 .. 1048576");
    assert_refused("--routine mm_bf16 --m 4 --n 4", "--k", "mm_bf16");
    assert_refused("--routine mm_bf16 --m 4 --n 4 --k 4 --out_dtype float8", "float8",
                   "bfloat16 | float16 | float32");
    assert_refused("--routine bmm_fp8 --m 4 --n 4 --k 4 --out_dtype float32", "float32",
                   "bfloat16 | float16");
    assert_refused("--routine bmm_fp8 --m 4 --n 4 --k 4 --input_dtype bfloat16", "bfloat16",
                   "fp8_e4m3 | fp8_e5m2");
    assert_refused("--routine bmm_fp8 --m 4 --n 4 --k 4 --mat2_dtype nvfp4", "nvfp4",
                   "fp8_e4m3 | fp8_e5m2");
}

/* Rules over several flags; the case's check says them, wherever it is called from. */
static void assert_check_fails(const char *line, const char *part, const char *other_part)
{
    struct fib_error err = {0};
    struct fib_plan *plan = NULL;
    const char *words[32];
    char copy[256];
    size_t count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *rest = copy, *word; (word = strtok_r(rest, " ", &rest)) && count < 32;)
        words[count++] = word;
    if (fib_plan_parse(test_registry(), count, words, &plan, &err) == FIB_OK) {
        const struct fib_case *kase = only_case(plan);
        assert_int_equal(kase->routine->check(kase, &err), FIB_ERR_USAGE);
        fib_plan_free(&plan);
    }
    assert_contains(err.text, part);
    assert_contains(err.text, other_part);
}

static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    assert_check_fails("--routine mm_bf16 --m 2147483647 --n 2147483647 --k 2147483647",
                       "--m 2147483647 --n 2147483647 --k 2147483647", "2^46");
    assert_check_fails("--routine bmm_bf16 --batch_size 1048576 --m 8192 --n 8192 --k 1",
                       "--batch_size 1048576 --m 8192", "2^46");
    assert_check_fails("--routine bmm_fp8 --batch_size 1048576 --m 1 --n 8192 --k 8192",
                       "--batch_size 1048576 --m 1", "2^46");
}

static void test_rules_of_routines_to_come(void **state)
{
    (void)state;
    assert_check_fails("--routine gemm_fp8_nt_groupwise --m 4 --n 100 --k 128", "--n 100",
                       "--tile_size");
    assert_check_fails("--routine gemm_fp8_nt_groupwise --m 4 --n 128 --k 100", "--k 100",
                       "--tile_size");
    assert_check_fails("--routine group_gemm_fp8_nt_groupwise --m 6 --n 128 --k 128", "--m 6",
                       "multiple of 4");
    assert_check_fails("--routine mm_fp8 --batch_size 2 --m 4 --n 32 --k 128", "--batch_size 2",
                       "must be 1");
    assert_check_fails("--routine mm_fp8 --m 4 --n 33 --k 128", "--n 33", "multiple of 32");
    assert_check_fails("--routine mm_mxfp8 --m 4 --n 32 --k 33", "--k 33", "multiple of 32");
    assert_check_fails("--routine bmm_mxfp8 --m 4 --n 32 --k 48", "--k 48", "multiple of 32");
    assert_check_fails("--routine mm_fp4 --m 4 --n 32 --k 48", "--k 48", "MXFP4");
    assert_check_fails("--routine mm_fp4 --m 4 --n 32 --k 40 --use_nvfp4", "--k 40", "NVFP4");
    assert_check_fails("--routine mm_bf16_fp4 --m 4 --n 32 --k 48", "--n 32", "multiple of 64");
    assert_check_fails("--routine tinygemm_bf16 --m 4 --n 17 --k 64", "--n 17", "multiple of 16");
}

static void test_every_row_is_built_or_says_why_not(void **state)
{
    (void)state;
    static const char *const built[] = {"mm_bf16", "bmm_bf16", "bmm_fp8"};
    static const char *const planned[] = {"gemm_fp8_nt_groupwise",
                                          "group_gemm_fp8_nt_groupwise",
                                          "mm_fp8",
                                          "bmm_mxfp8",
                                          "mm_mxfp8",
                                          "mm_fp4",
                                          "mm_bf16_fp4",
                                          "tinygemm_bf16"};
    for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++) {
        const struct fib_routine *row = fib_registry_routine(test_registry(), built[i]);
        assert_non_null(row);
        assert_null(row->unavailable);
        assert_true(row->check && row->describe && row->reference && row->layout_note);
        assert_non_null(fib_registry_impl(test_registry(), built[i], "cpu", FIB_DEVICE_CPU));
    }
    for (size_t i = 0; i < sizeof(planned) / sizeof(planned[0]); i++) {
        const struct fib_routine *row = fib_registry_routine(test_registry(), planned[i]);
        assert_non_null(row);
        assert_contains(row->unavailable, "not implemented");
        assert_non_null(row->check);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_41_bytes_count_the_batch),
        cmocka_unit_test(test_cost_of_the_bias),
        cmocka_unit_test(test_tensors_of_bmm_fp8),
        cmocka_unit_test(test_fp8_operands_use_their_range),
        cmocka_unit_test(test_flags_that_a_routine_does_not_read),
        cmocka_unit_test(test_case_27_no_tail_is_lost),
        cmocka_unit_test(test_case_27_partial_sums_that_cancel),
        cmocka_unit_test(test_case_24_scales_are_one_number_each),
        cmocka_unit_test(test_bias_is_added_before_rounding),
        cmocka_unit_test(test_every_output_has_its_own_operands),
        cmocka_unit_test(test_terms_are_magnitudes),
        cmocka_unit_test(test_oracle_rows_are_independent),
        cmocka_unit_test(test_case_28_every_m),
        cmocka_unit_test(test_case_26_odd_shapes_of_bmm_fp8),
        cmocka_unit_test(test_odd_shapes_and_dtypes),
        cmocka_unit_test(test_extreme_values),
        cmocka_unit_test(test_infinity_and_nan_reach_their_outputs),
        cmocka_unit_test(test_cpu_sums_of_one_sign),
        cmocka_unit_test(test_resolved_names),
        cmocka_unit_test(test_slots_share_the_first),
        cmocka_unit_test(test_openblas_says_what_it_lacks),
        cmocka_unit_test(test_openblas_probe),
        cmocka_unit_test(test_teeth),
        cmocka_unit_test(test_teeth_of_bias_and_scales),
        cmocka_unit_test(test_flags_out_of_range),
        cmocka_unit_test(test_shapes_that_do_not_fit),
        cmocka_unit_test(test_rules_of_routines_to_come),
        cmocka_unit_test(test_every_row_is_built_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
