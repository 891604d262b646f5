/* A plug-in for the CPU: a backend for rmsnorm, and the routine scaled_sum with a backend.
 *
 *   cc -O2 -shared -fPIC -I../../include -o example.so example.c -lm
 *   fib-bench --plugin example.so --routine rmsnorm --batch_size 64 --hidden_size 1024 \
 *             --backends cpu plugin:example
 *   fib-bench --plugin example.so --routine scaled_sum --rows 64 */
#include <stdlib.h>

#include "scaled_sum.h"

/* ---- rmsnorm: y = x / sqrt(mean(x^2) + eps) * w, in bfloat16 ---- */

static float from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

/* To the nearest, ties to even. Inputs are finite. */
static uint16_t to_bf16(float value)
{
    uint32_t wide;
    memcpy(&wide, &value, sizeof(wide));
    return (uint16_t)((wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
}

/* What a call needs, found once. Tensors are found by name; `fib-bench describe rmsnorm` lists
 * them. */
struct norm {
    int x, w, y;
    int64_t rows, cols;
    float eps;
};

/* This backend knows one type and the plain row layout. The rest is refused, never ignored. */
static const char *norm_supports(const struct fib_plugin_case *kase)
{
    const int x = fib_plugin_find_tensor(kase, "x");
    if (x < 0 || fib_plugin_find_tensor(kase, "w") < 0 || fib_plugin_find_tensor(kase, "y") < 0)
        return "expects tensors x, w and y";
    if (kase->tensors[x].dtype != FIB_PLUGIN_BF16)
        return "takes bfloat16 only (--input_dtype)";
    return NULL;
}

/* The same for every slot: the first call makes it. */
static int norm_prepare(void **state, const struct fib_plugin_slot *slot,
                        struct fib_plugin_note *note)
{
    const struct fib_plugin_case *const kase = slot->kase;
    if (*state)
        return FIB_PLUGIN_OK;
    struct norm *const norm = calloc(1, sizeof(*norm));
    if (!norm) {
        snprintf(note->text, sizeof(note->text), "no memory for %zu bytes", sizeof(*norm));
        return FIB_PLUGIN_NO_MEMORY;
    }
    norm->x = fib_plugin_find_tensor(kase, "x");
    norm->w = fib_plugin_find_tensor(kase, "w");
    norm->y = fib_plugin_find_tensor(kase, "y");
    const struct fib_plugin_tensor *const x = &kase->tensors[norm->x];
    norm->cols = x->shape[x->rank - 1];
    norm->rows = 1;
    for (int d = 0; d + 1 < x->rank; d++)
        norm->rows *= x->shape[d];
    norm->eps = (float)fib_plugin_find_value(kase, "eps")->f64;
    *state = norm;
    return FIB_PLUGIN_OK;
}

static void norm_row(const struct norm *norm, const uint16_t *x, const uint16_t *w, uint16_t *y)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < norm->cols; i++)
        sum += from_bf16(x[i]) * from_bf16(x[i]);
    const float scale = 1.0f / sqrtf(sum / (float)norm->cols + norm->eps);
    for (int64_t i = 0; i < norm->cols; i++)
        y[i] = to_bf16(from_bf16(x[i]) * scale * from_bf16(w[i]));
}

static int norm_enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                        struct fib_plugin_note *note)
{
    const struct norm *const norm = state;
    const uint16_t *const x = slot->data[norm->x];
    const uint16_t *const w = slot->data[norm->w];
    uint16_t *const y = slot->data[norm->y];
    (void)stream, (void)note;
    for (int64_t row = 0; row < norm->rows; row++)
        norm_row(norm, x + row * norm->cols, w, y + row * norm->cols);
    return FIB_PLUGIN_OK;
}

/* ---- scaled_sum: nothing to prepare ---- */

static int sum_enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                       struct fib_plugin_note *note)
{
    const int64_t count = scaled_sum_i64(slot->kase, "rows") * scaled_sum_i64(slot->kase, "cols");
    const float alpha = scaled_sum_alpha(slot->kase);
    const float *const x = slot->data[SCALED_SUM_X];
    const float *const y = slot->data[SCALED_SUM_Y];
    float *const out = slot->data[SCALED_SUM_OUT];
    (void)state, (void)stream, (void)note;
    for (int64_t i = 0; i < count; i++)
        out[i] = alpha * x[i] + y[i];
    return FIB_PLUGIN_OK;
}

/* ---- the table ---- */

static const struct fib_plugin_backend backends[] = {
    {.routine = "rmsnorm",
     .device = FIB_PLUGIN_CPU,
     .ran = "rows_in_float",
     .supports = norm_supports,
     .prepare = norm_prepare,
     .enqueue = norm_enqueue,
     .teardown = free},
    {.routine = "scaled_sum", .device = FIB_PLUGIN_CPU, .ran = "loop", .enqueue = sum_enqueue},
};

FIB_PLUGIN_EXPORT const struct fib_plugin fib_plugin_table = {
    FIB_PLUGIN_VERSION,
    .name = "example",
    .describe = "the example plug-in, plain C on one thread",
    .backends = backends,
    .routines = scaled_sum_routines,
    .backend_count = sizeof(backends) / sizeof(backends[0]),
    .routine_count = sizeof(scaled_sum_routines) / sizeof(scaled_sum_routines[0]),
};
