/* Ring slots: sizes, contents, guards, changed inputs, poison, restore, redraw. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "core/pool.h"
#include "core/tensors.h"

enum { X = 0, W, STATE, OUT, EPS, TENSORS };

/* Odd sizes, so that ends do not fall on alignment: 35, 14, 21, 35 elements. */
static struct fib_problem small_problem(void)
{
    struct fib_problem problem = {0};
    fib_problem_add(&problem, &(struct fib_tensor){.name = "x",
                                                   .role = FIB_INPUT,
                                                   .dtype = FIB_BF16,
                                                   .rank = 2,
                                                   .shape = {5, 7},
                                                   .fill = FIB_FILL_DATA});
    fib_problem_add(&problem, &(struct fib_tensor){.name = "w",
                                                   .role = FIB_INPUT,
                                                   .dtype = FIB_F32,
                                                   .rank = 1,
                                                   .shape = {14},
                                                   .fill = FIB_FILL_DATA});
    fib_problem_add(&problem, &(struct fib_tensor){.name = "state",
                                                   .role = FIB_INOUT,
                                                   .dtype = FIB_F32,
                                                   .rank = 1,
                                                   .shape = {21},
                                                   .fill = FIB_FILL_DATA});
    fib_problem_add(
        &problem,
        &(struct fib_tensor){
            .name = "out", .role = FIB_OUTPUT, .dtype = FIB_U8, .rank = 1, .shape = {35}});
    fib_problem_add(&problem, &(struct fib_tensor){.name = "eps",
                                                   .role = FIB_SCALAR,
                                                   .dtype = FIB_F32,
                                                   .rank = 1,
                                                   .shape = {1},
                                                   .fill = FIB_FILL_CONST(0.5f)});
    return problem;
}

/* One input of so many bytes. */
static struct fib_problem flat_problem(int64_t bytes)
{
    struct fib_problem problem = {0};
    fib_problem_add(&problem, &(struct fib_tensor){.name = "x",
                                                   .role = FIB_INPUT,
                                                   .dtype = FIB_U8,
                                                   .rank = 1,
                                                   .shape = {bytes},
                                                   .fill = {.kind = FIB_FILL_INTS}});
    return problem;
}

static struct fib_device *open_fake(void)
{
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    const struct fib_fake_script script = {0};
    assert_int_equal(fib_device_fake_open(NULL, &script, &device, &err), FIB_OK);
    return device;
}

static struct fib_tensors *create(struct fib_device *device, const struct fib_problem *problem,
                                  uint64_t seed, uint32_t slot_count)
{
    struct fib_tensors *tensors = NULL;
    struct fib_error err = {0};
    if (fib_tensors_create(device, problem, seed, slot_count, &tensors, &err) != FIB_OK)
        fail_msg("%s", err.text);
    return tensors;
}

static void sizes(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    /* 70 + 56 + 84 + 35; the scalar does not count */
    assert_float_equal(fib_tensors_footprint(&problem), 245, 0);
    /* Tensors start at 256, 1024, 1792, 2560, 3328: two guards and up to a multiple of 256 after
     * each; the last one ends at 3332 and has its guard up to 3588 -> 3840. */
    const uint64_t one = fib_tensors_bytes(&problem, 1), two = fib_tensors_bytes(&problem, 2);
    const uint64_t stride = two - one;
    assert_int_equal(stride, 3840);
    assert_int_equal(one, stride + 256); /* the pristine copy of `state` */
    assert_int_equal(fib_tensors_bytes(&problem, 65536), 65536 * stride + 256);
}

static void ring_rule(void **state)
{
    (void)state;
    struct fib_device_facts facts = {.ring_bytes = 64000, .ring_limit_bytes = 1 << 30};
    bool capped = true;
    struct fib_problem problem = flat_problem(10000);
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 8); /* 7 + 1 */
    assert_false(capped);
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, true, &capped), 1);
    assert_false(capped);
    problem = flat_problem(32000);
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 3);
    problem = flat_problem(64000);
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 2);
    problem = flat_problem(500000);
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 2);
    assert_false(capped);
    facts.ring_limit_bytes = 600000;
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 1);
    assert_true(capped);
    /* 10000 bytes make a slot of 10752 with its guards: 5 of them in 60000. */
    problem = flat_problem(10000);
    facts.ring_limit_bytes = 60000;
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 5);
    assert_true(capped);
    facts = (struct fib_device_facts){.ring_bytes = 1 << 28, .ring_limit_bytes = UINT64_MAX};
    problem = flat_problem(16);
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 65536);
    assert_true(capped);
    problem.tensors[0].role = FIB_SCALAR; /* no footprint at all */
    assert_int_equal(fib_tensors_ring_slots(&problem, &facts, false, &capped), 65536);
    assert_true(capped);
}

static void out_of_memory(void **state)
{
    (void)state;
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = NULL;
    struct fib_error err = {0};
    struct fib_problem problem = flat_problem((INT64_C(6) << 30) + (INT64_C(154) << 20));
    assert_int_equal(fib_tensors_create(device, &problem, 1, 2, &tensors, &err), FIB_ERR_OOM);
    assert_null(tensors);
    assert_string_equal(err.text, "needs 12.3 GiB for 2 ring slots, 1 GiB free");
    err = (struct fib_error){0};
    assert_int_equal(fib_tensors_create(device, &problem, 1, 1, &tensors, &err), FIB_ERR_OOM);
    assert_contains(err.text, "for 1 ring slot, ");
    err = (struct fib_error){0};
    problem = flat_problem(INT64_MAX - 100); /* the sum of all slots passes 64 bits */
    assert_true(fib_tensors_bytes(&problem, 65536) == UINT64_MAX);
    assert_int_equal(fib_tensors_create(device, &problem, 1, 65536, &tensors, &err), FIB_ERR_OOM);
    assert_contains(err.text, "for 65536 ring slots");
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

static void check_slots_equal(struct fib_tensors *tensors, const struct fib_problem *problem)
{
    for (uint32_t slot = 1; slot < fib_tensors_slot_count(tensors); slot++)
        for (int t = 0; t < problem->tensor_count; t++) {
            void *address = fib_tensors_address(tensors, slot, t);
            assert_int_equal((uintptr_t)address % 256, 0);
            assert_memory_equal(address, fib_tensors_address(tensors, 0, t),
                                fib_tensor_bytes(&problem->tensors[t]));
        }
}

static void contents(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 7);
    struct fib_error err = {0};
    unsigned char expected[70];
    fib_fill_range(&problem.tensors[X].fill, FIB_BF16, fib_fill_key(42, "x", 0), 0, 35, expected);
    assert_int_equal(fib_tensors_slot_count(tensors), 7);
    assert_memory_equal(fib_tensors_address(tensors, 0, X), expected, 70);
    assert_ptr_equal(fib_tensors_host(tensors, 3, X, &err), fib_tensors_address(tensors, 3, X));
    assert_float_equal(*(const float *)fib_tensors_address(tensors, 6, EPS), 0.5, 0);
    for (int i = 0; i < 35; i++)
        assert_int_equal(((const unsigned char *)fib_tensors_address(tensors, 6, OUT))[i],
                         FIB_POISON_A);
    check_slots_equal(tensors, &problem);
    assert_true(fib_tensors_has_inout(tensors));
    assert_int_equal(fib_tensors_synchronize(tensors, &err), FIB_OK);
    fib_tensors_free(&tensors);
    assert_null(tensors);
    fib_device_close(&device);
}

/* Each single byte of the guards next to a tensor, written with each bit flipped. */
static void guards_see_one_byte(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 3);
    struct fib_error err = {0};
    for (int t = 0; t < problem.tensor_count; t++) {
        unsigned char *first = fib_tensors_address(tensors, 1, t);
        unsigned char *end = first + fib_tensor_bytes(&problem.tensors[t]);
        for (int distance = 1; distance <= 128; distance++) {
            for (int side = 0; side < 2; side++) {
                unsigned char *victim = side ? end + distance - 1 : first - distance;
                char text[160];
                struct fib_verification found = {0};
                snprintf(text, sizeof(text), "guard bytes of tensor %s overwritten, %d byte%s %s",
                         problem.tensors[t].name, distance, distance == 1 ? "" : "s",
                         side ? "past its end" : "before its start");
                *victim ^= (unsigned char)(1u << (distance % 8));
                assert_int_equal(fib_tensors_verify(tensors, 1, &found, &err), FIB_OK);
                *victim ^= (unsigned char)(1u << (distance % 8));
                assert_true(found.failed);
                assert_string_equal(found.message, text);
            }
        }
    }
    for (uint32_t slot = 0; slot < 3; slot++) {
        struct fib_verification found = {0};
        assert_int_equal(fib_tensors_verify(tensors, slot, &found, &err), FIB_OK);
        assert_false(found.failed);
    }
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

/* A kernel that writes its whole slot one byte late leaves a pattern that looks right but is not in
 * its place. */
static void guards_see_a_shift(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 2);
    struct fib_error err = {0};
    struct fib_verification found = {0};
    unsigned char *end = (unsigned char *)fib_tensors_address(tensors, 0, OUT) + 35;
    memmove(end + 1, end, 100);
    assert_int_equal(fib_tensors_verify(tensors, 0, &found, &err), FIB_OK);
    assert_true(found.failed);
    assert_contains(found.message, "guard bytes of tensor out overwritten");
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

static void changed_input_is_named(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 2);
    struct fib_error err = {0};
    struct fib_verification found = {0};
    unsigned char *x = fib_tensors_address(tensors, 1, X);
    x[2 * 17 + 1] ^= 0x01;
    assert_int_equal(fib_tensors_verify(tensors, 1, &found, &err), FIB_OK);
    assert_true(found.failed);
    assert_string_equal(found.message, "input x was changed, first at element 17");
    found = (struct fib_verification){0};
    assert_int_equal(fib_tensors_verify(tensors, 0, &found, &err), FIB_OK);
    assert_false(found.failed);
    x[2 * 17 + 1] ^= 0x01;
    *(float *)fib_tensors_address(tensors, 1, EPS) = 0.25f;
    assert_int_equal(fib_tensors_verify(tensors, 1, &found, &err), FIB_OK);
    assert_string_equal(found.message, "input eps was changed, first at element 0");
    /* Outputs and in-place tensors may change. */
    found = (struct fib_verification){0};
    memset(fib_tensors_address(tensors, 0, OUT), 1, 35);
    memset(fib_tensors_address(tensors, 0, STATE), 1, 84);
    assert_int_equal(fib_tensors_verify(tensors, 0, &found, &err), FIB_OK);
    assert_false(found.failed);
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

static void poison_writes_outputs_only(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 2);
    struct fib_error err = {0};
    unsigned char poison[35];
    assert_int_equal(fib_tensors_poison(tensors, 1, FIB_POISON_B, &err), FIB_OK);
    memset(poison, FIB_POISON_B, sizeof(poison));
    assert_memory_equal(fib_tensors_address(tensors, 1, OUT), poison, 35);
    memset(poison, FIB_POISON_A, sizeof(poison));
    assert_memory_equal(fib_tensors_address(tensors, 0, OUT), poison, 35);
    assert_memory_equal(fib_tensors_address(tensors, 1, STATE),
                        fib_tensors_address(tensors, 0, STATE), 84);
    struct fib_verification found = {0};
    assert_int_equal(fib_tensors_verify(tensors, 1, &found, &err), FIB_OK);
    assert_false(found.failed);
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

static void restore_brings_back(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 4);
    struct fib_error err = {0};
    unsigned char before[84], spoiled[84];
    memcpy(before, fib_tensors_address(tensors, 0, STATE), 84);
    memset(spoiled, 0xee, 84);
    for (uint32_t slot = 0; slot < 4; slot++)
        memcpy(fib_tensors_address(tensors, slot, STATE), spoiled, 84);
    assert_int_equal(fib_tensors_restore(tensors, 2, &err), FIB_OK);
    assert_memory_equal(fib_tensors_address(tensors, 2, STATE), before, 84);
    assert_memory_equal(fib_tensors_address(tensors, 1, STATE), spoiled, 84);
    const uint32_t slots[] = {3, 0};
    assert_int_equal(fib_tensors_restore_slots(tensors, NULL, slots, 2, &err), FIB_OK);
    assert_memory_equal(fib_tensors_address(tensors, 3, STATE), before, 84);
    assert_memory_equal(fib_tensors_address(tensors, 0, STATE), before, 84);
    assert_memory_equal(fib_tensors_address(tensors, 1, STATE), spoiled, 84);
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

static void redraw_changes_inputs(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem();
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 2);
    struct fib_error err = {0};
    struct fib_verification found = {0};
    float state_0[21], state_1[21];
    memcpy(state_0, fib_tensors_address(tensors, 0, STATE), 84);
    fib_fill_range(&problem.tensors[STATE].fill, FIB_F32, fib_fill_key(42, "state", 1), 0, 21,
                   state_1);
    assert_memory_not_equal(state_0, state_1, 84);
    assert_int_equal(fib_tensors_redraw(tensors, 0, 1, &err), FIB_OK);
    assert_memory_equal(fib_tensors_address(tensors, 0, STATE), state_1, 84);
    assert_memory_not_equal(fib_tensors_address(tensors, 0, X), fib_tensors_address(tensors, 1, X),
                            70);
    assert_float_equal(*(const float *)fib_tensors_address(tensors, 0, EPS), 0.5, 0);
    /* Both slots are still in order, each by its own draw. */
    assert_int_equal(fib_tensors_verify(tensors, 0, &found, &err), FIB_OK);
    assert_int_equal(fib_tensors_verify(tensors, 1, &found, &err), FIB_OK);
    assert_false(found.failed);
    memset(fib_tensors_address(tensors, 0, STATE), 0, 84);
    memset(fib_tensors_address(tensors, 1, STATE), 0, 84);
    const uint32_t both[] = {0, 1};
    assert_int_equal(fib_tensors_restore_slots(tensors, NULL, both, 2, &err), FIB_OK);
    assert_memory_equal(fib_tensors_address(tensors, 0, STATE), state_1, 84);
    assert_memory_equal(fib_tensors_address(tensors, 1, STATE), state_0, 84);
    /* A change after a redraw is found by the new sums, at the right element. */
    ((unsigned char *)fib_tensors_address(tensors, 0, W))[4 * 3] ^= 0x80;
    assert_int_equal(fib_tensors_verify(tensors, 0, &found, &err), FIB_OK);
    assert_string_equal(found.message, "input w was changed, first at element 3");
    assert_int_equal(fib_tensors_redraw(tensors, 0, 0, &err), FIB_OK);
    assert_memory_equal(fib_tensors_address(tensors, 0, X), fib_tensors_address(tensors, 1, X), 70);
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

static void nothing_in_place(void **state)
{
    (void)state;
    const struct fib_problem problem = flat_problem(1000);
    struct fib_device *device = open_fake();
    struct fib_tensors *tensors = create(device, &problem, 42, 2);
    struct fib_error err = {0};
    assert_false(fib_tensors_has_inout(tensors));
    assert_int_equal(fib_tensors_restore(tensors, 0, &err), FIB_OK);
    fib_tensors_free(&tensors);
    fib_device_close(&device);
}

/* The same case has the same bytes whatever ran before, on any number of threads. */
static void case_55_same_bytes_in_any_order(void **state)
{
    (void)state;
    const struct fib_problem problem = small_problem(), big = flat_problem(5 << 20);
    struct fib_pool *pool = fib_pool_create(3);
    struct fib_device *device = NULL;
    struct fib_error err = {0};
    assert_int_equal(fib_device_cpu_open(pool, &device, &err), FIB_OK);
    uint64_t sums[2][TENSORS];
    for (int pass = 0; pass < 2; pass++) {
        struct fib_tensors *tensors = create(device, &problem, 42, 3);
        for (int t = 0; t < TENSORS; t++)
            sums[pass][t] = fib_checksum(pool, fib_tensors_address(tensors, 2, t),
                                         fib_tensor_bytes(&problem.tensors[t]));
        assert_int_equal(fib_tensors_redraw(tensors, 0, 5, &err), FIB_OK);
        memset(fib_tensors_address(tensors, 1, X), 7, 70);
        fib_tensors_free(&tensors);
        struct fib_tensors *other = create(device, &big, 7, 2);
        memset(fib_tensors_address(other, 0, 0), 0xcd, 5 << 20);
        fib_tensors_free(&other);
    }
    assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
    struct fib_tensors *seeded = create(device, &problem, 43, 1);
    assert_true(sums[0][X] != fib_checksum(pool, fib_tensors_address(seeded, 0, X), 70));
    fib_tensors_free(&seeded);
    fib_device_close(&device);
    fib_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(ring_rule),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(contents),
        cmocka_unit_test(guards_see_one_byte),
        cmocka_unit_test(guards_see_a_shift),
        cmocka_unit_test(changed_input_is_named),
        cmocka_unit_test(poison_writes_outputs_only),
        cmocka_unit_test(restore_brings_back),
        cmocka_unit_test(redraw_changes_inputs),
        cmocka_unit_test(nothing_in_place),
        cmocka_unit_test(case_55_same_bytes_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
