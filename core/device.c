/* What all devices share: timer names and the calls that pass through the operations table. */
#include "core/device.h"

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
