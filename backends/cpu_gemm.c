/* Matrix products on the host in float32. Operands are widened block by block into buffers that
 * stay in the cache; a tile of 4 x 4 outputs is summed over vectors along k, where both operands
 * are contiguous, so that nothing has to be transposed. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/clones.h"
#include "core/memory.h"
#include "core/pool.h"
#include "routines/gemm.h"

enum {
    LANES = 16,
    TILE = 4,            /* rows and columns of a register tile */
    CHUNK = 1024,        /* elements of k between two additions to the float64 sums */
    STRIDE = CHUNK + 16, /* of buffer rows: a power of two would put all rows into one cache set */
    MAX_ROWS = 32,       /* rows of A that share a widened row of B */
    MAX_COLS = 128,
    MIN_COLS = 16,
    TASKS_PER_THREAD = 8,
};

typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef double f64x2 __attribute__((vector_size(16)));

/* Buffers of one thread. The sums are float64: a single float32 chain over all of k would lose
 * more than the tolerance grants when all products have one sign. */
struct space {
    float a[MAX_ROWS * STRIDE];
    float b[TILE * STRIDE];
    double sums[MAX_ROWS * MAX_COLS];
    float row[MAX_COLS], bias[MAX_COLS];
};

struct fib_prepared {
    struct gemm_shape shape;
    const char *a, *b, *bias;
    const float *a_scale, *b_scale;
    char *out;
    struct fib_pool *pool;
    unsigned thread_count;
    struct space *spaces; /* one per thread; slot 0's, or borrowed from it */
    bool owns_spaces;
    int64_t rows_per_task, cols_per_task, row_blocks, col_blocks;
};

/* One run: threads take tasks from a common counter, so that a slow one does not hold up the rest.
 */
struct job {
    const struct fib_prepared *prepared;
    int64_t task_count;
    double scale;
    atomic_llong next;
};

/* A block of outputs of one batch entry. */
struct task {
    int64_t entry, row, rows, col, cols;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- the inner loops ---- */

FIB_INLINE double sum_lanes(const f32x16 *lanes)
{
    const f32x16 v = *lanes;
    const f32x8 low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    const f32x8 high = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    const f64x8 eight = __builtin_convertvector(low, f64x8) + __builtin_convertvector(high, f64x8);
    const f64x4 four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                       __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    const f64x2 two =
        __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
    return two[0] + two[1];
}

/* `rows` is a constant in every use, so that the accumulators live in registers. */
FIB_INLINE void multiply_tile(const float *a, const float *b, int64_t count, int rows, int64_t cols,
                              double *sums)
{
    f32x16 acc[TILE][TILE] = {{{0}}};
    for (int64_t k = 0; k < count; k += LANES) {
        f32x16 column[TILE];
        for (int j = 0; j < TILE; j++)
            column[j] = *(const f32x16 *)(b + j * STRIDE + k);
        for (int i = 0; i < rows; i++) {
            const f32x16 row = *(const f32x16 *)(a + i * STRIDE + k);
            for (int j = 0; j < TILE; j++)
                acc[i][j] += row * column[j];
        }
    }
    for (int i = 0; i < rows; i++) {
        double tile_sums[TILE];
        for (int j = 0; j < TILE; j++)
            tile_sums[j] = sum_lanes(&acc[i][j]);
        for (int64_t j = 0; j < cols; j++)
            sums[i * MAX_COLS + j] += tile_sums[j];
    }
}

/* sums[i][j] += a[i] . b[j] for `rows` rows of a and the first `cols` of TILE rows of b. */
FIB_CLONES
static void multiply_rows(const float *a, int64_t rows, const float *b, int64_t cols, int64_t count,
                          double *sums)
{
    for (; rows >= TILE; rows -= TILE) {
        multiply_tile(a, b, count, TILE, cols, sums);
        a += TILE * STRIDE;
        sums += TILE * MAX_COLS;
    }
    if (rows == 3)
        multiply_tile(a, b, count, 3, cols, sums);
    else if (rows == 2)
        multiply_tile(a, b, count, 2, cols, sums);
    else if (rows == 1)
        multiply_tile(a, b, count, 1, cols, sums);
}

/* ---- one task ---- */

/* Widens `rows` rows of a [*, k] operand, columns [start, start + count), and pads each with zeros
 * to whole vectors. */
static void widen_rows(enum fib_dtype dtype, const char *base, int64_t k, int64_t row, int64_t rows,
                       int64_t start, int64_t count, float *dst)
{
    const int64_t padded = divide_up(count, LANES) * LANES;
    for (int64_t r = 0; r < rows; r++, dst += STRIDE) {
        const size_t first = (size_t)((row + r) * k + start);
        fib_dtype_to_f32(dtype, base + first * fib_dtype_bytes(dtype), dst, (size_t)count);
        memset(dst + count, 0, (size_t)(padded - count) * sizeof(float));
    }
}

static void add_chunk(const struct fib_prepared *p, struct space *space, const struct task *task,
                      int64_t start, int64_t count)
{
    const struct gemm_shape *s = &p->shape;
    const int64_t padded = divide_up(count, LANES) * LANES;
    widen_rows(s->a, p->a, s->k, task->entry * s->m + task->row, task->rows, start, count,
               space->a);
    for (int64_t j = 0; j < task->cols; j += TILE) {
        const int64_t cols = smaller(task->cols - j, TILE);
        widen_rows(s->b, p->b, s->k, task->entry * s->n + task->col + j, cols, start, count,
                   space->b);
        multiply_rows(space->a, task->rows, space->b, cols, padded, space->sums + j);
    }
}

static void store_rows(const struct fib_prepared *p, struct space *space, const struct task *task,
                       double scale)
{
    const struct gemm_shape *s = &p->shape;
    const size_t cols = (size_t)task->cols;
    if (s->bias)
        fib_dtype_to_f32(FIB_BF16, p->bias + (size_t)task->col * fib_dtype_bytes(FIB_BF16),
                         space->bias, cols);
    for (int64_t i = 0; i < task->rows; i++) {
        const double *sums = space->sums + i * MAX_COLS;
        for (size_t j = 0; j < cols; j++)
            space->row[j] = (float)(sums[j] * scale + (s->bias ? (double)space->bias[j] : 0.0));
        const int64_t first = (task->entry * s->m + task->row + i) * s->n + task->col;
        fib_dtype_from_f32(s->out, space->row, p->out + (size_t)first * fib_dtype_bytes(s->out),
                           cols);
    }
}

/* Row blocks run fastest: neighbours in time read the same rows of B, the larger operand. */
static struct task task_at(const struct fib_prepared *p, int64_t index)
{
    const int64_t row = index % p->row_blocks * p->rows_per_task;
    const int64_t col = index / p->row_blocks % p->col_blocks * p->cols_per_task;
    return (struct task){
        .entry = index / (p->row_blocks * p->col_blocks),
        .row = row,
        .rows = smaller(p->shape.m - row, p->rows_per_task),
        .col = col,
        .cols = smaller(p->shape.n - col, p->cols_per_task),
    };
}

/* Pool body over thread numbers. */
static void work(void *context, int64_t first, int64_t last)
{
    struct job *job = context;
    const struct fib_prepared *p = job->prepared;
    struct space *space = &p->spaces[first];
    (void)last;
    for (;;) {
        const int64_t index = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (index >= job->task_count)
            return;
        const struct task task = task_at(p, index);
        memset(space->sums, 0, (size_t)(task.rows * MAX_COLS) * sizeof(double));
        for (int64_t start = 0; start < p->shape.k; start += CHUNK)
            add_chunk(p, space, &task, start, smaller(p->shape.k - start, CHUNK));
        store_rows(p, space, &task, job->scale);
    }
}

/* ---- the adapter ---- */

static void plan_tasks(struct fib_prepared *p)
{
    const struct gemm_shape *s = &p->shape;
    p->row_blocks = divide_up(s->m, MAX_ROWS);
    p->rows_per_task = divide_up(divide_up(s->m, p->row_blocks), TILE) * TILE;
    p->row_blocks = divide_up(s->m, p->rows_per_task);
    const int64_t wanted = (int64_t)p->thread_count * TASKS_PER_THREAD;
    p->cols_per_task = MAX_COLS;
    while (p->cols_per_task > MIN_COLS &&
           s->batch * p->row_blocks * divide_up(s->n, p->cols_per_task) < wanted)
        p->cols_per_task /= 2;
    p->col_blocks = divide_up(s->n, p->cols_per_task);
}

/* Waking a thread costs about as much as 2^17 multiply-adds: fewer are not worth sharing. */
static unsigned useful_threads(const struct gemm_shape *s, unsigned available)
{
    const double shares =
        (double)s->batch * (double)s->m * (double)s->n * (double)s->k / (double)(1 << 17);
    return shares >= available ? available : shares > 1.0 ? (unsigned)shares : 1;
}

static enum fib_status take_spaces(struct fib_prepared *p, const struct fib_prepare_args *args,
                                   struct fib_error *err)
{
    if (args->first) {
        p->spaces = args->first->spaces;
        return FIB_OK;
    }
    const size_t total_bytes = (sizeof(struct space) + 63) / 64 * 64 * p->thread_count;
    p->spaces = aligned_alloc(64, total_bytes);
    if (!p->spaces)
        return fib_fail(err, FIB_ERR_OOM, "cpu gemm: no memory for %zu bytes of workspace",
                        total_bytes);
    /* The kernel reads whole tiles, also where a block has fewer columns. */
    memset(p->spaces, 0, total_bytes);
    p->owns_spaces = true;
    return FIB_OK;
}

static void release(struct fib_prepared **prepared)
{
    if (!*prepared)
        return;
    if ((*prepared)->owns_spaces)
        free((*prepared)->spaces);
    free(*prepared);
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
    p->thread_count = useful_threads(&p->shape, fib_pool_thread_count(args->pool));
    plan_tasks(p);
    const enum fib_status st = take_spaces(p, args, err);
    if (st != FIB_OK)
        release(&p);
    *prepared = p;
    return st;
}

static enum fib_status run(struct fib_prepared *prepared, struct fib_stream *stream,
                           struct fib_error *err)
{
    (void)stream;
    (void)err;
    struct job job = {
        .prepared = prepared,
        .task_count = prepared->shape.batch * prepared->row_blocks * prepared->col_blocks,
        .scale = 1.0,
    };
    if (prepared->shape.scaled)
        job.scale = (double)*prepared->a_scale * (double)*prepared->b_scale;
    fib_pool_for(prepared->pool, smaller(prepared->thread_count, job.task_count), 1, work, &job);
    return FIB_OK;
}

static const char *resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes)
{
    (void)buffer;
    (void)buffer_bytes;
    return prepared->shape.m <= TILE ? "cpu/gemv_rows" : "cpu/gemm_blocked";
}

#define CPU_GEMM(routine_)                                                                         \
    {                                                                                              \
        .routine = (routine_), .label = "cpu", .device_kind = FIB_DEVICE_CPU, .prepare = prepare,  \
        .run = run, .release = release, .resolved = resolved                                       \
    }

static const struct fib_impl cpu_gemm_impls[] = {
    CPU_GEMM("mm_bf16"),
    CPU_GEMM("bmm_bf16"),
    CPU_GEMM("bmm_fp8"),
};
const struct fib_backend fib_backend_cpu_gemm = FIB_BACKEND("cpu_gemm", cpu_gemm_impls);
