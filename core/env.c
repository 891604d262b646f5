/* Facts about the machine, the build and the device that a later reader of the numbers needs. */
#include "core/env.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "core/host.h"
#include "core/result.h"
#include "core/text.h"

/* First line of a small file; false when there is none. */
static bool first_line(const char *path, char *line, size_t line_bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const bool found = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found;
}

static void set_file_text(struct fib_json *object, const char *name, const char *path)
{
    char line[256];
    fib_json_set_text(object, name, first_line(path, line, sizeof(line)) ? line : NULL);
}

/* A file that holds one number, multiplied by `scale`. */
static void set_file_number(struct fib_json *object, const char *name, const char *path,
                            double scale)
{
    char line[64];
    double number = NAN;
    if (first_line(path, line, sizeof(line)) && fib_parse_f64(line, &number))
        number *= scale;
    fib_json_set_f64(object, name, number);
}

static void set_utc(struct fib_json *object, const char *name, int64_t utc_s)
{
    const time_t seconds = (time_t)utc_s;
    struct tm parts;
    char text[32];
    const bool good =
        gmtime_r(&seconds, &parts) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    fib_json_set_text(object, name, good ? text : NULL);
}

/* ---- build ---- */

static const char *sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return "address";
#elif defined(__SANITIZE_THREAD__)
    return "thread";
#else
    return "none";
#endif
}

static void add_build(struct fib_json *block, const struct fib_registry *registry)
{
    fib_json_set_text(block, "program", registry->program);
    fib_json_set_text(block, "version", registry->version);
    fib_json_set_text(block, "build_id", registry->build_id);
#ifdef __clang__
    fib_json_set_text(block, "compiler", __VERSION__);
#else
    fib_json_set_text(block, "compiler", "gcc " __VERSION__);
#endif
#ifdef __OPTIMIZE__
    fib_json_set_text(block, "build_type", "optimized");
#else
    fib_json_set_text(block, "build_type", "debug");
#endif
    fib_json_set_text(block, "sanitizer", sanitizer());
}

static void add_argv(struct fib_json *block, int argc, const char *const *argv)
{
    struct fib_json *words = fib_json_set(block, "argv", fib_json_array());
    for (int i = 0; i < argc; i++)
        fib_json_add_text(words, argv[i]);
}

/* ---- system ---- */

static void set_os(struct fib_json *block)
{
    FILE *file = fopen("/etc/os-release", "re");
    char line[256], name[200] = "";
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "PRETTY_NAME=\"%199[^\"]", name) == 1 ||
            sscanf(line, "PRETTY_NAME=%199[^\n]", name) == 1)
            break;
    }
    if (file)
        fclose(file);
    fib_json_set_text(block, "os", name[0] ? name : NULL);
}

/* A hint, not a proof: what the usual container engines leave behind. */
static const char *container(void)
{
    char line[256];
    if (access("/.dockerenv", F_OK) == 0)
        return "docker";
    if (access("/run/.containerenv", F_OK) == 0)
        return "podman";
    if (getenv("KUBERNETES_SERVICE_HOST"))
        return "kubernetes";
    if (first_line("/run/systemd/container", line, sizeof(line)))
        return "systemd";
    return NULL;
}

static void add_system(struct fib_json *block)
{
    struct utsname names;
    const bool known = uname(&names) == 0;
    double load[1];
    fib_json_set_text(block, "host", known ? names.nodename : NULL);
    fib_json_set_text(block, "kernel", known ? names.release : NULL);
    fib_json_set_text(block, "machine", known ? names.machine : NULL);
    set_os(block);
    fib_json_set_text(block, "container", container());
    set_file_text(block, "clocksource",
                  "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    fib_json_set_f64(block, "load_1min", getloadavg(load, 1) == 1 ? load[0] : NAN);
    fib_json_set_i64(block, "process_id", getpid());
}

static double proc_number(const char *key)
{
    char value[64];
    double number = NAN;
    if (fib_host_proc_value("/proc/cpuinfo", key, value, sizeof(value)))
        fib_parse_f64(value, &number);
    return number;
}

/* The widest vectors that the processor and the kernel offer. */
static const char *vector_extension(void)
{
    char flags[4096];
    if (!fib_host_proc_value("/proc/cpuinfo", "flags", flags, sizeof(flags)))
        return NULL;
    static const char *const widest_first[] = {"avx512f", "avx2", "avx", "sse2"};
    for (size_t i = 0; i < sizeof(widest_first) / sizeof(widest_first[0]); i++) {
        if (fib_words_contain(flags, widest_first[i]))
            return widest_first[i];
    }
    return NULL;
}

/* Sockets and cores follow from the first processor's lines: reading all of /proc/cpuinfo takes
 * tens of milliseconds on a large machine. */
static void add_cpu(struct fib_json *block)
{
    static const char cpufreq[] = "/sys/devices/system/cpu/cpu0/cpufreq/";
    struct fib_json *cpu = fib_json_set(block, "cpu", fib_json_object());
    const double threads = (double)sysconf(_SC_NPROCESSORS_ONLN);
    const double sockets = fmax(1.0, round(threads / proc_number("siblings")));
    const double cores = proc_number("cpu cores");
    char text[256], path[128];
    const bool named = fib_host_proc_value("/proc/cpuinfo", "model name", text, sizeof(text));
    fib_json_set_text(cpu, "model", named ? text : NULL);
    fib_json_set_f64(cpu, "sockets", isnan(cores) ? NAN : sockets);
    fib_json_set_f64(cpu, "cores", cores * sockets);
    fib_json_set_f64(cpu, "threads", threads);
    fib_json_set_i64(cpu, "affinity", fib_host_cpu_count());
    snprintf(path, sizeof(path), "%sscaling_governor", cpufreq);
    set_file_text(cpu, "governor", path);
    snprintf(path, sizeof(path), "%scpuinfo_max_freq", cpufreq);
    set_file_number(cpu, "max_mhz", path, 1e-3);
    fib_json_set_f64(cpu, "mhz", proc_number("cpu MHz"));
    fib_json_set_f64(cpu, "cache_bytes", (double)fib_host_cache_bytes());
    set_file_number(cpu, "smt_active", "/sys/devices/system/cpu/smt/active", 1.0);
    set_file_number(cpu, "boost", "/sys/devices/system/cpu/cpufreq/boost", 1.0);
    fib_json_set_text(cpu, "vectors", vector_extension());
}

static void add_memory(struct fib_json *block)
{
    struct fib_json *memory = fib_json_set(block, "memory", fib_json_object());
    struct fib_host_memory facts;
    struct rlimit locked;
    fib_host_memory(&facts);
    const bool limited = facts.cgroup_limit_bytes != UINT64_MAX;
    const bool lockable =
        getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY;
    fib_json_set_f64(memory, "total_bytes", (double)facts.installed_bytes);
    fib_json_set_f64(memory, "available_bytes", (double)facts.available_bytes);
    fib_json_set_f64(memory, "cgroup_limit_bytes",
                     limited ? (double)facts.cgroup_limit_bytes : NAN);
    fib_json_set_f64(memory, "locked_limit_bytes", lockable ? (double)locked.rlim_cur : NAN);
    fib_json_set_i64(memory, "page_bytes", sysconf(_SC_PAGESIZE));
    set_file_text(memory, "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    set_file_text(memory, "numa_nodes", "/sys/devices/system/node/online");
}

/* ---- device, libraries, settings ---- */

static struct fib_json *device_block(const struct fib_device *device)
{
    if (!device)
        return NULL;
    const struct fib_device_facts *facts = &device->facts;
    struct fib_json *object = fib_json_object();
    fib_json_set_text(object, "name", facts->name);
    fib_json_set_text(object, "uuid", facts->uuid);
    fib_json_set_text(object, "kind", facts->kind == FIB_DEVICE_CUDA ? "cuda" : "cpu");
    fib_json_set_f64(object, "compute_capability",
                     facts->compute_capability > 0 ? facts->compute_capability / 10.0 : NAN);
    fib_json_set_i64(object, "units", facts->unit_count);
    fib_json_set_f64(object, "memory_bytes", (double)facts->memory_bytes);
    fib_json_set_f64(object, "cache_bytes", (double)facts->cache_bytes);
    fib_json_set_f64(object, "ring_bytes", (double)facts->ring_bytes);
    fib_json_set_f64(object, "ring_limit_bytes", (double)facts->ring_limit_bytes);
    fib_json_set_text(object, "default_timer", fib_timer_name(facts->default_timer));
    fib_json_set_f64(object, "tick_ps", round(facts->tick_ms * 1e9));
    fib_json_set_f64(object, "window_overhead_us", round(facts->window_overhead_ms * 1e9) / 1e6);
    fib_json_set_text(object, "overhead_method", facts->overhead_method);
    fib_json_set_f64(object, "window_min_ms", facts->window_min_ms);
    fib_json_set_text(object, "default_backend", facts->default_backend);
    fib_json_set_f64(object, "call_gap_us",
                     facts->call_gap_ms > 0 ? round(facts->call_gap_ms * 1e9) / 1e6 : NAN);
    fib_json_set_text(object, "note", facts->note[0] ? facts->note : NULL);
    return object;
}

static void add_libraries(struct fib_json *block)
{
    struct fib_json *libraries = fib_json_set(block, "libraries", fib_json_object());
#ifdef __GLIBC__
    fib_json_set_text(libraries, "libc", gnu_get_libc_version());
#else
    fib_json_set_null(libraries, "libc");
#endif
}

/* Variables of the environment that change what runs or how fast; unset ones are null. */
static void add_settings(struct fib_json *block)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES",
                                        "CUDA_DEVICE_ORDER",
                                        "CUDA_LAUNCH_BLOCKING",
                                        "CUDA_MODULE_LOADING",
                                        "NVIDIA_TF32_OVERRIDE",
                                        "OMP_NUM_THREADS",
                                        "OPENBLAS_NUM_THREADS",
                                        "OPENBLAS_CORETYPE",
                                        "MALLOC_ARENA_MAX",
                                        "LD_PRELOAD",
                                        "LC_ALL",
                                        "SLURM_JOB_ID"};
    struct fib_json *settings = fib_json_set(block, "settings", fib_json_object());
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        fib_json_set_text(settings, names[i], getenv(names[i]));
}

struct fib_json *fib_env_block(const struct fib_registry *registry, struct fib_device *device,
                               int argc, const char *const *argv)
{
    struct fib_json *block = fib_json_object();
    fib_json_set_i64(block, "schema_version", FIB_SCHEMA_VERSION);
    fib_json_set_text(block, "kind", "environment");
    set_utc(block, "time_utc", device ? device->ops->utc_s(device) : (int64_t)time(NULL));
    add_build(block, registry);
    add_argv(block, argc, argv);
    add_system(block);
    add_cpu(block);
    add_memory(block);
    fib_json_set(block, "device", device_block(device));
    add_libraries(block);
    add_settings(block);
    return block;
}

/* ---- printing ---- */

/* Calls itself for groups; with `out` NULL only the longest name is measured. */
static void print_members(const struct fib_json *group, const char *prefix, size_t *width,
                          struct fib_text *out)
{
    for (size_t i = 0; i < fib_json_count(group); i++) {
        const struct fib_json *value = fib_json_at(group, i);
        struct fib_text name = {0};
        fib_text_addf(&name, "%s%s%s", prefix, *prefix ? "." : "", fib_json_name_at(group, i));
        if (fib_json_name_at(value, 0)) {
            print_members(value, name.chars, width, out);
        } else if (!out) {
            *width = name.length > *width ? name.length : *width;
        } else {
            char *printed = fib_json_print(value, false);
            const char *text = fib_json_text(value, "");
            fib_text_add(out, name.chars);
            fib_text_pad(out, *width + 3);
            fib_text_addf(out, "%s\n", text ? text : fib_json_is_null(value) ? "-" : printed);
            free(printed);
        }
        fib_text_free(&name);
    }
}

void fib_env_print(const struct fib_json *block, struct fib_text *out)
{
    size_t width = 0;
    print_members(block, "", &width, NULL);
    print_members(block, "", &width, out);
}
