/* Finds and loads OpenBLAS at run time, so that the program starts without it and fast. */
#include "backends/openblas_lib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* The versioned name is what runs without development files. */
static const char *const file_names[] = {"libopenblas.so.0", "libopenblas.so"};
enum { FILE_NAME_COUNT = sizeof(file_names) / sizeof(file_names[0]) };

/* A data pointer may not be cast to a function pointer in ISO C; its bytes may be copied. */
static bool look_up(void *handle, const char *name, void *entry, size_t entry_bytes)
{
    void *const address = dlsym(handle, name);
    memcpy(entry, &address, entry_bytes);
    return address != NULL;
}

#define LOOK_UP(lib, member, symbol)                                                               \
    look_up((lib)->handle, symbol, &(lib)->member, sizeof((lib)->member))

/* NULL when the table is complete, else the first missing symbol. */
static const char *fill_table(struct fib_openblas *lib)
{
    if (!LOOK_UP(lib, sgemm, "cblas_sgemm"))
        return "cblas_sgemm";
    if (!LOOK_UP(lib, set_num_threads, "openblas_set_num_threads"))
        return "openblas_set_num_threads";
    if (!LOOK_UP(lib, get_config, "openblas_get_config"))
        return "openblas_get_config";
    if (!LOOK_UP(lib, get_corename, "openblas_get_corename"))
        return "openblas_get_corename";
    return NULL;
}

static const char *library_path(const struct fib_openblas *lib)
{
    Dl_info info;
    void *address = NULL;
    memcpy(&address, &lib->sgemm, sizeof(address));
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "unknown path";
}

/* RTLD_NODELETE: the library's own threads and thread-local buffers outlive one case, and starting
 * them anew for each would cost more than small products. */
static void *open_first(char *tried, size_t tried_bytes)
{
    size_t used = 0;
    for (int i = 0; i < FILE_NAME_COUNT; i++) {
        void *const handle = dlopen(file_names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle)
            return handle;
        const char *const text = dlerror();
        const int length = snprintf(tried + used, tried_bytes - used, "%s%s", i ? "; " : "",
                                    text ? text : file_names[i]);
        if (length < 0 || (size_t)length >= tried_bytes - used)
            break;
        used += (size_t)length;
    }
    return NULL;
}

enum fib_status fib_openblas_open(struct fib_openblas *lib, struct fib_error *err)
{
    char tried[512] = "";
    *lib = (struct fib_openblas){.handle = open_first(tried, sizeof(tried))};
    if (!lib->handle)
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "OpenBLAS not found (%s): looked in LD_LIBRARY_PATH and the system's "
                        "library folders; the package libopenblas0 or libopenblas has it",
                        tried);
    const char *const missing = fill_table(lib);
    if (!missing)
        return FIB_OK;
    fib_openblas_close(lib);
    return fib_fail(err, FIB_ERR_UNSUPPORTED,
                    "the OpenBLAS library that was found lacks %s: another BLAS under its name?",
                    missing);
}

void fib_openblas_close(struct fib_openblas *lib)
{
    if (lib->handle)
        dlclose(lib->handle);
    *lib = (struct fib_openblas){0};
}

bool fib_openblas_probe(struct fib_text *out)
{
    struct fib_openblas lib;
    struct fib_error err = {0};
    if (fib_openblas_open(&lib, &err) != FIB_OK) {
        fib_text_add(out, err.text);
        return false;
    }
    fib_text_addf(out, "%s, kernels for %s, %s", lib.get_config(), lib.get_corename(),
                  library_path(&lib));
    fib_openblas_close(&lib);
    return true;
}
