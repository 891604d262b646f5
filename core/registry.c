/* Look-ups in the tables of routines, adapters and labels. */
#include "core/registry.h"

#include <string.h>

#include "core/memory.h"
#include "core/suggest.h"
#include "core/text.h"

const struct fib_routine *fib_registry_routine_at(const struct fib_registry *registry, size_t n)
{
    for (size_t i = 0; i < registry->family_count; i++) {
        const struct fib_family *family = registry->families[i];
        if (n < family->routine_count)
            return &family->routines[n];
        n -= family->routine_count;
    }
    return NULL;
}

const struct fib_routine *fib_registry_routine(const struct fib_registry *registry,
                                               const char *name)
{
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(registry, n)); n++)
        if (strcmp(routine->name, name) == 0)
            return routine;
    return NULL;
}

const struct fib_routine *fib_registry_need_routine(const struct fib_registry *registry,
                                                    const char *name, struct fib_error *err)
{
    const struct fib_routine *routine = fib_registry_routine(registry, name);
    if (routine)
        return routine;
    struct fib_suggest suggest = fib_suggest_start(name);
    for (size_t n = 0; (routine = fib_registry_routine_at(registry, n)); n++)
        fib_suggest_try(&suggest, routine->name);
    struct fib_arena *arena = fib_arena_create();
    const char *clause = fib_suggest_clause(&suggest, "", arena);
    if (!*clause)
        clause = fib_arena_printf(arena, "; `%s list` shows all", registry->program);
    fib_fail(err, FIB_ERR_USAGE, "unknown routine %s%s", fib_shown(name, arena), clause);
    fib_arena_free(&arena);
    return NULL;
}

const struct fib_impl *fib_registry_impl(const struct fib_registry *registry, const char *routine,
                                         const char *label, enum fib_device_kind kind)
{
    for (size_t i = 0; i < registry->backend_count; i++) {
        const struct fib_backend *backend = registry->backends[i];
        for (size_t j = 0; j < backend->impl_count; j++) {
            const struct fib_impl *impl = &backend->impls[j];
            if (impl->device_kind == kind && strcmp(impl->label, label) == 0 &&
                strcmp(impl->routine, routine) == 0)
                return impl;
        }
    }
    return NULL;
}

/* "openblas_gemm" stands for label openblas, and for openblas-<anything>, of family gemm. */
static bool stands_for(const char *id, const char *label, const char *family)
{
    const size_t library_length = strcspn(id, "_");
    if (strncmp(id, label, library_length) != 0)
        return false;
    if (label[library_length] != '\0' && label[library_length] != '-')
        return false;
    return !family || id[library_length] == '\0' || strcmp(id + library_length + 1, family) == 0;
}

const struct fib_backend *fib_registry_absent(const struct fib_registry *registry,
                                              const char *label, const char *family)
{
    for (size_t i = 0; i < registry->backend_count; i++) {
        const struct fib_backend *backend = registry->backends[i];
        if (backend->absent && stands_for(backend->id, label, family))
            return backend;
    }
    return NULL;
}

const struct fib_label *fib_registry_label(const struct fib_registry *registry, const char *name)
{
    static const struct fib_label plugin = {.name = "plugin:", .meaning = "a loaded library"};
    for (size_t i = 0; i < registry->label_count; i++)
        if (strcmp(registry->labels[i].name, name) == 0)
            return &registry->labels[i];
    return strncmp(name, "plugin:", 7) == 0 && name[7] ? &plugin : NULL;
}

/* `labels` has room for the new row. */
static void add_label(struct fib_registry *registry, struct fib_label *labels, const char *name,
                      const char *meaning)
{
    if (!fib_registry_label(registry, name))
        labels[registry->label_count++] = (struct fib_label){.name = name, .meaning = meaning};
}

void fib_registry_add_labels(struct fib_registry *registry, struct fib_arena *arena)
{
    size_t most = registry->label_count;
    for (size_t i = 0; i < registry->backend_count; i++)
        most += registry->backends[i]->impl_count + 1;
    struct fib_label *labels = fib_arena_array(arena, most, sizeof(*labels));
    memcpy(labels, registry->labels, registry->label_count * sizeof(*labels));
    registry->labels = labels;
    for (size_t i = 0; i < registry->backend_count; i++) {
        const struct fib_backend *backend = registry->backends[i];
        const char *meaning = backend->meaning ? backend->meaning : backend->id;
        for (size_t j = 0; j < backend->impl_count; j++)
            add_label(registry, labels, backend->impls[j].label, meaning);
        if (backend->absent)
            add_label(registry, labels,
                      fib_arena_strndup(arena, backend->id, strcspn(backend->id, "_")),
                      backend->absent);
    }
}

static void apply_override(struct fib_option *row, const struct fib_option_override *override)
{
    if (override->fallback)
        row->fallback = override->fallback;
    if (override->choices)
        row->choices = override->choices;
    if (override->required)
        row->required = true;
}

static size_t row_count(const struct fib_option *rows)
{
    size_t count = 0;
    while (rows && rows[count].name)
        count++;
    return count;
}

struct fib_option_set fib_registry_options(const struct fib_routine *routine,
                                           struct fib_arena *arena)
{
    const size_t shared_count = row_count(fib_shared_options);
    const size_t family_count = routine ? row_count(routine->options) : 0;
    struct fib_option_set set = {.count = shared_count + family_count};
    set.rows = fib_arena_array(arena, set.count + 1, sizeof(*set.rows));
    memcpy(set.rows, fib_shared_options, shared_count * sizeof(*set.rows));
    if (family_count)
        memcpy(set.rows + shared_count, routine->options, family_count * sizeof(*set.rows));
    const struct fib_option_override *override = routine ? routine->overrides : NULL;
    for (; override && override->name; override++) {
        const int row = fib_option_index(&set, override->name);
        if (row >= 0)
            apply_override(&set.rows[row], override);
    }
    return set;
}
