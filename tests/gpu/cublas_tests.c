/* cuBLAS and cuBLASLt on a GPU: exact results, every form the adapters build, what they refuse,
 * capture into graphs, and the search with a clock. */
#include "tests/gpu/gpu_tests.h"

#include "backends/cublaslt_lib.h"
#include "backends/cublaslt_plan.h"
#include "core/judge.h"
#include "core/memory.h"
#include "core/plan.h"
#include "core/tensors.h"
#include "tests/program.h"

enum { SLOTS = 2 };
/* Oracle work of one check: at least 16 rows, on 16 cores well below a second. */
static const double oracle_flops = 4e9;

/* One line on one label. */
struct bench {
    struct fib_registry registry;
    struct fib_device *device;
    struct fib_plan *plan;
    const struct fib_case *kase;
    struct fib_problem problem;
    struct fib_tensors *tensors;
    const struct fib_impl *impl;
    struct fib_prepared *prepared[SLOTS];
    char resolved[96];
};

static enum fib_status parse(struct bench *b, const char *flags, struct fib_error *err)
{
    char line[512];
    snprintf(line, sizeof(line), "--routine %s", flags);
    const enum fib_status st = program_parse(&b->registry, line, &b->plan, err);
    if (st != FIB_OK)
        return st;
    b->kase = b->plan->items[0].kase;
    b->problem = (struct fib_problem){.accumulate_roundoff = 0x1p-24};
    b->kase->routine->describe(b->kase, &b->problem);
    return FIB_OK;
}

static enum fib_status prepare_slots(struct bench *b, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (uint32_t s = 0; s < SLOTS && st == FIB_OK; s++) {
        struct fib_prepare_args args = {.kase = b->kase,
                                        .problem = &b->problem,
                                        .device = b->device,
                                        .pool = b->device->pool,
                                        .slot = s,
                                        .first = s > 0 ? b->prepared[0] : NULL};
        for (int t = 0; t < b->problem.tensor_count; t++)
            args.data[t] = fib_tensors_address(b->tensors, s, t);
        st = b->impl->prepare(&args, &b->prepared[s], err);
    }
    return st;
}

static void close_bench(struct bench *b)
{
    for (int s = SLOTS; s-- > 0;)
        if (b->prepared[s])
            b->impl->release(&b->prepared[s]);
    fib_tensors_free(&b->tensors);
    if (b->plan)
        fib_plan_free(&b->plan);
}

/* Ready to call, or the reason. */
static enum fib_status open_bench(struct bench *b, struct fib_device *device, const char *label,
                                  const char *flags, struct fib_error *err)
{
    char buffer[FIB_ERROR_CHARS];
    *b = (struct bench){.registry = program_registry(), .device = device};
    enum fib_status st = parse(b, flags, err);
    if (st != FIB_OK)
        return st;
    b->impl = fib_registry_impl(&b->registry, b->kase->routine->name, label, FIB_DEVICE_CUDA);
    if (!b->impl)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "no %s in this build", label);
    const char *const reason =
        b->impl->refuse(b->kase, &b->problem, device, buffer, sizeof(buffer));
    if (reason)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "%s", reason);
    st = fib_tensors_create(device, &b->problem, 42, SLOTS, &b->tensors, err);
    return st == FIB_OK ? prepare_slots(b, err) : st;
}

static enum fib_status call(void *context, struct fib_stream *stream, uint32_t slot,
                            struct fib_error *err)
{
    const struct bench *b = context;
    return b->impl->run(b->prepared[slot], stream, err);
}

static const char *resolved_of(struct bench *b)
{
    char buffer[sizeof(b->resolved)];
    snprintf(b->resolved, sizeof(b->resolved), "%s",
             b->impl->resolved(b->prepared[0], buffer, sizeof(buffer)));
    return b->resolved;
}

/* ---- against the oracle ---- */

static enum fib_status judge(struct bench *b, struct fib_verification *verification,
                             struct fib_error *err)
{
    struct fib_judge *made = NULL;
    uint64_t checksum = 0;
    const struct fib_judge_call judged = {
        .call = call, .context = b, .accumulate_roundoff = b->impl->accumulate_roundoff};
    enum fib_status st = fib_judge_create(b->kase, &b->problem, b->tensors, b->device->pool,
                                          oracle_flops, 42, &made, err);
    if (st == FIB_OK)
        st = fib_judge_full(made, &judged, verification, &checksum, err);
    fib_judge_free(&made);
    return st;
}

/* Three graphs of four calls over both slots: nothing in a call may forbid capture. */
static enum fib_status run_window(struct bench *b, struct fib_error *err)
{
    const uint32_t slots[] = {0, 1, 0, 1};
    const struct fib_window_spec spec = {
        .timer = FIB_TIMER_GRAPH, .call_count = 4, .slots = slots, .call = call, .call_context = b};
    struct fib_window_sample sample = {0};
    struct fib_window *window = NULL;
    enum fib_status st = b->device->ops->window_create(b->device, &spec, &window, err);
    for (int i = 0; i < 3 && st == FIB_OK; i++)
        st = b->device->ops->window_run(window, &sample, err);
    if (st == FIB_OK && !(sample.window_ms > 0))
        st = fib_fail(err, FIB_ERR_DEVICE, "a window took %g ms", sample.window_ms);
    if (window)
        b->device->ops->window_destroy(&window);
    return st;
}

/* Checks one line under one label. A refusal is good where `may_refuse`; its reason is noted. */
static void check_line(struct gpu_test *t, const char *label, const char *flags, bool may_refuse)
{
    struct bench b;
    struct fib_error err = {0};
    struct fib_verification v = {0};
    enum fib_status st = open_bench(&b, t->device, label, flags, &err);
    if (st == FIB_OK)
        st = judge(&b, &v, &err);
    if (st == FIB_OK && !v.failed)
        st = run_window(&b, &err);
    if (st == FIB_OK)
        gpu_test_note(t, "%s %s: %s, %lld rows, max abs %.3g, rel l2 %.3g", label, flags,
                      resolved_of(&b), (long long)v.checked_rows, v.max_abs_err,
                      fib_verification_rel_l2(&v));
    else
        gpu_test_note(t, "%s %s: %s: %s", label, flags, fib_status_text(st), err.text);
    GPU_CHECK(t, st == FIB_OK || (may_refuse && st == FIB_ERR_UNSUPPORTED), "%s %s: %s", label,
              flags, err.text);
    GPU_CHECK(t, !v.failed, "%s %s: %s", label, flags, v.message);
    close_bench(&b);
}

static void test_forms(struct gpu_test *t)
{
    static const struct {
        const char *flags;
        bool may_refuse;
    } lines[] = {
        {"mm_bf16 --m 3 --n 5 --k 7", false},
        {"mm_bf16 --m 63 --n 1001 --k 517", false},
        {"mm_bf16 --m 64 --n 1024 --k 1024", false},
        {"mm_bf16 --m 64 --n 1024 --k 1024 --out_dtype float32", false},
        {"mm_bf16 --m 64 --n 1024 --k 1024 --out_dtype float16", true},
        {"mm_bf16 --m 64 --n 1024 --k 1024 --bias", true},
        {"mm_bf16 --m 64 --n 1024 --k 1024 --bias --out_dtype float32", true},
        {"mm_bf16 --m 300 --n 256 --k 512 --autotune", false},
        {"bmm_bf16 --batch_size 3 --m 5 --n 7 --k 9", false},
        {"bmm_bf16 --batch_size 16 --m 128 --n 128 --k 128", false},
        {"bmm_bf16 --batch_size 64 --m 1 --n 512 --k 128 --out_dtype float32", false},
        {"bmm_fp8 --batch_size 4 --m 64 --n 1024 --k 1024 --input_dtype fp8_e5m2", false},
        {"bmm_fp8 --batch_size 4 --m 64 --n 1024 --k 1024 --mat2_dtype fp8_e5m2 "
         "--out_dtype float16",
         false},
        {"bmm_fp8 --batch_size 4 --m 64 --n 64 --k 64 --input_dtype fp8_e5m2 "
         "--mat2_dtype fp8_e5m2",
         true},
        {"bmm_fp8 --m 63 --n 1000 --k 7170", true},
        {"bmm_fp8 --m 63 --n 1008 --k 1024 --autotune", false},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        check_line(t, "cublaslt", lines[i].flags, lines[i].may_refuse);
        check_line(t, "cublas", lines[i].flags, lines[i].may_refuse);
    }
}

/* Long sums, where the roundings of a library show. */
static void test_long_sums(struct gpu_test *t)
{
    static const char *const lines[] = {
        "mm_bf16 --m 16 --n 4096 --k 8160",
        "mm_bf16 --m 64 --n 1024 --k 16384 --out_dtype float32",
        "bmm_fp8 --batch_size 64 --m 4 --n 1024 --k 7168",
        "bmm_fp8 --m 2048 --n 1024 --k 16384",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        check_line(t, "cublaslt", lines[i], false);
        check_line(t, "cublas", lines[i], false);
    }
}

/* Sizes of m at which some library has been wrong before. */
static void test_every_m(struct gpu_test *t)
{
    static const int sizes[] = {1,  2,  3,  4,   7,   8,   15,   16,   17,   31,  33,
                                63, 64, 65, 127, 128, 129, 1536, 2048, 3072, 4096};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char flags[96];
        snprintf(flags, sizeof(flags), "mm_bf16 --m %d --n 4096 --k 4096", sizes[i]);
        check_line(t, "cublaslt", flags, false);
        snprintf(flags, sizeof(flags), "bmm_fp8 --m %d --n 4096 --k 4096", sizes[i]);
        check_line(t, "cublaslt", flags, false);
    }
}

/* ---- exact values ---- */

static void put(const struct bench *b, int tensor, double (*value)(int64_t k, int64_t length))
{
    const struct fib_tensor *t = &b->problem.tensors[tensor];
    const int64_t count = fib_tensor_elems(t), length = t->shape[t->rank - 1];
    const size_t bytes = fib_tensor_bytes(t);
    struct fib_error err = {0};
    char *host = fib_zalloc(bytes);
    for (int64_t i = 0; i < count; i++)
        fib_dtype_store(t->dtype, host, (size_t)i, value(i % length, length));
    b->device->ops->write(b->device, fib_tensors_address(b->tensors, 0, tensor), host, bytes, &err);
    free(host);
}

static double one(int64_t k, int64_t length)
{
    (void)k;
    (void)length;
    return 1.0;
}

static double half(int64_t k, int64_t length)
{
    (void)k;
    (void)length;
    return 0.5;
}

static double quarter(int64_t k, int64_t length)
{
    (void)k;
    (void)length;
    return 0.25;
}

/* Sums to 1: +1 for the first half, -1 for all but one of the second, 0 for the last. */
static double cancelling(int64_t k, int64_t length)
{
    return k < length / 2 ? 1.0 : k < length - 1 ? -1.0 : 0.0;
}

static void expect_all(struct gpu_test *t, struct bench *b, const char *what, double wanted)
{
    struct fib_error err = {0};
    int64_t wrong = 0;
    double seen = wanted;
    GPU_OK(t, call(b, t->device->stream, 0, &err), &err);
    GPU_OK(t, fib_tensors_synchronize(b->tensors, &err), &err);
    const struct fib_tensor *out = &b->problem.tensors[GEMM_OUT];
    const void *host = fib_tensors_host(b->tensors, 0, GEMM_OUT, &err);
    GPU_CHECK(t, host, "%s: %s", what, err.text);
    for (int64_t i = 0; host && i < fib_tensor_elems(out); i++) {
        const double value = fib_dtype_load(out->dtype, host, (size_t)i);
        if (value != wanted) {
            seen = value;
            wrong++;
        }
    }
    GPU_CHECK(t, wrong == 0, "%s: wanted %g everywhere, %lld elements differ, the last is %g", what,
              wanted, (long long)wrong, seen);
}

typedef double value_fn(int64_t k, int64_t length);

static void check_exact(struct gpu_test *t, const char *label, const char *flags, value_fn *b_value,
                        bool scaled, double wanted)
{
    struct bench b;
    struct fib_error err = {0};
    char what[160];
    snprintf(what, sizeof(what), "%s %s", label, flags);
    const enum fib_status st = open_bench(&b, t->device, label, flags, &err);
    GPU_CHECK(t, st == FIB_OK, "%s: %s", what, err.text);
    if (st == FIB_OK) {
        put(&b, GEMM_A, one);
        put(&b, GEMM_B, b_value);
        if (scaled) {
            put(&b, GEMM_A_SCALE, half);
            put(&b, GEMM_B_SCALE, quarter);
        }
        expect_all(t, &b, what, wanted);
    }
    close_bench(&b);
}

static void test_exact(struct gpu_test *t)
{
    static const char *const labels[] = {"cublaslt", "cublas"};
    static const char scales[] = "bmm_fp8 --batch_size 2 --m 4 --n 16 --k 32";
    static const char tail[] = "mm_bf16 --m 16 --n 4096 --k 8160";
    for (int i = 0; i < 2; i++) {
        check_exact(t, labels[i], scales, one, true, 4.0);
        check_exact(t, labels[i], tail, one, false, 8160.0);
        check_exact(t, labels[i], tail, cancelling, false, 1.0);
    }
}

/* ---- what the library says of shapes that the adapter refuses by itself ---- */

static void note_answer(struct gpu_test *t, const struct fib_cublaslt *lib, cublasLtHandle_t handle,
                        const struct gemm_shape *shape, void *memory)
{
    const struct fib_cublaslt_slot slot = {.a = memory,
                                           .b = memory,
                                           .a_scale = shape->scaled ? memory : NULL,
                                           .b_scale = shape->scaled ? memory : NULL,
                                           .out = memory};
    struct fib_cublaslt_candidates found = {0};
    struct fib_cublaslt_plan plan;
    struct fib_error err = {0};
    enum fib_status st = fib_cublaslt_plan_create(lib, shape, &slot, &plan, &err);
    if (st == FIB_OK) {
        st = fib_cublaslt_plan_search(lib, handle, &plan, 64 << 20, &found, &err);
        fib_cublaslt_plan_free(lib, &plan);
    }
    gpu_test_note(t, "%s x %s -> %s m %lld n %lld k %lld: %d candidates %s",
                  fib_dtype_name(shape->a), fib_dtype_name(shape->b), fib_dtype_name(shape->out),
                  (long long)shape->m, (long long)shape->n, (long long)shape->k, found.count,
                  st == FIB_OK ? "" : err.text);
}

/* Notes only: whether a newer library takes more than the refusals allow. */
static void test_limits(struct gpu_test *t)
{
    struct fib_device *device = t->device;
    static const int64_t sizes[][3] = {{63, 1000, 7168}, {63, 1008, 7176}, {63, 1001, 7168},
                                       {63, 1008, 7170}, {1, 16, 16},      {63, 1004, 7168}};
    struct fib_cublaslt lib;
    struct fib_error err = {0};
    cublasLtHandle_t handle = NULL;
    void *memory = NULL;
    if (fib_cublaslt_open(&lib, NULL, &err) != FIB_OK ||
        device->ops->alloc(device, 1 << 20, &memory, &err) != FIB_OK) {
        GPU_CHECK(t, false, "%s", err.text);
        return;
    }
    if (lib.create(&handle) == CUBLAS_STATUS_SUCCESS) {
        struct gemm_shape shape = {
            .batch = 1, .a = FIB_FP8_E4M3, .b = FIB_FP8_E4M3, .out = FIB_BF16, .scaled = true};
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            shape.m = sizes[i][0];
            shape.n = sizes[i][1];
            shape.k = sizes[i][2];
            note_answer(t, &lib, handle, &shape, memory);
        }
        shape = (struct gemm_shape){.batch = 1,
                                    .m = 64,
                                    .n = 64,
                                    .k = 64,
                                    .a = FIB_FP8_E5M2,
                                    .b = FIB_FP8_E5M2,
                                    .out = FIB_BF16,
                                    .scaled = true};
        note_answer(t, &lib, handle, &shape, memory);
        lib.destroy(handle);
    }
    device->ops->release(device, memory, 1 << 20);
    fib_cublaslt_close(&lib);
}

static const struct gpu_test_row rows[] = {
    {"cublas_exact", test_exact, true},         {"cublas_forms", test_forms, true},
    {"cublas_long_sums", test_long_sums, true}, {"cublas_every_m", test_every_m, true},
    {"cublas_limits", test_limits, true},
};
const struct gpu_suite gpu_suite_cublas = {
    .name = "cublas", .rows = rows, .count = sizeof(rows) / sizeof(rows[0])};
