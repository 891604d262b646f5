/* Texts made from the tables: help, lists, descriptions, docs/options.md, the README's table. */
#ifndef FIB_CORE_HELP_H
#define FIB_CORE_HELP_H

#include "core/device.h"
#include "core/registry.h"

struct fib_text;

/* Global help: usage, verbs, shared and run flags; fits a screen of 60 lines x 100 columns. */
void fib_help_global(const struct fib_registry *registry, struct fib_text *out);
/* `--routine R --help`: flags of R with defaults and ranges. */
void fib_help_routine(const struct fib_registry *registry, const struct fib_routine *routine,
                      struct fib_text *out);
/* `describe R`: formula, tensors, flags, cost, tolerance, backends. */
void fib_help_describe(const struct fib_registry *registry, const struct fib_routine *routine,
                       struct fib_text *out);
/* `list`: routines by family with the backends that can run them here; family NULL = all. Unknown
 * family: FIB_ERR_USAGE with the nearest name. `markdown`: the table of README.md. */
enum fib_status fib_help_list(const struct fib_registry *registry, const char *family,
                              bool markdown, struct fib_text *out, struct fib_error *err);
/* `list --models`: the shapes of --model, a line each, with their sources. */
void fib_help_models(const struct fib_registry *registry, struct fib_text *out);
/* docs/options.md, whole. */
void fib_help_options_page(const struct fib_registry *registry, struct fib_text *out);

#endif
