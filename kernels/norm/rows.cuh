/* The norm kernels: one template for the arithmetic of a thread's part of its rows, and the kernels
 * that map rows to lanes, blocks and clusters.
 *
 * Mathematics   see kernels/norm.h. Sums in float32; the variance from the registers that hold the
 *               row, of values shifted by the row's first element, so that a large mean cancels
 *               exactly.
 * Mapping       a thread keeps V vectors of 16 bytes of each of its U rows, `step` vectors apart,
 *               so that a warp touches 512 contiguous bytes with every load. All loads are issued
 *               before the first use. The plain RMS form keeps the packed input (it widens twice);
 *               forms that add or shift keep float32.
 * Weights       with few vectors (EARLY) loaded together with the row: one memory latency; else
 *               after the sum, when they hit the first-level cache and need no registers before.
 * Traffic       every element is read once and written once. LOOP and SCALAR read rows twice
 *               (layer norm: three times); a row that fits the cache still comes from memory once.
 * Bound         memory bandwidth; below about 200 rows of 4096 latency: launch, one load, one sum.
 * Limits        V * threads vectors in a row (CLUSTER: times the blocks); addresses of 16 bytes and
 *               whole vectors except for SCALAR.
 * Measured      docs/kernels/norm.md
 */
#ifndef FIB_KERNELS_NORM_ROWS_CUH
#define FIB_KERNELS_NORM_ROWS_CUH

#include <stdint.h>

#include "kernels/common/ptx_sm90.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vec.cuh"

namespace fib
{

/* Kernel argument: addresses of the first row of this launch. What the plain RMS form reads comes
 * first: 48 bytes share one line of the constant cache, and a second line costs the kernel another
 * miss. Rows of a launch are counted in 32 bits, so that an address is one wide multiplication. */
struct norm_dev {
    const void *x;
    const void *weight;
    void *out;
    uint32_t rows;
    uint32_t vecs; /* of a row; for SCALAR its elements */
    float inv_cols, eps;
    uint32_t zero;      /* 0, all 32 bits unknown to the compiler */
    uint8_t lane_shift; /* WARP: log2 of a row's lanes */
    bool gemma, e5m2, dependent;
    void *residual;
    const float *beta;
    const float *scale;
    uint32_t groups, stages; /* STREAM: of a block, and rows under way in each */
};

/* A form of the computation. */
template <elem IN_, bool ADD_, bool FP8_, bool LAYER_> struct norm_op {
    static constexpr elem IN = IN_;
    static constexpr bool ADD = ADD_, FP8 = FP8_, LAYER = LAYER_;
    static constexpr int N = vec_of<IN_>::count;
    static constexpr int OUT_BYTES = FP8_ ? 1 : vec_of<IN_>::bytes;
    static constexpr bool FLOATS = ADD_ || LAYER_; /* keeps float32 instead of the input */
};

/* N elements of a row between load and store. */
template <class Op, bool FLOATS = Op::FLOATS> struct kept {
    float h[Op::N];

    FIB_DEV_MEMBER void forget(uint32_t)
    {
    }
    FIB_DEV_MEMBER void get(float *to) const
    {
#pragma unroll
        for (int j = 0; j < Op::N; j++)
            to[j] = h[j];
    }
};

template <class Op> struct kept<Op, false> {
    uint4 packed;

    /* Widened values that are known to be needed after the sum too would be kept over the barrier,
     * in twice the registers. Nobody but us knows that `zero` is 0. */
    FIB_DEV_MEMBER void forget(uint32_t zero)
    {
        packed.x ^= zero;
        packed.y ^= zero;
        packed.z ^= zero;
        packed.w ^= zero;
    }
    FIB_DEV_MEMBER void get(float *to) const
    {
        widen<Op::IN>(packed, to);
    }
};

/* `vec` is signed or has 64 bits, so that a thread's vectors are one address plus constants: 32 bits
 * without a sign might wrap. */
template <class Op, bool LAYER = Op::LAYER> struct weights {
    uint4 packed;

    template <class Index>
    FIB_DEV_MEMBER void load(const norm_dev &a, Index vec, bool live)
    {
        packed = load_shared_by_rows((const uint4 *)a.weight + vec, live);
    }
    FIB_DEV_MEMBER void get(const norm_dev &a, float *gain, float *) const
    {
        const float offset = a.gemma ? 1.0f : 0.0f;
        widen<Op::IN>(packed, gain);
#pragma unroll
        for (int j = 0; j < Op::N; j++)
            gain[j] += offset;
    }
};

template <class Op> struct weights<Op, true> {
    uint4 gamma[2], beta[2];

    template <class Index>
    FIB_DEV_MEMBER void load(const norm_dev &a, Index vec, bool live)
    {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            gamma[k] = load_shared_by_rows((const uint4 *)a.weight + 2 * (int64_t)vec + k, live);
            beta[k] = load_shared_by_rows((const uint4 *)a.beta + 2 * (int64_t)vec + k, live);
        }
    }
    FIB_DEV_MEMBER void get(const norm_dev &, float *gain, float *shift) const
    {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            widen<F32>(gamma[k], gain + 4 * k);
            widen<F32>(beta[k], shift + 4 * k);
        }
    }
};

/* The scale of FP8 codes, loaded with the row. */
struct quantiser {
    float scale, inverse;
    bool exact; /* dividing by a power of two rounds nothing */
};

template <class Op> FIB_DEV quantiser load_quantiser(const norm_dev &a)
{
    quantiser q = {1.0f, 1.0f, true};
    if (Op::FP8) {
        q.scale = *(const volatile float *)a.scale; /* perhaps just written */
        q.inverse = 1.0f / q.scale;
        q.exact = (__float_as_uint(q.scale) & 0x7fffffu) == 0;
    }
    return q;
}

/* y / scale so close that rounding it to bf16 equals rounding the exact quotient. The product with
 * the inverse may miss by two places; one Newton step makes it the float32 nearest to the quotient.
 * Where that lies half-way between two bf16 numbers, the sign of the remainder decides. */
FIB_DEV float quotient_for_bf16(float y, const quantiser &q)
{
    const float guess = y * q.inverse;
    const float near = fmaf(fmaf(-guess, q.scale, y), q.inverse, guess);
    const float rest = fmaf(-near, q.scale, y);
    uint32_t bits = __float_as_uint(near);
    if ((bits & 0xffffu) == 0x8000u && rest != 0.0f)
        bits += (rest > 0.0f) == (near > 0.0f) ? 1u : 0xffffffffu;
    /* Far outside FP8 the exact value does not matter, and the step could overflow. */
    return fabsf(guess) > 0x1p-60f && fabsf(guess) < 0x1p60f ? __uint_as_float(bits) : guess;
}

/* The factor of RMS rows: inverse root times inverse scale. A product that overflows although both
 * are finite would turn the zeros of a row into NaN. */
FIB_DEV float row_factor(float inverse_root, float inverse_scale)
{
    const float f = inverse_root * inverse_scale;
    return isinf(f) && !isinf(inverse_root) ? 0x1.fffffep127f : f;
}

/* Layer norm rounds to bf16, then the quotient to bf16. A bf16 number divided by a power of two is a
 * bf16 number again, but for quotients below 2^-126, which FP8 does not tell from 0. */
template <class Op> FIB_DEV void quantise_layer(float *y, const quantiser &q)
{
#pragma unroll
    for (int j = 0; j < Op::N; j += 2)
        widen2<BF16>(narrow2<BF16>(y[j], y[j + 1]), y + j);
    if (q.exact) {
#pragma unroll
        for (int j = 0; j < Op::N; j++)
            y[j] *= q.inverse;
        return;
    }
#pragma unroll
    for (int j = 0; j < Op::N; j += 2)
        widen2<BF16>(narrow2<BF16>(quotient_for_bf16(y[j], q), quotient_for_bf16(y[j + 1], q)),
                     y + j);
}

/* `index` counts vectors from the first row. */
template <class Op> FIB_DEV void store_out(const norm_dev &a, uint64_t index, float *y, bool live)
{
    if (Op::FP8)
        store8((uint2 *)a.out + index, narrow_fp8(y, a.e5m2), live);
    else
        store16((uint4 *)a.out + index, narrow<Op::IN>(y), live);
}

/* Sum of N values or squares, as two chains. */
template <int N> FIB_DEV float sum_of(const float *h)
{
    float even = h[0], odd = h[1];
#pragma unroll
    for (int j = 2; j < N; j += 2) {
        even += h[j];
        odd += h[j + 1];
    }
    return even + odd;
}

template <int N> FIB_DEV void add_squares(const float *h, float &even, float &odd)
{
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        even = fmaf(h[j], h[j], even);
        odd = fmaf(h[j + 1], h[j + 1], odd);
    }
}

enum {
    STEP = 32
}; /* vectors between two of a thread: a warp's loads are 512 contiguous bytes, and
      all addresses of a row are one register pair plus constants */

/* What a thread has of U rows that lie `row_step` apart: vectors first + i * STEP. */
struct place {
    uint32_t row, row_step, first;
};

/* Weights can be fetched before the previous kernel has ended, rows cannot. */
template <class Op, int V> FIB_DEV void wait_for_rows(const norm_dev &a, uint32_t first)
{
    constexpr int vec_bytes = Op::LAYER ? 32 : 16;
#pragma unroll
    for (int i = 0; i < V; i++)
        if (first + i * STEP < a.vecs) {
            prefetch_l2((const char *)a.weight + (uint64_t)(first + i * STEP) * vec_bytes);
            if (Op::LAYER)
                prefetch_l2((const char *)a.beta + (uint64_t)(first + i * STEP) * vec_bytes);
        }
    launch_dependents();
    wait_for_previous();
}

/* Row sums of squares; the residual is written as soon as it is known. */
template <class Op, int V>
FIB_DEV float add_and_square(uint4 (&x)[V], uint4 (&r)[V], kept<Op> (&h)[V], uint4 *residual,
                             const bool (&live)[V])
{
    float even = 0.0f, odd = 0.0f;
#pragma unroll
    for (int i = 0; i < V; i++) {
        float value[Op::N];
        widen<Op::IN>(x[i], value);
        if constexpr (Op::ADD) {
            float other[Op::N];
            widen<Op::IN>(r[i], other);
#pragma unroll
            for (int j = 0; j < Op::N; j++)
                h[i].h[j] = value[j] += other[j];
            store16(residual + i * STEP, narrow<Op::IN>(value), live[i]);
        } else {
            h[i].packed = x[i];
        }
        add_squares<Op::N>(value, even, odd);
    }
    return even + odd;
}

/* The same for a layer norm, in two steps: x - pivot and its sum, then - mean and its squares. */
template <class Op, int V>
FIB_DEV float shift_and_sum(uint4 (&x)[V], kept<Op> (&h)[V], float pivot, const bool (&live)[V])
{
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < V; i++) {
        widen<Op::IN>(x[i], h[i].h);
#pragma unroll
        for (int j = 0; j < Op::N; j++)
            h[i].h[j] -= pivot;
        const float part = sum_of<Op::N>(h[i].h);
        total += live[i] ? part : 0.0f;
    }
    return total;
}

template <class Op, int V>
FIB_DEV float centre_and_square(kept<Op> (&h)[V], float mean, const bool (&live)[V])
{
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < V; i++) {
        float even = 0.0f, odd = 0.0f;
#pragma unroll
        for (int j = 0; j < Op::N; j++)
            h[i].h[j] -= mean;
        add_squares<Op::N>(h[i].h, even, odd);
        total += live[i] ? even + odd : 0.0f;
    }
    return total;
}

/* The values to be stored for one vector of a row. */
template <class Op>
FIB_DEV void normalise(const kept<Op> &h, const float *gain, const float *shift, float factor,
                       const quantiser &q, float *y)
{
    h.get(y);
#pragma unroll
    for (int j = 0; j < Op::N; j++)
        y[j] = Op::LAYER ? fmaf(y[j] * factor, gain[j], shift[j]) : y[j] * factor * gain[j];
    if (Op::LAYER)
        quantise_layer<Op>(y, q);
}

template <class Op> FIB_DEV float factor_of(const norm_dev &a, float total, const quantiser &q)
{
    const float inverse_root = rsqrtf(fmaf(total, a.inv_cols, a.eps));
    return Op::FP8 && !Op::LAYER ? row_factor(inverse_root, q.inverse) : inverse_root;
}

/* CHECK_ROWS: the last rows of the grid may not exist. */
template <class Op, int V, int U, bool CHECK_ROWS, bool EARLY, class Reduce>
FIB_DEV void norm_rows(const norm_dev &a, const place &p, Reduce &reduce)
{
    if (a.dependent)
        wait_for_rows<Op, V>(a, p.first);

    bool live[U][V];
    uint4 x[U][V], r[U][V];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t row = p.row + u * p.row_step;
        const uint64_t at = (uint64_t)row * a.vecs + p.first;
#pragma unroll
        for (int i = 0; i < V; i++) {
            live[u][i] = (!CHECK_ROWS || row < a.rows) && p.first + i * STEP < a.vecs;
            x[u][i] = load_once((const uint4 *)a.x + at + i * STEP, live[u][i]);
            if (Op::ADD)
                r[u][i] = load_once((const uint4 *)a.residual + at + i * STEP, live[u][i]);
        }
    }
    weights<Op> w[V];
    if (EARLY) {
#pragma unroll
        for (int i = 0; i < V; i++)
            w[i].load(a, (uint64_t)p.first + i * STEP, p.first + i * STEP < a.vecs);
    }
    const quantiser q = load_quantiser<Op>(a);

    kept<Op> h[U][V];
    float total[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t row = p.row + u * p.row_step;
        if constexpr (Op::LAYER) {
            const bool exists = !CHECK_ROWS || row < a.rows;
            const float pivot = exists ? load1<Op::IN>(a.x, (uint64_t)row * a.vecs * Op::N) : 0.0f;
            total[u] = shift_and_sum<Op, V>(x[u], h[u], pivot, live[u]);
        } else {
            uint4 *const residual = (uint4 *)a.residual + (uint64_t)row * a.vecs + p.first;
            total[u] = add_and_square<Op, V>(x[u], r[u], h[u], residual, live[u]);
        }
    }
    reduce.sum(total);
    if constexpr (Op::LAYER) {
#pragma unroll
        for (int u = 0; u < U; u++)
            total[u] = centre_and_square<Op, V>(h[u], total[u] * a.inv_cols, live[u]);
        reduce.sum(total);
    }
    float factor[U];
#pragma unroll
    for (int u = 0; u < U; u++)
        factor[u] = factor_of<Op>(a, total[u], q);
#pragma unroll
    for (int i = 0; i < V; i++) {
        float gain[Op::N], shift[Op::N];
        if (!EARLY)
            w[i].load(a, (int)p.first + i * STEP, p.first + i * STEP < a.vecs);
        w[i].get(a, gain, shift);
#pragma unroll
        for (int u = 0; u < U; u++) {
            h[u][i].forget(a.zero);
            const uint64_t row = p.row + u * p.row_step;
            float y[Op::N];
            normalise<Op>(h[u][i], gain, shift, factor[u], q, y);
            store_out<Op>(a, row * a.vecs + p.first + i * STEP, y, live[u][i]);
        }
    }
}

/* SHIFT is the log2 of a row's lanes, WARP_SHIFTS where only the launch knows it; V > 1 needs 32. */
enum { WARP_THREADS = 128, WARP_SHIFTS = 6 };
template <class Op, int V, int U, int SHIFT>
__global__ void __launch_bounds__(WARP_THREADS) norm_warp(const norm_dev a)
{
    const uint32_t shift = SHIFT < WARP_SHIFTS ? SHIFT : a.lane_shift, lanes = 1u << shift;
    lane_reduce reduce = {(int)lanes};
    const uint32_t groups = WARP_THREADS >> shift;
    const place p = {blockIdx.x * (groups * U) + (threadIdx.x >> shift), groups,
                     threadIdx.x & (lanes - 1)};
    norm_rows<Op, V, U, true, true>(a, p, reduce);
}

/* The first vector of this thread when a row is shared by whole warps. */
template <int V> FIB_DEV uint32_t first_of_warp(uint32_t warp)
{
    return warp * (STEP * V) + threadIdx.x % 32u;
}

/* Most threads of a block, and how many such blocks a multiprocessor must hold: this caps the
 * registers. EARLY serves few rows, where only the latency of one block counts. */
template <class Op, int V, int U, bool EARLY> struct block_bounds {
    static constexpr int threads = V == 8                        ? 256
                                   : V == 1 || (V == 2 && EARLY) ? (Op::LAYER ? 512 : 1024)
                                                                 : 512;
    static constexpr int blocks = EARLY || Op::LAYER || U > 1              ? 1
                                  : V == 8                                 ? 3
                                  : Op::ADD                                ? 2
                                  : V == 2 || (Op::IN == BF16 && !Op::FP8) ? 3
                                                                           : 2;
};

template <class Op, int V, int U, bool EARLY>
__global__ void __launch_bounds__(block_bounds<Op, V, U, EARLY>::threads,
                                  block_bounds<Op, V, U, EARLY>::blocks) norm_block(const norm_dev a)
{
    __shared__ __align__(16) float slots[(Op::LAYER ? 2 : 1) * U][32];
    block_reduce reduce = {slots, (int)(blockDim.x / 32u), 0};
    const place p = {blockIdx.x * U, 1, first_of_warp<V>(threadIdx.x / 32u)};
    norm_rows<Op, V, U, (U > 1), EARLY>(a, p, reduce);
}

template <class Op, int V, bool EARLY>
__global__ void __launch_bounds__(512) norm_cluster(const norm_dev a)
{
    __shared__ cluster_shared shared;
    const int blocks = (int)cluster_blocks(), rank = (int)cluster_rank();
    const int warps = (int)(blockDim.x / 32u);
    cluster_reduce reduce = {&shared, warps, blocks, rank, 0};
    reduce.begin();
    const place p = {cluster_index(), 0,
                     first_of_warp<V>((uint32_t)(rank * warps) + threadIdx.x / 32u)};
    norm_rows<Op, V, 1, false, EARLY>(a, p, reduce);
}

/* A piece of a row: a vector, or one element. */
template <class Op, bool VECTOR> struct piece {
    static constexpr int N = VECTOR ? Op::N : 1;

    FIB_DEV_MEMBER static void load(const void *base, uint64_t index, float *h)
    {
        if constexpr (VECTOR)
            widen<Op::IN>(load_once((const uint4 *)base + index, true), h);
        else
            h[0] = load1<Op::IN>(base, index);
    }
    FIB_DEV_MEMBER static void load_row(const norm_dev &a, uint64_t index, float *h)
    {
        load(a.x, index, h);
        if constexpr (Op::ADD) {
            float other[N];
            load(a.residual, index, other);
#pragma unroll
            for (int j = 0; j < N; j++)
                h[j] += other[j];
        }
    }
    FIB_DEV_MEMBER static void load_weights(const norm_dev &a, uint32_t at, float *gain, float *shift)
    {
        if constexpr (VECTOR) {
            weights<Op> w;
            w.load(a, (uint64_t)at, true);
            w.get(a, gain, shift);
        } else if constexpr (Op::LAYER) {
            gain[0] = ((const float *)a.weight)[at];
            shift[0] = a.beta[at];
        } else {
            gain[0] = load1<Op::IN>(a.weight, at) + (a.gemma ? 1.0f : 0.0f);
        }
    }
    FIB_DEV_MEMBER static void store(const norm_dev &a, uint64_t index, float *y, const quantiser &q)
    {
        if constexpr (VECTOR) {
            if (Op::LAYER)
                quantise_layer<Op>(y, q);
            store_out<Op>(a, index, y, true);
        } else {
            if constexpr (Op::LAYER) {
                float pair[8] = {y[0]};
                quantise_layer<Op>(pair, q);
                y[0] = pair[0];
            }
            if constexpr (Op::FP8)
                store1_fp8(a.out, index, y[0], a.e5m2);
            else
                store1<Op::IN>(a.out, index, y[0]);
        }
    }
    FIB_DEV_MEMBER static void store_residual(const norm_dev &a, uint64_t index, const float *h)
    {
        if constexpr (VECTOR)
            store16((uint4 *)a.residual + index, narrow<Op::IN>(h), true);
        else
            store1<Op::IN>(a.residual, index, h[0]);
    }
};

/* Rows that no register file holds. A thread writes only elements that it alone reads after the
 * sum, so rows may be replaced in place. */
template <class Op, bool VECTOR>
FIB_DEV void loop_rms(const norm_dev &a, uint64_t at, const quantiser &q, block_reduce &reduce)
{
    typedef piece<Op, VECTOR> P;
    constexpr int N = P::N;
    const uint32_t step = blockDim.x, first = threadIdx.x;
    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
    for (uint32_t k = first; k < a.vecs; k += step) {
        float h[N];
        P::load_row(a, at + k, h);
#pragma unroll
        for (int j = 0; j < N; j++)
            part[j % 4] = fmaf(h[j], h[j], part[j % 4]);
    }
    float total[1] = {(part[0] + part[1]) + (part[2] + part[3])};
    reduce.sum(total);
    const float inverse_root = rsqrtf(fmaf(total[0], a.inv_cols, a.eps));
    const float factor = Op::FP8 ? row_factor(inverse_root, q.inverse) : inverse_root;
#pragma unroll 2
    for (uint32_t k = first; k < a.vecs; k += step) {
        float h[N], gain[N], shift[N];
        P::load_row(a, at + k, h);
        P::load_weights(a, k, gain, shift);
        if constexpr (Op::ADD)
            P::store_residual(a, at + k, h);
#pragma unroll
        for (int j = 0; j < N; j++)
            h[j] = h[j] * factor * gain[j];
        P::store(a, at + k, h, q);
    }
}

template <class Op, bool VECTOR>
FIB_DEV void loop_layer(const norm_dev &a, uint64_t at, const quantiser &q, block_reduce &reduce)
{
    typedef piece<Op, VECTOR> P;
    constexpr int N = P::N;
    const uint32_t step = blockDim.x, first = threadIdx.x;
    const float pivot = load1<Op::IN>(a.x, at * N);
    float total[1] = {0.0f};
#pragma unroll 4
    for (uint32_t k = first; k < a.vecs; k += step) {
        float h[N];
        P::load_row(a, at + k, h);
#pragma unroll
        for (int j = 0; j < N; j++)
            total[0] += h[j] - pivot;
    }
    reduce.sum(total);
    const float mean = total[0] * a.inv_cols;
    total[0] = 0.0f;
#pragma unroll 4
    for (uint32_t k = first; k < a.vecs; k += step) {
        float h[N];
        P::load_row(a, at + k, h);
#pragma unroll
        for (int j = 0; j < N; j++) {
            h[j] = (h[j] - pivot) - mean;
            total[0] = fmaf(h[j], h[j], total[0]);
        }
    }
    reduce.sum(total);
    const float inverse_root = rsqrtf(fmaf(total[0], a.inv_cols, a.eps));
    for (uint32_t k = first; k < a.vecs; k += step) {
        float h[N], gain[N], shift[N];
        P::load_row(a, at + k, h);
        P::load_weights(a, k, gain, shift);
#pragma unroll
        for (int j = 0; j < N; j++)
            h[j] = fmaf(((h[j] - pivot) - mean) * inverse_root, gain[j], shift[j]);
        P::store(a, at + k, h, q);
    }
}

template <class Op, bool VECTOR> __global__ void __launch_bounds__(1024) norm_loop(const norm_dev a)
{
    __shared__ __align__(16) float slots[Op::LAYER ? 2 : 1][32];
    block_reduce reduce = {slots, (int)(blockDim.x / 32u), 0};
    if (a.dependent) {
        launch_dependents();
        wait_for_previous();
    }
    const uint64_t at = (uint64_t)blockIdx.x * a.vecs;
    const quantiser q = load_quantiser<Op>(a);
    if constexpr (Op::LAYER)
        loop_layer<Op, VECTOR>(a, at, q, reduce);
    else
        loop_rms<Op, VECTOR>(a, at, q, reduce);
}

} // namespace fib

#endif
