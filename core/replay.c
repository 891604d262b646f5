/* One window of one call, for the check after timing. */
#include "core/replay.h"

enum fib_status fib_replay_open(struct fib_replay *replay, struct fib_run_arm *arm,
                                enum fib_timer timer, uint32_t slot, struct fib_error *err)
{
    const struct fib_window_spec spec = {
        .timer = timer,
        .call_count = 1,
        .slots = &slot,
        .call = fib_run_arm_call,
        .call_context = arm,
        .reset = fib_tensors_has_inout(arm->tensors) ? fib_run_arm_reset : NULL,
        .reset_context = arm,
    };
    replay->device = arm->device;
    return arm->device->ops->window_create(arm->device, &spec, &replay->window, err);
}

void fib_replay_close(struct fib_replay *replay)
{
    if (replay->window)
        replay->device->ops->window_destroy(&replay->window);
    replay->window = NULL;
}

enum fib_status fib_replay_call(void *context, struct fib_stream *stream, uint32_t slot,
                                struct fib_error *err)
{
    const struct fib_replay *const replay = context;
    struct fib_window_sample sample = {0};
    (void)stream, (void)slot;
    return replay->device->ops->window_run(replay->window, &sample, err);
}
