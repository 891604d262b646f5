/* What a broken backend can do to the process and the device it runs on. Little of this returns in
 * a sound state, so only a worker may call it. */
#ifndef FIB_TESTS_MISDEEDS_H
#define FIB_TESTS_MISDEEDS_H

#include "core/backend.h"

enum misdeed {
    MISDEED_NONE = 0,
    MISDEED_SEGV, /* reads through a null pointer of the host */
    MISDEED_ABORT,
    MISDEED_EXIT0, /* exit(0): looks like success */
    MISDEED_EXIT3, /* exit(3) */
    MISDEED_STACK, /* recursion without end on the host */
    MISDEED_KILL,  /* SIGKILL, as somebody else would send it */
    MISDEED_SLEEP, /* does not return, asleep */
    MISDEED_SPIN,  /* does not return, busy */
    MISDEED_HOG,   /* takes all device memory there is, keeps it, and reports that none is left */
    MISDEED_GREED, /* asks the device for much more memory than it has */
    MISDEED_NEED,  /* takes a workspace of device memory for a moment: not wrong at all */
    MISDEED_NOISE, /* prints on standard output, and returns */
    MISDEED_LOSE,  /* an error that leaves the device unusable, as a GPU's does */
    MISDEED_BREAK, /* the fake device is lost to whoever waits next; no word of it */
    MISDEED_BREAK_TOLD, /* the same, and reported as a library would */

    /* In the memory and on the processors of the device; the host knows FAR alone. */
    MISDEED_FAR,        /* writes where nobody's memory is */
    MISDEED_MISALIGNED, /* writes eight bytes at an odd address */
    MISDEED_TRAP,       /* a kernel that ends itself and the context */
    MISDEED_ASSERT,     /* an assertion that does not hold */
    MISDEED_DEEP,       /* recursion without end in a kernel */
    MISDEED_LOOP,       /* a kernel that does not end */
    MISDEED_OVERSIZED,  /* a launch that no GPU allows */
    MISDEED_WAIT        /* waits for the stream: cannot be captured, and else does no harm */
};

/* Does one of the last group; enqueues on the stream where the device has one. */
typedef enum fib_status misdeed_harm_fn(enum misdeed misdeed, struct fib_stream *stream, void *data,
                                        struct fib_error *err);
misdeed_harm_fn misdeed_harm_host;

struct misdeed_place {
    struct fib_device *device;
    struct fib_stream *stream;
    void *data; /* an output of the call */
    misdeed_harm_fn *harm;
};

/* The status is the call's. What does harm says "misdeed at S" on stderr first, S seconds on the
 * host's monotonic clock, so that a test knows how long the others had to wait. */
enum fib_status misdeed_do(enum misdeed misdeed, const struct misdeed_place *place,
                           struct fib_error *err);

#endif
