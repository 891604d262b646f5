/* Files that results go to: never overwritten by accident, every write checked. */
#ifndef FIB_CORE_OUTFILE_H
#define FIB_CORE_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

enum fib_outfile_mode {
    FIB_OUTFILE_NEW,   /* an existing file is an error that names --force and --append */
    FIB_OUTFILE_FORCE, /* an existing file is emptied */
    FIB_OUTFILE_APPEND /* writes go to the end; a torn last line is completed first */
};
enum fib_outfile_mode fib_outfile_mode(bool force, bool append);

struct fib_outfile {
    int fd; /* -1 when closed */
    char *path;
    bool was_empty; /* nothing was in it when it was opened */
};

/* True for terminals, devices, pipes and anything below /dev: opened as they are in every mode. */
bool fib_outfile_is_special(const char *path);

/* FIB_OK when opening `path` would work as far as can be told without creating anything. */
enum fib_status fib_outfile_check(const char *path, enum fib_outfile_mode mode,
                                  struct fib_error *err);
enum fib_status fib_outfile_open(struct fib_outfile *file, const char *path,
                                 enum fib_outfile_mode mode, struct fib_error *err);
/* All bytes, in one write() where the system takes them at once. */
enum fib_status fib_outfile_write(const struct fib_outfile *file, const char *chars, size_t length,
                                  struct fib_error *err);
/* Returns once the bytes are on disk; does nothing for pipes and devices. */
enum fib_status fib_outfile_sync(const struct fib_outfile *file, struct fib_error *err);
/* Accepts a closed file. */
enum fib_status fib_outfile_close(struct fib_outfile *file, struct fib_error *err);

#endif
