/* What the cublas adapter tells the library, and how its refusals and errors reach the row. The
 * library is a fake that is found through --lib_path. */
#include "tests/support.h"
#include "tests/fake_library.h"
#include "tests/fake_cublas.h"

#include <stdio.h>
#include <string.h>

#include "core/backend.h"
#include "core/routine.h"
#include "routines/gemm.h"

enum { WORKSPACE_BYTES = 64 << 20 };

struct bench {
    struct fib_plan *plan;
    const struct fib_case *kase;
    struct fib_problem problem;
    struct fib_device *device;
    const struct fib_impl *impl;
    struct fake_cublas *fake;
    struct fib_prepared *prepared[2];
};

static struct fake_cublas *reset_fake(void)
{
    fake_cublas_state_fn *state = NULL;
    open_fake_library("libcublas.so.13", FAKE_CUBLAS_STATE, &state, sizeof(state));
    struct fake_cublas *fake = state();
    *fake = (struct fake_cublas){.major = 13};
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
    b->impl = fib_registry_impl(test_registry(), b->kase->routine->name, "cublas", FIB_DEVICE_CUDA);
    assert_non_null(b->impl);
    assert_int_equal(fib_device_fake_open(NULL, &(struct fib_fake_script){0}, &b->device, &err),
                     FIB_OK);
}

static void close_bench(struct bench *b)
{
    for (int s = 2; s-- > 0;)
        b->impl->release(&b->prepared[s]);
    assert_int_equal(b->fake->live, 0);
    fib_device_close(&b->device);
    fib_plan_free(&b->plan);
}

/* Made-up addresses: the fake never follows them. */
static void *address_of(uint32_t slot, int tensor)
{
    return (void *)(uintptr_t)(0x10000 * (slot + 1) + 0x1000 * (unsigned)tensor);
}

static enum fib_status prepare(struct bench *b, uint32_t slot, struct fib_error *err)
{
    struct fib_prepare_args args = {.kase = b->kase,
                                    .problem = &b->problem,
                                    .device = b->device,
                                    .slot = slot,
                                    .first = slot > 0 ? b->prepared[0] : NULL};
    for (int t = 0; t < b->problem.tensor_count; t++)
        args.data[t] = address_of(slot, t);
    return b->impl->prepare(&args, &b->prepared[slot], err);
}

/* Prepares both slots and calls the second. */
static void call_slot_1(struct bench *b)
{
    struct fib_error err = {0};
    for (uint32_t s = 0; s < 2; s++)
        if (prepare(b, s, &err) != FIB_OK)
            fail_msg("%s", err.text);
    assert_int_equal(b->impl->run(b->prepared[1], NULL, &err), FIB_OK);
}

static void assert_common(const struct fake_cublas *f)
{
    assert_int_equal(f->transa, CUBLAS_OP_T);
    assert_int_equal(f->transb, CUBLAS_OP_N);
    assert_int_equal(f->m, 5);
    assert_int_equal(f->n, 3);
    assert_int_equal(f->k, 7);
    assert_int_equal(f->lda, 7);
    assert_int_equal(f->ldb, 7);
    assert_int_equal(f->ldc, 5);
    assert_ptr_equal(f->a, address_of(1, GEMM_B));
    assert_ptr_equal(f->b, address_of(1, GEMM_A));
    assert_ptr_equal(f->c, address_of(1, GEMM_OUT));
    assert_int_equal(f->a_type, CUDA_R_16BF);
    assert_int_equal(f->b_type, CUDA_R_16BF);
    assert_int_equal(f->compute, CUBLAS_COMPUTE_32F);
    assert_true(f->alpha == 1.0f && f->beta == 0.0f);
    assert_int_equal(f->math_mode, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    assert_non_null(f->workspace_at_call);
    assert_int_equal(f->workspace_bytes, WORKSPACE_BYTES);
}

/* The first slot's trial and the call of the second. */
static void test_one_product(void **unused)
{
    struct bench b;
    char buffer[96];
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    call_slot_1(&b);
    assert_common(b.fake);
    assert_int_equal(b.fake->c_type, CUDA_R_16BF);
    assert_int_equal(b.fake->gemm_count, 2);
    assert_int_equal(b.fake->batched_count, 0);
    assert_string_equal(b.impl->resolved(b.prepared[0], buffer, sizeof(buffer)), "cublas/gemm_ex");
    close_bench(&b);
}

static void test_batch_of_products(void **unused)
{
    struct bench b;
    char buffer[96];
    (void)unused;
    open_bench(&b, "bmm_bf16 --batch_size 11 --m 3 --n 5 --k 7 --out_dtype float32");
    call_slot_1(&b);
    assert_common(b.fake);
    assert_int_equal(b.fake->c_type, CUDA_R_32F);
    assert_int_equal(b.fake->gemm_count, 0);
    assert_int_equal(b.fake->batched_count, 2);
    assert_int_equal(b.fake->batch, 11);
    assert_int_equal(b.fake->stride_a, 5 * 7);
    assert_int_equal(b.fake->stride_b, 3 * 7);
    assert_int_equal(b.fake->stride_c, 3 * 5);
    assert_string_equal(b.impl->resolved(b.prepared[0], buffer, sizeof(buffer)),
                        "cublas/gemm_strided_batched_ex");
    close_bench(&b);
}

static void test_failures(void **unused)
{
    struct bench b;
    struct fib_error err = {0};
    (void)unused;
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    b.fake->gemm_status = CUBLAS_STATUS_NOT_SUPPORTED;
    assert_int_equal(prepare(&b, 0, &err), FIB_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "cublasGemmEx failed: CUBLAS_STATUS_NOT_SUPPORTED");
    assert_null(b.prepared[0]);
    close_bench(&b);

    err = (struct fib_error){0};
    open_bench(&b, "bmm_bf16 --batch_size 2 --m 3 --n 5 --k 7");
    b.fake->gemm_status = CUBLAS_STATUS_EXECUTION_FAILED;
    assert_int_equal(prepare(&b, 0, &err), FIB_ERR_DEVICE);
    assert_string_equal(err.text, "cublasGemmStridedBatchedEx failed: CUBLAS_STATUS_OTHER");
    close_bench(&b);

    err = (struct fib_error){0};
    open_bench(&b, "mm_bf16 --m 3 --n 5 --k 7");
    b.fake->major = 11;
    assert_int_equal(prepare(&b, 0, &err), FIB_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "cuBLAS 11 was found; versions 12 and 13 can be used");
    close_bench(&b);
}

static void assert_refused(const char *flags, const char *reason)
{
    struct bench b;
    char buffer[FIB_ERROR_CHARS];
    open_bench(&b, flags);
    const char *const given = b.impl->refuse(b.kase, &b.problem, b.device, buffer, sizeof(buffer));
    if (reason)
        assert_string_equal(given, reason);
    else
        assert_null(given);
    close_bench(&b);
}

static void test_refusals(void **unused)
{
    (void)unused;
    assert_refused("mm_bf16 --m 16 --n 16 --k 16", NULL);
    assert_refused("mm_bf16 --m 16 --n 16 --k 16 --bias",
                   "cublasGemmEx adds no bias; the label cublaslt does");
    assert_refused("bmm_bf16 --m 16 --n 16 --k 16 --out_dtype float16",
                   "cublasGemmEx multiplies bfloat16 operands into --out_dtype bfloat16 or float32 "
                   "only");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_product),
        cmocka_unit_test(test_batch_of_products),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
