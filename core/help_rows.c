/* Pieces that the help texts share. */
#include "core/help_rows.h"

#include <string.h>

#include "core/memory.h"
#include "core/text.h"

static size_t column_of(const struct fib_text *text)
{
    const char *chars = fib_text_chars(text);
    const char *line = strrchr(chars, '\n');
    return strlen(line ? line + 1 : chars);
}

void fib_help_wrap(struct fib_text *out, size_t indent, const char *text)
{
    size_t length = 0;
    bool first = true;
    for (const char *word = text; (word = fib_words_next(word, &length)); word += length) {
        if (!first && column_of(out) + 1 + length > FIB_HELP_COLUMNS) {
            fib_text_add_char(out, '\n');
            first = true;
        }
        if (first)
            fib_text_pad(out, indent);
        else
            fib_text_add_char(out, ' ');
        fib_text_add_n(out, word, length);
        first = false;
    }
    fib_text_add_char(out, '\n');
}

static const char *placeholder(const struct fib_option *option)
{
    if (option->value_name)
        return option->value_name;
    switch (option->kind) {
    case FIB_OPT_I64:
        return "N";
    case FIB_OPT_F64:
        return "X";
    case FIB_OPT_CHOICE:
        return "NAME";
    case FIB_OPT_DTYPE:
        return "DTYPE";
    case FIB_OPT_TEXT:
        return "TEXT";
    case FIB_OPT_WORDS:
        return "NAME...";
    case FIB_OPT_I64_LIST:
        return "N...";
    case FIB_OPT_SWITCH:
    case FIB_OPT_COUNT:
        break;
    }
    return NULL;
}

void fib_help_spelling(const struct fib_option *option, struct fib_text *out)
{
    const char *value = placeholder(option);
    fib_text_addf(out, "--%s", option->name);
    if (option->short_name)
        fib_text_addf(out, ", -%s", option->short_name);
    if (option->negation)
        fib_text_addf(out, ", --%s", option->negation);
    if (value)
        fib_text_addf(out, " %s", value);
}

const char *fib_help_default(const struct fib_option *option)
{
    if (option->required)
        return "required";
    if (option->kind == FIB_OPT_SWITCH)
        return option->fallback && strcmp(option->fallback, "True") == 0 ? "on" : "off";
    return option->fallback;
}

const char *fib_help_values(const struct fib_option *option, struct fib_arena *arena)
{
    switch (option->kind) {
    case FIB_OPT_I64:
    case FIB_OPT_F64:
    case FIB_OPT_I64_LIST:
    case FIB_OPT_CHOICE:
    case FIB_OPT_DTYPE:
        return fib_option_allowed(option, arena);
    case FIB_OPT_TEXT:
    case FIB_OPT_WORDS:
    case FIB_OPT_SWITCH:
    case FIB_OPT_COUNT:
        break;
    }
    return NULL;
}

bool fib_help_is_used(const struct fib_routine *routine, const struct fib_option *option)
{
    return !option->uses || fib_words_contain(option->uses, routine->name);
}

const char *fib_help_labels(const struct fib_registry *registry, const struct fib_routine *routine,
                            bool cuda, struct fib_arena *arena)
{
    const enum fib_device_kind kind = cuda ? FIB_DEVICE_CUDA : FIB_DEVICE_CPU;
    struct fib_text text = {0};
    for (size_t i = 0; i < registry->label_count; i++) {
        const char *label = registry->labels[i].name;
        if (!fib_registry_impl(registry, routine->name, label, kind))
            continue;
        fib_text_addf(&text, "%s%s", text.length ? ", " : "", label);
    }
    const char *labels = fib_arena_strdup(arena, fib_text_chars(&text));
    fib_text_free(&text);
    return labels;
}
