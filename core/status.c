/* Error sentences and the order of exit statuses. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *fib_status_text(enum fib_status status)
{
    switch (status) {
    case FIB_OK:
        return "ok";
    case FIB_ERR_USAGE:
        return "usage error";
    case FIB_ERR_UNSUPPORTED:
        return "unsupported";
    case FIB_ERR_OOM:
        return "out of memory";
    case FIB_ERR_IO:
        return "input/output error";
    case FIB_ERR_DEVICE:
        return "device error";
    case FIB_ERR_TIMEOUT:
        return "timed out";
    case FIB_ERR_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

/* A cut in the middle of a multi-byte character would make the text invalid UTF-8. */
static void drop_torn_character(char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0xc0)
        text[start - 1] = '\0';
}

enum fib_status fib_fail(struct fib_error *err, enum fib_status status, const char *format, ...)
{
    if (!err || err->status != FIB_OK)
        return status;
    err->status = status;

    va_list args;
    va_start(args, format);
    const int wanted = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    if (wanted < 0)
        err->text[0] = '\0';
    else if ((size_t)wanted >= sizeof(err->text))
        drop_torn_character(err->text, strlen(err->text));

    for (char *c = err->text; *c; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f)
            *c = '?';
    }
    return status;
}

static int exit_rank(enum fib_exit status)
{
    static const enum fib_exit worst_first[] = {
        FIB_EXIT_INTERRUPTED, FIB_EXIT_ENVIRONMENT, FIB_EXIT_CRASH,      FIB_EXIT_WRONG,
        FIB_EXIT_REGRESSION,  FIB_EXIT_BAD_LINES,   FIB_EXIT_UNRESOLVED, FIB_EXIT_NOTHING,
        FIB_EXIT_USAGE,       FIB_EXIT_OK,
    };
    const int count = (int)(sizeof(worst_first) / sizeof(worst_first[0]));
    for (int i = 0; i < count; i++) {
        if (worst_first[i] == status)
            return i;
    }
    return count;
}

enum fib_exit fib_exit_worse(enum fib_exit a, enum fib_exit b)
{
    return exit_rank(a) <= exit_rank(b) ? a : b;
}
