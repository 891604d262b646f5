/* "Did you mean": nearest names by edit distance, and user texts cut to a readable length. */
#include "core/suggest.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

/* Longer names are never slips of a known one, and the distance costs length times length. */
enum { NAME_CHARS = 63, SHOWN_CHARS = 60 };

struct fib_suggest fib_suggest_start(const char *given)
{
    return (struct fib_suggest){.given = given, .distance = SIZE_MAX};
}

static void fold(const char *chars, size_t length, char folded[NAME_CHARS + 1])
{
    for (size_t i = 0; i < length; i++)
        folded[i] = chars[i] == '-' ? '_' : (char)tolower((unsigned char)chars[i]);
    folded[length] = '\0';
}

static void try_chars(struct fib_suggest *suggest, const char *chars, size_t length)
{
    const size_t given_length = strlen(suggest->given);
    if (length == 0 || length > NAME_CHARS || given_length == 0 || given_length > NAME_CHARS)
        return;
    char given[NAME_CHARS + 1], candidate[NAME_CHARS + 1];
    fold(suggest->given, given_length, given);
    fold(chars, length, candidate);
    size_t distance = fib_edit_distance(given, candidate);
    if (given_length >= 3 && distance > 1 && strncmp(given, candidate, given_length) == 0)
        distance = 1; /* an unfinished word is as good as one slip */
    if (distance >= suggest->distance)
        return;
    suggest->distance = distance;
    memcpy(suggest->best, chars, length);
    suggest->best[length] = '\0';
}

void fib_suggest_try(struct fib_suggest *suggest, const char *candidate)
{
    try_chars(suggest, candidate, strlen(candidate));
}

void fib_suggest_try_words(struct fib_suggest *suggest, const char *list)
{
    size_t length = 0;
    for (const char *word = list; word && (word = fib_words_next(word, &length)); word += length)
        try_chars(suggest, word, length);
}

const char *fib_suggest_best(const struct fib_suggest *suggest)
{
    const size_t length = strlen(suggest->given);
    const size_t allowed = length < 2 ? 0 : length < 6 ? 1 : length / 3;
    return suggest->distance <= allowed ? suggest->best : NULL;
}

const char *fib_suggest_clause(const struct fib_suggest *suggest, const char *dashes,
                               struct fib_arena *arena)
{
    const char *best = fib_suggest_best(suggest);
    return best ? fib_arena_printf(arena, "; did you mean %s%s?", dashes, best) : "";
}

const char *fib_shown(const char *text, struct fib_arena *arena)
{
    size_t length = strlen(text);
    const char *rest = "";
    if (length > SHOWN_CHARS) {
        length = SHOWN_CHARS;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--; /* not inside a UTF-8 character */
        rest = "...";
    }
    const char *quote = length == 0 || memchr(text, ' ', length) ? "'" : "";
    return fib_arena_printf(arena, "%s%.*s%s%s", quote, (int)length, text, rest, quote);
}
