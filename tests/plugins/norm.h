/* rmsnorm in bfloat16 on one thread, for the plug-ins of the tests: each adds its own deed. */
#ifndef FIB_TESTS_PLUGINS_NORM_H
#define FIB_TESTS_PLUGINS_NORM_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "include/fib_plugin.h"

struct norm {
    int64_t rows, cols;
    float eps;
};

static inline float norm_from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

static inline uint16_t norm_to_bf16(float value)
{
    uint32_t wide;
    memcpy(&wide, &value, sizeof(wide));
    return (uint16_t)((wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
}

/* Tensors of rmsnorm, in the order of its description. */
enum { NORM_X, NORM_W, NORM_Y };

static inline struct norm norm_of(const struct fib_plugin_case *kase)
{
    const struct fib_plugin_tensor *const x = &kase->tensors[NORM_X];
    struct norm norm = {.rows = 1, .cols = x->shape[x->rank - 1]};
    for (int d = 0; d + 1 < x->rank; d++)
        norm.rows *= x->shape[d];
    norm.eps = (float)fib_plugin_find_value(kase, "eps")->f64;
    return norm;
}

static inline void norm_rows(const struct norm *norm, const uint16_t *x, const uint16_t *w,
                             uint16_t *y)
{
    for (int64_t r = 0; r < norm->rows; r++, x += norm->cols, y += norm->cols) {
        float sum = 0.0f;
        for (int64_t i = 0; i < norm->cols; i++)
            sum += norm_from_bf16(x[i]) * norm_from_bf16(x[i]);
        const float scale = 1.0f / sqrtf(sum / (float)norm->cols + norm->eps);
        for (int64_t i = 0; i < norm->cols; i++)
            y[i] = norm_to_bf16(norm_from_bf16(x[i]) * scale * norm_from_bf16(w[i]));
    }
}

static inline size_t norm_bytes(const struct norm *norm)
{
    return (size_t)(norm->rows * norm->cols) * sizeof(uint16_t);
}

#endif
