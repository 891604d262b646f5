/* Plug-ins of a run: rows of the registry made from shared libraries (include/fib_plugin.h,
 * docs/plugins.md). */
#ifndef FIB_CORE_PLUGIN_H
#define FIB_CORE_PLUGIN_H

#include <stddef.h>

#include "core/json.h"
#include "core/registry.h"

struct fib_plugins;

/* Asks each file what it offers, in a process of its own, and adds that to the tables of `base`,
 * which is borrowed. A file that is no plug-in, or whose routines or label are there already, adds
 * nothing and leaves a sentence; the others stand. Never NULL. The caller has no other threads. */
struct fib_plugins *fib_plugins_open(const struct fib_registry *base, const char *const *paths,
                                     size_t path_count);
/* Accepts NULL; resets the handle. */
void fib_plugins_free(struct fib_plugins **plugins);

/* The base's tables with those of the plug-ins; lives as long as they. */
const struct fib_registry *fib_plugins_registry(const struct fib_plugins *plugins);
/* "--plugin PATH: why not", for each file that is not used. */
size_t fib_plugins_failure_count(const struct fib_plugins *plugins);
const char *fib_plugins_failure(const struct fib_plugins *plugins, size_t i);

/* For fib_plugins_open and tests: adds what a plug-in at `path` says it has (core/plugin_probe.h).
 */
enum fib_status fib_plugins_add(struct fib_plugins *plugins, const char *path,
                                const struct fib_json *offer, struct fib_error *err);

#endif
