/* Messages over a socket in whatever pieces they come, and what is no message. */
#include "tests/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/frame.h"

static void open_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void close_pair(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static void frames_arrive_in_order_and_terminated(void **state)
{
    int ends[2];
    struct fib_frame_buffer buffer = {0};
    struct fib_frame frame;
    (void)state;
    open_pair(ends);
    assert_true(fib_frame_send(ends[0], FIB_FRAME_SAY, "one line", 8));
    assert_true(fib_frame_send(ends[0], FIB_FRAME_END_GROUP, NULL, 0));
    assert_true(fib_frame_send(ends[0], FIB_FRAME_RECORD, "{}", 2));
    assert_true(fib_frame_wait(ends[1], &buffer, &frame));
    assert_int_equal(frame.type, FIB_FRAME_SAY);
    assert_string_equal(frame.bytes, "one line");
    assert_true(fib_frame_wait(ends[1], &buffer, &frame));
    assert_int_equal(frame.type, FIB_FRAME_END_GROUP);
    assert_int_equal(frame.length, 0);
    assert_true(fib_frame_wait(ends[1], &buffer, &frame));
    assert_int_equal(frame.type, FIB_FRAME_RECORD);
    assert_string_equal(frame.bytes, "{}");
    assert_int_equal(fib_frame_take(&buffer, &frame), FIB_FRAME_MISSING);
    fib_frame_buffer_free(&buffer);
    close_pair(ends);
}

/* Header 8 bytes (type 3... , length 5), payload 5: every prefix is "missing". */
static void a_frame_in_single_bytes(void **state)
{
    int ends[2];
    struct fib_frame_buffer buffer = {0};
    struct fib_frame frame;
    const uint32_t header[2] = {FIB_FRAME_SAY, 5};
    char bytes[13];
    (void)state;
    open_pair(ends);
    memcpy(bytes, header, 8);
    memcpy(bytes + 8, "hello", 5);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(fib_frame_take(&buffer, &frame), FIB_FRAME_MISSING);
        assert_int_equal(write(ends[0], bytes + i, 1), 1);
        assert_true(fib_frame_read(ends[1], &buffer));
    }
    assert_int_equal(fib_frame_take(&buffer, &frame), FIB_FRAME_READY);
    assert_string_equal(frame.bytes, "hello");
    fib_frame_buffer_free(&buffer);
    close_pair(ends);
}

/* Larger than the socket's buffer, so that sending needs a reader: a child of this process. */
static void a_large_frame_survives(void **state)
{
    enum { BYTES = 3000001 };
    int ends[2];
    struct fib_frame_buffer buffer = {0};
    struct fib_frame frame;
    char *const bytes = malloc(BYTES);
    (void)state;
    open_pair(ends);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 % 251);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(fib_frame_send(ends[0], FIB_FRAME_RECORD, bytes, BYTES) ? 0 : 1);
    close(ends[0]);
    assert_true(fib_frame_wait(ends[1], &buffer, &frame));
    assert_int_equal(frame.length, BYTES);
    assert_memory_equal(frame.bytes, bytes, BYTES);
    assert_false(fib_frame_wait(ends[1], &buffer, &frame)); /* the child has ended */
    fib_frame_buffer_free(&buffer);
    free(bytes);
    close(ends[1]);
}

static void half_a_frame_is_none(void **state)
{
    int ends[2];
    struct fib_frame_buffer buffer = {0};
    struct fib_frame frame;
    const uint32_t header[2] = {FIB_FRAME_RECORD, 100};
    (void)state;
    open_pair(ends);
    assert_int_equal(write(ends[0], header, sizeof(header)), sizeof(header));
    assert_int_equal(write(ends[0], "{\"a\":", 5), 5);
    close(ends[0]);
    assert_false(fib_frame_wait(ends[1], &buffer, &frame));
    fib_frame_buffer_free(&buffer);
    close(ends[1]);
}

static void nonsense_is_recognised(void **state)
{
    static const uint32_t headers[][2] = {
        {0, 4}, {FIB_FRAME_SKIP + 1, 4}, {FIB_FRAME_SAY, FIB_FRAME_MAX_BYTES + 1}, {~0u, ~0u}};
    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        int ends[2];
        struct fib_frame_buffer buffer = {0};
        struct fib_frame frame;
        open_pair(ends);
        assert_int_equal(write(ends[0], headers[i], sizeof(headers[i])), sizeof(headers[i]));
        assert_true(fib_frame_read(ends[1], &buffer));
        assert_int_equal(fib_frame_take(&buffer, &frame), FIB_FRAME_BROKEN);
        assert_false(fib_frame_wait(ends[1], &buffer, &frame));
        fib_frame_buffer_free(&buffer);
        close_pair(ends);
    }
}

static void sending_to_nobody_fails_quietly(void **state)
{
    int ends[2];
    (void)state;
    open_pair(ends);
    close(ends[1]);
    assert_false(fib_frame_send(ends[0], FIB_FRAME_SAY, "x", 1)); /* and no SIGPIPE */
    close(ends[0]);
}

static void nothing_there_yet_is_no_end(void **state)
{
    int ends[2];
    struct fib_frame_buffer buffer = {0};
    (void)state;
    open_pair(ends);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    assert_true(fib_frame_read(ends[1], &buffer));
    assert_int_equal(buffer.length, 0);
    close(ends[0]);
    assert_false(fib_frame_read(ends[1], &buffer));
    fib_frame_buffer_free(&buffer);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_arrive_in_order_and_terminated),
        cmocka_unit_test(a_frame_in_single_bytes),
        cmocka_unit_test(a_large_frame_survives),
        cmocka_unit_test(half_a_frame_is_none),
        cmocka_unit_test(nonsense_is_recognised),
        cmocka_unit_test(sending_to_nobody_fails_quietly),
        cmocka_unit_test(nothing_there_yet_is_no_end),
    };
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
