/* Tensor contents on the device, bit for bit those of core/fill.c and core/dtype.c: the arithmetic is
 * that of core/element.h, compiled without contraction. Each thread makes 16 bytes. Work: about 70
 * operations an element, far above the time of the stores for 8-bit formats. */
#include <cuda_runtime.h>

#include "core/element.h"
#include "gpu/device_kernels.h"

namespace {

enum { THREADS = 256, VECTOR_BYTES = 16 };

template <int kind> __device__ __forceinline__ float draw(uint64_t word)
{
    if (kind == FIB_FILL_NORMAL)
        return fib_draw_normal(word);
    return kind == FIB_FILL_UNIFORM ? fib_draw_uniform(word) : fib_draw_int(word);
}

__device__ __forceinline__ int64_t to_integer(float value, float low, float high, int64_t most)
{
    if (value != value)
        return 0;
    if (value >= high)
        return most;
    return __float2ll_rn(value < low ? low : value);
}

template <int dtype> struct format;
template <> struct format<FIB_BF16> {
    typedef uint16_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return fib_narrow_bf16(value);
    }
};
template <> struct format<FIB_F16> {
    typedef uint16_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return fib_narrow_f16(value);
    }
};
template <> struct format<FIB_FP8_E4M3> {
    typedef uint8_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return fib_narrow_e4m3(value);
    }
};
template <> struct format<FIB_FP8_E5M2> {
    typedef uint8_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return fib_narrow_e5m2(value);
    }
};
template <> struct format<FIB_F32> {
    typedef float code;
    /* The device's arithmetic makes another NaN than the host's. */
    static __device__ __forceinline__ code make(float value)
    {
        return value != value ? __int_as_float(0x7fc00000) : value;
    }
};
template <> struct format<FIB_F64> {
    typedef double code;
    static __device__ __forceinline__ code make(float value)
    {
        return value != value ? __longlong_as_double(0x7ff8000000000000ll) : (double)value;
    }
};
template <> struct format<FIB_U8> {
    typedef uint8_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return (code)to_integer(value, 0.0f, 255.0f, 255);
    }
};
template <> struct format<FIB_I32> {
    typedef int32_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return (code)to_integer(value, -0x1p31f, 0x1p31f, 2147483647);
    }
};
template <> struct format<FIB_I64> {
    typedef int64_t code;
    static __device__ __forceinline__ code make(float value)
    {
        return to_integer(value, -0x1p63f, 0x1p63f, 9223372036854775807ll);
    }
};

struct job {
    uint64_t state; /* key + first * fib_weyl_step */
    uint64_t count;
    float scale, offset;
    void *dst;
    bool aligned; /* dst allows 16-byte stores */
};

template <int kind> __device__ __forceinline__ float element(const job &job, uint64_t index)
{
    if (kind == FIB_FILL_CONSTANT)
        return __fadd_rn(job.scale, job.offset);
    return __fmaf_rn(job.scale, draw<kind>(fib_mix64(job.state + index * fib_weyl_step)), job.offset);
}

template <int kind, int dtype> __global__ void __launch_bounds__(THREADS) fill_kernel(const job job)
{
    typedef typename format<dtype>::code code;
    enum { PER_THREAD = VECTOR_BYTES / sizeof(code) };
    const uint64_t step = (uint64_t)gridDim.x * THREADS * PER_THREAD;
    uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) * PER_THREAD;
    code *const dst = (code *)job.dst;
    for (; first < job.count; first += step) {
        union {
            code codes[PER_THREAD];
            uint4 vector;
        } made;
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
            made.codes[i] = format<dtype>::make(element<kind>(job, first + i));
        if (job.aligned && first + PER_THREAD <= job.count) {
            *(uint4 *)(dst + first) = made.vector;
            continue;
        }
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
            if (first + i < job.count)
                dst[first + i] = made.codes[i];
    }
}

template <int kind, int dtype> cudaError_t launch(cudaStream_t stream, const job &job)
{
    enum { PER_BLOCK = THREADS * VECTOR_BYTES / sizeof(typename format<dtype>::code) };
    uint64_t blocks = (job.count + PER_BLOCK - 1) / PER_BLOCK;
    if (blocks > 1u << 20)
        blocks = 1u << 20;
    fill_kernel<kind, dtype><<<(unsigned)blocks, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

template <int kind> cudaError_t launch_kind(cudaStream_t stream, int dtype, const job &job)
{
    switch (dtype) {
    case FIB_BF16:
        return launch<kind, FIB_BF16>(stream, job);
    case FIB_F16:
        return launch<kind, FIB_F16>(stream, job);
    case FIB_F32:
        return launch<kind, FIB_F32>(stream, job);
    case FIB_F64:
        return launch<kind, FIB_F64>(stream, job);
    case FIB_FP8_E4M3:
        return launch<kind, FIB_FP8_E4M3>(stream, job);
    case FIB_FP8_E5M2:
        return launch<kind, FIB_FP8_E5M2>(stream, job);
    case FIB_U8:
        return launch<kind, FIB_U8>(stream, job);
    case FIB_I32:
        return launch<kind, FIB_I32>(stream, job);
    case FIB_I64:
        return launch<kind, FIB_I64>(stream, job);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace

int fib_gpu_fill(struct CUstream_st *stream, const struct fib_gpu_fill *fill)
{
    if (fill->count == 0)
        return cudaSuccess;
    job job;
    job.state = fill->key + fill->first * fib_weyl_step;
    job.count = fill->count;
    job.scale = fill->scale == 0.0f ? 1.0f : fill->scale;
    job.offset = fill->offset;
    job.dst = fill->dst;
    job.aligned = (uintptr_t)fill->dst % VECTOR_BYTES == 0;
    switch (fill->kind) {
    case FIB_FILL_NORMAL:
        return launch_kind<FIB_FILL_NORMAL>(stream, fill->dtype, job);
    case FIB_FILL_UNIFORM:
        return launch_kind<FIB_FILL_UNIFORM>(stream, fill->dtype, job);
    case FIB_FILL_INTS:
        return launch_kind<FIB_FILL_INTS>(stream, fill->dtype, job);
    case FIB_FILL_CONSTANT:
        return launch_kind<FIB_FILL_CONSTANT>(stream, fill->dtype, job);
    default:
        return cudaErrorInvalidValue;
    }
}
