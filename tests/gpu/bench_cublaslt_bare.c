/* What the cublaslt adapter and the device's windows add to cuBLASLt itself: a bare graph of the
 * same algorithm's calls over the same ring, written out here without the adapter's plan, in turns
 * with the adapter in windows of the CUDA device.
 *
 *   bench_cublaslt_bare M N K [WINDOWS [CALLS [SLOTS [PAUSE_MS]]]] [--lib_path DIR]
 *
 * Prints one line of medians and their ratio, then what the search offers with and without partial
 * sums in the output's format. Exit 0 when the ratio is within 2 %, 1 otherwise, 77 without a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "backends/cublaslt_lib.h"
#include "core/memory.h"
#include "core/plan.h"
#include "core/pool.h"
#include "core/registry.h"
#include "core/stats.h"
#include "gpu/device_cuda.h"
#include "tests/program.h"

enum { MAX_SLOTS = 256, MAX_CALLS = 1024, MAX_WINDOWS = 1000, OFFERED = 32 };
enum { A, B, OUT, TENSORS };
static const size_t workspace_bytes = (size_t)64 << 20;
static const double limit_ratio = 1.02;

struct shape {
    int64_t m, n, k;
};

/* Ring and device: both sides work on it. */
struct ring {
    struct fib_plan *plan;
    const struct fib_case *kase;
    struct fib_problem problem;
    struct fib_pool *pool;
    struct fib_device *device;
    uint32_t slot_count, call_count;
    uint32_t order[MAX_CALLS];
    void *data[MAX_SLOTS][TENSORS];
};

/* The bare side. */
struct bare {
    struct fib_cublaslt lib;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t left, right, out;
    cublasLtMatmulAlgo_t algo;
    void *workspace;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaGraphExec_t exec;
};

/* The adapter's side. */
struct adapter {
    const struct fib_impl *impl;
    struct fib_prepared *prepared[MAX_SLOTS];
    struct fib_window *window;
};

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

static void need(cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        stop(what, cudaGetErrorString(code));
}

static void need_lt(const struct bare *bare, cublasStatus_t status, const char *what)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        stop(what, bare->lib.status_name(status));
}

static void need_ok(enum fib_status status, const struct fib_error *err)
{
    if (status != FIB_OK)
        stop(fib_status_text(status), err->text);
}

/* ---- ring ---- */

static void plan_case(struct ring *ring, const struct fib_registry *registry,
                      const struct shape *shape, const char *lib_path)
{
    char m[24], n[24], k[24];
    struct fib_error err = {0};
    snprintf(m, sizeof(m), "%lld", (long long)shape->m);
    snprintf(n, sizeof(n), "%lld", (long long)shape->n);
    snprintf(k, sizeof(k), "%lld", (long long)shape->k);
    const char *const words[] = {"--routine", "mm_bf16", "--m",        m,       "--n", n,
                                 "--k",       k,         "--lib_path", lib_path};
    need_ok(fib_plan_parse(registry, lib_path ? 10 : 8, words, &ring->plan, &err), &err);
    ring->kase = ring->plan->items[0].kase;
    ring->kase->routine->describe(ring->kase, &ring->problem);
}

/* Every slot holds the content that the program gives slot 0. */
static void fill_ring(struct ring *ring)
{
    const struct fib_device_ops *ops = ring->device->ops;
    struct fib_error err = {0};
    for (uint32_t s = 0; s < ring->slot_count; s++) {
        for (int t = 0; t < TENSORS; t++) {
            const struct fib_tensor *tensor = &ring->problem.tensors[t];
            const size_t bytes = fib_tensor_bytes(tensor);
            need_ok(ops->alloc(ring->device, bytes, &ring->data[s][t], &err), &err);
            if (t == OUT)
                need_ok(ops->set_bytes(ring->device, ring->data[s][t], 0, bytes, &err), &err);
            else
                need_ok(ops->fill(ring->device, &tensor->fill, tensor->dtype,
                                  fib_fill_key(42, tensor->name, 0), 0,
                                  (size_t)fib_tensor_elems(tensor), ring->data[s][t], &err),
                        &err);
        }
    }
    for (uint32_t i = 0; i < ring->call_count; i++)
        ring->order[i] = i % ring->slot_count;
}

/* ---- bare ---- */

static void describe_bare(struct bare *bare, const struct shape *s)
{
    const int32_t transposed = CUBLAS_OP_T;
    const struct fib_cublaslt *lib = &bare->lib;
    need_lt(bare, lib->create(&bare->handle), "cublasLtCreate");
    need_lt(bare, lib->desc_create(&bare->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "descriptor");
    need_lt(bare,
            lib->desc_set(bare->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)),
            "TRANSA");
    const uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    need_lt(bare, lib->layout_create(&bare->left, CUDA_R_16BF, k, n, s->k), "layout");
    need_lt(bare, lib->layout_create(&bare->right, CUDA_R_16BF, k, m, s->k), "layout");
    need_lt(bare, lib->layout_create(&bare->out, CUDA_R_16BF, n, m, s->n), "layout");
    need(cudaMalloc(&bare->workspace, workspace_bytes), "workspace");
    need(cudaStreamCreateWithFlags(&bare->stream, cudaStreamNonBlocking), "stream");
    need(cudaEventCreate(&bare->begin), "event");
    need(cudaEventCreate(&bare->end), "event");
}

static int search_bare(const struct bare *bare, uint32_t schemes,
                       cublasLtMatmulHeuristicResult_t *results)
{
    const struct fib_cublaslt *lib = &bare->lib;
    const uint64_t limit = workspace_bytes;
    cublasLtMatmulPreference_t preference;
    int found = 0;
    need_lt(bare, lib->preference_create(&preference), "preference");
    need_lt(bare,
            lib->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit,
                                sizeof(limit)),
            "workspace limit");
    need_lt(bare,
            lib->preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                sizeof(schemes)),
            "reduction schemes");
    need_lt(bare,
            lib->get_heuristic(bare->handle, bare->desc, bare->left, bare->right, bare->out,
                               bare->out, preference, OFFERED, results, &found),
            "search");
    lib->preference_destroy(preference);
    return found;
}

static void call_bare(const struct bare *bare, const struct ring *ring, uint32_t slot)
{
    const float one = 1, zero = 0;
    void *const *data = ring->data[slot];
    need_lt(bare,
            bare->lib.matmul(bare->handle, bare->desc, &one, data[B], bare->left, data[A],
                             bare->right, &zero, data[OUT], bare->out, data[OUT], bare->out,
                             &bare->algo, bare->workspace, workspace_bytes, bare->stream),
            "cublasLtMatmul");
}

static void record_bare(struct bare *bare, const struct ring *ring)
{
    cudaGraph_t graph;
    call_bare(bare, ring, 0);
    need(cudaStreamSynchronize(bare->stream), "first call");
    need(cudaStreamBeginCapture(bare->stream, cudaStreamCaptureModeThreadLocal), "capture");
    need(cudaEventRecordWithFlags(bare->begin, bare->stream, cudaEventRecordExternal), "event");
    for (uint32_t i = 0; i < ring->call_count; i++)
        call_bare(bare, ring, ring->order[i]);
    need(cudaEventRecordWithFlags(bare->end, bare->stream, cudaEventRecordExternal), "event");
    need(cudaStreamEndCapture(bare->stream, &graph), "end of capture");
    need(cudaGraphInstantiate(&bare->exec, graph, 0), "graph");
    need(cudaGraphDestroy(graph), "graph");
}

/* Time of one call. */
static double run_bare(const struct bare *bare, const struct ring *ring)
{
    float window_ms = 0;
    need(cudaGraphLaunch(bare->exec, bare->stream), "launch");
    need(cudaStreamSynchronize(bare->stream), "window");
    need(cudaEventElapsedTime(&window_ms, bare->begin, bare->end), "elapsed time");
    return (double)window_ms / ring->call_count;
}

/* ---- adapter ---- */

static enum fib_status call_adapter(void *context, struct fib_stream *stream, uint32_t slot,
                                    struct fib_error *err)
{
    const struct adapter *adapter = context;
    return adapter->impl->run(adapter->prepared[slot], stream, err);
}

static void open_adapter(struct adapter *adapter, const struct ring *ring,
                         const struct fib_registry *registry)
{
    struct fib_error err = {0};
    adapter->impl = fib_registry_impl(registry, "mm_bf16", "cublaslt", FIB_DEVICE_CUDA);
    if (!adapter->impl)
        stop("mm_bf16", "no cublaslt in this build");
    for (uint32_t s = 0; s < ring->slot_count; s++) {
        struct fib_prepare_args args = {.kase = ring->kase,
                                        .problem = &ring->problem,
                                        .device = ring->device,
                                        .pool = ring->pool,
                                        .slot = s,
                                        .first = s > 0 ? adapter->prepared[0] : NULL};
        memcpy(args.data, ring->data[s], sizeof(ring->data[s]));
        need_ok(adapter->impl->prepare(&args, &adapter->prepared[s], &err), &err);
    }
    const struct fib_window_spec spec = {.timer = FIB_TIMER_GRAPH,
                                         .call_count = ring->call_count,
                                         .slots = ring->order,
                                         .call = call_adapter,
                                         .call_context = adapter};
    need_ok(call_adapter(adapter, NULL, 0, &err), &err);
    need_ok(ring->device->ops->synchronize(ring->device, NULL, &err), &err);
    need_ok(ring->device->ops->window_create(ring->device, &spec, &adapter->window, &err), &err);
}

static double run_adapter(const struct adapter *adapter, const struct ring *ring)
{
    struct fib_window_sample sample = {0};
    struct fib_error err = {0};
    need_ok(ring->device->ops->window_run(adapter->window, &sample, &err), &err);
    return sample.window_ms / ring->call_count;
}

/* ---- comparison ---- */

static void pause_ms(int64_t time_ms)
{
    const struct timespec wait = {.tv_sec = time_ms / 1000, .tv_nsec = time_ms % 1000 * 1000000};
    if (time_ms > 0)
        nanosleep(&wait, NULL);
}

static void describe_algo(const struct bare *bare, const cublasLtMatmulAlgo_t *algo)
{
    static const struct {
        const char *name;
        cublasLtMatmulAlgoConfigAttributes_t attribute;
    } parts[] = {{"algo", CUBLASLT_ALGO_CONFIG_ID},
                 {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID},
                 {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID},
                 {"splitk", CUBLASLT_ALGO_CONFIG_SPLITK_NUM},
                 {"reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int32_t value = 0;
        size_t written = 0;
        bare->lib.algo_get(algo, parts[i].attribute, &value, sizeof(value), &written);
        printf("%s %d ", parts[i].name, value);
    }
}

/* Turns: adapter, bare, bare, adapter, ... */
static double compare(struct bare *bare, const struct adapter *adapter, const struct ring *ring,
                      int windows, int64_t rest_ms)
{
    double times_ms[2][MAX_WINDOWS];
    struct fib_stats stats[2];
    const struct fib_cost *cost = &ring->problem.cost;
    char resolved[96];
    for (int w = 0; w < 2 * windows; w++) {
        const int side = (w & 1) ^ (w >> 1 & 1);
        times_ms[side][w / 2] = side ? run_bare(bare, ring) : run_adapter(adapter, ring);
        pause_ms(rest_ms);
    }
    for (int side = 0; side < 2; side++)
        fib_stats_compute(times_ms[side], NULL, (size_t)windows, &stats[side]);
    const double ratio = stats[0].median / stats[1].median;
    printf("adapter %s: median %.6f ms (p25 %.6f p75 %.6f), %.1f TF\n",
           adapter->impl->resolved(adapter->prepared[0], resolved, sizeof(resolved)),
           stats[0].median, stats[0].p25, stats[0].p75, cost->flops / stats[0].median * 1e-9);
    printf("bare    ");
    describe_algo(bare, &bare->algo);
    printf(": median %.6f ms (p25 %.6f p75 %.6f), %.1f TF\n", stats[1].median, stats[1].p25,
           stats[1].p75, cost->flops / stats[1].median * 1e-9);
    printf("m %lld slots %u calls %u windows %d: adapter / bare = %.5f\n",
           (long long)ring->problem.tensors[OUT].shape[0], ring->slot_count, ring->call_count,
           windows, ratio);
    return ratio;
}

/* Best of a few windows for each candidate: what the narrower choice of reductions costs. */
static void list_candidates(struct bare *bare, const struct ring *ring, uint32_t schemes)
{
    cublasLtMatmulHeuristicResult_t results[OFFERED];
    const int found = search_bare(bare, schemes, results);
    printf("reduction schemes %u: %d candidates\n", schemes, found);
    for (int i = 0; i < found; i++) {
        if (results[i].state != CUBLAS_STATUS_SUCCESS)
            continue;
        bare->algo = results[i].algo;
        need(cudaGraphExecDestroy(bare->exec), "graph");
        record_bare(bare, ring);
        double best_ms = run_bare(bare, ring);
        for (int round = 0; round < 4; round++) {
            const double time_ms = run_bare(bare, ring);
            best_ms = time_ms < best_ms ? time_ms : best_ms;
        }
        printf("  %2d %.6f ms  ", i, best_ms);
        describe_algo(bare, &bare->algo);
        printf("workspace %zu\n", results[i].workspaceSize);
    }
}

static void close_all(struct adapter *adapter, struct bare *bare, struct ring *ring)
{
    ring->device->ops->window_destroy(&adapter->window);
    for (uint32_t s = ring->slot_count; s-- > 0;)
        adapter->impl->release(&adapter->prepared[s]);
    cudaGraphExecDestroy(bare->exec);
    cudaEventDestroy(bare->begin);
    cudaEventDestroy(bare->end);
    cudaStreamDestroy(bare->stream);
    cudaFree(bare->workspace);
    bare->lib.layout_destroy(bare->out);
    bare->lib.layout_destroy(bare->right);
    bare->lib.layout_destroy(bare->left);
    bare->lib.desc_destroy(bare->desc);
    bare->lib.destroy(bare->handle);
    fib_cublaslt_close(&bare->lib);
    for (uint32_t s = 0; s < ring->slot_count; s++)
        for (int t = 0; t < TENSORS; t++)
            ring->device->ops->release(ring->device, ring->data[s][t],
                                       fib_tensor_bytes(&ring->problem.tensors[t]));
    fib_device_close(&ring->device);
    fib_pool_free(&ring->pool);
    fib_plan_free(&ring->plan);
}

static int64_t number(int argc, char **argv, int at, int64_t fallback, int64_t limit)
{
    if (at >= argc)
        return fallback;
    const long long value = atoll(argv[at]);
    if (value < 0 || value > limit)
        stop(argv[at], "out of range");
    return value;
}

/* Takes "--lib_path DIR" out of the words. */
static const char *take_lib_path(int *argc, char **argv)
{
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], "--lib_path") != 0)
            continue;
        const char *const folder = argv[i + 1];
        for (int k = i; k + 2 < *argc; k++)
            argv[k] = argv[k + 2];
        *argc -= 2;
        return folder;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct ring ring = {0};
    struct bare bare = {0};
    struct adapter adapter = {0};
    struct fib_error err = {0};
    const struct fib_registry registry = program_registry();
    const char *const lib_path = take_lib_path(&argc, argv);
    const struct shape shape = {number(argc, argv, 1, 8192, 1 << 20),
                                number(argc, argv, 2, 8192, 1 << 20),
                                number(argc, argv, 3, 8192, 1 << 20)};
    const int windows = (int)number(argc, argv, 4, 40, MAX_WINDOWS);
    ring.call_count = (uint32_t)number(argc, argv, 5, 4, MAX_CALLS);
    ring.slot_count = (uint32_t)number(argc, argv, 6, 2, MAX_SLOTS);
    const int64_t rest_ms = number(argc, argv, 7, 0, 10000);
    ring.pool = fib_pool_create(0);
    plan_case(&ring, &registry, &shape, lib_path);
    if (fib_device_cuda_open(ring.pool, 0, &ring.device, &err) != FIB_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    fill_ring(&ring);
    open_adapter(&adapter, &ring, &registry);
    need_ok(fib_cublaslt_open(&bare.lib, lib_path, &err), &err);
    describe_bare(&bare, &shape);
    cublasLtMatmulHeuristicResult_t results[OFFERED];
    if (search_bare(&bare, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, results) == 0)
        stop("search", "no candidates");
    bare.algo = results[0].algo;
    record_bare(&bare, &ring);
    const double ratio = compare(&bare, &adapter, &ring, windows, rest_ms);
    list_candidates(&bare, &ring, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    list_candidates(&bare, &ring, CUBLASLT_REDUCTION_SCHEME_MASK);
    close_all(&adapter, &bare, &ring);
    return ratio <= limit_ratio && ratio >= 1 / limit_ratio ? 0 : 1;
}
