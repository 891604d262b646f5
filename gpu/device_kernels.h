/* The device's own small kernels: filling, checking, copying, stamping, waiting.
 *
 * Plain C. Each function enqueues on `stream` and returns the CUDA runtime's error code, 0 when it
 * was launched; nothing synchronises. Pointers are device addresses unless said otherwise. */
#ifndef FIB_GPU_DEVICE_KERNELS_H
#define FIB_GPU_DEVICE_KERNELS_H

#include "core/dtype.h"
#include "core/fill.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Elements [first, first + count) of a stream of contents, bit-identical with fib_fill_range. */
struct fib_gpu_fill {
    enum fib_fill_kind kind;
    enum fib_dtype dtype;
    float scale, offset; /* scale 0 means 1 */
    uint64_t key, first, count;
    void *dst;
};
int fib_gpu_fill(struct CUstream_st *stream, const struct fib_gpu_fill *fill);

/* *total becomes the sum over the chunks; fib_gpu_checksum_value() makes fib_checksum's value of
 * it on the host. */
int fib_gpu_checksum(struct CUstream_st *stream, const void *src, uint64_t byte_count,
                     uint64_t *total);
uint64_t fib_gpu_checksum_value(uint64_t total, uint64_t byte_count);

/* Elements whose bits under `mask` equal `pattern`: found[0] is their number, found[1] the index
 * of the first one (UINT64_MAX: none). src is aligned to the element. */
int fib_gpu_scan(struct CUstream_st *stream, const void *src, unsigned elem_bytes, uint64_t count,
                 uint64_t mask, uint64_t pattern, uint64_t found[2]);

/* Copies one source to dst + slots[i] * stride_bytes for each i; `slots` is a host array that may
 * change as soon as the function returns. */
int fib_gpu_spread(struct CUstream_st *stream, void *dst, uint64_t stride_bytes,
                   const uint32_t *slots, uint32_t slot_count, const void *src, uint64_t bytes);

/* Smallest slot >= 1 that differs from slot 0 outside the skipped spans (UINT64_MAX: none). base
 * and stride_bytes are multiples of 16. */
enum { FIB_GPU_MAX_SPANS = 32 };
struct fib_gpu_span {
    uint64_t first, last; /* bytes [first, last) from the start of a slot */
};
int fib_gpu_compare_slots(struct CUstream_st *stream, const void *base, uint64_t stride_bytes,
                          uint32_t slot_count, const struct fib_gpu_span *skipped,
                          int skipped_count, uint64_t *first_slot);

/* One reading of both clocks on each SM that a block happens to run on. */
enum { FIB_GPU_STAMPS = 8 };
struct fib_gpu_stamp {
    uint64_t time_ns; /* the GPU's global timer, read when it had just stepped */
    uint64_t cycles;  /* of the SM's clock */
    uint64_t sm;
};
int fib_gpu_stamp(struct CUstream_st *stream, struct fib_gpu_stamp stamps[FIB_GPU_STAMPS]);

int fib_gpu_null(struct CUstream_st *stream, unsigned block_count, unsigned thread_count);
/* One thread that reads its SM's clock until so many cycles have passed. */
int fib_gpu_spin(struct CUstream_st *stream, uint64_t cycles);

/* Keeps the stream waiting until *released (host memory, seen from the device) is `ticket`, at
 * most limit_ns. */
int fib_gpu_hold(struct CUstream_st *stream, const uint32_t *released, uint32_t ticket,
                 uint64_t limit_ns);

/* Pushes everything else out of the L2: writes the first write_bytes of the buffer, reads
 * read_bytes after them. Both multiples of 16. *sink is written only to keep the reads. */
int fib_gpu_flush(struct CUstream_st *stream, void *buffer, uint64_t write_bytes,
                  uint64_t read_bytes, uint32_t *sink);

#ifdef __cplusplus
}
#endif

#endif
