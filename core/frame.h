/* Messages between the parent and a worker over a stream socket: type, length, bytes. Both ends are
 * the same program in the same memory layout, so small payloads are plain structs and the rest is
 * JSON or text. */
#ifndef FIB_CORE_FRAME_H
#define FIB_CORE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fib_frame_type {
    /* worker to parent */
    FIB_FRAME_HELLO = 1, /* JSON: environment, or why the device could not be opened */
    FIB_FRAME_SAY,       /* a line for stdout */
    FIB_FRAME_GROUP,     /* JSON: key, cache state and labels of what is about to run */
    FIB_FRAME_RECORD,    /* JSON: one result */
    FIB_FRAME_END_GROUP, /* empty */
    FIB_FRAME_END_ITEM,  /* JSON: clocks, and what is to become of the worker */
    /* parent to worker */
    FIB_FRAME_RUN, /* struct fib_frame_run */
    FIB_FRAME_SKIP /* answer to GROUP: a byte per label, 1 = has its row already */
};

/* A record with all samples of the longest series is about 4 MiB; more is a broken worker. */
enum { FIB_FRAME_MAX_BYTES = 64 << 20 };

struct fib_frame_run {
    uint64_t item; /* index in the plan */
    bool again;    /* the item was begun before by a worker that is gone */
};

struct fib_frame {
    enum fib_frame_type type;
    const char *bytes; /* in the buffer, until the next call with it; NUL-terminated */
    size_t length;
};

/* What has arrived. Zero-initialise; release with fib_frame_buffer_free(). */
struct fib_frame_buffer {
    char *bytes;
    size_t length, capacity;
    size_t taken; /* bytes of the frame given out last, removed by the next call */
    char kept;    /* what stood where that frame's NUL is */
};

/* Sends all of it. False when the other end is gone; never raises SIGPIPE. */
bool fib_frame_send(int fd, enum fib_frame_type type, const void *bytes, size_t length);
/* Reads once, waiting when the descriptor blocks. False at the end of the stream and on errors
 * other than "nothing there yet". */
bool fib_frame_read(int fd, struct fib_frame_buffer *buffer);

enum fib_frame_state { FIB_FRAME_MISSING, FIB_FRAME_READY, FIB_FRAME_BROKEN };
/* Takes the next complete frame out of the buffer. BROKEN: what arrived is no frame. */
enum fib_frame_state fib_frame_take(struct fib_frame_buffer *buffer, struct fib_frame *frame);
/* Waits for a frame; false when the stream ended or broke. */
bool fib_frame_wait(int fd, struct fib_frame_buffer *buffer, struct fib_frame *frame);
void fib_frame_buffer_free(struct fib_frame_buffer *buffer);

#endif
