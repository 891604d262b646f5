/* Finds and loads cuBLAS at run time, so that the program starts without it and fast. */
#include "backends/cublas_lib.h"

#include <dlfcn.h>
#include <stddef.h>

#include "core/library.h"
#include "core/text.h"

static const char *const file_names[] = {"libcublas.so.13", "libcublas.so.12", NULL};

enum { FIRST_MAJOR = 12, LAST_MAJOR = 13 };

/* The suffix is the name in the library of what the header calls cublasCreate and so on. */
#define ROW(member_, symbol_)                                                                      \
    {                                                                                              \
        (symbol_), offsetof(struct fib_cublas, member_)                                            \
    }
static const struct fib_library_entry_row entry_rows[] = {
    ROW(get_property, "cublasGetProperty"),
    ROW(status_name, "cublasGetStatusName"),
    ROW(create, "cublasCreate_v2"),
    ROW(destroy, "cublasDestroy_v2"),
    ROW(set_stream, "cublasSetStream_v2"),
    ROW(set_workspace, "cublasSetWorkspace_v2"),
    ROW(set_math_mode, "cublasSetMathMode"),
    ROW(gemm, "cublasGemmEx"),
    ROW(gemm_batched, "cublasGemmStridedBatchedEx"),
    {NULL, 0},
};

static int property(const struct fib_cublas *lib, libraryPropertyType type)
{
    int value = 0;
    return lib->get_property(type, &value) == CUBLAS_STATUS_SUCCESS ? value : 0;
}

enum fib_status fib_cublas_open(struct fib_cublas *lib, const char *folder, struct fib_error *err)
{
    const struct fib_library_spec spec = {
        .title = "cuBLAS",
        .names = file_names,
        .folder = folder,
        .advice = "the CUDA toolkit and the Python package nvidia-cublas have it; name its folder "
                  "with --lib_path",
    };
    *lib = (struct fib_cublas){.handle = fib_library_open(&spec, err)};
    if (!lib->handle)
        return FIB_ERR_UNSUPPORTED;
    const char *const missing = fib_library_fill(lib->handle, entry_rows, lib);
    const int major = missing ? 0 : property(lib, MAJOR_VERSION);
    if (!missing && major >= FIRST_MAJOR && major <= LAST_MAJOR)
        return FIB_OK;
    fib_cublas_close(lib);
    if (missing)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "the cuBLAS library that was found lacks %s",
                        missing);
    return fib_fail(err, FIB_ERR_UNSUPPORTED, "cuBLAS %d was found; versions 12 and 13 can be used",
                    major);
}

void fib_cublas_close(struct fib_cublas *lib)
{
    if (lib->handle)
        dlclose(lib->handle);
    *lib = (struct fib_cublas){0};
}

bool fib_cublas_probe(struct fib_text *out)
{
    struct fib_cublas lib;
    struct fib_error err = {0};
    if (fib_cublas_open(&lib, NULL, &err) != FIB_OK) {
        fib_text_add(out, err.text);
        return false;
    }
    fib_text_addf(out, "%d.%d.%d, %s", property(&lib, MAJOR_VERSION), property(&lib, MINOR_VERSION),
                  property(&lib, PATCH_LEVEL), fib_library_path(&lib.gemm));
    fib_cublas_close(&lib);
    return true;
}
