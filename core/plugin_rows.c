/* Translates a plug-in's offer into the rows that backends and routines of the program have. */
#include "core/plugin_rows.h"

#include <string.h>

#include "core/memory.h"
#include "core/text.h"
#include "include/fib_plugin.h"

static char *text_of(const struct fib_json *object, const char *name, struct fib_arena *arena)
{
    const char *const text = fib_json_text(object, name);
    return text ? fib_arena_strdup(arena, text) : NULL;
}

static const struct fib_plugin_ref *make_ref(struct fib_plugin_file *file, size_t index,
                                             const char *routine, const char *ran,
                                             struct fib_arena *arena)
{
    struct fib_plugin_ref *const ref = fib_arena_alloc(arena, sizeof(*ref));
    *ref = (struct fib_plugin_ref){
        .file = file,
        .index = (uint32_t)index,
        .routine = routine,
        .resolved = ran ? fib_arena_printf(arena, "%s/%s", file->label, ran) : file->label};
    return ref;
}

static const struct fib_backend *make_backend(struct fib_plugin_file *file,
                                              const struct fib_json *offer, struct fib_arena *arena)
{
    const struct fib_json *const entries = fib_json_get(offer, "backends");
    const size_t count = fib_json_count(entries);
    struct fib_impl *const impls = fib_arena_array(arena, count + 1, sizeof(impls[0]));
    struct fib_backend *const backend = fib_arena_alloc(arena, sizeof(*backend));
    for (size_t i = 0; i < count; i++) {
        const struct fib_json *const entry = fib_json_at(entries, i);
        const char *const routine = text_of(entry, "routine", arena);
        impls[i] = (struct fib_impl){
            .routine = routine,
            .label = file->label,
            .device_kind = (enum fib_device_kind)(int)fib_json_f64(entry, "device"),
            .min_cc = (int)fib_json_f64(entry, "min_cc"),
            .auto_rank = -1, /* `auto` picks among what the program itself has, where it has any */
            .context = make_ref(file, i, routine, fib_json_text(entry, "ran"), arena),
            .prepare = fib_plugin_prepare,
            .run = fib_plugin_run,
            .release = fib_plugin_release,
            .resolved = fib_plugin_resolved};
    }
    *backend = (struct fib_backend){.id = file->label,
                                    .impls = impls,
                                    .impl_count = count,
                                    .meaning = text_of(offer, "describe", arena),
                                    .origin = file->path};
    return backend;
}

static bool is_shared_flag(const char *name)
{
    for (const struct fib_option *row = fib_shared_options; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return true;
    return false;
}

static enum fib_status check_dtypes(const struct fib_option *option, const char *routine,
                                    struct fib_error *err)
{
    size_t length = 0;
    for (const char *word = option->choices; (word = fib_words_next(word, &length));
         word += length) {
        enum fib_dtype dtype;
        char name[32] = "";
        if (length < sizeof(name))
            memcpy(name, word, length);
        if (!fib_dtype_parse(name, &dtype))
            return fib_fail(err, FIB_ERR_UNSUPPORTED,
                            "routine %s: flag %s: there is no dtype '%.*s'", routine, option->name,
                            (int)length, word);
    }
    return FIB_OK;
}

/* A default must itself be allowed. */
static enum fib_status check_option(const struct fib_option *option, const char *routine,
                                    struct fib_arena *arena, struct fib_error *err)
{
    struct fib_error why = {0};
    struct fib_value value = {0};
    if (is_shared_flag(option->name))
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "routine %s: flag %s is one that every routine has", routine, option->name);
    if (option->kind == FIB_OPT_DTYPE && check_dtypes(option, routine, err) != FIB_OK)
        return err->status;
    if (!option->fallback ||
        fib_option_parse(option, option->fallback, arena, &value, &why) == FIB_OK)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_UNSUPPORTED, "routine %s: default of a flag: %s", routine,
                    why.text);
}

static int64_t bound_of(const struct fib_json *entry, const char *name)
{
    int64_t bound = 0;
    const char *const text = fib_json_text(entry, name);
    return text && fib_parse_i64(text, &bound) ? bound : 0;
}

static struct fib_option make_option(const struct fib_json *entry, struct fib_arena *arena)
{
    static const enum fib_option_kind kinds[] = {
        [FIB_PLUGIN_FLAG_I64] = FIB_OPT_I64,       [FIB_PLUGIN_FLAG_F64] = FIB_OPT_F64,
        [FIB_PLUGIN_FLAG_CHOICE] = FIB_OPT_CHOICE, [FIB_PLUGIN_FLAG_DTYPE] = FIB_OPT_DTYPE,
        [FIB_PLUGIN_FLAG_TEXT] = FIB_OPT_TEXT,     [FIB_PLUGIN_FLAG_SWITCH] = FIB_OPT_SWITCH};
    const char *const help = text_of(entry, "help", arena);
    struct fib_option option = {.name = text_of(entry, "name", arena),
                                .kind = kinds[(int)fib_json_f64(entry, "kind")],
                                .required = fib_json_bool(entry, "required"),
                                .min = bound_of(entry, "min"),
                                .max = bound_of(entry, "max"),
                                .min_f64 = fib_json_f64(entry, "min_f64"),
                                .max_f64 = fib_json_f64(entry, "max_f64"),
                                .help = help ? help : ""};
    if (option.kind == FIB_OPT_CHOICE || option.kind == FIB_OPT_DTYPE)
        option.choices = text_of(entry, "choices", arena);
    if (option.kind != FIB_OPT_SWITCH)
        option.fallback = text_of(entry, "fallback", arena);
    return option;
}

/* NULL with a sentence when a flag cannot be one. */
static const struct fib_option *make_options(const struct fib_json *entry, const char *routine,
                                             struct fib_arena *arena, struct fib_error *err)
{
    const struct fib_json *const flags = fib_json_get(entry, "flags");
    const size_t count = fib_json_count(flags);
    struct fib_option *const options = fib_arena_array(arena, count + 1, sizeof(options[0]));
    for (size_t i = 0; i < count; i++) {
        options[i] = make_option(fib_json_at(flags, i), arena);
        if (check_option(&options[i], routine, arena, err) != FIB_OK)
            return NULL;
        for (size_t j = 0; j < i; j++)
            if (strcmp(options[i].name, options[j].name) == 0) {
                fib_fail(err, FIB_ERR_UNSUPPORTED, "routine %s has two flags %s", routine,
                         options[i].name);
                return NULL;
            }
    }
    return options;
}

static enum fib_status make_family(struct fib_plugin_file *file, const struct fib_json *offer,
                                   struct fib_arena *arena, const struct fib_family **family,
                                   struct fib_error *err)
{
    const struct fib_json *const entries = fib_json_get(offer, "routines");
    const size_t count = fib_json_count(entries);
    struct fib_routine *const routines = fib_arena_array(arena, count + 1, sizeof(routines[0]));
    struct fib_family *const made = fib_arena_alloc(arena, sizeof(*made));
    const char *const describe = text_of(offer, "describe", arena);
    for (size_t i = 0; i < count; i++) {
        const struct fib_json *const entry = fib_json_at(entries, i);
        const char *const name = text_of(entry, "name", arena);
        const struct fib_option *const options = make_options(entry, name, arena, err);
        if (!options)
            return err->status;
        routines[i] = (struct fib_routine){
            .name = name,
            .family = file->label,
            .summary = text_of(entry, "summary", arena),
            .options = options,
            .default_backends = file->label,
            .context = make_ref(file, i, name, NULL, arena),
            .outline = fib_plugin_outline,
            .reference = fib_json_bool(entry, "has_reference") ? fib_plugin_reference : NULL,
            .layout_note = text_of(entry, "layout", arena),
            .cost_note = text_of(entry, "cost", arena)};
    }
    *made = (struct fib_family){.name = file->label,
                                .summary = describe ? describe : file->path,
                                .routines = routines,
                                .routine_count = count};
    *family = count > 0 ? made : NULL;
    return FIB_OK;
}

enum fib_status fib_plugin_rows_make(struct fib_plugin_file *file, const struct fib_json *offer,
                                     struct fib_arena *arena, struct fib_plugin_rows *rows,
                                     struct fib_error *err)
{
    rows->backend = make_backend(file, offer, arena);
    return make_family(file, offer, arena, &rows->family, err);
}
