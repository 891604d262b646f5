/* Test lists: reading the file and walking its usable lines. */
#ifndef FIB_CORE_TESTLIST_H
#define FIB_CORE_TESTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/plan.h"
#include "core/status.h"

struct fib_text;

enum { FIB_TESTLIST_LINE_BYTES = 1 << 20, FIB_TESTLIST_BYTES = 64 << 20 };

/* Reads a whole file or pipe; FIB_ERR_IO names it and the system's reason. */
enum fib_status fib_testlist_read(const char *path, struct fib_text *bytes, struct fib_error *err);

/* A walk over the lines of a list in memory. */
struct fib_testlist {
    const char *bytes;
    size_t length, offset;
    int64_t line;
};

struct fib_testlist_line {
    int64_t number;   /* 1-based */
    const char *text; /* not terminated; CR, LF and surrounding blanks removed */
    size_t length;
    const char *error; /* why the line cannot be used; NULL for good ones */
};

/* The next line that is neither blank nor a comment ('#' first); false at the end. A UTF-8 byte
 * order mark at the start is skipped. Lines with a NUL byte or over the limit carry an error. */
bool fib_testlist_next(struct fib_testlist *list, struct fib_testlist_line *line);

/* The plan of a list in memory, as fib_plan_parse() makes it of a file called `name`. */
enum fib_status fib_testlist_plan(const struct fib_registry *registry, const char *name,
                                  const char *bytes, size_t length, struct fib_plan **plan,
                                  struct fib_error *err);

#endif
