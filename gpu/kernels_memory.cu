/* Walks over device memory: checksum, scan for a bit pattern, one source to many slots, slots held
 * against the first one. All are bound by memory or by latency; none is ever timed. */
#include <cuda_runtime.h>

#include "core/element.h"
#include "gpu/device_kernels.h"

namespace {

enum { THREADS = 256, VECTOR_BYTES = 16 };

const uint64_t most_blocks = 132 * 16;

unsigned blocks_for(uint64_t items, unsigned per_block)
{
    const uint64_t blocks = (items + per_block - 1) / per_block;
    return (unsigned)(blocks < 1 ? 1 : blocks > most_blocks ? most_blocks : blocks);
}

/* ---- checksum: the definition of core/fill.c, eight threads to a chunk ---- */

enum { CHUNK_BYTES = 1 << 16, LANES = 8, STRIPE_BYTES = LANES * 8, AHEAD = 8 };

/* Little-endian word of up to eight bytes, zero after the end. */
__device__ uint64_t edge_word(const unsigned char *bytes, uint64_t at, uint64_t end)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        if (at + i < end)
            word |= (uint64_t)bytes[at + i] << (8 * i);
    return word;
}

__global__ void __launch_bounds__(THREADS)
    checksum_kernel(const unsigned char *src, uint64_t byte_count, bool aligned, uint64_t *total)
{
    const uint64_t chunk_count = (byte_count + CHUNK_BYTES - 1) / CHUNK_BYTES;
    const unsigned lane = threadIdx.x % LANES;
    uint64_t chunk = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    const uint64_t step = (uint64_t)gridDim.x * THREADS / LANES;
    /* Whole warps leave together: the shuffles below need all of them. */
    for (; __any_sync(0xffffffffu, chunk < chunk_count); chunk += step) {
        const bool mine = chunk < chunk_count;
        const uint64_t start = chunk * CHUNK_BYTES;
        const uint64_t bytes =
            !mine ? 0 : byte_count - start < CHUNK_BYTES ? byte_count - start : CHUNK_BYTES;
        const unsigned char *const from = src + start + lane * 8;
        const unsigned stripes = (unsigned)(bytes / STRIPE_BYTES);
        uint64_t state = (uint64_t)(lane + 1) * fib_weyl_step;
        unsigned s = 0;
        for (; aligned && s + AHEAD <= stripes; s += AHEAD) {
            uint64_t words[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                words[i] = *(const uint64_t *)(from + (uint64_t)(s + i) * STRIPE_BYTES);
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                state = fib_checksum_step(state, words[i]);
        }
        for (; (uint64_t)s * STRIPE_BYTES < bytes; s++)
            state = fib_checksum_step(state, edge_word(src, start + (uint64_t)s * STRIPE_BYTES + lane * 8,
                                               start + bytes));
        uint64_t sum = fib_mix64(chunk + fib_weyl_step) ^ bytes;
        for (int i = 0; i < LANES; i++)
            sum = fib_mix64((sum ^ __shfl_sync(0xffffffffu, state, i, LANES)) + fib_weyl_step);
        if (mine && lane == 0)
            atomicAdd((unsigned long long *)total, (unsigned long long)sum);
    }
}

/* ---- scan ---- */

template <typename code>
__global__ void __launch_bounds__(THREADS)
    scan_kernel(const code *src, uint64_t count, code mask, code pattern, uint64_t *found)
{
    const uint64_t step = (uint64_t)gridDim.x * THREADS;
    unsigned long long hits = 0, first = ~0ull;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        if ((code)(src[i] & mask) == pattern) {
            hits++;
            first = first < i ? first : i;
        }
    if (hits > 0) {
        atomicAdd((unsigned long long *)&found[0], hits);
        atomicMin((unsigned long long *)&found[1], first);
    }
}

template <typename code>
cudaError_t launch_scan(cudaStream_t stream, const void *src, uint64_t count, uint64_t mask,
                        uint64_t pattern, uint64_t *found)
{
    scan_kernel<code><<<blocks_for(count, THREADS * 8), THREADS, 0, stream>>>(
        (const code *)src, count, (code)mask, (code)pattern, found);
    return cudaGetLastError();
}

/* ---- one source to many slots ---- */

/* As many slots as fit into the parameters of a launch. */
enum { SPREAD_SLOTS = 960, SPREAD_BLOCK_BYTES = THREADS * VECTOR_BYTES * 4 };

struct spread_job {
    unsigned char *dst;
    const unsigned char *src;
    uint64_t stride_bytes, bytes;
    bool aligned;
    uint32_t slots[SPREAD_SLOTS];
};

__global__ void __launch_bounds__(THREADS) spread_kernel(const __grid_constant__ spread_job job)
{
    unsigned char *const dst = job.dst + job.slots[blockIdx.x] * job.stride_bytes;
    const uint64_t step = (uint64_t)gridDim.y * SPREAD_BLOCK_BYTES;
    for (uint64_t first = (uint64_t)blockIdx.y * SPREAD_BLOCK_BYTES; first < job.bytes;
         first += step) {
        const uint64_t left = job.bytes - first;
        const uint64_t length = left < SPREAD_BLOCK_BYTES ? left : SPREAD_BLOCK_BYTES;
        uint64_t done = 0;
        if (job.aligned) {
            done = length / VECTOR_BYTES * VECTOR_BYTES;
#pragma unroll 4
            for (uint64_t at = threadIdx.x * VECTOR_BYTES; at < done; at += THREADS * VECTOR_BYTES)
                *(uint4 *)(dst + first + at) = *(const uint4 *)(job.src + first + at);
        }
        for (uint64_t at = done + threadIdx.x; at < length; at += THREADS)
            dst[first + at] = job.src[first + at];
    }
}

/* ---- slots held against slot 0 ---- */

struct compare_job {
    const unsigned char *base;
    uint64_t stride_bytes;
    struct fib_gpu_span skipped[FIB_GPU_MAX_SPANS];
    int skipped_count;
    uint64_t *first_slot;
};

/* 16 bytes that touch a skipped span, byte by byte. */
__device__ bool edge_differs(const compare_job &job, const unsigned char *a, uint64_t at)
{
    for (int i = 0; i < VECTOR_BYTES; i++) {
        bool skip = false;
        for (int k = 0; k < job.skipped_count; k++)
            skip = skip || (at + i >= job.skipped[k].first && at + i < job.skipped[k].last);
        if (!skip && a[at + i] != job.base[at + i])
            return true;
    }
    return false;
}

__global__ void __launch_bounds__(THREADS) compare_kernel(const __grid_constant__ compare_job job)
{
    const uint64_t slot = blockIdx.x + 1;
    const unsigned char *const mine = job.base + slot * job.stride_bytes;
    const uint64_t step = (uint64_t)gridDim.y * THREADS * VECTOR_BYTES;
    bool differs = false;
    for (uint64_t at = ((uint64_t)blockIdx.y * THREADS + threadIdx.x) * VECTOR_BYTES;
         at < job.stride_bytes; at += step) {
        bool whole = false, touched = false;
        for (int k = 0; k < job.skipped_count; k++) {
            const uint64_t first = job.skipped[k].first, last = job.skipped[k].last;
            whole = whole || (first <= at && at + VECTOR_BYTES <= last);
            touched = touched || (first < at + VECTOR_BYTES && at < last);
        }
        if (whole)
            continue;
        if (touched) {
            differs = differs || edge_differs(job, mine, at);
            continue;
        }
        const uint4 a = *(const uint4 *)(mine + at), b = *(const uint4 *)(job.base + at);
        differs = differs || a.x != b.x || a.y != b.y || a.z != b.z || a.w != b.w;
    }
    if (differs)
        atomicMin((unsigned long long *)job.first_slot, (unsigned long long)slot);
}

} // namespace

int fib_gpu_checksum(struct CUstream_st *stream, const void *src, uint64_t byte_count,
                     uint64_t *total)
{
    const cudaError_t code = cudaMemsetAsync(total, 0, sizeof(*total), stream);
    if (code != cudaSuccess || byte_count == 0)
        return code;
    const uint64_t chunks = (byte_count + CHUNK_BYTES - 1) / CHUNK_BYTES;
    checksum_kernel<<<blocks_for(chunks, THREADS / LANES), THREADS, 0, stream>>>(
        (const unsigned char *)src, byte_count, (uintptr_t)src % 8 == 0, total);
    return cudaGetLastError();
}

uint64_t fib_gpu_checksum_value(uint64_t total, uint64_t byte_count)
{
    return fib_mix64(total ^ byte_count);
}

int fib_gpu_scan(struct CUstream_st *stream, const void *src, unsigned elem_bytes, uint64_t count,
                 uint64_t mask, uint64_t pattern, uint64_t found[2])
{
    cudaError_t code = cudaMemsetAsync(&found[0], 0, sizeof(found[0]), stream);
    if (code == cudaSuccess)
        code = cudaMemsetAsync(&found[1], 0xff, sizeof(found[1]), stream);
    if (code != cudaSuccess || count == 0)
        return code;
    switch (elem_bytes) {
    case 1:
        return launch_scan<uint8_t>(stream, src, count, mask, pattern, found);
    case 2:
        return launch_scan<uint16_t>(stream, src, count, mask, pattern, found);
    case 4:
        return launch_scan<uint32_t>(stream, src, count, mask, pattern, found);
    case 8:
        return launch_scan<uint64_t>(stream, src, count, mask, pattern, found);
    default:
        return cudaErrorInvalidValue;
    }
}

int fib_gpu_spread(struct CUstream_st *stream, void *dst, uint64_t stride_bytes,
                   const uint32_t *slots, uint32_t slot_count, const void *src, uint64_t bytes)
{
    if (bytes == 0)
        return cudaSuccess;
    spread_job job;
    job.dst = (unsigned char *)dst;
    job.src = (const unsigned char *)src;
    job.stride_bytes = stride_bytes;
    job.bytes = bytes;
    job.aligned = (((uintptr_t)dst | (uintptr_t)src | stride_bytes) % VECTOR_BYTES) == 0;
    const uint64_t pieces = (bytes + SPREAD_BLOCK_BYTES - 1) / SPREAD_BLOCK_BYTES;
    for (uint32_t done = 0; done < slot_count; done += SPREAD_SLOTS) {
        const uint32_t left = slot_count - done, most = SPREAD_SLOTS;
        const uint32_t count = left < most ? left : most;
        for (uint32_t i = 0; i < SPREAD_SLOTS; i++)
            job.slots[i] = i < count ? slots[done + i] : 0;
        const dim3 grid(count, (unsigned)(pieces < 4096 ? pieces : 4096));
        spread_kernel<<<grid, THREADS, 0, stream>>>(job);
        const cudaError_t code = cudaGetLastError();
        if (code != cudaSuccess)
            return code;
    }
    return cudaSuccess;
}

int fib_gpu_compare_slots(struct CUstream_st *stream, const void *base, uint64_t stride_bytes,
                          uint32_t slot_count, const struct fib_gpu_span *skipped,
                          int skipped_count, uint64_t *first_slot)
{
    const cudaError_t code = cudaMemsetAsync(first_slot, 0xff, sizeof(*first_slot), stream);
    if (code != cudaSuccess || slot_count < 2)
        return code;
    if (skipped_count > FIB_GPU_MAX_SPANS)
        return cudaErrorInvalidValue;
    compare_job job;
    job.base = (const unsigned char *)base;
    job.stride_bytes = stride_bytes;
    job.skipped_count = skipped_count;
    job.first_slot = first_slot;
    for (int k = 0; k < FIB_GPU_MAX_SPANS; k++)
        job.skipped[k] = k < skipped_count ? skipped[k] : fib_gpu_span{0, 0};
    const unsigned per_slot = blocks_for(stride_bytes, THREADS * VECTOR_BYTES * 4);
    compare_kernel<<<dim3(slot_count - 1, per_slot), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}
