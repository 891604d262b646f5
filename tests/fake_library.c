#include "tests/support.h"
#include "tests/fake_library.h"

#include <stdlib.h>

#include "core/library.h"

const char *fake_library_folder(void)
{
    const char *const folder = getenv("FIB_FAKE_LIBS");
    return folder ? folder : ".";
}

void open_fake_library(const char *file, const char *entry, void *function, size_t function_bytes)
{
    const char *const names[] = {file, NULL};
    const struct fib_library_spec spec = {
        .title = "fake", .names = names, .folder = fake_library_folder()};
    struct fib_error err = {0};
    void *const handle = fib_library_open(&spec, &err);
    if (!handle || !fib_library_entry(handle, entry, function, function_bytes))
        fail_msg("no fake %s in %s: %s", file, fake_library_folder(), err.text);
}
