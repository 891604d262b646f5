/* The cheats of cheat.c on a GPU, and one that only exists there; CHEAT and HONEST as there. */
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/fib_plugin.h"

enum {
    CACHE,  /* results are kept by the addresses of their inputs */
    ASIDE,  /* the work goes into a stream that nobody times or waits for */
    NOTHING,
    PINNED, /* inputs are set aside in the L2 cache */
    LATER,  /* right while it is looked at, nothing afterwards */
    REUSE   /* always the slot that it saw first */
};
enum { NORM_X, NORM_W, NORM_Y, THREADS = 256, MOST_KEPT = 64 };

struct kept {
    const void *x;
    void *y;
};

struct state {
    int64_t rows, cols;
    size_t bytes;
    float eps;
    void *const *first; /* addresses of slot 0 */
    struct kept kept[MOST_KEPT];
    int call_count;
    cudaStream_t aside;
    cudaEvent_t begin, end;
};

static __global__ void norm_rows(const __nv_bfloat16 *x, const __nv_bfloat16 *w, __nv_bfloat16 *y,
                                 int64_t cols, float eps)
{
    __shared__ float parts[THREADS];
    x += blockIdx.x * cols;
    y += blockIdx.x * cols;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < cols; i += THREADS)
        sum += __bfloat162float(x[i]) * __bfloat162float(x[i]);
    parts[threadIdx.x] = sum;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            parts[threadIdx.x] += parts[threadIdx.x + step];
    }
    __syncthreads();
    const float scale = rsqrtf(parts[0] / (float)cols + eps);
    for (int64_t i = threadIdx.x; i < cols; i += THREADS)
        y[i] = __float2bfloat16(__bfloat162float(x[i]) * scale * __bfloat162float(w[i]));
}

static int told(cudaError_t code, struct fib_plugin_note *note)
{
    if (code == cudaSuccess)
        return FIB_PLUGIN_OK;
    snprintf(note->text, sizeof(note->text), "%s", cudaGetErrorString(code));
    return FIB_PLUGIN_FAILED;
}

/* Whose twin asks for nothing that outlives the call. */
static cudaError_t set_aside(cudaStream_t stream, void *data, size_t bytes)
{
    cudaStreamAttrValue value = {};
    const cudaError_t st = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes);
    if (st != cudaSuccess)
        return st;
    value.accessPolicyWindow.base_ptr = data;
    value.accessPolicyWindow.num_bytes = bytes;
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    return cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
}

static void take_shape(struct state *s, const struct fib_plugin_slot *slot)
{
    const struct fib_plugin_tensor *const x = &slot->kase->tensors[NORM_X];
    s->rows = 1;
    for (int d = 0; d + 1 < x->rank; d++)
        s->rows *= x->shape[d];
    s->cols = x->shape[x->rank - 1];
    s->bytes = (size_t)(s->rows * s->cols) * sizeof(__nv_bfloat16);
    s->eps = (float)fib_plugin_find_value(slot->kase, "eps")->f64;
    s->first = slot->data;
}

static int prepare(void **state, const struct fib_plugin_slot *slot, struct fib_plugin_note *note)
{
    if (*state)
        return FIB_PLUGIN_OK;
    struct state *const s = (struct state *)calloc(1, sizeof(*s));
    *state = s;
    take_shape(s, slot);
    cudaError_t st = cudaStreamCreateWithFlags(&s->aside, cudaStreamNonBlocking);
    if (st == cudaSuccess)
        st = cudaEventCreateWithFlags(&s->begin, cudaEventDisableTiming);
    if (st == cudaSuccess)
        st = cudaEventCreateWithFlags(&s->end, cudaEventDisableTiming);
    for (int i = 0; CHEAT == CACHE && i < MOST_KEPT && st == cudaSuccess; i++)
        st = cudaMalloc(&s->kept[i].y, s->bytes);
    if (CHEAT == PINNED && !HONEST && st == cudaSuccess)
        st = set_aside(s->aside, slot->data[NORM_X], s->bytes);
    return told(st, note);
}

static cudaError_t launch(const struct state *s, void *const *data, cudaStream_t stream)
{
    norm_rows<<<(unsigned)s->rows, THREADS, 0, stream>>>(
        (const __nv_bfloat16 *)data[NORM_X], (const __nv_bfloat16 *)data[NORM_W],
        (__nv_bfloat16 *)data[NORM_Y], s->cols, s->eps);
    return cudaGetLastError();
}

/* A captured copy keeps what it found when it was captured first. */
static cudaError_t with_cache(struct state *s, void *const *data, cudaStream_t stream)
{
    int i = 0;
    while (i < MOST_KEPT && s->kept[i].x && s->kept[i].x != data[NORM_X])
        i++;
    if (i < MOST_KEPT && s->kept[i].x && !HONEST)
        return cudaMemcpyAsync(data[NORM_Y], s->kept[i].y, s->bytes, cudaMemcpyDeviceToDevice,
                               stream);
    const cudaError_t st = launch(s, data, stream);
    if (i == MOST_KEPT || st != cudaSuccess)
        return st;
    s->kept[i].x = data[NORM_X];
    return cudaMemcpyAsync(s->kept[i].y, data[NORM_Y], s->bytes, cudaMemcpyDeviceToDevice, stream);
}

/* The twin forks from the timed stream and joins it again, which a capture follows. */
static cudaError_t aside(const struct state *s, void *const *data, cudaStream_t stream)
{
    if (!HONEST)
        return launch(s, data, s->aside);
    cudaError_t st = cudaEventRecord(s->begin, stream);
    if (st == cudaSuccess)
        st = cudaStreamWaitEvent(s->aside, s->begin, 0);
    if (st == cudaSuccess)
        st = launch(s, data, s->aside);
    if (st == cudaSuccess)
        st = cudaEventRecord(s->end, s->aside);
    return st == cudaSuccess ? cudaStreamWaitEvent(stream, s->end, 0) : st;
}

static int enqueue(void *state, void *stream_, const struct fib_plugin_slot *slot,
                   struct fib_plugin_note *note)
{
    struct state *const s = (struct state *)state;
    const cudaStream_t stream = (cudaStream_t)stream_;
    s->call_count++;
    if (CHEAT == CACHE)
        return told(with_cache(s, slot->data, stream), note);
    if (CHEAT == ASIDE)
        return told(aside(s, slot->data, stream), note);
    if ((CHEAT == NOTHING || (CHEAT == LATER && s->call_count > 2)) && !HONEST)
        return FIB_PLUGIN_OK;
    if (CHEAT == REUSE && !HONEST)
        return told(launch(s, s->first, stream), note);
    return told(launch(s, slot->data, stream), note);
}

static void teardown(void *state)
{
    struct state *const s = (struct state *)state;
    for (int i = 0; i < MOST_KEPT; i++)
        cudaFree(s->kept[i].y);
    if (s->begin)
        cudaEventDestroy(s->begin);
    if (s->end)
        cudaEventDestroy(s->end);
    if (s->aside)
        cudaStreamDestroy(s->aside);
    free(s);
}

/* routine, device, min_cc, ran, supports, prepare, enqueue, teardown */
static const struct fib_plugin_backend backends[] = {
    {"rmsnorm", FIB_PLUGIN_CUDA, 80, HONEST ? "honest" : "cheat", NULL, prepare, enqueue, teardown},
};

extern "C" {
FIB_PLUGIN_EXPORT const struct fib_plugin fib_plugin_table = {
    FIB_PLUGIN_VERSION, NAME, "a test's cheat", backends, NULL, 1, 0};
}
