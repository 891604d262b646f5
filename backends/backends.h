/* All adapters and known labels, for main and the tests. */
#ifndef FIB_BACKENDS_BACKENDS_H
#define FIB_BACKENDS_BACKENDS_H

#include <stddef.h>

#include "core/backend.h"

extern const struct fib_backend *const fib_backends[];
extern const size_t fib_backend_count;

/* Labels of the reference and ours, with old spellings. */
extern const struct fib_label fib_labels[];
extern const size_t fib_label_count;

#endif
