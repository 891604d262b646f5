/* cuBLAS, loaded when it is first needed. Only the adapters of this library include this page.
 * The entry points are a table, so that tests can put their own functions behind it. */
#ifndef FIB_BACKENDS_CUBLAS_LIB_H
#define FIB_BACKENDS_CUBLAS_LIB_H

#include <stdbool.h>

#include <cublas_v2.h>

#include "core/status.h"

struct fib_text;

struct fib_cublas {
    void *handle;
    __typeof__(cublasGetProperty) *get_property;
    __typeof__(cublasGetStatusName) *status_name;
    __typeof__(cublasCreate) *create;
    __typeof__(cublasDestroy) *destroy;
    __typeof__(cublasSetStream) *set_stream;
    __typeof__(cublasSetWorkspace) *set_workspace;
    __typeof__(cublasSetMathMode) *set_math_mode;
    __typeof__(cublasGemmEx) *gemm;
    __typeof__(cublasGemmStridedBatchedEx) *gemm_batched;
};

/* Loads the library and looks up the whole table. `folder` is searched first; may be NULL.
 * FIB_ERR_UNSUPPORTED: nothing usable was found; the sentence says where it looked, or what is
 * wrong with what was there. Each successful call is paired with a close. */
enum fib_status fib_cublas_open(struct fib_cublas *lib, const char *folder, struct fib_error *err);
/* Accepts a zeroed table; zeroes it. */
void fib_cublas_close(struct fib_cublas *lib);

/* One line for `doctor`: version and path, or what is missing. True when usable. */
bool fib_cublas_probe(struct fib_text *out);

#endif
