/* Reads the table of a plug-in (include/fib_plugin.h). Whoever calls this runs what the library
 * does when it is loaded: the short-lived process of core/plugin_probe.c, or a process that runs
 * cases.
 */
#ifndef FIB_CORE_PLUGIN_LOAD_H
#define FIB_CORE_PLUGIN_LOAD_H

#include "core/status.h"

struct fib_plugin;

/* Loads the library, which stays loaded, and checks its table: ABI number, sizes, names, and that
 * nothing that must be there is missing. The sentence does not name the path. */
enum fib_status fib_plugin_load(const char *path, const struct fib_plugin **table,
                                struct fib_error *err);
/* The checks alone. */
enum fib_status fib_plugin_check(const struct fib_plugin *table, struct fib_error *err);

#endif
