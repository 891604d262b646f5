/* Reads /proc, /sys and control groups for what this process may use of the machine. */
#include "core/host.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_CHARS = 1024, LINE_CHARS = 4096 };

uint64_t fib_host_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* First line of a small file without its newline. */
static bool read_line(const char *path, char *line, size_t line_bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const bool ok = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

/* Leading decimal digits of a text; *rest what follows them. False without digits ("max") and on
 * overflow. */
static bool parse_u64(const char *text, uint64_t *value, const char **rest)
{
    char *end = NULL;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    *rest = end;
    return errno == 0;
}

static bool read_u64(const char *path, uint64_t *value)
{
    char line[64];
    const char *rest;
    return read_line(path, line, sizeof(line)) && parse_u64(line, value, &rest);
}

/* Path of this process in the hierarchy of `controller` (NULL: the v2 hierarchy). */
static bool cgroup_path(const char *controller, char *path, size_t path_bytes)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return false;
    char line[LINE_CHARS];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *where = names ? strchr(names + 1, ':') : NULL;
        if (!where)
            continue;
        *where++ = '\0';
        names++;
        if (!controller) {
            found = *names == '\0';
        } else {
            for (char *save = NULL, *name = strtok_r(names, ",", &save); name && !found;
                 name = strtok_r(NULL, ",", &save))
                found = strcmp(name, controller) == 0;
        }
        if (found)
            found = snprintf(path, path_bytes, "%s", where) < (int)path_bytes;
    }
    fclose(file);
    return found;
}

typedef void limit_fn(const char *folder, bool v2, void *context);

/* Calls `visit` for the process's group and all groups above it. Inside a container the path may
 * not exist below the mount; the mount's root is then the container's own group. */
static void walk_groups(const char *controller, bool v2, limit_fn *visit, void *context)
{
    char path[PATH_CHARS], folder[PATH_CHARS + 64];
    if (!cgroup_path(v2 ? NULL : controller, path, sizeof(path)))
        return;
    for (;;) {
        snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%s%s", v2 ? "" : "/",
                 v2 ? "" : controller, strcmp(path, "/") == 0 ? "" : path);
        visit(folder, v2, context);
        char *slash = strrchr(path, '/');
        if (!slash || path[1] == '\0')
            return;
        slash[slash == path] = '\0';
    }
}

/* "quota period" of the v2 file cpu.max. */
static bool read_cpu_max(const char *path, uint64_t *quota, uint64_t *period)
{
    char line[64];
    const char *rest;
    return read_line(path, line, sizeof(line)) && parse_u64(line, quota, &rest) && *rest == ' ' &&
           parse_u64(rest + 1, period, &rest);
}

static void visit_cpu(const char *folder, bool v2, void *context)
{
    double *cpus = context;
    char path[PATH_CHARS + 96];
    uint64_t quota = 0, period = 0;
    if (v2) {
        snprintf(path, sizeof(path), "%s/cpu.max", folder);
        if (!read_cpu_max(path, &quota, &period))
            return;
    } else {
        snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
        if (!read_u64(path, &quota)) /* -1: no limit */
            return;
        snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
        if (!read_u64(path, &period))
            return;
    }
    if (quota > 0 && period > 0 && (double)quota / (double)period < *cpus)
        *cpus = (double)quota / (double)period;
}

static unsigned affinity_count(void)
{
    /* The kernel refuses a mask smaller than its own: grow until it fits. */
    for (int cpus = 1024; cpus <= 65536; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        const size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        const int count =
            set && sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned fib_host_cpu_count(void)
{
    const unsigned affine = affinity_count();
    double cpus = affine;
    walk_groups("cpu", true, visit_cpu, &cpus);
    walk_groups("cpu", false, visit_cpu, &cpus);
    unsigned count = (unsigned)cpus;
    if (count < cpus)
        count++;
    return count > 0 ? count : 1;
}

static void visit_memory(const char *folder, bool v2, void *context)
{
    struct fib_host_memory *memory = context;
    char path[PATH_CHARS + 96];
    uint64_t limit = 0, usage = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (!read_u64(path, &limit)) /* "max" is no number: no limit */
        return;
    if (limit >= UINT64_MAX / 4) /* v1 writes "none" as a huge number */
        return;
    snprintf(path, sizeof(path), "%s/%s", folder, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (!read_u64(path, &usage))
        usage = 0;
    const uint64_t left = limit > usage ? limit - usage : 0;
    if (limit < memory->cgroup_limit_bytes)
        memory->cgroup_limit_bytes = limit;
    if (left < memory->cgroup_free_bytes)
        memory->cgroup_free_bytes = left;
}

static uint64_t meminfo_bytes(const char *key)
{
    char value[64];
    const char *rest;
    uint64_t kib = 0;
    if (!fib_host_proc_value("/proc/meminfo", key, value, sizeof(value)) ||
        !parse_u64(value, &kib, &rest))
        return 0;
    return kib * 1024;
}

void fib_host_memory(struct fib_host_memory *memory)
{
    *memory = (struct fib_host_memory){
        .installed_bytes = meminfo_bytes("MemTotal"),
        .available_bytes = meminfo_bytes("MemAvailable"),
        .cgroup_limit_bytes = UINT64_MAX,
        .cgroup_free_bytes = UINT64_MAX,
    };
    walk_groups("memory", true, visit_memory, memory);
    walk_groups("memory", false, visit_memory, memory);
}

uint64_t fib_host_free_bytes(void)
{
    struct fib_host_memory memory;
    fib_host_memory(&memory);
    return memory.available_bytes < memory.cgroup_free_bytes ? memory.available_bytes
                                                             : memory.cgroup_free_bytes;
}

/* Number behind a word at the start of a line: "oom_kill 3". */
static bool read_counter(const char *path, const char *word, uint64_t *count)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[LINE_CHARS];
    const char *rest;
    const size_t length = strlen(word);
    bool found = false;
    while (!found && fgets(line, sizeof(line), file))
        found = strncmp(line, word, length) == 0 && line[length] == ' ' &&
                parse_u64(line + length + 1, count, &rest);
    fclose(file);
    return found;
}

struct oom_kills {
    uint64_t count;
    bool known;
};

/* The nearest group that counts is the one that matters: the groups above add up their children. */
static void visit_oom(const char *folder, bool v2, void *context)
{
    struct oom_kills *kills = context;
    char path[PATH_CHARS + 96];
    snprintf(path, sizeof(path), "%s/%s", folder, v2 ? "memory.events" : "memory.oom_control");
    if (!kills->known)
        kills->known = read_counter(path, "oom_kill", &kills->count);
}

uint64_t fib_host_oom_kills(void)
{
    struct oom_kills kills = {0};
    walk_groups("memory", true, visit_oom, &kills);
    walk_groups("memory", false, visit_oom, &kills);
    if (!kills.known)
        read_counter("/proc/vmstat", "oom_kill", &kills.count);
    return kills.count;
}

static uint64_t cache_size(unsigned index)
{
    char path[128], line[64];
    const char *unit;
    uint64_t size = 0;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/type", index);
    if (!read_line(path, line, sizeof(line)) || strcmp(line, "Instruction") == 0)
        return 0;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
    if (!read_line(path, line, sizeof(line)) || !parse_u64(line, &size, &unit))
        return 0;
    return *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : *unit == 'G' ? size << 30 : size;
}

uint64_t fib_host_cache_bytes(void)
{
    uint64_t largest = 0;
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t size = cache_size(i);
        if (size > largest)
            largest = size;
    }
    return largest > 0 ? largest : UINT64_C(32) << 20;
}

/* Value of a "key : value" line, or NULL when the line has another key. */
static const char *value_of(char *line, const char *key)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return NULL;
    char *end = colon;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if ((size_t)(end - line) != strlen(key) || memcmp(line, key, strlen(key)) != 0)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return colon + 1 + strspn(colon + 1, " \t");
}

bool fib_host_proc_value(const char *path, const char *key, char *value, size_t value_bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[LINE_CHARS];
    const char *found = NULL;
    while (!found && fgets(line, sizeof(line), file))
        found = value_of(line, key);
    if (found)
        snprintf(value, value_bytes, "%s", found);
    fclose(file);
    return found != NULL;
}

unsigned fib_host_proc_distinct(const char *path, const char *key)
{
    enum { MOST = 1024 };
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char line[LINE_CHARS];
    long seen[MOST];
    unsigned count = 0;
    while (count < MOST && fgets(line, sizeof(line), file)) {
        const char *found = value_of(line, key);
        if (!found)
            continue;
        const long number = strtol(found, NULL, 10);
        unsigned i = 0;
        while (i < count && seen[i] != number)
            i++;
        if (i == count)
            seen[count++] = number;
    }
    fclose(file);
    return count;
}
