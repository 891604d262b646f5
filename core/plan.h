/* From words to cases: the command line or a test list becomes a plan, a list of items in order.
 *
 * Sweeps: a numeric, choice or dtype flag takes "1,2,4", "1:64:*2" (1 2 4 ... <= 64) or "1:9:2"
 * (1 3 5 7 9); "1:4" steps by 1. Several swept flags give the cartesian product, the last flag
 * fastest; --zip m,n walks flags together (equal lengths or an error). --model fills the routine's
 * geometry flags that were not given; a given flag of a zipped group replaces the group. --only
 * keeps cases for which an expression holds: comparisons of flags and numbers, choices or texts
 * (== != < <= > >= =~ for "contains"), `and or not`, parentheses; "routine" is a name like a flag.
 *
 * A bad list line becomes an item with an error ("list.txt:7: --batch_size 0: must be 1 ..
 * 1048576"); a bad command line fails the call. */
#ifndef FIB_CORE_PLAN_H
#define FIB_CORE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "core/case.h"
#include "core/registry.h"
#include "core/status.h"

/* Most cases that one line or one run may expand to (a case takes about 3 KiB). */
enum { FIB_PLAN_MAX_CASES = 100000 };

struct fib_plan_item {
    struct fib_case *kase;      /* NULL for a bad line */
    const char *error;          /* the sentence, with "file:line: " in front; NULL for good ones */
    const char *routine_name;   /* as far as it was recognised; may be NULL */
    const char *line_text;      /* raw list line (CR, LF removed); NULL on the command line */
    int64_t line;               /* 1-based; 0 on the command line */
};

struct fib_plan {
    struct fib_settings settings; /* of the run: from the command line */
    struct fib_plan_item *items;
    size_t count;
    size_t bad_line_count;
    size_t filtered_count;        /* cases that --only removed */
    const char *const *warnings;  /* "[WARNING]" texts in order of discovery, without the tag */
    size_t warning_count;
    struct fib_arena *arena;      /* owns everything above */
};

/* argv[0] is not among `words`. Exactly one of --routine and --testlist must be present. On
 * FIB_OK the caller frees the plan. FIB_ERR_USAGE: bad command line; FIB_ERR_IO: the list cannot
 * be read (named, with the reason). An empty list (no usable line) is FIB_ERR_USAGE. */
enum fib_status fib_plan_parse(const struct fib_registry *registry, size_t word_count,
                               const char *const *words, struct fib_plan **plan,
                               struct fib_error *err);
void fib_plan_free(struct fib_plan **plan);

/* One list line or repro command into POSIX-shell words in `arena`. Quotes and backslashes as in a
 * shell, no expansion; an unterminated quote or trailing backslash is an error that names the
 * column. */
enum fib_status fib_split_words(const char *line, size_t length, struct fib_arena *arena,
                                const char *const **words, size_t *word_count,
                                struct fib_error *err);

#endif
