/* Rows of the registry from what a plug-in offers. */
#ifndef FIB_CORE_PLUGIN_ROWS_H
#define FIB_CORE_PLUGIN_ROWS_H

#include "core/json.h"
#include "core/plugin_call.h"

struct fib_arena;

/* Backend and family of one plug-in, whose names are its label; `family` NULL without routines. All
 * in `arena`. The sentence names the row at fault; whether names are free is not looked at. */
struct fib_plugin_rows {
    const struct fib_backend *backend;
    const struct fib_family *family;
};
enum fib_status fib_plugin_rows_make(struct fib_plugin_file *file, const struct fib_json *offer,
                                     struct fib_arena *arena, struct fib_plugin_rows *rows,
                                     struct fib_error *err);

#endif
