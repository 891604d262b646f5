/* Norm kernels for CUDA devices of compute capability 9.0: what to compute, which variant computes
 * it, and the launch. Plain C; nothing here allocates or synchronises.
 *
 *   h   = x (+ residual), not rounded
 *   RMS:   y = h / sqrt(mean(h^2) + eps) * (weight + 1 for gemma)
 *   layer: y = (x - mean) / sqrt(var + eps) * weight + beta, rounded to bf16
 *   out = y, or y / scale rounded to FP8 with saturation (layer: quotient rounded to bf16 first)
 *   residual = h, rounded
 */
#ifndef FIB_KERNELS_NORM_H
#define FIB_KERNELS_NORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

enum fib_norm_type { FIB_NORM_BF16 = 0, FIB_NORM_F16, FIB_NORM_F32, FIB_NORM_E4M3, FIB_NORM_E5M2 };

/* Device addresses. Built: out_type == in_type without `layer`; FP8 out from 16-bit in; `layer`
 * with bf16 in and FP8 out. */
struct fib_norm_args {
    const void *x;
    void *residual;     /* `adds` only: read, then replaced by h */
    const void *weight; /* [cols] of in_type; `layer`: gamma in float32 */
    const float *beta;  /* [cols], `layer` only */
    const float *scale; /* one value > 0, FP8 out only */
    void *out;          /* may be x when there is a residual and the types are equal */
    int64_t rows, cols; /* both >= 1 */
    float eps;
    enum fib_norm_type in_type, out_type;
    bool adds; /* there is a residual; decides the form, `residual` is only its address */
    bool gemma, layer;
    bool dependent_launch; /* prologue may overlap the end of the previous kernel of the stream */
};

enum fib_norm_kind {
    FIB_NORM_WARP = 0, /* a power of two of lanes for each row, several rows in a block */
    FIB_NORM_BLOCK,    /* one block for each row */
    FIB_NORM_CLUSTER,  /* a cluster of blocks for each row, sums through shared memory */
    FIB_NORM_STREAM,   /* one block a multiprocessor, rows through a ring in its shared memory */
    FIB_NORM_LOOP,     /* one block for each row of any length, which is read again after the sum */
    FIB_NORM_SCALAR    /* the same element by element: any length and alignment */
};

/* One variant and its launch shape. */
struct fib_norm_plan {
    enum fib_norm_kind kind;
    int vectors; /* 16-byte vectors of a row that a thread keeps; 1 for LOOP, SCALAR */
    int unroll;  /* rows that a thread works on at once; 1 except for WARP and BLOCK */
    int threads; /* threads of a block */
    int lanes;   /* threads of a row: WARP */
    int blocks;  /* blocks of a row: 1 except for CLUSTER */
    int groups;  /* STREAM: parts of a block that work on rows of their own; else 1 */
    int stages;  /* STREAM: rows of a group in shared memory; else 0 */
    bool early;  /* weights are loaded together with the row: less latency, more registers */
};

/* The best variant for this problem on a device with `unit_count` multiprocessors. */
void fib_norm_choose(const struct fib_norm_args *args, int unit_count, struct fib_norm_plan *plan);

/* A variant by name: "block_v4" lets the launch shape follow from the row, "block256_v4",
 * "warp16_v1u4", "cluster8x256_v4", "stream2x256_v4" fix it. False with a sentence when no such variant exists or it
 * cannot run this problem. */
bool fib_norm_find(const struct fib_norm_args *args, const char *name, struct fib_norm_plan *plan,
                   char *reason, size_t reason_bytes);

/* Name that fib_norm_find() takes back, "block256_v4"; 32 characters are enough. */
void fib_norm_plan_name(const struct fib_norm_plan *plan, char *name, size_t name_bytes);

/* Loads the kernel of a plan; once before its first launch. 0, or the runtime's error number when
 * the device cannot run it. */
int fib_norm_load(const struct fib_norm_args *args, const struct fib_norm_plan *plan);

/* Enqueues the kernel (several where rows exceed the largest grid). 0, or the runtime's error
 * number. */
int fib_norm_launch(const struct fib_norm_args *args, const struct fib_norm_plan *plan,
                    struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
