/* Pieces of error sentences: the nearest known name, and a user's text made fit to be shown. */
#ifndef FIB_CORE_SUGGEST_H
#define FIB_CORE_SUGGEST_H

#include <stddef.h>

struct fib_arena;

/* Walks candidates and keeps the nearest. */
struct fib_suggest {
    const char *given;
    char best[64];
    size_t distance;
};

struct fib_suggest fib_suggest_start(const char *given);
void fib_suggest_try(struct fib_suggest *suggest, const char *candidate);
/* Every word of a space-separated list. */
void fib_suggest_try_words(struct fib_suggest *suggest, const char *list);
/* The nearest candidate, or NULL when none is near enough to be a likely slip. */
const char *fib_suggest_best(const struct fib_suggest *suggest);
/* "; did you mean <dashes><best>?" or "". In arena. */
const char *fib_suggest_clause(const struct fib_suggest *suggest, const char *dashes,
                               struct fib_arena *arena);

/* The text as it stands in an error: quoted when empty or holding blanks, cut when long. */
const char *fib_shown(const char *text, struct fib_arena *arena);

#endif
