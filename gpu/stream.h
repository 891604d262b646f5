/* What an adapter for a CUDA library or kernel needs from the device. Plain C; no CUDA header is
 * needed to include this. */
#ifndef FIB_GPU_STREAM_H
#define FIB_GPU_STREAM_H

#include "core/status.h"

struct CUstream_st;
struct fib_stream;

/* The CUDA stream behind a device stream, as the runtime, the driver and every CUDA library name
 * it. NULL, which a CUDA device never passes to an adapter, gives NULL. The result lives as long as
 * the stream; the caller only enqueues into it. */
struct CUstream_st *fib_cuda_stream(const struct fib_stream *stream);

/* Turns the CUDA runtime's error code of a launch into a status: FIB_OK for 0, FIB_ERR_OOM when
 * there was no memory, else FIB_ERR_DEVICE, with "WHAT: cudaErrorName, its meaning". */
enum fib_status fib_cuda_launched(int code, const char *what, struct fib_error *err);

#endif
