/* Block quantisers to MXFP8, MXFP4 and NVFP4: flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

#include <inttypes.h>

#define MXFP8 "mxfp8_quantize"
#define MXFP4 "mxfp4_quantize"
#define NVFP4 "nvfp4_quantize"
#define NVFP4_BATCHED "nvfp4_batched_quantize"

enum { MX_BLOCK = 32, NV_BLOCK = 16, SHUFFLE_ROWS = 128 };

static const struct fib_option options[] = {
    FIB_ROW_I64("m", 1, FIB_LIMIT_TOKENS, .required = true, .help = "rows"),
    FIB_ROW_I64("k", 1, FIB_LIMIT_WIDTH, .required = true, .help = "columns"),
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .uses = NVFP4_BATCHED, .help = "matrices"),
    FIB_ROW_CHOICE("input_dtype", "bfloat16 float16", .fallback = "bfloat16",
                   .help = "dtype of the input"),
    FIB_ROW_SWITCH("is_sf_swizzled_layout", .negation = "no_sf_swizzled_layout", .fallback = "True",
                   .uses = MXFP8, .help = "scales in 128x4 order, not linear"),
    FIB_ROW_I64("alignment", MX_BLOCK, FIB_LIMIT_WIDTH, .fallback = "32", .uses = MXFP8,
                .help = "columns are padded to a multiple of this"),
    FIB_ROW_F64("global_scale", 0, 0, .fallback = "1.0", .uses = NVFP4 " " NVFP4_BATCHED,
                .help = "factor on all values before they are coded"),
    FIB_ROW_CHOICE("sf_layout", "128x4 8x4 linear", .fallback = "128x4", .uses = MXFP4 " " NVFP4,
                   .help = "order of the scales"),
    FIB_ROW_SWITCH("do_shuffle", .uses = NVFP4, .help = "rows in the order of shuffled weights"),
    FIB_ROW_I64("sf_vec_size", 1, 1024, .fallback = "16", .uses = NVFP4 " " NVFP4_BATCHED,
                .help = "values that share a scale; 16 is the only block of nvfp4"),
    FIB_ROW_SWITCH("per_token_activation", .uses = NVFP4, .help = "a global scale for each row"),
    FIB_ROWS_END,
};

static const struct fib_option_override batched_overrides[] = {
    {.name = "batch_size", .required = true},
    {.name = NULL},
};

static enum fib_status check_mxfp8(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st =
        fib_rows_multiple_of(kase, "alignment", MX_BLOCK, "blocks of mxfp8", err);
    return st == FIB_OK ? fib_rows_multiple_of_flag(kase, "k", "alignment", err) : st;
}

static enum fib_status check_mxfp4(const struct fib_case *kase, struct fib_error *err)
{
    return fib_rows_multiple_of(kase, "k", MX_BLOCK, "blocks of mxfp4", err);
}

static enum fib_status check_nvfp4_block(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st =
        fib_rows_exactly(kase, "sf_vec_size", NV_BLOCK, "the block of nvfp4", err);
    return st == FIB_OK ? fib_rows_multiple_of(kase, "k", NV_BLOCK, "blocks of nvfp4", err) : st;
}

static enum fib_status check_nvfp4(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = check_nvfp4_block(kase, err);
    if (st != FIB_OK || !fib_case_on(kase, "do_shuffle"))
        return st;
    if (!fib_case_is(kase, "sf_layout", "128x4"))
        return fib_fail(err, FIB_ERR_USAGE, "--sf_layout %s: must be 128x4 with --do_shuffle",
                        fib_case_text(kase, "sf_layout"));
    return fib_rows_multiple_of(kase, "m", SHUFFLE_ROWS, "for --do_shuffle", err);
}

static const struct fib_routine routines[] = {
    FIB_PLANNED("quantization", MXFP8, options, .check = check_mxfp8,
                .summary = "q = e4m3(x / s), s = 2^ceil(log2(max|x| / 448)) a block of 32"),
    FIB_PLANNED("quantization", MXFP4, options, .check = check_mxfp4,
                .summary = "q = e2m1(x / s), s = 2^ceil(log2(max|x| / 6)) a block of 32"),
    FIB_PLANNED("quantization", NVFP4, options, .check = check_nvfp4,
                .summary = "q = e2m1(g x / s), s = e4m3(g max|x| / 6) a block of 16"),
    FIB_PLANNED("quantization", NVFP4_BATCHED, options, .overrides = batched_overrides,
                .check = check_nvfp4_block, .summary = "the same for a batch of matrices"),
};

const struct fib_family fib_family_quantization =
    FIB_FAMILY("quantization", "block quantisers", routines);
