/* Splits words into flags and raw values, by the spelling rules of the command line. */
#include "core/assign.h"

#include <ctype.h>
#include <string.h>

#include "core/memory.h"
#include "core/suggest.h"
#include "core/text.h"

struct reader {
    const struct fib_option_set *set;
    const char *where;
    size_t word_count;
    const char *const *words;
    size_t next; /* word to read next */
    enum fib_origin origin;
    struct fib_arena *arena;
    struct fib_given *given;
    struct fib_error *err;
};

bool fib_word_is_flag(const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return false;
    const char *number = word[1] == '.' ? word + 2 : word + 1;
    return !isdigit((unsigned char)*number);
}

static struct fib_given *mark(struct reader *reader, const struct fib_option *option)
{
    struct fib_given *given = &reader->given[option - reader->set->rows];
    given->origin = reader->origin;
    given->order = reader->next;
    return given;
}

static bool has_value_word(const struct reader *reader)
{
    return reader->next < reader->word_count && !fib_word_is_flag(reader->words[reader->next]);
}

static enum fib_status read_words(struct reader *reader, const struct fib_option *option,
                                  const char *attached)
{
    struct fib_text joined = {0};
    fib_text_add(&joined, attached ? attached : "");
    while (!attached && has_value_word(reader)) {
        if (joined.length)
            fib_text_add_char(&joined, ' ');
        fib_text_add(&joined, reader->words[reader->next++]);
    }
    mark(reader, option)->text = fib_arena_strdup(reader->arena, fib_text_chars(&joined));
    fib_text_free(&joined);
    return FIB_OK;
}

/* `attached` is what followed '=' or a short flag's letter; NULL when the value is the next word.
 */
static enum fib_status read_value(struct reader *reader, const struct fib_option *option,
                                  const char *attached, bool negated)
{
    switch (option->kind) {
    case FIB_OPT_SWITCH:
    case FIB_OPT_COUNT:
        if (attached)
            return fib_fail(reader->err, FIB_ERR_USAGE, "--%s takes no value, was given %s",
                            option->name, fib_shown(attached, reader->arena));
        struct fib_given *given = mark(reader, option);
        given->negated = negated;
        given->count++;
        return FIB_OK;
    case FIB_OPT_WORDS:
    case FIB_OPT_I64_LIST:
        return read_words(reader, option, attached);
    default:
        break;
    }
    if (!attached && !has_value_word(reader))
        return fib_fail(reader->err, FIB_ERR_USAGE, "--%s needs a value: %s", option->name,
                        fib_option_allowed(option, reader->arena));
    const char *text = attached ? attached : reader->words[reader->next++];
    mark(reader, option)->text = text;
    return FIB_OK;
}

/* Finds the row of "--name" or "--name=value"; *attached is the value or NULL. */
static const struct fib_option *find_long(const struct fib_option_set *set, const char *where,
                                          const char *word, const char **attached, bool *negated,
                                          struct fib_arena *arena, struct fib_error *err)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    *attached = equals ? equals + 1 : NULL;
    if (equals)
        name = fib_arena_strndup(arena, name, (size_t)(equals - name));
    return fib_option_find(set, name, where, negated, err);
}

static enum fib_status read_long(struct reader *reader, const char *word)
{
    const char *attached = NULL;
    bool negated = false;
    const struct fib_option *option = find_long(reader->set, reader->where, word, &attached,
                                                &negated, reader->arena, reader->err);
    if (!option)
        return FIB_ERR_USAGE;
    return read_value(reader, option, attached, negated);
}

static const struct fib_option *find_short(const struct fib_option_set *set, char letter)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->rows[i].short_name && set->rows[i].short_name[0] == letter)
            return &set->rows[i];
    return NULL;
}

static bool takes_value(const struct fib_option *option)
{
    return option->kind != FIB_OPT_SWITCH && option->kind != FIB_OPT_COUNT;
}

/* "-vv", "-n5", "-n=5", "-vn 5": letters without values may stand together. */
static enum fib_status read_short(struct reader *reader, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const struct fib_option *option = find_short(reader->set, *letter);
        if (!option)
            return fib_fail(reader->err, FIB_ERR_USAGE, "unknown flag %s%s%s",
                            fib_shown(word, reader->arena), reader->where ? " for " : "",
                            reader->where ? reader->where : "");
        const char *rest = letter + 1;
        const bool attached = *rest == '=' || (takes_value(option) && *rest);
        const char *value = attached ? rest + (*rest == '=') : NULL;
        const enum fib_status st = read_value(reader, option, value, false);
        if (st != FIB_OK || takes_value(option))
            return st;
    }
    return FIB_OK;
}

static enum fib_status read_word(struct reader *reader)
{
    const char *word = reader->words[reader->next++];
    const bool is_long = word[0] == '-' && word[1] == '-';
    if (!fib_word_is_flag(word) || (is_long && (word[2] == '\0' || word[2] == '=')))
        return fib_fail(reader->err, FIB_ERR_USAGE, "unexpected word '%.60s'; flags start with --",
                        word);
    return is_long ? read_long(reader, word) : read_short(reader, word);
}

enum fib_status fib_assign_words(const struct fib_option_set *set, const char *where,
                                 size_t word_count, const char *const *words,
                                 enum fib_origin origin, struct fib_arena *arena,
                                 struct fib_given *given, struct fib_error *err)
{
    struct reader reader = {.set = set,
                            .where = where,
                            .word_count = word_count,
                            .words = words,
                            .origin = origin,
                            .arena = arena,
                            .given = given,
                            .err = err};
    while (reader.next < word_count) {
        const enum fib_status st = read_word(&reader);
        if (st != FIB_OK)
            return st;
    }
    return FIB_OK;
}

/* The row that a flag word names in `set`, without complaint; NULL when it names none. */
static const struct fib_option *quiet_find(const struct fib_option_set *set, const char *word,
                                           const char **attached, struct fib_arena *arena)
{
    bool negated = false;
    *attached = NULL;
    if (!fib_word_is_flag(word))
        return NULL;
    if (word[1] == '-')
        return find_long(set, NULL, word, attached, &negated, arena, NULL);
    for (const char *letter = word + 1; *letter; letter++) {
        const struct fib_option *option = find_short(set, *letter);
        if (!option)
            return NULL;
        if (!takes_value(option))
            continue;
        const char *rest = letter + 1;
        *attached = *rest ? rest + (*rest == '=') : NULL;
        return option;
    }
    return find_short(set, word[1]);
}

const char *fib_assign_peek(const struct fib_option_set *set, const char *name, size_t word_count,
                            const char *const *words, bool *present)
{
    struct fib_arena *arena = fib_arena_create();
    const char *value = NULL;
    *present = false;
    for (size_t i = 0; i < word_count; i++) {
        const char *attached = NULL;
        const struct fib_option *option = quiet_find(set, words[i], &attached, arena);
        if (!option || strcmp(option->name, name) != 0)
            continue;
        *present = true;
        if (!attached && i + 1 < word_count && !fib_word_is_flag(words[i + 1]))
            attached = words[i + 1];
        value = attached;
    }
    fib_arena_free(&arena);
    return value;
}

bool fib_assign_extract(const struct fib_option_set *set, const char *name, size_t word_count,
                        const char *const *words, const char **rest, size_t *rest_count,
                        const char **values, size_t *value_count, struct fib_arena *arena)
{
    bool complete = true;
    *rest_count = *value_count = 0;
    for (size_t i = 0; i < word_count; i++) {
        const char *attached = NULL;
        const struct fib_option *option = quiet_find(set, words[i], &attached, arena);
        if (!option || strcmp(option->name, name) != 0) {
            rest[(*rest_count)++] = words[i];
            continue;
        }
        const size_t count = *value_count;
        if (attached && *attached)
            values[(*value_count)++] = attached;
        while (!attached && i + 1 < word_count && !fib_word_is_flag(words[i + 1]))
            values[(*value_count)++] = words[++i];
        complete = complete && *value_count > count;
    }
    return complete;
}

const struct fib_option *fib_assign_foreign(const struct fib_option_set *set,
                                            const struct fib_option_set *other, size_t word_count,
                                            const char *const *words)
{
    struct fib_arena *arena = fib_arena_create();
    const struct fib_option *foreign = NULL;
    for (size_t i = 0; i < word_count && !foreign; i++) {
        const char *attached = NULL;
        if (!quiet_find(set, words[i], &attached, arena))
            foreign = quiet_find(other, words[i], &attached, arena);
    }
    fib_arena_free(&arena);
    return foreign;
}
