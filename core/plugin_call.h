/* Callbacks of plug-ins as the rest of the program calls implementations and routines. Each loads
 * the library when the process first needs it. */
#ifndef FIB_CORE_PLUGIN_CALL_H
#define FIB_CORE_PLUGIN_CALL_H

#include "core/backend.h"
#include "core/routine.h"

struct fib_plugin;

struct fib_plugin_file {
    const char *path, *label;       /* absolute; "plugin:NAME" */
    const struct fib_plugin *table; /* NULL until this process has loaded it */
};

/* What `context` of a row points at: entry `index` of the file's table of backends or routines. */
struct fib_plugin_ref {
    struct fib_plugin_file *file;
    uint32_t index;
    const char *routine;  /* to notice that the file is another one by now */
    const char *resolved; /* of a backend */
};

/* Members of struct fib_impl. `supports` is asked by prepare, where a crash has an owner. */
enum fib_status fib_plugin_prepare(const struct fib_prepare_args *args,
                                   struct fib_prepared **prepared, struct fib_error *err);
enum fib_status fib_plugin_run(struct fib_prepared *prepared, struct fib_stream *stream,
                               struct fib_error *err);
void fib_plugin_release(struct fib_prepared **prepared);
const char *fib_plugin_resolved(const struct fib_prepared *prepared, char *buffer,
                                size_t buffer_bytes);

/* Members of struct fib_routine. */
enum fib_status fib_plugin_outline(const struct fib_case *kase, struct fib_problem *problem,
                                   struct fib_error *err);
void fib_plugin_reference(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                          const struct fib_oracle_rows *rows);

#endif
