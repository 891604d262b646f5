/* Forks, loads the plug-in over there, and reads its table through a socket. */
#include "core/plugin_probe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/frame.h"
#include "core/host.h"
#include "core/plugin_load.h"
#include "core/process.h"
#include "core/text.h"
#include "include/fib_plugin.h"

enum { END_GRACE_MS = 1000 };

/* ---- over there ---- */

/* Whole numbers as text: JSON keeps 53 bits of them. */
static void set_bound(struct fib_json *object, const char *name, int64_t bound)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, bound);
    fib_json_set_text(object, name, text);
}

static struct fib_json *flag_object(const struct fib_plugin_flag *flag)
{
    struct fib_json *const object = fib_json_object();
    fib_json_set_text(object, "name", flag->name);
    fib_json_set_i64(object, "kind", flag->kind);
    fib_json_set_bool(object, "required", flag->required != 0);
    set_bound(object, "min", flag->min);
    set_bound(object, "max", flag->max);
    fib_json_set_f64(object, "min_f64", flag->min_f64);
    fib_json_set_f64(object, "max_f64", flag->max_f64);
    fib_json_set_text(object, "fallback", flag->fallback);
    fib_json_set_text(object, "choices", flag->choices);
    fib_json_set_text(object, "help", flag->help);
    return object;
}

static struct fib_json *routine_object(const struct fib_plugin_routine *routine)
{
    struct fib_json *const object = fib_json_object();
    fib_json_set_text(object, "name", routine->name);
    fib_json_set_text(object, "summary", routine->summary);
    fib_json_set_text(object, "layout", routine->layout);
    fib_json_set_text(object, "cost", routine->cost);
    fib_json_set_bool(object, "has_reference", routine->reference != NULL);
    struct fib_json *const flags = fib_json_set(object, "flags", fib_json_array());
    for (uint32_t i = 0; i < routine->flag_count; i++)
        fib_json_add(flags, flag_object(&routine->flags[i]));
    return object;
}

static struct fib_json *backend_object(const struct fib_plugin_backend *backend)
{
    struct fib_json *const object = fib_json_object();
    fib_json_set_text(object, "routine", backend->routine);
    fib_json_set_i64(object, "device", backend->device);
    fib_json_set_i64(object, "min_cc", backend->min_cc);
    fib_json_set_text(object, "ran", backend->ran);
    return object;
}

static struct fib_json *table_object(const struct fib_plugin *table)
{
    struct fib_json *const object = fib_json_object();
    fib_json_set_text(object, "name", table->name);
    fib_json_set_text(object, "describe", table->describe);
    struct fib_json *const backends = fib_json_set(object, "backends", fib_json_array());
    for (uint32_t i = 0; i < table->backend_count; i++)
        fib_json_add(backends, backend_object(&table->backends[i]));
    struct fib_json *const routines = fib_json_set(object, "routines", fib_json_array());
    for (uint32_t i = 0; i < table->routine_count; i++)
        fib_json_add(routines, routine_object(&table->routines[i]));
    return object;
}

/* What the library prints while it is loaded must not stand among the rows. */
static void detach(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(FIB_EXIT_ENVIRONMENT);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

_Noreturn static void answer(const char *path, int socket, pid_t parent)
{
    struct fib_error err = {0};
    const struct fib_plugin *table = NULL;
    detach(parent);
    const enum fib_status st = fib_plugin_load(path, &table, &err);
    struct fib_json *object = st == FIB_OK ? table_object(table) : fib_json_object();
    if (st != FIB_OK)
        fib_json_set_text(object, "error", err.text);
    char *const chars = fib_json_print(object, false);
    const bool sent = fib_frame_send(socket, FIB_FRAME_HELLO, chars, strlen(chars));
    free(chars);
    fib_json_free(&object);
    _exit(sent ? FIB_EXIT_OK : FIB_EXIT_ENVIRONMENT);
}

/* ---- here ---- */

enum wait { ARRIVED, ENDED, LATE };

static enum wait wait_for_answer(const struct fib_process *process, struct fib_frame_buffer *input,
                                 double limit_s, struct fib_frame *frame)
{
    const uint64_t deadline_ns = fib_host_now_ns() + (uint64_t)(limit_s * 1e9);
    struct pollfd fd = {.fd = process->socket, .events = POLLIN};
    for (;;) {
        const enum fib_frame_state state = fib_frame_take(input, frame);
        if (state == FIB_FRAME_READY)
            return ARRIVED;
        const uint64_t now_ns = fib_host_now_ns();
        if (state == FIB_FRAME_BROKEN)
            return ENDED;
        if (now_ns >= deadline_ns)
            return LATE;
        poll(&fd, 1, 50);
        if (fd.revents != 0 && !fib_frame_read(process->socket, input))
            return ENDED;
        /* A process that it left behind may hold the socket open. */
        if (fd.revents == 0 && fib_process_has_ended(process))
            return ENDED;
    }
}

static struct fib_json *read_answer(const struct fib_frame *frame, struct fib_error *err)
{
    struct fib_json *object = fib_json_parse(frame->bytes, frame->length, err);
    const char *const error = fib_json_text(object, "error");
    if (error) {
        fib_fail(err, FIB_ERR_UNSUPPORTED, "%s", error);
        fib_json_free(&object);
    }
    return object;
}

struct fib_json *fib_plugin_probe(const char *path, double limit_s, struct fib_error *err)
{
    struct fib_process process;
    struct fib_frame_buffer input = {0};
    struct fib_frame frame;
    struct fib_json *object = NULL;
    struct fib_text how = {0};
    const pid_t parent = getpid();
    fflush(NULL);
    if (fib_process_start(&process, err) != FIB_OK)
        return NULL;
    if (process.pid == 0)
        answer(path, process.socket, parent);
    const enum wait outcome = wait_for_answer(&process, &input, limit_s, &frame);
    if (outcome == ARRIVED)
        object = read_answer(&frame, err);
    fib_process_end(&process, outcome == LATE ? 0 : END_GRACE_MS);
    fib_process_describe_end(&process, &how);
    if (outcome == ENDED)
        fib_fail(err, FIB_ERR_UNSUPPORTED, "the process that loaded it %s", fib_text_chars(&how));
    else if (outcome == LATE)
        fib_fail(err, FIB_ERR_TIMEOUT, "still loading after %g s", limit_s);
    fib_text_free(&how);
    fib_frame_buffer_free(&input);
    return object;
}
