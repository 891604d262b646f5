/* The environment block of a run, and what `env` and `doctor` print. */
#ifndef FIB_CORE_ENV_H
#define FIB_CORE_ENV_H

#include "core/device.h"
#include "core/json.h"
#include "core/registry.h"

struct fib_text;

/* kind "environment": schema_version, program, version, build_id, compiler, build_type, argv, host,
 * kernel, os, container, cpu {model, sockets, cores, threads, affinity, governor, mhz, cache},
 * memory {total, available, cgroup_limit}, device {..}, libraries {..}, settings of the environment
 * that matter, time_utc, ... At least 30 leaf fields; unknown ones are null. */
struct fib_json *fib_env_block(const struct fib_registry *registry, struct fib_device *device,
                               int argc, const char *const *argv);
/* The block as aligned "name   value" lines. */
void fib_env_print(const struct fib_json *block, struct fib_text *out);

#endif
