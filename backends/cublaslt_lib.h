/* cuBLASLt, loaded when it is first needed. Only the adapters of this library include this page.
 * The entry points are a table, so that tests can put their own functions behind it. */
#ifndef FIB_BACKENDS_CUBLASLT_LIB_H
#define FIB_BACKENDS_CUBLASLT_LIB_H

#include <stdbool.h>

#include <cublasLt.h>

#include "core/status.h"

struct fib_text;

struct fib_cublaslt {
    void *handle;
    __typeof__(cublasLtGetVersion) *get_version;
    __typeof__(cublasLtGetStatusName) *status_name;
    __typeof__(cublasLtCreate) *create;
    __typeof__(cublasLtDestroy) *destroy;
    __typeof__(cublasLtMatmulDescCreate) *desc_create;
    __typeof__(cublasLtMatmulDescSetAttribute) *desc_set;
    __typeof__(cublasLtMatmulDescDestroy) *desc_destroy;
    __typeof__(cublasLtMatrixLayoutCreate) *layout_create;
    __typeof__(cublasLtMatrixLayoutSetAttribute) *layout_set;
    __typeof__(cublasLtMatrixLayoutDestroy) *layout_destroy;
    __typeof__(cublasLtMatmulPreferenceCreate) *preference_create;
    __typeof__(cublasLtMatmulPreferenceSetAttribute) *preference_set;
    __typeof__(cublasLtMatmulPreferenceDestroy) *preference_destroy;
    __typeof__(cublasLtMatmulAlgoGetHeuristic) *get_heuristic;
    __typeof__(cublasLtMatmulAlgoConfigGetAttribute) *algo_get;
    __typeof__(cublasLtMatmul) *matmul;
};

/* Loads the library and looks up the whole table. `folder` is searched first; may be NULL.
 * FIB_ERR_UNSUPPORTED: nothing usable was found; the sentence says where it looked, or what is
 * wrong with what was there. Each successful call is paired with a close. */
enum fib_status fib_cublaslt_open(struct fib_cublaslt *lib, const char *folder,
                                  struct fib_error *err);
/* Accepts a zeroed table; zeroes it. */
void fib_cublaslt_close(struct fib_cublaslt *lib);

/* NULL when a library of this version (cublasLtGetVersion) can be used, else why not. */
const char *fib_cublaslt_version_refusal(size_t version, char *buffer, size_t buffer_bytes);
/* "13.1.0" */
const char *fib_cublaslt_version_text(size_t version, char *buffer, size_t buffer_bytes);

/* One line for `doctor`: version and path, or what is missing. True when usable. */
bool fib_cublaslt_probe(struct fib_text *out);

#endif
