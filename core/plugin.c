/* The tables of a run with plug-ins: what each file offers goes beside the program's own rows. */
#include "core/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/plugin_probe.h"
#include "core/plugin_rows.h"

/* Seconds that a library may take to load. */
static const double load_limit_s = 20.0;

struct fib_plugins {
    struct fib_registry registry;
    struct fib_arena *arena;
    /* what registry points at; grown, not in the arena */
    const struct fib_family **families;
    const struct fib_backend **backends;
    struct fib_label *labels;
    const char **failures;
    size_t failure_count;
};

static struct fib_plugins *create(const struct fib_registry *base)
{
    struct fib_plugins *const plugins = fib_zalloc(sizeof(*plugins));
    plugins->arena = fib_arena_create();
    plugins->registry = *base;
    return plugins;
}

/* A copy of `count` items with room for one more; `old` is freed. */
static void *grow(const void *items, size_t count, size_t item_bytes, void *old)
{
    char *const copy = fib_zalloc_array(count + 1, item_bytes);
    if (count > 0)
        memcpy(copy, items, count * item_bytes);
    free(old);
    return copy;
}

static void add_family(struct fib_plugins *p, const struct fib_family *family)
{
    struct fib_registry *const r = &p->registry;
    p->families = grow(r->families, r->family_count, sizeof(p->families[0]), p->families);
    p->families[r->family_count++] = family;
    r->families = p->families;
}

static void add_backend(struct fib_plugins *p, const struct fib_backend *backend)
{
    struct fib_registry *const r = &p->registry;
    p->backends = grow(r->backends, r->backend_count, sizeof(p->backends[0]), p->backends);
    p->backends[r->backend_count++] = backend;
    r->backends = p->backends;
    p->labels = grow(r->labels, r->label_count, sizeof(p->labels[0]), p->labels);
    p->labels[r->label_count++] = (struct fib_label){
        .name = backend->id, .meaning = backend->meaning ? backend->meaning : backend->origin};
    r->labels = p->labels;
}

/* ---- are the names free? ---- */

static enum fib_status check_label(const struct fib_plugins *p, const struct fib_plugin_file *file,
                                   struct fib_error *err)
{
    for (size_t i = 0; i < p->registry.backend_count; i++)
        if (strcmp(p->registry.backends[i]->id, file->label) == 0)
            return fib_fail(err, FIB_ERR_USAGE, "%s is there already, from %s", file->label,
                            p->registry.backends[i]->origin);
    return FIB_OK;
}

static enum fib_status check_routines(const struct fib_plugins *p, const struct fib_family *family,
                                      struct fib_error *err)
{
    for (size_t i = 0; family && i < family->routine_count; i++) {
        const char *const name = family->routines[i].name;
        const struct fib_routine *const other = fib_registry_routine(&p->registry, name);
        if (other)
            return fib_fail(err, FIB_ERR_USAGE, "routine %s is there already, in family %s", name,
                            other->family);
        for (size_t j = 0; j < i; j++)
            if (strcmp(name, family->routines[j].name) == 0)
                return fib_fail(err, FIB_ERR_USAGE, "has two routines %s", name);
    }
    return FIB_OK;
}

static bool has_routine(const struct fib_family *family, const char *name)
{
    for (size_t i = 0; family && i < family->routine_count; i++)
        if (strcmp(family->routines[i].name, name) == 0)
            return true;
    return false;
}

static enum fib_status check_backends(const struct fib_plugins *p,
                                      const struct fib_plugin_rows *rows, struct fib_error *err)
{
    for (size_t i = 0; i < rows->backend->impl_count; i++) {
        const struct fib_impl *const impl = &rows->backend->impls[i];
        struct fib_error why = {0};
        if (!has_routine(rows->family, impl->routine) &&
            !fib_registry_need_routine(&p->registry, impl->routine, &why))
            return fib_fail(err, FIB_ERR_USAGE, "brings a backend for an %s", why.text);
        for (size_t j = 0; j < i; j++)
            if (impl->device_kind == rows->backend->impls[j].device_kind &&
                strcmp(impl->routine, rows->backend->impls[j].routine) == 0)
                return fib_fail(err, FIB_ERR_USAGE, "has two backends for %s on one kind of device",
                                impl->routine);
    }
    return FIB_OK;
}

enum fib_status fib_plugins_add(struct fib_plugins *p, const char *path,
                                const struct fib_json *offer, struct fib_error *err)
{
    struct fib_plugin_file *const file = fib_arena_alloc(p->arena, sizeof(*file));
    struct fib_plugin_rows rows = {0};
    const char *const name = fib_json_text(offer, "name");
    file->path = fib_arena_strdup(p->arena, path);
    file->label = fib_arena_printf(p->arena, "plugin:%s", name ? name : "");
    enum fib_status st = check_label(p, file, err);
    if (st == FIB_OK)
        st = fib_plugin_rows_make(file, offer, p->arena, &rows, err);
    if (st == FIB_OK)
        st = check_routines(p, rows.family, err);
    if (st == FIB_OK)
        st = check_backends(p, &rows, err);
    if (st != FIB_OK)
        return st;
    if (rows.family)
        add_family(p, rows.family);
    add_backend(p, rows.backend);
    return FIB_OK;
}

/* ---- opening ---- */

/* The loader looks for names without a slash elsewhere than the user. */
static enum fib_status open_path(struct fib_plugins *p, const char *path, struct fib_error *err)
{
    char absolute[PATH_MAX];
    if (!realpath(path, absolute))
        return fib_fail(err, FIB_ERR_IO, "cannot be opened: %s", strerror(errno));
    struct fib_json *offer = fib_plugin_probe(absolute, load_limit_s, err);
    const enum fib_status st = offer ? fib_plugins_add(p, absolute, offer, err) : err->status;
    fib_json_free(&offer);
    return st;
}

static void note_failure(struct fib_plugins *p, const char *path, const char *why)
{
    const char *const sentence = fib_arena_printf(p->arena, "--plugin %s: %s", path, why);
    p->failures = grow(p->failures, p->failure_count, sizeof(p->failures[0]), p->failures);
    p->failures[p->failure_count++] = sentence;
    if (!p->registry.plugin_failure)
        p->registry.plugin_failure = sentence;
}

struct fib_plugins *fib_plugins_open(const struct fib_registry *base, const char *const *paths,
                                     size_t path_count)
{
    struct fib_plugins *const plugins = create(base);
    for (size_t i = 0; i < path_count; i++) {
        struct fib_error err = {0};
        if (open_path(plugins, paths[i], &err) != FIB_OK)
            note_failure(plugins, paths[i], err.text);
    }
    return plugins;
}

void fib_plugins_free(struct fib_plugins **plugins)
{
    struct fib_plugins *const p = *plugins;
    if (!p)
        return;
    free(p->families);
    free(p->backends);
    free(p->labels);
    free(p->failures);
    fib_arena_free(&p->arena);
    free(p);
    *plugins = NULL;
}

const struct fib_registry *fib_plugins_registry(const struct fib_plugins *plugins)
{
    return &plugins->registry;
}

size_t fib_plugins_failure_count(const struct fib_plugins *plugins)
{
    return plugins->failure_count;
}

const char *fib_plugins_failure(const struct fib_plugins *plugins, size_t i)
{
    return plugins->failures[i];
}
