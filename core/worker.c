/* Inside the worker process: says hello, runs the items it is sent, reports every result at once.
 */
#include "core/worker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/env.h"
#include "core/frame.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/runner.h"

struct worker {
    const struct fib_worker_spec *spec;
    struct fib_pool *pool;
    struct fib_device *device;
    struct fib_frame_buffer input;
    bool prepared;      /* some backend of the item was asked to prepare */
    bool out_of_memory; /* and one had none, so that this process may have little left */
};

/* Who would read it? The parent is gone, or does not understand us. */
_Noreturn static void leave(void)
{
    _exit(FIB_EXIT_ENVIRONMENT);
}

static void send_bytes(const struct worker *w, enum fib_frame_type type, const void *bytes,
                       size_t length)
{
    if (!fib_frame_send(w->spec->socket, type, bytes, length))
        leave();
}

/* Takes ownership of the value. */
static void send_json(const struct worker *w, enum fib_frame_type type, struct fib_json *value)
{
    char *const chars = fib_json_print(value, false);
    send_bytes(w, type, chars, strlen(chars));
    free(chars);
    fib_json_free(&value);
}

static void add_clocks(const struct worker *w, struct fib_json *message)
{
    fib_json_set_f64(message, "now_ms", w->device->ops->now_ms(w->device));
    fib_json_set_i64(message, "utc_s", w->device->ops->utc_s(w->device));
}

/* ---- callbacks of the runner ---- */

static enum fib_status emit(void *context, struct fib_json *record, struct fib_error *err)
{
    struct worker *const w = context;
    const char *const status = fib_json_text(record, "status");
    (void)err;
    w->out_of_memory = w->out_of_memory || (w->prepared && status && strcmp(status, "OOM") == 0);
    send_json(w, FIB_FRAME_RECORD, record);
    return FIB_OK;
}

static enum fib_status end_group(void *context, struct fib_error *err)
{
    (void)err;
    send_bytes(context, FIB_FRAME_END_GROUP, NULL, 0);
    return FIB_OK;
}

static void say(void *context, const char *line)
{
    send_bytes(context, FIB_FRAME_SAY, line, strlen(line));
}

/* Waits for the answer: everything sent before has then been dealt with, so the parent is idle
 * while the backends are timed. */
static void begin_group(void *context, const struct fib_group *group, bool *skip)
{
    struct worker *const w = context;
    struct fib_json *const message = fib_json_object();
    struct fib_frame answer;
    fib_json_set_text(message, "key", group->key);
    fib_json_set_bool(message, "hot", group->hot);
    struct fib_json *const labels = fib_json_set(message, "labels", fib_json_array());
    for (size_t i = 0; i < group->count; i++)
        fib_json_add_text(labels, group->labels[i]);
    send_json(w, FIB_FRAME_GROUP, message);
    if (!fib_frame_wait(w->spec->socket, &w->input, &answer) || answer.type != FIB_FRAME_SKIP ||
        answer.length != group->count)
        leave();
    for (size_t i = 0; i < group->count; i++)
        skip[i] = answer.bytes[i] != 0;
}

static void enter(void *context, int arm, enum fib_step step)
{
    struct worker *const w = context;
    struct fib_mark *const mark = w->spec->mark;
    w->prepared = w->prepared || step == FIB_STEP_PREPARE;
    atomic_store_explicit(&mark->arm, arm, memory_order_relaxed);
    atomic_store_explicit(&mark->step, (int)step, memory_order_relaxed);
}

/* ---- life of the process ---- */

/* Input from a pipe is the parent's, and what a backend prints must not stand between the rows. */
static void detach_streams(void)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* When memory runs out the kernel should take the process that can be replaced. */
static void volunteer_for_oom(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "500", 3) != 3) {
        /* then the kernel decides by size, which mostly means this process as well */
    }
    close(fd);
}

/* Own process group: Ctrl-C goes to the parent alone, which ends this process. */
static void become_worker(const struct fib_worker_spec *spec)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != spec->parent) /* it was gone before the line above */
        leave();
    prctl(PR_SET_NAME, "fib-worker");
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    detach_streams();
    volunteer_for_oom();
}

enum fib_status fib_worker_open_device(const struct fib_app *app, struct fib_pool *pool,
                                       struct fib_device **device, struct fib_error *err)
{
    struct fib_error why = {0};
    const enum fib_status st = app->open_device(app, pool, device, &why);
    if (st != FIB_OK && app->device_index > 0)
        return fib_fail(err, st, "--devices %" PRId64 ": %s", app->device_index, why.text);
    if (st != FIB_OK)
        return fib_fail(err, st, "%s", why.text);
    if ((*device)->facts.kind != FIB_DEVICE_CPU || app->device_index == 0)
        return st;
    fib_fail(err, FIB_ERR_DEVICE, "--devices %" PRId64 ": does not exist; there is only 0, %s",
             app->device_index, (*device)->facts.name);
    fib_device_close(device);
    return err->status;
}

static bool say_hello(struct worker *w)
{
    struct fib_error err = {0};
    struct fib_json *const hello = fib_json_object();
    w->pool = fib_pool_create(0);
    const enum fib_status st = fib_worker_open_device(w->spec->app, w->pool, &w->device, &err);
    fib_json_set_i64(hello, "status", (int64_t)st);
    fib_json_set_text(hello, "error", st == FIB_OK ? NULL : err.text);
    if (st == FIB_OK) {
        fib_json_set(
            hello, "environment",
            fib_env_block(w->spec->app->registry, w->device, w->spec->argc, w->spec->argv));
        add_clocks(w, hello);
    }
    send_json(w, FIB_FRAME_HELLO, hello);
    return st == FIB_OK;
}

static void run_item(struct worker *w, const struct fib_frame_run *order)
{
    struct fib_error err = {0};
    const struct fib_runner runner = {.registry = w->spec->app->registry,
                                      .device = w->device,
                                      .emit = emit,
                                      .end_group = end_group,
                                      .begin_group = begin_group,
                                      .enter = enter,
                                      .say = say,
                                      .replaceable = true,
                                      .again = order->again,
                                      .context = w};
    w->prepared = w->out_of_memory = false;
    enter(w, -1, FIB_STEP_BEGIN);
    atomic_store(&w->spec->mark->item, (long long)order->item);
    fib_runner_case(&runner, w->spec->plan->items[order->item].kase, (int64_t)order->item, &err);
    atomic_store(&w->spec->mark->item, -1);
    fflush(stdout); /* what a backend printed belongs before the next case */
    struct fib_json *const end = fib_json_object();
    add_clocks(w, end);
    fib_json_set_bool(end, "lost", w->device->lost);
    fib_json_set_bool(end, "replace", w->device->lost || w->out_of_memory);
    send_json(w, FIB_FRAME_END_ITEM, end);
}

_Noreturn void fib_worker_run(const struct fib_worker_spec *spec)
{
    struct worker w = {.spec = spec};
    struct fib_frame frame;
    struct fib_frame_run order;
    become_worker(spec);
    if (!say_hello(&w))
        leave();
    while (fib_frame_wait(spec->socket, &w.input, &frame)) {
        if (frame.type != FIB_FRAME_RUN || frame.length != sizeof(order))
            leave();
        memcpy(&order, frame.bytes, sizeof(order));
        run_item(&w, &order);
    }
    fib_device_close(&w.device);
    fib_pool_free(&w.pool);
    fib_frame_buffer_free(&w.input);
    _exit(FIB_EXIT_OK);
}
