/* Kernels that do what no kernel should. Plain C. Each function enqueues on the stream and returns
 * the CUDA runtime's error code of the launch, 0 when there was none; what the kernel does to the
 * GPU shows when somebody waits. */
#ifndef FIB_TESTS_GPU_FAULT_KERNELS_H
#define FIB_TESTS_GPU_FAULT_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

enum fault_type { FAULT_BF16, FAULT_F16, FAULT_F32 };

/* Flips one bit of a byte. */
int fault_flip_bit(struct CUstream_st *stream, void *address);
/* Doubles every element. */
int fault_double_all(struct CUstream_st *stream, enum fault_type type, void *data, int64_t count);
/* Writes eight bytes to whatever address it is given. */
int fault_store(struct CUstream_st *stream, uint64_t address);
int fault_trap(struct CUstream_st *stream);
int fault_assert(struct CUstream_st *stream);
/* Recursion without end. */
int fault_deep(struct CUstream_st *stream);
/* Does not end. Reads and writes one byte that may be anybody's, without changing it. */
int fault_loop(struct CUstream_st *stream, void *address);
/* More threads in a block than any GPU has: the launch itself is refused. */
int fault_oversized(struct CUstream_st *stream);
/* Waits for what is in the stream. */
int fault_wait(struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
