/* What all devices share: timer names and the calls that pass through the operations table. */
#include "core/device.h"

#include <string.h>

const char *fib_timer_name(enum fib_timer timer)
{
    switch (timer) {
    case FIB_TIMER_DEFAULT:
        return "default";
    case FIB_TIMER_GRAPH:
        return "graph";
    case FIB_TIMER_ISOLATED:
        return "isolated";
    case FIB_TIMER_CUPTI:
        return "cupti";
    case FIB_TIMER_EVENTS:
        return "events";
    case FIB_TIMER_WALL:
        return "wall";
    }
    return "unknown";
}

const char *fib_device_timer_refusal(const struct fib_device *device, enum fib_timer timer)
{
    return timer == FIB_TIMER_DEFAULT ? NULL : device->ops->timer_refusal(device, timer);
}

void fib_device_close(struct fib_device **device)
{
    if (*device)
        (*device)->ops->close(*device);
    *device = NULL;
}

/* Empties the pieces that have begun since the last note. */
static int64_t turn_to_now(struct fib_device *device)
{
    struct fib_busy *const busy = &device->busy;
    const int64_t now = (int64_t)(device->ops->now_ms(device) / 10);
    const int64_t new_pieces = now - busy->last;
    for (int64_t i = 1; i <= new_pieces && i <= FIB_BUSY_PIECES; i++)
        busy->ms[(busy->last + i) % FIB_BUSY_PIECES] = 0;
    if (new_pieces > FIB_BUSY_PIECES || new_pieces < 0)
        memset(busy->ms, 0, sizeof(busy->ms));
    busy->last = now;
    return now % FIB_BUSY_PIECES;
}

void fib_device_note_work(struct fib_device *device, double work_ms)
{
    const int64_t piece = turn_to_now(device);
    if (work_ms > 0)
        device->busy.ms[piece] += work_ms;
}

double fib_device_recent_work_ms(struct fib_device *device)
{
    double sum_ms = 0;
    turn_to_now(device);
    for (int i = 0; i < FIB_BUSY_PIECES; i++)
        sum_ms += device->busy.ms[i];
    return sum_ms;
}
