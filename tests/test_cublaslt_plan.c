/* What the cublaslt adapter tells the library: descriptors, layouts, limits of the search, errors,
 * and the choice under --autotune. The library is a fake that is found through --lib_path. */
#include "tests/support.h"
#include "tests/fake_library.h"
#include "tests/fake_cublaslt.h"

#include <stdio.h>
#include <string.h>

#include "backends/cublaslt_lib.h"
#include "backends/cublaslt_plan.h"
#include "core/backend.h"
#include "core/routine.h"

enum { WORKSPACE_BYTES = 64 << 20 };

/* A line, its problem, and the library under it. */
struct bench {
    struct fib_plan *plan;
    const struct fib_case *kase;
    struct fib_problem problem;
    struct fib_device *device;
    struct fib_cublaslt lib;
    struct fake_cublaslt *fake;
    double call_ms[8]; /* time of each algorithm, for on_matmul */
};

/* Resets the fake to a working library that offers 3 candidates. */
static struct fake_cublaslt *reset_fake(void)
{
    fake_cublaslt_state_fn *state = NULL;
    open_fake_library("libcublasLt.so.13", FAKE_CUBLASLT_STATE, &state, sizeof(state));
    struct fake_cublaslt *fake = state();
    *fake = (struct fake_cublaslt){.version = 130100, .offered = 3};
    return fake;
}

static void open_bench(struct bench *b, const char *flags)
{
    struct fib_error err = {0};
    char line[512];
    memset(b, 0, sizeof(*b));
    snprintf(line, sizeof(line), "--routine %s --lib_path '%s'", flags, fake_library_folder());
    b->fake = reset_fake();
    b->plan = test_plan(line);
    b->kase = b->plan->items[0].kase;
    assert_non_null(b->kase);
    b->kase->routine->describe(b->kase, &b->problem);
    assert_int_equal(fib_device_fake_open(NULL, &(struct fib_fake_script){0}, &b->device, &err),
                     FIB_OK);
    if (fib_cublaslt_open(&b->lib, fake_library_folder(), &err) != FIB_OK)
        fail_msg("%s", err.text);
}

static void close_bench(struct bench *b)
{
    assert_int_equal(b->fake->live, 0);
    fib_cublaslt_close(&b->lib);
    fib_device_close(&b->device);
    fib_plan_free(&b->plan);
}

static const struct fib_impl *impl_of(const struct bench *b, const char *label)
{
    const struct fib_impl *impl =
        fib_registry_impl(test_registry(), b->kase->routine->name, label, FIB_DEVICE_CUDA);
    assert_non_null(impl);
    return impl;
}

/* Made-up addresses: the fake never follows them. Slot s, tensor t. */
static void *address_of(uint32_t slot, int tensor)
{
    return (void *)(uintptr_t)(0x10000 * (slot + 1) + 0x1000 * (unsigned)tensor);
}

static enum fib_status prepare(const struct bench *b, const struct fib_impl *impl, uint32_t slot,
                               struct fib_prepared *first, struct fib_prepared **prepared,
                               struct fib_error *err)
{
    struct fib_prepare_args args = {
        .kase = b->kase, .problem = &b->problem, .device = b->device, .slot = slot, .first = first};
    for (int t = 0; t < b->problem.tensor_count; t++)
        args.data[t] = address_of(slot, t);
    return impl->prepare(&args, prepared, err);
}

/* Prepares slots 0 and 1, calls slot 1, releases both; what the library saw is in b->fake->call. */
static void call_slot_1(struct bench *b, const char *label)
{
    const struct fib_impl *impl = impl_of(b, label);
    struct fib_prepared *slots[2] = {NULL, NULL};
    struct fib_error err = {0};
    for (uint32_t s = 0; s < 2; s++)
        if (prepare(b, impl, s, slots[0], &slots[s], &err) != FIB_OK)
            fail_msg("%s", err.text);
    assert_int_equal(impl->run(slots[1], NULL, &err), FIB_OK);
    assert_int_equal(b->fake->matmul_count, 1);
    impl->release(&slots[1]);
    impl->release(&slots[0]);
    assert_null(slots[0]);
}

static void assert_layout(const struct fake_layout *layout, cudaDataType_t type, uint64_t rows,
                          uint64_t cols, int32_t batch)
{
    assert_int_equal(layout->type, type);
    assert_int_equal(layout->rows, rows);
    assert_int_equal(layout->cols, cols);
    assert_int_equal(layout->ld, rows);
    assert_int_equal(layout->batch, batch);
    assert_int_equal(layout->stride, batch > 1 ? rows * cols : 0);
}

static void test_one_product(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    call_slot_1(&b, "cublaslt");
    const struct fake_call *call = &b.fake->call;
    assert_layout(&call->left_layout, CUDA_R_16BF, 7, 5, 1);
    assert_layout(&call->right_layout, CUDA_R_16BF, 7, 3, 1);
    assert_layout(&call->out_layout, CUDA_R_16BF, 5, 3, 1);
    assert_ptr_equal(call->left, address_of(1, GEMM_B));
    assert_ptr_equal(call->right, address_of(1, GEMM_A));
    assert_ptr_equal(call->out, address_of(1, GEMM_OUT));
    assert_ptr_equal(call->c, call->out);
    assert_true(call->alpha == 1.0f && call->beta == 0.0f);
    assert_int_equal(call->desc.compute, CUBLAS_COMPUTE_32F);
    assert_int_equal(call->desc.scale_type, CUDA_R_32F);
    assert_int_equal(call->desc.transa, CUBLAS_OP_T);
    assert_int_equal(call->desc.transb, CUBLAS_OP_N);
    assert_int_equal(call->desc.epilogue, 0);
    assert_int_equal(call->desc.fast_accumulation, -1);
    assert_int_equal(call->algo_id, 60);
    assert_non_null(call->workspace);
    assert_int_equal(call->workspace_bytes, WORKSPACE_BYTES);
    close_bench(&b);
}

static void test_batch_of_products(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b, "bmm_bf16 --batch_size 11 --m 3 --n 5 --k 7 --out_dtype float32");
    call_slot_1(&b, "cublaslt");
    assert_layout(&b.fake->call.left_layout, CUDA_R_16BF, 7, 5, 11);
    assert_layout(&b.fake->call.right_layout, CUDA_R_16BF, 7, 3, 11);
    assert_layout(&b.fake->call.out_layout, CUDA_R_32F, 5, 3, 11);
    close_bench(&b);
}

static void test_bias(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7 --bias");
    call_slot_1(&b, "cublaslt");
    assert_int_equal(b.fake->call.desc.epilogue, CUBLASLT_EPILOGUE_BIAS);
    assert_int_equal(b.fake->call.desc.bias_type, CUDA_R_16BF);
    assert_ptr_equal(b.fake->call.desc.bias, address_of(1, GEMM_BIAS));
    assert_ptr_equal(b.fake->desc.bias, address_of(0, GEMM_BIAS));
    close_bench(&b);
}

/* The label cublas means the same library for fp8. Scales go with their operand, and stay where
 * they are. */
static void test_fp8(void **unused)
{
    static const char *const labels[] = {"cublaslt", "cublas"};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        struct bench b;
        open_bench(&b, "bmm_fp8 --batch_size 2 --m 3 --n 32 --k 48 --mat2_dtype fp8_e5m2 "
                       "--out_dtype float16");
        call_slot_1(&b, labels[i]);
        assert_layout(&b.fake->call.left_layout, CUDA_R_8F_E5M2, 48, 32, 2);
        assert_layout(&b.fake->call.right_layout, CUDA_R_8F_E4M3, 48, 3, 2);
        assert_layout(&b.fake->call.out_layout, CUDA_R_16F, 32, 3, 2);
        assert_ptr_equal(b.fake->call.desc.a_scale, address_of(1, GEMM_B_SCALE));
        assert_ptr_equal(b.fake->call.desc.b_scale, address_of(1, GEMM_A_SCALE));
        assert_int_equal(b.fake->call.desc.fast_accumulation, 0);
        assert_true(impl_of(&b, labels[i])->accumulate_roundoff == 0x1p-13);
        close_bench(&b);
    }
}

/* Partial sums in the output's format are allowed where that is float32. */
static void test_limits_of_the_search(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b, "mm_bf16 --m 16 --n 16 --k 16");
    call_slot_1(&b, "cublaslt");
    assert_int_equal(b.fake->workspace_limit, WORKSPACE_BYTES);
    assert_int_equal(b.fake->schemes, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    assert_true(b.fake->requested >= 16);
    close_bench(&b);
    open_bench(&b, "mm_bf16 --m 16 --n 16 --k 16 --out_dtype float32");
    call_slot_1(&b, "cublaslt");
    assert_int_equal(b.fake->schemes, CUBLASLT_REDUCTION_SCHEME_MASK);
    close_bench(&b);
}

static void assert_refused(const char *flags, const char *part)
{
    struct bench b;
    char buffer[FIB_ERROR_CHARS];
    open_bench(&b, flags);
    const char *const reason =
        impl_of(&b, "cublaslt")->refuse(b.kase, &b.problem, b.device, buffer, sizeof(buffer));
    if (part) {
        assert_non_null(reason);
        assert_contains(reason, part);
    } else {
        assert_null(reason);
    }
    close_bench(&b);
}

static void test_refusals(void **unused)
{
    (void)unused;
    assert_refused("bmm_fp8 --m 63 --n 1008 --k 7168", NULL);
    assert_refused("bmm_fp8 --m 63 --n 1008 --k 7170",
                   "only where --n and --k are multiples of 16: --k 7170");
    assert_refused("bmm_fp8 --m 63 --n 1000 --k 7168", "multiples of 16: --n 1000");
    assert_refused("bmm_fp8 --m 63 --n 1000 --k 7170", "multiples of 16: --n 1000, --k 7170");
    assert_refused("bmm_fp8 --m 16 --n 16 --k 16 --input_dtype fp8_e5m2 --mat2_dtype fp8_e5m2",
                   "no product of fp8_e5m2 with fp8_e5m2");
    assert_refused("bmm_fp8 --m 16 --n 16 --k 16 --input_dtype fp8_e5m2", NULL);
    assert_refused("mm_bf16 --m 63 --n 1001 --k 517", NULL);
}

static void assert_prepare_fails(struct bench *b, enum fib_status status, const char *sentence)
{
    struct fib_prepared *prepared = NULL;
    struct fib_error err = {0};
    assert_int_equal(prepare(b, impl_of(b, "cublaslt"), 0, NULL, &prepared, &err), status);
    assert_null(prepared);
    assert_string_equal(err.text, sentence);
    close_bench(b);
}

static void test_nothing_found(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7 --out_dtype float16 --bias");
    b.fake->heuristic_status = CUBLAS_STATUS_NOT_SUPPORTED;
    assert_prepare_fails(&b, FIB_ERR_UNSUPPORTED,
                         "cuBLASLt 13.1.0 has no kernel for bfloat16 x bfloat16 -> float16 with a "
                         "bfloat16 bias, m 3 n 5 k 7 batch 1 (CUBLAS_STATUS_NOT_SUPPORTED)");
    open_bench(&b, "bmm_fp8 --batch_size 4 --m 3 --n 16 --k 16");
    b.fake->bad_states = 7;
    assert_prepare_fails(&b, FIB_ERR_UNSUPPORTED,
                         "cuBLASLt 13.1.0 has no kernel for fp8_e4m3 x fp8_e4m3 -> bfloat16, m 3 n "
                         "16 k 16 batch 4 (CUBLAS_STATUS_NOT_SUPPORTED)");
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    b.fake->heuristic_status = CUBLAS_STATUS_INTERNAL_ERROR;
    assert_prepare_fails(&b, FIB_ERR_DEVICE,
                         "cuBLASLt 13.1.0 has no kernel for bfloat16 x bfloat16 -> bfloat16, m 3 n "
                         "5 k 7 batch 1 (CUBLAS_STATUS_INTERNAL_ERROR)");
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    b.fake->desc_status = CUBLAS_STATUS_INVALID_VALUE;
    assert_prepare_fails(&b, FIB_ERR_UNSUPPORTED,
                         "cuBLASLt 13.1.0 has no kernel for bfloat16 x bfloat16 -> bfloat16, m 3 n "
                         "5 k 7 batch 1 (CUBLAS_STATUS_INVALID_VALUE)");
}

static void test_failing_call(void **unused)
{
    struct bench b;
    struct fib_prepared *prepared = NULL;
    struct fib_error err = {0};
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    const struct fib_impl *impl = impl_of(&b, "cublaslt");
    assert_int_equal(prepare(&b, impl, 0, NULL, &prepared, &err), FIB_OK);
    b.fake->matmul_status = CUBLAS_STATUS_INTERNAL_ERROR;
    assert_int_equal(impl->run(prepared, NULL, &err), FIB_ERR_DEVICE);
    assert_string_equal(err.text, "cublasLtMatmul failed: CUBLAS_STATUS_INTERNAL_ERROR");
    impl->release(&prepared);
    close_bench(&b);
}

static void assert_resolved(struct bench *b, const char *text)
{
    const struct fib_impl *impl = impl_of(b, "cublaslt");
    struct fib_prepared *prepared = NULL;
    struct fib_error err = {0};
    char buffer[96];
    assert_int_equal(prepare(b, impl, 0, NULL, &prepared, &err), FIB_OK);
    assert_string_equal(impl->resolved(prepared, buffer, sizeof(buffer)), text);
    impl->release(&prepared);
}

static void spend(void *context, uint64_t algo_id)
{
    struct bench *b = context;
    fib_device_fake_advance(b->device, b->call_ms[algo_id - 60]);
}

/* Without the flag nothing is called before the case is; with it the fastest is kept, and a
 * candidate that says it does not run is never tried. */
static void test_autotune(void **unused)
{
    static const char flags[] = "mm_bf16 --m 3 --n 5 --k 7 --autotune";
    const double times_ms[] = {0.3, 0.2, 0.25, 0.01};
    struct bench b;
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    assert_resolved(&b, "cublaslt/algo 60 tile 23 stages 36 splitk 3 cluster 4");
    assert_int_equal(b.fake->matmul_count, 0);
    close_bench(&b);

    for (int hot = 0; hot < 2; hot++) {
        char line[128];
        snprintf(line, sizeof(line), "%s --cache %s", flags, hot ? "hot" : "cold");
        open_bench(&b, line);
        memcpy(b.call_ms, times_ms, sizeof(times_ms));
        b.fake->offered = 4;
        b.fake->bad_states = 8;
        b.fake->on_matmul = spend;
        b.fake->context = &b;
        assert_resolved(&b, "cublaslt/algo 61 tile 23 stages 36 splitk 3 cluster 4 swizzle 1");
        assert_true(b.fake->matmul_count >= 3 * 4);
        close_bench(&b);
    }
}

/* When no candidate can be timed, the library's first choice stands. */
static void test_autotune_without_times(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7 --autotune");
    b.fake->matmul_status = CUBLAS_STATUS_INTERNAL_ERROR;
    assert_resolved(&b, "cublaslt/algo 60 tile 23 stages 36 splitk 3 cluster 4");
    close_bench(&b);
}

static void test_versions(void **unused)
{
    struct fib_cublaslt lib;
    struct fib_error err = {0};
    char buffer[160];
    (void)unused;
    assert_null(fib_cublaslt_version_refusal(120000, buffer, sizeof(buffer)));
    assert_null(fib_cublaslt_version_refusal(130402, buffer, sizeof(buffer)));
    assert_string_equal(fib_cublaslt_version_text(120803, buffer, sizeof(buffer)), "12.8.3");
    assert_string_equal(fib_cublaslt_version_refusal(140000, buffer, sizeof(buffer)),
                        "cuBLASLt 14.0.0 was found; versions 12 and 13 can be used");
    reset_fake()->version = 111103;
    assert_int_equal(fib_cublaslt_open(&lib, fake_library_folder(), &err), FIB_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "cuBLASLt 11.11.3 was found; versions 12 and 13 can be used");
    assert_null(lib.handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_product),
        cmocka_unit_test(test_batch_of_products),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_fp8),
        cmocka_unit_test(test_limits_of_the_search),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nothing_found),
        cmocka_unit_test(test_failing_call),
        cmocka_unit_test(test_autotune),
        cmocka_unit_test(test_autotune_without_times),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
