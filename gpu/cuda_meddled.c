/* States of a GPU that outlive a call and change what the next ones measure. */
#include <stdio.h>

#include "gpu/cuda_inner.h"

size_t fib_cuda_set_aside_bytes(void)
{
    size_t bytes = 0;
    if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess)
        return bytes;
    (void)cudaGetLastError(); /* a device without that limit */
    return 0;
}

/* Without bytes set aside no access persists, whatever a stream or a graph's node asks for. */
const char *fib_cuda_meddled(struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    const size_t bytes = fib_cuda_set_aside_bytes();
    if (bytes <= cuda->set_aside_bytes)
        return NULL;
    (void)cudaCtxResetPersistingL2Cache();
    (void)cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, cuda->set_aside_bytes);
    (void)cudaGetLastError();
    snprintf(buffer, buffer_bytes,
             "it set %zu bytes of the L2 cache aside for its data, so that cold calls are warm",
             bytes);
    return buffer;
}
