/* Inside of the CUDA device, shared by its files. */
#ifndef FIB_GPU_CUDA_INNER_H
#define FIB_GPU_CUDA_INNER_H

#include <cuda_runtime_api.h>

#include "core/device.h"
#include "gpu/device_cuda.h"
#include "gpu/device_kernels.h"

struct fib_stream {
    cudaStream_t handle;
};

/* Host memory that kernels see, shared by all windows: they run one at a time. */
struct cuda_page {
    struct fib_gpu_stamp before[FIB_GPU_STAMPS], after[FIB_GPU_STAMPS];
    uint32_t released; /* ticket of the last hold that was let go */
};

/* Device memory for results of small kernels. */
struct cuda_scratch {
    uint64_t words[4];
    uint32_t sink;
};

struct cuda_overhead {
    bool known;
    double window_ms;
    const char *method;
};

/* Page-locked memory that long reads pass through, two pieces in turn. */
struct cuda_staging {
    unsigned char *piece[2];
    cudaEvent_t done[2];
};

struct cuda_device {
    struct fib_device base; /* first: the device handle points here; base.lost follows a sticky
                               error */
    char lost_text[FIB_ERROR_CHARS];
    int ordinal;
    size_t set_aside_bytes; /* of the L2 for persisting accesses, when the device was opened */
    struct fib_stream stream; /* of everything, see fib_cuda_on(); waits for the legacy default
                                 stream and is waited for */
    cudaEvent_t begin, end;   /* of the window under way */
    struct cuda_page *page, *page_on_device;
    struct cuda_scratch *scratch; /* device memory */
    void *flush;                  /* 3 x L2, allocated by the first isolated window */
    struct cuda_staging staging;  /* made by the first long read */
    uint32_t ticket;
    struct cuda_overhead overhead[FIB_TIMER_WALL + 1];
};

/* Notes a failed CUDA call as "CALL failed: cudaErrorName, meaning (file:line)"; one that breaks
 * the process's context marks the device as lost. */
enum fib_status fib_cuda_check(struct cuda_device *device, cudaError_t code, const char *call,
                               const char *file, int line, struct fib_error *err);
#define CUDA_TRY(device, call, err)                                                                \
    fib_cuda_check((device), (cudaError_t)(call), #call, __FILE__, __LINE__, (err))

/* FIB_ERR_DEVICE with the first error's text once the device is lost. */
enum fib_status fib_cuda_alive(const struct cuda_device *device, struct fib_error *err);

/* The stream that is meant: our own for NULL. The legacy default stream is never used: after some
 * ten launches into it every kernel of every graph of the process starts 0.18 us later (seen on an
 * H200, driver 580). */
static inline cudaStream_t fib_cuda_on(const struct cuda_device *device,
                                       const struct fib_stream *stream)
{
    return stream ? stream->handle : device->stream.handle;
}

/* cuda_memory.c */
uint64_t fib_cuda_free_bytes(struct fib_device *device);
enum fib_status fib_cuda_alloc(struct fib_device *device, size_t bytes, void **address,
                               struct fib_error *err);
void fib_cuda_release(struct fib_device *device, void *address, size_t bytes);
enum fib_status fib_cuda_fill(struct fib_device *device, const struct fib_fill *fill,
                              enum fib_dtype dtype, uint64_t key, uint64_t first, size_t count,
                              void *dst, struct fib_error *err);
enum fib_status fib_cuda_set_bytes(struct fib_device *device, void *dst, int byte, size_t bytes,
                                   struct fib_error *err);
enum fib_status fib_cuda_copy(struct fib_device *device, struct fib_stream *stream, void *dst,
                              const void *src, size_t bytes, struct fib_error *err);
enum fib_status fib_cuda_read(struct fib_device *device, void *host, const void *src, size_t bytes,
                              struct fib_error *err);
enum fib_status fib_cuda_write(struct fib_device *device, void *dst, const void *host, size_t bytes,
                               struct fib_error *err);
enum fib_status fib_cuda_checksum(struct fib_device *device, const void *src, size_t bytes,
                                  uint64_t *sum, struct fib_error *err);
enum fib_status fib_cuda_spread(struct fib_device *device, struct fib_stream *stream, void *dst,
                                uint64_t stride_bytes, const uint32_t *slots, uint32_t slot_count,
                                const void *src, size_t bytes, struct fib_error *err);
enum fib_status fib_cuda_scan(struct fib_device *device, const void *src, size_t elem_bytes,
                              uint64_t count, uint64_t mask, uint64_t pattern,
                              struct fib_scan_hits *hits, struct fib_error *err);
enum fib_status fib_cuda_compare_slots(struct fib_device *device, const void *base,
                                       uint64_t stride_bytes, uint32_t slot_count,
                                       const struct fib_span *skipped, int skipped_count,
                                       uint32_t *first_slot, struct fib_error *err);

/* cuda_transfer.c */
/* Between host and device, after all that is in our stream; waits for the end. */
enum fib_status fib_cuda_transfer(struct cuda_device *cuda, void *dst, const void *src,
                                  size_t bytes, enum cudaMemcpyKind kind, struct fib_error *err);
void fib_cuda_close_staging(struct cuda_device *device);

/* cuda_window.c */
enum fib_status fib_cuda_window_create(struct fib_device *device,
                                       const struct fib_window_spec *spec,
                                       struct fib_window **window, struct fib_error *err);
enum fib_status fib_cuda_window_run(struct fib_window *window, struct fib_window_sample *sample,
                                    struct fib_error *err);
void fib_cuda_window_destroy(struct fib_window **window);
/* One window without calls of a timer that loops, in ms. */
enum fib_status fib_cuda_empty_window(struct cuda_device *device, enum fib_timer timer,
                                      double *window_ms, struct fib_error *err);
double fib_cuda_host_ms(void);

/* cuda_meddled.c */
/* Bytes of the L2 that are set aside for persisting accesses; 0 where there is no such thing. */
size_t fib_cuda_set_aside_bytes(void);
const char *fib_cuda_meddled(struct fib_device *device, char *buffer, size_t buffer_bytes);

/* cuda_calibrate.c */
/* Tick, window overhead and gap of graph windows; about 40 ms. */
enum fib_status fib_cuda_calibrate(struct cuda_device *device, struct fib_error *err);
/* Overhead of the other timers, measured when first asked for. */
enum fib_status fib_cuda_need_overhead(struct cuda_device *device, enum fib_timer timer,
                                       struct fib_error *err);

#endif
