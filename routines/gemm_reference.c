/* Float64 reference of the gemm family: every product of two operands is exact in double, sums run
 * over eight lanes. Rows of one batch entry share the decoding of B. */
#include "routines/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clones.h"
#include "core/memory.h"

enum {
    STEP = 16,       /* elements that one step of the inner loop takes */
    CHUNK = 2048,    /* elements of k at a time: a decoded row of B stays in the first cache */
    GROUP_ROWS = 16, /* rows that share a decoded row of B */
};

typedef double f64x8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t i64x8 __attribute__((vector_size(64), aligned(8), may_alias));

struct work {
    struct gemm_shape shape;
    const char *a, *b;
    double *a_rows;        /* [GROUP_ROWS][CHUNK], decoded */
    double *b_row;         /* [CHUNK], decoded */
    double *value, *terms; /* of the row where the group begins */
};

/* sums[0] += sum a*b, sums[1] += sum |a*b| over count elements, a multiple of STEP. */
FIB_CLONES
static void add_products(const double *a, const double *b, int64_t count, double sums[2])
{
    const i64x8 mask = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                        INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    f64x8 sum[2] = {{0}, {0}}, magnitude[2] = {{0}, {0}};
    for (int64_t i = 0; i < count; i += STEP) {
        const f64x8 low = *(const f64x8 *)(a + i) * *(const f64x8 *)(b + i);
        const f64x8 high = *(const f64x8 *)(a + i + 8) * *(const f64x8 *)(b + i + 8);
        sum[0] += low;
        sum[1] += high;
        magnitude[0] += (f64x8)((i64x8)low & mask);
        magnitude[1] += (f64x8)((i64x8)high & mask);
    }
    sum[0] += sum[1];
    magnitude[0] += magnitude[1];
    for (int lane = 0; lane < 8; lane++) {
        sums[0] += sum[0][lane];
        sums[1] += magnitude[0][lane];
    }
}

/* Decodes elements [first, first + count) and pads with zeros to a multiple of STEP. */
static void decode(enum fib_dtype dtype, const char *base, int64_t first, int64_t count,
                   double *dst)
{
    fib_dtype_to_f64(dtype, base + (size_t)first * fib_dtype_bytes(dtype), dst, (size_t)count);
    for (; count % STEP != 0; count++)
        dst[count] = 0.0;
}

/* Adds k in [start, start + count) to `rows` rows that begin at `row` of the whole output. */
static void add_chunk(const struct work *work, int64_t row, int64_t rows, int64_t start,
                      int64_t count)
{
    const struct gemm_shape *s = &work->shape;
    const int64_t padded = (count + STEP - 1) / STEP * STEP;
    const int64_t b_first = row / s->m * s->n;
    for (int64_t r = 0; r < rows; r++)
        decode(s->a, work->a, (row + r) * s->k + start, count, work->a_rows + r * CHUNK);
    for (int64_t j = 0; j < s->n; j++) {
        decode(s->b, work->b, (b_first + j) * s->k + start, count, work->b_row);
        for (int64_t r = 0; r < rows; r++) {
            const int64_t at = r * s->n + j;
            double sums[2] = {work->value[at], work->terms[at]};
            add_products(work->a_rows + r * CHUNK, work->b_row, padded, sums);
            work->value[at] = sums[0];
            work->terms[at] = sums[1];
        }
    }
}

static void finish_group(const struct work *work, const struct fib_oracle_inputs *inputs,
                         int64_t rows)
{
    const struct gemm_shape *s = &work->shape;
    double scale = 1.0;
    if (s->scaled)
        scale = fib_dtype_load(FIB_F32, inputs->data[GEMM_A_SCALE], 0) *
                fib_dtype_load(FIB_F32, inputs->data[GEMM_B_SCALE], 0);
    for (int64_t i = 0; i < rows * s->n; i++) {
        const double bias =
            s->bias ? fib_dtype_load(FIB_BF16, inputs->data[GEMM_BIAS], (size_t)(i % s->n)) : 0.0;
        work->value[i] = work->value[i] * scale + bias;
        work->terms[i] = work->terms[i] * fabs(scale) + fabs(bias);
    }
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void fib_gemm_reference(const struct fib_case *kase, const struct fib_problem *problem,
                        const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                        const struct fib_oracle_rows *rows)
{
    (void)kase;
    struct work work = {.a = inputs->data[GEMM_A], .b = inputs->data[GEMM_B]};
    fib_gemm_shape(problem, &work.shape);
    const struct gemm_shape *s = &work.shape;
    const int64_t group = smaller(last - first, GROUP_ROWS);
    work.a_rows = fib_zalloc_array((size_t)(group + 1) * CHUNK, sizeof(double));
    work.b_row = work.a_rows + group * CHUNK;
    for (int64_t row = first; row < last;) {
        const int64_t entry_end = (row / s->m + 1) * s->m;
        const int64_t count = smaller(smaller(last, entry_end) - row, GROUP_ROWS);
        work.value = rows->value[GEMM_OUT] + (row - first) * s->n;
        work.terms = rows->terms[GEMM_OUT] + (row - first) * s->n;
        memset(work.value, 0, (size_t)(count * s->n) * sizeof(double));
        memset(work.terms, 0, (size_t)(count * s->n) * sizeof(double));
        for (int64_t start = 0; start < s->k; start += CHUNK)
            add_chunk(&work, row, count, start, smaller(s->k - start, CHUNK));
        finish_group(&work, inputs, count);
        row += count;
    }
    free(work.a_rows);
}
