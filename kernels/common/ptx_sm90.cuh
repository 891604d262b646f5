/* Hopper instructions without an intrinsic: dependent launch, clusters, barriers in shared memory
 * with remote stores that count bytes. */
#ifndef FIB_KERNELS_COMMON_PTX_SM90_CUH
#define FIB_KERNELS_COMMON_PTX_SM90_CUH

#include <stdint.h>

#include "kernels/common/vec.cuh"

/* Elsewhere these compile, so that one binary can hold several architectures; what would compute
 * nonsense stops the kernel instead. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define FIB_SM90(...) __trap()
#define FIB_SM90_HINT(...) (void)0
#else
#define FIB_SM90(...) asm volatile(__VA_ARGS__)
#define FIB_SM90_HINT(...) asm volatile(__VA_ARGS__)
#endif

namespace fib
{

/* Lets the next kernel of the stream start its prologue; without effect on an ordinary launch. */
FIB_DEV void launch_dependents()
{
    FIB_SM90_HINT("griddepcontrol.launch_dependents;");
}

/* Until the previous kernel of the stream has ended and its writes are visible. */
FIB_DEV void wait_for_previous()
{
    FIB_SM90_HINT("griddepcontrol.wait;" ::: "memory");
}

FIB_DEV void prefetch_l2(const void *address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

FIB_DEV uint32_t cluster_rank()
{
    uint32_t rank = 0;
    FIB_SM90("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Number of this block's cluster in the grid. */
FIB_DEV uint32_t cluster_index()
{
    uint32_t index = 0;
    FIB_SM90("mov.u32 %0, %%clusterid.x;" : "=r"(index));
    return index;
}

FIB_DEV uint32_t cluster_blocks()
{
    uint32_t count = 1;
    FIB_SM90("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}

/* Arrive and wait are apart, so that loads can be issued between them. Relaxed: it publishes
 * nothing but barriers that mbarrier_init_fence() covers, and a release would flush to the whole
 * device. */
FIB_DEV void cluster_arrive()
{
    FIB_SM90("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

FIB_DEV void cluster_wait()
{
    FIB_SM90("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

FIB_DEV uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* The same variable in the shared memory of block `rank` of the cluster. */
FIB_DEV uint32_t shared_address_of(uint32_t local, uint32_t rank)
{
    uint32_t remote = 0;
    FIB_SM90("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    return remote;
}

FIB_DEV void mbarrier_init(uint32_t barrier, uint32_t arrivals)
{
    FIB_SM90("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes initialised barriers visible to the cluster; followed by a cluster barrier. */
FIB_DEV void mbarrier_init_fence()
{
    FIB_SM90("fence.mbarrier_init.release.cluster;" ::: "memory");
}

FIB_DEV void mbarrier_expect(uint32_t barrier, uint32_t bytes)
{
    FIB_SM90("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
             : "memory");
}

FIB_DEV void mbarrier_wait(uint32_t barrier, uint32_t parity)
{
    FIB_SM90("{\n\t.reg .pred done;\n\t"
             "WAIT:\n\t"
             "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
             "@!done bra WAIT;\n\t}" ::"r"(barrier),
             "r"(parity)
             : "memory");
}

/* One copy engine request from device to shared memory; its bytes are counted on the barrier. Both
 * addresses and `bytes` are multiples of 16. */
FIB_DEV void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    FIB_SM90("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
             "[%3];" ::"r"(to),
             "l"(from), "r"(bytes), "r"(barrier)
             : "memory");
}

/* The way back; belongs to the thread's next group of stores. What other threads wrote to `from`
 * must have passed publish_to_copies() and a barrier. */
FIB_DEV void bulk_store(void *to, uint32_t from, uint32_t bytes)
{
    FIB_SM90("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
             "r"(bytes)
             : "memory");
}

FIB_DEV void bulk_commit()
{
    FIB_SM90("cp.async.bulk.commit_group;" ::: "memory");
}

/* Until all but the last OPEN groups of this thread's stores have been read out of shared memory. */
template <int OPEN> FIB_DEV void bulk_wait_read()
{
    FIB_SM90("cp.async.bulk.wait_group.read %0;" ::"n"(OPEN) : "memory");
}

/* Makes this thread's writes to shared memory visible to the copy engine. */
FIB_DEV void publish_to_copies()
{
    FIB_SM90("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Barrier number `id` (0 is __syncthreads) of `threads` threads, whole warps. */
FIB_DEV void group_barrier(uint32_t id, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Stores into another block and counts the 4 bytes on that block's barrier. */
FIB_DEV void store_remote(uint32_t address, float value, uint32_t barrier)
{
    FIB_SM90("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                 address),
             "r"(__float_as_uint(value)), "r"(barrier)
             : "memory");
}

} // namespace fib

#endif
