/* Memory of the CUDA device: blocks, contents, copies, checksums, and walks over ring slots.
 *
 * Everything without a stream of its own runs in the device's: fib_cuda_on(). */
#include <math.h>
#include <stdio.h>

#include "core/text.h"
#include "gpu/cuda_inner.h"

/* For what the driver and libraries take on their own: graphs, workspaces, local memory. */
static const uint64_t reserve_bytes = UINT64_C(256) << 20;

static struct cuda_device *cuda_of(struct fib_device *device)
{
    return (struct cuda_device *)device;
}

uint64_t fib_cuda_free_bytes(struct fib_device *device)
{
    struct cuda_device *const cuda = cuda_of(device);
    size_t free_bytes = 0, total_bytes = 0;
    if (device->lost || CUDA_TRY(cuda, cudaMemGetInfo(&free_bytes, &total_bytes), NULL) != FIB_OK)
        return 0;
    const uint64_t kept = reserve_bytes + (cuda->flush ? 0 : device->facts.ring_bytes);
    return free_bytes > kept ? free_bytes - kept : 0;
}

static enum fib_status refuse_memory(struct fib_device *device, size_t bytes, struct fib_error *err)
{
    size_t free_bytes = 0, total_bytes = 0;
    (void)CUDA_TRY(cuda_of(device), cudaMemGetInfo(&free_bytes, &total_bytes), NULL);
    struct fib_text text = {0};
    fib_text_add(&text, "the GPU refuses a block of ");
    fib_text_add_bytes(&text, (double)bytes);
    fib_text_add(&text, ", ");
    fib_text_add_bytes(&text, (double)free_bytes);
    fib_text_add(&text, " of ");
    fib_text_add_bytes(&text, (double)total_bytes);
    fib_text_add(&text, " are free");
    const enum fib_status st = fib_fail(err, FIB_ERR_OOM, "%s", fib_text_chars(&text));
    fib_text_free(&text);
    return st;
}

enum fib_status fib_cuda_alloc(struct fib_device *device, size_t bytes, void **address,
                               struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    *address = NULL;
    enum fib_status st = fib_cuda_alive(cuda, err);
    if (st != FIB_OK)
        return st;
    const cudaError_t code = cudaMalloc(address, bytes > 0 ? bytes : 1);
    if (code != cudaErrorMemoryAllocation)
        return CUDA_TRY(cuda, code, err);
    (void)cudaGetLastError();
    return refuse_memory(device, bytes, err);
}

void fib_cuda_release(struct fib_device *device, void *address, size_t bytes)
{
    (void)bytes;
    if (address && !device->lost)
        (void)CUDA_TRY(cuda_of(device), cudaFree(address), NULL);
}

enum fib_status fib_cuda_fill(struct fib_device *device, const struct fib_fill *fill,
                              enum fib_dtype dtype, uint64_t key, uint64_t first, size_t count,
                              void *dst, struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    const struct fib_gpu_fill job = {.kind = fill->kind,
                                     .dtype = dtype,
                                     .scale = fill->scale,
                                     .offset = fill->offset,
                                     .key = key,
                                     .first = first,
                                     .count = count,
                                     .dst = dst};
    const enum fib_status st = fib_cuda_alive(cuda, err);
    return st == FIB_OK ? CUDA_TRY(cuda, fib_gpu_fill(cuda->stream.handle, &job), err) : st;
}

enum fib_status fib_cuda_set_bytes(struct fib_device *device, void *dst, int byte, size_t bytes,
                                   struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    const enum fib_status st = fib_cuda_alive(cuda, err);
    return st == FIB_OK
               ? CUDA_TRY(cuda, cudaMemsetAsync(dst, byte, bytes, cuda->stream.handle), err)
               : st;
}

enum fib_status fib_cuda_copy(struct fib_device *device, struct fib_stream *stream, void *dst,
                              const void *src, size_t bytes, struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    const enum fib_status st = fib_cuda_alive(cuda, err);
    return st == FIB_OK ? CUDA_TRY(cuda,
                                   cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice,
                                                   fib_cuda_on(cuda, stream)),
                                   err)
                        : st;
}

enum fib_status fib_cuda_write(struct fib_device *device, void *dst, const void *host, size_t bytes,
                               struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    const enum fib_status st = fib_cuda_alive(cuda, err);
    return st == FIB_OK ? fib_cuda_transfer(cuda, dst, host, bytes, cudaMemcpyHostToDevice, err)
                        : st;
}

/* Result words of the kernel just launched; waits for it. */
static enum fib_status fetch(struct cuda_device *cuda, uint64_t *words, size_t count,
                             struct fib_error *err)
{
    return fib_cuda_transfer(cuda, words, cuda->scratch->words, count * sizeof(*words),
                             cudaMemcpyDeviceToHost, err);
}

enum fib_status fib_cuda_checksum(struct fib_device *device, const void *src, size_t bytes,
                                  uint64_t *sum, struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    uint64_t total = 0;
    enum fib_status st = fib_cuda_alive(cuda, err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda, fib_gpu_checksum(cuda->stream.handle, src, bytes, cuda->scratch->words),
                      err);
    if (st == FIB_OK)
        st = fetch(cuda, &total, 1, err);
    *sum = fib_gpu_checksum_value(total, bytes);
    return st;
}

enum fib_status fib_cuda_spread(struct fib_device *device, struct fib_stream *stream, void *dst,
                                uint64_t stride_bytes, const uint32_t *slots, uint32_t slot_count,
                                const void *src, size_t bytes, struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    const enum fib_status st = fib_cuda_alive(cuda, err);
    return st == FIB_OK ? CUDA_TRY(cuda,
                                   fib_gpu_spread(fib_cuda_on(cuda, stream), dst, stride_bytes,
                                                  slots, slot_count, src, bytes),
                                   err)
                        : st;
}

enum fib_status fib_cuda_scan(struct fib_device *device, const void *src, size_t elem_bytes,
                              uint64_t count, uint64_t mask, uint64_t pattern,
                              struct fib_scan_hits *hits, struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    uint64_t found[2] = {0, UINT64_MAX};
    enum fib_status st = fib_cuda_alive(cuda, err);
    if (st == FIB_OK)
        st = CUDA_TRY(cuda,
                      fib_gpu_scan(cuda->stream.handle, src, (unsigned)elem_bytes, count, mask,
                                   pattern, cuda->scratch->words),
                      err);
    if (st == FIB_OK)
        st = fetch(cuda, found, 2, err);
    hits->count = (int64_t)found[0];
    hits->first = found[1] == UINT64_MAX ? -1 : (int64_t)found[1];
    return st;
}

enum fib_status fib_cuda_compare_slots(struct fib_device *device, const void *base,
                                       uint64_t stride_bytes, uint32_t slot_count,
                                       const struct fib_span *skipped, int skipped_count,
                                       uint32_t *first_slot, struct fib_error *err)
{
    struct cuda_device *const cuda = cuda_of(device);
    struct fib_gpu_span spans[FIB_GPU_MAX_SPANS] = {0};
    uint64_t found = UINT64_MAX;
    enum fib_status st = fib_cuda_alive(cuda, err);
    if (skipped_count > FIB_GPU_MAX_SPANS)
        return fib_fail(err, FIB_ERR_INTERNAL, "%d spans are too many to skip", skipped_count);
    for (int k = 0; k < skipped_count; k++)
        spans[k] = (struct fib_gpu_span){skipped[k].first, skipped[k].last};
    if (st == FIB_OK)
        st = CUDA_TRY(cuda,
                      fib_gpu_compare_slots(cuda->stream.handle, base, stride_bytes, slot_count,
                                            spans, skipped_count, cuda->scratch->words),
                      err);
    if (st == FIB_OK)
        st = fetch(cuda, &found, 1, err);
    *first_slot = found > UINT32_MAX ? UINT32_MAX : (uint32_t)found;
    return st;
}
