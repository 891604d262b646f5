/* The one loop: a case becomes records. Knows routines and backends only through their rows. */
#ifndef FIB_CORE_RUNNER_H
#define FIB_CORE_RUNNER_H

#include <stdbool.h>

#include "core/device.h"
#include "core/json.h"
#include "core/plan.h"
#include "core/registry.h"
#include "core/status.h"

struct fib_runner {
    const struct fib_registry *registry;
    struct fib_device *device;
    /* Receives each record as soon as it is final; takes ownership. */
    enum fib_status (*emit)(void *context, struct fib_json *record, struct fib_error *err);
    /* The records so far that belong in one table are complete. May be NULL. */
    enum fib_status (*end_group)(void *context, struct fib_error *err);
    /* Receives reference-style lines ("[INFO] ...", "[WARNING] ...") without newline. */
    void (*say)(void *context, const char *line);
    bool (*interrupted)(void *context); /* may be NULL */
    void *context;
};

/* Runs every backend of one case. FIB_OK also when backends failed: that is in their records. Any
 * other status is an error of emit. */
enum fib_status fib_runner_case(const struct fib_runner *runner, const struct fib_case *kase,
                                int64_t case_index, struct fib_error *err);

/* Memory and time a case would take, for --plan and --max_case_s. */
struct fib_estimate {
    int backend_count;     /* that would run */
    uint64_t device_bytes;
    double time_s;
};
enum fib_status fib_runner_estimate(const struct fib_runner *runner, const struct fib_case *kase,
                                    struct fib_estimate *estimate, struct fib_error *err);

#endif
