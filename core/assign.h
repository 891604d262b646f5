/* First step from words to cases: which flags were given, with which raw texts. */
#ifndef FIB_CORE_ASSIGN_H
#define FIB_CORE_ASSIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/option.h"
#include "core/status.h"

struct fib_arena;

/* Where a flag came from; a later one overrides an earlier one. */
enum fib_origin { FIB_FROM_NOWHERE = 0, FIB_FROM_MODEL, FIB_FROM_RUN, FIB_FROM_LINE };

/* One slot per option row. */
struct fib_given {
    enum fib_origin origin; /* FIB_FROM_NOWHERE: not given */
    bool negated;           /* a switch spelled by its negation */
    int64_t count;          /* occurrences of a FIB_OPT_COUNT flag */
    size_t order;           /* word number of the last occurrence */
    const char *text;       /* raw value; NULL for switches and counts; borrowed from the words,
                               joined words of a list in arena */
};

/* A word that is a flag: it starts with '-', has more to it, and is no negative number. */
bool fib_word_is_flag(const char *word);

/* Reads all words into given[set->count]; the last of repeated flags wins, counts add up. `where`
 * names the routine in errors. */
enum fib_status fib_assign_words(const struct fib_option_set *set, const char *where,
                                 size_t word_count, const char *const *words,
                                 enum fib_origin origin, struct fib_arena *arena,
                                 struct fib_given *given, struct fib_error *err);

/* Value of one TEXT flag found by looking at flags only, before the full set of flags is known.
 * *present tells that the flag stands there; returns NULL also when it has no value. */
const char *fib_assign_peek(const struct fib_option_set *set, const char *name, size_t word_count,
                            const char *const *words, bool *present);

/* Takes every occurrence of one WORDS flag, as `set` knows it, out of the words: `rest` gets the
 * other words and `values` what belonged to the flag, in order; both have room for word_count.
 * False when an occurrence has no value. */
bool fib_assign_extract(const struct fib_option_set *set, const char *name, size_t word_count,
                        const char *const *words, const char **rest, size_t *rest_count,
                        const char **values, size_t *value_count, struct fib_arena *arena);

/* First flag among the words that `set` does not know but `other` does; its row in `other`. */
const struct fib_option *fib_assign_foreign(const struct fib_option_set *set,
                                            const struct fib_option_set *other, size_t word_count,
                                            const char *const *words);

#endif
