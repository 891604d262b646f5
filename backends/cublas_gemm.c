/* bf16 matrix products through cuBLAS's older interface: cublasGemmEx, and
 * cublasGemmStridedBatchedEx for batches. */
#include <stdlib.h>

#include "backends/cublas_lib.h"
#include "core/backend.h"
#include "core/memory.h"
#include "gpu/stream.h"
#include "routines/gemm.h"

enum { WORKSPACE_BYTES = 64 << 20 };

/* What the slots of a case share; slot 0 owns it. */
struct engine {
    struct fib_cublas lib;
    cublasHandle_t handle;
    struct fib_device *device;
    void *workspace;
};

struct fib_prepared {
    struct engine *engine;
    bool is_first;
    struct gemm_shape shape;
    const void *a, *b;
    void *out;
};

/* The library thinks in columns: row-major out = A B^T is, column by column, out^T = B A^T, with B
 * stored k first. */
static cublasStatus_t multiply(const struct fib_prepared *p)
{
    const struct gemm_shape *s = &p->shape;
    const struct engine *e = p->engine;
    const float one = 1.0f, zero = 0.0f;
    const cudaDataType_t out_type = s->out == FIB_F32 ? CUDA_R_32F : CUDA_R_16BF;
    const int m = (int)s->m, n = (int)s->n, k = (int)s->k;
    if (s->batch == 1)
        return e->lib.gemm(e->handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, p->b, CUDA_R_16BF, k,
                           p->a, CUDA_R_16BF, k, &zero, p->out, out_type, n, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT);
    return e->lib.gemm_batched(e->handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, p->b,
                               CUDA_R_16BF, k, s->n * s->k, p->a, CUDA_R_16BF, k, s->m * s->k,
                               &zero, p->out, out_type, n, s->m * s->n, (int)s->batch,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static enum fib_status fail(const struct engine *engine, const char *what, cublasStatus_t status,
                            struct fib_error *err)
{
    const bool unsupported =
        status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
    return fib_fail(err, unsupported ? FIB_ERR_UNSUPPORTED : FIB_ERR_DEVICE, "%s failed: %s", what,
                    engine->lib.status_name(status));
}

/* Setting the stream resets the workspace to a pool of the library's, so both are set each time:
 * inside a captured graph the pool may not grow. */
static enum fib_status run(struct fib_prepared *prepared, struct fib_stream *stream,
                           struct fib_error *err)
{
    const struct engine *e = prepared->engine;
    cublasStatus_t st = e->lib.set_stream(e->handle, fib_cuda_stream(stream));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = e->lib.set_workspace(e->handle, e->workspace, WORKSPACE_BYTES);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = multiply(prepared);
    return st == CUBLAS_STATUS_SUCCESS
               ? FIB_OK
               : fail(e, prepared->shape.batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx",
                      st, err);
}

static void close_engine(struct engine *engine)
{
    if (engine->handle)
        engine->lib.destroy(engine->handle);
    if (engine->workspace)
        engine->device->ops->release(engine->device, engine->workspace, WORKSPACE_BYTES);
    fib_cublas_close(&engine->lib);
    free(engine);
}

static void release(struct fib_prepared **prepared)
{
    struct fib_prepared *const p = *prepared;
    if (p && p->is_first)
        close_engine(p->engine);
    free(p);
    *prepared = NULL;
}

/* Partial sums of a split k stay in float32: rounded to the output's format, parts that cancel
 * would take the result with them. */
static enum fib_status open_engine(struct engine *engine, const struct fib_prepare_args *args,
                                   struct fib_error *err)
{
    const enum fib_status st = fib_cublas_open(&engine->lib, args->kase->settings.lib_path, err);
    if (st != FIB_OK)
        return st;
    cublasStatus_t made = engine->lib.create(&engine->handle);
    if (made != CUBLAS_STATUS_SUCCESS)
        return fail(engine, "cublasCreate", made, err);
    made = engine->lib.set_math_mode(
        engine->handle,
        (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    if (made != CUBLAS_STATUS_SUCCESS)
        return fail(engine, "cublasSetMathMode", made, err);
    return args->device->ops->alloc(args->device, WORKSPACE_BYTES, &engine->workspace, err);
}

/* The first call loads the kernel, and tells whether the library has one, before anything is
 * captured or timed. */
static enum fib_status try_once(struct fib_prepared *p, struct fib_error *err)
{
    struct fib_device *device = p->engine->device;
    const enum fib_status st = run(p, device->stream, err);
    return st == FIB_OK ? device->ops->synchronize(device, NULL, err) : st;
}

static enum fib_status prepare(const struct fib_prepare_args *args, struct fib_prepared **prepared,
                               struct fib_error *err)
{
    struct fib_prepared *p = fib_zalloc(sizeof(*p));
    enum fib_status st = FIB_OK;
    fib_gemm_shape(args->problem, &p->shape);
    p->a = args->data[GEMM_A];
    p->b = args->data[GEMM_B];
    p->out = args->data[GEMM_OUT];
    p->is_first = !args->first;
    if (p->is_first) {
        p->engine = fib_zalloc(sizeof(*p->engine));
        p->engine->device = args->device;
        st = open_engine(p->engine, args, err);
        if (st == FIB_OK)
            st = try_once(p, err);
    } else {
        p->engine = args->first->engine;
    }
    if (st != FIB_OK)
        release(&p);
    *prepared = p;
    return st;
}

static const char *refuse(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    struct gemm_shape shape;
    (void)kase;
    (void)device;
    (void)buffer;
    (void)buffer_bytes;
    fib_gemm_shape(problem, &shape);
    if (shape.bias)
        return "cublasGemmEx adds no bias; the label cublaslt does";
    if (shape.out == FIB_F16)
        return "cublasGemmEx multiplies bfloat16 operands into --out_dtype bfloat16 or float32 "
               "only";
    return NULL;
}

static const char *resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes)
{
    (void)buffer;
    (void)buffer_bytes;
    return prepared->shape.batch == 1 ? "cublas/gemm_ex" : "cublas/gemm_strided_batched_ex";
}

/* Tensor cores cut sums off instead of rounding them: at k 8192 an element of 286720 was 1.1 of the
 * limit of 2^-24 away from its sum (H200, bf16). */
#define CUBLAS_GEMM(routine_)                                                                      \
    {                                                                                              \
        .routine = (routine_), .label = "cublas", .device_kind = FIB_DEVICE_CUDA, .min_cc = 80,    \
        .auto_rank = 10, .accumulate_roundoff = 0x1p-22, .refuse = refuse, .prepare = prepare,     \
        .run = run, .release = release, .resolved = resolved                                       \
    }

/* bmm_fp8 under this label is in cublaslt_gemm.c. */
static const struct fib_impl cublas_gemm_impls[] = {
    CUBLAS_GEMM("mm_bf16"),
    CUBLAS_GEMM("bmm_bf16"),
};
const struct fib_backend fib_backend_cublas_gemm = {
    .id = "cublas_gemm",
    FIB_IMPLS(cublas_gemm_impls),
    .probe = fib_cublas_probe,
};
