/* Rotary position embedding, also with fp8 output and a paged cache: flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

#include <inttypes.h>

#define PLAIN "apply_rope"
#define PLAIN_IDS "apply_rope_pos_ids"
#define LLAMA "apply_llama31_rope"
#define LLAMA_IDS "apply_llama31_rope_pos_ids"
#define CACHED "apply_rope_with_cos_sin_cache"
#define MLA_FP8 "mla_rope_quantize_fp8"
#define FP8 "rope_quantize_fp8"
#define APPEND "rope_quantize_fp8_append_paged_kv_cache"
#define COMPUTED PLAIN " " PLAIN_IDS " " LLAMA " " LLAMA_IDS
#define ALL_BUT_MLA COMPUTED " " CACHED " " FP8 " " APPEND

static const struct fib_option options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "requests"),
    FIB_ROW_I64("seq_len", 1, FIB_LIMIT_TOKENS, .required = true, .help = "tokens of a request"),
    FIB_ROW_I64("num_qo_heads", 1, FIB_LIMIT_HEADS, .required = true, .help = "query heads"),
    FIB_ROW_I64("num_kv_heads", 1, FIB_LIMIT_HEADS, .uses = ALL_BUT_MLA, .help = "key heads"),
    FIB_ROW_I64("head_dim", 1, FIB_LIMIT_HEADS, .required = true, .help = "width of a head"),
    FIB_ROW_I64("rotary_dim", 2, FIB_LIMIT_HEADS, .uses = ALL_BUT_MLA,
                .help = "leading part that is rotated, even; unset: --head_dim"),
    FIB_ROW_I64("no_rope_dim", 0, FIB_LIMIT_HEADS, .fallback = "0", .uses = MLA_FP8 " " FP8,
                .help = "width of the part that is not rotated"),
    FIB_ROW_CHOICE("input_dtype", "float16 bfloat16", .fallback = "float16",
                   .help = "dtype of queries and keys"),
    FIB_ROW_CHOICE("quant_dtype", "fp8_e4m3 fp8_e5m2", .fallback = "fp8_e4m3",
                   .uses = MLA_FP8 " " FP8 " " APPEND, .help = "dtype of the output"),
    FIB_ROW_F64("rope_scale", 1e-6, 1e6, .fallback = "1.0", .uses = COMPUTED,
                .help = "divides the frequencies"),
    FIB_ROW_F64("rope_theta", 1e-6, 1e12, .fallback = "10000.0", .uses = COMPUTED,
                .help = "base of the frequencies"),
    FIB_ROW_SWITCH("interleave", .help = "pairs (2i, 2i+1) instead of (i, i + half)"),
    FIB_ROW_I64("page_size", 1, FIB_LIMIT_HEADS, .fallback = "16", .uses = APPEND,
                .help = "tokens of a page of the KV cache"),
    FIB_ROW_CHOICE("kv_layout", "NHD HND", .fallback = "NHD", .uses = APPEND,
                   .help = "order inside a page"),
    FIB_ROW_F64("low_freq_factor", 1e-6, 1e6, .fallback = "1.0", .uses = LLAMA " " LLAMA_IDS,
                .help = "start of the frequencies that are blended"),
    FIB_ROW_F64("high_freq_factor", 1e-6, 1e6, .fallback = "4.0", .uses = LLAMA " " LLAMA_IDS,
                .help = "end of the frequencies that are blended"),
    FIB_ROW_I64("old_context_len", 1, FIB_LIMIT_TOKENS, .fallback = "8192",
                .uses = LLAMA " " LLAMA_IDS, .help = "context length before scaling"),
    FIB_ROWS_END,
};

static const struct fib_option_override needs_kv_heads[] = {
    {.name = "num_kv_heads", .required = true},
    {.name = NULL},
};

static enum fib_status check_rotary(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t rotary = fib_case_i64(kase, "rotary_dim");
    const enum fib_status st = fib_rows_at_most(kase, "rotary_dim", "head_dim", err);
    if (st != FIB_OK)
        return st;
    const char *flag = rotary == FIB_UNSET_I64 ? "head_dim" : "rotary_dim";
    return fib_rows_multiple_of(kase, flag, 2, "elements are rotated in pairs", err);
}

static enum fib_status check_llama(const struct fib_case *kase, struct fib_error *err)
{
    const double low = fib_case_f64(kase, "low_freq_factor");
    const double high = fib_case_f64(kase, "high_freq_factor");
    if (high <= low)
        return fib_fail(
            err, FIB_ERR_USAGE, "--high_freq_factor %s: must be above --low_freq_factor (%s)",
            fib_case_text(kase, "high_freq_factor"), fib_case_text(kase, "low_freq_factor"));
    return check_rotary(kase, err);
}

static enum fib_status check_mla(const struct fib_case *kase, struct fib_error *err)
{
    const int64_t width = fib_case_i64(kase, "head_dim");
    const int64_t plain = fib_case_i64(kase, "no_rope_dim");
    if (plain >= width)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--no_rope_dim %" PRId64 ": must be below --head_dim (%" PRId64 ")", plain,
                        width);
    if ((width - plain) % 2 != 0)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--no_rope_dim %" PRId64 ": must leave an even part of --head_dim (%" PRId64
                        ") to rotate",
                        plain, width);
    return FIB_OK;
}

#define ROPE(name_, ...)                                                                           \
    FIB_PLANNED("rope", name_, options, .overrides = needs_kv_heads, __VA_ARGS__)

static const struct fib_routine routines[] = {
    ROPE(PLAIN, .summary = "rotate pairs of q and k by pos theta^(-2i/d), positions from offsets",
         .check = check_rotary),
    ROPE(PLAIN_IDS, .summary = "the same, a position for each token", .check = check_rotary),
    ROPE(LLAMA, .summary = "the same with Llama 3.1 frequencies", .check = check_llama),
    ROPE(LLAMA_IDS, .summary = "the same, a position for each token", .check = check_llama),
    ROPE(CACHED, .summary = "rotate by a table of cos and sin", .check = check_rotary),
    FIB_PLANNED("rope", MLA_FP8, options, .check = check_mla,
                .summary = "latent attention: rotate the rope part, cast all to fp8"),
    ROPE(FP8, .summary = "rotate the rope part, cast all to fp8", .check = check_rotary),
    ROPE(APPEND, .summary = "the same, keys and values stored in a paged cache",
         .check = check_rotary),
};

const struct fib_family fib_family_rope = FIB_FAMILY("rope", "rotary embedding", routines);
