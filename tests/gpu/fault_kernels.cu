/* Faulty kernels for the fake backends. */
#include "tests/gpu/fault_kernels.h"

#include <cassert>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace
{

enum { THREADS = 256, FRAME_BYTES = 1024 };

__global__ void flip_kernel(unsigned char *address)
{
    *address ^= 1;
}

template <class T> __global__ void double_kernel(T *data, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        data[i] = data[i] + data[i];
}

__global__ void store_kernel(volatile uint64_t *address)
{
    *address = 1;
}

__global__ void trap_kernel()
{
    __trap();
}

__global__ void assert_kernel(int promise)
{
    assert(promise);
}

/* `enough` is never true, which the compiler does not know, and a frame is used after the call: no
 * loop can replace the recursion. */
__device__ __noinline__ int descend(int depth, int enough)
{
    volatile char frame[FRAME_BYTES];
    frame[depth % FRAME_BYTES] = (char)depth;
    if (enough)
        return depth;
    return descend(depth + 1, enough) + frame[(depth + 1) % FRAME_BYTES];
}

__global__ void deep_kernel(int enough, volatile int *sink)
{
    const int bottom = descend(0, enough);
    if (sink)
        *sink = bottom;
}

__global__ void loop_kernel(volatile unsigned char *address)
{
    for (;;)
        *address = *address;
}

__global__ void null_kernel()
{
}

template <class T> int double_all(cudaStream_t stream, void *data, int64_t count)
{
    const unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    double_kernel<T><<<blocks, THREADS, 0, stream>>>((T *)data, count);
    return cudaGetLastError();
}

} // namespace

int fault_flip_bit(struct CUstream_st *stream, void *address)
{
    flip_kernel<<<1, 1, 0, stream>>>((unsigned char *)address);
    return cudaGetLastError();
}

int fault_double_all(struct CUstream_st *stream, enum fault_type type, void *data, int64_t count)
{
    switch (type) {
    case FAULT_F16:
        return double_all<__half>(stream, data, count);
    case FAULT_F32:
        return double_all<float>(stream, data, count);
    default:
        return double_all<__nv_bfloat16>(stream, data, count);
    }
}

int fault_store(struct CUstream_st *stream, uint64_t address)
{
    store_kernel<<<1, 1, 0, stream>>>((volatile uint64_t *)address);
    return cudaGetLastError();
}

int fault_trap(struct CUstream_st *stream)
{
    trap_kernel<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

int fault_assert(struct CUstream_st *stream)
{
    assert_kernel<<<1, 1, 0, stream>>>(0);
    return cudaGetLastError();
}

int fault_deep(struct CUstream_st *stream)
{
    deep_kernel<<<1, 1, 0, stream>>>(0, nullptr);
    return cudaGetLastError();
}

int fault_loop(struct CUstream_st *stream, void *address)
{
    loop_kernel<<<1, 1, 0, stream>>>((volatile unsigned char *)address);
    return cudaGetLastError();
}

int fault_oversized(struct CUstream_st *stream)
{
    null_kernel<<<1, 4096, 0, stream>>>();
    return cudaGetLastError();
}

int fault_wait(struct CUstream_st *stream)
{
    return cudaStreamSynchronize(stream);
}
