/* core/fill.c: the same bits everywhere, plausible distributions, checksums. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fill.h"
#include "core/pool.h"

static const struct fib_fill normal = {.kind = FIB_FILL_NORMAL};
static const struct fib_fill uniform = {.kind = FIB_FILL_UNIFORM};
static const struct fib_fill ints = {.kind = FIB_FILL_INTS};

/* ---- golden values: another implementation (a GPU's, say) must give these ---- */

enum { GOLDEN_COUNT = 20011 };

/* fib_checksum() of GOLDEN_COUNT elements of the tensor "x", seed 42, draw 0: normal, uniform and
 * integer data, scale 1, offset 0. Little-endian. */
static const uint64_t golden[FIB_DTYPE_COUNT][3] = {
    [FIB_BF16] = {0x0ac3362af64f1d56, 0xa3bb6358e6ac5131, 0xd00a8b32052d5370},
    [FIB_F16] = {0x74e6480b50bebbb0, 0xa6d59bc382971399, 0xb15fdfdb368ec1ec},
    [FIB_F32] = {0x2fc98c2e74c5e716, 0xdb5e66b87ead1cfe, 0xdcb4c91b23378d32},
    [FIB_F64] = {0xc291999f4a3f93ad, 0xad854cdc6fd59bfd, 0x7d4b1dbfdea2db05},
    [FIB_FP8_E4M3] = {0x870faddf64a1be17, 0x8dac6b2fa6a067b6, 0xcf1c97a65e990d39},
    [FIB_FP8_E5M2] = {0x08de53af947cad9b, 0x3a8c67a33e0b8900, 0x3d522ace54c97515},
    [FIB_U8] = {0xf0c3b5732d630ede, 0x5e9b536b2cc59c5b, 0x13774d40e2955feb},
    [FIB_I32] = {0x46e56cbfa56293ad, 0x205059bfa3cd8c63, 0x159681eae676dc63},
    [FIB_I64] = {0x375199202a44c60f, 0x1d623b5c1ef79c4a, 0x259389c8b690d802},
};

static uint64_t checksum_of(const struct fib_fill *fill, enum fib_dtype dtype)
{
    static double room[GOLDEN_COUNT];
    fib_fill_range(fill, dtype, fib_fill_key(42, "x", 0), 0, GOLDEN_COUNT, room);
    return fib_checksum(NULL, room, GOLDEN_COUNT * fib_dtype_bytes(dtype));
}

static void golden_checksums(void **state)
{
    (void)state;
    const struct fib_fill *const fills[] = {&normal, &uniform, &ints};
    for (int d = 0; d < FIB_DTYPE_COUNT; d++)
        for (int f = 0; f < 3; f++) {
            const uint64_t sum = checksum_of(fills[f], (enum fib_dtype)d);
            if (sum != golden[d][f])
                fail_msg("%s, fill %d: 0x%016llx", fib_dtype_name((enum fib_dtype)d), f,
                         (unsigned long long)sum);
        }
}

static void golden_first_values(void **state)
{
    (void)state;
    float x[4];
    fib_fill_range(&normal, FIB_F32, fib_fill_key(42, "x", 0), 0, 4, x);
    static const float expected[] = {0x1.f5a6e2p-1f, -0x1.693988p-1f, 0x1.0db80cp+0f,
                                     -0x1.52914ap-2f};
    assert_memory_equal(x, expected, sizeof(expected));
}

/* ---- independence of cutting and threads ---- */

static void any_cut_gives_the_same_bytes(void **state)
{
    (void)state;
    enum { COUNT = 3001 };
    const uint64_t key = fib_fill_key(7, "weight", 1);
    for (int d = 0; d < FIB_DTYPE_COUNT; d++) {
        const enum fib_dtype dtype = (enum fib_dtype)d;
        const size_t size_bytes = fib_dtype_bytes(dtype);
        char *const whole = malloc(COUNT * size_bytes);
        char *const pieces = malloc(COUNT * size_bytes);
        fib_fill_range(&normal, dtype, key, 0, COUNT, whole);
        size_t first = 0, step = 1;
        while (first < COUNT) {
            const size_t n = COUNT - first < step ? COUNT - first : step;
            fib_fill_range(&normal, dtype, key, first, n, pieces + first * size_bytes);
            first += n;
            step = step * 2 + 1;
        }
        assert_memory_equal(whole, pieces, COUNT * size_bytes);
        free(whole);
        free(pieces);
    }
}

static void any_pool_gives_the_same_bytes(void **state)
{
    (void)state;
    enum { COUNT = 300003 };
    uint16_t *const alone = malloc(COUNT * sizeof(*alone));
    uint16_t *const shared = malloc(COUNT * sizeof(*shared));
    const uint64_t key = fib_fill_key(1, "x", 0);
    fib_fill_host(NULL, &normal, FIB_BF16, key, COUNT, alone);
    const uint64_t sum = fib_checksum(NULL, alone, COUNT * sizeof(*alone));
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        struct fib_pool *pool = fib_pool_create(threads);
        memset(shared, 0, COUNT * sizeof(*shared));
        fib_fill_host(pool, &normal, FIB_BF16, key, COUNT, shared);
        assert_memory_equal(alone, shared, COUNT * sizeof(*alone));
        assert_true(fib_checksum(pool, shared, COUNT * sizeof(*shared)) == sum);
        fib_pool_free(&pool);
    }
    free(alone);
    free(shared);
}

static void keys_differ(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y", "", "xx", "weight", "weights"};
    uint64_t keys[6 * 3 * 3];
    size_t count = 0;
    for (int n = 0; n < 6; n++)
        for (uint64_t seed = 0; seed < 3; seed++)
            for (uint32_t draw = 0; draw < 3; draw++)
                keys[count++] = fib_fill_key(seed, names[n], draw);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
    float a[64], b[64];
    fib_fill_range(&uniform, FIB_F32, fib_fill_key(42, "x", 0), 0, 64, a);
    fib_fill_range(&uniform, FIB_F32, fib_fill_key(42, "x", 1), 0, 64, b);
    int equal = 0;
    for (int i = 0; i < 64; i++)
        equal += a[i] == b[i];
    assert_int_equal(equal, 0);
}

/* ---- distributions ---- */

static void normal_moments(void **state)
{
    (void)state;
    enum { COUNT = 1000000 };
    float *const x = malloc(COUNT * sizeof(*x));
    fib_fill_range(&normal, FIB_F32, fib_fill_key(3, "x", 0), 0, COUNT, x);
    double sums[5] = {0}, lag = 0.0;
    int beyond_3 = 0, beyond_4 = 0;
    for (int i = 0; i < COUNT; i++) {
        double power = 1.0;
        for (int k = 1; k <= 4; k++)
            sums[k] += power *= (double)x[i];
        lag += i > 0 ? (double)x[i] * (double)x[i - 1] : 0.0;
        beyond_3 += fabsf(x[i]) > 3.0f;
        beyond_4 += fabsf(x[i]) > 4.0f;
    }
    /* Each bound is five standard errors. */
    assert_true(fabs(sums[1] / COUNT) < 5e-3);
    assert_true(fabs(sums[2] / COUNT - 1.0) < 5e-3 * sqrt(2.0));
    assert_true(fabs(sums[3] / COUNT) < 5e-3 * sqrt(15.0));
    assert_true(fabs(sums[4] / COUNT - 3.0) < 5e-3 * sqrt(96.0));
    assert_true(fabs(lag / COUNT) < 5e-3);
    assert_in_range(beyond_3, 2700 - 5 * 52, 2700 + 5 * 52);
    assert_in_range(beyond_4, 63 - 5 * 8, 63 + 5 * 8);
    free(x);
}

/* The generator's finaliser backwards, so that a test can ask for the value of any word. */
static uint64_t inverse_of(uint64_t odd)
{
    uint64_t inverse = 1;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    return inverse;
}

static uint64_t undo_shift(uint64_t y, int shift)
{
    uint64_t x = y;
    for (int done = shift; done < 64; done += shift)
        x = y ^ (x >> shift);
    return x;
}

static uint64_t key_of_word(uint64_t word)
{
    word = undo_shift(word, 31) * inverse_of(UINT64_C(0x94d049bb133111eb));
    word = undo_shift(word, 27) * inverse_of(UINT64_C(0xbf58476d1ce4e5b9));
    return undo_shift(word, 30);
}

static float value_of_word(const struct fib_fill *fill, uint64_t word)
{
    float value = NAN;
    fib_fill_range(fill, FIB_F32, key_of_word(word), 0, 1, &value);
    return value;
}

static void extreme_words(void **state)
{
    (void)state;
    const float lowest = value_of_word(&normal, 0);
    const float highest = value_of_word(&normal, UINT64_MAX);
    assert_true(lowest < -5.41f && (double)lowest >= -FIB_NORMAL_MAX);
    assert_true(highest == -lowest);
    const float centre = value_of_word(&normal, UINT64_C(1) << 63);
    assert_true(centre > 0.0f && centre < 1e-6f);
    assert_true(value_of_word(&uniform, 0) == 0.0f);
    assert_true(value_of_word(&uniform, UINT64_MAX) == 1.0f - 0x1p-24f);
    assert_true(value_of_word(&ints, 0) == -4.0f);
    assert_true(value_of_word(&ints, UINT64_MAX) == 4.0f);
}

/* Distance of a value from the true quantile of its word, relative to the value. */
static double quantile_error(uint32_t top24, float value)
{
    const double p = (2.0 * top24 + 1.0) * 0x1p-25;
    const double smaller = p < 0.5 ? p : 1.0 - p;
    const double z = fabs((double)value);
    const double density = exp(-0.5 * z * z) / sqrt(2.0 * 3.14159265358979323846);
    return fabs(0.5 * erfc(z / sqrt(2.0)) - smaller) / density / fmax(z, 1e-3);
}

static void normal_follows_the_quantile(void **state)
{
    (void)state;
    float previous = -INFINITY;
    uint32_t top24 = 0;
    while (top24 < 1u << 24) {
        const float value = value_of_word(&normal, (uint64_t)top24 << 40 | 0xabcdef);
        assert_true(value >= previous && fabs((double)value) <= FIB_NORMAL_MAX);
        assert_true(quantile_error(top24, value) < 1e-6);
        previous = value;
        const bool tail = top24 < 2048 || top24 >= (1u << 24) - 4096;
        top24 += tail ? 1 : 2039;
    }
}

static void uniform_and_ints(void **state)
{
    (void)state;
    enum { COUNT = 90000 };
    float *const x = malloc(COUNT * sizeof(*x));
    fib_fill_range(&uniform, FIB_F32, fib_fill_key(5, "p", 0), 0, COUNT, x);
    double sum = 0.0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(x[i] >= 0.0f && x[i] < 1.0f);
        sum += (double)x[i];
    }
    assert_true(fabs(sum / COUNT - 0.5) < 5 * 0.2887 / 300);
    int hits[9] = {0};
    fib_fill_range(&ints, FIB_F32, fib_fill_key(5, "p", 0), 0, COUNT, x);
    for (int i = 0; i < COUNT; i++) {
        assert_true(x[i] == rintf(x[i]) && fabsf(x[i]) <= 4.0f);
        hits[(int)x[i] + 4]++;
    }
    for (int k = 0; k < 9; k++)
        assert_in_range(hits[k], 10000 - 5 * 95, 10000 + 5 * 95);
    free(x);
}

static void scale_offset_constant(void **state)
{
    (void)state;
    float plain[300], scaled[300];
    const uint64_t key = fib_fill_key(42, "x", 0);
    const struct fib_fill rule = {.kind = FIB_FILL_NORMAL, .scale = 0.125f, .offset = 1.5f};
    fib_fill_range(&normal, FIB_F32, key, 0, 300, plain);
    fib_fill_range(&rule, FIB_F32, key, 0, 300, scaled);
    for (int i = 0; i < 300; i++)
        assert_true(scaled[i] == fmaf(0.125f, plain[i], 1.5f));
    const struct fib_fill constant = FIB_FILL_CONST(2.5f);
    uint8_t codes[2];
    fib_fill_range(&constant, FIB_FP8_E4M3, key, 10, 2, codes);
    assert_true(codes[0] == codes[1] && fib_dtype_load(FIB_FP8_E4M3, codes, 1) == 2.5);
    const struct fib_fill one = {.kind = FIB_FILL_CONSTANT, .offset = 6.0f};
    int32_t whole = 0;
    fib_fill_range(&one, FIB_I32, key, 0, 1, &whole);
    assert_int_equal(whole, 7);
    const struct fib_fill data = FIB_FILL_DATA;
    assert_true(data.by_init && data.kind == FIB_FILL_NORMAL);
}

/* ---- checksums ---- */

static void checksum_sees_every_change(void **state)
{
    (void)state;
    enum { BYTES = 200001 }; /* several chunks and a ragged end */
    unsigned char *const bytes = calloc(1, BYTES);
    const uint64_t zeros = fib_checksum(NULL, bytes, BYTES);
    assert_true(zeros != fib_checksum(NULL, bytes, BYTES - 1));
    static const size_t places[] = {0, 7, 63, 64, 65535, 65536, 131071, 200000};
    uint64_t seen[16];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        static const unsigned char flips[] = {0x01, 0x80};
        for (int f = 0; f < 2; f++) {
            bytes[places[i]] ^= flips[f];
            seen[count++] = fib_checksum(NULL, bytes, BYTES);
            bytes[places[i]] ^= flips[f];
        }
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(seen[i] != zeros);
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
    /* Two sign flips in the same lane do not cancel. */
    bytes[7] ^= 0x80;
    bytes[64 + 7] ^= 0x80;
    assert_true(fib_checksum(NULL, bytes, BYTES) != zeros);
    free(bytes);
}

static void checksum_sees_order(void **state)
{
    (void)state;
    enum { CHUNK = 65536 };
    unsigned char *const bytes = calloc(3, CHUNK);
    memset(bytes, 1, CHUNK);
    const uint64_t first = fib_checksum(NULL, bytes, 3 * CHUNK);
    memset(bytes, 0, CHUNK);
    memset(bytes + CHUNK, 1, CHUNK); /* whole chunks change places */
    assert_true(fib_checksum(NULL, bytes, 3 * CHUNK) != first);
    const uint64_t words[2] = {1, 2}, swapped[2] = {2, 1};
    assert_true(fib_checksum(NULL, words, sizeof(words)) !=
                fib_checksum(NULL, swapped, sizeof(swapped)));
    assert_true(fib_checksum(NULL, bytes, 0) == fib_checksum(NULL, words, 0));
    /* Alignment does not matter. */
    memcpy(bytes + 1, words, sizeof(words));
    assert_true(fib_checksum(NULL, bytes + 1, sizeof(words)) ==
                fib_checksum(NULL, words, sizeof(words)));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_checksums),
        cmocka_unit_test(golden_first_values),
        cmocka_unit_test(any_cut_gives_the_same_bytes),
        cmocka_unit_test(any_pool_gives_the_same_bytes),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(normal_moments),
        cmocka_unit_test(extreme_words),
        cmocka_unit_test(normal_follows_the_quantile),
        cmocka_unit_test(uniform_and_ints),
        cmocka_unit_test(scale_offset_constant),
        cmocka_unit_test(checksum_sees_every_change),
        cmocka_unit_test(checksum_sees_order),
    };
    return cmocka_run_group_tests_name("fill", tests, NULL, NULL);
}
