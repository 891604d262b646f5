/* Opening, writing and closing of result files with sentences a person can act on. */
#include "core/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"

enum fib_outfile_mode fib_outfile_mode(bool force, bool append)
{
    return append ? FIB_OUTFILE_APPEND : force ? FIB_OUTFILE_FORCE : FIB_OUTFILE_NEW;
}

bool fib_outfile_is_special(const char *path)
{
    struct stat facts;
    if (strncmp(path, "/dev/", 5) == 0)
        return true;
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

/* Length of the folder part; 0 when the path names a file in the current folder. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return 0;
    return slash == path ? 1 : (size_t)(slash - path);
}

static enum fib_status refuse_missing(const char *path, struct fib_error *err)
{
    const size_t length = folder_length(path);
    return fib_fail(err, FIB_ERR_IO, "cannot create %s: the folder %.*s does not exist", path,
                    length > 0 ? (int)length : 1, length > 0 ? path : ".");
}

static enum fib_status open_failed(const char *path, int reason, struct fib_error *err)
{
    switch (reason) {
    case EEXIST:
        return fib_fail(err, FIB_ERR_IO,
                        "%s exists: use --force to replace it or --append to add to it", path);
    case ENOENT:
        return refuse_missing(path, err);
    default:
        return fib_fail(err, FIB_ERR_IO, "cannot open %s for writing: %s", path, strerror(reason));
    }
}

static bool folder_exists(const char *path)
{
    const size_t length = folder_length(path);
    if (length == 0)
        return true;
    char *folder = fib_strdup(path);
    folder[length] = '\0';
    struct stat facts;
    const bool found = stat(folder, &facts) == 0;
    free(folder);
    return found;
}

enum fib_status fib_outfile_check(const char *path, enum fib_outfile_mode mode,
                                  struct fib_error *err)
{
    struct stat facts;
    if (fib_outfile_is_special(path))
        return FIB_OK;
    if (stat(path, &facts) == 0) {
        if (S_ISDIR(facts.st_mode))
            return open_failed(path, EISDIR, err);
        return mode == FIB_OUTFILE_NEW ? open_failed(path, EEXIST, err) : FIB_OK;
    }
    return folder_exists(path) ? FIB_OK : open_failed(path, ENOENT, err);
}

static int open_special(const char *path)
{
    /* Opening these by name again would start at offset 0 of a redirected file. */
    if (strcmp(path, "/dev/stdout") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (strcmp(path, "/dev/stderr") == 0)
        return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

static int open_regular(const char *path, enum fib_outfile_mode mode)
{
    static const int flags[] = {
        [FIB_OUTFILE_NEW] = O_EXCL, [FIB_OUTFILE_FORCE] = O_TRUNC, [FIB_OUTFILE_APPEND] = 0};
    /* Reading is for the last byte and the header of a file that is added to. */
    return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags[mode], 0666);
}

static enum fib_status complete_last_line(struct fib_outfile *file, struct fib_error *err)
{
    struct stat facts;
    char last = '\n';
    if (fstat(file->fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0)
        return FIB_OK;
    file->was_empty = false;
    if (pread(file->fd, &last, 1, facts.st_size - 1) != 1 || last == '\n')
        return FIB_OK;
    return fib_outfile_write(file, "\n", 1, err);
}

enum fib_status fib_outfile_open(struct fib_outfile *file, const char *path,
                                 enum fib_outfile_mode mode, struct fib_error *err)
{
    *file = (struct fib_outfile){.fd = -1};
    const int fd = fib_outfile_is_special(path) ? open_special(path) : open_regular(path, mode);
    if (fd < 0)
        return open_failed(path, errno, err);
    *file = (struct fib_outfile){.fd = fd, .path = fib_strdup(path), .was_empty = true};
    const enum fib_status st = complete_last_line(file, err);
    if (st != FIB_OK)
        fib_outfile_close(file, NULL);
    return st;
}

enum fib_status fib_outfile_write(const struct fib_outfile *file, const char *chars, size_t length,
                                  struct fib_error *err)
{
    while (length > 0) {
        const ssize_t written = write(file->fd, chars, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fib_fail(err, FIB_ERR_IO, "cannot write %s: %s", file->path, strerror(errno));
        chars += written;
        length -= (size_t)written;
    }
    return FIB_OK;
}

enum fib_status fib_outfile_sync(const struct fib_outfile *file, struct fib_error *err)
{
    if (fsync(file->fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_IO, "cannot write %s to disk: %s", file->path, strerror(errno));
}

enum fib_status fib_outfile_close(struct fib_outfile *file, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    if (file->fd >= 0 && close(file->fd) != 0 && errno != EINTR)
        st = fib_fail(err, FIB_ERR_IO, "cannot finish %s: %s", file->path, strerror(errno));
    free(file->path);
    *file = (struct fib_outfile){.fd = -1};
    return st;
}
