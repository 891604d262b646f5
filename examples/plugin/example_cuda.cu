/* The plug-in example for CUDA: a backend for rmsnorm, and scaled_sum on the CPU's and the GPU's
 * side.
 *
 *   nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC -I../../include -o example_cuda.so example_cuda.cu
 *   fib-bench --plugin example_cuda.so --routine rmsnorm --batch_size 4096 --hidden_size 4096 \
 *             --backends cuda plugin:example-cuda
 *
 * The runtime is linked statically, as nvcc does by default: it finds the context that fib-bench has
 * made, and memory and streams may be handed to it. */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "scaled_sum.h"

static const char *const only_bf16 = "takes bfloat16 only (--input_dtype)";

static int told(cudaError_t code, struct fib_plugin_note *note)
{
    if (code == cudaSuccess)
        return FIB_PLUGIN_OK;
    snprintf(note->text, sizeof(note->text), "%s: %s", cudaGetErrorName(code),
             cudaGetErrorString(code));
    return code == cudaErrorMemoryAllocation ? FIB_PLUGIN_NO_MEMORY : FIB_PLUGIN_FAILED;
}

/* ---- rmsnorm: y = x / sqrt(mean(x^2) + eps) * w, in bfloat16, one block of 256 threads a row ---- */

enum { NORM_THREADS = 256 };

static __device__ float block_sum(float value)
{
    __shared__ float parts[NORM_THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
    for (int i = 0; i < NORM_THREADS / 32; i++)
        value += parts[i];
    return value;
}

static __global__ void norm_rows(const __nv_bfloat16 *x, const __nv_bfloat16 *w, __nv_bfloat16 *y,
                                 int64_t cols, float eps)
{
    x += blockIdx.x * cols;
    y += blockIdx.x * cols;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < cols; i += NORM_THREADS)
        sum += __bfloat162float(x[i]) * __bfloat162float(x[i]);
    const float scale = rsqrtf(block_sum(sum) / (float)cols + eps);
    for (int64_t i = threadIdx.x; i < cols; i += NORM_THREADS)
        y[i] = __float2bfloat16(__bfloat162float(x[i]) * scale * __bfloat162float(w[i]));
}

static const char *norm_supports(const struct fib_plugin_case *kase)
{
    const int x = fib_plugin_find_tensor(kase, "x");
    if (x < 0 || fib_plugin_find_tensor(kase, "w") < 0 || fib_plugin_find_tensor(kase, "y") < 0)
        return "expects tensors x, w and y";
    return kase->tensors[x].dtype == FIB_PLUGIN_BF16 ? NULL : only_bf16;
}

static int norm_enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                        struct fib_plugin_note *note)
{
    const struct fib_plugin_case *const kase = slot->kase;
    const int x = fib_plugin_find_tensor(kase, "x"), w = fib_plugin_find_tensor(kase, "w");
    const int y = fib_plugin_find_tensor(kase, "y");
    const struct fib_plugin_tensor *const tensor = &kase->tensors[x];
    int64_t rows = 1;
    (void)state;
    for (int d = 0; d + 1 < tensor->rank; d++)
        rows *= tensor->shape[d];
    norm_rows<<<(unsigned)rows, NORM_THREADS, 0, (cudaStream_t)stream>>>(
        (const __nv_bfloat16 *)slot->data[x], (const __nv_bfloat16 *)slot->data[w],
        (__nv_bfloat16 *)slot->data[y], tensor->shape[tensor->rank - 1],
        (float)fib_plugin_find_value(kase, "eps")->f64);
    return told(cudaGetLastError(), note);
}

/* ---- scaled_sum ---- */

static __global__ void sum_elements(const float *x, const float *y, float *out, int64_t count,
                                    float alpha)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = fmaf(alpha, x[i], y[i]);
}

static int sum_enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                       struct fib_plugin_note *note)
{
    const int64_t count = scaled_sum_i64(slot->kase, "rows") * scaled_sum_i64(slot->kase, "cols");
    (void)state;
    sum_elements<<<(unsigned)((count + 255) / 256), 256, 0, (cudaStream_t)stream>>>(
        (const float *)slot->data[SCALED_SUM_X], (const float *)slot->data[SCALED_SUM_Y],
        (float *)slot->data[SCALED_SUM_OUT], count, scaled_sum_alpha(slot->kase));
    return told(cudaGetLastError(), note);
}

/* So that a machine without a GPU can check the routine. */
static int sum_on_cpu(void *state, void *stream, const struct fib_plugin_slot *slot,
                      struct fib_plugin_note *note)
{
    const int64_t count = scaled_sum_i64(slot->kase, "rows") * scaled_sum_i64(slot->kase, "cols");
    const float alpha = scaled_sum_alpha(slot->kase);
    const float *const x = (const float *)slot->data[SCALED_SUM_X];
    const float *const y = (const float *)slot->data[SCALED_SUM_Y];
    float *const out = (float *)slot->data[SCALED_SUM_OUT];
    (void)state, (void)stream, (void)note;
    for (int64_t i = 0; i < count; i++)
        out[i] = alpha * x[i] + y[i];
    return FIB_PLUGIN_OK;
}

/* ---- the table; routine, device, min_cc, ran, supports, prepare, enqueue, teardown ---- */

static const struct fib_plugin_backend backends[] = {
    {"rmsnorm", FIB_PLUGIN_CUDA, 80, "row_per_block", norm_supports, NULL, norm_enqueue, NULL},
    {"scaled_sum", FIB_PLUGIN_CUDA, 0, "element_per_thread", NULL, NULL, sum_enqueue, NULL},
    {"scaled_sum", FIB_PLUGIN_CPU, 0, "loop", NULL, NULL, sum_on_cpu, NULL},
};

extern "C" {
FIB_PLUGIN_EXPORT const struct fib_plugin fib_plugin_table = {
    FIB_PLUGIN_VERSION,
    "example-cuda",
    "the example plug-in, plain CUDA",
    backends,
    scaled_sum_routines,
    sizeof(backends) / sizeof(backends[0]),
    sizeof(scaled_sum_routines) / sizeof(scaled_sum_routines[0]),
};
}
