/* Loads a plug-in and refuses a table that this program cannot read or that is not complete. */
#include "core/plugin_load.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "include/fib_plugin.h"

enum { MOST_ROWS = 256, MOST_NAME = 48 };

/* Letters and digits, and of `others` anything but the first character. */
static bool is_name(const char *name, const char *others)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    if (!name || !*name || !strchr(letters, name[0]))
        return false;
    size_t length = 0;
    while (name[length] && (strchr(letters, name[length]) || strchr(others, name[length])))
        length++;
    return name[length] == '\0' && length <= MOST_NAME;
}

static enum fib_status check_version(const struct fib_plugin *table, struct fib_error *err)
{
    static const uint32_t expected[] = {FIB_PLUGIN_VERSION};
    static const char *const names[] = {"abi",
                                        "fib_plugin",
                                        "fib_plugin_backend",
                                        "fib_plugin_routine",
                                        "fib_plugin_flag",
                                        "fib_plugin_case",
                                        "fib_plugin_tensor",
                                        "fib_plugin_problem"};
    if (table->abi != expected[0]) /* nothing behind the number need be there */
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "has plug-in ABI %u, this program takes ABI %u; build it with this "
                        "program's fib_plugin.h",
                        table->abi, expected[0]);
    const uint32_t found[] = {table->abi,           table->plugin_bytes, table->backend_bytes,
                              table->routine_bytes, table->flag_bytes,   table->case_bytes,
                              table->tensor_bytes,  table->problem_bytes};
    for (size_t i = 1; i < sizeof(expected) / sizeof(expected[0]); i++)
        if (found[i] != expected[i])
            return fib_fail(err, FIB_ERR_UNSUPPORTED,
                            "its struct %s has %u bytes, that of ABI %u has %u; build it with this "
                            "program's fib_plugin.h",
                            names[i], found[i], expected[0], expected[i]);
    return FIB_OK;
}

static enum fib_status check_backend(const struct fib_plugin_backend *backend, uint32_t i,
                                     struct fib_error *err)
{
    if (!is_name(backend->routine, "_"))
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "backends[%u] names no routine", i);
    if (backend->device != FIB_PLUGIN_CPU && backend->device != FIB_PLUGIN_CUDA)
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "backends[%u] (%s): device %d; there are 0 (CPU) and 1 (CUDA)", i,
                        backend->routine, backend->device);
    if (!backend->enqueue)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "backends[%u] (%s) has no enqueue", i,
                        backend->routine);
    return FIB_OK;
}

static enum fib_status check_flag(const char *routine, const struct fib_plugin_flag *flag,
                                  uint32_t i, struct fib_error *err)
{
    if (!is_name(flag->name, "_"))
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "routine %s: flags[%u] needs a name of lower-case letters, digits and '_'",
                        routine, i);
    if (flag->kind < FIB_PLUGIN_FLAG_I64 || flag->kind > FIB_PLUGIN_FLAG_SWITCH)
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "routine %s: flag %s has kind %d; there are 0 .. %d", routine, flag->name,
                        flag->kind, FIB_PLUGIN_FLAG_SWITCH);
    const bool choice = flag->kind == FIB_PLUGIN_FLAG_CHOICE || flag->kind == FIB_PLUGIN_FLAG_DTYPE;
    if (choice && (!flag->choices || !*flag->choices))
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "routine %s: flag %s has no choices", routine,
                        flag->name);
    if (flag->min > flag->max || !isfinite(flag->min_f64) || !isfinite(flag->max_f64) ||
        flag->min_f64 > flag->max_f64)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "routine %s: flag %s has no sound bounds",
                        routine, flag->name);
    return FIB_OK;
}

static enum fib_status check_routine(const struct fib_plugin_routine *routine, uint32_t i,
                                     struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    if (!is_name(routine->name, "_"))
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "routines[%u] needs a name of lower-case letters, digits and '_'", i);
    if (!routine->summary || !routine->describe || !routine->traffic)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "routine %s has no %s", routine->name,
                        !routine->summary    ? "summary"
                        : !routine->describe ? "describe"
                                             : "traffic");
    if (routine->flag_count > MOST_ROWS || (routine->flag_count > 0 && !routine->flags))
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "routine %s: %u flags; at most %d in an array",
                        routine->name, routine->flag_count, MOST_ROWS);
    for (uint32_t f = 0; f < routine->flag_count && st == FIB_OK; f++)
        st = check_flag(routine->name, &routine->flags[f], f, err);
    return st;
}

enum fib_status fib_plugin_check(const struct fib_plugin *table, struct fib_error *err)
{
    enum fib_status st = check_version(table, err);
    if (st != FIB_OK)
        return st;
    if (!is_name(table->name, "-_."))
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "needs a name of at most %d lower-case letters, digits, '-', '_' and '.'",
                        MOST_NAME);
    if (table->backend_count > MOST_ROWS || (table->backend_count > 0 && !table->backends) ||
        table->routine_count > MOST_ROWS || (table->routine_count > 0 && !table->routines))
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "%u backends and %u routines; at most %d of each, in arrays",
                        table->backend_count, table->routine_count, MOST_ROWS);
    if (table->backend_count == 0 && table->routine_count == 0)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "brings neither a backend nor a routine");
    for (uint32_t i = 0; i < table->backend_count && st == FIB_OK; i++)
        st = check_backend(&table->backends[i], i, err);
    for (uint32_t i = 0; i < table->routine_count && st == FIB_OK; i++)
        st = check_routine(&table->routines[i], i, err);
    return st;
}

enum fib_status fib_plugin_load(const char *path, const struct fib_plugin **table,
                                struct fib_error *err)
{
    *table = NULL;
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *const why = dlerror();
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "cannot be loaded: %s", why ? why : "no reason");
    }
    const struct fib_plugin *const found = dlsym(handle, "fib_plugin_table");
    if (!found)
        return fib_fail(err, FIB_ERR_UNSUPPORTED,
                        "has no symbol fib_plugin_table: it is no plug-in, or does not export it");
    const enum fib_status st = fib_plugin_check(found, err);
    if (st == FIB_OK)
        *table = found;
    return st;
}
