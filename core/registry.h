/* The tables of the program in one place; the only way core reaches routines and backends. */
#ifndef FIB_CORE_REGISTRY_H
#define FIB_CORE_REGISTRY_H

#include <stddef.h>

#include "core/backend.h"
#include "core/routine.h"
#include "core/status.h"

/* Filled by main from the folders' tables. Arrays are borrowed and constant. */
struct fib_registry {
    const struct fib_family *const *families;
    size_t family_count;
    const struct fib_backend *const *backends;
    size_t backend_count;
    const struct fib_label *labels;
    size_t label_count;
    const struct fib_model *models;
    size_t model_count;
    const char *plugin_failure; /* why a --plugin is not there; NULL */
    const char *program;  /* "fib-bench" */
    const char *version;  /* "0.1.0" */
    const char *build_id; /* git description and compiler */
};

const struct fib_routine *fib_registry_routine(const struct fib_registry *registry,
                                               const char *name);
/* The same, with a sentence that suggests the nearest name. */
const struct fib_routine *fib_registry_need_routine(const struct fib_registry *registry,
                                                    const char *name, struct fib_error *err);
/* The implementation of a routine under a label on a kind of device, or NULL. */
const struct fib_impl *fib_registry_impl(const struct fib_registry *registry, const char *routine,
                                         const char *label, enum fib_device_kind kind);
/* The adapter that stands for a label but was built without its library (for the reason), or NULL.
 * Adapters are matched by the part of their id before the first '_'. */
const struct fib_backend *fib_registry_absent(const struct fib_registry *registry,
                                              const char *label, const char *family);
/* Completes `labels`, so far a table, in `arena`: labels that adapters use and the table lacks,
 * with the adapter's meaning, and the first word of the id of adapters whose library is absent.
 * Called once, before anything else. */
void fib_registry_add_labels(struct fib_registry *registry, struct fib_arena *arena);
/* Label row by name (aliases included), or NULL. Any "plugin:NAME" is known, under one row. */
const struct fib_label *fib_registry_label(const struct fib_registry *registry, const char *name);
/* Nth routine over all families; NULL past the end. */
const struct fib_routine *fib_registry_routine_at(const struct fib_registry *registry, size_t n);

/* Effective option rows of a routine: shared rows, then family rows with overrides; in `arena`. */
struct fib_option_set fib_registry_options(const struct fib_routine *routine,
                                           struct fib_arena *arena);

#endif
