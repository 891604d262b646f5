/* A GPU as a device: finding it, its facts, its context, and the table of operations. */
#include "gpu/device_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/pool.h"
#include "gpu/cuda_inner.h"
#include "gpu/stream.h"

static const uint64_t limit_cap_bytes = UINT64_C(8) << 30;
/* Shares of the peak that a first implementation reaches, for estimates. */
static const double bandwidth_share = 0.5;
static const double sm_flops_per_s = 4e11;

static void cuda_close(struct fib_device *device)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    if (!device->lost) {
        if (cuda->begin)
            (void)cudaEventDestroy(cuda->begin);
        if (cuda->end)
            (void)cudaEventDestroy(cuda->end);
        if (cuda->stream.handle)
            (void)cudaStreamDestroy(cuda->stream.handle);
        fib_cuda_close_staging(cuda);
        (void)cudaFree(cuda->flush);
        (void)cudaFree(cuda->scratch);
        (void)cudaFreeHost(cuda->page);
    }
    free(cuda);
}

static enum fib_status cuda_stream_create(struct fib_device *device, struct fib_stream **stream,
                                          struct fib_error *err)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    struct fib_stream *const made = fib_zalloc(sizeof(*made));
    enum fib_status st = fib_cuda_alive(cuda, err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaStreamCreate(&made->handle), err);
    *stream = st == FIB_OK ? made : NULL;
    if (st != FIB_OK)
        free(made);
    return st;
}

static void cuda_stream_destroy(struct fib_device *device, struct fib_stream **stream)
{
    if (*stream && !device->lost)
        (void)CUDA_TRY((struct cuda_device *)device, cudaStreamDestroy((*stream)->handle), NULL);
    free(*stream);
    *stream = NULL;
}

static enum fib_status cuda_synchronize(struct fib_device *device, struct fib_stream *stream,
                                        struct fib_error *err)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    const enum fib_status st = fib_cuda_alive(cuda, err);
    if (st != FIB_OK)
        return st;
    return stream ? CUDA_TRY(cuda, cudaStreamSynchronize(stream->handle), err)
                  : CUDA_TRY(cuda, cudaDeviceSynchronize(), err);
}

static const char *cuda_timer_refusal(const struct fib_device *device, enum fib_timer timer)
{
    (void)device;
    return timer == FIB_TIMER_CUPTI
               ? "activity records are not built into this program yet; graph, isolated, events "
                 "and wall are"
               : NULL;
}

static double cuda_now_ms(struct fib_device *device)
{
    (void)device;
    return fib_cuda_host_ms();
}

static int64_t cuda_utc_s(struct fib_device *device)
{
    (void)device;
    return (int64_t)time(NULL);
}

static void *cuda_native_stream(const struct fib_stream *stream)
{
    return fib_cuda_stream(stream);
}

static const struct fib_device_ops cuda_ops = {
    .close = cuda_close,
    .free_bytes = fib_cuda_free_bytes,
    .alloc = fib_cuda_alloc,
    .release = fib_cuda_release,
    .fill = fib_cuda_fill,
    .set_bytes = fib_cuda_set_bytes,
    .copy = fib_cuda_copy,
    .read = fib_cuda_read,
    .write = fib_cuda_write,
    .checksum = fib_cuda_checksum,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .synchronize = cuda_synchronize,
    .window_create = fib_cuda_window_create,
    .window_run = fib_cuda_window_run,
    .window_destroy = fib_cuda_window_destroy,
    .spread = fib_cuda_spread,
    .scan = fib_cuda_scan,
    .compare_slots = fib_cuda_compare_slots,
    .native_stream = cuda_native_stream,
    .meddled = fib_cuda_meddled,
    .timer_refusal = cuda_timer_refusal,
    .now_ms = cuda_now_ms,
    .utc_s = cuda_utc_s,
};

/* ---- finding a GPU ---- */

static bool has_driver_library(void)
{
    void *const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != NULL;
}

/* A library without its kernel module is no driver: a container that was given no GPU. */
static bool has_driver_module(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/proc/driver/nvidia/version", F_OK) == 0;
}

static void version_text(int version, char *text, size_t size)
{
    snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
}

static enum fib_status refuse_driver(cudaError_t code, struct fib_error *err)
{
    char driver[16], runtime[16];
    int driver_version = 0;
    (void)cudaDriverGetVersion(&driver_version);
    (void)cudaGetLastError();
    version_text(driver_version, driver, sizeof(driver));
    version_text(CUDART_VERSION, runtime, sizeof(runtime));
    if (code == cudaErrorInsufficientDriver && driver_version > 0)
        return fib_fail(err, FIB_ERR_DEVICE,
                        "the NVIDIA driver supports CUDA up to %s, this program needs %s: update "
                        "the driver, or set CUDA_VISIBLE_DEVICES= to measure on the CPU",
                        driver, runtime);
    return fib_fail(err, FIB_ERR_DEVICE,
                    "the NVIDIA driver is installed but fails: %s, %s; set CUDA_VISIBLE_DEVICES= "
                    "to measure on the CPU",
                    cudaGetErrorName(code), cudaGetErrorString(code));
}

/* An empty list hides all GPUs, also those of a driver that fails. */
static bool is_hidden(void)
{
    const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible && (visible[0] == '\0' || strcmp(visible, "-1") == 0);
}

static enum fib_status find_gpu(int ordinal, struct fib_error *err)
{
    int count = 0;
    if (is_hidden())
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "CUDA_VISIBLE_DEVICES hides all GPUs");
    if (!has_driver_library())
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "no NVIDIA driver (libcuda.so.1 not found)");
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0))
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "the NVIDIA driver sees no GPU");
    if (code == cudaErrorStubLibrary || (code != cudaSuccess && !has_driver_module()))
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "no NVIDIA driver (libcuda.so.1 is there, its kernel module is not)");
    if (code != cudaSuccess)
        return refuse_driver(code, err);
    if (ordinal < 0 || ordinal >= count)
        return fib_fail(err, FIB_ERR_USAGE, "there is no GPU %d; allowed: 0 to %d", ordinal,
                        count - 1);
    return FIB_OK;
}

/* ---- opening ---- */

static int attribute(const struct cuda_device *cuda, enum cudaDeviceAttr which)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, cuda->ordinal) != cudaSuccess)
        (void)cudaGetLastError();
    return value;
}

static void set_uuid(struct fib_device_facts *facts, const cudaUUID_t *uuid)
{
    unsigned char b[16];
    memcpy(b, uuid->bytes, sizeof(b));
    snprintf(facts->uuid, sizeof(facts->uuid),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

static void set_note(struct fib_device_facts *facts)
{
    char driver[16], runtime[16];
    int driver_version = 0;
    (void)cudaDriverGetVersion(&driver_version);
    version_text(driver_version, driver, sizeof(driver));
    version_text(CUDART_VERSION, runtime, sizeof(runtime));
    snprintf(facts->note, sizeof(facts->note), "driver for CUDA %s, runtime %s", driver, runtime);
}

static enum fib_status read_facts(struct cuda_device *cuda, struct fib_error *err)
{
    struct cudaDeviceProp prop;
    const enum fib_status st = CUDA_TRY(cuda, cudaGetDeviceProperties(&prop, cuda->ordinal), err);
    if (st != FIB_OK)
        return st;
    const double bytes_per_s = 2e3 * attribute(cuda, cudaDevAttrMemoryClockRate) *
                               attribute(cuda, cudaDevAttrGlobalMemoryBusWidth) / 8.0;
    cuda->base.facts = (struct fib_device_facts){
        .kind = FIB_DEVICE_CUDA,
        .compute_capability = 10 * prop.major + prop.minor,
        .unit_count = prop.multiProcessorCount,
        .memory_bytes = prop.totalGlobalMem,
        .cache_bytes = (uint64_t)prop.l2CacheSize,
        .ring_bytes = 3 * (uint64_t)prop.l2CacheSize,
        .default_timer = FIB_TIMER_GRAPH,
        .warmup_min_ms = 25,
        .warmup_cap_ms = 1000,
        .warmup_quick_ms = 5,
        .flops_per_s = sm_flops_per_s * prop.multiProcessorCount,
        .bytes_per_s = bytes_per_s > 0 ? bandwidth_share * bytes_per_s : 5e11,
        .default_backend = "cuda",
        .host_threads = (int)fib_pool_thread_count(cuda->base.pool),
    };
    snprintf(cuda->base.facts.name, sizeof(cuda->base.facts.name), "%.95s", prop.name);
    set_uuid(&cuda->base.facts, &prop.uuid);
    set_note(&cuda->base.facts);
    return FIB_OK;
}

/* The context comes up with the first call that needs it. */
static enum fib_status open_context(struct cuda_device *cuda, struct fib_error *err)
{
    void *page = NULL, *page_on_device = NULL, *scratch = NULL;
    enum fib_status st = CUDA_TRY(
        cuda, cudaInitDevice(cuda->ordinal, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid),
        err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaSetDevice(cuda->ordinal), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaStreamCreate(&cuda->stream.handle), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaEventCreate(&cuda->begin), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaEventCreate(&cuda->end), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaHostAlloc(&page, sizeof(*cuda->page), cudaHostAllocMapped), err);
    cuda->page = page;
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaHostGetDevicePointer(&page_on_device, page, 0), err);
    cuda->page_on_device = page_on_device;
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, cudaMalloc(&scratch, sizeof(*cuda->scratch)), err);
    cuda->scratch = scratch;
    if (st == FIB_OK)
        memset(page, 0, sizeof(*cuda->page));
    return st;
}

/* Every kernel of the device runs once before anything waits behind a hold: code is loaded at the
 * first launch, and loading waits for the GPU. */
static enum fib_status load_kernels(struct cuda_device *cuda, struct fib_error *err)
{
    const cudaStream_t stream = cuda->stream.handle;
    enum fib_status st = CUDA_TRY(cuda, fib_gpu_null(stream, 1, 32), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, fib_gpu_stamp(stream, cuda->page_on_device->before), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, fib_gpu_stamp(stream, cuda->page_on_device->after), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, fib_gpu_spin(stream, 1), err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, fib_gpu_hold(stream, &cuda->page_on_device->released, 0, 1), err);
    return st == FIB_OK ? CUDA_TRY(cuda, cudaStreamSynchronize(stream), err) : st;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

enum fib_status fib_device_cuda_open(struct fib_pool *pool, int ordinal, struct fib_device **device,
                                     struct fib_error *err)
{
    *device = NULL;
    enum fib_status st = find_gpu(ordinal, err);
    if (st != FIB_OK)
        return st;
    struct cuda_device *const cuda = fib_zalloc(sizeof(*cuda));
    cuda->base.ops = &cuda_ops;
    cuda->base.pool = pool;
    cuda->base.stream = &cuda->stream;
    cuda->ordinal = ordinal;
    st = open_context(cuda, err);
    if (st == FIB_OK)
        st = read_facts(cuda, err);
    cuda->set_aside_bytes = st == FIB_OK ? fib_cuda_set_aside_bytes() : 0;
    if (st == FIB_OK)
        st = load_kernels(cuda, err);
    if (st == FIB_OK)
        st = fib_cuda_calibrate(cuda, err);
    if (st != FIB_OK) {
        cuda_close(&cuda->base);
        /* Also when it is memory that is missing: without a context there is no device. */
        if (err && err->status == FIB_ERR_OOM)
            err->status = FIB_ERR_DEVICE;
        return FIB_ERR_DEVICE;
    }
    cuda->base.facts.ring_limit_bytes =
        min_u64(fib_cuda_free_bytes(&cuda->base) / 4, limit_cap_bytes);
    *device = &cuda->base;
    return FIB_OK;
}
