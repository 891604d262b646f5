/* Matrix products through OpenBLAS: operands are widened to float32 inside run, one sgemm for each
 * batch entry, then the bias is added and the result narrowed. */
#include <stdlib.h>

#include "backends/openblas_lib.h"
#include "core/backend.h"
#include "core/clones.h"
#include "core/memory.h"
#include "core/pool.h"
#include "routines/gemm.h"

/* Elements that are worth waking a thread for. */
enum { GRAIN = 1 << 14 };

struct fib_prepared {
    struct gemm_shape shape;
    const char *a, *b, *bias;
    const float *a_scale, *b_scale;
    char *out;
    struct fib_pool *pool;
    bool is_first; /* slot 0: owns the two below, the others borrow them */
    struct fib_openblas lib;
    float *workspace;
    float *wide_a, *wide_b, *wide_out, *wide_bias; /* parts of the workspace */
};

struct widen {
    enum fib_dtype dtype;
    const char *src;
    float *dst;
};

struct narrow {
    enum fib_dtype dtype;
    int64_t cols;
    float *src;
    char *dst;
    const float *bias; /* NULL: none */
};

static void widen_range(void *context, int64_t first, int64_t last)
{
    const struct widen *w = context;
    fib_dtype_to_f32(w->dtype, w->src + (size_t)first * fib_dtype_bytes(w->dtype), w->dst + first,
                     (size_t)(last - first));
}

static void widen(struct fib_pool *pool, enum fib_dtype dtype, const char *src, float *dst,
                  int64_t count)
{
    struct widen w = {.dtype = dtype, .src = src, .dst = dst};
    fib_pool_for(pool, count, GRAIN, widen_range, &w);
}

FIB_CLONES
static void add_bias(float *row, const float *bias, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        row[j] += bias[j];
}

static void narrow_rows(void *context, int64_t first, int64_t last)
{
    const struct narrow *w = context;
    for (int64_t i = first; i < last; i++) {
        float *const row = w->src + i * w->cols;
        if (w->bias)
            add_bias(row, w->bias, w->cols);
        if (w->dtype != FIB_F32)
            fib_dtype_from_f32(w->dtype, row,
                               w->dst + (size_t)(i * w->cols) * fib_dtype_bytes(w->dtype),
                               (size_t)w->cols);
    }
}

/* float32 outputs without a bias are already in place. */
static void narrow(const struct fib_prepared *p, float *src, char *dst)
{
    const struct gemm_shape *s = &p->shape;
    struct narrow w = {.dtype = s->out,
                       .cols = s->n,
                       .src = src,
                       .dst = dst,
                       .bias = s->bias ? p->wide_bias : NULL};
    if (w.dtype != FIB_F32 || w.bias)
        fib_pool_for(p->pool, s->m, (GRAIN + s->n - 1) / s->n, narrow_rows, &w);
}

static void multiply_entry(const struct fib_prepared *p, int64_t entry, float alpha)
{
    const struct gemm_shape *s = &p->shape;
    const char *const a = p->a + (size_t)(entry * s->m * s->k) * fib_dtype_bytes(s->a);
    const char *const b = p->b + (size_t)(entry * s->n * s->k) * fib_dtype_bytes(s->b);
    char *const out = p->out + (size_t)(entry * s->m * s->n) * fib_dtype_bytes(s->out);
    float *const wide_out = s->out == FIB_F32 ? (float *)(void *)out : p->wide_out;
    widen(p->pool, s->a, a, p->wide_a, s->m * s->k);
    widen(p->pool, s->b, b, p->wide_b, s->n * s->k);
    p->lib.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)s->m, (int)s->n, (int)s->k, alpha,
                 p->wide_a, (int)s->k, p->wide_b, (int)s->k, 0.0f, wide_out, (int)s->n);
    narrow(p, wide_out, out);
}

static enum fib_status run(struct fib_prepared *prepared, struct fib_stream *stream,
                           struct fib_error *err)
{
    const struct gemm_shape *s = &prepared->shape;
    (void)stream;
    (void)err;
    if (s->bias)
        fib_dtype_to_f32(FIB_BF16, prepared->bias, prepared->wide_bias, (size_t)s->n);
    const float alpha = s->scaled ? *prepared->a_scale * *prepared->b_scale : 1.0f;
    for (int64_t entry = 0; entry < s->batch; entry++)
        multiply_entry(prepared, entry, alpha);
    return FIB_OK;
}

/* Parts begin on cache lines. */
static int64_t part(int64_t count)
{
    return (count + 15) / 16 * 16;
}

static enum fib_status take_workspace(struct fib_prepared *p, const struct fib_prepare_args *args,
                                      struct fib_error *err)
{
    const struct gemm_shape *s = &p->shape;
    const int64_t a = part(s->m * s->k), b = part(s->n * s->k);
    const int64_t out = s->out == FIB_F32 ? 0 : part(s->m * s->n);
    const int64_t bias = s->bias ? part(s->n) : 0;
    if (args->first) {
        p->workspace = args->first->workspace;
    } else {
        const size_t total_bytes = (size_t)(a + b + out + bias) * sizeof(float);
        const uint64_t free_bytes = args->device->ops->free_bytes(args->device);
        p->workspace = total_bytes <= free_bytes ? aligned_alloc(64, total_bytes) : NULL;
        if (!p->workspace)
            return fib_fail(err, FIB_ERR_OOM,
                            "openblas needs %zu bytes for operands in float32, %llu are free",
                            total_bytes, (unsigned long long)free_bytes);
    }
    p->wide_a = p->workspace;
    p->wide_b = p->wide_a + a;
    p->wide_out = p->wide_b + b;
    p->wide_bias = p->wide_out + out;
    return FIB_OK;
}

static enum fib_status take_library(struct fib_prepared *p, const struct fib_prepare_args *args,
                                    struct fib_error *err)
{
    if (args->first) {
        p->lib = args->first->lib;
        return FIB_OK;
    }
    const enum fib_status st = fib_openblas_open(&p->lib, err);
    if (st == FIB_OK)
        p->lib.set_num_threads((int)fib_pool_thread_count(args->pool));
    return st;
}

static void release(struct fib_prepared **prepared)
{
    struct fib_prepared *const p = *prepared;
    if (p && p->is_first) {
        free(p->workspace);
        fib_openblas_close(&p->lib);
    }
    free(p);
    *prepared = NULL;
}

static enum fib_status prepare(const struct fib_prepare_args *args, struct fib_prepared **prepared,
                               struct fib_error *err)
{
    struct fib_prepared *p = fib_zalloc(sizeof(*p));
    fib_gemm_shape(args->problem, &p->shape);
    p->a = args->data[GEMM_A];
    p->b = args->data[GEMM_B];
    p->out = args->data[GEMM_OUT];
    if (p->shape.bias)
        p->bias = args->data[GEMM_BIAS];
    if (p->shape.scaled) {
        p->a_scale = args->data[GEMM_A_SCALE];
        p->b_scale = args->data[GEMM_B_SCALE];
    }
    p->pool = args->pool;
    p->is_first = !args->first;
    enum fib_status st = take_library(p, args, err);
    if (st == FIB_OK)
        st = take_workspace(p, args, err);
    if (st != FIB_OK)
        release(&p);
    *prepared = p;
    return st;
}

static const char *resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes)
{
    (void)prepared;
    (void)buffer;
    (void)buffer_bytes;
    return "openblas/sgemm";
}

#define OPENBLAS_GEMM(routine_)                                                                    \
    {                                                                                              \
        .routine = (routine_), .label = "openblas", .device_kind = FIB_DEVICE_CPU,                 \
        .prepare = prepare, .run = run, .release = release, .resolved = resolved                   \
    }

static const struct fib_impl openblas_gemm_impls[] = {
    OPENBLAS_GEMM("mm_bf16"),
    OPENBLAS_GEMM("bmm_bf16"),
    OPENBLAS_GEMM("bmm_fp8"),
};
const struct fib_backend fib_backend_openblas_gemm = {
    .id = "openblas_gemm",
    FIB_IMPLS(openblas_gemm_impls),
    .probe = fib_openblas_probe,
};
