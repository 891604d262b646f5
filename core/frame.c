/* Length-prefixed messages over a socket, whatever pieces they arrive in. */
#include "core/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/memory.h"

enum { READ_BYTES = 64 << 10 };

struct header {
    uint32_t type, length;
};

static bool send_all(int fd, const char *bytes, size_t length, int flags)
{
    while (length > 0) {
        const ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

bool fib_frame_send(int fd, enum fib_frame_type type, const void *bytes, size_t length)
{
    if (length > FIB_FRAME_MAX_BYTES)
        return false;
    const struct header header = {.type = (uint32_t)type, .length = (uint32_t)length};
    return send_all(fd, (const char *)&header, sizeof(header), length > 0 ? MSG_MORE : 0) &&
           send_all(fd, bytes, length, 0);
}

/* The frame given out last is the caller's until here. */
static void drop_taken(struct fib_frame_buffer *buffer)
{
    if (buffer->taken == 0)
        return;
    buffer->bytes[buffer->taken] = buffer->kept;
    buffer->length -= buffer->taken;
    memmove(buffer->bytes, buffer->bytes + buffer->taken, buffer->length);
    buffer->taken = 0;
}

bool fib_frame_read(int fd, struct fib_frame_buffer *buffer)
{
    drop_taken(buffer);
    /* One more for the NUL behind the last frame. */
    if (buffer->capacity < buffer->length + READ_BYTES + 1) {
        buffer->capacity = 2 * buffer->length + READ_BYTES + 1;
        buffer->bytes = fib_realloc(buffer->bytes, buffer->capacity);
    }
    ssize_t got = -1;
    do
        got = read(fd, buffer->bytes + buffer->length, READ_BYTES);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK;
    buffer->length += (size_t)got;
    return got > 0;
}

enum fib_frame_state fib_frame_take(struct fib_frame_buffer *buffer, struct fib_frame *frame)
{
    struct header header;
    drop_taken(buffer);
    if (buffer->length < sizeof(header))
        return FIB_FRAME_MISSING;
    memcpy(&header, buffer->bytes, sizeof(header));
    if (header.type < FIB_FRAME_HELLO || header.type > FIB_FRAME_SKIP ||
        header.length > FIB_FRAME_MAX_BYTES)
        return FIB_FRAME_BROKEN;
    const size_t whole = sizeof(header) + header.length;
    if (buffer->length < whole)
        return FIB_FRAME_MISSING;
    buffer->taken = whole;
    buffer->kept = buffer->bytes[whole];
    buffer->bytes[whole] = '\0';
    *frame = (struct fib_frame){.type = (enum fib_frame_type)header.type,
                                .bytes = buffer->bytes + sizeof(header),
                                .length = header.length};
    return FIB_FRAME_READY;
}

bool fib_frame_wait(int fd, struct fib_frame_buffer *buffer, struct fib_frame *frame)
{
    for (;;) {
        const enum fib_frame_state state = fib_frame_take(buffer, frame);
        if (state != FIB_FRAME_MISSING)
            return state == FIB_FRAME_READY;
        if (!fib_frame_read(fd, buffer))
            return false;
    }
}

void fib_frame_buffer_free(struct fib_frame_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct fib_frame_buffer){0};
}
