/* Communication between ranks: expert dispatch, fused all-reduce, mixed collectives. */
#include "routines/routines.h"
#include "routines/rows.h"

#include <inttypes.h>

static const struct fib_option a2a_options[] = {
    FIB_ROW_I64("num_tokens", 1, FIB_LIMIT_TOKENS, .required = true, .help = "tokens of a rank"),
    FIB_ROW_I64("hidden_size", 1, FIB_LIMIT_WIDTH, .required = true, .help = "width of a token"),
    FIB_ROW_I64("num_experts", 1, FIB_LIMIT_HEADS, .required = true,
                .help = "experts of all ranks together"),
    FIB_ROW_I64("top_k", 1, FIB_LIMIT_HEADS, .required = true, .help = "experts of a token"),
    FIB_ROW_CHOICE("input_dtype", "bfloat16 float16", .fallback = "bfloat16",
                   .help = "dtype of the tokens"),
    FIB_ROW_CHOICE("quant_dtype", "fp8 nvfp4 fp8_block_scale",
                   .help = "tokens are sent quantised; unset: as they are"),
    FIB_ROW_SWITCH("real_math", .help = "run the experts between dispatch and combine"),
    FIB_ROW_I64("intermediate_size", 1, FIB_LIMIT_WIDTH,
                .help = "inner width of an expert, for --real_math"),
    FIB_ROW_I64("max_num_tokens", 1, FIB_LIMIT_TOKENS,
                .help = "tokens the workspace has room for; unset: --num_tokens"),
    FIB_ROW_SWITCH("validate", .help = "compare with a computation on one rank"),
    FIB_ROW_SWITCH("nvtx", .help = "mark the phases for a profiler"),
    FIB_ROW_SWITCH("per_phase_timing", .help = "time dispatch, experts and combine apart"),
    FIB_ROW_SWITCH("use_lora", .help = "send an adapter number with each token"),
    FIB_ROWS_END,
};

static enum fib_status check_real_math(const struct fib_case *kase, struct fib_error *err)
{
    if (!fib_case_on(kase, "real_math"))
        return FIB_OK;
    if (fib_case_i64(kase, "intermediate_size") == FIB_UNSET_I64)
        return fib_fail(err, FIB_ERR_USAGE, "--real_math: needs --intermediate_size");
    if (fib_case_is(kase, "quant_dtype", "nvfp4") ||
        fib_case_is(kase, "quant_dtype", "fp8_block_scale"))
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--real_math: needs --quant_dtype nvfp4 or fp8_block_scale");
}

static enum fib_status check_a2a(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = fib_rows_at_most(kase, "top_k", "num_experts", err);
    if (st == FIB_OK)
        st = fib_rows_at_most(kase, "num_tokens", "max_num_tokens", err);
    if (st == FIB_OK)
        st = check_real_math(kase, err);
    return st;
}

static const struct fib_routine a2a_routines[] = {
    FIB_PLANNED("moe_comm", "moe_a2a_dispatch_combine", a2a_options, .check = check_a2a,
                .summary = "each token to the ranks of its experts and the sum of their answers "
                           "back"),
};

const struct fib_family fib_family_moe_comm =
    FIB_FAMILY("moe_comm", "expert-parallel dispatch and combine", a2a_routines);

static const struct fib_option allreduce_options[] = {
    FIB_ROW_I64("num_tokens", 1, FIB_LIMIT_TOKENS, .fallback = "64", .help = "tokens"),
    FIB_ROW_I64("hidden_size", 1, FIB_LIMIT_WIDTH, .fallback = "4096", .help = "width of a token"),
    FIB_ROW_CHOICE("input_dtype", "bfloat16 float16", .fallback = "bfloat16",
                   .help = "dtype of the tokens"),
    FIB_ROW_CHOICE("ar_backend", "auto trtllm mnnvl", .fallback = "auto",
                   .help = "the reference's way to choose a kernel; beside it --backends works"),
    FIB_ROW_CHOICE("pattern", "allreduce ar_residual_rmsnorm ar_residual_rmsnorm_dynamic_fp8",
                   .fallback = "allreduce", .help = "what follows the sum in the same kernel"),
    FIB_ROW_SWITCH("validate", .help = "compare with a computation on one rank"),
    FIB_ROWS_END,
};

static const struct fib_routine allreduce_routines[] = {
    FIB_PLANNED("allreduce_comm", "allreduce_fusion", allreduce_options,
                .summary = "sum over ranks, then residual add, RMS norm and fp8 as asked"),
};

const struct fib_family fib_family_allreduce_comm =
    FIB_FAMILY("allreduce_comm", "all-reduce fused with what follows", allreduce_routines);

static const struct fib_option mixed_options[] = {
    {.name = "local_bs_list",
     .kind = FIB_OPT_I64_LIST,
     .min = 1,
     .max = FIB_LIMIT_TOKENS,
     .required = true,
     .help = "batch sizes of a rank, a case each"},
    FIB_ROW_I64("hidden_size", 1, FIB_LIMIT_WIDTH, .required = true, .help = "width of a row"),
    FIB_ROW_CHOICE("dtype", "float16 bfloat16", .required = true, .help = "dtype of the rows"),
    FIB_ROW_I64("local_tp_size", 1, FIB_LIMIT_RANKS, .required = true,
                .help = "tensor-parallel ranks inside a node"),
    FIB_ROW_I64("local_dp_size", 1, FIB_LIMIT_RANKS, .required = true,
                .help = "data-parallel ranks inside a node"),
    FIB_ROW_I64("inter_tp_size", 1, FIB_LIMIT_RANKS, .fallback = "1",
                .help = "tensor-parallel nodes"),
    FIB_ROW_I64("inter_dp_size", 1, FIB_LIMIT_RANKS, .fallback = "1",
                .help = "data-parallel nodes"),
    FIB_ROW_I64("node_id", 0, FIB_LIMIT_RANKS, .fallback = "0", .help = "number of this node"),
    {.name = "dist_init_method",
     .kind = FIB_OPT_TEXT,
     .fallback = "tcp://localhost:29501",
     .value_name = "URL",
     .help = "where the nodes meet"},
    FIB_ROWS_END,
};

static enum fib_status check_mixed(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t nodes = fib_case_i64(kase, "inter_tp_size") * fib_case_i64(kase, "inter_dp_size");
    const int64_t node = fib_case_i64(kase, "node_id");
    if (fib_case_i64(kase, "local_tp_size") * fib_case_i64(kase, "local_dp_size") < 2)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--local_tp_size 1 --local_dp_size 1: their product must be 2 or more");
    if (node >= nodes)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--node_id %" PRId64 ": must be below the number of nodes (%" PRId64
                        ", --inter_tp_size times --inter_dp_size)",
                        node, nodes);
    return FIB_OK;
}

static const struct fib_routine mixed_routines[] = {
    FIB_PLANNED("mixed_comm", "mixed_comm", mixed_options, .check = check_mixed,
                .summary = "all-reduce, all-gather, reduce-scatter and their pairs over TP x DP"),
};

const struct fib_family fib_family_mixed_comm =
    FIB_FAMILY("mixed_comm", "collectives over tensor and data parallel ranks", mixed_routines);
