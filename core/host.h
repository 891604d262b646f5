/* What this process may use of the machine: processors and memory, with the limits that affinity
 * and control groups (v1 and v2) set. */
#ifndef FIB_CORE_HOST_H
#define FIB_CORE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Processors in the affinity mask, cut to the cgroup quota (rounded up). >= 1. */
unsigned fib_host_cpu_count(void);

struct fib_host_memory {
    uint64_t installed_bytes;    /* MemTotal */
    uint64_t available_bytes;    /* MemAvailable */
    uint64_t cgroup_limit_bytes; /* least limit on the way up; UINT64_MAX when there is none */
    uint64_t cgroup_free_bytes;  /* least limit - usage on the way up; UINT64_MAX: no limit */
};
void fib_host_memory(struct fib_host_memory *memory);
/* What can be allocated without harm: the lesser of available and cgroup_free. */
uint64_t fib_host_free_bytes(void);

/* Processes that the kernel has ended for want of memory, as far as this one can see: in its
 * control group, else on the whole machine. Only differences mean something. */
uint64_t fib_host_oom_kills(void);

/* Size of the largest cache of processor 0; 32 MiB when the system does not tell. */
uint64_t fib_host_cache_bytes(void);

/* First "key : value" line of a file like /proc/cpuinfo: copies the value. False if absent. */
bool fib_host_proc_value(const char *path, const char *key, char *value, size_t value_bytes);
/* Distinct values of a key, e.g. sockets by "physical id". At most 1024 are told apart. */
unsigned fib_host_proc_distinct(const char *path, const char *key);

/* Monotonic host time. */
uint64_t fib_host_now_ns(void);

#endif
