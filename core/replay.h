/* A call made the way timed calls are: in a window of the timer that ran. What a backend does
 * beside the window, on a stream of its own or only while a graph is captured, is missing from it.
 */
#ifndef FIB_CORE_REPLAY_H
#define FIB_CORE_REPLAY_H

#include "core/arm.h"

/* Zero-initialise. */
struct fib_replay {
    struct fib_device *device; /* borrowed */
    struct fib_window *window;
};

/* Makes the window, of one call on this slot; capturing calls may already run the backend's code.
 */
enum fib_status fib_replay_open(struct fib_replay *replay, struct fib_run_arm *arm,
                                enum fib_timer timer, uint32_t slot, struct fib_error *err);
void fib_replay_close(struct fib_replay *replay);

/* Runs it; context is the replay, stream and slot are the window's own. */
enum fib_status fib_replay_call(void *replay, struct fib_stream *stream, uint32_t slot,
                                struct fib_error *err);

#endif
