/* What a broken backend can do to the process it runs in. Nothing here returns in a sound state, so
 * only a worker may call it. */
#ifndef FIB_TESTS_MISDEEDS_H
#define FIB_TESTS_MISDEEDS_H

#include "core/backend.h"

enum misdeed {
    MISDEED_NONE = 0,
    MISDEED_SEGV, /* reads through a null pointer */
    MISDEED_FAR,  /* writes far behind an output */
    MISDEED_ABORT,
    MISDEED_EXIT0, /* exit(0): looks like success */
    MISDEED_EXIT3, /* exit(3) */
    MISDEED_STACK, /* recursion without end */
    MISDEED_KILL,  /* SIGKILL, as somebody else would send it */
    MISDEED_SLEEP, /* does not return, asleep */
    MISDEED_SPIN,  /* does not return, busy */
    MISDEED_HOG,   /* takes all the memory there is, keeps it, and reports that none is left */
    MISDEED_NOISE, /* prints on standard output, and returns */
    MISDEED_LOSE   /* an error that leaves the device unusable, as a GPU's does */
};

/* `data` is an output of the call. The status is the call's. */
enum fib_status misdeed_do(enum misdeed misdeed, struct fib_device *device, void *data,
                           struct fib_error *err);

#endif
