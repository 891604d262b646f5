/* Matrix products through cuBLASLt: the library's own choice of algorithm, or with --autotune the
 * fastest of all it offers. The label `cublas` of bmm_fp8 runs here too, since the older interface
 * has no fp8; its rows say cublaslt. */
#include <stdlib.h>
#include <string.h>

#include "backends/cublaslt_lib.h"
#include "backends/cublaslt_plan.h"
#include "core/backend.h"
#include "core/memory.h"
#include "core/text.h"
#include "gpu/stream.h"
#include "routines/gemm.h"

enum {
    WORKSPACE_BYTES = 64 << 20, /* kernels with a split k were seen to use 7 MiB */
    TUNE_ROUNDS = 9,            /* windows of each candidate */
    TUNE_FEWEST_ROUNDS = 3,
    TUNE_MAX_CALLS = 64,
};
static const double tune_budget_ms = 400;

/* What the slots of a case share; slot 0 owns it. */
struct engine {
    struct fib_cublaslt lib;
    cublasLtHandle_t handle;
    struct fib_device *device;
    struct fib_cublaslt_workspace workspace;
    cublasLtMatmulAlgo_t algo;
};

struct fib_prepared {
    struct engine *engine;
    bool is_first;
    struct fib_cublaslt_plan plan;
};

/* ---- one call ---- */

static enum fib_status launch(const struct fib_prepared *p, const cublasLtMatmulAlgo_t *algo,
                              struct fib_stream *stream, struct fib_error *err)
{
    return fib_cublaslt_plan_launch(&p->engine->lib, p->engine->handle, &p->plan, algo,
                                    &p->engine->workspace, fib_cuda_stream(stream), err);
}

static enum fib_status run(struct fib_prepared *prepared, struct fib_stream *stream,
                           struct fib_error *err)
{
    return launch(prepared, &prepared->engine->algo, stream, err);
}

/* ---- the search with a clock ---- */

/* One candidate while all are timed in turns. */
struct trial {
    const struct fib_prepared *prepared;
    const cublasLtMatmulAlgo_t *algo;
    struct fib_window *window; /* NULL: it failed and is out */
    double time_ms[TUNE_ROUNDS];
    int count;
};

static enum fib_status trial_call(void *context, struct fib_stream *stream, uint32_t slot,
                                  struct fib_error *err)
{
    const struct trial *trial = context;
    (void)slot; /* all windows use slot 0 */
    return launch(trial->prepared, trial->algo, stream, err);
}

/* Calls once outside a window: a kernel must be loaded before it is captured, and one that the
 * library offers but cannot start is left out here. */
static void open_trial(struct trial *trial, enum fib_timer timer, uint32_t calls)
{
    struct fib_device *device = trial->prepared->engine->device;
    struct fib_error ignored = {0};
    const uint32_t slots[TUNE_MAX_CALLS] = {0};
    const struct fib_window_spec spec = {.timer = timer,
                                         .call_count = calls,
                                         .slots = slots,
                                         .call = trial_call,
                                         .call_context = trial};
    if (trial_call(trial, device->stream, 0, &ignored) != FIB_OK ||
        device->ops->synchronize(device, NULL, &ignored) != FIB_OK ||
        device->ops->window_create(device, &spec, &trial->window, &ignored) != FIB_OK)
        trial->window = NULL;
}

static void close_trial(struct trial *trial)
{
    if (trial->window)
        trial->prepared->engine->device->ops->window_destroy(&trial->window);
}

static void sample_trial(struct trial *trial)
{
    struct fib_error ignored = {0};
    struct fib_window_sample sample = {0};
    if (!trial->window)
        return;
    if (trial->prepared->engine->device->ops->window_run(trial->window, &sample, &ignored) !=
        FIB_OK)
        close_trial(trial);
    else
        trial->time_ms[trial->count++] = sample.window_ms;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_ms(struct trial *trial)
{
    qsort(trial->time_ms, (size_t)trial->count, sizeof(double), compare_doubles);
    return trial->time_ms[trial->count / 2];
}

/* The first candidate whose median is least; the library's first choice when nothing could be
 * timed. */
static size_t fastest(struct trial *trials, size_t count)
{
    size_t best = 0;
    double best_ms = 0;
    for (size_t i = 0; i < count; i++) {
        if (!trials[i].window || trials[i].count == 0)
            continue;
        const double time_ms = median_ms(&trials[i]);
        if (best_ms > 0 && time_ms >= best_ms)
            continue;
        best = i;
        best_ms = time_ms;
    }
    return best;
}

/* A cold case asks which algorithm is fastest on cold operands: one call after a flush. Windows of
 * many calls on this one slot would rank them by how well they use the cache. */
static enum fib_timer tune_timer(const struct fib_prepare_args *args)
{
    const struct fib_device *device = args->device;
    const char *const cache = args->kase->settings.cache;
    const bool hot = cache && strcmp(cache, "hot") == 0;
    return !hot && !fib_device_timer_refusal(device, FIB_TIMER_ISOLATED)
               ? FIB_TIMER_ISOLATED
               : device->facts.default_timer;
}

/* Calls that make a window long enough for the clock, from one window of the first choice. */
static uint32_t tune_calls(const struct fib_prepared *p, const cublasLtMatmulAlgo_t *algo,
                           enum fib_timer timer)
{
    struct trial trial = {.prepared = p, .algo = algo};
    const double wanted_ms = p->engine->device->facts.window_min_ms;
    uint32_t calls = 1;
    if (timer == FIB_TIMER_ISOLATED)
        return calls;
    open_trial(&trial, timer, 1);
    for (int i = 0; i < TUNE_FEWEST_ROUNDS; i++)
        sample_trial(&trial);
    const double call_ms = trial.count > 0 ? median_ms(&trial) : wanted_ms;
    while (calls < TUNE_MAX_CALLS && calls * call_ms < wanted_ms)
        calls *= 2;
    close_trial(&trial);
    return calls;
}

/* Windows of all candidates in turns, so that a drifting clock favours none. */
static void tune(struct fib_prepared *p, const struct fib_prepare_args *args,
                 const struct fib_cublaslt_candidates *candidates)
{
    struct trial trials[FIB_CUBLASLT_MAX_CANDIDATES] = {0};
    struct fib_device *device = args->device;
    const size_t count = (size_t)candidates->count;
    const enum fib_timer timer = tune_timer(args);
    const uint32_t calls = tune_calls(p, &candidates->items[0].algo, timer);
    for (size_t i = 0; i < count; i++) {
        trials[i] = (struct trial){.prepared = p, .algo = &candidates->items[i].algo};
        open_trial(&trials[i], timer, calls);
    }
    const double begin_ms = device->ops->now_ms(device);
    for (int round = 0; round < TUNE_ROUNDS; round++) {
        if (round >= TUNE_FEWEST_ROUNDS && device->ops->now_ms(device) - begin_ms > tune_budget_ms)
            break;
        for (size_t i = 0; i < count; i++)
            sample_trial(&trials[i]);
    }
    p->engine->algo = *trials[fastest(trials, count)].algo;
    for (size_t i = 0; i < count; i++)
        close_trial(&trials[i]);
}

/* ---- prepare and release ---- */

static void close_engine(struct engine *engine)
{
    struct fib_device *device = engine->device;
    if (engine->workspace.address)
        device->ops->release(device, engine->workspace.address, engine->workspace.bytes);
    if (engine->handle)
        engine->lib.destroy(engine->handle);
    fib_cublaslt_close(&engine->lib);
    free(engine);
}

static void release(struct fib_prepared **prepared)
{
    struct fib_prepared *const p = *prepared;
    if (p) {
        fib_cublaslt_plan_free(&p->engine->lib, &p->plan);
        if (p->is_first)
            close_engine(p->engine);
    }
    free(p);
    *prepared = NULL;
}

static enum fib_status open_engine(struct engine *engine, const struct fib_prepare_args *args,
                                   struct fib_error *err)
{
    enum fib_status st = fib_cublaslt_open(&engine->lib, args->kase->settings.lib_path, err);
    if (st != FIB_OK)
        return st;
    const cublasStatus_t created = engine->lib.create(&engine->handle);
    if (created != CUBLAS_STATUS_SUCCESS)
        return fib_fail(err, FIB_ERR_DEVICE, "cublasLtCreate failed: %s",
                        engine->lib.status_name(created));
    st = args->device->ops->alloc(args->device, WORKSPACE_BYTES, &engine->workspace.address, err);
    if (st == FIB_OK)
        engine->workspace.bytes = WORKSPACE_BYTES;
    return st;
}

static enum fib_status make_plan(struct fib_prepared *p, const struct fib_prepare_args *args,
                                 struct fib_error *err)
{
    struct gemm_shape shape;
    fib_gemm_shape(args->problem, &shape);
    const struct fib_cublaslt_slot slot = {
        .a = args->data[GEMM_A],
        .b = args->data[GEMM_B],
        .bias = shape.bias ? args->data[GEMM_BIAS] : NULL,
        .a_scale = shape.scaled ? args->data[GEMM_A_SCALE] : NULL,
        .b_scale = shape.scaled ? args->data[GEMM_B_SCALE] : NULL,
        .out = args->data[GEMM_OUT],
    };
    return fib_cublaslt_plan_create(&p->engine->lib, &shape, &slot, &p->plan, err);
}

static enum fib_status choose(struct fib_prepared *p, const struct fib_prepare_args *args,
                              struct fib_error *err)
{
    const struct gemm_params *params = args->kase->params;
    struct fib_cublaslt_candidates candidates = {0};
    const enum fib_status st = fib_cublaslt_plan_search(
        &p->engine->lib, p->engine->handle, &p->plan, p->engine->workspace.bytes, &candidates, err);
    if (st != FIB_OK)
        return st;
    p->engine->algo = candidates.items[0].algo;
    if (params->autotune && candidates.count > 1)
        tune(p, args, &candidates);
    return FIB_OK;
}

static enum fib_status prepare(const struct fib_prepare_args *args, struct fib_prepared **prepared,
                               struct fib_error *err)
{
    struct fib_prepared *p = fib_zalloc(sizeof(*p));
    enum fib_status st = FIB_OK;
    p->is_first = !args->first;
    if (p->is_first) {
        p->engine = fib_zalloc(sizeof(*p->engine));
        p->engine->device = args->device;
        st = open_engine(p->engine, args, err);
    } else {
        p->engine = args->first->engine;
    }
    if (st == FIB_OK)
        st = make_plan(p, args, err);
    if (st == FIB_OK && p->is_first)
        st = choose(p, args, err);
    if (st != FIB_OK)
        release(&p);
    *prepared = p;
    return st;
}

static const char *refuse(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    struct gemm_shape shape;
    (void)kase;
    (void)device;
    fib_gemm_shape(problem, &shape);
    return fib_cublaslt_refusal(&shape, buffer, buffer_bytes);
}

static const char *resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes)
{
    static const char prefix[] = "cublaslt/";
    const size_t used = sizeof(prefix) - 1;
    memcpy(buffer, prefix, sizeof(prefix));
    fib_cublaslt_algo_text(&prepared->engine->lib, &prepared->engine->algo, buffer + used,
                           buffer_bytes - used);
    return buffer;
}

/* Tensor cores cut sums off instead of rounding them: bf16 needs 2^-22 where k is long (H200, k
 * 8192: 1.1 of the limit of 2^-24). fp8 matrix units of compute capability 8.9 and 9.0 add with
 * about 14 bits; the library carries the sums of short stretches of k on in float32. */
#define CUBLASLT_GEMM(routine_, label_, min_cc_, ...)                                              \
    {                                                                                              \
        .routine = (routine_), .label = (label_), .device_kind = FIB_DEVICE_CUDA,                  \
        .min_cc = (min_cc_), .auto_rank = 20, .refuse = refuse, .prepare = prepare, .run = run,    \
        .release = release, .resolved = resolved, __VA_ARGS__                                      \
    }

static const struct fib_impl cublaslt_gemm_impls[] = {
    CUBLASLT_GEMM("mm_bf16", "cublaslt", 80, .accumulate_roundoff = 0x1p-22),
    CUBLASLT_GEMM("bmm_bf16", "cublaslt", 80, .accumulate_roundoff = 0x1p-22),
    CUBLASLT_GEMM("bmm_fp8", "cublaslt", 89, .accumulate_roundoff = 0x1p-13),
    CUBLASLT_GEMM("bmm_fp8", "cublas", 89, .accumulate_roundoff = 0x1p-13),
};
const struct fib_backend fib_backend_cublaslt_gemm = {
    .id = "cublaslt_gemm",
    FIB_IMPLS(cublaslt_gemm_impls),
    .probe = fib_cublaslt_probe,
};
