/* OpenBLAS, loaded when it is first needed. Only the adapters of this library include this page. */
#ifndef FIB_BACKENDS_OPENBLAS_LIB_H
#define FIB_BACKENDS_OPENBLAS_LIB_H

#include <stdbool.h>

#include <cblas.h>

#include "core/status.h"

struct fib_text;

/* The entry points in use. The cblas header is needed for the enums and this prototype alone. */
struct fib_openblas {
    void *handle;
    __typeof__(cblas_sgemm) *sgemm;
    void (*set_num_threads)(int thread_count);
    char *(*get_config)(void);   /* version and build options */
    char *(*get_corename)(void); /* the kernels chosen for this processor */
};

/* Loads the library and looks up the whole table. FIB_ERR_UNSUPPORTED: nothing usable was found;
 * the sentence says where it looked. Each successful call is paired with a close. */
enum fib_status fib_openblas_open(struct fib_openblas *lib, struct fib_error *err);
/* Accepts a zeroed table; zeroes it. */
void fib_openblas_close(struct fib_openblas *lib);

/* One line for `doctor`: version, kernels and path, or what is missing. True when usable. */
bool fib_openblas_probe(struct fib_text *out);

#endif
