/* The one loop: a case becomes records. Knows routines and backends only through their rows. */
#ifndef FIB_CORE_RUNNER_H
#define FIB_CORE_RUNNER_H

#include <stdbool.h>

#include "core/device.h"
#include "core/json.h"
#include "core/plan.h"
#include "core/registry.h"
#include "core/result.h"
#include "core/status.h"
#include "core/step.h"

/* The backends of a case in one cache state, before any of them is prepared. */
struct fib_group {
    char key[17]; /* of the case in this cache state */
    bool hot;
    const char *const *labels;
    size_t count;
};

struct fib_runner {
    const struct fib_registry *registry;
    struct fib_device *device;
    /* Receives each record as soon as it is final; takes ownership. */
    enum fib_status (*emit)(void *context, struct fib_json *record, struct fib_error *err);
    /* The records so far that belong in one table are complete. May be NULL. */
    enum fib_status (*end_group)(void *context, struct fib_error *err);
    /* Sets skip[i] (all false before) for backends that have their row already. May be NULL. */
    void (*begin_group)(void *context, const struct fib_group *group, bool *skip);
    /* A step begins: of backend labels[arm] of the group, or of none (-1). Called before every
     * window, so it must be cheap. May be NULL. */
    void (*enter)(void *context, int arm, enum fib_step step);
    bool replaceable; /* a lost device is replaced, and the backends without a record run again */
    bool again;       /* the case was begun before: its introduction is not repeated */
    /* Receives reference-style lines ("[INFO] ...", "[WARNING] ...") without newline. */
    void (*say)(void *context, const char *line);
    bool (*interrupted)(void *context); /* may be NULL */
    void *context;
};

/* Runs every backend of one case. FIB_OK also when backends failed: that is in their records. Any
 * other status is an error of emit. */
enum fib_status fib_runner_case(const struct fib_runner *runner, const struct fib_case *kase,
                                int64_t case_index, struct fib_error *err);

/* Record of a backend that could not report itself: its process ended or was ended. Needs
 * registry and device (name, uuid, kind, utc_s) of the runner, nothing else. */
struct fib_json *fib_runner_failure(const struct fib_runner *runner, const struct fib_case *kase,
                                    bool hot, int64_t case_index, const char *backend,
                                    enum fib_result_status status, const char *reason);

/* Memory and time a case would take, for --plan and --max_case_s. */
struct fib_estimate {
    int backend_count;     /* that would run */
    uint64_t device_bytes;
    double time_s;
    bool unknown; /* a routine from outside the program: size and time show only when it runs */
};
enum fib_status fib_runner_estimate(const struct fib_runner *runner, const struct fib_case *kase,
                                    struct fib_estimate *estimate, struct fib_error *err);

#endif
