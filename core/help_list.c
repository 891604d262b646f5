/* Lists: routines with their backends, for a terminal and as the table of README.md; models. */
#include "core/help.h"

#include <string.h>

#include "core/help_rows.h"
#include "core/memory.h"
#include "core/suggest.h"
#include "core/text.h"

enum { NAME_INDENT = 44, MODEL_INDENT = 18 };

static const struct fib_family *find_family(const struct fib_registry *registry, const char *name,
                                            struct fib_error *err)
{
    struct fib_suggest suggest = fib_suggest_start(name);
    struct fib_text names = {0};
    for (size_t i = 0; i < registry->family_count; i++) {
        if (strcmp(registry->families[i]->name, name) == 0) {
            fib_text_free(&names);
            return registry->families[i];
        }
        fib_suggest_try(&suggest, registry->families[i]->name);
        fib_text_addf(&names, "%s%s", i ? " " : "", registry->families[i]->name);
    }
    struct fib_arena *arena = fib_arena_create();
    const char *clause = fib_suggest_clause(&suggest, "", arena);
    if (!*clause)
        clause = fib_arena_printf(arena, "; there are %s", fib_text_chars(&names));
    fib_fail(err, FIB_ERR_USAGE, "--family %s: unknown%s", fib_shown(name, arena), clause);
    fib_arena_free(&arena);
    fib_text_free(&names);
    return NULL;
}

/* "cpu, openblas; cuda on a CUDA device", or "" when nothing is built. In arena. */
static const char *runs_under(const struct fib_registry *registry,
                              const struct fib_routine *routine, struct fib_arena *arena)
{
    const char *host = fib_help_labels(registry, routine, false, arena);
    const char *device = fib_help_labels(registry, routine, true, arena);
    if (!*device)
        return host;
    return fib_arena_printf(arena, "%s%s%s on a CUDA device", host, *host ? "; " : "", device);
}

static void add_absent(const struct fib_registry *registry, const struct fib_family *family,
                       struct fib_text *out)
{
    for (size_t i = 0; i < registry->label_count; i++) {
        const char *label = registry->labels[i].name;
        const struct fib_backend *absent = fib_registry_absent(registry, label, family->name);
        if (absent)
            fib_text_addf(out, "  %s: %s\n", label, absent->absent);
    }
}

static void add_family(const struct fib_registry *registry, const struct fib_family *family,
                       struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    fib_text_addf(out, "%s: %s\n", family->name, family->summary);
    for (size_t i = 0; i < family->routine_count; i++) {
        const struct fib_routine *routine = &family->routines[i];
        const char *labels = runs_under(registry, routine, arena);
        fib_text_addf(out, "  %s ", routine->name);
        fib_help_wrap(out, NAME_INDENT, *labels ? labels : "not built");
    }
    add_absent(registry, family, out);
    fib_arena_free(&arena);
}

static void add_markdown_rows(const struct fib_registry *registry, const struct fib_family *family,
                              struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    for (size_t i = 0; i < family->routine_count; i++) {
        const struct fib_routine *routine = &family->routines[i];
        const char *labels = runs_under(registry, routine, arena);
        fib_text_addf(out, "| %s | `%s` | %s |\n", i == 0 ? family->name : "", routine->name,
                      *labels ? labels : "planned");
    }
    fib_arena_free(&arena);
}

enum fib_status fib_help_list(const struct fib_registry *registry, const char *family,
                              bool markdown, struct fib_text *out, struct fib_error *err)
{
    const struct fib_family *only = family ? find_family(registry, family, err) : NULL;
    if (family && !only)
        return FIB_ERR_USAGE;
    if (markdown)
        fib_text_add(out, "| Family | Routine | Backends |\n|---|---|---|\n");
    for (size_t i = 0; i < registry->family_count; i++) {
        if (only && only != registry->families[i])
            continue;
        if (markdown)
            add_markdown_rows(registry, registry->families[i], out);
        else
            add_family(registry, registry->families[i], out);
    }
    return FIB_OK;
}

void fib_help_models(const struct fib_registry *registry, struct fib_text *out)
{
    const char *previous = "";
    for (size_t i = 0; i < registry->model_count; i++) {
        const struct fib_model *model = &registry->models[i];
        if (strcmp(previous, model->name) != 0)
            fib_text_addf(out, "%s: %s\n", model->name, model->source);
        previous = model->name;
        fib_text_addf(out, "  %s ", model->family);
        fib_help_wrap(out, MODEL_INDENT, model->words);
    }
}
