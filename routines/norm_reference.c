/* What the float64 oracles of the norm family share. Every step is float64 up to the roundings that
 * the routine's definition names; eps means the float32 nearest to the flag, as every kernel takes
 * it. */
#include "routines/norm_reference.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/dtype.h"
#include "routines/norm.h"

enum { CHUNK = 256 };

int fib_norm_tensor(const struct fib_problem *problem, const char *name)
{
    const int t = fib_problem_find(problem, name);
    assert(t >= 0);
    return t;
}

double fib_norm_eps(const struct fib_case *kase)
{
    return (double)(float)((const struct norm_params *)kase->params)->eps;
}

void fib_norm_decode(const struct fib_problem *problem, const struct fib_oracle_inputs *inputs,
                     int t, int64_t first, int64_t count, double *dst)
{
    const enum fib_dtype dtype = problem->tensors[t].dtype;
    const size_t offset_bytes = (size_t)first * fib_dtype_bytes(dtype);
    fib_dtype_to_f64(dtype, (const unsigned char *)inputs->data[t] + offset_bytes, dst,
                     (size_t)count);
}

double fib_norm_scalar(const struct fib_problem *problem, const struct fib_oracle_inputs *inputs,
                       const char *name)
{
    const int t = fib_norm_tensor(problem, name);
    return fib_dtype_load(problem->tensors[t].dtype, inputs->data[t], 0);
}

/* h += residual row; the updated residual is h with one rounding. */
static void add_residual(const struct fib_problem *problem, const struct fib_oracle_inputs *inputs,
                         int t, int64_t row, double *h, double *value, double *terms, int64_t cols)
{
    fib_norm_decode(problem, inputs, t, row * cols, cols, value);
    for (int64_t i = 0; i < cols; i++) {
        terms[i] = fabs(h[i]) + fabs(value[i]);
        value[i] += h[i];
        h[i] = value[i];
    }
}

double fib_norm_rms(const double *h, int64_t cols, double eps)
{
    double sum = 0.0;
    for (int64_t i = 0; i < cols; i++)
        sum += h[i] * h[i];
    return sqrt(sum / (double)cols + eps);
}

void fib_norm_scale_by_weight(const struct fib_problem *problem,
                              const struct fib_oracle_inputs *inputs, int weight, double offset,
                              double norm, double *h, int64_t cols)
{
    double w[CHUNK];
    for (int64_t at = 0; at < cols; at += CHUNK) {
        const int64_t count = cols - at < CHUNK ? cols - at : CHUNK;
        fib_norm_decode(problem, inputs, weight, at, count, w);
        for (int64_t i = 0; i < count; i++)
            h[at + i] = h[at + i] / norm * (w[i] + offset);
    }
}

/* Float32 arithmetic costs y about 6 roundings of scalars and products, plus half the relative
 * error of the sum of squares. An accumulator that takes n normal squares one by one ends with a
 * bias that grows with n: with 8 accumulators, as few as one vector register holds, y was seen to
 * be off by at most 2 u_acc at 2^12 columns, 10 at 2^16, 194 at 2^20. 3 + cols / 2^14 in units of 4
 * u_acc allows 13, 28 and 268, and at the end still only a thirtieth of one rounding of float16. */
static double rms_terms_factor(int64_t cols)
{
    return 3.0 + (double)cols * 0x1p-14;
}

void fib_norm_finish_float(double *value, double *terms, int64_t cols)
{
    const double factor = rms_terms_factor(cols);
    for (int64_t i = 0; i < cols; i++)
        terms[i] = factor * fabs(value[i]);
}

void fib_norm_finish_codes(enum fib_dtype dtype, double scale, double *value, double *terms,
                           int64_t cols)
{
    for (int64_t i = 0; i < cols; i++) {
        value[i] = fib_dtype_round(dtype, value[i] / scale);
        terms[i] = fabs(value[i]);
    }
}

void fib_norm_rms_rows(const struct fib_case *kase, const struct fib_problem *problem,
                       const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                       const struct fib_oracle_rows *rows, const struct fib_rms_form *form)
{
    const int x = fib_norm_tensor(problem, "x"), w = fib_norm_tensor(problem, "w");
    const int out = fib_norm_tensor(problem, form->output);
    const int residual = fib_problem_find(problem, "residual");
    const struct fib_tensor *const output = &problem->tensors[out];
    const bool codes = output->check == FIB_CHECK_CODES;
    const double scale = codes ? fib_norm_scalar(problem, inputs, "scale") : 1.0;
    const int64_t cols = output->row_elems;
    for (int64_t row = first; row < last; row++) {
        const int64_t at = (row - first) * cols;
        double *const h = rows->value[out] + at; /* the row is worked out in place */
        fib_norm_decode(problem, inputs, x, row * cols, cols, h);
        if (residual >= 0)
            add_residual(problem, inputs, residual, row, h, rows->value[residual] + at,
                         rows->terms[residual] + at, cols);
        const double norm = fib_norm_rms(h, cols, fib_norm_eps(kase));
        fib_norm_scale_by_weight(problem, inputs, w, form->weight_offset, norm, h, cols);
        if (codes)
            fib_norm_finish_codes(output->dtype, scale, h, rows->terms[out] + at, cols);
        else
            fib_norm_finish_float(h, rows->terms[out] + at, cols);
    }
}

/* In two passes: the variance of the centred row. */
void fib_norm_standardise(double *x, int64_t cols, double eps)
{
    double sum = 0.0, square_sum = 0.0;
    for (int64_t i = 0; i < cols; i++)
        sum += x[i];
    const double mean = sum / (double)cols;
    for (int64_t i = 0; i < cols; i++) {
        x[i] -= mean;
        square_sum += x[i] * x[i];
    }
    const double deviation = sqrt(square_sum / (double)cols + eps);
    for (int64_t i = 0; i < cols; i++)
        x[i] /= deviation;
}
