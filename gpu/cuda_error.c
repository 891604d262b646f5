/* Errors of the CUDA runtime in words, and which of them end the use of the GPU in this process. */
#include <stdio.h>
#include <string.h>

#include "gpu/cuda_inner.h"
#include "gpu/stream.h"

/* After these the context is broken: every later call gives the same error. */
static bool is_sticky(cudaError_t code)
{
    switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorContextIsDestroyed:
    case cudaErrorExternalDevice:
    case cudaErrorMpsRpcFailure:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum fib_status fib_cuda_check(struct cuda_device *device, cudaError_t code, const char *call,
                               const char *file, int line, struct fib_error *err)
{
    if (code == cudaSuccess)
        return FIB_OK;
    (void)cudaGetLastError(); /* a passing error must not come up again at the next launch */
    char text[256];
    snprintf(text, sizeof(text), "%.*s failed: %s, %s (%s:%d)", (int)strcspn(call, "("), call,
             cudaGetErrorName(code), cudaGetErrorString(code), base_name(file), line);
    if (is_sticky(code) && !device->base.lost) {
        device->base.lost = true;
        memcpy(device->lost_text, text, sizeof(text));
    }
    return fib_fail(err, code == cudaErrorMemoryAllocation ? FIB_ERR_OOM : FIB_ERR_DEVICE, "%s",
                    text);
}

enum fib_status fib_cuda_alive(const struct cuda_device *device, struct fib_error *err)
{
    if (!device->base.lost)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_DEVICE, "the GPU is lost to this process since %s",
                    device->lost_text);
}

struct CUstream_st *fib_cuda_stream(const struct fib_stream *stream)
{
    return stream ? stream->handle : NULL;
}

enum fib_status fib_cuda_launched(int code, const char *what, struct fib_error *err)
{
    if (code == cudaSuccess)
        return FIB_OK;
    (void)cudaGetLastError();
    return fib_fail(err, code == cudaErrorMemoryAllocation ? FIB_ERR_OOM : FIB_ERR_DEVICE,
                    "%s: %s, %s", what, cudaGetErrorName((cudaError_t)code),
                    cudaGetErrorString((cudaError_t)code));
}
