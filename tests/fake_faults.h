/* Inside of the fake backends, shared by those on the host and those on a GPU: what can be wrong
 * with a backend, and the wrapper that makes it so. */
#ifndef FIB_TESTS_FAKE_FAULTS_H
#define FIB_TESTS_FAKE_FAULTS_H

#include "core/backend.h"
#include "tests/misdeeds.h"

enum fault {
    GOOD,
    SLOW,
    WRONG,
    ZEROS,
    UNWRITTEN,
    GUARD,
    INPUT,
    LATER,
    STALE,
    ERROR,
    LATE_ERROR,
    OOM,
    ZERO_TIME,
    FIRST_MISDEED /* + enum misdeed; + LATE, + IN_PREPARE, + IN_RELEASE */
};
enum { LATE = 100, IN_PREPARE = 200, IN_RELEASE = 300 };

/* What the wrapper cannot do through the device's operations. All of it is enqueued where the
 * device has a queue. */
struct fake_hands {
    const char *inner; /* label of the implementation that is wrapped */
    int late_call;     /* number of a call that is timed when there is no warm-up */
    enum fib_status (*flip_bit)(struct fib_stream *stream, void *address, struct fib_error *err);
    enum fib_status (*double_all)(struct fib_stream *stream, enum fib_dtype dtype, void *data,
                                  int64_t count, struct fib_error *err);
    misdeed_harm_fn *harm;
};

enum fib_status fake_prepare(const struct fib_prepare_args *args, const struct fake_hands *hands,
                             enum fault fault, struct fib_prepared **prepared,
                             struct fib_error *err);
enum fib_status fake_run(struct fib_prepared *prepared, struct fib_stream *stream,
                         struct fib_error *err);
void fake_release(struct fib_prepared **prepared);
const char *fake_resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes);
const char *fake_refuse(const struct fib_case *kase, const struct fib_problem *problem,
                        const struct fib_device *device, char *buffer, size_t buffer_bytes);

/* X(rest, label, identifier, fault) for each fault that both kinds of device can have. */
#define FAKE_FAULTS(X, rest)                                                                       \
    X(rest, "fake-good", good, GOOD)                                                               \
    X(rest, "fake-wrong", wrong, WRONG)                                                            \
    X(rest, "fake-zeros", zeros, ZEROS)                                                            \
    X(rest, "fake-unwritten", unwritten, UNWRITTEN)                                                \
    X(rest, "fake-guard", guard, GUARD)                                                            \
    X(rest, "fake-input", input, INPUT)                                                            \
    X(rest, "fake-later", later, LATER)                                                            \
    X(rest, "fake-stale", stale, STALE)                                                            \
    X(rest, "fake-error", error, ERROR)                                                            \
    X(rest, "fake-late-error", late_error, LATE_ERROR)                                             \
    X(rest, "fake-oom", oom, OOM)                                                                  \
    X(rest, "fake-segv", segv, FIRST_MISDEED + MISDEED_SEGV)                                       \
    X(rest, "fake-late-segv", late_segv, FIRST_MISDEED + LATE + MISDEED_SEGV)                      \
    X(rest, "fake-early-segv", early_segv, FIRST_MISDEED + IN_PREPARE + MISDEED_SEGV)              \
    X(rest, "fake-far", far, FIRST_MISDEED + MISDEED_FAR)                                          \
    X(rest, "fake-abort", abort, FIRST_MISDEED + MISDEED_ABORT)                                    \
    X(rest, "fake-exit0", exit0, FIRST_MISDEED + MISDEED_EXIT0)                                    \
    X(rest, "fake-exit3", exit3, FIRST_MISDEED + LATE + MISDEED_EXIT3)                             \
    X(rest, "fake-stack", stack, FIRST_MISDEED + MISDEED_STACK)                                    \
    X(rest, "fake-kill", kill, FIRST_MISDEED + LATE + MISDEED_KILL)                                \
    X(rest, "fake-sleep", sleep, FIRST_MISDEED + MISDEED_SLEEP)                                    \
    X(rest, "fake-spin", spin, FIRST_MISDEED + LATE + MISDEED_SPIN)                                \
    X(rest, "fake-hog", hog, FIRST_MISDEED + IN_PREPARE + MISDEED_HOG)                             \
    X(rest, "fake-needy", needy, FIRST_MISDEED + IN_PREPARE + MISDEED_NEED)                        \
    X(rest, "fake-noise", noise, FIRST_MISDEED + MISDEED_NOISE)

/* Pieces for such a table; a `static const struct fake_hands hands` must be in sight. */
#define FAKE_PREPARE(rest, label, name, which)                                                     \
    static enum fib_status prepare_##name(const struct fib_prepare_args *args,                     \
                                          struct fib_prepared **prepared, struct fib_error *err)   \
    {                                                                                              \
        return fake_prepare(args, &hands, (enum fault)(which), prepared, err);                     \
    }
#define FAKE_ROW(routine_, kind_, label_, refuse_, prepare_)                                       \
    {                                                                                              \
        .routine = (routine_), .label = (label_), .device_kind = (kind_), .refuse = (refuse_),     \
        .prepare = (prepare_), .run = fake_run, .release = fake_release, .resolved = fake_resolved \
    }

#endif
