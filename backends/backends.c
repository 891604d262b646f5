/* The registry of adapters, made from the list in meson.build (backend_rows.h is generated). */
#include "backends/backends.h"

#define FIB_ROW(id_) extern const struct fib_backend fib_backend_##id_;
#define FIB_ABSENT_ROW(id_, reason_)                                                               \
    static const struct fib_backend fib_backend_##id_ = {.id = #id_, .absent = (reason_)};
#include "backend_rows.h"
#undef FIB_ROW
#undef FIB_ABSENT_ROW

#define FIB_ROW(id_) &fib_backend_##id_,
#define FIB_ABSENT_ROW(id_, reason_) &fib_backend_##id_,
const struct fib_backend *const fib_backends[] = {
#include "backend_rows.h"
};
const size_t fib_backend_count = sizeof(fib_backends) / sizeof(fib_backends[0]);
