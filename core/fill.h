/* Tensor contents from a counter-based generator.
 *
 * The value of an element depends on (seed, tensor name, draw, element index) and the fill rule
 * alone: any range, in any order, on any device, gives the same bytes. Draw 0 fills every ring
 * slot; draw 1 is the re-drawn input of the check after timing. Bits come from the splitmix64
 * finaliser over key + index * 0x9e3779b97f4a7c15; normals from a float32 inverse normal
 * distribution made of integer operations, +, *, /, sqrt and explicit fma only, so a device that
 * rounds these correctly and does not contract agrees bit for bit. */
#ifndef FIB_CORE_FILL_H
#define FIB_CORE_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"

struct fib_pool;

enum fib_fill_kind {
    FIB_FILL_NONE = 0,  /* not filled (outputs) */
    FIB_FILL_NORMAL,    /* standard normal, |value| <= FIB_NORMAL_MAX */
    FIB_FILL_UNIFORM,   /* [0, 1), 24 random bits */
    FIB_FILL_INTS,      /* integers -4 .. 4, equally likely */
    FIB_FILL_CONSTANT   /* 1 (so the value is scale + offset) */
};

/* Bound on the normal draw's magnitude (the exact bound of the generator, checked by a test). */
#define FIB_NORMAL_MAX 5.42

/* element = round_to_dtype(offset + scale * draw), float32 arithmetic, one fma.
 * `by_init` marks data whose kind --init may replace (weights, activations); a kind the routine's
 * definition fixes (probabilities, positions) has it false. */
struct fib_fill {
    enum fib_fill_kind kind;
    float scale, offset; /* scale 0 means 1 */
    int by_init;
};

/* Shorthands for tensor tables. */
#define FIB_FILL_DATA {.kind = FIB_FILL_NORMAL, .scale = 1.0f, .by_init = 1}
#define FIB_FILL_CONST(value) {.kind = FIB_FILL_CONSTANT, .scale = (value)}

/* Key of one tensor's stream. */
uint64_t fib_fill_key(uint64_t seed, const char *tensor_name, uint32_t draw);

/* Writes elements [first, first + count) of the stream to dst[0 .. count). */
void fib_fill_range(const struct fib_fill *fill, enum fib_dtype dtype, uint64_t key, uint64_t first,
                    size_t count, void *dst);
/* The same over all of [0, count), spread over the pool. */
void fib_fill_host(struct fib_pool *pool, const struct fib_fill *fill, enum fib_dtype dtype,
                   uint64_t key, size_t count, void *dst);

/* 64-bit checksum of a byte range: equal bytes give equal sums; for logs and the restore check. */
uint64_t fib_checksum(struct fib_pool *pool, const void *bytes, size_t byte_count);

#endif
