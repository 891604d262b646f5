/* The norm family: flags, legal shapes, tensors, work, oracles (their parts: norm_reference.c). */
#include "routines/norm.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "core/routine.h"
#include "routines/norm_reference.h"
#include "routines/routines.h"
#include "routines/rows.h"

/* What the built RMS forms differ in, as bits. */
enum {
    TAKES_HEADS = 1,   /* --num_heads makes the input [batch_size, num_heads, hidden_size] */
    ADDS_RESIDUAL = 2, /* h = x + residual first; without QUANTISES the result replaces x */
    QUANTISES = 4      /* fp8 output, divided by a scale */
};

/* Most elements of one activation tensor: keeps every byte count of a case below 2^46. */
static const double element_limit = 4398046511104.0; /* 2^42 */
static const int64_t dit_hidden_size = 3072;

#define MAX_BATCH (INT64_C(1) << 26)
#define MAX_HIDDEN (INT64_C(1) << 20)

#define USES_HEADS                                                                                 \
    "rmsnorm gemma_rmsnorm rmsnorm_fp4quant add_rmsnorm_fp4quant fused_qk_rmsnorm_rope"
#define USES_SCALE "rmsnorm_quant fused_add_rmsnorm_quant layernorm_quant"
#define USES_FP4 "rmsnorm_fp4quant add_rmsnorm_fp4quant"

static const struct fib_option norm_options[] = {
    FIB_I64(struct norm_params, batch_size, .min = 1, .max = MAX_BATCH, .required = true,
            .help = "rows, or groups of num_heads rows"),
    FIB_I64(struct norm_params, hidden_size, .min = 1, .max = MAX_HIDDEN, .required = true,
            .help = "elements normalised together (fused_dit_layernorm: rows)"),
    FIB_I64(struct norm_params, num_heads, .min = 1, .max = 65536, .uses = USES_HEADS,
            .help = "input [batch_size, num_heads, hidden_size]"),
    FIB_DTYPE(struct norm_params, input_dtype, .fallback = "bfloat16",
              .choices = "bfloat16 float16", .help = "element type of the input"),
    FIB_F64(struct norm_params, eps, .min_f64 = 0.0, .max_f64 = 1e30, .fallback = "1e-6",
            .help = "added to the mean square or variance"),
    FIB_F64(struct norm_params, scale, .min_f64 = 1e-30, .max_f64 = 1e30, .fallback = "1.0",
            .uses = USES_SCALE, .help = "the result is divided by it before rounding to FP8"),
    FIB_CHOICE(struct norm_params, out_dtype, .fallback = "fp8_e4m3",
               .choices = "fp8_e4m3 fp8_e5m2 nvfp4 mxfp4", .uses = USES_SCALE " " USES_FP4,
               .help = "element type of a quantised output"),
    FIB_SWITCH(struct norm_params, use_global_scale, .uses = USES_FP4,
               .help = "pass a global scale of 1 to the FP4 quantiser"),
    FIB_SWITCH(struct norm_params, is_sf_swizzled_layout, .uses = USES_FP4,
               .help = "block scales in the 128x4 layout"),
    FIB_SWITCH(struct norm_params, output_both_sf_layouts, .uses = "add_rmsnorm_fp4quant",
               .help = "block scales in the 128x4 and the linear layout"),
    FIB_CHOICE(struct norm_params, dit_mode, .fallback = "gate_residual_gamma_beta",
               .choices = "gate_residual_gamma_beta gate_residual_scale_shift residual_scale_shift",
               .uses = "fused_dit_layernorm", .help = "which modulation is fused"),
    FIB_I64(struct norm_params, ppf, .min = 1, .max = 65536, .fallback = "5",
            .uses = "fused_qk_rmsnorm_rope", .help = "frames of patches"),
    FIB_I64(struct norm_params, pph, .min = 1, .max = 65536, .fallback = "12",
            .uses = "fused_qk_rmsnorm_rope", .help = "rows of patches"),
    FIB_I64(struct norm_params, ppw, .min = 1, .max = 65536, .fallback = "32",
            .uses = "fused_qk_rmsnorm_rope", .help = "columns of patches"),
    FIB_ROWS_END,
};

/* float32 is ours: the reference knows the two 16-bit types. */
static const struct fib_option_override plain_overrides[] = {
    {.name = "input_dtype", .choices = "bfloat16 float16 float32"},
    {.name = NULL},
};
static const struct fib_option_override fp8_overrides[] = {
    {.name = "out_dtype", .choices = "fp8_e4m3 fp8_e5m2"},
    {.name = NULL},
};
static const struct fib_option_override layernorm_overrides[] = {
    {.name = "input_dtype", .choices = "bfloat16"},
    {.name = "out_dtype", .choices = "fp8_e4m3 fp8_e5m2"},
    {.name = NULL},
};
/* The reference takes an fp8 name here too and silently means nvfp4. */
static const struct fib_option_override fp4_overrides[] = {
    {.name = "out_dtype", .fallback = "nvfp4"},
    {.name = NULL},
};
static const struct fib_option_override silu_overrides[] = {
    {.name = "input_dtype", .choices = "bfloat16"},
    {.name = NULL},
};
static const struct fib_option_override qk_overrides[] = {
    {.name = "num_heads", .required = true},
    {.name = NULL},
};

static int64_t head_count(const struct norm_params *p, bool takes_heads)
{
    return takes_heads && p->num_heads != FIB_UNSET_I64 ? p->num_heads : 1;
}

static enum fib_status check_size(const struct norm_params *p, int64_t heads, struct fib_error *err)
{
    const double count = (double)p->batch_size * (double)heads * (double)p->hidden_size;
    if (count <= element_limit)
        return FIB_OK;
    if (heads == 1)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--batch_size %lld --hidden_size %lld: the input would have %.0f elements; "
                        "at most 2^42 are allowed",
                        (long long)p->batch_size, (long long)p->hidden_size, count);
    return fib_fail(err, FIB_ERR_USAGE,
                    "--batch_size %lld --num_heads %lld --hidden_size %lld: the input would have "
                    "%.0f elements; at most 2^42 are allowed",
                    (long long)p->batch_size, (long long)heads, (long long)p->hidden_size, count);
}

static enum fib_status check_plain(const struct fib_case *kase, struct fib_error *err)
{
    return check_size(kase->params, 1, err);
}

static enum fib_status check_heads(const struct fib_case *kase, struct fib_error *err)
{
    const struct norm_params *const p = kase->params;
    return check_size(p, head_count(p, true), err);
}

static enum fib_status check_fp4(const struct fib_case *kase, struct fib_error *err)
{
    const struct norm_params *const p = kase->params;
    const bool mxfp4 = strcmp(p->out_dtype, "mxfp4") == 0;
    const int64_t block = mxfp4 ? 32 : 16;
    if (p->hidden_size % block != 0 || p->hidden_size < 64)
        return fib_fail(err, FIB_ERR_USAGE,
                        "--hidden_size %lld: %s output needs a multiple of %lld that is at least "
                        "64",
                        (long long)p->hidden_size, mxfp4 ? "mxfp4" : "nvfp4", (long long)block);
    return check_heads(kase, err);
}

static enum fib_status check_dit(const struct fib_case *kase, struct fib_error *err)
{
    const struct norm_params *const p = kase->params;
    const double count = (double)p->batch_size * (double)p->hidden_size * (double)dit_hidden_size;
    if (count <= element_limit)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--batch_size %lld --hidden_size %lld: the input would have %.0f elements "
                    "(rows of %lld); at most 2^42 are allowed",
                    (long long)p->batch_size, (long long)p->hidden_size, count,
                    (long long)dit_hidden_size);
}

static enum fib_status check_qk_size(const struct norm_params *p, struct fib_error *err)
{
    const double count = (double)p->batch_size * (double)p->ppf * (double)p->pph * (double)p->ppw *
                         3.0 * (double)p->hidden_size;
    if (count <= element_limit)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--batch_size %lld --ppf %lld --pph %lld --ppw %lld --hidden_size %lld: the "
                    "input would have %.0f elements; at most 2^42 are allowed",
                    (long long)p->batch_size, (long long)p->ppf, (long long)p->pph,
                    (long long)p->ppw, (long long)p->hidden_size, count);
}

static enum fib_status check_qk(const struct fib_case *kase, struct fib_error *err)
{
    const struct norm_params *const p = kase->params;
    const int64_t heads = p->num_heads;
    if (heads > 32)
        return fib_fail(err, FIB_ERR_USAGE, "--num_heads %lld: at most 32 are allowed",
                        (long long)heads);
    const int64_t head_dim = p->hidden_size / heads;
    if (head_dim * heads != p->hidden_size ||
        (head_dim != 64 && head_dim != 128 && head_dim != 256))
        return fib_fail(err, FIB_ERR_USAGE,
                        "--hidden_size %lld: must be 64, 128 or 256 times --num_heads %lld",
                        (long long)p->hidden_size, (long long)heads);
    return check_qk_size(p, err);
}

/* A tensor of the input's shape. */
static struct fib_tensor activation(const struct norm_params *p, bool takes_heads, const char *name,
                                    enum fib_role role, enum fib_dtype dtype)
{
    struct fib_tensor t = {
        .name = name,
        .role = role,
        .dtype = dtype,
        .rank = 2,
        .shape = {p->batch_size, p->hidden_size},
        .row_elems = p->hidden_size,
    };
    if (takes_heads && p->num_heads != FIB_UNSET_I64) {
        t.rank = 3;
        t.shape[1] = p->num_heads;
        t.shape[2] = p->hidden_size;
    }
    if (role != FIB_OUTPUT)
        t.fill = (struct fib_fill)FIB_FILL_DATA;
    if (role != FIB_INPUT)
        t.check = FIB_CHECK_FLOAT;
    return t;
}

static void add_row_vector(struct fib_problem *problem, const struct norm_params *p,
                           const char *name, enum fib_dtype dtype)
{
    const struct fib_tensor t = {.name = name,
                                 .role = FIB_INPUT,
                                 .dtype = dtype,
                                 .rank = 1,
                                 .shape = {p->hidden_size},
                                 .fill = FIB_FILL_DATA};
    fib_problem_add(problem, &t);
}

/* The scale of a quantised output and that output; returns bytes of one of its elements. */
static double add_codes(struct fib_problem *problem, const struct norm_params *p)
{
    const struct fib_tensor scale = {.name = "scale",
                                     .role = FIB_SCALAR,
                                     .dtype = FIB_F32,
                                     .rank = 1,
                                     .shape = {1},
                                     .fill = FIB_FILL_CONST((float)p->scale)};
    fib_problem_add(problem, &scale);
    enum fib_dtype dtype = FIB_FP8_E4M3;
    const bool known = fib_dtype_parse(p->out_dtype, &dtype);
    assert(known);
    (void)known;
    struct fib_tensor out = activation(p, false, "out", FIB_OUTPUT, dtype);
    out.check = FIB_CHECK_CODES;
    fib_problem_add(problem, &out);
    return (double)fib_dtype_bytes(dtype);
}

/* Rows and tolerance; `flops_per_element` is the routine's own count. Conversions and divisions
 * make the oracle's element about twice as dear, each exact rounding of it by another 20. */
static void set_rows(struct fib_problem *problem, const struct norm_params *p, int64_t heads,
                     double flops_per_element, double roundings)
{
    problem->row_count = p->batch_size * heads;
    problem->boundary_row = heads > 1 ? heads : 0;
    problem->row_flops = (2.0 * flops_per_element + 20.0 * roundings) * (double)p->hidden_size;
    problem->accumulate_roundoff = 0x1p-24;
    problem->cost.flops = flops_per_element * (double)problem->row_count * (double)p->hidden_size;
}

static void describe_rms(const struct fib_case *kase, struct fib_problem *problem, unsigned form)
{
    const struct norm_params *const p = kase->params;
    const bool takes_heads = form & TAKES_HEADS, residual = form & ADDS_RESIDUAL;
    const bool codes = form & QUANTISES, replaces_x = residual && !codes;
    const enum fib_dtype dtype = p->input_dtype;
    const double in_bytes = (double)fib_dtype_bytes(dtype);
    double out_bytes = in_bytes;
    struct fib_tensor t =
        activation(p, takes_heads, "x", replaces_x ? FIB_INOUT : FIB_INPUT, dtype);
    fib_problem_add(problem, &t);
    if (residual) {
        t = activation(p, takes_heads, "residual", FIB_INOUT, dtype);
        fib_problem_add(problem, &t);
    }
    add_row_vector(problem, p, "w", dtype);
    if (codes) {
        out_bytes = add_codes(problem, p);
    } else if (!replaces_x) {
        t = activation(p, takes_heads, "y", FIB_OUTPUT, dtype);
        fib_problem_add(problem, &t);
    }
    const int64_t heads = head_count(p, takes_heads);
    set_rows(problem, p, heads, residual ? 6.0 : 5.0, codes ? 1.0 : 0.0);
    const double count = (double)problem->row_count * (double)p->hidden_size;
    problem->cost.traffic_bytes =
        count * ((residual ? 3.0 : 1.0) * in_bytes + out_bytes) + (double)p->hidden_size * in_bytes;
}

static void describe_rmsnorm(const struct fib_case *kase, struct fib_problem *problem)
{
    describe_rms(kase, problem, TAKES_HEADS);
}

static void describe_fused_add_rmsnorm(const struct fib_case *kase, struct fib_problem *problem)
{
    describe_rms(kase, problem, ADDS_RESIDUAL);
}

static void describe_rmsnorm_quant(const struct fib_case *kase, struct fib_problem *problem)
{
    describe_rms(kase, problem, QUANTISES);
}

static void describe_fused_add_rmsnorm_quant(const struct fib_case *kase,
                                             struct fib_problem *problem)
{
    describe_rms(kase, problem, ADDS_RESIDUAL | QUANTISES);
}

static void describe_layernorm_quant(const struct fib_case *kase, struct fib_problem *problem)
{
    const struct norm_params *const p = kase->params;
    const struct fib_tensor x = activation(p, false, "x", FIB_INPUT, p->input_dtype);
    fib_problem_add(problem, &x);
    add_row_vector(problem, p, "gamma", FIB_F32);
    add_row_vector(problem, p, "beta", FIB_F32);
    const double out_bytes = add_codes(problem, p);
    set_rows(problem, p, 1, 7.0, 3.0);
    const double count = (double)p->batch_size * (double)p->hidden_size;
    problem->cost.traffic_bytes = count * ((double)fib_dtype_bytes(p->input_dtype) + out_bytes) +
                                  2.0 * (double)p->hidden_size * (double)fib_dtype_bytes(FIB_F32);
}

/* ---- oracles ---- */

#define RMS_REFERENCE(name_, output_, weight_offset_)                                              \
    static FIB_NORM_REFERENCE(name_)                                                               \
    {                                                                                              \
        const struct fib_rms_form form = {.weight_offset = (weight_offset_), .output = (output_)}; \
        fib_norm_rms_rows(kase, problem, inputs, first, last, rows, &form);                        \
    }

RMS_REFERENCE(rmsnorm_reference, "y", 0.0)
RMS_REFERENCE(gemma_rmsnorm_reference, "y", 1.0)
RMS_REFERENCE(fused_add_rmsnorm_reference, "x", 0.0)
RMS_REFERENCE(gemma_fused_add_rmsnorm_reference, "x", 1.0)
RMS_REFERENCE(rmsnorm_quant_reference, "out", 0.0)
RMS_REFERENCE(fused_add_rmsnorm_quant_reference, "out", 0.0)

/* out = fp8(clamp(bf16(bf16((x - mean) / sqrt(var + eps) * gamma + beta) / scale))) */
static FIB_NORM_REFERENCE(layernorm_quant_reference)
{
    const int x = fib_norm_tensor(problem, "x"), out = fib_norm_tensor(problem, "out");
    const int gamma = fib_norm_tensor(problem, "gamma"), beta = fib_norm_tensor(problem, "beta");
    const struct fib_tensor *const output = &problem->tensors[out];
    const double scale = fib_norm_scalar(problem, inputs, "scale");
    const int64_t cols = output->row_elems;
    for (int64_t row = first; row < last; row++) {
        double *const value = rows->value[out] + (row - first) * cols;
        double *const terms = rows->terms[out] + (row - first) * cols;
        fib_norm_decode(problem, inputs, x, row * cols, cols, value);
        fib_norm_standardise(value, cols, fib_norm_eps(kase));
        fib_norm_scale_by_weight(problem, inputs, gamma, 0.0, 1.0, value, cols);
        fib_norm_decode(problem, inputs, beta, 0, cols, terms);
        for (int64_t i = 0; i < cols; i++) {
            const double y = fib_dtype_round(FIB_BF16, value[i] + terms[i]);
            value[i] = fib_dtype_round(FIB_BF16, y / scale);
        }
        fib_norm_finish_codes(output->dtype, 1.0, value, terms, cols);
    }
}

/* ---- rows ---- */

#define COST_RULE "N elements of x, H = hidden_size, E bytes of input_dtype. "
#define SCALE_RULE " The 4 bytes of the scale are not counted."

static const char plain_layout[] =
    "x [batch_size, hidden_size] or [batch_size, num_heads, hidden_size], w [hidden_size] and y "
    "like x, all of input_dtype. y = x / sqrt(mean(x^2) + eps) * w over the last dimension, with "
    "one rounding, at the end. float32 input is an addition of this tool.";
static const char gemma_layout[] =
    "Like rmsnorm with w + 1 in place of w; the sum is not rounded. float32 input is an addition "
    "of this tool.";
static const char fused_layout[] =
    "x and residual [batch_size, hidden_size], w [hidden_size], all of input_dtype. h = x + "
    "residual is not rounded for the norm. x is replaced by h / sqrt(mean(h^2) + eps) * w, "
    "residual by h, each with one rounding; both are checked. float32 input is an addition of "
    "this tool.";
static const char gemma_fused_layout[] =
    "Like fused_add_rmsnorm with w + 1 in place of w; the sum is not rounded. float32 input is an "
    "addition of this tool.";
static const char quant_layout[] =
    "x [batch_size, hidden_size] and w [hidden_size] of input_dtype, scale one float32, out like x "
    "of out_dtype. out = x / sqrt(mean(x^2) + eps) * w / scale, clamped to the largest finite "
    "value of out_dtype, with one rounding.";
static const char fused_quant_layout[] =
    "x (unchanged) and residual [batch_size, hidden_size], w [hidden_size] of input_dtype, scale "
    "one float32, out like x of out_dtype. h = x + residual is not rounded for the norm; out = h / "
    "sqrt(mean(h^2) + eps) * w / scale, clamped, with one rounding; residual is replaced by h. "
    "Both are checked.";
static const char layernorm_layout[] =
    "x [batch_size, hidden_size] bfloat16, gamma and beta [hidden_size] float32, scale one "
    "float32, out like x of out_dtype. (x - mean) / sqrt(var + eps) * gamma + beta with the biased "
    "variance is rounded to bfloat16, divided by scale, rounded to bfloat16, clamped and rounded "
    "to out_dtype.";

static const char plain_cost[] = COST_RULE "flops = 5 N; bytes = 2 N E + H E.";
static const char fused_cost[] = COST_RULE "flops = 6 N; bytes = 4 N E + H E.";
static const char quant_cost[] = COST_RULE "flops = 5 N; bytes = N E + H E + N." SCALE_RULE;
static const char fused_quant_cost[] = COST_RULE "flops = 6 N; bytes = 3 N E + H E + N." SCALE_RULE;
static const char layernorm_cost[] = COST_RULE "flops = 7 N; bytes = N E + 8 H + N." SCALE_RULE;

/* Members that all rows of the family share. */
#define NORM_ROW                                                                                   \
    .family = "norm", .params_size = sizeof(struct norm_params), .options = norm_options,          \
    .default_backends = "cuda"

static const struct fib_routine norm_routines[] = {
    {NORM_ROW, .name = "rmsnorm", .summary = "y = x / rms(x) * w", .overrides = plain_overrides,
     .check = check_heads, .describe = describe_rmsnorm, .reference = rmsnorm_reference,
     .layout_note = plain_layout, .cost_note = plain_cost},
    {NORM_ROW, .name = "fused_add_rmsnorm",
     .summary = "h = x + residual; x = h / rms(h) * w; residual = h", .overrides = plain_overrides,
     .check = check_plain, .describe = describe_fused_add_rmsnorm,
     .reference = fused_add_rmsnorm_reference, .layout_note = fused_layout,
     .cost_note = fused_cost},
    {NORM_ROW, .name = "gemma_rmsnorm", .summary = "y = x / rms(x) * (w + 1)",
     .overrides = plain_overrides, .check = check_heads, .describe = describe_rmsnorm,
     .reference = gemma_rmsnorm_reference, .layout_note = gemma_layout,
     .cost_note = plain_cost},
    {NORM_ROW, .name = "gemma_fused_add_rmsnorm",
     .summary = "h = x + residual; x = h / rms(h) * (w + 1); residual = h",
     .overrides = plain_overrides, .check = check_plain, .describe = describe_fused_add_rmsnorm,
     .reference = gemma_fused_add_rmsnorm_reference, .layout_note = gemma_fused_layout,
     .cost_note = fused_cost},
    {NORM_ROW, .name = "rmsnorm_quant", .summary = "out = fp8(x / rms(x) * w / scale)",
     .overrides = fp8_overrides, .check = check_plain, .describe = describe_rmsnorm_quant,
     .reference = rmsnorm_quant_reference, .layout_note = quant_layout,
     .cost_note = quant_cost},
    {NORM_ROW, .name = "fused_add_rmsnorm_quant",
     .summary = "h = x + residual; out = fp8(h / rms(h) * w / scale); residual = h",
     .overrides = fp8_overrides, .check = check_plain, .describe = describe_fused_add_rmsnorm_quant,
     .reference = fused_add_rmsnorm_quant_reference, .layout_note = fused_quant_layout,
     .cost_note = fused_quant_cost},
    {NORM_ROW, .name = "layernorm_quant",
     .summary = "out = fp8(((x - mean) / std(x) * gamma + beta) / scale)",
     .overrides = layernorm_overrides, .check = check_plain, .describe = describe_layernorm_quant,
     .reference = layernorm_quant_reference, .layout_note = layernorm_layout,
     .cost_note = layernorm_cost},
    {NORM_ROW, .name = "rmsnorm_fp4quant", .summary = "fp4 blocks of x / rms(x) * w",
     .overrides = fp4_overrides, .check = check_fp4,
     .unavailable = "not built yet (no FP4 block quantiser); rmsnorm_quant "
                    "with --out_dtype fp8_e4m3 is the nearest routine that runs"},
    {NORM_ROW, .name = "add_rmsnorm_fp4quant",
     .summary = "h = x + residual; fp4 blocks of h / rms(h) * w; residual = h",
     .overrides = fp4_overrides, .check = check_fp4,
     .unavailable = "not built yet (no FP4 block quantiser); "
                    "fused_add_rmsnorm_quant with --out_dtype fp8_e4m3 is the nearest routine "
                    "that runs"},
    {NORM_ROW, .name = "fused_rmsnorm_silu", .summary = "u = x / rms(x) * w; y = u / (1 + e^-u)",
     .overrides = silu_overrides, .check = check_plain,
     .unavailable = "not built yet; rmsnorm is the nearest routine that "
                    "runs"},
    {NORM_ROW, .name = "fused_dit_layernorm",
     .summary = "residual, gate, LayerNorm and modulation of a diffusion transformer",
     .check = check_dit,
     .unavailable = "not built yet; layernorm_quant is the nearest routine "
                    "that runs"},
    {NORM_ROW, .name = "fused_qk_rmsnorm_rope",
     .summary = "RMSNorm of q and k over all heads, then 3-D rotary embedding",
     .overrides = qk_overrides, .check = check_qk,
     .unavailable = "not built yet; rmsnorm is the nearest routine that "
                    "runs"},
};

const struct fib_family fib_family_norm = {
    .name = "norm",
    .summary = "RMSNorm and LayerNorm, fused with residual add and quantisation",
    .routines = norm_routines,
    .routine_count = sizeof(norm_routines) / sizeof(norm_routines[0]),
};
