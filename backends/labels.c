/* Backend labels that a command line or a test list may name, and what each stands for. A label
 * without an adapter is legal: its rows say that nothing runs under it in this build. */
#include "backends/backends.h"

#define LABEL(name_, meaning_)                                                                     \
    {                                                                                              \
        .name = (name_), .meaning = (meaning_)                                                     \
    }

const struct fib_label fib_labels[] = {
    /* ours */
    LABEL("cpu", "float32 on the host, threaded, written apart from the oracle"),
    LABEL("openblas", "CPU GEMM through CBLAS; narrow inputs are widened inside the call"),
    LABEL("cuda", "our own CUDA kernel, the best variant for the device"),
    LABEL("fa2", "our own attention in FlashAttention-2 style"),
    LABEL("fa2_tc", "our own decode on tensor cores"),
    LABEL("fa3", "our own attention in Hopper style: TMA, wgmma, specialised warps"),
    LABEL("auto", "the best that this build can run; the row says which"),
    /* vendor and communication libraries */
    LABEL("cublas", "NVIDIA cuBLAS"),
    LABEL("cublaslt", "NVIDIA cuBLASLt"),
    LABEL("cudnn", "NVIDIA cuDNN; in the reference for attention: through its wrapper"),
    LABEL("cudnn-native", "NVIDIA cuDNN called directly"),
    LABEL("nccl", "NVIDIA NCCL collectives"),
    LABEL("mpi", "the MPI library, on host memory"),
    LABEL("mnnvl", "all-reduce over NVLink multicast"),
    /* FlashInfer's own compiled modules */
    LABEL("flashinfer", "FlashInfer's compiled module, its default kernel"),
    LABEL("flashinfer-fa2", "FlashInfer's FlashAttention-2 kernels"),
    LABEL("flashinfer-fa3", "FlashInfer's FlashAttention-3 kernels (Hopper)"),
    LABEL("flashinfer-decomp", "FlashInfer's KDA prefill as several kernels"),
    LABEL("flashinfer-fused", "FlashInfer's KDA prefill as one kernel"),
    /* kernels that come as modules */
    LABEL("triton", "ahead-of-time Triton kernels"),
    LABEL("cute-dsl", "ahead-of-time CuTe-DSL kernels"),
    LABEL("cutlass", "CUTLASS kernels"),
    LABEL("cutile", "cuTile kernels"),
    LABEL("cudsl", "CuTe-DSL block-sparse attention"),
    LABEL("prims-ts", "task-scheduled Blackwell attention"),
    LABEL("trtllm", "TensorRT-LLM kernels"),
    LABEL("trtllm-gen", "TensorRT-LLM generated Blackwell kernels through a wrapper"),
    LABEL("trtllm-native", "TensorRT-LLM attention called directly"),
    LABEL("trtllm-fmha-v2", "TensorRT-LLM FMHA v2 (Hopper, SM120)"),
    LABEL("trtllm_low_latency", "TensorRT-LLM small-M GEMM"),
    LABEL("tgv", "small-M GEMM for Blackwell"),
    LABEL("tinygemm", "small-M bf16 GEMM for Hopper and later"),
    LABEL("b12x", "kernels for SM120 and SM121"),
    LABEL("radix", "top-k by multi-block radix select"),
    LABEL("radix_cutlass", "top-k by radix select with a length for each row"),
    LABEL("gvr", "top-k that guesses from the previous step, verifies and refines"),
    LABEL("cutekda", "CuTe implementation of Kimi delta attention"),
    LABEL("flash-kda", "FlashKDA implementation of Kimi delta attention"),
    LABEL("fla", "flash-linear-attention package"),
    /* old and alternative spellings */
    {.name = "trtllm-gen-native",
     .meaning = "old name of trtllm-native",
     .alias_of = "trtllm-native",
     .alias_warns = true},
    {.name = "prims_ts", .meaning = "other spelling of prims-ts", .alias_of = "prims-ts"},
};
const size_t fib_label_count = sizeof(fib_labels) / sizeof(fib_labels[0]);
