/* Counter-based tensor contents and checksums.
 *
 * Values are made in blocks of a fixed length, so that every loop has a constant trip count and
 * becomes vectors; a range that ends inside a block computes the block and keeps its part. */
#include "core/fill.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/clones.h"
#include "core/pool.h"

enum { BLOCK = 256, FILL_GRAIN = 16384 };

/* 2^64 / golden ratio, odd: consecutive multiples of it are spread over all 64 bits. */
static const uint64_t weyl_step = UINT64_C(0x9e3779b97f4a7c15);

/* Finaliser of splitmix64: a bijection in which every input bit moves about half the output. */
FIB_INLINE uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t fib_fill_key(uint64_t seed, const char *tensor_name, uint32_t draw)
{
    uint64_t key = mix64(seed + weyl_step);
    for (const char *c = tensor_name; *c; c++)
        key = mix64((key ^ (unsigned char)*c) + weyl_step);
    return mix64((key ^ (UINT64_C(1) << 32 | draw)) + weyl_step);
}

/* ---- draws ---- */

/* -ln(y) for a normal y in (0, 1]: exponent by integer operations, the mantissa in
 * [sqrt(1/2), sqrt(2)) by a polynomial (relative error about 2e-7). */
FIB_INLINE float minus_log(float y)
{
    int32_t bits;
    memcpy(&bits, &y, sizeof(bits));
    const int32_t exponent = (bits - 0x3f3504f3) >> 23;
    const int32_t mantissa = bits - exponent * (1 << 23);
    float m;
    memcpy(&m, &mantissa, sizeof(m));
    const float f = m - 1.0f;
    float p = -0.0989535074f;
    p = fmaf(p, f, 0.161262479f);
    p = fmaf(p, f, -0.172782061f);
    p = fmaf(p, f, 0.199133479f);
    p = fmaf(p, f, -0.249689070f);
    p = fmaf(p, f, 0.333346060f);
    p = fmaf(p, f, -0.500003751f);
    p = fmaf(p, f, 1.0f);
    return -fmaf((float)exponent, 0.693147181f, p * f);
}

/* Quantile of the standard normal for probability (1 + x) / 2, where x is an odd multiple of 2^-24
 * in (-1, 1). With w = -ln(1 - x^2) the quotient of the quantile and x is a smooth function of w
 * below 5 and of sqrt(w) above; both were fitted by interpolation at Chebyshev nodes (relative
 * errors 6e-7 and 4e-7). Both are evaluated for every element, because a select vectorises and a
 * branch does not. */
FIB_INLINE float normal_quantile(float x)
{
    const float w = minus_log(fmaf(-x, x, 1.0f));
    const float c = w - 2.5f;
    float centre = 5.03715779e-07f;
    centre = fmaf(centre, c, -4.48778810e-06f);
    centre = fmaf(centre, c, -6.41128474e-06f);
    centre = fmaf(centre, c, 3.07195459e-04f);
    centre = fmaf(centre, c, -1.77240301e-03f);
    centre = fmaf(centre, c, -5.90574539e-03f);
    centre = fmaf(centre, c, 0.348802182f);
    centre = fmaf(centre, c, 2.12331310f);
    const float t = sqrtf(w < 0.0f ? 0.0f : w) - 3.0f;
    float tail = 1.53051365e-03f;
    tail = fmaf(tail, t, -5.08513818e-03f);
    tail = fmaf(tail, t, 8.28658655e-03f);
    tail = fmaf(tail, t, -1.07920060e-02f);
    tail = fmaf(tail, t, 1.33225915e-02f);
    tail = fmaf(tail, t, 1.41657922f);
    tail = fmaf(tail, t, 4.00643502f);
    return x * (w < 5.0f ? centre : tail);
}

/* Each draw takes the top bits of its element's word. */
FIB_INLINE float draw_normal(uint64_t word)
{
    const int32_t top24 = (int32_t)(word >> 40);
    return normal_quantile((float)(2 * top24 + 1 - (1 << 24)) * 0x1p-24f);
}

FIB_INLINE float draw_uniform(uint64_t word)
{
    return (float)(int32_t)(word >> 40) * 0x1p-24f;
}

FIB_INLINE float draw_int(uint64_t word)
{
    return (float)((int32_t)(((word >> 32) * 9) >> 32) - 4);
}

/* Words first, values second: 64-bit and 32-bit lanes do not share a loop well. */
#define BLOCK_FUNCTION(kind)                                                                       \
    FIB_CLONES static void kind##_block(uint64_t state, float scale, float offset,                 \
                                        float *restrict out)                                       \
    {                                                                                              \
        for (int i = 0; i < BLOCK; i++)                                                            \
            out[i] = fmaf(scale, draw_##kind(mix64(state + (uint64_t)i * weyl_step)), offset);     \
    }

BLOCK_FUNCTION(normal)
BLOCK_FUNCTION(uniform)
BLOCK_FUNCTION(int)
#undef BLOCK_FUNCTION

static void constant_block(float value, float *out)
{
    for (int i = 0; i < BLOCK; i++)
        out[i] = value;
}

static void fill_block(const struct fib_fill *fill, uint64_t state, float *out)
{
    const float scale = fill->scale == 0.0f ? 1.0f : fill->scale;
    switch (fill->kind) {
    case FIB_FILL_NORMAL:
        normal_block(state, scale, fill->offset, out);
        break;
    case FIB_FILL_UNIFORM:
        uniform_block(state, scale, fill->offset, out);
        break;
    case FIB_FILL_INTS:
        int_block(state, scale, fill->offset, out);
        break;
    case FIB_FILL_CONSTANT:
        constant_block(scale + fill->offset, out);
        break;
    case FIB_FILL_NONE:
        assert(!"a tensor without a fill rule cannot be filled");
    }
}

void fib_fill_range(const struct fib_fill *fill, enum fib_dtype dtype, uint64_t key, uint64_t first,
                    size_t count, void *dst)
{
    float block[BLOCK];
    const size_t size_bytes = fib_dtype_bytes(dtype);
    for (size_t done = 0; done < count; done += BLOCK) {
        const size_t n = count - done < BLOCK ? count - done : BLOCK;
        fill_block(fill, key + (first + done) * weyl_step, block);
        fib_dtype_from_f32(dtype, block, (char *)dst + done * size_bytes, n);
    }
}

struct fill_job {
    const struct fib_fill *fill;
    enum fib_dtype dtype;
    uint64_t key;
    char *dst;
};

static void fill_body(void *context, int64_t first, int64_t last)
{
    const struct fill_job *const job = context;
    fib_fill_range(job->fill, job->dtype, job->key, (uint64_t)first, (size_t)(last - first),
                   job->dst + (size_t)first * fib_dtype_bytes(job->dtype));
}

void fib_fill_host(struct fib_pool *pool, const struct fib_fill *fill, enum fib_dtype dtype,
                   uint64_t key, size_t count, void *dst)
{
    struct fill_job job = {.fill = fill, .dtype = dtype, .key = key, .dst = dst};
    fib_pool_for(pool, (int64_t)count, FILL_GRAIN, fill_body, &job);
}

/* ---- checksum ---- */

/* The bytes are cut into chunks of fixed size. A chunk runs through eight independent lanes; its
 * result is mixed with the chunk's number and added to the total, so chunks may finish in any
 * order and yet changing places changes the sum. */
enum { CHUNK_BYTES = 1 << 16, LANES = 8, STRIPE_BYTES = LANES * 8 };

FIB_INLINE uint64_t lane_step(uint64_t lane, uint64_t word)
{
    /* The rotation carries high bits down: a product alone never does. */
    const uint64_t x = (lane ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return x << 29 | x >> 35;
}

FIB_CLONES static void checksum_stripes(const unsigned char *bytes, size_t stripe_count,
                                        uint64_t lanes[LANES])
{
    uint64_t local[LANES];
    memcpy(local, lanes, sizeof(local));
    for (size_t s = 0; s < stripe_count; s++) {
        uint64_t words[LANES];
        memcpy(words, bytes + s * STRIPE_BYTES, sizeof(words));
        for (int i = 0; i < LANES; i++)
            local[i] = lane_step(local[i], words[i]);
    }
    memcpy(lanes, local, sizeof(local));
}

static uint64_t checksum_chunk(const unsigned char *bytes, size_t byte_count, uint64_t number)
{
    uint64_t lanes[LANES];
    for (int i = 0; i < LANES; i++)
        lanes[i] = (uint64_t)(i + 1) * weyl_step;
    const size_t stripe_count = byte_count / STRIPE_BYTES;
    checksum_stripes(bytes, stripe_count, lanes);
    unsigned char rest[STRIPE_BYTES] = {0};
    const size_t rest_bytes = byte_count - stripe_count * STRIPE_BYTES;
    if (rest_bytes > 0) {
        memcpy(rest, bytes + stripe_count * STRIPE_BYTES, rest_bytes);
        checksum_stripes(rest, 1, lanes);
    }
    uint64_t sum = mix64(number + weyl_step) ^ byte_count;
    for (int i = 0; i < LANES; i++)
        sum = mix64((sum ^ lanes[i]) + weyl_step);
    return sum;
}

struct checksum_job {
    const unsigned char *bytes;
    size_t byte_count;
    _Atomic uint64_t total;
};

static void checksum_body(void *context, int64_t first, int64_t last)
{
    struct checksum_job *const job = context;
    uint64_t total = 0;
    for (int64_t chunk = first; chunk < last; chunk++) {
        const size_t start = (size_t)chunk * CHUNK_BYTES;
        const size_t left = job->byte_count - start;
        total += checksum_chunk(job->bytes + start, left < CHUNK_BYTES ? left : CHUNK_BYTES,
                                (uint64_t)chunk);
    }
    atomic_fetch_add(&job->total, total);
}

uint64_t fib_checksum(struct fib_pool *pool, const void *bytes, size_t byte_count)
{
    struct checksum_job job = {.bytes = bytes, .byte_count = byte_count};
    const size_t chunk_count = (byte_count + CHUNK_BYTES - 1) / CHUNK_BYTES;
    fib_pool_for(pool, (int64_t)chunk_count, 1, checksum_body, &job);
    return mix64(atomic_load(&job.total) ^ byte_count);
}
