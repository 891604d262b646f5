/* Attention over paged and ragged KV caches, and block-sparse attention: flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

#include <inttypes.h>

#define DECODE "BatchDecodeWithPagedKVCacheWrapper"
#define PAGED "BatchPrefillWithPagedKVCacheWrapper"
#define RAGGED "BatchPrefillWithRaggedKVCacheWrapper"
#define MLA "BatchMLAPagedAttentionWrapper"

static const struct fib_option attention_options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "requests"),
    FIB_ROW_I64("s_qo", 1, FIB_LIMIT_TOKENS, .fallback = "1",
                .help = "most query tokens of a request; decode: above 1 is speculative"),
    FIB_ROW_I64("s_kv", 1, FIB_LIMIT_TOKENS, .required = true,
                .help = "most KV tokens of a request"),
    FIB_ROW_I64("num_qo_heads", 1, FIB_LIMIT_HEADS, .required = true, .help = "query heads"),
    FIB_ROW_I64("num_kv_heads", 1, FIB_LIMIT_HEADS, .uses = DECODE " " PAGED " " RAGGED,
                .help = "KV heads; divides the query heads"),
    FIB_ROW_I64("head_dim_qk", 1, FIB_LIMIT_HEADS, .uses = DECODE " " PAGED " " RAGGED,
                .help = "width of a query and key head"),
    FIB_ROW_I64("head_dim_vo", 1, FIB_LIMIT_HEADS, .uses = DECODE " " PAGED " " RAGGED,
                .help = "width of a value and output head; unset: as --head_dim_qk"),
    FIB_ROW_I64("head_dim_ckv", 1, FIB_LIMIT_HEADS, .uses = MLA,
                .help = "width of the compressed KV part"),
    FIB_ROW_I64("head_dim_kpe", 1, FIB_LIMIT_HEADS, .uses = MLA,
                .help = "width of the rotary key part"),
    FIB_ROW_I64("page_size", 1, FIB_LIMIT_HEADS, .uses = DECODE " " PAGED " " MLA,
                .help = "tokens of a page of the KV cache"),
    FIB_ROW_CHOICE("q_dtype", FIB_ANY_DTYPE, .fallback = "bfloat16",
                   .help = "dtype of the queries"),
    FIB_ROW_CHOICE("kv_dtype", FIB_ANY_DTYPE, .fallback = "bfloat16",
                   .help = "dtype of the KV cache"),
    FIB_ROW_CHOICE("out_dtype", FIB_ANY_DTYPE, .uses = DECODE " " PAGED " " RAGGED,
                   .help = "dtype of the output; unset: as --q_dtype"),
    FIB_ROW_SWITCH("causal", .uses = PAGED " " RAGGED,
                   .help = "bottom-right causal mask; decode and MLA have their own"),
    FIB_ROW_CHOICE("spec_dec_mask", "causal full", .fallback = "causal", .uses = DECODE,
                   .help = "mask among the draft tokens when --s_qo is above 1"),
    FIB_ROW_SWITCH("random_actual_seq_len",
                   .help = "lengths drawn from 1 to the maximum, a request each"),
    FIB_ROW_SWITCH("autotune", .uses = MLA, .help = "tune before timing"),
    FIB_ROW_CHOICE("mla_is_var_seq", "true false auto", .uses = MLA,
                   .help = "tell the kernel that lengths vary; auto: as --random_actual_seq_len"),
    FIB_ROW_CHOICE("mla_cute_dsl_impl", "auto modular monolithic", .uses = MLA,
                   .help = "which CuTe-DSL kernel"),
    FIB_ROWS_END,
};

static const struct fib_option_override paged_overrides[] = {
    {.name = "num_kv_heads", .required = true},
    {.name = "head_dim_qk", .required = true},
    {.name = "page_size", .required = true},
    {.name = "q_dtype", .choices = "bfloat16 float16 fp8_e4m3"},
    {.name = "kv_dtype", .choices = "bfloat16 float16 fp8_e4m3 nvfp4"},
    {.name = "out_dtype", .choices = "bfloat16 float16 fp8_e4m3"},
    {.name = NULL},
};

static const struct fib_option_override ragged_overrides[] = {
    {.name = "num_kv_heads", .required = true},
    {.name = "head_dim_qk", .required = true},
    {.name = "q_dtype", .choices = "bfloat16 float16 fp8_e4m3 fp8_e5m2"},
    {.name = "kv_dtype", .choices = "bfloat16 float16 fp8_e4m3 fp8_e5m2"},
    {.name = "out_dtype", .choices = "bfloat16 float16 fp8_e4m3"},
    {.name = NULL},
};

static const struct fib_option_override mla_overrides[] = {
    {.name = "page_size", .required = true},
    {.name = "head_dim_ckv", .required = true},
    {.name = "head_dim_kpe", .required = true},
    {.name = "q_dtype", .choices = "bfloat16 fp8_e4m3"},
    {.name = "kv_dtype", .choices = "bfloat16 fp8_e4m3"},
    {.name = NULL},
};

static enum fib_status check_mla(const struct fib_case *kase, struct fib_error *err)
{
    return fib_rows_at_most(kase, "s_qo", "s_kv", err);
}

/* Queries are the last tokens of the request, so there are never more of them than keys. */
static enum fib_status check_attention(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = fib_rows_multiple_of_flag(kase, "num_qo_heads", "num_kv_heads", err);
    if (st == FIB_OK)
        st = fib_rows_at_most(kase, "s_qo", "s_kv", err);
    return st;
}

static const struct fib_routine attention_routines[] = {
    FIB_PLANNED("attention", DECODE, attention_options,
                .summary = "o = softmax(q K^T / sqrt(d)) V, one query token against a paged cache",
                .overrides = paged_overrides, .check = check_attention),
    FIB_PLANNED("attention", PAGED, attention_options,
                .summary = "o = softmax(Q K^T / sqrt(d)) V, many query tokens, paged cache",
                .overrides = paged_overrides, .check = check_attention),
    FIB_PLANNED("attention", RAGGED, attention_options,
                .summary = "o = softmax(Q K^T / sqrt(d)) V, requests packed end to end",
                .overrides = ragged_overrides, .check = check_attention),
    FIB_PLANNED("attention", MLA, attention_options,
                .summary = "o = softmax((q_c C^T + q_r R^T) / sqrt(192)) C, one latent KV head",
                .overrides = mla_overrides, .check = check_mla),
};

const struct fib_family fib_family_attention =
    FIB_FAMILY("attention", "decode, prefill and latent attention", attention_routines);

#define SPARSE_PROXY "MSAProxyScore"
#define SPARSE_PREFILL "MSASparseAttention"
#define SPARSE_DECODE "MSASparseDecode"
#define SPARSE_PIPELINE "MSAPipeline"

enum { SPARSE_HEAD_DIM = 128, SPARSE_PIPELINE_BLOCKS = 16, SPARSE_DECODE_GROUP = 16 };

static const struct fib_option sparse_options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .fallback = "1", .help = "requests"),
    FIB_ROW_I64("s_qo", 1, FIB_LIMIT_TOKENS, .fallback = "4096",
                .uses = SPARSE_PROXY " " SPARSE_PREFILL " " SPARSE_PIPELINE,
                .help = "query tokens of a request"),
    FIB_ROW_I64("s_kv", 1, FIB_LIMIT_TOKENS, .fallback = "4096", .help = "KV tokens of a request"),
    FIB_ROW_I64("num_qo_heads", 1, FIB_LIMIT_HEADS, .fallback = "64", .help = "query heads"),
    FIB_ROW_I64("num_kv_heads", 1, FIB_LIMIT_HEADS, .fallback = "4",
                .help = "KV heads; divides the query heads"),
    FIB_ROW_I64("head_dim", 1, FIB_LIMIT_HEADS, .fallback = "128", .help = "width of a head"),
    FIB_ROW_I64("topk", 1, FIB_LIMIT_TOKENS, .fallback = "16",
                .uses = SPARSE_PREFILL " " SPARSE_DECODE " " SPARSE_PIPELINE,
                .help = "KV blocks of 128 tokens that a query attends to"),
    FIB_ROW_I64("max_k_tiles", 1, FIB_LIMIT_TOKENS, .uses = SPARSE_PROXY,
                .help = "blocks that get a score; unset: all of --s_kv"),
    FIB_ROW_SWITCH("causal", .negation = "no_causal", .fallback = "True",
                   .help = "bottom-right causal mask"),
    FIB_ROW_CHOICE("q_dtype", "bfloat16 float16", .fallback = "bfloat16",
                   .help = "dtype of the queries"),
    FIB_ROW_CHOICE("kv_dtype", "bfloat16 float16 fp8_e4m3 nvfp4", .fallback = "bfloat16",
                   .help = "dtype of keys and values"),
    FIB_ROW_CHOICE("kv_layout", "flat paged packed", .fallback = "flat",
                   .help = "how keys and values lie in memory"),
    FIB_ROWS_END,
};

static const struct fib_option_override proxy_overrides[] = {
    {.name = "q_dtype", .choices = "bfloat16 float16 nvfp4"},
    {.name = NULL},
};

static bool is_16_bit(const struct fib_case *kase, const char *flag)
{
    return fib_case_is(kase, flag, "bfloat16") || fib_case_is(kase, flag, "float16");
}

static enum fib_status check_sparse_dtypes(const struct fib_case *kase, struct fib_error *err)
{
    if (is_16_bit(kase, "q_dtype") && is_16_bit(kase, "kv_dtype") &&
        !fib_case_is(kase, "kv_dtype", fib_case_text(kase, "q_dtype")))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--kv_dtype %s: a 16-bit cache must be as --q_dtype (%s)",
                        fib_case_text(kase, "kv_dtype"), fib_case_text(kase, "q_dtype"));
    if (!fib_case_is(kase, "kv_layout", "flat") && fib_case_is(kase, "kv_dtype", "nvfp4"))
        return fib_fail(err, FIB_ERR_USAGE, "--kv_layout %s: must be flat with --kv_dtype nvfp4",
                        fib_case_text(kase, "kv_layout"));
    return FIB_OK;
}

static enum fib_status check_sparse(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = fib_rows_multiple_of_flag(kase, "num_qo_heads", "num_kv_heads", err);
    if (st == FIB_OK)
        st = fib_rows_exactly(kase, "head_dim", SPARSE_HEAD_DIM, "the only width defined", err);
    if (st == FIB_OK)
        st = check_sparse_dtypes(kase, err);
    return st;
}

static enum fib_status check_sparse_flat(const struct fib_case *kase, struct fib_error *err)
{
    if (!fib_case_is(kase, "kv_layout", "flat"))
        return fib_fail(err, FIB_ERR_USAGE, "--kv_layout %s: must be flat for %s",
                        fib_case_text(kase, "kv_layout"), kase->routine->name);
    return check_sparse(kase, err);
}

static enum fib_status check_sparse_pipeline(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = fib_rows_exactly(kase, "topk", SPARSE_PIPELINE_BLOCKS,
                                                "the pipeline selects that many blocks", err);
    return st == FIB_OK ? check_sparse_flat(kase, err) : st;
}

static enum fib_status check_sparse_decode(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = check_sparse(kase, err);
    const int64_t heads = fib_case_i64(kase, "num_qo_heads");
    const int64_t group = heads / fib_case_i64(kase, "num_kv_heads");
    if (st != FIB_OK || group <= SPARSE_DECODE_GROUP)
        return st;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--num_qo_heads %" PRId64 ": must be at most %d times --num_kv_heads", heads,
                    SPARSE_DECODE_GROUP);
}

static const struct fib_routine sparse_routines[] = {
    FIB_PLANNED("sparse_attention", SPARSE_PROXY, sparse_options,
                .summary = "score of a 128-key block = max over its keys of q . k",
                .overrides = proxy_overrides, .check = check_sparse_flat),
    FIB_PLANNED("sparse_attention", SPARSE_PREFILL, sparse_options,
                .summary = "attention over the selected 128-key blocks of each query",
                .check = check_sparse),
    FIB_PLANNED("sparse_attention", SPARSE_DECODE, sparse_options,
                .summary = "the same with one query token a request", .check = check_sparse_decode),
    FIB_PLANNED("sparse_attention", SPARSE_PIPELINE, sparse_options,
                .summary = "block scores, best 16 blocks, attention over them",
                .check = check_sparse_pipeline),
};

const struct fib_family fib_family_sparse_attention =
    FIB_FAMILY("sparse_attention", "block-sparse attention", sparse_routines);
