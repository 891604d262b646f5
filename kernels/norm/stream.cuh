/* Norm of many rows: one block a multiprocessor stays for the whole launch, and the copy engine
 * moves rows through a ring in its shared memory.
 *
 * Mathematics   as in rows.cuh, which this shares.
 * Mapping       the threads of a block form `groups`, each with `stages` rows of shared memory of
 *               its own and every (groups x blocks)-th row. A thread has V vectors of the row, and
 *               keeps their weights in registers from the first row to the last: weights are read
 *               once a multiprocessor instead of once a row. Results replace the row where it lies
 *               in shared memory, and the copy engine takes them from there.
 * Why           loads do not wait for registers or for a block to end: always about 150 KiB on
 *               their way. The layer norm, whose weights are four times as long as its rows, no
 *               longer reads them through the first-level cache.
 * Traffic       every element read once and written once.
 * Bound         memory bandwidth; of layer norm the arithmetic is near it.
 * Limits        V * group threads vectors in a row, two rows of shared memory a group; addresses
 *               and rows of 16 bytes.
 * Measured      docs/kernels/norm.md
 */
#ifndef FIB_KERNELS_NORM_STREAM_CUH
#define FIB_KERNELS_NORM_STREAM_CUH

#include "kernels/norm/rows.cuh"

namespace fib
{

enum { STREAM_GROUPS = 4, STREAM_STAGES = 16 };

/* Sums over the warps of a group, one barrier each. The slots of a sum may be used again after the
 * next barrier of the group. */
struct group_reduce {
    float (*slots)[32];
    uint32_t id, threads;
    int used;

    template <int COUNT> __device__ __forceinline__ void sum(float (&s)[COUNT])
    {
        static_assert(COUNT == 1, "one row at a time");
        const uint32_t warp = threadIdx.x % threads / 32u, lane = threadIdx.x % 32u;
        const float part = warp_sum_32(s[0]);
        if (lane == 0)
            slots[used][warp] = part;
        group_barrier(id, threads);
        float total = lane < threads / 32u ? slots[used][lane] : 0.0f;
        s[0] = warp_sum_32(total);
        used++;
    }
};

/* What one group has: its rows first, first + step, ...; its ring. */
struct stream_place {
    uint32_t first_row, row_step, count; /* rows */
    uint32_t ring, barriers;             /* shared addresses of its first stage and barrier */
    uint32_t row_bytes, stage_bytes;
};

FIB_DEV uint4 load_stage(uint32_t address, bool live)
{
    uint4 v = make_uint4(0, 0, 0, 0);
    if (live)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(address));
    return v;
}

FIB_DEV void store_stage(uint32_t address, uint4 v, bool live)
{
    if (live)
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y),
                     "r"(v.z), "r"(v.w)
                     : "memory");
}

FIB_DEV void store_stage8(uint32_t address, uint2 v, bool live)
{
    if (live)
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(v.x), "r"(v.y)
                     : "memory");
}

/* Asks for row number k of the group; the stage must be free. */
template <class Op>
FIB_DEV void fetch_row(const norm_dev &a, const stream_place &p, uint32_t k, uint32_t stage)
{
    const uint64_t at = (uint64_t)(p.first_row + k * p.row_step) * p.row_bytes;
    const uint32_t barrier = p.barriers + 8 * stage, to = p.ring + stage * p.stage_bytes;
    mbarrier_expect(barrier, p.row_bytes * (Op::ADD ? 2 : 1));
    bulk_load(to, (const char *)a.x + at, p.row_bytes, barrier);
    if (Op::ADD)
        bulk_load(to + p.row_bytes, (const char *)a.residual + at, p.row_bytes, barrier);
}

/* Hands row number k, finished in its stage, to the copy engine. */
template <class Op>
FIB_DEV void send_row(const norm_dev &a, const stream_place &p, uint32_t k, uint32_t stage)
{
    const uint64_t row = p.first_row + k * p.row_step;
    const uint32_t from = p.ring + stage * p.stage_bytes;
    const uint32_t out_bytes = Op::FP8 ? a.vecs * Op::N : p.row_bytes;
    bulk_store((char *)a.out + row * out_bytes, from, out_bytes);
    if (Op::ADD)
        bulk_store((char *)a.residual + row * p.row_bytes, from + p.row_bytes, p.row_bytes);
    bulk_commit();
}

/* A row in shared memory becomes its norm, in place. */
template <class Op, int V>
FIB_DEV void norm_stage(const norm_dev &a, const stream_place &p, uint32_t stage, uint32_t first,
                        const weights<Op> (&w)[V], const quantiser &q, group_reduce &reduce)
{
    const uint32_t base = p.ring + stage * p.stage_bytes;
    bool live[V];
    uint4 x[V];
    kept<Op> h[V];
    float total[1];
#pragma unroll
    for (int i = 0; i < V; i++) {
        live[i] = first + i * STEP < a.vecs;
        x[i] = load_stage(base + 16 * (first + i * STEP), live[i]);
    }
    reduce.used = 0;
    if constexpr (Op::LAYER) {
        float pivot;
        asm volatile("{\n\t.reg .u16 h;\n\t.reg .u32 w;\n\tld.shared.u16 h, [%1];\n\t"
                     "cvt.u32.u16 w, h;\n\tshl.b32 w, w, 16;\n\tmov.b32 %0, w;\n\t}"
                     : "=f"(pivot)
                     : "r"(base));
        total[0] = shift_and_sum<Op, V>(x, h, pivot, live);
        reduce.sum(total);
        total[0] = centre_and_square<Op, V>(h, total[0] * a.inv_cols, live);
    } else {
        float even = 0.0f, odd = 0.0f;
#pragma unroll
        for (int i = 0; i < V; i++) {
            float value[Op::N];
            widen<Op::IN>(x[i], value);
            if constexpr (Op::ADD) {
                const uint32_t at = base + p.row_bytes + 16 * (first + i * STEP);
                float other[Op::N];
                widen<Op::IN>(load_stage(at, live[i]), other);
#pragma unroll
                for (int j = 0; j < Op::N; j++)
                    h[i].h[j] = value[j] += other[j];
                store_stage(at, narrow<Op::IN>(value), live[i]);
            } else {
                h[i].packed = x[i];
            }
            add_squares<Op::N>(value, even, odd);
        }
        total[0] = even + odd;
    }
    reduce.sum(total);
    const float factor = factor_of<Op>(a, total[0], q);
#pragma unroll
    for (int i = 0; i < V; i++) {
        float gain[Op::N], shift[Op::N], y[Op::N];
        w[i].get(a, gain, shift);
        h[i].forget(a.zero);
        normalise<Op>(h[i], gain, shift, factor, q, y);
        if constexpr (Op::FP8)
            store_stage8(base + 8 * (first + i * STEP), narrow_fp8(y, a.e5m2), live[i]);
        else
            store_stage(base + 16 * (first + i * STEP), narrow<Op::IN>(y), live[i]);
    }
}

template <class Op, int V>
__global__ void __launch_bounds__(V == 1 || (V == 2 && !Op::LAYER) ? 1024 : 512)
    norm_stream(const norm_dev a)
{
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ __align__(16) float slots[STREAM_GROUPS][2][32];
    __shared__ __align__(8) uint64_t barriers[STREAM_GROUPS * STREAM_STAGES];
    const uint32_t threads = blockDim.x / a.groups, group = threadIdx.x / threads;
    const uint32_t lane = threadIdx.x % threads, first = lane / 32u * (STEP * V) + lane % 32u;
    const uint32_t row_bytes = 16 * a.vecs, stages = a.stages;
    const uint32_t stage_bytes = (row_bytes * (Op::ADD ? 2 : 1) + 127u) & ~127u;
    const uint32_t first_row = blockIdx.x + gridDim.x * group, row_step = gridDim.x * a.groups;
    const stream_place p = {first_row,
                            row_step,
                            first_row < a.rows ? (a.rows - 1 - first_row) / row_step + 1 : 0,
                            shared_address(ring) + group * stages * stage_bytes,
                            shared_address(barriers + group * STREAM_STAGES),
                            row_bytes,
                            stage_bytes};
    group_reduce reduce = {slots[group], 1 + group, threads, 0};
    const bool leads = lane == 0;

    if (a.dependent) {
        launch_dependents();
        wait_for_previous();
    }
    if (leads) {
        for (uint32_t s = 0; s < stages; s++)
            mbarrier_init(p.barriers + 8 * s, 1);
        mbarrier_init_fence();
        for (uint32_t s = 0; s < stages && s < p.count; s++)
            fetch_row<Op>(a, p, s, s);
    }
    weights<Op> w[V];
#pragma unroll
    for (int i = 0; i < V; i++)
        w[i].load(a, (uint64_t)first + i * STEP, first + i * STEP < a.vecs);
    const quantiser q = load_quantiser<Op>(a);
    group_barrier(1 + group, threads);

    uint32_t stage = 0, parity = 0, last = 0;
    for (uint32_t k = 0; k < p.count; k++) {
        mbarrier_wait(p.barriers + 8 * stage, parity);
        norm_stage<Op, V>(a, p, stage, first, w, q, reduce);
        publish_to_copies();
        group_barrier(1 + group, threads);
        if (leads) {
            send_row<Op>(a, p, k, stage);
            if (k > 0 && k - 1 + stages < p.count) {
                bulk_wait_read<1>();
                fetch_row<Op>(a, p, k - 1 + stages, last);
            }
        }
        last = stage;
        if (++stage == stages) {
            stage = 0;
            parity ^= 1u;
        }
    }
    if (leads)
        bulk_wait_read<0>();
}

} // namespace fib

#endif
