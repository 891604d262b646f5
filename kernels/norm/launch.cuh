/* From a plan to a kernel of one form of the norm, and its launch. Included by one file for each
 * group of forms; which (kind, vectors, unroll) are built stands in kernel_of() and, for the
 * choice, in norm_plan.c. */
#ifndef FIB_KERNELS_NORM_LAUNCH_CUH
#define FIB_KERNELS_NORM_LAUNCH_CUH

#include <cuda_runtime.h>

#include "kernels/norm.h"
#include "kernels/norm/rows.cuh"
#include "kernels/norm/stream.cuh"

namespace fib
{

/* The two lengths of a head, 128 and 256 elements of 16 bits, have a kernel of their own. */
template <class Op> static const void *one_vector_kernel(int lanes)
{
    switch (lanes) {
    case 16:
        return (const void *)norm_warp<Op, 1, 1, 4>;
    case 32:
        return (const void *)norm_warp<Op, 1, 1, 5>;
    default:
        return (const void *)norm_warp<Op, 1, 1, WARP_SHIFTS>;
    }
}

template <class Op> static const void *warp_kernel(const fib_norm_plan &plan)
{
    switch (16 * plan.vectors + plan.unroll) {
    case 0x11:
        return one_vector_kernel<Op>(plan.lanes);
    case 0x14:
        return (const void *)norm_warp<Op, 1, 4, WARP_SHIFTS>;
    case 0x22:
        return (const void *)norm_warp<Op, 2, 2, 5>;
    case 0x41:
        return (const void *)norm_warp<Op, 4, 1, 5>;
    case 0x21:
        return (const void *)norm_warp<Op, 2, 1, 5>;
    case 0x81:
        if constexpr (!Op::FLOATS)
            return (const void *)norm_warp<Op, 8, 1, 5>;
        return nullptr;
    default:
        return nullptr;
    }
}

template <class Op> static const void *block_kernel(int vectors, int unroll, bool early)
{
    switch (16 * vectors + unroll) {
    case 0x11:
        return (const void *)norm_block<Op, 1, 1, true>;
    case 0x21:
        return early ? (const void *)norm_block<Op, 2, 1, true>
                     : (const void *)norm_block<Op, 2, 1, false>;
    case 0x41:
        return early ? (const void *)norm_block<Op, 4, 1, true>
                     : (const void *)norm_block<Op, 4, 1, false>;
    case 0x42:
        return (const void *)norm_block<Op, 4, 2, false>;
    case 0x81:
        if constexpr (!Op::FLOATS)
            return (const void *)norm_block<Op, 8, 1, false>;
        return nullptr;
    default:
        return nullptr;
    }
}

template <class Op> static const void *cluster_kernel(int vectors)
{
    if (vectors == 1)
        return (const void *)norm_cluster<Op, 1, true>;
    if (vectors == 2)
        return (const void *)norm_cluster<Op, 2, true>;
    if (vectors == 4)
        return (const void *)norm_cluster<Op, 4, false>;
    if constexpr (!Op::FLOATS)
        if (vectors == 8)
            return (const void *)norm_cluster<Op, 8, false>;
    return nullptr;
}

template <class Op> static const void *stream_kernel(int vectors)
{
    if (vectors == 1)
        return (const void *)norm_stream<Op, 1>;
    if (vectors == 2)
        return (const void *)norm_stream<Op, 2>;
    if (vectors == 4)
        return (const void *)norm_stream<Op, 4>;
    return nullptr;
}

template <class Op> static const void *kernel_of(const fib_norm_plan &plan)
{
    switch (plan.kind) {
    case FIB_NORM_WARP:
        return warp_kernel<Op>(plan);
    case FIB_NORM_BLOCK:
        return block_kernel<Op>(plan.vectors, plan.unroll, plan.early);
    case FIB_NORM_CLUSTER:
        return cluster_kernel<Op>(plan.vectors);
    case FIB_NORM_STREAM:
        return stream_kernel<Op>(plan.vectors);
    case FIB_NORM_LOOP:
        return (const void *)norm_loop<Op, true>;
    case FIB_NORM_SCALAR:
        return (const void *)norm_loop<Op, false>;
    }
    return nullptr;
}

template <class Op>
static norm_dev device_args(const fib_norm_args &args, const fib_norm_plan &plan)
{
    norm_dev a = {};
    a.x = args.x;
    a.residual = args.residual;
    a.weight = args.weight;
    a.beta = args.beta;
    a.scale = args.scale;
    a.out = args.out;
    a.vecs = (uint32_t)(plan.kind == FIB_NORM_SCALAR ? args.cols : args.cols / Op::N);
    while ((1 << a.lane_shift) < plan.lanes)
        a.lane_shift++;
    a.inv_cols = (float)(1.0 / (double)args.cols);
    a.eps = args.eps;
    a.gemma = args.gemma;
    a.e5m2 = args.out_type == FIB_NORM_E5M2;
    a.dependent = args.dependent_launch;
    a.groups = (uint32_t)plan.groups;
    a.stages = (uint32_t)plan.stages;
    return a;
}

static inline int launch_grid(const void *kernel, norm_dev *a, unsigned grid, size_t shared_bytes,
                              const fib_norm_plan &plan, cudaStream_t stream)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid, 1, 1);
    config.blockDim = dim3((unsigned)plan.threads, 1, 1);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    if (plan.kind == FIB_NORM_CLUSTER) {
        cudaLaunchAttribute &cluster = attributes[config.numAttrs++];
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = (unsigned)plan.blocks;
        cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    }
    if (a->dependent) {
        cudaLaunchAttribute &pdl = attributes[config.numAttrs++];
        pdl.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        pdl.val.programmaticStreamSerializationAllowed = 1;
    }
    void *values[] = {a};
    return (int)cudaLaunchKernelExC(&config, kernel, values);
}

static inline void skip_rows(norm_dev *a, int64_t rows, int64_t in_bytes, int64_t out_bytes)
{
    a->x = (const char *)a->x + rows * in_bytes;
    if (a->residual)
        a->residual = (char *)a->residual + rows * in_bytes;
    a->out = (char *)a->out + rows * out_bytes;
}

/* Loads the kernel, so that the first launch does not; an error when the device cannot run it. */
static inline int load_kernel(const void *kernel, const fib_norm_plan &plan)
{
    cudaFuncAttributes attributes;
    if (!kernel)
        return (int)cudaErrorInvalidDeviceFunction;
    cudaError_t e = cudaFuncGetAttributes(&attributes, kernel);
    if (e == cudaSuccess && plan.kind == FIB_NORM_STREAM)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 FIB_NORM_RING_BYTES);
    if (e == cudaSuccess && plan.blocks > 8)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (e != cudaSuccess)
        (void)cudaGetLastError(); /* reported here, not by whoever asks next */
    return (int)e;
}

/* One block for each multiprocessor, fewer where there are not as many groups of rows. */
template <class Op>
static int launch_stream(const fib_norm_args &args, const fib_norm_plan &plan, cudaStream_t stream)
{
    const int64_t most_rows = 0x7fffffff;
    int device = 0, units = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return (int)e;
    norm_dev a = device_args<Op>(args, plan);
    const size_t shared_bytes =
        (size_t)plan.groups * (size_t)plan.stages * fib_norm_stage_bytes(&args);
    for (int64_t done = 0; done < args.rows; done += a.rows) {
        a.rows = (uint32_t)(args.rows - done < most_rows ? args.rows - done : most_rows);
        const unsigned needed = (a.rows - 1) / (unsigned)plan.groups + 1;
        const unsigned grid = needed < (unsigned)units ? needed : (unsigned)units;
        const int error = launch_grid(stream_kernel<Op>(plan.vectors), &a, grid, shared_bytes,
                                      plan, stream);
        if (error)
            return error;
        skip_rows(&a, a.rows, args.cols * vec_of<Op::IN>::bytes, args.cols * Op::OUT_BYTES);
    }
    return 0;
}

template <class Op>
static int launch(const fib_norm_args &args, const fib_norm_plan &plan, cudaStream_t stream)
{
    const int64_t block_rows =
        plan.kind == FIB_NORM_WARP ? (int64_t)(plan.threads / plan.lanes) * plan.unroll
                                   : plan.unroll;
    const int64_t most_blocks = 0x7fffffff / (plan.blocks > block_rows ? plan.blocks : block_rows);
    const void *const kernel = kernel_of<Op>(plan);
    norm_dev a = device_args<Op>(args, plan);
    for (int64_t done = 0; done < args.rows; done += a.rows) {
        const int64_t left = args.rows - done, all = (left - 1) / block_rows + 1;
        const int64_t blocks = all < most_blocks ? all : most_blocks;
        a.rows = (uint32_t)(left < blocks * block_rows ? left : blocks * block_rows);
        const int error = launch_grid(kernel, &a, (unsigned)(blocks * plan.blocks), 0, plan, stream);
        if (error)
            return error;
        skip_rows(&a, a.rows, args.cols * vec_of<Op::IN>::bytes, args.cols * Op::OUT_BYTES);
    }
    return 0;
}

/* `load_only`: everything that can fail or take long before the first launch, and no launch. */
template <class Op>
static int run(const fib_norm_args *args, const fib_norm_plan *plan, cudaStream_t stream,
               bool load_only)
{
    if (load_only)
        return load_kernel(kernel_of<Op>(*plan), *plan);
    return plan->kind == FIB_NORM_STREAM ? launch_stream<Op>(*args, *plan, stream)
                                         : launch<Op>(*args, *plan, stream);
}

/* Plain and added forms that share their types. */
template <elem IN, bool FP8>
static int run_rms(const fib_norm_args *args, const fib_norm_plan *plan, cudaStream_t stream,
                   bool load_only)
{
    return args->adds ? run<norm_op<IN, true, FP8, false>>(args, plan, stream, load_only)
                      : run<norm_op<IN, false, FP8, false>>(args, plan, stream, load_only);
}

} // namespace fib

#endif
