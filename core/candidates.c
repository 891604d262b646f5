/* Turns backend labels into implementations or refusals. A refusal is a row, never a silence. */
#include "core/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

static struct fib_candidate *add(struct fib_candidates *list, const char *label)
{
    list->items = fib_realloc(list->items, (list->count + 1) * sizeof(list->items[0]));
    struct fib_candidate *const item = &list->items[list->count++];
    *item = (struct fib_candidate){.label = fib_arena_strdup(list->arena, label)};
    return item;
}

static bool contains(const struct fib_candidates *list, const char *label)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].label, label) == 0)
            return true;
    return false;
}

static void refuse(struct fib_candidate *item, const char *reason)
{
    item->impl = NULL;
    item->status = FIB_RESULT_UNSUPPORTED;
    snprintf(item->reason, sizeof(item->reason), "%s", reason);
}

/* Reason why this implementation cannot take the problem here, or NULL. */
static const char *impl_refusal(const struct fib_impl *impl, const struct fib_case *kase,
                                const struct fib_problem *problem, const struct fib_device *device,
                                char *buffer, size_t buffer_bytes)
{
    const int cc = device->facts.compute_capability;
    if (impl->min_cc > cc) {
        snprintf(buffer, buffer_bytes, "needs compute capability >= %d.%d, device has %d.%d",
                 impl->min_cc / 10, impl->min_cc % 10, cc / 10, cc % 10);
        return buffer;
    }
    return impl->refuse ? impl->refuse(kase, problem, device, buffer, buffer_bytes) : NULL;
}

/* A label of the form plugin:NAME for which there is nothing. */
static void explain_plugin(const struct fib_registry *registry, struct fib_candidate *item,
                           const struct fib_case *kase, const struct fib_device *device)
{
    char text[FIB_ERROR_CHARS];
    const char *const where = device->facts.kind == FIB_DEVICE_CUDA ? "a CUDA device" : "a CPU";
    bool loaded = false;
    for (size_t b = 0; b < registry->backend_count; b++)
        loaded = loaded || strcmp(registry->backends[b]->id, item->label) == 0;
    if (loaded)
        snprintf(text, sizeof(text), "%s has nothing for %s on %s", item->label,
                 kase->routine->name, where);
    else if (registry->plugin_failure)
        snprintf(text, sizeof(text), "no plug-in of this name was loaded (%s)",
                 registry->plugin_failure);
    else
        snprintf(text, sizeof(text), "no plug-in of this name was loaded; --plugin PATH loads one");
    refuse(item, text);
}

static void explain_missing(const struct fib_registry *registry, struct fib_candidate *item,
                            const struct fib_case *kase, const struct fib_device *device)
{
    const struct fib_routine *const routine = kase->routine;
    const struct fib_backend *const absent =
        fib_registry_absent(registry, item->label, routine->family);
    char text[FIB_ERROR_CHARS];
    if (absent) {
        refuse(item, absent->absent);
        return;
    }
    if (device->facts.kind != FIB_DEVICE_CUDA &&
        fib_registry_impl(registry, routine->name, item->label, FIB_DEVICE_CUDA)) {
        refuse(item, "needs a CUDA device; none was found");
        return;
    }
    if (strncmp(item->label, "plugin:", 7) == 0) {
        explain_plugin(registry, item, kase, device);
        return;
    }
    const struct fib_label *const label = fib_registry_label(registry, item->label);
    snprintf(text, sizeof(text), "no %s for %s in this build%s%s%s", item->label, routine->name,
             label && label->meaning ? " (" : "", label && label->meaning ? label->meaning : "",
             label && label->meaning ? ")" : "");
    refuse(item, text);
}

/* `auto`: the highest-ranked implementation that takes the problem. */
static void resolve_auto(const struct fib_registry *registry, struct fib_candidate *item,
                         const struct fib_case *kase, const struct fib_problem *problem,
                         const struct fib_device *device)
{
    char buffer[FIB_ERROR_CHARS];
    for (size_t b = 0; b < registry->backend_count; b++) {
        const struct fib_backend *const backend = registry->backends[b];
        for (size_t i = 0; i < backend->impl_count; i++) {
            const struct fib_impl *const impl = &backend->impls[i];
            if (strcmp(impl->routine, kase->routine->name) != 0 ||
                impl->device_kind != device->facts.kind ||
                (item->impl && impl->auto_rank <= item->impl->auto_rank) ||
                impl_refusal(impl, kase, problem, device, buffer, sizeof(buffer)))
                continue;
            item->impl = impl;
        }
    }
    if (!item->impl)
        refuse(item, "nothing in this build can run the routine on this device");
}

static void resolve(const struct fib_registry *registry, struct fib_candidate *item,
                    const struct fib_case *kase, const struct fib_problem *problem,
                    const struct fib_device *device)
{
    char buffer[FIB_ERROR_CHARS];
    if (!problem) {
        snprintf(buffer, sizeof(buffer), "%s is %s", kase->routine->name,
                 kase->routine->unavailable);
        refuse(item, buffer);
        return;
    }
    item->impl = fib_registry_impl(registry, kase->routine->name, item->label, device->facts.kind);
    if (!item->impl && strcmp(item->label, "auto") == 0) {
        resolve_auto(registry, item, kase, problem, device);
        return;
    }
    if (!item->impl) {
        explain_missing(registry, item, kase, device);
        return;
    }
    const char *const reason =
        impl_refusal(item->impl, kase, problem, device, buffer, sizeof(buffer));
    if (reason)
        refuse(item, reason);
}

/* Adds each label of a space-separated list once, aliases resolved. */
static void add_words(const struct fib_registry *registry, struct fib_candidates *list,
                      const char *words)
{
    size_t length;
    for (const char *word = fib_words_next(words, &length); word;
         word = fib_words_next(word + length, &length)) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)length, word);
        const struct fib_label *const label = fib_registry_label(registry, name);
        const char *const known = label && label->alias_of ? label->alias_of : name;
        if (!contains(list, known))
            add(list, known);
    }
}

/* The device's default label, or where nothing of the routine has it the routine's own default. */
static const char *fallback_label(const struct fib_registry *registry,
                                  const struct fib_routine *routine,
                                  const struct fib_device *device)
{
    const char *const usual = device->facts.default_backend;
    if (fib_registry_impl(registry, routine->name, usual, device->facts.kind))
        return usual;
    return fib_registry_impl(registry, routine->name, routine->default_backends, device->facts.kind)
               ? routine->default_backends
               : usual;
}

static size_t count_runnable(const struct fib_candidates *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].impl != NULL;
    return count;
}

void fib_candidates_name(const struct fib_registry *registry, const struct fib_case *kase,
                         const struct fib_device *device, struct fib_candidates *candidates)
{
    const char *const named = kase->settings.backends;
    const char *const also = kase->settings.also;
    const bool own_default = device->facts.kind == FIB_DEVICE_CUDA || kase->routine->outline;
    const char *const usual =
        own_default ? kase->routine->default_backends : device->facts.default_backend;
    *candidates = (struct fib_candidates){.arena = fib_arena_create()};
    add_words(registry, candidates, named ? named : usual ? usual : device->facts.default_backend);
    if (also && strcmp(also, "none") != 0)
        add_words(registry, candidates, also);
}

void fib_candidates_pick(const struct fib_registry *registry, const struct fib_case *kase,
                         const struct fib_problem *problem, const struct fib_device *device,
                         struct fib_candidates *candidates)
{
    const char *const also = kase->settings.also;
    fib_candidates_name(registry, kase, device, candidates);
    for (size_t i = 0; i < candidates->count; i++)
        resolve(registry, &candidates->items[i], kase, problem, device);
    candidates->runnable_count = count_runnable(candidates);
    const char *const fallback = fallback_label(registry, kase->routine, device);
    if (candidates->runnable_count == 0 && problem && !(also && strcmp(also, "none") == 0) &&
        !contains(candidates, fallback)) {
        struct fib_candidate *const item = add(candidates, fallback);
        resolve(registry, item, kase, problem, device);
        candidates->runnable_count = count_runnable(candidates);
    }
}

void fib_candidates_free(struct fib_candidates *candidates)
{
    free(candidates->items);
    fib_arena_free(&candidates->arena);
    *candidates = (struct fib_candidates){0};
}
