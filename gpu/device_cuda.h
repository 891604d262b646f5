/* The CUDA device of this process. Plain C; needs no CUDA header. */
#ifndef FIB_GPU_DEVICE_CUDA_H
#define FIB_GPU_DEVICE_CUDA_H

#include "core/device.h"

/* Opens GPU number `ordinal` as CUDA counts them, makes its context and measures the timer's
 * constants (about 50 ms). The pool is borrowed.
 *
 * FIB_ERR_UNSUPPORTED: this machine has no usable GPU at all (no driver library, no GPU); the text
 *   says which, and a caller may go on with the CPU.
 * FIB_ERR_USAGE: there are GPUs, but none with this number.
 * FIB_ERR_DEVICE: a driver is there and fails (too old, broken, GPU lost). */
enum fib_status fib_device_cuda_open(struct fib_pool *pool, int ordinal, struct fib_device **device,
                                     struct fib_error *err);

#endif
