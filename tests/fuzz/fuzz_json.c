/* Any bytes: parse, print, parse again; both prints must be the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count);

static void check_stable(const struct fib_json *value, bool indented)
{
    char *first = fib_json_print(value, indented);
    struct fib_error err = {0};
    struct fib_json *again = fib_json_parse(first, strlen(first), &err);
    if (!again)
        abort();
    char *second = fib_json_print(again, indented);
    if (strcmp(first, second) != 0)
        abort();
    free(second);
    free(first);
    fib_json_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count)
{
    struct fib_error err = {0};
    struct fib_json *value = fib_json_parse((const char *)bytes, byte_count, &err);
    if (!value) {
        if (err.status == FIB_OK || err.text[0] == '\0')
            abort();
        return 0;
    }
    check_stable(value, false);
    check_stable(value, true);
    fib_json_free(&value);
    return 0;
}
