/* A routine of one's own: out = alpha * x + y. What it is, not how it is computed; shared by the
 * plug-in for the CPU and the one for CUDA, so it is C and C++. */
#ifndef SCALED_SUM_H
#define SCALED_SUM_H

#include <math.h>
#include <stdio.h>

#include "fib_plugin.h"

enum { SCALED_SUM_X = 0, SCALED_SUM_Y = 1, SCALED_SUM_OUT = 2 };

/* name, kind, required, min, max, min_f64, max_f64, fallback, choices, help */
static const struct fib_plugin_flag scaled_sum_flags[] = {
    {"rows", FIB_PLUGIN_FLAG_I64, 1, 1, 1 << 20, 0, 0, NULL, NULL, "rows of x"},
    {"cols", FIB_PLUGIN_FLAG_I64, 0, 1, 1 << 20, 0, 0, "4096", NULL, "elements of a row"},
    {"alpha", FIB_PLUGIN_FLAG_F64, 0, 0, 0, -1000, 1000, "0.5", NULL, "factor of x"},
};

static int64_t scaled_sum_i64(const struct fib_plugin_case *kase, const char *flag)
{
    return fib_plugin_find_value(kase, flag)->i64;
}

/* Every implementation takes alpha as a float, so the reference does. */
static float scaled_sum_alpha(const struct fib_plugin_case *kase)
{
    return (float)fib_plugin_find_value(kase, "alpha")->f64;
}

static int scaled_sum_describe(const struct fib_plugin_case *kase,
                               struct fib_plugin_problem *problem, struct fib_plugin_note *note)
{
    static const char *const names[] = {"x", "y", "out"};
    const int64_t rows = scaled_sum_i64(kase, "rows"), cols = scaled_sum_i64(kase, "cols");
    if (rows * cols > INT64_C(1) << 32) {
        snprintf(note->text, sizeof(note->text), "--rows times --cols must be at most 4294967296");
        return FIB_PLUGIN_UNSUPPORTED;
    }
    for (int t = 0; t < 3; t++) {
        struct fib_plugin_tensor *const tensor = &problem->tensors[t];
        tensor->name = names[t];
        tensor->dtype = FIB_PLUGIN_F32;
        tensor->role = t == SCALED_SUM_OUT ? FIB_PLUGIN_OUTPUT : FIB_PLUGIN_INPUT;
        tensor->fill = t == SCALED_SUM_OUT ? FIB_PLUGIN_FILL_NONE : FIB_PLUGIN_FILL_NORMAL;
        tensor->check = t == SCALED_SUM_OUT ? FIB_PLUGIN_CHECK_FLOAT : FIB_PLUGIN_CHECK_NONE;
        tensor->rank = 2;
        tensor->shape[0] = rows;
        tensor->shape[1] = cols;
        tensor->row_elems = cols;
    }
    problem->tensor_count = 3;
    problem->row_count = rows;
    problem->row_flops = 4.0 * (double)cols;
    return FIB_PLUGIN_OK;
}

static int scaled_sum_traffic(const struct fib_plugin_case *kase, double *flops, double *bytes,
                              struct fib_plugin_note *note)
{
    const double elems =
        (double)scaled_sum_i64(kase, "rows") * (double)scaled_sum_i64(kase, "cols");
    (void)note;
    *flops = 2.0 * elems;
    *bytes = 12.0 * elems;
    return FIB_PLUGIN_OK;
}

static void scaled_sum_reference(const struct fib_plugin_case *kase, const void *const *inputs,
                                 int64_t first, int64_t last, double *const *value,
                                 double *const *terms)
{
    const int64_t cols = scaled_sum_i64(kase, "cols");
    const double alpha = (double)scaled_sum_alpha(kase);
    const float *const x = (const float *)inputs[SCALED_SUM_X] + first * cols;
    const float *const y = (const float *)inputs[SCALED_SUM_Y] + first * cols;
    for (int64_t i = 0; i < (last - first) * cols; i++) {
        value[SCALED_SUM_OUT][i] = alpha * x[i] + y[i];
        terms[SCALED_SUM_OUT][i] = fabs(alpha * x[i]) + fabs((double)y[i]);
    }
}

static const struct fib_plugin_routine scaled_sum_routines[] = {
    {"scaled_sum", "out = alpha * x + y", "x, y and out are float32 [rows, cols].",
     "flops = 2 rows cols; bytes = 12 rows cols.", scaled_sum_flags,
     sizeof(scaled_sum_flags) / sizeof(scaled_sum_flags[0]), 0, scaled_sum_describe,
     scaled_sum_traffic, scaled_sum_reference},
};

#endif
