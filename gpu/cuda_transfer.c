/* Reading device memory: short reads directly, long ones through page-locked pieces that all
 * threads of the pool copy on, because fresh pages of a big host buffer cost more than the
 * transfer. */
#include <string.h>

#include "core/pool.h"
#include "gpu/cuda_inner.h"

enum { PIECE_BYTES = 8 << 20, LONG_BYTES = 4 << 20, COPY_GRAIN = 256 << 10 };

static enum fib_status need_staging(struct cuda_device *cuda, struct fib_error *err)
{
    struct cuda_staging *const staging = &cuda->staging;
    enum fib_status st = FIB_OK;
    for (int i = 0; i < 2 && st == FIB_OK; i++) {
        void *piece = staging->piece[i];
        if (!piece)
            st = CUDA_TRY(cuda, cudaHostAlloc(&piece, PIECE_BYTES, cudaHostAllocDefault), err);
        if (st == FIB_OK && !staging->done[i])
            st = CUDA_TRY(cuda, cudaEventCreateWithFlags(&staging->done[i], cudaEventDisableTiming),
                          err);
        staging->piece[i] = piece;
    }
    return st;
}

enum fib_status fib_cuda_transfer(struct cuda_device *cuda, void *dst, const void *src,
                                  size_t bytes, enum cudaMemcpyKind kind, struct fib_error *err)
{
    const cudaStream_t stream = cuda->stream.handle;
    const enum fib_status st = CUDA_TRY(cuda, cudaMemcpyAsync(dst, src, bytes, kind, stream), err);
    return st == FIB_OK ? CUDA_TRY(cuda, cudaStreamSynchronize(stream), err) : st;
}

void fib_cuda_close_staging(struct cuda_device *cuda)
{
    for (int i = 0; i < 2; i++) {
        (void)cudaFreeHost(cuda->staging.piece[i]);
        if (cuda->staging.done[i])
            (void)cudaEventDestroy(cuda->staging.done[i]);
    }
    cuda->staging = (struct cuda_staging){0};
}

struct copy_job {
    unsigned char *dst;
    const unsigned char *src;
};

static void copy_part(void *context, int64_t first, int64_t last)
{
    const struct copy_job *const job = context;
    memcpy(job->dst + first, job->src + first, (size_t)(last - first));
}

static size_t piece_length(size_t bytes, size_t piece)
{
    const size_t left = bytes - piece * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static enum fib_status start_piece(struct cuda_device *cuda, const unsigned char *src, size_t bytes,
                                   size_t piece, struct fib_error *err)
{
    struct cuda_staging *const staging = &cuda->staging;
    const cudaStream_t stream = cuda->stream.handle;
    const enum fib_status st =
        CUDA_TRY(cuda,
                 cudaMemcpyAsync(staging->piece[piece % 2], src + piece * PIECE_BYTES,
                                 piece_length(bytes, piece), cudaMemcpyDeviceToHost, stream),
                 err);
    return st == FIB_OK ? CUDA_TRY(cuda, cudaEventRecord(staging->done[piece % 2], stream), err)
                        : st;
}

/* Piece p + 1 is under way while the threads copy piece p. */
static enum fib_status read_long(struct cuda_device *cuda, unsigned char *host,
                                 const unsigned char *src, size_t bytes, struct fib_error *err)
{
    const size_t count = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    enum fib_status st = need_staging(cuda, err);
    if (st == FIB_OK)
        st = start_piece(cuda, src, bytes, 0, err);
    for (size_t piece = 0; piece < count && st == FIB_OK; piece++) {
        if (piece + 1 < count)
            st = start_piece(cuda, src, bytes, piece + 1, err);
        if (st == FIB_OK)
            st = CUDA_TRY(cuda, cudaEventSynchronize(cuda->staging.done[piece % 2]), err);
        struct copy_job job = {.dst = host + piece * PIECE_BYTES,
                               .src = cuda->staging.piece[piece % 2]};
        if (st == FIB_OK)
            fib_pool_for(cuda->base.pool, (int64_t)piece_length(bytes, piece), COPY_GRAIN,
                         copy_part, &job);
    }
    return st;
}

enum fib_status fib_cuda_read(struct fib_device *device, void *host, const void *src, size_t bytes,
                              struct fib_error *err)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    const enum fib_status st = fib_cuda_alive(cuda, err);
    if (st != FIB_OK)
        return st;
    if (bytes >= LONG_BYTES)
        return read_long(cuda, host, src, bytes, err);
    return fib_cuda_transfer(cuda, host, src, bytes, cudaMemcpyDeviceToHost, err);
}
