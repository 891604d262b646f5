/* Norm routines on the host in float32, a range of rows per thread. Rows are widened piece by
 * piece into buffers on the stack; a row that fits one piece is read from memory once. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/clones.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/pool.h"
#include "routines/norm.h"

enum {
    PIECE = 8192,          /* elements per stack buffer: 32 KiB, about a first-level cache */
    LANES = 32,            /* partial sums per block, enough to hide the latency of an addition */
    BLOCK = 1024,          /* elements summed in float32 before they go into a double */
    GRAIN_ELEMENTS = 65536 /* less work than this is not worth waking a thread */
};

/* Element addresses are bytes, because the element type is only known at run time. */
struct fib_prepared {
    struct fib_pool *pool;
    int64_t row_count, grain_rows;
    size_t cols;
    enum fib_dtype in_dtype, out_dtype;
    size_t in_bytes, out_bytes;
    float eps, weight_offset;
    const unsigned char *x, *weight; /* weight: of in_dtype, or gamma in float32 */
    const float *beta, *scale;       /* NULL where the routine has none */
    unsigned char *residual, *out;   /* residual may be NULL; out may be x */
    fib_pool_body *body;
    const char *resolved;
};

struct buffers {
    float h[PIECE], weight[PIECE], other[PIECE];
};

/* One row on its way through the buffers. */
struct row {
    const struct fib_prepared *p;
    struct buffers *b;
    size_t first; /* element of the row in the whole tensor */
    bool whole;   /* the row fits one piece: it is loaded once, its weights before the first row */
};

FIB_INLINE double total(const float *lanes)
{
    double sum = 0.0;
    for (int k = 0; k < LANES; k++)
        sum += (double)lanes[k];
    return sum;
}

FIB_CLONES static double sum_of(const float *x, size_t count)
{
    double sum = 0.0;
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t end = count - at < BLOCK ? count : at + BLOCK;
        float lanes[LANES] = {0};
        size_t i = at;
        for (; i + LANES <= end; i += LANES)
            for (int k = 0; k < LANES; k++)
                lanes[k] += x[i + (size_t)k];
        for (int k = 0; i < end; i++, k++)
            lanes[k] += x[i];
        sum += total(lanes);
    }
    return sum;
}

FIB_CLONES static double sum_of_squares(const float *x, size_t count)
{
    double sum = 0.0;
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t end = count - at < BLOCK ? count : at + BLOCK;
        float lanes[LANES] = {0};
        size_t i = at;
        for (; i + LANES <= end; i += LANES)
            for (int k = 0; k < LANES; k++)
                lanes[k] += x[i + (size_t)k] * x[i + (size_t)k];
        for (int k = 0; i < end; i++, k++)
            lanes[k] += x[i] * x[i];
        sum += total(lanes);
    }
    return sum;
}

FIB_CLONES static void add(float *restrict x, const float *restrict y, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] += y[i];
}

FIB_CLONES static void add_constant(float *x, float constant, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] += constant;
}

FIB_CLONES static void divide(float *x, float divisor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] /= divisor;
}

FIB_CLONES static void scale_by_weight(float *restrict x, const float *restrict weight,
                                       float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = x[i] * factor * weight[i];
}

/* The mean in two parts: float32 alone would leave a multiple of its last bit in rows whose mean
 * is large beside their spread. */
FIB_CLONES static void centre(float *x, float mean, float mean_rest, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (x[i] - mean) - mean_rest;
}

static size_t piece_length(const struct row *row, size_t at)
{
    const size_t left = row->p->cols - at;
    return left < PIECE ? left : PIECE;
}

static void load_weight(const struct fib_prepared *p, struct buffers *b, size_t at, size_t count)
{
    fib_dtype_to_f32(p->in_dtype, p->weight + at * p->in_bytes, b->weight, count);
    if (p->weight_offset != 0.0f)
        add_constant(b->weight, p->weight_offset, count);
}

/* h = x (+ residual) */
static void load_rms(const struct row *row, size_t at, size_t count)
{
    const struct fib_prepared *const p = row->p;
    const size_t offset_bytes = (row->first + at) * p->in_bytes;
    fib_dtype_to_f32(p->in_dtype, p->x + offset_bytes, row->b->h, count);
    if (p->residual) {
        fib_dtype_to_f32(p->in_dtype, p->residual + offset_bytes, row->b->other, count);
        add(row->b->h, row->b->other, count);
    }
}

/* Writes the residual only now: a row of several pieces has been read twice by then. */
static void store_rms(const struct row *row, size_t at, size_t count, float factor)
{
    const struct fib_prepared *const p = row->p;
    float *const h = row->b->h;
    if (p->residual)
        fib_dtype_from_f32(p->in_dtype, h, p->residual + (row->first + at) * p->in_bytes, count);
    scale_by_weight(h, row->b->weight, factor, count);
    if (p->scale)
        divide(h, *p->scale, count);
    fib_dtype_from_f32(p->out_dtype, h, p->out + (row->first + at) * p->out_bytes, count);
}

static void rms_row(const struct row *row)
{
    const struct fib_prepared *const p = row->p;
    double square_sum = 0.0;
    for (size_t at = 0; at < p->cols; at += PIECE) {
        const size_t count = piece_length(row, at);
        load_rms(row, at, count);
        square_sum += sum_of_squares(row->b->h, count);
    }
    const double mean_square = square_sum / (double)p->cols;
    const float factor = (float)(1.0 / sqrt(mean_square + (double)p->eps));
    for (size_t at = 0; at < p->cols; at += PIECE) {
        const size_t count = piece_length(row, at);
        if (!row->whole) {
            load_rms(row, at, count);
            load_weight(p, row->b, at, count);
        }
        store_rms(row, at, count, factor);
    }
}

static void rms_rows(void *context, int64_t first, int64_t last)
{
    const struct fib_prepared *const p = context;
    struct buffers b;
    struct row row = {.p = p, .b = &b, .whole = p->cols <= PIECE};
    if (row.whole)
        load_weight(p, &b, 0, p->cols);
    for (int64_t r = first; r < last; r++) {
        row.first = (size_t)r * p->cols;
        rms_row(&row);
    }
}

static void load_plain(const struct row *row, size_t at, size_t count)
{
    const struct fib_prepared *const p = row->p;
    fib_dtype_to_f32(p->in_dtype, p->x + (row->first + at) * p->in_bytes, row->b->h, count);
}

static double row_mean(const struct row *row)
{
    double sum = 0.0;
    for (size_t at = 0; at < row->p->cols; at += PIECE) {
        const size_t count = piece_length(row, at);
        load_plain(row, at, count);
        sum += sum_of(row->b->h, count);
    }
    return sum / (double)row->p->cols;
}

static void load_centred(const struct row *row, size_t at, size_t count, double mean)
{
    if (!row->whole)
        load_plain(row, at, count);
    const float head = (float)mean;
    centre(row->b->h, head, (float)(mean - (double)head), count);
}

static void round_to_bf16(struct buffers *b, size_t count)
{
    uint16_t bits[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        fib_dtype_from_f32(FIB_BF16, b->h + at, bits, n);
        fib_dtype_to_f32(FIB_BF16, bits, b->h + at, n);
    }
}

static void store_layernorm(const struct row *row, size_t at, size_t count, float factor)
{
    const struct fib_prepared *const p = row->p;
    float *const h = row->b->h;
    scale_by_weight(h, (const float *)(const void *)p->weight + at, factor, count);
    add(h, p->beta + at, count);
    round_to_bf16(row->b, count);
    divide(h, *p->scale, count);
    round_to_bf16(row->b, count);
    fib_dtype_from_f32(p->out_dtype, h, p->out + (row->first + at) * p->out_bytes, count);
}

static void layernorm_row(const struct row *row)
{
    const struct fib_prepared *const p = row->p;
    const double mean = row_mean(row);
    double square_sum = 0.0;
    for (size_t at = 0; at < p->cols; at += PIECE) {
        const size_t count = piece_length(row, at);
        load_centred(row, at, count, mean);
        square_sum += sum_of_squares(row->b->h, count);
    }
    const double variance = square_sum / (double)p->cols;
    const float factor = (float)(1.0 / sqrt(variance + (double)p->eps));
    for (size_t at = 0; at < p->cols; at += PIECE) {
        const size_t count = piece_length(row, at);
        if (!row->whole)
            load_centred(row, at, count, mean);
        store_layernorm(row, at, count, factor);
    }
}

static void layernorm_rows(void *context, int64_t first, int64_t last)
{
    const struct fib_prepared *const p = context;
    struct buffers b;
    struct row row = {.p = p, .b = &b, .whole = p->cols <= PIECE};
    for (int64_t r = first; r < last; r++) {
        row.first = (size_t)r * p->cols;
        layernorm_row(&row);
    }
}

/* Address of a tensor of the problem, NULL when it has none of that name. */
static void *find_data(const struct fib_prepare_args *args, const char *name)
{
    const int t = fib_problem_find(args->problem, name);
    return t < 0 ? NULL : args->data[t];
}

static struct fib_prepared *prepare_common(const struct fib_prepare_args *args)
{
    const struct norm_params *const params = args->kase->params;
    struct fib_prepared *const p = fib_zalloc(sizeof *p);
    p->pool = args->pool;
    p->row_count = args->problem->row_count;
    p->cols = (size_t)params->hidden_size;
    p->grain_rows = (GRAIN_ELEMENTS - 1) / params->hidden_size + 1;
    p->in_dtype = p->out_dtype = params->input_dtype;
    p->eps = (float)params->eps;
    p->x = find_data(args, "x");
    p->residual = find_data(args, "residual");
    p->scale = find_data(args, "scale");
    const int codes = fib_problem_find(args->problem, "out");
    if (codes >= 0)
        p->out_dtype = args->problem->tensors[codes].dtype;
    p->in_bytes = fib_dtype_bytes(p->in_dtype);
    p->out_bytes = fib_dtype_bytes(p->out_dtype);
    return p;
}

static void prepare_rms(const struct fib_prepare_args *args, const char *output,
                        float weight_offset, struct fib_prepared **prepared)
{
    struct fib_prepared *const p = prepare_common(args);
    p->weight = find_data(args, "w");
    p->weight_offset = weight_offset;
    p->out = find_data(args, output);
    p->body = rms_rows;
    p->resolved = weight_offset == 0.0f ? "cpu/rmsnorm_rows" : "cpu/gemma_rmsnorm_rows";
    *prepared = p;
}

static enum fib_status prepare_rmsnorm(const struct fib_prepare_args *args,
                                       struct fib_prepared **prepared, struct fib_error *err)
{
    (void)err;
    prepare_rms(args, "y", 0.0f, prepared);
    return FIB_OK;
}

static enum fib_status prepare_gemma(const struct fib_prepare_args *args,
                                     struct fib_prepared **prepared, struct fib_error *err)
{
    (void)err;
    prepare_rms(args, "y", 1.0f, prepared);
    return FIB_OK;
}

static enum fib_status prepare_fused_add(const struct fib_prepare_args *args,
                                         struct fib_prepared **prepared, struct fib_error *err)
{
    (void)err;
    prepare_rms(args, "x", 0.0f, prepared);
    return FIB_OK;
}

static enum fib_status prepare_gemma_fused_add(const struct fib_prepare_args *args,
                                               struct fib_prepared **prepared,
                                               struct fib_error *err)
{
    (void)err;
    prepare_rms(args, "x", 1.0f, prepared);
    return FIB_OK;
}

static enum fib_status prepare_quant(const struct fib_prepare_args *args,
                                     struct fib_prepared **prepared, struct fib_error *err)
{
    (void)err;
    prepare_rms(args, "out", 0.0f, prepared);
    return FIB_OK;
}

static enum fib_status prepare_layernorm(const struct fib_prepare_args *args,
                                         struct fib_prepared **prepared, struct fib_error *err)
{
    (void)err;
    struct fib_prepared *const p = prepare_common(args);
    p->weight = find_data(args, "gamma");
    p->beta = find_data(args, "beta");
    p->out = find_data(args, "out");
    p->body = layernorm_rows;
    p->resolved = "cpu/layernorm_rows";
    *prepared = p;
    return FIB_OK;
}

static enum fib_status run_rows(struct fib_prepared *prepared, struct fib_stream *stream,
                                struct fib_error *err)
{
    (void)stream;
    (void)err;
    fib_pool_for(prepared->pool, prepared->row_count, prepared->grain_rows, prepared->body,
                 prepared);
    return FIB_OK;
}

static void release(struct fib_prepared **prepared)
{
    free(*prepared);
    *prepared = NULL;
}

static const char *resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes)
{
    (void)buffer;
    (void)buffer_bytes;
    return prepared->resolved;
}

#define IMPL(routine_, prepare_)                                                                   \
    {                                                                                              \
        .routine = (routine_), .label = "cpu", .device_kind = FIB_DEVICE_CPU,                      \
        .prepare = (prepare_), .run = run_rows, .release = release, .resolved = resolved           \
    }

static const struct fib_impl impls[] = {
    IMPL("rmsnorm", prepare_rmsnorm),
    IMPL("gemma_rmsnorm", prepare_gemma),
    IMPL("fused_add_rmsnorm", prepare_fused_add),
    IMPL("gemma_fused_add_rmsnorm", prepare_gemma_fused_add),
    IMPL("rmsnorm_quant", prepare_quant),
    IMPL("fused_add_rmsnorm_quant", prepare_quant),
    IMPL("layernorm_quant", prepare_layernorm),
};

const struct fib_backend fib_backend_cpu_norm = FIB_BACKEND("cpu_norm", impls);
