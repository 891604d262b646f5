/* Full scans of an output, shared over the pool: NaN and infinity, unwritten elements.
 *
 * Both are the same search: elements of two captures whose masked bits equal a pattern each. */
#include <stdatomic.h>

#include "core/check.h"
#include "core/check_place.h"
#include "core/clones.h"
#include "core/pool.h"

enum { SCAN_BLOCK = 4096, SCAN_GRAIN = 1 << 16 };

struct scan {
    const void *first, *second;
    uint64_t first_pattern, second_pattern, mask;
    size_t size_bytes;
    _Atomic int64_t hit_count;
    _Atomic int64_t first_hit; /* INT64_MAX: none */
};

#define COUNT_FUNCTION(type)                                                                       \
    FIB_CLONES static unsigned count_##type(const type *a, const type *b, type pa, type pb,        \
                                            type mask, size_t count)                               \
    {                                                                                              \
        unsigned hits = 0;                                                                         \
        for (size_t i = 0; i < count; i++)                                                         \
            hits += (type)((type)(a[i] ^ pa) | (type)(b[i] ^ pb)) & mask ? 0u : 1u;                \
        return hits;                                                                               \
    }

COUNT_FUNCTION(uint8_t)
COUNT_FUNCTION(uint16_t)
COUNT_FUNCTION(uint32_t)
COUNT_FUNCTION(uint64_t)
#undef COUNT_FUNCTION

#define COUNT_CASE(type)                                                                           \
    case sizeof(type):                                                                             \
        return count_##type((const type *)scan->first + start, (const type *)scan->second + start, \
                            (type)scan->first_pattern, (type)scan->second_pattern,                 \
                            (type)scan->mask, count)

static unsigned count_hits(const struct scan *scan, int64_t start, size_t count)
{
    switch (scan->size_bytes) {
        COUNT_CASE(uint8_t);
        COUNT_CASE(uint16_t);
        COUNT_CASE(uint32_t);
        COUNT_CASE(uint64_t);
    default:
        return 0;
    }
}
#undef COUNT_CASE

static void lower_to(_Atomic int64_t *lowest, int64_t candidate)
{
    int64_t current = atomic_load(lowest);
    while (candidate < current && !atomic_compare_exchange_weak(lowest, &current, candidate))
        ;
}

static void scan_body(void *context, int64_t first, int64_t last)
{
    struct scan *const scan = context;
    int64_t hits = 0;
    for (int64_t start = first; start < last; start += SCAN_BLOCK) {
        const int64_t count = last - start < SCAN_BLOCK ? last - start : SCAN_BLOCK;
        const unsigned found = count_hits(scan, start, (size_t)count);
        if (found > 0 && hits == 0) {
            int64_t at = start;
            while (count_hits(scan, at, 1) == 0)
                at++;
            lower_to(&scan->first_hit, at);
        }
        hits += found;
    }
    atomic_fetch_add(&scan->hit_count, hits);
}

static void run_scan(struct fib_pool *pool, struct scan *scan, int64_t count)
{
    atomic_init(&scan->hit_count, 0);
    atomic_init(&scan->first_hit, INT64_MAX);
    fib_pool_for(pool, count, SCAN_GRAIN, scan_body, scan);
}

uint64_t fib_check_special_mask(enum fib_dtype dtype)
{
    switch (dtype) {
    case FIB_BF16:
        return 0x7f80;
    case FIB_F16:
        return 0x7c00;
    case FIB_F32:
        return 0x7f800000;
    case FIB_F64:
        return UINT64_C(0x7ff0000000000000);
    case FIB_FP8_E4M3:
        return 0x7f;
    case FIB_FP8_E5M2:
        return 0x7c;
    default:
        return 0;
    }
}

void fib_check_finite(struct fib_pool *pool, const struct fib_tensor *tensor, const void *output,
                      struct fib_verification *verification)
{
    const uint64_t mask = fib_check_special_mask(tensor->dtype);
    if (mask == 0)
        return;
    const int64_t elems = fib_tensor_elems(tensor);
    struct scan scan = {.first = output,
                        .second = output,
                        .first_pattern = mask,
                        .second_pattern = mask,
                        .mask = mask,
                        .size_bytes = fib_dtype_bytes(tensor->dtype)};
    run_scan(pool, &scan, elems);
    const int64_t hits = atomic_load(&scan.hit_count);
    if (hits == 0)
        return;
    char place[96], found[64];
    const int64_t at = atomic_load(&scan.first_hit);
    fib_place_text(tensor, at, place, sizeof(place));
    fib_place_value_text(tensor->dtype, output, at, found, sizeof(found));
    verification->mismatch_count += hits;
    fib_verification_fail(verification,
                          "%s: %lld of %lld elements are NaN or infinite, first at %s: %s",
                          tensor->name, (long long)hits, (long long)elems, place, found);
}

/* Elements that hold this pattern in both buffers, and the first of them. */
static int64_t count_both(struct fib_pool *pool, const struct fib_tensor *tensor, const void *first,
                          const void *second, uint64_t pattern, int64_t *first_hit)
{
    struct scan scan = {.first = first,
                        .second = second,
                        .first_pattern = pattern,
                        .second_pattern = pattern,
                        .mask = UINT64_MAX,
                        .size_bytes = fib_dtype_bytes(tensor->dtype)};
    run_scan(pool, &scan, fib_tensor_elems(tensor));
    *first_hit = atomic_load(&scan.first_hit);
    return atomic_load(&scan.hit_count);
}

/* An element with the poison of the first run in it, but not in the second, was written when that
 * run was over: by work that the call has not waited for. Where the poison is a NaN no rounding can
 * give it by chance. */
static void check_late(struct fib_pool *pool, const struct fib_tensor *tensor, const void *first,
                       int first_poison, const void *second, struct fib_verification *verification)
{
    const uint64_t pattern = UINT64_C(0x0101010101010101) * (unsigned char)first_poison;
    const uint64_t special = fib_check_special_mask(tensor->dtype);
    int64_t at = 0, ignored = 0;
    if (special == 0 || (pattern & special) != special)
        return;
    const int64_t left = count_both(pool, tensor, first, first, pattern, &at);
    if (left == 0)
        return;
    const int64_t late = left - count_both(pool, tensor, first, second, pattern, &ignored);
    if (late <= 0)
        return;
    char place[96];
    fib_place_text(tensor, at, place, sizeof(place));
    verification->mismatch_count += late;
    fib_verification_fail(
        verification,
        "%s: %lld of %lld elements were not written when the call was over, first "
        "at %s",
        tensor->name, (long long)late, (long long)fib_tensor_elems(tensor), place);
}

void fib_check_written(struct fib_pool *pool, const struct fib_tensor *tensor, const void *first,
                       int first_poison, const void *second, int second_poison,
                       struct fib_verification *verification)
{
    const uint64_t every_byte = UINT64_C(0x0101010101010101);
    const int64_t elems = fib_tensor_elems(tensor);
    struct scan scan = {.first = first,
                        .second = second,
                        .first_pattern = every_byte * (unsigned char)first_poison,
                        .second_pattern = every_byte * (unsigned char)second_poison,
                        .mask = UINT64_MAX,
                        .size_bytes = fib_dtype_bytes(tensor->dtype)};
    run_scan(pool, &scan, elems);
    const int64_t hits = atomic_load(&scan.hit_count);
    if (hits == 0) {
        check_late(pool, tensor, first, first_poison, second, verification);
        return;
    }
    char place[96];
    fib_place_text(tensor, atomic_load(&scan.first_hit), place, sizeof(place));
    verification->mismatch_count += hits;
    fib_verification_fail(verification, "%s: %lld of %lld elements were never written, first at %s",
                          tensor->name, (long long)hits, (long long)elems, place);
}
