/* Kernels that measuring needs: clock stamps, nothing at all, known cycles, waiting, cache flush. */
#include <cuda_runtime.h>

#include "gpu/device_kernels.h"

namespace {

enum { FLUSH_THREADS = 512, FLUSH_BLOCKS = 132 * 4 };

__device__ __forceinline__ uint64_t global_time_ns()
{
    uint64_t time_ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time_ns));
    return time_ns;
}

/* The timer is read until it steps (32 ns on a Hopper, 1 us elsewhere): the cycle counter then
 * belongs to that very moment. */
__global__ void stamp_kernel(struct fib_gpu_stamp *stamps)
{
    const uint64_t before = global_time_ns();
    uint64_t time_ns = before;
    for (int i = 0; i < 4096 && time_ns == before; i++)
        time_ns = global_time_ns();
    const uint64_t cycles = (uint64_t)clock64();
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    stamps[blockIdx.x].time_ns = time_ns;
    stamps[blockIdx.x].cycles = cycles;
    stamps[blockIdx.x].sm = sm;
}

__global__ void null_kernel() {}

__global__ void spin_kernel(uint64_t cycles)
{
    const uint64_t start = (uint64_t)clock64();
    while ((uint64_t)clock64() - start < cycles)
        ;
}

__global__ void hold_kernel(const volatile uint32_t *released, uint32_t ticket, uint64_t limit_ns)
{
    const uint64_t start = global_time_ns();
    while (*released != ticket && global_time_ns() - start < limit_ns)
        ;
}

__global__ void __launch_bounds__(FLUSH_THREADS) write_kernel(uint4 *buffer, uint64_t count)
{
    const uint64_t step = (uint64_t)gridDim.x * FLUSH_THREADS;
    for (uint64_t i = (uint64_t)blockIdx.x * FLUSH_THREADS + threadIdx.x; i < count; i += step)
        buffer[i] = make_uint4((unsigned)i, 1u, 2u, 3u);
}

__global__ void __launch_bounds__(FLUSH_THREADS)
    read_kernel(const uint4 *buffer, uint64_t count, uint32_t *sink)
{
    const uint64_t step = (uint64_t)gridDim.x * FLUSH_THREADS;
    unsigned sum = 0;
#pragma unroll 4
    for (uint64_t i = (uint64_t)blockIdx.x * FLUSH_THREADS + threadIdx.x; i < count; i += step) {
        const uint4 v = buffer[i];
        sum |= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x9e3779b9u)
        *sink = sum;
}

} // namespace

int fib_gpu_stamp(struct CUstream_st *stream, struct fib_gpu_stamp stamps[FIB_GPU_STAMPS])
{
    stamp_kernel<<<FIB_GPU_STAMPS, 1, 0, stream>>>(stamps);
    return cudaGetLastError();
}

int fib_gpu_null(struct CUstream_st *stream, unsigned block_count, unsigned thread_count)
{
    null_kernel<<<block_count, thread_count, 0, stream>>>();
    return cudaGetLastError();
}

int fib_gpu_spin(struct CUstream_st *stream, uint64_t cycles)
{
    spin_kernel<<<1, 1, 0, stream>>>(cycles);
    return cudaGetLastError();
}

int fib_gpu_hold(struct CUstream_st *stream, const uint32_t *released, uint32_t ticket,
                 uint64_t limit_ns)
{
    hold_kernel<<<1, 1, 0, stream>>>(released, ticket, limit_ns);
    return cudaGetLastError();
}

int fib_gpu_flush(struct CUstream_st *stream, void *buffer, uint64_t write_bytes,
                  uint64_t read_bytes, uint32_t *sink)
{
    const uint64_t written = write_bytes / sizeof(uint4), read = read_bytes / sizeof(uint4);
    write_kernel<<<FLUSH_BLOCKS, FLUSH_THREADS, 0, stream>>>((uint4 *)buffer, written);
    const cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        return code;
    read_kernel<<<FLUSH_BLOCKS, FLUSH_THREADS, 0, stream>>>((const uint4 *)buffer + written, read,
                                                            sink);
    return cudaGetLastError();
}
