/* The CUDA norm kernels against the float64 oracle: every form and variant over a grid of shapes,
 * extreme values, zero rows, addresses that no vector load accepts. */
#include "gpu_tests.h"

#include "core/check.h"
#include "core/memory.h"
#include "core/plan.h"
#include "core/registry.h"
#include "tests/norm_extremes.h"
#include "tests/program.h"

enum { MARGIN_BYTES = 256, GUARD_BYTE = 0xa5, POISON_BYTE = 0xff, MOST_ORACLE_ELEMENTS = 1 << 20 };

/* Every legal pair of element types. */
static const char *const forms[] = {
    "rmsnorm --input_dtype bfloat16",
    "rmsnorm --input_dtype float16",
    "rmsnorm --input_dtype float32",
    "gemma_rmsnorm --input_dtype bfloat16",
    "gemma_rmsnorm --input_dtype float16",
    "gemma_rmsnorm --input_dtype float32",
    "fused_add_rmsnorm --input_dtype bfloat16",
    "fused_add_rmsnorm --input_dtype float16",
    "fused_add_rmsnorm --input_dtype float32",
    "gemma_fused_add_rmsnorm --input_dtype bfloat16",
    "gemma_fused_add_rmsnorm --input_dtype float16",
    "gemma_fused_add_rmsnorm --input_dtype float32",
    "rmsnorm_quant --input_dtype bfloat16 --out_dtype fp8_e4m3",
    "rmsnorm_quant --input_dtype bfloat16 --out_dtype fp8_e5m2 --scale 0.001",
    "rmsnorm_quant --input_dtype float16 --out_dtype fp8_e4m3 --scale 0.1",
    "rmsnorm_quant --input_dtype float16 --out_dtype fp8_e5m2",
    "fused_add_rmsnorm_quant --input_dtype bfloat16 --out_dtype fp8_e4m3 --scale 3",
    "fused_add_rmsnorm_quant --input_dtype bfloat16 --out_dtype fp8_e5m2",
    "fused_add_rmsnorm_quant --input_dtype float16 --out_dtype fp8_e4m3",
    "fused_add_rmsnorm_quant --input_dtype float16 --out_dtype fp8_e5m2",
    "layernorm_quant --out_dtype fp8_e4m3",
    "layernorm_quant --out_dtype fp8_e4m3 --scale 0.1",
    "layernorm_quant --out_dtype fp8_e5m2 --scale 0.01",
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

/* One case with its tensors on both sides. */
struct norm_case {
    struct fib_plan *plan;
    const struct fib_case *kase;
    struct fib_problem problem;
    unsigned char *host[FIB_MAX_TENSORS]; /* as the call finds them; inputs may be edited */
    void *block[FIB_MAX_TENSORS];         /* on the device, with a margin on both sides */
    size_t shift;                         /* bytes by which tensors miss their alignment */
    char resolved[128];
};

static struct fib_plan *parse(struct gpu_test *t, const char *line)
{
    const struct fib_registry registry = program_registry();
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    (void)program_parse(&registry, line, &plan, &err);
    GPU_CHECK(t, plan, "%s: %s", line, err.text);
    return plan;
}

static size_t block_bytes(const struct fib_tensor *tensor)
{
    return fib_tensor_bytes(tensor) + 2 * MARGIN_BYTES;
}

static bool open_case(struct gpu_test *t, struct norm_case *c, const char *line, size_t shift)
{
    *c = (struct norm_case){.plan = parse(t, line), .shift = shift};
    if (!c->plan)
        return false;
    c->kase = c->plan->items[0].kase;
    c->kase->routine->describe(c->kase, &c->problem);
    for (int k = 0; k < c->problem.tensor_count; k++) {
        const struct fib_tensor *const tensor = &c->problem.tensors[k];
        struct fib_error err = {0};
        c->host[k] = malloc(fib_tensor_bytes(tensor));
        memset(c->host[k], POISON_BYTE, fib_tensor_bytes(tensor));
        if (tensor->role != FIB_OUTPUT)
            fib_fill_host(t->pool, &tensor->fill, tensor->dtype, fib_fill_key(42, tensor->name, 0),
                          (size_t)fib_tensor_elems(tensor), c->host[k]);
        if (t->device->ops->alloc(t->device, block_bytes(tensor), &c->block[k], &err) != FIB_OK)
            gpu_test_fail(t, __FILE__, __LINE__, "%s", err.text);
    }
    return true;
}

static void close_case(struct gpu_test *t, struct norm_case *c)
{
    for (int k = 0; k < c->problem.tensor_count; k++) {
        free(c->host[k]);
        if (c->block[k])
            t->device->ops->release(t->device, c->block[k], block_bytes(&c->problem.tensors[k]));
    }
    fib_plan_free(&c->plan);
}

/* Bytes in front of the tensor: element alignment is kept. */
static size_t lead_bytes(const struct norm_case *c, int k)
{
    return MARGIN_BYTES + (c->shift ? fib_dtype_bytes(c->problem.tensors[k].dtype) : 0);
}

static const struct fib_impl *find_impl(const char *routine)
{
    const struct fib_registry registry = program_registry();
    return fib_registry_impl(&registry, routine, "cuda", FIB_DEVICE_CUDA);
}

static enum fib_status upload(struct gpu_test *t, const struct norm_case *c, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (int k = 0; k < c->problem.tensor_count && st == FIB_OK; k++) {
        const struct fib_tensor *const tensor = &c->problem.tensors[k];
        st =
            t->device->ops->set_bytes(t->device, c->block[k], GUARD_BYTE, block_bytes(tensor), err);
        if (st == FIB_OK)
            st = t->device->ops->write(t->device, (char *)c->block[k] + lead_bytes(c, k),
                                       c->host[k], fib_tensor_bytes(tensor), err);
    }
    return st;
}

static enum fib_status call_kernel(struct gpu_test *t, struct norm_case *c, struct fib_error *err)
{
    const struct fib_impl *const impl = find_impl(c->kase->routine->name);
    struct fib_prepare_args args = {
        .kase = c->kase, .problem = &c->problem, .device = t->device, .pool = t->pool};
    struct fib_prepared *prepared = NULL;
    char reason[512];
    const char *const refused =
        impl->refuse(c->kase, &c->problem, t->device, reason, sizeof reason);
    if (refused)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "%s", refused);
    for (int k = 0; k < c->problem.tensor_count; k++)
        args.data[k] = (char *)c->block[k] + lead_bytes(c, k);
    enum fib_status st = upload(t, c, err);
    if (st == FIB_OK)
        st = impl->prepare(&args, &prepared, err);
    if (st == FIB_OK) {
        snprintf(c->resolved, sizeof c->resolved, "%s",
                 impl->resolved(prepared, reason, sizeof reason));
        st = impl->run(prepared, t->device->stream, err);
    }
    if (st == FIB_OK)
        st = t->device->ops->synchronize(t->device, NULL, err);
    impl->release(&prepared);
    return st;
}

static bool margin_is_whole(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != GUARD_BYTE)
            return false;
    return true;
}

/* Whole blocks as the call left them; inputs and margins must be as before. */
static void download(struct gpu_test *t, const struct norm_case *c, unsigned char **after)
{
    for (int k = 0; k < c->problem.tensor_count; k++) {
        const struct fib_tensor *const tensor = &c->problem.tensors[k];
        const size_t bytes = fib_tensor_bytes(tensor), lead = lead_bytes(c, k);
        struct fib_error err = {0};
        after[k] = malloc(block_bytes(tensor));
        GPU_OK(t, t->device->ops->read(t->device, after[k], c->block[k], block_bytes(tensor), &err),
               &err);
        GPU_CHECK(t,
                  margin_is_whole(after[k], lead) &&
                      margin_is_whole(after[k] + lead + bytes, block_bytes(tensor) - lead - bytes),
                  "%s: wrote beside %s", c->resolved, tensor->name);
        if (!fib_tensor_is_written(tensor))
            GPU_CHECK(t, memcmp(after[k] + lead, c->host[k], bytes) == 0, "%s: changed %s",
                      c->resolved, tensor->name);
    }
}

struct oracle {
    const struct norm_case *c;
    struct fib_oracle_inputs inputs;
    struct fib_oracle_rows rows; /* of row `first` on */
    int64_t first;
};

static void oracle_rows(void *context, int64_t first, int64_t last)
{
    const struct oracle *const o = context;
    struct fib_oracle_rows rows = o->rows;
    for (int k = 0; k < o->c->problem.tensor_count; k++) {
        if (!rows.value[k])
            continue;
        rows.value[k] += first * o->c->problem.tensors[k].row_elems;
        rows.terms[k] += first * o->c->problem.tensors[k].row_elems;
    }
    o->c->kase->routine->reference(o->c->kase, &o->c->problem, &o->inputs, o->first + first,
                                   o->first + last, &rows);
}

/* Rows [first, last) of every checked tensor. */
static void compare(struct gpu_test *t, const struct norm_case *c, unsigned char *const *after,
                    int64_t first, int64_t last, struct fib_verification *verification)
{
    struct oracle o = {.c = c, .first = first};
    const int64_t count = last - first;
    int64_t *const rows = malloc((size_t)count * sizeof *rows);
    for (int64_t r = 0; r < count; r++)
        rows[r] = first + r;
    for (int k = 0; k < c->problem.tensor_count; k++) {
        const struct fib_tensor *const tensor = &c->problem.tensors[k];
        o.inputs.data[k] = tensor->role == FIB_OUTPUT ? NULL : c->host[k];
        if (tensor->check == FIB_CHECK_NONE)
            continue;
        o.rows.value[k] = fib_zalloc_array((size_t)(count * tensor->row_elems), sizeof(double));
        o.rows.terms[k] = fib_zalloc_array((size_t)(count * tensor->row_elems), sizeof(double));
    }
    fib_pool_for(t->pool, count, 1, oracle_rows, &o);
    for (int k = 0; k < c->problem.tensor_count; k++) {
        if (!o.rows.value[k])
            continue;
        fib_check_rows(&c->problem, k, after[k] + lead_bytes(c, k), rows, count, o.rows.value[k],
                       o.rows.terms[k], verification);
        free(o.rows.value[k]);
        free(o.rows.terms[k]);
    }
    free(rows);
}

/* Runs the case and compares all its rows, or the first and the last where there are many. */
static void run_case(struct gpu_test *t, struct norm_case *c, const char *line)
{
    struct fib_verification verification = {0};
    struct fib_error err = {0};
    unsigned char *after[FIB_MAX_TENSORS] = {NULL};
    const int64_t rows = c->problem.row_count;
    const int64_t cols = fib_tensor_elems(&c->problem.tensors[0]) / rows;
    const int64_t most = MOST_ORACLE_ELEMENTS / cols > 8 ? MOST_ORACLE_ELEMENTS / cols : 8;
    if (call_kernel(t, c, &err) != FIB_OK) {
        gpu_test_fail(t, __FILE__, __LINE__, "%s: %s", line, err.text);
        return;
    }
    download(t, c, after);
    if (rows <= most) {
        compare(t, c, after, 0, rows, &verification);
    } else {
        compare(t, c, after, 0, most / 2, &verification);
        compare(t, c, after, rows - most / 2, rows, &verification);
    }
    GPU_CHECK(t, !verification.failed, "%s (%s): %s", line, c->resolved, verification.message);
    for (int k = 0; k < c->problem.tensor_count; k++)
        free(after[k]);
}

static void run_line(struct gpu_test *t, const char *line, size_t shift)
{
    struct norm_case c;
    if (open_case(t, &c, line, shift))
        run_case(t, &c, line);
    close_case(t, &c);
}

static void run_form(struct gpu_test *t, int form, int64_t rows, int64_t cols, const char *flags)
{
    char line[256];
    snprintf(line, sizeof line, "--routine %s --batch_size %lld --hidden_size %lld %s", forms[form],
             (long long)rows, (long long)cols, flags);
    run_line(t, line, 0);
}

static void test_grid(struct gpu_test *t)
{
    static const int64_t cols[] = {1,    3,    8,    64,   127,  128,  136,   256,   500,   512,
                                   1000, 1536, 2304, 4096, 5376, 8192, 16384, 16392, 32768, 65536};
    static const int64_t rows[] = {1, 3, 33, 600};
    const size_t col_count = sizeof cols / sizeof cols[0];
    for (int f = 0; f < FORM_COUNT; f++)
        for (size_t k = 0; k < col_count; k++)
            for (size_t r = 0; r < 4; r++)
                if (rows[r] * cols[k] <= (t->small ? 20000 : 2500000))
                    run_form(t, f, rows[r], cols[k], "");
}

static void test_many_rows_and_long_rows(struct gpu_test *t)
{
    static const int64_t shapes[][2] = {{70001, 128}, {40001, 256}, {9001, 512},  {9001, 1024},
                                        {3001, 4096}, {1001, 7168}, {601, 16384}, {301, 32768},
                                        {5, 131072},  {3, 262144},  {2, 524288},  {2, 1048576},
                                        {1, 1048573}, {100003, 1},  {70001, 24},  {9001, 640}};
    for (int f = 0; f < FORM_COUNT; f++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            if (!t->small || k == 8)
                run_form(t, f, shapes[k][0], shapes[k][1], "");
    for (int f = 0; f < FORM_COUNT; f++) { /* rings that go round many times */
        run_form(t, f, t->small ? 301 : 9001, 1024, "--variant stream4x128_v2");
        run_form(t, f, t->small ? 301 : 9001, 1040, "--variant stream2x288_v1 --enable_pdl");
    }
    run_line(t, "--routine rmsnorm --batch_size 3 --num_heads 5 --hidden_size 128", 0);
    run_line(t, "--routine gemma_rmsnorm --batch_size 2 --num_heads 33 --hidden_size 64", 0);
}

/* Every variant on rows that fill it and on rows that leave a part of it empty. */
static void test_variants(struct gpu_test *t)
{
    static const struct {
        const char *name;
        int64_t cols[3];
        bool packed_only;
    } rows[] = {
        {"warp_v1", {8, 96, 128}, false},
        {"warp_v1u4", {8, 96, 128}, false},
        {"warp_v2", {8, 200, 256}, false},
        {"warp_v2u2", {8, 200, 256}, false},
        {"warp_v4", {8, 504, 512}, false},
        {"warp_v8", {8, 1000, 1024}, true},
        {"block_v1", {8, 1000, 2048}, false},
        {"block_v2", {8, 1000, 4096}, false},
        {"block_v2early", {8, 1000, 4096}, false},
        {"block_v4", {8, 1000, 8192}, false},
        {"block_v4early", {8, 1000, 8192}, false},
        {"block_v8", {8, 5000, 8192}, true},
        {"block_v4u2", {8, 1000, 8192}, false},
        {"block512_v2", {8, 1000, 4096}, false},
        {"cluster_v1", {8, 1000, 16384}, false},
        {"cluster2_v2", {8, 1000, 8192}, false},
        {"cluster4_v4", {8, 1000, 16384}, false},
        {"cluster8x128_v2", {8, 5000, 8192}, false},
        {"cluster16_v1", {8, 1000, 32768}, false},
        {"cluster_v8", {8, 1000, 65536}, true},
        {"stream_v1", {16, 1008, 4096}, false},
        {"stream_v2", {16, 1008, 4096}, false},
        {"stream_v4", {16, 1008, 8192}, false},
        {"stream4x32_v1", {16, 112, 128}, false},
        {"stream1x512_v2", {16, 4080, 4096}, false},
        {"loop", {8, 1000, 20000}, false},
        {"scalar", {1, 1001, 20000}, false},
    };
    for (int f = 0; f < FORM_COUNT; f++) {
        const bool packed = !strstr(forms[f], "add") && !strstr(forms[f], "layernorm");
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
            for (int n = 0; n < (t->small ? 2 : 3) && (packed || !rows[k].packed_only); n++) {
                char flags[64];
                snprintf(flags, sizeof flags, "--variant %s%s", rows[k].name,
                         n == 1 ? " --enable_pdl" : "");
                run_form(t, f, t->small ? 5 : 37, rows[k].cols[n], flags);
            }
    }
}

static void put_extremes(struct norm_case *c, const char *name, int64_t cols)
{
    const int k = fib_problem_find(&c->problem, name);
    for (int64_t i = 0; k >= 0 && i < 6 * cols; i++)
        fib_dtype_store(c->problem.tensors[k].dtype, c->host[k], (size_t)i,
                        norm_extreme(i / cols, i % cols));
}

static void test_extreme_values(struct gpu_test *t)
{
    static const int cols[] = {999, 1000, 4096, 16384};
    for (int f = 0; f < FORM_COUNT; f++)
        for (int k = 0; k < (t->small ? 1 : 4); k++)
            for (int which = 0; which < 2; which++) {
                struct norm_case c;
                char line[256];
                snprintf(line, sizeof line, "--routine %s --batch_size 6 --hidden_size %d",
                         forms[f], cols[k]);
                if (open_case(t, &c, line, 0)) {
                    put_extremes(&c, which ? "residual" : "x", cols[k]);
                    run_case(t, &c, line);
                }
                close_case(t, &c);
            }
}

/* 0 / 0 where eps is 0; NaN and infinity of an input spoil their row as in the oracle. */
static void test_zeros_and_nan(struct gpu_test *t)
{
    for (int f = 0; f < FORM_COUNT; f++) {
        struct norm_case c;
        char line[256];
        snprintf(line, sizeof line, "--routine %s --batch_size 4 --hidden_size 64 --eps 0",
                 forms[f]);
        if (open_case(t, &c, line, 0)) {
            const int x = fib_problem_find(&c.problem, "x"),
                      r = fib_problem_find(&c.problem, "residual");
            for (size_t i = 0; i < 64; i++) {
                fib_dtype_store(c.problem.tensors[x].dtype, c.host[x], i, 0.0);
                if (r >= 0)
                    fib_dtype_store(c.problem.tensors[r].dtype, c.host[r], i, 0.0);
            }
            fib_dtype_store(c.problem.tensors[x].dtype, c.host[x], 64 + 7, NAN);
            run_case(t, &c, line);
        }
        close_case(t, &c);
    }
}

static void test_misaligned(struct gpu_test *t)
{
    for (int f = 0; f < FORM_COUNT; f++) {
        char line[256];
        snprintf(line, sizeof line, "--routine %s --batch_size 5 --hidden_size 1024", forms[f]);
        run_line(t, line, 1);
    }
}

static void expect_refusal(struct gpu_test *t, const char *line, const char *part)
{
    struct norm_case c;
    struct fib_error err = {0};
    if (open_case(t, &c, line, 0)) {
        GPU_CHECK(t, call_kernel(t, &c, &err) == FIB_ERR_UNSUPPORTED, "%s was not refused", line);
        GPU_CHECK(t, strstr(err.text, part), "\"%s\" does not say \"%s\"", err.text, part);
    }
    close_case(t, &c);
}

static void test_refusals(struct gpu_test *t)
{
    expect_refusal(t, "--routine rmsnorm --batch_size 1 --hidden_size 64 --variant fastest",
                   "there is no norm variant \"fastest\"; built are warp_v1 ");
    expect_refusal(t, "--routine rmsnorm --batch_size 1 --hidden_size 8192 --variant warp_v4",
                   "cannot hold a row of 8192 elements");
}

static const struct gpu_test_row rows[] = {
    {"norm_grid", test_grid, false},
    {"norm_many_and_long_rows", test_many_rows_and_long_rows, false},
    {"norm_variants", test_variants, false},
    {"norm_extreme_values", test_extreme_values, false},
    {"norm_zeros_and_nan", test_zeros_and_nan, false},
    {"norm_misaligned", test_misaligned, false},
    {"norm_refusals", test_refusals, false},
};

const struct gpu_suite gpu_suite_norm = {"norm", rows, sizeof(rows) / sizeof(rows[0])};
