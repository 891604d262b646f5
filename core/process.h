/* One worker process as its parent sees it: start, end, and how it ended. */
#ifndef FIB_CORE_PROCESS_H
#define FIB_CORE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/status.h"

struct fib_text;

struct fib_process {
    pid_t pid;  /* 0: none */
    int socket; /* the parent's end: does not block */
    int wait_status;
    uint64_t oom_kills; /* seen before it was started */
};

/* Forks. In the new process fib_process_start returns FIB_OK with pid 0 and the worker's end of the
 * socket. Fork without exec keeps the plan and the tables where they are, and takes about a
 * millisecond; it is sound because the caller has no other threads and has never touched a device.
 * Streams must be flushed before. */
enum fib_status fib_process_start(struct fib_process *process, struct fib_error *err);

/* True once the process has ended; does not wait and leaves it to be reaped. */
bool fib_process_has_ended(const struct fib_process *process);
/* Ends the process and everything in its group, reaps it, closes the socket. After grace_ms of
 * waiting for an end of its own it is killed; wait_status tells which it was. */
void fib_process_end(struct fib_process *process, unsigned grace_ms);

/* True when the kernel took the process because memory ran out. After the end. */
bool fib_process_was_oom_killed(const struct fib_process *process);
/* "ended by signal 11 (segmentation fault)", "ended with exit status 0". */
void fib_process_describe_end(const struct fib_process *process, struct fib_text *out);

#endif
