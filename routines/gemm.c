/* The gemm family: flags, shape rules, tensors and work of dense matrix products. The float64
 * reference is in gemm_reference.c. */
#include "routines/gemm.h"

#include <assert.h>
#include <stdio.h>

#include "core/routine.h"
#include "routines/routines.h"
#include "routines/rows.h"

/* A case whose tensors pass this many bytes together fits no machine; below it every size and
 * every count fits 63 bits. */
static const double limit_bytes = 0x1p46;

#define GROUPWISE "gemm_fp8_nt_groupwise group_gemm_fp8_nt_groupwise"

static const struct fib_option gemm_options[] = {
    FIB_I64(struct gemm_params, batch_size, .min = 1, .max = 1 << 20, .fallback = "1",
            .uses = "bmm_fp8 mm_fp8 bmm_mxfp8 bmm_bf16", .help = "independent products"),
    FIB_I64(struct gemm_params, m, .min = 1, .max = INT32_MAX, .required = true,
            .help = "rows of A and of the output"),
    FIB_I64(struct gemm_params, n, .min = 1, .max = INT32_MAX, .required = true,
            .help = "columns of B and of the output"),
    FIB_I64(struct gemm_params, k, .min = 1, .max = INT32_MAX, .required = true,
            .help = "length of the inner products"),
    FIB_I64(struct gemm_params, tile_size, .min = 1, .max = INT32_MAX, .fallback = "128",
            .uses = GROUPWISE, .help = "elements that share a scale"),
    FIB_I64(struct gemm_params, group_size, .min = 1, .max = 1 << 20, .fallback = "1",
            .uses = "group_gemm_fp8_nt_groupwise", .help = "products in the group"),
    FIB_CHOICE(struct gemm_params, scale_major_mode, .choices = "MN K", .fallback = "MN",
               .uses = GROUPWISE, .help = "index that runs fastest in the scale tensors"),
    FIB_CHOICE(struct gemm_params, input_dtype, .choices = FIB_ANY_DTYPE, .fallback = "fp8_e4m3",
               .uses = "bmm_fp8 mm_fp8 mm_bf16_fp4 tinygemm_bf16", .help = "format of A"),
    FIB_CHOICE(struct gemm_params, mat2_dtype, .choices = FIB_ANY_DTYPE, .fallback = "fp8_e4m3",
               .uses = "bmm_fp8 mm_fp8 tinygemm_bf16", .help = "format of B"),
    FIB_DTYPE(struct gemm_params, out_dtype, .choices = "bfloat16 float16 float32",
              .fallback = "bfloat16", .help = "format of the output"),
    FIB_I64(struct gemm_params, mma_sm, .min = 1, .max = 2, .fallback = "1", .uses = GROUPWISE,
            .help = "multiprocessors that share one matrix instruction"),
    FIB_SWITCH(struct gemm_params, use_128x4_sf_layout, .uses = "mm_fp4 mm_mxfp8",
               .help = "scales of A in 128x4 tiles instead of 8x4"),
    FIB_SWITCH(struct gemm_params, use_nvfp4, .uses = "mm_fp4",
               .help = "NVFP4 blocks of 16 instead of MXFP4 blocks of 32"),
    FIB_SWITCH(struct gemm_params, autotune,
               .uses = "bmm_fp8 mm_fp8 bmm_mxfp8 mm_mxfp8 mm_fp4 mm_bf16_fp4 mm_bf16 bmm_bf16",
               .help = "search for the fastest kernel before timing"),
    FIB_SWITCH(struct gemm_params, bias, .uses = "mm_bf16 tinygemm_bf16",
               .help = "add a row vector to every row of the output"),
    {.name = NULL},
};

static const struct fib_option_override half_out[] = {
    {.name = "out_dtype", .choices = "bfloat16 float16"},
    {.name = NULL},
};
static const struct fib_option_override bmm_fp8_overrides[] = {
    {.name = "input_dtype", .choices = "fp8_e4m3 fp8_e5m2"},
    {.name = "mat2_dtype", .choices = "fp8_e4m3 fp8_e5m2"},
    {.name = "out_dtype", .choices = "bfloat16 float16"},
    {.name = NULL},
};
static const struct fib_option_override mm_fp8_overrides[] = {
    {.name = "input_dtype", .choices = "fp8_e4m3"},
    {.name = "mat2_dtype", .choices = "fp8_e4m3"},
    {.name = "out_dtype", .choices = "bfloat16"},
    {.name = NULL},
};
static const struct fib_option_override mm_bf16_fp4_overrides[] = {
    {.name = "input_dtype", .choices = "bfloat16", .fallback = "bfloat16"},
    {.name = "out_dtype", .choices = "bfloat16 float16"},
    {.name = NULL},
};
static const struct fib_option_override tinygemm_overrides[] = {
    {.name = "input_dtype", .choices = "bfloat16", .fallback = "bfloat16"},
    {.name = "mat2_dtype", .choices = "bfloat16", .fallback = "bfloat16"},
    {.name = "out_dtype", .choices = "bfloat16"},
    {.name = NULL},
};

/* ---- checks ---- */

static const struct gemm_params *params_of(const struct fib_case *kase)
{
    return kase->params;
}

/* Bytes of A, B and the output, each element counted with at most 4 bytes. */
static enum fib_status check_bytes(const struct fib_case *kase, double count, const char *flag,
                                   struct fib_error *err)
{
    const struct gemm_params *p = params_of(kase);
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    const double total_bytes = 4.0 * count * (m * k + n * k + m * n);
    if (total_bytes < limit_bytes)
        return FIB_OK;
    char factor[48] = "";
    if (flag)
        snprintf(factor, sizeof(factor), "--%s %.0f ", flag, count);
    return fib_fail(err, FIB_ERR_USAGE,
                    "%s--m %lld --n %lld --k %lld: the matrices would take up to %.3g bytes, must "
                    "be below %.3g (2^46)",
                    factor, (long long)p->m, (long long)p->n, (long long)p->k, total_bytes,
                    limit_bytes);
}

static enum fib_status check_single(const struct fib_case *kase, struct fib_error *err)
{
    return check_bytes(kase, 1.0, NULL, err);
}

static enum fib_status check_batched(const struct fib_case *kase, struct fib_error *err)
{
    return check_bytes(kase, (double)params_of(kase)->batch_size, "batch_size", err);
}

static enum fib_status check_tiles(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = fib_rows_multiple_of_flag(kase, "n", "tile_size", err);
    return st == FIB_OK ? fib_rows_multiple_of_flag(kase, "k", "tile_size", err) : st;
}

static enum fib_status check_groupwise(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = check_tiles(kase, err);
    return st == FIB_OK ? check_single(kase, err) : st;
}

static enum fib_status check_group(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = check_tiles(kase, err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "m", 4, "rows of a group", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "n", 8, "grouped fp8", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "k", 16, "grouped fp8", err);
    return st == FIB_OK ? check_bytes(kase, (double)params_of(kase)->group_size, "group_size", err)
                        : st;
}

static enum fib_status check_mm_fp8(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = fib_rows_exactly(kase, "batch_size", 1, "bmm_fp8 has batches", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "n", 32, "low-latency weight layout", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "k", 128, "low-latency weight layout", err);
    return st == FIB_OK ? check_single(kase, err) : st;
}

static enum fib_status check_mm_mxfp8(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = fib_rows_multiple_of(kase, "k", 32, "blocks of MXFP8", err);
    return st == FIB_OK ? check_single(kase, err) : st;
}

static enum fib_status check_bmm_mxfp8(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = fib_rows_multiple_of(kase, "k", 32, "blocks of MXFP8", err);
    return st == FIB_OK ? check_batched(kase, err) : st;
}

static enum fib_status check_mm_fp4(const struct fib_case *kase, struct fib_error *err)
{
    const enum fib_status st = params_of(kase)->use_nvfp4
                                   ? fib_rows_multiple_of(kase, "k", 16, "blocks of NVFP4", err)
                                   : fib_rows_multiple_of(kase, "k", 32, "blocks of MXFP4", err);
    return st == FIB_OK ? check_single(kase, err) : st;
}

static enum fib_status check_mm_bf16_fp4(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = fib_rows_multiple_of(kase, "n", 64, "packed 4-bit weights", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "k", 16, "blocks of NVFP4", err);
    return st == FIB_OK ? check_single(kase, err) : st;
}

static enum fib_status check_tinygemm(const struct fib_case *kase, struct fib_error *err)
{
    enum fib_status st = fib_rows_multiple_of(kase, "n", 16, "tile of the kernel", err);
    if (st == FIB_OK)
        st = fib_rows_multiple_of(kase, "k", 64, "tile of the kernel", err);
    return st == FIB_OK ? check_single(kase, err) : st;
}

/* ---- tensors and work ---- */

/* A matrix operand or the output; rank 2 for the mm_ routines. */
static struct fib_tensor matrix(const char *name, bool batched, int64_t batch, int64_t rows,
                                int64_t cols)
{
    struct fib_tensor tensor = {.name = name, .rank = batched ? 3 : 2};
    int64_t *shape = tensor.shape;
    if (batched)
        *shape++ = batch;
    shape[0] = rows;
    shape[1] = cols;
    return tensor;
}

/* fp8 operands: the generator's bound meets the format's largest value, so that all of its range
 * is used and nothing saturates. A constant takes the place of a scale measured from the data,
 * which would tie every element to all others. */
static double fp8_fill_scale(enum fib_dtype dtype)
{
    return fib_dtype_max(dtype) / FIB_NORMAL_MAX;
}

static void set_operand(struct fib_tensor *tensor, enum fib_dtype dtype, bool scaled)
{
    tensor->role = FIB_INPUT;
    tensor->dtype = dtype;
    tensor->fill = (struct fib_fill)FIB_FILL_DATA;
    if (scaled)
        tensor->fill.scale = (float)fp8_fill_scale(dtype);
}

static void add_scalar(struct fib_problem *problem, const char *name, double value)
{
    fib_problem_add(problem, &(struct fib_tensor){.name = name,
                                                  .role = FIB_SCALAR,
                                                  .dtype = FIB_F32,
                                                  .rank = 1,
                                                  .shape = {1},
                                                  .fill = FIB_FILL_CONST((float)value)});
}

static void set_work(struct fib_problem *problem, const struct gemm_shape *shape)
{
    const double b = (double)shape->batch, m = (double)shape->m;
    const double n = (double)shape->n, k = (double)shape->k;
    const double a_bytes = (double)fib_dtype_bytes(shape->a);
    const double b_bytes = (double)fib_dtype_bytes(shape->b);
    const double out_bytes = (double)fib_dtype_bytes(shape->out);
    problem->row_count = shape->batch * shape->m;
    problem->row_flops = 2.0 * n * k;
    problem->boundary_row = shape->m;
    problem->accumulate_roundoff = 0x1p-24;
    problem->cost.flops = 2.0 * b * m * n * k;
    problem->cost.traffic_bytes = b * (m * k * a_bytes + n * k * b_bytes + m * n * out_bytes);
    if (shape->bias) {
        problem->cost.flops += m * n;
        problem->cost.traffic_bytes += 2.0 * n;
    }
}

static void build(struct fib_problem *problem, const struct gemm_shape *shape, bool batched)
{
    struct fib_tensor a = matrix("a", batched, shape->batch, shape->m, shape->k);
    struct fib_tensor b = matrix("b", batched, shape->batch, shape->n, shape->k);
    struct fib_tensor out = matrix("out", batched, shape->batch, shape->m, shape->n);
    set_operand(&a, shape->a, shape->scaled);
    set_operand(&b, shape->b, shape->scaled);
    out.role = FIB_OUTPUT;
    out.dtype = shape->out;
    out.check = FIB_CHECK_FLOAT;
    a.row_elems = shape->k;
    out.row_elems = shape->n;
    fib_problem_add(problem, &a);
    fib_problem_add(problem, &b);
    fib_problem_add(problem, &out);
    if (shape->bias) {
        struct fib_tensor bias = {.name = "bias", .rank = 1, .shape = {shape->n}};
        set_operand(&bias, FIB_BF16, false);
        fib_problem_add(problem, &bias);
    }
    if (shape->scaled) {
        add_scalar(problem, "a_scale", 1.0 / fp8_fill_scale(shape->a));
        add_scalar(problem, "b_scale", 1.0 / fp8_fill_scale(shape->b));
    }
    set_work(problem, shape);
}

static void describe_mm_bf16(const struct fib_case *kase, struct fib_problem *problem)
{
    const struct gemm_params *p = params_of(kase);
    const struct gemm_shape shape = {.batch = 1,
                                     .m = p->m,
                                     .n = p->n,
                                     .k = p->k,
                                     .a = FIB_BF16,
                                     .b = FIB_BF16,
                                     .out = p->out_dtype,
                                     .bias = p->bias};
    build(problem, &shape, false);
}

static void describe_bmm_bf16(const struct fib_case *kase, struct fib_problem *problem)
{
    const struct gemm_params *p = params_of(kase);
    const struct gemm_shape shape = {.batch = p->batch_size,
                                     .m = p->m,
                                     .n = p->n,
                                     .k = p->k,
                                     .a = FIB_BF16,
                                     .b = FIB_BF16,
                                     .out = p->out_dtype};
    build(problem, &shape, true);
}

static void describe_bmm_fp8(const struct fib_case *kase, struct fib_problem *problem)
{
    const struct gemm_params *p = params_of(kase);
    struct gemm_shape shape = {.batch = p->batch_size,
                               .m = p->m,
                               .n = p->n,
                               .k = p->k,
                               .out = p->out_dtype,
                               .scaled = true};
    const bool known =
        fib_dtype_parse(p->input_dtype, &shape.a) && fib_dtype_parse(p->mat2_dtype, &shape.b);
    assert(known); /* the routine's choices are fp8 formats */
    (void)known;
    build(problem, &shape, true);
}

void fib_gemm_shape(const struct fib_problem *problem, struct gemm_shape *shape)
{
    const struct fib_tensor *a = &problem->tensors[GEMM_A];
    const struct fib_tensor *b = &problem->tensors[GEMM_B];
    const int last = a->rank - 1;
    *shape = (struct gemm_shape){
        .batch = a->rank == 3 ? a->shape[0] : 1,
        .m = a->shape[last - 1],
        .n = b->shape[last - 1],
        .k = a->shape[last],
        .a = a->dtype,
        .b = b->dtype,
        .out = problem->tensors[GEMM_OUT].dtype,
        .bias = fib_problem_find(problem, "bias") >= 0,
        .scaled = fib_problem_find(problem, "a_scale") >= 0,
    };
}

/* ---- rows ---- */

#define NOT_BUILT "not implemented in this version; "
#define GEMM_ROW                                                                                   \
    .family = "gemm", .params_size = sizeof(struct gemm_params), .options = gemm_options

static const struct fib_routine gemm_routines[] = {
    {.name = "gemm_fp8_nt_groupwise",
     GEMM_ROW,
     .summary = "out = A B^T, fp8 with one scale per tile",
     .unavailable = NOT_BUILT "bmm_fp8 measures fp8 with one scale per tensor",
     .overrides = half_out,
     .default_backends = "cutlass",
     .check = check_groupwise},
    {.name = "group_gemm_fp8_nt_groupwise",
     GEMM_ROW,
     .summary = "out[g] = A[g] B[g]^T for a group, fp8 with one scale per tile",
     .unavailable = NOT_BUILT "bmm_fp8 measures a batch of fp8 products",
     .overrides = half_out,
     .default_backends = "cutlass",
     .check = check_group},
    {.name = "bmm_fp8",
     GEMM_ROW,
     .summary = "out[b] = (A[b] B[b]^T) a_scale b_scale, fp8 operands",
     .overrides = bmm_fp8_overrides,
     .default_backends = "cublaslt",
     .check = check_batched,
     .describe = describe_bmm_fp8,
     .reference = fib_gemm_reference,
     .layout_note = "a [batch_size, m, k] and b [batch_size, n, k] hold fp8 codes, k contiguous in "
                    "both; a_scale and b_scale are one f32 each; out [batch_size, m, n] = "
                    "round(a_scale b_scale sum_k a[i][k] b[j][k]). Operands are normal draws "
                    "stretched so that the generator's bound meets the format's largest value, "
                    "and the scales undo it: constants in place of a scale taken from the data.",
     .cost_note = "flops = 2 batch_size m n k; bytes = batch_size (m k + n k + m n "
                  "sizeof(out)). The two scales are not counted."},
    {.name = "mm_fp8",
     GEMM_ROW,
     .summary = "out = (A B^T) alpha, fp8 operands, weights laid out for small m",
     .unavailable = NOT_BUILT "bmm_fp8 with --batch_size 1 computes the same",
     .overrides = mm_fp8_overrides,
     .default_backends = "trtllm_low_latency",
     .check = check_mm_fp8},
    {.name = "bmm_mxfp8",
     GEMM_ROW,
     .summary = "out[b] = A[b] B[b]^T, fp8 in blocks of 32",
     .unavailable = NOT_BUILT "bmm_fp8 measures fp8 with one scale per tensor",
     .overrides = half_out,
     .default_backends = "cudnn",
     .check = check_bmm_mxfp8},
    {.name = "mm_mxfp8",
     GEMM_ROW,
     .summary = "out = A B^T, fp8 in blocks of 32",
     .unavailable = NOT_BUILT "bmm_fp8 measures fp8 with one scale per tensor",
     .overrides = half_out,
     .default_backends = "cudnn",
     .check = check_mm_mxfp8},
    {.name = "mm_fp4",
     GEMM_ROW,
     .summary = "out = A B^T, 4-bit floats in blocks",
     .unavailable = FIB_NOT_BUILT,
     .overrides = half_out,
     .default_backends = "cudnn",
     .check = check_mm_fp4},
    {.name = "mm_bf16_fp4",
     GEMM_ROW,
     .summary = "out = A B^T, bf16 times 4-bit weights",
     .unavailable = FIB_NOT_BUILT,
     .overrides = mm_bf16_fp4_overrides,
     .default_backends = "cute-dsl",
     .check = check_mm_bf16_fp4},
    {.name = "mm_bf16",
     GEMM_ROW,
     .summary = "out = A B^T + bias, bf16 operands",
     .default_backends = "cublaslt",
     .check = check_single,
     .describe = describe_mm_bf16,
     .reference = fib_gemm_reference,
     .layout_note = "a [m, k] and b [n, k] are bf16, k contiguous in both; out [m, n] = "
                    "round(sum_k a[i][k] b[j][k] + bias[j]); bias [n] is bf16 and exists with "
                    "--bias only, added before the final rounding.",
     .cost_note = "flops = 2 m n k, plus m n with --bias; bytes = 2 m k + 2 n k + m n "
                  "sizeof(out), plus 2 n with --bias."},
    {.name = "bmm_bf16",
     GEMM_ROW,
     .summary = "out[b] = A[b] B[b]^T, bf16 operands",
     .default_backends = "cublaslt",
     .check = check_batched,
     .describe = describe_bmm_bf16,
     .reference = fib_gemm_reference,
     .layout_note = "a [batch_size, m, k] and b [batch_size, n, k] are bf16, k contiguous in both; "
                    "out [batch_size, m, n] = round(sum_k a[i][k] b[j][k]).",
     .cost_note = "flops = 2 batch_size m n k; bytes = batch_size (2 m k + 2 n k + m n "
                  "sizeof(out))."},
    {.name = "tinygemm_bf16",
     GEMM_ROW,
     .summary = "out = A B^T + bias, bf16, small m",
     .unavailable = NOT_BUILT "mm_bf16 computes the same",
     .overrides = tinygemm_overrides,
     .default_backends = "tinygemm",
     .check = check_tinygemm},
};

const struct fib_family fib_family_gemm = {
    .name = "gemm",
    .summary = "dense matrix products",
    .routines = gemm_routines,
    .routine_count = sizeof(gemm_routines) / sizeof(gemm_routines[0]),
};
