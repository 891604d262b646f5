/* Float64 building blocks for the oracles of the norm family; internal to routines/norm*.c. A
 * routine's own oracle is a static function beside its row in norm.c. */
#ifndef FIB_ROUTINES_NORM_REFERENCE_H
#define FIB_ROUTINES_NORM_REFERENCE_H

#include <stdint.h>

#include "core/case.h"
#include "core/problem.h"

/* Head of a function with the contract of fib_routine.reference. */
#define FIB_NORM_REFERENCE(name)                                                                   \
    void name(const struct fib_case *kase, const struct fib_problem *problem,                      \
              const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,                 \
              const struct fib_oracle_rows *rows)

/* What the RMS forms differ in: y = x / sqrt(mean(x^2) + eps) * (w + weight_offset). */
struct fib_rms_form {
    double weight_offset;
    const char *output; /* tensor that takes y; a quantised one is divided by "scale" */
};

/* The whole oracle of an RMS form over tensors "x", "w", the output and, if the problem has it,
 * "residual": h = x + residual, not rounded for the norm, replaces it. One rounding, at the end. */
void fib_norm_rms_rows(const struct fib_case *kase, const struct fib_problem *problem,
                       const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                       const struct fib_oracle_rows *rows, const struct fib_rms_form *form);

/* Index of a tensor that the problem has. */
int fib_norm_tensor(const struct fib_problem *problem, const char *name);
/* --eps as kernels take it: the nearest float32. */
double fib_norm_eps(const struct fib_case *kase);
/* The one element of an input. */
double fib_norm_scalar(const struct fib_problem *problem, const struct fib_oracle_inputs *inputs,
                       const char *name);
/* Elements [first, first + count) of input tensor t. */
void fib_norm_decode(const struct fib_problem *problem, const struct fib_oracle_inputs *inputs,
                     int t, int64_t first, int64_t count, double *dst);

/* sqrt(mean(h^2) + eps) */
double fib_norm_rms(const double *h, int64_t cols, double eps);
/* x := (x - mean) / sqrt(var + eps), var biased */
void fib_norm_standardise(double *x, int64_t cols, double eps);
/* h := h / norm * (weight + offset), weight being the index of an input of length cols */
void fib_norm_scale_by_weight(const struct fib_problem *problem,
                              const struct fib_oracle_inputs *inputs, int weight, double offset,
                              double norm, double *h, int64_t cols);

/* Tolerance scale of a float output that went through a norm. */
void fib_norm_finish_float(double *value, double *terms, int64_t cols);
/* value := decoded value of the code nearest to value / scale (rounding saturates, so it also
 * clamps), and the tolerance scale of such an output. */
void fib_norm_finish_codes(enum fib_dtype dtype, double scale, double *value, double *terms,
                           int64_t cols);

#endif
