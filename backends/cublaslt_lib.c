/* Finds and loads cuBLASLt at run time, so that the program starts without it and fast. */
#include "backends/cublaslt_lib.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "core/library.h"
#include "core/text.h"

/* Descriptors and results have had the same layout in both; the newer one knows more kernels. */
static const char *const file_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};

enum { FIRST_VERSION = 120000, END_VERSION = 140000 };

#define ROW(member_, symbol_)                                                                      \
    {                                                                                              \
        (symbol_), offsetof(struct fib_cublaslt, member_)                                          \
    }
static const struct fib_library_entry_row entry_rows[] = {
    ROW(get_version, "cublasLtGetVersion"),
    ROW(status_name, "cublasLtGetStatusName"),
    ROW(create, "cublasLtCreate"),
    ROW(destroy, "cublasLtDestroy"),
    ROW(desc_create, "cublasLtMatmulDescCreate"),
    ROW(desc_set, "cublasLtMatmulDescSetAttribute"),
    ROW(desc_destroy, "cublasLtMatmulDescDestroy"),
    ROW(layout_create, "cublasLtMatrixLayoutCreate"),
    ROW(layout_set, "cublasLtMatrixLayoutSetAttribute"),
    ROW(layout_destroy, "cublasLtMatrixLayoutDestroy"),
    ROW(preference_create, "cublasLtMatmulPreferenceCreate"),
    ROW(preference_set, "cublasLtMatmulPreferenceSetAttribute"),
    ROW(preference_destroy, "cublasLtMatmulPreferenceDestroy"),
    ROW(get_heuristic, "cublasLtMatmulAlgoGetHeuristic"),
    ROW(algo_get, "cublasLtMatmulAlgoConfigGetAttribute"),
    ROW(matmul, "cublasLtMatmul"),
    {NULL, 0},
};

const char *fib_cublaslt_version_text(size_t version, char *buffer, size_t buffer_bytes)
{
    snprintf(buffer, buffer_bytes, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    return buffer;
}

const char *fib_cublaslt_version_refusal(size_t version, char *buffer, size_t buffer_bytes)
{
    char text[40];
    if (version >= FIRST_VERSION && version < END_VERSION)
        return NULL;
    snprintf(buffer, buffer_bytes, "cuBLASLt %s was found; versions 12 and 13 can be used",
             fib_cublaslt_version_text(version, text, sizeof(text)));
    return buffer;
}

enum fib_status fib_cublaslt_open(struct fib_cublaslt *lib, const char *folder,
                                  struct fib_error *err)
{
    const struct fib_library_spec spec = {
        .title = "cuBLASLt",
        .names = file_names,
        .folder = folder,
        .advice = "the CUDA toolkit and the Python package nvidia-cublas have it; name its folder "
                  "with --lib_path",
    };
    char buffer[160];
    *lib = (struct fib_cublaslt){.handle = fib_library_open(&spec, err)};
    if (!lib->handle)
        return FIB_ERR_UNSUPPORTED;
    const char *const missing = fib_library_fill(lib->handle, entry_rows, lib);
    const char *const refusal =
        missing ? NULL : fib_cublaslt_version_refusal(lib->get_version(), buffer, sizeof(buffer));
    if (!missing && !refusal)
        return FIB_OK;
    fib_cublaslt_close(lib);
    if (missing)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "the cuBLASLt library that was found lacks %s",
                        missing);
    return fib_fail(err, FIB_ERR_UNSUPPORTED, "%s", refusal);
}

void fib_cublaslt_close(struct fib_cublaslt *lib)
{
    if (lib->handle)
        dlclose(lib->handle);
    *lib = (struct fib_cublaslt){0};
}

bool fib_cublaslt_probe(struct fib_text *out)
{
    struct fib_cublaslt lib;
    struct fib_error err = {0};
    char version[40];
    if (fib_cublaslt_open(&lib, NULL, &err) != FIB_OK) {
        fib_text_add(out, err.text);
        return false;
    }
    fib_text_addf(out, "%s, %s",
                  fib_cublaslt_version_text(lib.get_version(), version, sizeof(version)),
                  fib_library_path(&lib.matmul));
    fib_cublaslt_close(&lib);
    return true;
}
