/* Outcomes of functions, one-sentence error texts, and exit statuses of the program.
 *
 * A function that can fail returns enum fib_status and takes a struct fib_error last. The place
 * that notices the failure writes the sentence with fib_fail(); callers only pass it on (the first
 * text wins). Nothing but main ends the process. */
#ifndef FIB_CORE_STATUS_H
#define FIB_CORE_STATUS_H

#include <stddef.h>

enum fib_status {
    FIB_OK = 0,
    FIB_ERR_USAGE,       /* something the user wrote is not allowed */
    FIB_ERR_UNSUPPORTED, /* legal, but cannot run here; the text says what would be needed */
    FIB_ERR_OOM,         /* not enough memory; the text names bytes wanted and bytes free */
    FIB_ERR_IO,          /* a file could not be read or written */
    FIB_ERR_DEVICE,      /* the device or a library reported an error */
    FIB_ERR_TIMEOUT,     /* a wall-clock limit passed */
    FIB_ERR_INTERNAL     /* a contract inside the program was broken */
};

enum { FIB_ERROR_CHARS = 1024 };

/* One sentence about the first failure. Zero-initialise before use. */
struct fib_error {
    enum fib_status status;
    char text[FIB_ERROR_CHARS];
};

/* Short name of a status for logs ("usage error", "out of memory", ...). Never NULL. */
const char *fib_status_text(enum fib_status status);

/* Records `status` and a formatted sentence in *err unless one is already there; returns `status`.
 * err may be NULL. Control characters in the result are replaced by '?', so that one error stays
 * one line whatever the user's input held. */
enum fib_status fib_fail(struct fib_error *err, enum fib_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Exit statuses of the program. */
enum fib_exit {
    FIB_EXIT_OK = 0,
    FIB_EXIT_USAGE = 1,       /* bad command line */
    FIB_EXIT_NOTHING = 2,     /* nothing matched, or nothing could be measured */
    FIB_EXIT_REGRESSION = 3,  /* a comparison found a regression */
    FIB_EXIT_WRONG = 4,       /* a backend gave a wrong result */
    FIB_EXIT_CRASH = 5,       /* a case crashed or timed out */
    FIB_EXIT_UNRESOLVED = 6,  /* a verdict stayed open under --strict */
    FIB_EXIT_ENVIRONMENT = 7, /* device, environment, file system or a missing package */
    FIB_EXIT_BAD_LINES = 8,   /* some lines of a test list were bad, the rest ran */
    FIB_EXIT_INTERRUPTED = 130
};

/* The status that a run with both outcomes ends with. Precedence: 130, 7, 5, 4, 3, 8, 6, then
 * 2, 1, 0. */
enum fib_exit fib_exit_worse(enum fib_exit a, enum fib_exit b);

#endif
