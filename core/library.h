/* Shared libraries that are loaded when first needed: where they are looked for, and the sentence
 * when they are not there. Knows no library by name. */
#ifndef FIB_CORE_LIBRARY_H
#define FIB_CORE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct fib_library_spec {
    const char *title;        /* for sentences: "OpenBLAS" */
    const char *const *names; /* file names, the best first; ends with NULL */
    const char *folder;       /* searched before all else (--lib_path); may be NULL */
    const char *advice;       /* end of the sentence: what to install; may be NULL */
};

/* Looks in `folder`, in what the dynamic loader knows (LD_LIBRARY_PATH, the program's own run path,
 * the system's folders), in CUDA_HOME, CUDA_PATH and /usr/local/cuda, then in nvidia/.../lib below
 * every package folder of Python that can be told without running it. In each place the names are
 * tried in order. The library stays loaded after dlclose(): its threads and caches outlive a case,
 * and loading it anew would cost more than many a case.
 *
 * NULL with FIB_ERR_UNSUPPORTED in *err: the sentence says where it looked, or why the file that
 * was there could not be loaded. */
void *fib_library_open(const struct fib_library_spec *spec, struct fib_error *err);

/* Copies the address of a symbol into *entry, a function pointer of entry_bytes bytes. False, and
 * *entry NULL, when the library has no such symbol. */
bool fib_library_entry(void *handle, const char *name, void *entry, size_t entry_bytes);

/* Entry points of a library: name, and where in a table of function pointers the address goes. */
struct fib_library_entry_row {
    const char *name;
    size_t offset;
};
/* Fills all rows (which end with name NULL); NULL when all are there, else the first missing. */
const char *fib_library_fill(void *handle, const struct fib_library_entry_row *rows, void *table);

/* Path of the file that holds this function, "unknown path" when the loader cannot tell. `entry`
 * points at the function pointer. */
const char *fib_library_path(const void *entry);

#endif
