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
#include "core/element.h"
#include "core/pool.h"

enum { BLOCK = 256, FILL_GRAIN = 16384 };

uint64_t fib_fill_key(uint64_t seed, const char *tensor_name, uint32_t draw)
{
    uint64_t key = fib_mix64(seed + fib_weyl_step);
    for (const char *c = tensor_name; *c; c++)
        key = fib_mix64((key ^ (unsigned char)*c) + fib_weyl_step);
    return fib_mix64((key ^ (UINT64_C(1) << 32 | draw)) + fib_weyl_step);
}

/* Words first, values second: 64-bit and 32-bit lanes do not share a loop well. */
#define BLOCK_FUNCTION(kind)                                                                       \
    FIB_CLONES static void kind##_block(uint64_t state, float scale, float offset,                 \
                                        float *restrict out)                                       \
    {                                                                                              \
        for (int i = 0; i < BLOCK; i++)                                                            \
            out[i] = fmaf(scale, fib_draw_##kind(fib_mix64(state + (uint64_t)i * fib_weyl_step)),  \
                          offset);                                                                 \
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
        fill_block(fill, key + (first + done) * fib_weyl_step, block);
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

FIB_CLONES static void checksum_stripes(const unsigned char *bytes, size_t stripe_count,
                                        uint64_t lanes[LANES])
{
    uint64_t local[LANES];
    memcpy(local, lanes, sizeof(local));
    for (size_t s = 0; s < stripe_count; s++) {
        uint64_t words[LANES];
        memcpy(words, bytes + s * STRIPE_BYTES, sizeof(words));
        for (int i = 0; i < LANES; i++)
            local[i] = fib_checksum_step(local[i], words[i]);
    }
    memcpy(lanes, local, sizeof(local));
}

static uint64_t checksum_chunk(const unsigned char *bytes, size_t byte_count, uint64_t number)
{
    uint64_t lanes[LANES];
    for (int i = 0; i < LANES; i++)
        lanes[i] = (uint64_t)(i + 1) * fib_weyl_step;
    const size_t stripe_count = byte_count / STRIPE_BYTES;
    checksum_stripes(bytes, stripe_count, lanes);
    unsigned char rest[STRIPE_BYTES] = {0};
    const size_t rest_bytes = byte_count - stripe_count * STRIPE_BYTES;
    if (rest_bytes > 0) {
        memcpy(rest, bytes + stripe_count * STRIPE_BYTES, rest_bytes);
        checksum_stripes(rest, 1, lanes);
    }
    uint64_t sum = fib_mix64(number + fib_weyl_step) ^ byte_count;
    for (int i = 0; i < LANES; i++)
        sum = fib_mix64((sum ^ lanes[i]) + fib_weyl_step);
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
    return fib_mix64(atomic_load(&job.total) ^ byte_count);
}
