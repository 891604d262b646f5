/* The judge's tolerance: an implementation that adds with fewer bits states it, and only its own
 * check widens. */
#include "tests/support.h"

#include <stdlib.h>

#include "core/judge.h"
#include "core/memory.h"
#include "core/routine.h"
#include "routines/gemm.h"

/* A product whose call writes the exact result plus `error` times the sum of magnitudes. */
struct bench {
    struct fib_plan *plan;
    const struct fib_case *kase;
    struct fib_problem problem;
    struct fib_device *device;
    struct fib_tensors *tensors;
    struct fib_judge *judge;
    double error;
};

static enum fib_status call(void *context, struct fib_stream *stream, uint32_t slot,
                            struct fib_error *err)
{
    const struct bench *b = context;
    const struct fib_tensor *out = &b->problem.tensors[GEMM_OUT];
    const size_t count = (size_t)fib_tensor_elems(out);
    double *const numbers = fib_zalloc_array(2 * count, sizeof(double));
    struct fib_oracle_inputs inputs = {{0}};
    struct fib_oracle_rows rows = {.value[GEMM_OUT] = numbers, .terms[GEMM_OUT] = numbers + count};
    (void)stream;
    (void)err;
    inputs.data[GEMM_A] = fib_tensors_address(b->tensors, slot, GEMM_A);
    inputs.data[GEMM_B] = fib_tensors_address(b->tensors, slot, GEMM_B);
    fib_gemm_reference(b->kase, &b->problem, &inputs, 0, b->problem.row_count, &rows);
    for (size_t i = 0; i < count; i++)
        fib_dtype_store(out->dtype, fib_tensors_address(b->tensors, slot, GEMM_OUT), i,
                        numbers[i] + b->error * numbers[count + i]);
    free(numbers);
    return FIB_OK;
}

static void open_bench(struct bench *b)
{
    struct fib_error err = {0};
    *b = (struct bench){.plan = test_plan("--routine mm_bf16 --m 8 --n 8 --k 256 "
                                          "--out_dtype float32")};
    b->kase = b->plan->items[0].kase;
    b->kase->routine->describe(b->kase, &b->problem);
    assert_int_equal(fib_device_fake_open(NULL, &(struct fib_fake_script){0}, &b->device, &err),
                     FIB_OK);
    assert_int_equal(fib_tensors_create(b->device, &b->problem, 42, 1, &b->tensors, &err), FIB_OK);
    assert_int_equal(
        fib_judge_create(b->kase, &b->problem, b->tensors, NULL, 1e9, 42, &b->judge, &err), FIB_OK);
}

static void close_bench(struct bench *b)
{
    fib_judge_free(&b->judge);
    fib_tensors_free(&b->tensors);
    fib_device_close(&b->device);
    fib_plan_free(&b->plan);
}

static bool passes(struct bench *b, double error, double accumulate_roundoff)
{
    const struct fib_judge_call judged = {
        .call = call, .context = b, .accumulate_roundoff = accumulate_roundoff};
    struct fib_verification full = {0}, again = {0};
    struct fib_error err = {0};
    uint64_t checksum = 0;
    b->error = error;
    assert_int_equal(fib_judge_full(b->judge, &judged, &full, &checksum, &err), FIB_OK);
    assert_int_equal(fib_judge_again(b->judge, &judged, &again, &err), FIB_OK);
    assert_int_equal(full.checked_rows, 8);
    assert_int_equal(full.failed, again.failed);
    return !full.failed;
}

/* Limits are 4 u_acc times the sum of magnitudes; half of them stays inside the limit of the whole
 * too. The order shows that one verdict leaves nothing behind for the next. */
static void test_own_roundoff(void **unused)
{
    struct bench b;
    (void)unused;
    open_bench(&b);
    assert_true(passes(&b, 0, 0));
    assert_false(passes(&b, 0x1p-14, 0));
    assert_true(passes(&b, 0x1p-14, 0x1p-13));
    assert_false(passes(&b, 0x1p-14, 0));
    assert_false(passes(&b, 0x1p-10, 0x1p-13));
    assert_true(passes(&b, 0x1p-24, 0));
    assert_true(passes(&b, 0x1p-24, 0x1p-40)); /* never narrower than the problem's */
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_roundoff)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
