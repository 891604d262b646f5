/* Test lists as bytes, lines and shell words. */
#include "core/testlist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

/* ---- the file ---- */

static enum fib_status read_all(FILE *file, const char *path, struct fib_text *bytes,
                                struct fib_error *err)
{
    char block[16384];
    size_t length;
    errno = 0;
    while ((length = fread(block, 1, sizeof(block), file)) > 0) {
        if (bytes->length + length > FIB_TESTLIST_BYTES)
            return fib_fail(err, FIB_ERR_IO, "%s: a test list may have at most %d MiB", path,
                            FIB_TESTLIST_BYTES >> 20);
        fib_text_add_n(bytes, block, length);
    }
    if (ferror(file))
        return fib_fail(err, FIB_ERR_IO, "cannot read test list %s: %s", path, strerror(errno));
    return FIB_OK;
}

enum fib_status fib_testlist_read(const char *path, struct fib_text *bytes, struct fib_error *err)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return fib_fail(err, FIB_ERR_IO, "cannot read test list %s: %s", path, strerror(errno));
    const enum fib_status st = read_all(file, path, bytes, err);
    fclose(file);
    return st;
}

/* ---- lines ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(const char **text, size_t *length)
{
    while (*length && is_blank((*text)[*length - 1]))
        (*length)--;
    while (*length && is_blank(**text)) {
        (*text)++;
        (*length)--;
    }
}

bool fib_testlist_next(struct fib_testlist *list, struct fib_testlist_line *line)
{
    if (list->offset == 0 && list->length >= 3 && memcmp(list->bytes, "\xef\xbb\xbf", 3) == 0)
        list->offset = 3;
    while (list->offset < list->length) {
        const char *text = list->bytes + list->offset;
        const size_t left = list->length - list->offset;
        const char *end = memchr(text, '\n', left);
        size_t length = end ? (size_t)(end - text) : left;
        list->offset += length + (end != NULL);
        list->line++;
        const bool too_long = length > FIB_TESTLIST_LINE_BYTES;
        trim(&text, &length);
        if (length == 0 || *text == '#')
            continue;
        *line = (struct fib_testlist_line){.number = list->line, .text = text, .length = length};
        if (too_long)
            line->error = "the line is longer than 1 MiB";
        else if (memchr(text, '\0', length))
            line->error = "line holds a NUL byte";
        return true;
    }
    return false;
}

/* ---- words ---- */

struct splitter {
    const char *line;
    size_t length, at;
    struct fib_text word;
    struct fib_arena *arena;
    const char **words;
    size_t count, capacity;
    struct fib_error *err;
};

static enum fib_status fail_column(struct splitter *splitter, const char *what, size_t at)
{
    return fib_fail(splitter->err, FIB_ERR_USAGE, "%s at column %zu", what, at + 1);
}

static enum fib_status single_quoted(struct splitter *splitter)
{
    const size_t start = splitter->at++;
    const char *text = splitter->line + splitter->at;
    const char *end = memchr(text, '\'', splitter->length - splitter->at);
    if (!end)
        return fail_column(splitter, "quote ' is not closed; it opens", start);
    fib_text_add_n(&splitter->word, text, (size_t)(end - text));
    splitter->at += (size_t)(end - text) + 1;
    return FIB_OK;
}

static enum fib_status double_quoted(struct splitter *splitter)
{
    const size_t start = splitter->at++;
    for (; splitter->at < splitter->length; splitter->at++) {
        char c = splitter->line[splitter->at];
        if (c == '"') {
            splitter->at++;
            return FIB_OK;
        }
        if (c == '\\' && splitter->at + 1 < splitter->length &&
            strchr("$`\"\\\n", splitter->line[splitter->at + 1])) {
            c = splitter->line[++splitter->at];
            if (c == '\n')
                continue;
        }
        fib_text_add_char(&splitter->word, c);
    }
    return fail_column(splitter, "quote \" is not closed; it opens", start);
}

static enum fib_status escaped(struct splitter *splitter)
{
    if (splitter->at + 1 == splitter->length)
        return fail_column(splitter, "nothing follows the backslash", splitter->at);
    const char c = splitter->line[splitter->at + 1];
    if (c != '\n')
        fib_text_add_char(&splitter->word, c);
    splitter->at += 2;
    return FIB_OK;
}

static void push_word(struct splitter *splitter)
{
    if (splitter->count == splitter->capacity) {
        splitter->capacity = splitter->capacity ? 2 * splitter->capacity : 32;
        splitter->words =
            fib_realloc(splitter->words, splitter->capacity * sizeof(*splitter->words));
    }
    splitter->words[splitter->count++] =
        fib_arena_strdup(splitter->arena, fib_text_chars(&splitter->word));
    fib_text_clear(&splitter->word);
}

/* One word; the reader stands on its first character. */
static enum fib_status read_word(struct splitter *splitter)
{
    while (splitter->at < splitter->length && !is_blank(splitter->line[splitter->at])) {
        const char c = splitter->line[splitter->at];
        enum fib_status st = FIB_OK;
        if (c == '\'') {
            st = single_quoted(splitter);
        } else if (c == '"') {
            st = double_quoted(splitter);
        } else if (c == '\\') {
            st = escaped(splitter);
        } else {
            fib_text_add_char(&splitter->word, c);
            splitter->at++;
        }
        if (st != FIB_OK)
            return st;
    }
    push_word(splitter);
    return FIB_OK;
}

static enum fib_status read_words(struct splitter *splitter)
{
    const char *nul = memchr(splitter->line, '\0', splitter->length);
    if (nul)
        return fail_column(splitter, "NUL byte", (size_t)(nul - splitter->line));
    for (;;) {
        while (splitter->at < splitter->length && is_blank(splitter->line[splitter->at]))
            splitter->at++;
        if (splitter->at == splitter->length)
            return FIB_OK;
        const enum fib_status st = read_word(splitter);
        if (st != FIB_OK)
            return st;
    }
}

enum fib_status fib_split_words(const char *line, size_t length, struct fib_arena *arena,
                                const char *const **words, size_t *word_count,
                                struct fib_error *err)
{
    struct splitter splitter = {.line = line, .length = length, .arena = arena, .err = err};
    const enum fib_status st = read_words(&splitter);
    const char **kept = fib_arena_array(arena, splitter.count + 1, sizeof(*kept));
    if (splitter.count)
        memcpy(kept, splitter.words, splitter.count * sizeof(*kept));
    *words = kept;
    *word_count = splitter.count;
    free(splitter.words);
    fib_text_free(&splitter.word);
    return st;
}
