/* Opens the fake vendor libraries, which lie in a folder of the build under the real file names. */
#ifndef FIB_TESTS_FAKE_LIBRARY_H
#define FIB_TESTS_FAKE_LIBRARY_H

#include <stddef.h>

/* What --lib_path is to name. */
const char *fake_library_folder(void);

/* Puts the address of `entry` of the library `file` into the function pointer at `function`; fails
 * the test when either is missing. */
void open_fake_library(const char *file, const char *entry, void *function, size_t function_bytes);

#endif
