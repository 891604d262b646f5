/* The choice of norm kernels and their names, which need no GPU. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "kernels/norm.h"

enum { UNITS = 132 };

static struct fib_norm_args args_of(int64_t rows, int64_t cols, enum fib_norm_type in_type,
                                    bool adds, bool layer)
{
    return (struct fib_norm_args){.rows = rows,
                                  .cols = cols,
                                  .in_type = in_type,
                                  .out_type = layer ? FIB_NORM_E4M3 : in_type,
                                  .adds = adds,
                                  .layer = layer};
}

static int64_t capacity(const struct fib_norm_plan *plan)
{
    const int64_t threads = plan->kind == FIB_NORM_WARP ? plan->lanes : plan->threads;
    return threads / plan->groups * plan->blocks * plan->vectors;
}

static bool keeps_row(const struct fib_norm_plan *plan)
{
    return plan->kind != FIB_NORM_LOOP && plan->kind != FIB_NORM_SCALAR;
}

/* The plan holds the row, and its name leads back to it. */
static void assert_sound(const struct fib_norm_args *args)
{
    struct fib_norm_plan plan = {0}, again = {0};
    char name[32], reason[512] = "";
    const int64_t elements = args->in_type == FIB_NORM_F32 ? 4 : 8;
    fib_norm_choose(args, UNITS, &plan);
    fib_norm_plan_name(&plan, name, sizeof name);
    assert_true(plan.threads >= 32 && plan.threads <= 1024 && plan.threads % 32 == 0);
    assert_true(plan.blocks >= 1 && plan.blocks <= 16);
    assert_true(plan.groups >= 1 && plan.groups <= 4);
    assert_int_equal(plan.kind == FIB_NORM_STREAM, plan.stages >= 2);
    if (args->cols % elements != 0)
        assert_int_equal(plan.kind, FIB_NORM_SCALAR);
    if (keeps_row(&plan) && capacity(&plan) * elements < args->cols)
        fail_msg("%s holds no row of %lld", name, (long long)args->cols);
    if (!fib_norm_find(args, name, &again, reason, sizeof reason))
        fail_msg("%s: %s", name, reason);
    assert_memory_equal(&plan, &again, sizeof plan);
}

static void test_every_shape_has_a_plan(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2, 7, 33, 132, 133, 529, 4096, 1048576, INT64_C(1) << 40};
    for (int64_t cols = 1; cols <= 1048576; cols += cols < 3000 ? 1 : cols / 7)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (int type = FIB_NORM_BF16; type <= FIB_NORM_F32; type++) {
                const struct fib_norm_args plain = args_of(rows[r], cols, type, false, false);
                const struct fib_norm_args adds = args_of(rows[r], cols, type, true, false);
                assert_sound(&plain);
                assert_sound(&adds);
                if (type == FIB_NORM_BF16) {
                    const struct fib_norm_args layer = args_of(rows[r], cols, type, false, true);
                    assert_sound(&layer);
                }
            }
}

static void test_rows_of_a_block_are_read_once(void **state)
{
    (void)state;
    struct fib_norm_plan plan = {0};
    for (int64_t cols = 8; cols <= 262144; cols *= 2) {
        const struct fib_norm_args args = args_of(64, cols, FIB_NORM_BF16, true, false);
        fib_norm_choose(&args, UNITS, &plan);
        assert_true(keeps_row(&plan));
    }
}

static void test_misaligned_rows_go_element_by_element(void **state)
{
    (void)state;
    struct fib_norm_plan plan = {0};
    char bytes[64] = "", reason[512] = "";
    struct fib_norm_args args = args_of(4, 1024, FIB_NORM_BF16, false, false);
    args.x = bytes + (16 - (uintptr_t)bytes % 16) + 2;
    fib_norm_choose(&args, UNITS, &plan);
    assert_int_equal(plan.kind, FIB_NORM_SCALAR);
    assert_false(fib_norm_find(&args, "block_v4", &plan, reason, sizeof reason));
    assert_true(fib_norm_find(&args, "scalar", &plan, reason, sizeof reason));
}

static void assert_plan(const char *name, int64_t cols, const char *resolved)
{
    const struct fib_norm_args args = args_of(9, cols, FIB_NORM_BF16, false, false);
    struct fib_norm_plan plan = {0};
    char full[32], reason[512] = "";
    if (!fib_norm_find(&args, name, &plan, reason, sizeof reason))
        fail_msg("%s", reason);
    fib_norm_plan_name(&plan, full, sizeof full);
    assert_string_equal(full, resolved);
}

static void test_names(void **state)
{
    (void)state;
    assert_plan("block_v4", 8192, "block256_v4");
    assert_plan("block256_v4", 4096, "block256_v4");
    assert_plan("block_v4u2", 8192, "block256_v4u2");
    assert_plan("block_v2early", 4096, "block256_v2early");
    assert_plan("block_v1", 8, "block32_v1");
    assert_plan("warp_v1", 24, "warp4_v1");
    assert_plan("warp16_v1u4", 64, "warp16_v1u4");
    assert_plan("warp_v2u2", 512, "warp32_v2u2");
    assert_plan("cluster_v1", 16384, "cluster4x512_v1");
    assert_plan("cluster8_v2", 65536, "cluster8x512_v2");
    assert_plan("cluster8x256_v4", 65536, "cluster8x256_v4");
    assert_plan("stream_v4", 8192, "stream2x256_v4");
    assert_plan("stream_v4", 16384, "stream1x512_v4");
    assert_plan("stream4x128_v4", 4096, "stream4x128_v4");
    assert_plan("stream1_v2", 8192, "stream1x512_v2");
    assert_plan("scalar", 101, "scalar32");
}

/* Rows of FP8 results leave shared memory in pieces of 16 bytes. */
static void test_streamed_codes_come_in_sixteens(void **state)
{
    (void)state;
    struct fib_norm_plan plan = {0};
    char reason[512] = "";
    struct fib_norm_args args = args_of(9, 1000, FIB_NORM_BF16, false, false);
    assert_true(fib_norm_find(&args, "stream_v4", &plan, reason, sizeof reason));
    assert_int_equal(plan.stages, 16);
    args.out_type = FIB_NORM_E4M3;
    assert_false(fib_norm_find(&args, "stream_v4", &plan, reason, sizeof reason));
    args.cols = 1008;
    assert_true(fib_norm_find(&args, "stream_v4", &plan, reason, sizeof reason));
    args.out = (void *)8;
    assert_false(fib_norm_find(&args, "stream_v4", &plan, reason, sizeof reason));
}

static void assert_refused(const char *name, int64_t cols, bool adds, const char *part)
{
    const struct fib_norm_args args = args_of(9, cols, FIB_NORM_BF16, adds, false);
    struct fib_norm_plan plan = {0};
    char reason[512] = "";
    assert_false(fib_norm_find(&args, name, &plan, reason, sizeof reason));
    assert_contains(reason, part);
}

static void test_refusals_name_what_there_is(void **state)
{
    (void)state;
    assert_refused("fast", 64, false, "there is no norm variant \"fast\"; built are warp_v1 ");
    assert_refused("", 64, false, "there is no norm variant \"\"; built are warp_v1 ");
    assert_refused("block_v3", 64, false, "\"block_v3\"");
    assert_refused("block99999999999999999999_v4", 64, false, "there is no norm variant");
    assert_refused("cluster2x99999999999_v4", 64, false, "there is no norm variant");
    assert_refused("block_v4", 16392, false,
                   "variant block_v4 cannot hold a row of 16392 elements");
    assert_refused("block100_v4", 64, false, "cannot hold a row of 64 elements");
    assert_refused("block32_v4", 4096, false, "cannot hold a row");
    assert_refused("cluster3_v4", 4096, false, "cannot hold a row");
    assert_refused("block_v8", 8192, true, "cannot hold a row");
    assert_refused("block_v4", 4097, false, "cannot hold a row");
    assert_refused("warp_v4", 1032, false, "cannot hold a row");
    assert_refused("stream_v4", 16392, false, "cannot hold a row");
    assert_refused("stream5x32_v4", 64, false, "cannot hold a row");
    assert_refused("stream4x256_v4", 64, false, "cannot hold a row");
    assert_refused("stream2x512_v4", 16384, false, "cannot hold a row"); /* ring of 2 x 2 rows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape_has_a_plan),
        cmocka_unit_test(test_rows_of_a_block_are_read_once),
        cmocka_unit_test(test_misaligned_rows_go_element_by_element),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_streamed_codes_come_in_sixteens),
        cmocka_unit_test(test_refusals_name_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
