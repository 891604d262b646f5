/* Selective state-space update (Mamba 2): flags and rules. */
#include "routines/routines.h"
#include "routines/rows.h"

static const struct fib_option options[] = {
    FIB_ROW_I64("batch_size", 1, FIB_LIMIT_BATCH, .required = true, .help = "requests"),
    FIB_ROW_I64("nheads", 1, FIB_LIMIT_HEADS, .required = true, .help = "heads"),
    FIB_ROW_I64("dim", 1, FIB_LIMIT_HEADS, .required = true, .help = "width of a head"),
    FIB_ROW_I64("dstate", 1, FIB_LIMIT_HEADS, .required = true, .help = "state of an element"),
    FIB_ROW_I64("ngroups", 1, FIB_LIMIT_HEADS, .fallback = "8",
                .help = "groups of heads that share B and C; divides the heads"),
    FIB_ROW_I64("cache_steps", 0, FIB_LIMIT_HEADS, .fallback = "0",
                .help = "tokens of a request; 0 is one token a call"),
    FIB_ROW_CHOICE("input_dtype", "bfloat16", .fallback = "bfloat16",
                   .help = "dtype of x, B, C, z"),
    FIB_ROW_CHOICE("state_dtype", "bfloat16 float16 float32", .fallback = "bfloat16",
                   .help = "dtype of the state"),
    FIB_ROW_CHOICE("weight_dtype", "bfloat16 float32", .fallback = "float32",
                   .help = "dtype of dt, D and dt_bias"),
    FIB_ROW_SWITCH("has_z", .help = "gate the output by silu(z)"),
    FIB_ROW_SWITCH("dt_softplus", .help = "softplus on the time step"),
    FIB_ROW_SWITCH("varlen", .help = "requests of different length; needs --cache_steps"),
    FIB_ROW_CHOICE("algorithm", "auto simple vertical horizontal", .fallback = "auto",
                   .help = "which kernel of the flashinfer backend"),
    FIB_ROWS_END,
};

static enum fib_status check(const struct fib_case *kase, struct fib_error *err)
{
    if (fib_case_on(kase, "varlen") && fib_case_i64(kase, "cache_steps") == 0)
        return fib_fail(err, FIB_ERR_USAGE, "--varlen: needs --cache_steps 1 or more");
    return fib_rows_multiple_of_flag(kase, "nheads", "ngroups", err);
}

static const struct fib_routine routines[] = {
    FIB_PLANNED("mamba", "selective_state_update", options, .check = check,
                .summary = "S = exp(A dt) S + dt x B^T, y = S C + D x"),
};

const struct fib_family fib_family_mamba =
    FIB_FAMILY("mamba", "selective state-space update", routines);
