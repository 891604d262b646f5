/* Gated delta rule and Kimi delta attention: flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

#include <inttypes.h>

#define DECODE "gated_delta_rule_decode"
#define MTP "gated_delta_rule_mtp"
#define PREFILL "chunk_gated_delta_rule"

static const struct fib_option options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "requests"),
    FIB_ROW_I64("num_q_heads", 1, FIB_LIMIT_HEADS, .fallback = "16", .help = "query heads"),
    FIB_ROW_I64("num_k_heads", 1, FIB_LIMIT_HEADS, .fallback = "16", .help = "key heads"),
    FIB_ROW_I64("num_v_heads", 1, FIB_LIMIT_HEADS, .fallback = "32", .help = "value heads"),
    FIB_ROW_I64("head_size", 1, FIB_LIMIT_HEADS, .fallback = "128", .help = "width of a head"),
    FIB_ROW_CHOICE("input_dtype", "bfloat16 float16", .fallback = "bfloat16",
                   .help = "dtype of q, k, v"),
    FIB_ROW_CHOICE("state_dtype", "float32 bfloat16", .fallback = "float32", .uses = DECODE " " MTP,
                   .help = "dtype of the state"),
    FIB_ROW_CHOICE("state_layout", "pretranspose nontranspose", .fallback = "pretranspose",
                   .uses = DECODE " " MTP, .help = "state as V x K or K x V"),
    FIB_ROW_CHOICE("pool_mode", "single split", .fallback = "single", .uses = DECODE " " MTP,
                   .help = "state updated in place or written to a second slot"),
    FIB_ROW_I64("seq_len", 1, FIB_LIMIT_TOKENS, .help = "tokens of a request a call"),
    FIB_ROW_I64("s_qo", 1, FIB_LIMIT_TOKENS, .fallback = "2048", .uses = PREFILL,
                .help = "tokens of a sequence"),
    FIB_ROW_SWITCH("update_state", .uses = MTP, .help = "write the state back (float32)"),
    FIB_ROW_SWITCH("cache_intermediate_states", .uses = MTP,
                   .help = "also keep the state after each token (float32)"),
    FIB_ROW_SWITCH("no_qk_l2norm", .uses = DECODE " " MTP, .help = "take q and k as they are"),
    FIB_ROWS_END,
};

static const struct fib_option_override mtp_overrides[] = {
    {.name = "seq_len", .fallback = "2"},
    {.name = NULL},
};

/* One of the two head counts repeats the other. */
static enum fib_status check_heads(const struct fib_case *kase, const char *few, const char *many,
                                   struct fib_error *err)
{
    const int64_t a = fib_case_i64(kase, few), b = fib_case_i64(kase, many);
    return a <= b ? fib_rows_multiple_of_flag(kase, many, few, err)
                  : fib_rows_multiple_of_flag(kase, few, many, err);
}

static enum fib_status check_bf16_state(const struct fib_case *kase, struct fib_error *err)
{
    if (!fib_case_is(kase, "state_dtype", "bfloat16"))
        return FIB_OK;
    if (fib_case_is(kase, "state_layout", "nontranspose"))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--state_layout nontranspose: must be pretranspose with --state_dtype "
                        "bfloat16");
    return fib_rows_exactly(kase, "head_size", 128, "with --state_dtype bfloat16", err);
}

static enum fib_status check_state(const struct fib_case *kase, struct fib_error *err)
{
    if (fib_case_is(kase, "pool_mode", "split") &&
        fib_case_is(kase, "state_layout", "nontranspose"))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--pool_mode split: must be single with --state_layout nontranspose");
    enum fib_status st = check_bf16_state(kase, err);
    /* The state has one matrix for each value head. */
    if (st == FIB_OK)
        st = fib_rows_multiple_of_flag(kase, "num_v_heads", "num_q_heads", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of_flag(kase, "num_v_heads", "num_k_heads", err);
    return st;
}

static enum fib_status check_decode(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st =
        fib_rows_exactly(kase, "seq_len", 1, "decode takes one token; see " MTP, err);
    return st == FIB_OK ? check_state(kase, err) : st;
}

static enum fib_status check_mtp(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t tokens = fib_case_i64(kase, "seq_len");
    if (tokens < 2)
        return fib_fail(err, FIB_ERR_USAGE, "--seq_len %" PRId64 ": must be 2 or more for " MTP,
                        tokens);
    if (fib_case_is(kase, "state_layout", "nontranspose"))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--state_layout nontranspose: must be pretranspose for " MTP);
    const bool f32 = fib_case_is(kase, "state_dtype", "float32");
    if (f32 && fib_case_is(kase, "pool_mode", "split"))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--pool_mode split: must be single for " MTP " with --state_dtype float32");
    if (!f32 && fib_case_on(kase, "cache_intermediate_states"))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--cache_intermediate_states: needs --state_dtype float32");
    return check_state(kase, err);
}

static enum fib_status check_prefill(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st =
        fib_rows_exactly(kase, "seq_len", 1, "prefill takes its length from --s_qo", err);
    if (st == FIB_OK)
        st = check_heads(kase, "num_q_heads", "num_v_heads", err);
    if (st == FIB_OK)
        st = check_heads(kase, "num_k_heads", "num_v_heads", err);
    return st;
}

static const struct fib_routine routines[] = {
    FIB_PLANNED("gdn", DECODE, options, .check = check_decode,
                .summary = "S = a S, S += k (b (v - S^T k))^T, o = S^T q, one token"),
    FIB_PLANNED("gdn", MTP, options, .overrides = mtp_overrides, .check = check_mtp,
                .summary = "the same for a few tokens in a row"),
    FIB_PLANNED("gdn", PREFILL, options, .check = check_prefill,
                .summary = "the same for whole sequences, in chunks"),
};

const struct fib_family fib_family_gdn = FIB_FAMILY("gdn", "gated delta rule", routines);

static const struct fib_option kda_options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "sequences"),
    FIB_ROW_I64("s_qo", 1, FIB_LIMIT_TOKENS, .required = true, .help = "tokens of a sequence"),
    FIB_ROW_I64("num_q_heads", 1, FIB_LIMIT_HEADS, .fallback = "16", .help = "heads"),
    FIB_ROW_I64("head_size", 1, FIB_LIMIT_HEADS, .fallback = "128", .help = "width of a head"),
    FIB_ROW_CHOICE("input_dtype", "bfloat16", .fallback = "bfloat16", .help = "dtype of q, k, v"),
    FIB_ROW_CHOICE("state_dtype", "bfloat16", .fallback = "bfloat16", .help = "dtype of the state"),
    FIB_ROW_SWITCH("packed", .help = "sequences end to end with offsets"),
    FIB_ROW_CHOICE("offsets_dtype", "int32 int64", .fallback = "int32",
                   .help = "dtype of the offsets"),
    FIB_ROW_SWITCH("has_initial_state", .help = "start from a given state"),
    FIB_ROW_F64("lower_bound", -5.0, 0.0, .fallback = "-5.0",
                .help = "least log of the decay; below 0"),
    FIB_ROWS_END,
};

static enum fib_status check_kda(const struct fib_case *kase, struct fib_error *err)
{
    if (fib_case_f64(kase, "lower_bound") >= 0.0)
        return fib_fail(err, FIB_ERR_USAGE, "--lower_bound %s: must be below 0",
                        fib_case_text(kase, "lower_bound"));
    return fib_rows_exactly(kase, "head_size", 128, "the only width defined", err);
}

static const struct fib_routine kda_routines[] = {
    FIB_PLANNED("kda", "recurrent_kda_prefill", kda_options, .check = check_kda,
                .summary = "S = S diag(d), S += b (v - S k) k^T, o = S q / sqrt(K)"),
};

const struct fib_family fib_family_kda = FIB_FAMILY("kda", "Kimi delta attention", kda_routines);
