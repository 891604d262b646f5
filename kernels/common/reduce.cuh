/* Sums over the threads that share a row: part of a warp, a block, a cluster. Every thread gets the
 * total, added up in an order that depends on the launch shape alone. */
#ifndef FIB_KERNELS_COMMON_REDUCE_CUH
#define FIB_KERNELS_COMMON_REDUCE_CUH

#include <stdint.h>

#include "kernels/common/ptx_sm90.cuh"
#include "kernels/common/vec.cuh"

namespace fib
{

/* `lanes` is a power of two, at most 32, and the same in the whole block. */
template <int COUNT> FIB_DEV void warp_sum(float *s, int lanes)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        if (step >= lanes)
            break;
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            s[k] += __shfl_xor_sync(0xffffffffu, s[k], step);
    }
}

FIB_DEV float warp_sum_32(float s)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        s += __shfl_xor_sync(0xffffffffu, s, step);
    return s;
}

FIB_DEV float4 add4(const float4 &a, const float4 &b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* The rows of a warp's lanes; several rows at once hide the latency of a shuffle. */
struct lane_reduce {
    int lanes;

    template <int COUNT> __device__ __forceinline__ void sum(float (&s)[COUNT])
    {
        warp_sum<COUNT>(s, lanes);
    }
};

/* One barrier for each sum: every warp publishes its part and adds up all parts itself. A second
 * and third sum use other slots, so that no barrier is needed before them. */
struct block_reduce {
    float (*slots)[32]; /* shared, 16-byte aligned, one array for each sum */
    int warps;
    int used;

    template <int COUNT> __device__ __forceinline__ void sum(float (&s)[COUNT])
    {
        const int warp = (int)(threadIdx.x / 32u), lane = (int)(threadIdx.x % 32u);
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            const float part = warp_sum_32(s[k]);
            if (lane == 0)
                slots[used + k][warp] = part;
            if (warp == 0 && lane >= warps)
                slots[used + k][lane] = 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            s[k] = sum_slots((const float4 *)slots[used + k]);
        used += COUNT;
    }

    __device__ __forceinline__ float sum_slots(const float4 *slot) const
    {
        float4 total = add4(slot[0], slot[1]);
        if (warps > 8)
            total = add4(total, add4(slot[2], slot[3]));
        if (warps > 16)
            total = add4(total, add4(add4(slot[4], slot[5]), add4(slot[6], slot[7])));
        return (total.x + total.y) + (total.z + total.w);
    }
};

enum { CLUSTER_SLOTS = 16 * 16 }; /* 16 blocks of 16 warps */

/* Shared memory of one block of a cluster: what the others send, and the barrier that counts it. */
struct cluster_shared {
    float slots[2][CLUSTER_SLOTS];
    uint64_t barriers[2];
};

/* Each warp sends its part to every block of the cluster; each block waits for the bytes of all
 * parts. A block cannot end before it has received everything, so nothing is sent to a dead one. */
struct cluster_reduce {
    cluster_shared *shared;
    int warps, blocks, rank;
    int used;

    /* First thing in the kernel; the cluster barrier is completed by the first sum. */
    __device__ __forceinline__ void begin()
    {
        if (threadIdx.x == 0) {
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const uint32_t barrier = shared_address(&shared->barriers[k]);
                mbarrier_init(barrier, 1);
                mbarrier_expect(barrier, (uint32_t)(warps * blocks) * 4u);
            }
            mbarrier_init_fence();
        }
        cluster_arrive();
    }

    __device__ __forceinline__ void sum(float (&s)[1])
    {
        const int warp = (int)(threadIdx.x / 32u), lane = (int)(threadIdx.x % 32u);
        const float part = warp_sum_32(s[0]);
        if (used == 0)
            cluster_wait();
        const uint32_t barrier = shared_address(&shared->barriers[used]);
        if (lane < blocks)
            store_remote(
                shared_address_of(shared_address(&shared->slots[used][rank * warps + warp]),
                                  (uint32_t)lane),
                part, shared_address_of(barrier, (uint32_t)lane));
        mbarrier_wait(barrier, 0);
        float total[2] = {0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < CLUSTER_SLOTS / 32; k++)
            total[k % 2] +=
                lane + 32 * k < warps * blocks ? shared->slots[used][lane + 32 * k] : 0.0f;
        s[0] = warp_sum_32(total[0] + total[1]);
        used++;
    }
};

} // namespace fib

#endif
