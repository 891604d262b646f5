/* Mixture-of-experts layers on one device: flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

#include <inttypes.h>
#include <string.h>

#define TRT_FP4 "trtllm_fp4_block_scale_moe"
#define TRT_FP8 "trtllm_fp8_block_scale_moe"
#define TRT_TENSOR "trtllm_fp8_per_tensor_scale_moe"
#define CUTLASS "cutlass_fused_moe"
#define CUTE "cute_dsl_fp4_block_scale_moe"
#define B12X "b12x_fused_moe"
#define UNIFIED "unified_nvfp4_moe"
#define BGMV "bgmv_moe"
#define ROUTED TRT_FP4 " " TRT_FP8 " " TRT_TENSOR
#define ALL_BUT_BGMV ROUTED " " CUTLASS " " CUTE " " B12X " " UNIFIED

#define ACTIVATIONS                                                                                \
    "Gelu Relu Silu Swiglu Geglu SwigluBias Relu2 SwigluStep GegluTanh Identity Situ"

static const struct fib_option options[] = {
    FIB_ROW_I64("num_tokens", 1, FIB_LIMIT_TOKENS, .required = true, .help = "tokens"),
    FIB_ROW_I64("hidden_size", 1, FIB_LIMIT_WIDTH, .required = true, .help = "width of a token"),
    FIB_ROW_I64("intermediate_size", 1, FIB_LIMIT_WIDTH, .uses = ALL_BUT_BGMV,
                .help = "inner width of an expert"),
    FIB_ROW_I64("num_experts", 1, FIB_LIMIT_HEADS, .required = true, .help = "experts"),
    FIB_ROW_I64("top_k", 1, FIB_LIMIT_HEADS, .required = true, .help = "experts of a token"),
    FIB_ROW_CHOICE("input_dtype", FIB_ANY_DTYPE, .fallback = "bfloat16",
                   .help = "dtype of the tokens before quantisation"),
    FIB_ROW_CHOICE("weight_dtype", FIB_ANY_DTYPE, .fallback = "bfloat16", .uses = ALL_BUT_BGMV,
                   .help = "dtype of the weights before quantisation"),
    FIB_ROW_CHOICE("routing_method", "renormalize deepseek_v3 llama4 renormalize_naive topk",
                   .fallback = "deepseek_v3", .uses = ROUTED, .help = "how experts are chosen"),
    FIB_ROW_I64("n_group", -1, FIB_LIMIT_HEADS, .uses = ROUTED,
                .help = "expert groups of deepseek_v3; 0 or less: none"),
    FIB_ROW_I64("topk_group", -1, FIB_LIMIT_HEADS, .uses = ROUTED,
                .help = "groups a token may use; 0 or less: none"),
    FIB_ROW_F64("routed_scaling_factor", 0, 0, .fallback = "2.5", .uses = ROUTED,
                .help = "factor on the weights of deepseek_v3"),
    FIB_ROW_SWITCH("use_routing_bias", .uses = ROUTED, .help = "add a bias to the expert scores"),
    FIB_ROW_SWITCH("use_routing_scales_on_input", .uses = TRT_TENSOR,
                   .help = "apply the weights before the first layer instead of at the end"),
    FIB_ROW_I64("local_expert_offset", 0, FIB_LIMIT_HEADS, .fallback = "0",
                .uses = ROUTED " " CUTE " " UNIFIED, .help = "first expert on this device"),
    FIB_ROW_I64("local_num_experts", 0, FIB_LIMIT_HEADS,
                .uses = ROUTED " " CUTE " " B12X " " UNIFIED,
                .help = "experts on this device; unset or 0: all"),
    FIB_ROW_SWITCH("use_shuffled_weight", .uses = TRT_FP8, .help = "weights in the kernel's order"),
    FIB_ROW_I64("weight_layout", 0, 2, .fallback = "0", .uses = TRT_FP8,
                .help = "0 rows x K, 1 K x rows, 2 blocks of 128 along K"),
    FIB_ROW_CHOICE("activation_type", ACTIVATIONS, .fallback = "Swiglu", .fold_case = true,
                   .uses = TRT_FP4 " " TRT_TENSOR " " CUTLASS " " CUTE " " B12X,
                   .help = "function between the two layers"),
    FIB_ROW_CHOICE("fp4_mode", "nvfp4 mxfp4_mxfp8 mxfp4_bf16", .fallback = "nvfp4", .uses = TRT_FP4,
                   .help = "formats of weights and tokens"),
    FIB_ROW_SWITCH("autotune", .uses = TRT_FP4 " " CUTLASS " " CUTE " " B12X,
                   .help = "tune before timing"),
    FIB_ROW_SWITCH("use_functional_api", .uses = CUTE " " B12X,
                   .help = "time the stateless entry point"),
    FIB_ROW_CHOICE("b12x_quant_mode", "nvfp4 w4a16", .fallback = "nvfp4", .uses = B12X,
                   .help = "formats of the b12x kernel"),
    FIB_ROW_CHOICE("cutlass_variant", "base fp8 nvfp4", .fallback = "base", .uses = CUTLASS,
                   .help = "weight format of the CUTLASS kernel"),
    FIB_ROW_SWITCH("quantized_input", .uses = CUTLASS, .help = "nvfp4: tokens arrive quantised"),
    FIB_ROW_I64("tp_size", 1, FIB_LIMIT_RANKS, .fallback = "1", .uses = CUTLASS,
                .help = "tensor-parallel ranks; one is run"),
    FIB_ROW_I64("tp_rank", 0, FIB_LIMIT_RANKS, .fallback = "0", .uses = CUTLASS,
                .help = "which of them"),
    FIB_ROW_I64("ep_size", 1, FIB_LIMIT_RANKS, .fallback = "1", .uses = CUTLASS,
                .help = "expert-parallel ranks; one is run"),
    FIB_ROW_I64("ep_rank", 0, FIB_LIMIT_RANKS, .fallback = "0", .uses = CUTLASS,
                .help = "which of them"),
    FIB_ROW_I64("rank", 1, FIB_LIMIT_HEADS, .fallback = "32", .uses = BGMV,
                .help = "rank of the adapters"),
    FIB_ROW_I64("num_loras", 1, FIB_LIMIT_HEADS, .fallback = "8", .uses = BGMV, .help = "adapters"),
    FIB_ROW_I64("num_slices", 1, FIB_LIMIT_HEADS, .fallback = "1", .uses = BGMV,
                .help = "stacked projections"),
    FIB_ROWS_END,
};

static const struct fib_option_override needs_inner[] = {
    {.name = "intermediate_size", .required = true},
    {.name = NULL},
};
static const struct fib_option_override cute_overrides[] = {
    {.name = "intermediate_size", .required = true},
    {.name = "activation_type", .choices = "Swiglu"},
    {.name = NULL},
};
static const struct fib_option_override b12x_overrides[] = {
    {.name = "intermediate_size", .required = true},
    {.name = "activation_type", .choices = "Swiglu Geglu GegluTanh Relu2"},
    {.name = NULL},
};

static enum fib_status check_experts(const struct fib_case *kase, struct fib_error *err)
{
    return fib_rows_at_most(kase, "top_k", "num_experts", err);
}

/* The slice of experts on this device lies inside the experts there are. */
static enum fib_status check_slice(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t experts = fib_case_i64(kase, "num_experts");
    const int64_t local = fib_case_i64(kase, "local_num_experts");
    const int64_t offset = fib_case_i64(kase, "local_expert_offset");
    const int64_t count = local > 0 ? local : experts - offset;
    if (offset >= experts)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--local_expert_offset %" PRId64 ": must be below --num_experts (%" PRId64
                        ")",
                        offset, experts);
    if (offset + count > experts)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--local_num_experts %" PRId64 ": with --local_expert_offset %" PRId64
                        " must end at --num_experts (%" PRId64 ") or before",
                        count, offset, experts);
    return check_experts(kase, err);
}

static enum fib_status check_deepseek(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t groups = fib_case_i64(kase, "n_group");
    const int64_t chosen = fib_case_i64(kase, "topk_group");
    if (groups < 1 || chosen < 1)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--routing_method deepseek_v3: needs --n_group and --topk_group, both 1 or "
                        "more");
    enum fib_status st = fib_rows_multiple_of_flag(kase, "num_experts", "n_group", err);
    if (st == FIB_OK)
        st = fib_rows_at_most(kase, "topk_group", "n_group", err);
    return st;
}

static enum fib_status check_routed(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = check_slice(kase, err);
    if (st == FIB_OK && fib_case_is(kase, "routing_method", "deepseek_v3"))
        st = check_deepseek(kase, err);
    if (st == FIB_OK && fib_case_is(kase, "routing_method", "llama4"))
        st = fib_rows_exactly(kase, "top_k", 1, "llama4 takes the best expert alone", err);
    return st;
}

static enum fib_status check_blocks(const struct fib_case *kase, int64_t block, const char *why,
                                    struct fib_error *err)
{
    enum fib_status st = fib_rows_multiple_of(kase, "hidden_size", block, why, err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "intermediate_size", block, why, err);
    return st;
}

static enum fib_status check_trt_fp4(const struct fib_case *kase, struct fib_error *err)
{
    const bool nvfp4 = fib_case_is(kase, "fp4_mode", "nvfp4");
    const enum fib_status st =
        check_blocks(kase, nvfp4 ? 16 : 32, nvfp4 ? "blocks of nvfp4" : "blocks of mxfp4", err);
    return st == FIB_OK ? check_routed(kase, err) : st;
}

static enum fib_status check_trt_fp8(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = check_blocks(kase, 128, "blocks of the scales", err);
    return st == FIB_OK ? check_routed(kase, err) : st;
}

static enum fib_status check_nvfp4(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = check_blocks(kase, 16, "blocks of nvfp4", err);
    return st == FIB_OK ? check_slice(kase, err) : st;
}

static enum fib_status check_b12x(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t local = fib_case_i64(kase, "local_num_experts");
    const int64_t experts = fib_case_i64(kase, "num_experts");
    if (local > 0 && local != experts)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--local_num_experts %" PRId64 ": must be --num_experts (%" PRId64
                        ") for " B12X,
                        local, experts);
    const enum fib_status st = check_blocks(kase, 16, "blocks of nvfp4", err);
    return st == FIB_OK ? check_experts(kase, err) : st;
}

static enum fib_status check_below(const struct fib_case *kase, const char *rank, const char *size,
                                   struct fib_error *err)
{
    const int64_t r = fib_case_i64(kase, rank), n = fib_case_i64(kase, size);
    if (r < n)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be below --%s (%" PRId64 ")", rank,
                    r, size, n);
}

static enum fib_status check_cutlass(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = check_experts(kase, err);
    if (st == FIB_OK)
        st = check_below(kase, "tp_rank", "tp_size", err);
    if (st == FIB_OK)
        st = check_below(kase, "ep_rank", "ep_size", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of_flag(kase, "intermediate_size", "tp_size", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of_flag(kase, "num_experts", "ep_size", err);
    return st;
}

static const struct fib_routine routines[] = {
    FIB_PLANNED("moe", TRT_FP4, options, .overrides = needs_inner, .check = check_trt_fp4,
                .summary = "y = sum_k w_k FC2_k act(FC1_k x), fp4 weights, routing included"),
    FIB_PLANNED("moe", TRT_FP8, options, .overrides = needs_inner, .check = check_trt_fp8,
                .summary = "the same, fp8 with scales of 128 x 128 blocks"),
    FIB_PLANNED("moe", TRT_TENSOR, options, .overrides = needs_inner, .check = check_routed,
                .summary = "the same, fp8 with one scale a tensor"),
    FIB_PLANNED("moe", CUTLASS, options, .overrides = needs_inner, .check = check_cutlass,
                .summary = "y = sum_k w_k FC2_k act(FC1_k x), experts already chosen"),
    FIB_PLANNED("moe", CUTE, options, .overrides = cute_overrides, .check = check_nvfp4,
                .summary = "the same in nvfp4, SwiGLU"),
    FIB_PLANNED("moe", B12X, options, .overrides = b12x_overrides, .check = check_b12x,
                .summary = "the same in nvfp4, tokens quantised inside"),
    FIB_PLANNED("moe", UNIFIED, options, .overrides = needs_inner, .check = check_nvfp4,
                .summary = "the same in nvfp4, the fastest of several kernels"),
    FIB_PLANNED("moe", BGMV, options, .check = check_experts,
                .summary = "y += w B_l (A_l x), low-rank adapters l of the chosen experts"),
};

const struct fib_family fib_family_moe =
    FIB_FAMILY("moe", "mixture-of-experts layers on one device", routines);
