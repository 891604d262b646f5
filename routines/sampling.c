/* Sampling from probabilities and logits, renormalisation, top-k selection: flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

#define SOFTMAX "softmax"
#define FROM_PROBS "sampling_from_probs"
#define FROM_LOGITS "sampling_from_logits"
#define TOP_K_PROBS "top_k_sampling_from_probs"
#define TOP_P_PROBS "top_p_sampling_from_probs"
#define BOTH_PROBS "top_k_top_p_sampling_from_probs"
#define BOTH_LOGITS "top_k_top_p_sampling_from_logits"
#define MIN_P_PROBS "min_p_sampling_from_probs"
#define TOP_K_RENORM "top_k_renorm_probs"
#define TOP_P_RENORM "top_p_renorm_probs"
#define TOP_K_MASK "top_k_mask_logits"
#define CHAIN "chain_speculative_sampling"
#define TOP_K "top_k"
#define PAGE_TABLE "top_k_page_table_transform"
#define RAGGED "top_k_ragged_transform"
#define TRANSFORMS PAGE_TABLE " " RAGGED

static const struct fib_option options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "rows"),
    FIB_ROW_I64("vocab_size", 1, FIB_LIMIT_TOKENS,
                .uses = SOFTMAX " " FROM_PROBS " " FROM_LOGITS " " TOP_K_PROBS " " TOP_P_PROBS
                                " " BOTH_PROBS " " BOTH_LOGITS " " MIN_P_PROBS " " TOP_K_RENORM
                                " " TOP_P_RENORM " " TOP_K_MASK " " CHAIN " " TOP_K,
                .help = "entries of a row"),
    FIB_ROW_CHOICE("input_dtype", "float32 float16 bfloat16", .fallback = "float32",
                   .uses = SOFTMAX " " FROM_LOGITS " " BOTH_LOGITS " " TOP_K_RENORM " " TOP_K_MASK
                                   " " TOP_K " " TRANSFORMS,
                   .help = "dtype of the input; probabilities are float32"),
    FIB_ROW_I64("top_k", 1, FIB_LIMIT_TOKENS, .fallback = "50",
                .uses = TOP_K_PROBS " " BOTH_PROBS " " BOTH_LOGITS " " TOP_K_RENORM " " TOP_K_MASK
                                    " " TOP_K " " TRANSFORMS,
                .help = "entries that are kept"),
    FIB_ROW_F64("top_p", 0.0, 1.0, .fallback = "0.9",
                .uses = TOP_P_PROBS " " BOTH_PROBS " " BOTH_LOGITS " " TOP_P_RENORM,
                .help = "probability mass that is kept"),
    FIB_ROW_F64("min_p", 0.0, 1.0, .fallback = "0.1", .uses = MIN_P_PROBS,
                .help = "least share of the largest probability"),
    FIB_ROW_F64("temperature", 0.0, 1e6, .fallback = "1.0", .uses = SOFTMAX,
                .help = "divides the logits; 0 gives a uniform row"),
    FIB_ROW_CHOICE("filter_apply_order", "top_k_first joint", .fallback = "top_k_first",
                   .uses = BOTH_PROBS " " BOTH_LOGITS, .help = "how the two filters combine"),
    FIB_ROW_I64("num_speculate_tokens", 1, FIB_LIMIT_HEADS, .fallback = "5", .uses = CHAIN,
                .help = "draft tokens of a row"),
    FIB_ROW_I64("max_len", 1, FIB_LIMIT_TOKENS, .fallback = "4096", .uses = TRANSFORMS,
                .help = "scores of a row"),
    FIB_ROW_I64("num_rows", 1, FIB_LIMIT_TOKENS, .uses = TRANSFORMS,
                .help = "rows of scores; unset: --batch_size"),
    FIB_ROWS_END,
};

static const struct fib_option_override needs_vocab[] = {
    {.name = "vocab_size", .required = true},
    {.name = NULL},
};

static enum fib_status check_top_k(const struct fib_case *kase, struct fib_error *err)
{
    return fib_rows_at_most(kase, "top_k", "vocab_size", err);
}

/* Row i of the scores uses row i of the page table, which has a row for each batch entry. */
static enum fib_status check_page_table(const struct fib_case *kase, struct fib_error *err)
{
    return fib_rows_at_most(kase, "num_rows", "batch_size", err);
}

#define OVER_VOCABULARY(name_, ...)                                                                \
    FIB_PLANNED("sampling", name_, options, .overrides = needs_vocab, __VA_ARGS__)

static const struct fib_routine routines[] = {
    OVER_VOCABULARY(SOFTMAX, .summary = "p = exp(x / T - max) / sum"),
    OVER_VOCABULARY(FROM_PROBS, .summary = "i ~ p by inverse CDF"),
    OVER_VOCABULARY(FROM_LOGITS, .summary = "i = argmax(x_i + Gumbel noise)"),
    OVER_VOCABULARY(TOP_K_PROBS, .summary = "i ~ p over the k largest"),
    OVER_VOCABULARY(TOP_P_PROBS, .summary = "i ~ p over the largest that make up mass p"),
    OVER_VOCABULARY(BOTH_PROBS, .summary = "i ~ p over what both filters keep"),
    OVER_VOCABULARY(BOTH_LOGITS, .summary = "the same from logits"),
    OVER_VOCABULARY(MIN_P_PROBS, .summary = "i ~ p over p_i >= min_p max p"),
    OVER_VOCABULARY(TOP_K_RENORM, .summary = "p_i / sum of the k largest, others 0"),
    OVER_VOCABULARY(TOP_P_RENORM, .summary = "p_i / kept mass for the largest, others 0"),
    OVER_VOCABULARY(TOP_K_MASK, .summary = "x_i if among the k largest, else -inf"),
    OVER_VOCABULARY(CHAIN, .summary = "accept draft i while u p_draft < p_target, then resample"),
    OVER_VOCABULARY(TOP_K, .summary = "values and indices of the k largest of a row",
                    .check = check_top_k),
    FIB_PLANNED("sampling", PAGE_TABLE, options, .check = check_page_table,
                .summary = "page-table entries of the k largest scores of a row"),
    FIB_PLANNED("sampling", RAGGED, options,
                .summary = "positions of the k largest scores of a row plus its offset"),
};

const struct fib_family fib_family_sampling =
    FIB_FAMILY("sampling", "sampling, renormalisation, top-k", routines);

static const struct fib_option varlen_options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "rows"),
    FIB_ROW_I64("max_seq_len", 1, FIB_LIMIT_TOKENS, .required = true, .help = "scores of a row"),
    FIB_ROW_CHOICE("input_dtype", "float32 float16 bfloat16", .fallback = "float32",
                   .help = "dtype of the scores"),
    FIB_ROW_I64("top_k", 1, FIB_LIMIT_TOKENS, .fallback = "512", .help = "indices of a row"),
    FIB_ROWS_END,
};

static const struct fib_routine varlen_routines[] = {
    FIB_PLANNED("topk_varlen", "top_k_varlen", varlen_options,
                .summary = "indices of the k largest among the first len entries, -1 after them"),
};

const struct fib_family fib_family_topk_varlen =
    FIB_FAMILY("topk_varlen", "top-k of rows of different length", varlen_routines);
